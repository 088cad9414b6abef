"""Sections of benchmark output, and the checks that all readers apply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import NoReturn

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.printable import shortened
from callpath_modeler.units import counted, decimal_of
from cpmodel_guidelines.campaigns.campaign import Cell, Detail, Section
from cpmodel_guidelines.statistics.repetition_count import RepetitionCount

_DECIMAL_COMMA = re.compile(r"[-+]?\d{1,300},\d{1,300}(?:[eE][-+]?\d{1,3})?", re.ASCII)
_LONGEST_NAME = 200
_MOST_PROCESSES = 10**9


@dataclass(slots=True)
class Source:
    """A file, with what its path and the user say about it.

    Attributes
    ----------
    path : the file
    library : name of the MPI library; "" = unknown
    processes : number of processes by the path or the user; None = unknown
    zeros, unused : number of times of zero and of lines that were not used
    first_zero, first_unused : their first lines
    selected : number of times that the file has because of their result, so they are not used
    """

    path: Path
    library: str = ""
    processes: int | None = None
    zeros: int = 0
    first_zero: int = 0
    unused: int = 0
    first_unused: int = 0
    selected: int = 0

    def fail(self, line: int, what: str, hint: str) -> NoReturn:
        """Raise an error that names the file and a line.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError(f"{self.path}: line {line}: {what}", hint=hint)

    def number(self, line: int, text: str, what: str) -> float:
        """Return a finite number.

        Raises
        ------
        InputError
            If the text is not a finite number.
        """
        try:
            value = decimal_of(text)
        except ValueError:
            value = float("nan")
        if not isfinite(value):
            hint = "run the benchmark again"
            if _DECIMAL_COMMA.fullmatch(text):
                point = shortened(text.replace(",", "."))
                hint = f"write decimal points, e.g. {point}: run the benchmark with LC_ALL=C, or "
                hint += "replace the commas"
            self.fail(line, f"{what} {shortened(text)!r} is not a number", hint)
        return value

    def whole(self, line: int, text: str, what: str, least: int) -> int:
        """Return a whole number of at least `least`.

        Raises
        ------
        InputError
            If the text is not such a number.
        """
        value = self.number(line, text, what)
        if value != int(value) or not least <= value <= 2**53:
            at_least = f"a whole number of at least {least}"
            self.fail(line, f"{what} {shortened(text)!r} is not {at_least}", "correct the file")
        return int(value)

    def process_count(self, line: int, text: str) -> int:
        """Return a number of processes.

        Raises
        ------
        InputError
            If the text is not a number of processes.
        """
        found = self.whole(line, text, "number of processes", 1)
        if found > _MOST_PROCESSES:
            self.fail(line, f"{found} processes are too many", "correct the file")
        return found

    def require_processes(self, line: int, stated: int | None) -> int:
        """Return the stated number of processes, else the one of the path or of the user.

        Raises
        ------
        InputError
            If no number is known.
        """
        found = stated or self.processes
        if found is None:
            self.fail(
                line,
                "the number of processes is not stated",
                "add --processes P, or write it into the name, e.g. osu_bcast.p16.r1.txt",
            )
        return found

    def require_titles(self, line: int, titles: Sequence[str]) -> None:
        """Raise an error for a row before the titles of the columns.

        Raises
        ------
        InputError
            If there are no titles.
        """
        if not titles:
            hint = "the file is incomplete; run the benchmark again"
            self.fail(line, "a row before the titles of the columns", hint)

    def fail_row(self, line: int, cells: Sequence[str], titles: Sequence[str]) -> NoReturn:
        """Raise an error for a row with too few or too many cells.

        Raises
        ------
        InputError
            Always.
        """
        hint = "the row is cut off or mixed with another; run the benchmark again"
        if len(cells) > len(titles):
            hint = f"if numbers have decimal commas, write points; else {hint}"
        self.fail(line, f"{counted(len(cells), 'cell')} instead of {len(titles)}", hint)

    def require_rows(self, line: int, *, has_rows: bool) -> None:
        """Raise an error at the last line of a file without rows.

        Raises
        ------
        InputError
            If there are none.
        """
        if not has_rows:
            self.fail(max(line, 1), "the file has no row", "run the benchmark again")

    def skip(self, line: int) -> None:
        """Count a line that is not used."""
        self.unused += 1
        self.first_unused = self.first_unused or line

    def findings(self) -> list[Finding]:
        """Return findings about times and lines that were not used."""
        found = []
        if self.zeros:
            message = f"{counted(self.zeros, 'time')} of zero, the first in line {self.first_zero}"
            found.append(Finding("CPM303", str(self.path), message, self.zeros))
        if self.unused:
            message = f"{counted(self.unused, 'line')} not used, the first is {self.first_unused}"
            found.append(Finding("CPM305", str(self.path), message, self.unused))
        if self.selected:
            message = (
                f"{counted(self.selected, 'time')} of mock-ups not used: this table only has those "
                "that are faster"
            )
            found.append(Finding("CPM305", str(self.path), message, self.selected))
        return found


@dataclass(slots=True)
class SectionBuilder:
    """A section under construction.

    Attributes
    ----------
    source, line : the file, and the first line of the section
    processes : number of processes
    detail : level of detail of the times
    library : name of the MPI library
    mpirun : number of the mpirun; None = this section is one
    predicted : predicted numbers of repetitions of each cell
    """

    source: Source
    line: int
    processes: int
    detail: Detail
    library: str = ""
    mpirun: int | None = None
    times: dict[Cell, list[float]] = field(default_factory=dict)
    predicted: dict[Cell, RepetitionCount] = field(default_factory=dict)

    def add(self, line: int, function: str, size: float, seconds: float) -> None:
        """Add one time.

        Raises
        ------
        InputError
            If the time is negative, or the name is too long.
        """
        if seconds < 0:
            hint = "the clock ran backwards; measure again with another clock"
            self.source.fail(line, f"a time of {seconds:g} s is negative", hint)
        if len(function) > _LONGEST_NAME:
            self.source.fail(
                line, f"{shortened(function)!r} is not the name of a function", "correct the file"
            )
        if seconds == 0:
            self.source.zeros += 1
            self.source.first_zero = self.source.first_zero or line
            return
        self.times.setdefault(Cell(function, size), []).append(seconds)

    def made(self) -> Section:
        """Return the section."""
        return Section(
            str(self.source.path),
            self.line,
            self.library or self.source.library,
            self.processes,
            self.mpirun,
            self.detail,
            self.times,
            self.predicted,
        )


def block_size(function: str, size: float, processes: int) -> float:
    """Return the block of one process if a suite reports the whole vector of a function.

    OSU, Intel MPI Benchmarks and SKaMPI report the whole vector for reductions that scatter.
    """
    return size / processes if function.lower().startswith("mpi_reduce_scatter") else size
