"""What workers are given to do in tests: they import it by name, as a program's own functions."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

HUNG = 600
"""Seconds after which a test that waits for another process gives up, however slow the machine."""


def square(number):
    return number * number


def whoever(number):
    time.sleep(0.05)
    return number, os.getpid()


def started_at(seconds):
    begin = time.monotonic()
    time.sleep(seconds)
    return begin


def refuse_seven(number):
    if number == 7:
        raise ValueError(f"no {number}, said {os.getpid()}")
    return number


def die_of_three(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


class OneWay:
    """It can be sent, and does not arrive."""

    def __reduce__(self):
        return int, ("no number",)


def one_way(number):
    return number, OneWay()


def wait_forever(folder):
    Path(folder, str(os.getpid())).touch()
    while True:
        time.sleep(HUNG)
