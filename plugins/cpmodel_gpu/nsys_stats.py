"""Tables of `nsys stats --format csv`: sums of kernels, copies and calls of one run.

The tables of a report have no call paths, and no times of single threads. So calls have their sums
over threads, which are no run time.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from callpath_modeler.diagnostics import Notices
from callpath_modeler.errors import InputError, MalformedError, reading
from callpath_modeler.profile.schema import Metric, Region, base_unit
from callpath_modeler.support.input_limits import InputLimits, Work
from cpmodel_gpu.activities import BYTES, Copy, PathValues
from cpmodel_gpu.names import copy_region, kernel_region
from cpmodel_gpu.paths import WHOLE_PROGRAM, Paths
from cpmodel_gpu.profile import TIME, GpuProfile, ProcessValues

_TOTALS, _SIZES = "total time", "total"
_NUMBERS = ("instances", "num calls", "calls", "count", "operations")
_NAMES = ("name", "operation")
_DIRECTIONS = (
    (re.compile(r"memset", re.IGNORECASE), Copy.SET),
    (re.compile(r"HtoD|Host-to-Device|unified host.to.device", re.IGNORECASE), Copy.TO_DEVICE),
    (re.compile(r"DtoH|Device-to-Host|unified device.to.host", re.IGNORECASE), Copy.TO_HOST),
    (re.compile(r"DtoD|Device-to-Device", re.IGNORECASE), Copy.WITHIN),
    (re.compile(r"PtoP|Peer-to-Peer", re.IGNORECASE), Copy.PEER),
)
_LARGEST = 1e18
_CALLS = "calls"
_EXPORT = "export the report instead: `nsys export --type sqlite REPORT.nsys-rep`"


def is_table(head: bytes) -> bool:
    """Return whether a file begins with a table of sums."""
    lines = head.decode("utf-8", "replace").splitlines()[:40]
    try:
        return any(_titles(row) is not None for row in csv.reader(lines[:-1] or lines))
    except csv.Error:
        return False


def _titles(row: Sequence[str]) -> Mapping[str, tuple[int, str]] | None:
    """Return place and unit of each column, by its title; None = the row has other titles."""
    found: dict[str, tuple[int, str]] = {}
    for place, title in enumerate(row):
        name, unit = _without_unit(title.strip())
        found.setdefault(name.lower(), (place, unit))
    is_ours = (_TOTALS in found and "time" in found) or (_SIZES in found and "operation" in found)
    is_complete = any(each in found for each in _NUMBERS) and any(each in found for each in _NAMES)
    return found if is_ours and is_complete else None


def _without_unit(title: str) -> tuple[str, str]:
    """Return a title such as ``Total Time (ns)`` as name and unit; "" = it states none."""
    name, bracket, unit = title.removesuffix(")").rpartition("(")
    return (name.strip(), unit) if bracket and title.endswith(")") else (title, "")


def nsys_stats_run(path: Path, files: Sequence[Path]) -> GpuProfile:
    """Return the profile of a run from the tables of one report.

    Raises
    ------
    InputError
        If a table is malformed, or none has calls, kernels or copies.
    """
    tables, size = _Tables(), 0
    for file in files:
        size += file.stat().st_size if file.is_file() else 0
        with (
            reading(file, _EXPORT),
            file.open(encoding="utf-8-sig", errors="replace", newline="") as lines,
        ):
            tables.add(lines, InputLimits.of(file))
    process = tables.values()
    if not process.devices and not process.threads[0]:
        raise InputError(f"{path}: the table has no calls, kernels or copies", hint=_EXPORT)
    metric = TIME.of_all_threads()
    return GpuProfile(
        tables.paths,
        [process],
        Notices(str(path)),
        InputLimits.of(path, size),
        extra={_CALLS: (Metric(metric.name, "s", metric.description), 1.0)},
        metadata={"creator": "Nsight Systems"},
    )


class _Tables:
    """Sums of each call path, from all tables."""

    def __init__(self) -> None:
        self.paths = Paths()
        self._threads: dict[str, dict[int, float]] = {}
        self._devices: dict[str, dict[int, float]] = {}

    def values(self) -> ProcessValues:
        """Return all sums as those of one process."""
        return ProcessValues(threads=[_path_values(self._threads)],
                             devices=_path_values(self._devices))  # fmt: skip

    def add(self, lines: Iterable[str], limits: InputLimits) -> None:
        """Add the tables in a file; text between them is not used.

        Raises
        ------
        MalformedError
            If a sum is no number, or a line is no row of a table.
        """
        titles: Mapping[str, tuple[int, str]] | None = None
        for number, row in enumerate(_rows(lines), start=1):
            limits.check(Work.TEXT_LINES, number, _EXPORT)
            found = _titles(row)
            if found is not None:
                titles = found
            elif titles is None or len(row) <= max(place for place, _ in titles.values()):
                titles = None
            else:
                self._add_row(row, titles, number)

    def _add_row(
        self, row: Sequence[str], titles: Mapping[str, tuple[int, str]], number: int
    ) -> None:
        def value(title: str, default: str = "") -> float:
            place, unit = titles[title]
            factor = base_unit(unit or default)[1]
            return factor * _number(row[place], number)

        key = next(each for each in _NUMBERS if each in titles)
        name = row[titles[next(each for each in _NAMES if each in titles)][0]]
        # The number of a name without a unit is a count.
        count = _number(row[titles[key][0]], number)
        if _TOTALS not in titles:
            if titles[_SIZES][1]:
                kind = _direction(name)
                _add(self._devices, BYTES[kind], self._path(copy_region(kind)), value(_SIZES))
            return
        # Old versions state no unit of nanoseconds.
        time = value(_TOTALS, "ns") * 1e9
        if "calls" in key:
            path = self._path(Region(name or "(unnamed call)", paradigm="cuda"))
            _add(self._threads, _CALLS, path, time / 1e9)
            _add(self._threads, "visits", path, count)
            return
        is_copy = name.startswith("[CUDA mem") or "operation" in titles
        region = copy_region(_direction(name)) if is_copy else kernel_region(name)
        path = self._path(region)
        _add(self._devices, "time", path, time)
        _add(self._devices, "visits", path, count)

    def _path(self, region: Region) -> int:
        return self.paths.callee(WHOLE_PROGRAM, self.paths.regions.number(region))


def _rows(lines: Iterable[str]) -> Iterator[list[str]]:
    try:
        yield from csv.reader(lines)
    except csv.Error as error:
        raise MalformedError(f"no table: {error}") from None


def _number(text: str, line: int) -> float:
    try:
        found = float(text.replace(",", "") or 0)
    except ValueError:
        raise MalformedError(f"line {line}: {text[:40]!r} is no number") from None
    if not 0 <= found < _LARGEST:
        raise MalformedError(f"line {line}: {text[:40]!r} is no sum")
    return found


def _direction(name: str) -> Copy:
    return next((kind for form, kind in _DIRECTIONS if form.search(name)), Copy.OTHER)


def _add(cells: dict[str, dict[int, float]], metric: str, path: int, value: float) -> None:
    of_metric = cells.setdefault(metric, {})
    of_metric[path] = of_metric.get(path, 0.0) + value


def _path_values(cells: Mapping[str, Mapping[int, float]]) -> dict[str, PathValues]:
    return {
        name: (
            np.array(sorted(of_metric), np.intp),
            np.array([of_metric[path] for path in sorted(of_metric)], np.float64),
        )
        for name, of_metric in cells.items()
    }
