"""Damaged profiles, as full disks, killed jobs and bad copies leave them."""

from __future__ import annotations

import random
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType


def copy_of(profile: Path, folder: Path) -> Path:
    """Copy a profile, file or directory, into `folder` and return the copy."""
    target = folder / profile.name
    if profile.is_dir():
        shutil.copytree(profile, target)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(profile, target)
    return target


def damage(folder: Path, seed: int) -> Path:
    """Damage one file below `folder`, always in the same way for one `seed`.

    A file is truncated, loses a range, or has a range or single bytes overwritten.

    Returns
    -------
    Path
        The damaged file.
    """
    rng = random.Random(seed)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    # Large files have most of the content; damage to small ones, the definitions, is worst.
    victim = rng.choice(files)
    content = bytearray(victim.read_bytes())
    if content:
        _damage(content, rng, seed % 4)
    victim.write_bytes(content)
    return victim


def _damage(content: bytearray, rng: random.Random, kind: int) -> None:
    at = rng.randrange(len(content))
    if kind == 0:
        del content[at:]
    elif kind == 1:
        del content[at : at + rng.randrange(1, 64)]
    elif kind == 2:
        content[at : at + 8] = rng.randbytes(8)
    else:
        for _ in range(rng.randrange(1, 20)):
            content[rng.randrange(len(content))] = rng.randrange(256)


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise `TimeoutError` in code that runs for longer, if the system has alarms."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"still not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
