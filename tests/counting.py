"""What a call does, counted: lines of Python, and the characters and items that they go through.

Counts are the same on every machine and under any load, unlike seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

_SIZED = (str, bytes, list, tuple)


def work_of(call: Callable[[], object]) -> int:
    """Return how much a call does.

    A line counts as one, and as the lengths of texts and lists that it binds to names. A call of a
    method of a text counts as the length of the text.
    """
    count = 0
    held: dict[int, dict[str, object]] = {}

    def trace(frame: FrameType, event: str, _argument: object):
        nonlocal count
        if event == "line":
            count += 1
        known = held.setdefault(id(frame), {})
        for name, value in frame.f_locals.items():
            if isinstance(value, _SIZED) and known.get(name) is not value:
                known[name] = value
                count += len(value)
        if event == "return":
            held.pop(id(frame), None)
        return trace

    def profile(_frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        owner = getattr(argument, "__self__", None)
        if event == "c_call" and isinstance(owner, str | bytes):
            count += len(owner)

    before = sys.gettrace(), sys.getprofile()
    sys.setprofile(profile)
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    return count
