"""Text files ``profile.n.c.t``, in one directory or in one directory per metric."""

from __future__ import annotations

import html
import os
import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from callpath_modeler.errors import InputError, MalformedError, reading
from callpath_modeler.printable import shortened
from callpath_modeler.units import decimal_of
from cpmodel_tau.measurements import (
    COPY_OR_MEASURE,
    Location,
    Measurements,
    TimerValues,
    times_first,
)

MULTI = "MULTI__"
"""Prefix of the directories in which TAU writes several metrics."""

_NAME = re.compile(r"profile\.(-?\d{1,9})\.(\d{1,9})\.(\d{1,9})", re.ASCII)
_FIRST = re.compile(r"([0-9]{1,9}) templated_functions(?:_MULTI)?_?(\S.{0,200})?")
_SECTION = re.compile(r"(\d{1,9}) (aggregates|userevents)")
_NUMBERS = re.compile(
    r'" +(\S{1,40}) +(\S{1,40}) +(\S{1,40}) +(\S{1,40}) +([0-9]{1,9})(?: +(?:GROUP=)?"([^"]*)")?'
)
_ATTRIBUTE = "<attribute><name>"
_LONGEST_LINE = 1 << 20
_LONGEST_HEADER = 1 << 24
_MOST_METADATA = 10_000


def location_of(name: str) -> Location | None:
    """Return the location in a file name; None = another file."""
    found = _NAME.fullmatch(name)
    return None if found is None else Location(*map(int, found.groups()))


def is_profile(head: str) -> bool:
    """Return whether a file is a profile, by its first line."""
    return _FIRST.fullmatch(head.partition("\n")[0].rstrip("\r")) is not None


def files_in(directory: Path) -> dict[Location, Path]:
    """Return the profiles of a directory by location, in order."""
    found = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            location = location_of(entry.name)
            if location is not None and entry.is_file():
                found[location] = Path(entry.path)
    return dict(sorted(found.items()))


def metric_directories(directory: Path) -> list[Path]:
    """Return the directories of single metrics inside a directory, durations first."""
    with os.scandir(directory) as entries:
        names = [e.name.removeprefix(MULTI) for e in entries if e.name.startswith(MULTI)]
    paths = (directory / f"{MULTI}{name}" for name in times_first(names))
    return [path for path in paths if path.is_dir()]


@dataclass(slots=True)
class _Header:
    """The first two lines of a file."""

    timers: int
    metric: str
    metadata: dict[str, str]


