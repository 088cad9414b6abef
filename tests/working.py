"""Functions for workers in tests; workers import them by name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

HUNG = 600
"""Seconds until a test gives up waiting for another process, also on a slow machine."""


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
    """An object that can be pickled but not unpickled."""

    def __reduce__(self):
        return int, ("no number",)


def one_way(number):
    return number, OneWay()


def wait_forever(folder):
    Path(folder, str(os.getpid())).touch()
    while True:
        time.sleep(HUNG)
