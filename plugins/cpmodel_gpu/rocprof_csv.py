"""Traces of rocprofv3 as CSV files: calls of HIP, ranges of ROCTx, kernels and copies.

Each process writes several files with one prefix. A call and its activities have one correlation
number. Kernels do not name their process, so every prefix is a process.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np

from callpath_modeler.arrays import Int32Array, Int64Array
from callpath_modeler.errors import MalformedError, reading
from callpath_modeler.profile.schema import Region
from callpath_modeler.readers.base import StepRange
from callpath_modeler.support.input_limits import InputLimits, Work
from cpmodel_gpu.activities import Copy
from cpmodel_gpu.names import copy_region, kernel_region
from cpmodel_gpu.paths import Paths
from cpmodel_gpu.steps import NumberedRange, numbered_ranges, range_region, steps_of_file
from cpmodel_gpu.timeline import Calls, Launched, Timeline

_TIMES = ("Start_Timestamp", "End_Timestamp")
_OF_CALLS = ("Domain", "Function", "Process_Id", "Thread_Id", "Correlation_Id", *_TIMES)
_OF_KERNELS = ("Kernel_Name", "Agent_Id", "Queue_Id", "Correlation_Id", *_TIMES)
_OF_COPIES = ("Direction", "Source_Agent_Id", "Destination_Agent_Id", "Correlation_Id", *_TIMES)
_DIRECTIONS = {
    "HOST_TO_DEVICE": Copy.TO_DEVICE,
    "DEVICE_TO_HOST": Copy.TO_HOST,
    "DEVICE_TO_DEVICE": Copy.PEER,
}
_LAST_NUMBER = re.compile(r"(\d{1,18})\D*\Z")
_TIME = re.compile(r"[0-9]{1,18}")
_BLOCK = 1 << 14
_HINT = "record the program again: `rocprofv3 --runtime-trace --output-format csv -- PROGRAM`"


def has_titles(head: bytes) -> bool:
    """Return whether a file begins with the titles of a trace."""
    line = head.decode("utf-8", "replace").partition("\n")[0]
    titles = {each.strip().strip('"') for each in line.split(",")}
    of_kinds = (_OF_CALLS, _OF_KERNELS, _OF_COPIES)
    return any(titles.issuperset(each) for each in of_kinds)


class RocprofProcess:
    """Calls and activities of one process, from its files.

    Attributes
    ----------
    timeline : calls and activities
    steps : steps of each process that has some, of those that are selected
    ranks, programs : empty, because these files state neither
    creator : name of the tool
    left_out, wrong : as in `NsightFile`
    """

    def __init__(
        self, files: Sequence[Path], paths: Paths, selected: StepRange | None = None
    ) -> None:
        self.timeline = Timeline(paths)
        self.left_out = self.wrong = 0
        self.ranks: dict[int, int] = {}
        self.programs: dict[int, str] = {}
        self.creator = "rocprofv3"
        self._paths = paths
        self._regions: dict[tuple[str, str], int] = {}
        order = sorted(files, key=lambda each: each.name)
        ranges = chain.from_iterable(map(_numbered_ranges, order))
        self.steps = steps_of_file(order[0], ranges, selected)
        self.timeline.selected = None if selected is None else self.steps
        for file in order:
            self._read(file, _OF_CALLS, self._add_calls)
        self.timeline.nest()
        for file in order:
            self._read(file, _OF_KERNELS, self._add_kernels)
            self._read(file, _OF_COPIES, self._add_copies)

    def _read(
        self, file: Path, titles: Sequence[str], add: Callable[[Sequence[tuple[str, ...]]], None]
    ) -> None:
        with reading(file, _HINT):
            for block in _blocks(file, titles):
                add(block)

    def _add_calls(self, rows: Sequence[tuple[str, ...]]) -> None:
        domains, functions, _, threads, correlations, starts, ends = zip(*rows, strict=True)
        region = np.array(
            [
                self._region(domain, function)
                for domain, function in zip(domains, functions, strict=True)
            ],
            np.int32,
        )
        calls = Calls(self._process(len(rows)), _numbers(threads), _numbers(starts),
                      _numbers(ends), region, _numbers(correlations))  # fmt: skip
        self.timeline.add_calls(calls)

    def _add_kernels(self, rows: Sequence[tuple[str, ...]]) -> None:
        names, agents, queues, correlations, starts, ends = zip(*rows, strict=True)
        region = self._numbered("kernel", names, lambda name: kernel_region(name, "hip"))
        launched = Launched(self._process(len(rows)), _numbers(correlations), _numbers(starts),
                            _numbers(ends), region, _numbers(agents), _numbers(queues))  # fmt: skip
        self.timeline.add_activities(launched)

    def _add_copies(self, rows: Sequence[tuple[str, ...]]) -> None:
        directions, sources, targets, correlations, starts, ends = zip(*rows, strict=True)
        copies = [_direction(each) for each in directions]
        region = np.array(
            [self._paths.regions.number(copy_region(each, "hip")) for each in copies], np.int32
        )
        copy, source, target = np.array(copies, np.int64), _numbers(sources), _numbers(targets)
        device = np.where(copy == Copy.TO_HOST, source, target)
        # These files state no bytes.
        none = np.zeros(len(rows), np.int64)
        launched = Launched(self._process(len(rows)), _numbers(correlations), _numbers(starts),
                            _numbers(ends), region, device, none)  # fmt: skip
        self.timeline.add_activities(launched)

    @staticmethod
    def _process(rows: int) -> Int64Array:
        return np.zeros(rows, np.int64)

    def _region(self, domain: str, function: str) -> int:
        is_range = _marks_range(domain)
        key = "range" if is_range else "call", function
        if key not in self._regions:
            name = function or "(unnamed call)"
            region = range_region(name) if is_range else Region(name, paradigm="hip")
            self._regions[key] = self._paths.regions.number(region)
        return self._regions[key]

    def _numbered(
        self, kind: str, names: Sequence[str], region: Callable[[str], Region]
    ) -> Int32Array:
        found = []
        for name in names:
            if (kind, name) not in self._regions:
                made = region(name or f"(unnamed {kind})")
                self._regions[kind, name] = self._paths.regions.number(made)
            found.append(self._regions[kind, name])
        return np.array(found, np.int32)


def _marks_range(domain: str) -> bool:
    return "MARKER" in domain.upper()


def _numbered_ranges(file: Path) -> Iterator[NumberedRange]:
    """Yield the ranges of a file that have the number of a step in their names."""
    with reading(file, _HINT):
        for rows in _blocks(file, _OF_CALLS):
            # Only whole numbers are times, as of the other calls.
            ranges = [
                row for row in rows if _marks_range(row[0]) and all(map(_TIME.fullmatch, row[-2:]))
            ]
            # A file of calls has no ranges, and may be large.
            if not ranges:
                return
            _, names, _, threads, _, starts, ends = zip(*ranges, strict=True)
            process = np.zeros(len(ranges), np.int64)
            columns = _numbers(threads), _numbers(starts), _numbers(ends)
            yield from numbered_ranges(process, *columns, names)


def _blocks(file: Path, titles: Sequence[str]) -> Iterator[list[tuple[str, ...]]]:
    """Yield the chosen columns of a file in blocks of rows; nothing if the titles are others.

    Raises
    ------
    MalformedError
        If a row lacks a column.
    """
    limits, number = InputLimits.of(file), 1
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        rows = csv.reader(lines)
        try:
            known = [each.strip() for each in next(rows, [])]
            if not set(known).issuperset(titles):
                return
            places = [known.index(each) for each in titles]
            while block := list(islice(rows, _BLOCK)):
                limits.check(Work.TEXT_LINES, number + len(block), _HINT)
                found = []
                for row in block:
                    number += 1
                    if row and len(row) <= max(places):
                        raise MalformedError(f"line {number}: a column is missing")
                    if row:
                        found.append(tuple(row[place] for place in places))
                if found:
                    yield found
        except csv.Error as error:
            raise MalformedError(f"no table: {error}") from None


def _numbers(texts: Sequence[str]) -> Int64Array:
    """Return numbers; an agent may be called ``Agent 4``, and -1 stands for no number."""
    try:
        return np.array([int(each) for each in texts], np.int64)
    except (ValueError, OverflowError):
        return np.array([_number(each) for each in texts], np.int64)


def _number(text: str) -> int:
    found = _LAST_NUMBER.search(text)
    return int(found[1]) if found and "-" not in text else -1


def _direction(text: str) -> Copy:
    upper = text.upper()
    return next((kind for words, kind in _DIRECTIONS.items() if words in upper), Copy.OTHER)