class ProfileFiles(Measurements):
    """Profiles of all threads; other metrics are read when they are needed."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        directories = metric_directories(directory) or [directory]
        self._files = {path.name.removeprefix(MULTI): files_in(path) for path in directories}
        first = next(iter(self._files))
        self.locations = list(self._files[first])
        if not self.locations:
            raise InputError(
                f"{directories[0]}: the file profile.0.0.0 is missing",
                hint="give the directory of the run",
            )
        self._metric = ""
        self._first = self._read(self._files[first], known=False)
        if directories == [directory]:
            self._files = {self._metric: self._files.pop(first)}
        self.metrics = list(self._files)

    def values(self, metric: str) -> TimerValues:
        """Return the values of a metric.

        Raises
        ------
        InputError
            If a file is malformed, or does not belong to the others.
        """
        files = self._files[metric]
        if metric == next(iter(self._files)):
            return self._first
        if list(files) != self.locations:
            folder = next(iter(files.values())).parent if files else f"{MULTI}{metric}"
            raise InputError(
                f"{folder}: the threads differ from those of the first metric: "
                f"{len(files)} instead of {len(self.locations)}",
                hint=COPY_OR_MEASURE,
            )
        return self._read(files, known=True)

    def _read(self, files: Mapping[Location, Path], *, known: bool) -> TimerValues:
        timers, locations = array("q"), array("q")
        numbers = array("d")
        for place, (location, path) in enumerate(files.items()):
            before = len(timers)
            with reading(path, COPY_OR_MEASURE):
                with path.open(encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                    self._read_file(file, location, timers, numbers, known=known)
                if len({*timers[before:]}) < len(timers) - before:
                    raise MalformedError("a timer is listed twice")
            locations.extend([place] * (len(timers) - before))
        columns = np.array(numbers, np.float64).reshape(-1, 3).T
        return TimerValues(np.array(timers, np.intp), np.array(locations, np.intp), *columns)

    def _read_file(
        self,
        file: TextIO,
        location: Location,
        timers: array[int],
        numbers: array[float],
        *,
        known: bool,
    ) -> None:
        header = _header(file)
        if not known:
            self._take_header(header, location)
        for number, line in enumerate(_lines(file, header.timers), start=3):
            name, group, values = _timer(line, number)
            timer = self.timers.find(name) if known else self.timers.number(name, group)
            if timer is None:
                raise MalformedError(
                    f"line {number}: the first metric has no timer {shortened(name)!r}"
                )
            timers.append(timer)
            numbers.extend(values)
        _end(file)

    def _take_header(self, header: _Header, location: Location) -> None:
        if not self._metric:
            self._metric = header.metric
            self.metadata = header.metadata
        elif header.metric != self._metric:
            raise MalformedError(
                f"the metric is {header.metric}, but other threads have {self._metric}"
            )
        self.note_host(location, header.metadata)


def _header(file: TextIO) -> _Header:
    first = file.readline(_LONGEST_LINE).rstrip("\r\n")
    found = _FIRST.fullmatch(first)
    if found is None:
        raise MalformedError("line 1: the number of templated_functions is missing")
    second = file.readline(_LONGEST_HEADER)
    if not second.startswith("# Name Calls Subrs Excl Incl"):
        raise MalformedError("line 2: the titles Name Calls Subrs Excl Incl are missing")
    metadata = metadata_in(second)
    metric = (found[2] or "").strip() or metadata.get("Metric Name", "TIME")
    return _Header(int(found[1]), metric, metadata)


def metadata_in(text: str) -> dict[str, str]:
    """Return names and values of the attributes in a text of XML elements."""
    found: dict[str, str] = {}
    for piece in text.split(_ATTRIBUTE)[1 : 1 + _MOST_METADATA]:
        name, _, rest = piece.partition("</name>")
        value = rest.removeprefix("<value>").partition("</value>")[0]
        found.setdefault(html.unescape(name).strip(), html.unescape(value).strip())
    return found


def _lines(file: TextIO, count: int) -> Iterator[str]:
    """Yield the lines of `count` timers, without the lines of single calls."""
    for seen in range(count):
        line = file.readline(_LONGEST_LINE)
        if not line.endswith("\n"):
            what = (
                "the file ends early"
                if len(line) < _LONGEST_LINE
                else "a line is longer than 1 MiB"
            )
            raise MalformedError(f"line {seen + 3}: {what}: {seen} of {count} timers found")
        yield line


def _timer(line: str, number: int) -> tuple[str, str, tuple[float, float, float]]:
    """Return the name, the group, and the calls with exclusive and inclusive value of a line."""
    line = line.rstrip()
    # Names may contain quotes, so the name ends at the last quote before numbers.
    end = line.rfind(' GROUP="')
    end = line.rfind('" ', 0, end if end > 0 else len(line))
    found = _NUMBERS.fullmatch(line, end) if line.startswith('"') and end > 0 else None
    if found is None and end > 0:
        end = line.rfind('" ', 0, end)
        found = _NUMBERS.fullmatch(line, end) if end > 0 else None
    if found is None:
        raise MalformedError(f"line {number}: not a timer with calls and times")
    if int(found[5]):
        raise MalformedError(f"line {number}: profiles of single calls are not supported")
    try:
        calls, exclusive, inclusive = map(decimal_of, found.group(1, 3, 4))
    except ValueError:
        raise MalformedError(f"line {number}: a value is not a number") from None
    return line[1:end], found[6] or "", (calls, exclusive, inclusive)


def _end(file: TextIO) -> None:
    """Raise an error unless the next section begins, or the file ends."""
    line = file.readline(_LONGEST_LINE).strip()
    if line and _SECTION.fullmatch(line) is None:
        raise MalformedError("there are more timers than the first line declares")
