"""Profiles of pprof: protocol buffers of Go's profiler, gperftools and others.

Message and field numbers: ``profile.proto`` of github.com/google/pprof.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.support.input_limits import InputLimits, Work
from cpmodel_tables.single_run import SingleRun
from cpmodel_tables.text import COPY_IT_AGAIN, whole_content

CREATOR = "pprof"

_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRING = 1, 2, 4, 5, 6
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
_MOST_FIELDS = 50
_MESSAGES = frozenset({1, 2, 3, 4, 5, 6, 11})
_NUMBERS = frozenset({7, 8, 9, 10, 12, 14, 15})
_COMMENT = 13
"""Field that may be either."""
_TIMES = frozenset({"cpu", "wall", "time"})
_UNITS = {
    "nanoseconds": "ns", "microseconds": "us", "milliseconds": "ms", "seconds": "s", "bytes": "B",
}  # fmt: skip


def is_one(content: bytes) -> bool:
    """Return whether a content is a profile, by its first fields, one of which is a sample type."""
    has_type = False
    try:
        for _, (number, held) in zip(range(_MOST_FIELDS), _fields(content), strict=False):
            if isinstance(held, int):
                is_field = number in _NUMBERS or number == _COMMENT
            else:
                is_field = number in _MESSAGES or number == _COMMENT
                has_type |= number == _SAMPLE_TYPE and {*_numbers(held)} <= {1, 2}
            if not is_field:
                return False
    except IndexError:
        # The first block ends within a field.
        return has_type
    return has_type


@dataclass(slots=True)
class _Profile:
    """The messages of a profile that are needed for stacks.

    Attributes
    ----------
    types : numbers of the texts of name and unit of each value of a sample
    samples : locations, the leaf first, and values
    locations : functions by location, the innermost first
    functions : numbers of the texts of names by function
    texts : all texts
    """

    types: list[tuple[int, int]] = field(default_factory=list)
    samples: list[tuple[list[int], list[int]]] = field(default_factory=list)
    locations: dict[int, list[int]] = field(default_factory=dict)
    functions: dict[int, int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def text(self, number: int) -> str:
        return self.texts[number] if 0 <= number < len(self.texts) else ""

    def titles(self) -> list[str]:
        """Return the titles of the values of a sample."""
        found = []
        for number, unit in self.types:
            name, written = self.text(number), _UNITS.get(self.text(unit), "")
            name = "time" if name in _TIMES and written.endswith("s") else name
            found.append(f"{name} [{written}]" if written else name or "samples")
        return found

    def frames(self, location: int) -> Iterator[str]:
        """Yield the names of the functions at a location, the innermost first."""
        functions = self.locations.get(location, [])
        for function in functions:
            yield self.text(self.functions.get(function, -1)) or "(unnamed)"
        if not functions:
            yield "(unnamed)"


def read(path: Path) -> tuple[SingleRun, list[Finding]]:
    """Return the run: values of samples by stack.

    Raises
    ------
    InputError
        If the file is damaged.
    """
    try:
        profile = _profile(path, whole_content(path))
    except (IndexError, UnicodeDecodeError) as cause:
        raise InputError(
            f"{path}: not a profile of pprof, or damaged", hint=COPY_IT_AGAIN
        ) from cause
    run, limits, frames = SingleRun(path), InputLimits.of(path), 0
    titles = profile.titles()
    for locations, values in profile.samples:
        names = [name for location in locations for name in profile.frames(location)]
        frames += len(names) + len(titles)
        limits.check(Work.NAMES, frames, "profile a part of the program")
        stack = tuple(reversed(names))
        for title, value in zip(titles, values, strict=False):
            if stack:
                run.add(stack, title, float(value))
    return run, []


def _profile(path: Path, content: bytes) -> _Profile:
    profile, found = _Profile(), 0
    limits = InputLimits.of(path)
    for number, held in _fields(content):
        found += 1
        limits.check(Work.CELLS, found, "profile a part of the program")
        if not isinstance(held, bytes):
            continue
        if number == _STRING:
            profile.texts.append(held.decode("utf-8", "replace"))
        elif number == _SAMPLE_TYPE:
            numbers = _numbers(held)
            profile.types.append((numbers.get(1, 0), numbers.get(2, 0)))
        elif number == _FUNCTION:
            numbers = _numbers(held)
            profile.functions[numbers.get(1, 0)] = numbers.get(2, 0)
        elif number == _LOCATION:
            lines = [_numbers(line).get(1, 0) for field, line in _fields(held)
                     if field == _LOCATION and isinstance(line, bytes)]  # fmt: skip
            profile.locations[_numbers(held).get(1, 0)] = lines
        elif number == _SAMPLE:
            parts = list(_fields(held))
            profile.samples.append((_repeated(parts, 1), _repeated(parts, 2)))
    return profile


def _numbers(content: bytes) -> dict[int, int]:
    """Return the numbers of a message by field."""
    return {number: held for number, held in _fields(content) if isinstance(held, int)}


def _repeated(parts: list[tuple[int, int | bytes]], number: int) -> list[int]:
    """Return the numbers of a repeated field, packed or not."""
    found: list[int] = []
    for field_number, held in parts:
        if field_number != number:
            continue
        if isinstance(held, int):
            found.append(held)
            continue
        at = 0
        while at < len(held):
            value, at = _varint(held, at)
            found.append(value)
    return found


def _fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field of a message.

    Raises
    ------
    IndexError
        If the message ends within a field.
    """
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(content, at)
            yield number, value
            continue
        if kind == _BYTES:
            size, at = _varint(content, at)
        elif kind in {_FIXED_32, _FIXED_64}:
            size = 4 if kind == _FIXED_32 else 8
        else:
            raise IndexError
        if not 0 <= size <= len(content) - at:
            raise IndexError
        if kind == _BYTES:
            yield number, content[at : at + size]
        at += size


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Return a number and the place behind it; numbers are signed, as samples are."""
    value = 0
    for k in range(_LONGEST_VARINT):
        byte = content[at + k]
        value |= (byte & 0x7F) << (7 * k)
        if byte < 0x80:
            value &= 2**64 - 1
            return (value - 2**64 if value >= 2**63 else value), at + k + 1
    raise IndexError
