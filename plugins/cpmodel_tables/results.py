"""Program results in workflow tools: one value per run and figure of merit."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import RunSource
from callpath_modeler.support.input_limits import InputLimits, Work
from cpmodel_tables.grid import Grid, as_numbers
from cpmodel_tables.layout import TableLayout
from cpmodel_tables.tables import runs_of_grid
from cpmodel_tables.text import COPY_IT_AGAIN, opened_text

PROCESSES, THREADS, NODES = _COUNTS = ("p", "threads", "nodes")

_CALL_PATH, _PROGRAM, _METRIC, _VALUE, _UNIT = "callpath", "program", "metric", "value", "unit"
_REPETITION, _RUN = "repetition", "file"
_OURS = frozenset({_CALL_PATH, _PROGRAM, _METRIC, _VALUE, _UNIT, _REPETITION, _RUN})
_LONGEST = 200
"""Maximum length of a text that can distinguish runs."""


@dataclass(slots=True)
class Results:
    """Results of the runs in a file.

    Attributes
    ----------
    path : file of the results
    creator : tool that wrote the file
    place : unit of the `lines` of values
    all_vary : numbers are parameters even if all runs of this file have the same one, because other
        files may have another one
    is_nested : call paths begin with the program
    failed, listed : number of failed runs, and of all runs
    words : figures whose values are not numbers
    """

    path: Path
    creator: str
    place: str = "line"
    all_vary: bool = False
    is_nested: bool = True
    failed: int = 0
    listed: int = 0
    words: dict[str, None] = field(default_factory=dict)
    _rows: list[tuple[Mapping[str, object], list[str], str, float, str, int]] = field(
        default_factory=list
    )

    def add(
        self,
        run: Mapping[str, object],
        callpath: Sequence[str],
        metric: str,
        value: object,
        unit: object,
        line: int,
    ) -> None:
        """Add one value; values that are not numbers are only counted by their name.

        Parameters
        ----------
        run : properties of the run by name: ``program``, ``p``, ``repetition``, variables
        callpath : names below the program; with the root, if it is not the program
        """
        number = as_numbers([value])
        if number is None or not metric:
            self.words[metric or "(unnamed)"] = None
        elif not np.isnan(number[0]):
            told = str(unit or "").strip()
            told = "" if told.lower() in {"none", "null"} else told
            names = [str(run[_PROGRAM]), *callpath] if self.is_nested else [*callpath]
            self._rows.append((run, names, metric, float(number[0]), told, line))

    def runs(self, noticed: Sequence[Finding] = ()) -> list[RunSource]:
        """Return the runs, one program after the other.

        Raises
        ------
        InputError
            If there are no runs, or the number of processes is missing in some of them.
        """
        findings = [*noticed, *self._findings()]
        if not self._rows:
            why = "no result is a number"
            if self.failed:
                all_runs = f"all {self.listed} runs" if self.listed > 1 else "the run"
                why = f"{all_runs} failed or did not end"
            raise InputError(f"{self.path}: {why}", hint="repeat the runs")
        programs = dict.fromkeys(str(row[0][_PROGRAM]) for row in self._rows)
        runs: list[RunSource] = []
        limits, cells = InputLimits.of(self.path), 0
        for program in programs:
            mine = [row for row in self._rows if str(row[0][_PROGRAM]) == program]
            cells += len(mine) * len({name for run, *_ in mine for name in run})
            limits.check(Work.TABLE, cells, "split the report by programs")
            runs += runs_of_grid(*self._table(mine), findings)
        return runs

    def _findings(self) -> list[Finding]:
        found = []
        if self.failed:
            message = f"{self.failed} of {self.listed} runs failed"
            found.append(Finding("CPM166", str(self.path), message, self.failed))
        if self.words:
            message = ", ".join(self.words)
            found.append(Finding("CPM125", str(self.path), message, len(self.words)))
        return found

    def _table(
        self, rows: Sequence[tuple[Mapping[str, object], list[str], str, float, str, int]]
    ) -> tuple[Grid, TableLayout]:
        told = list(dict.fromkeys(name for run, *_ in rows for name in run))
        columns: dict[str, list[object]] = {name: [row[0].get(name) for row in rows]
                                            for name in told}  # fmt: skip
        parameters = [name for name in told if name not in _OURS and _is_number(columns[name])]
        parameters = [
            name
            for name in parameters
            if name == PROCESSES
            or (
                _is_full(columns[name])
                and (self.all_vary or name in _COUNTS or len({*columns[name]}) > 1)
            )
        ]
        used = {_REPETITION, _RUN, *parameters}
        metadata = [name for name in told if name not in used and _is_text(columns[name])]
        # A constant value cannot be a parameter, but users can select it with --param.
        used = {*_OURS, *parameters, *metadata}
        constant = [name for name in told if name not in used
                    and _is_full(columns[name]) and len({*columns[name]}) == 1]  # fmt: skip
        columns |= {name: [str(cell) for cell in columns[name]] for name in constant}
        columns |= {
            _CALL_PATH: [row[1] for row in rows],
            _METRIC: [row[2] for row in rows],
            _VALUE: [row[3] for row in rows],
            _UNIT: [row[4] for row in rows],
        }
        lines = np.array([row[5] for row in rows], np.intp)
        grid = Grid(self.path, columns, lines, place=self.place, creator=self.creator)
        layout = TableLayout(
            callpath=(_CALL_PATH,),
            parameters=tuple(parameters),
            values=(_VALUE,),
            repetition=_REPETITION if _REPETITION in told else None,
            metric=_METRIC,
            unit=_UNIT,
            run=_RUN if _RUN in told else None,
            left_out=(),
            metadata=(*metadata, *constant),
        )
        return grid, layout


def _is_number(cells: Sequence[object]) -> bool:
    numbers = as_numbers([None if isinstance(cell, bool) else cell for cell in cells])
    return numbers is not None and bool(np.isfinite(numbers).any())


def _is_full(cells: Sequence[object]) -> bool:
    numbers = as_numbers(cells)
    return numbers is not None and bool(np.isfinite(numbers).all())


def _is_text(cells: Sequence[object]) -> bool:
    return all(isinstance(cell, str) and len(cell) <= _LONGEST for cell in cells)


def csv_rows(path: Path, titles: re.Pattern[str]) -> Iterator[dict[str, str]]:
    """Yield the rows of CSV by title, below the first line that matches a pattern.

    Raises
    ------
    InputError
        If a quoted text does not end.
    """
    with opened_text(path, newline="") as text:
        names = next((line for line in text if titles.match(line)), "")
        try:
            (head,) = csv.reader([names])
            for row in csv.DictReader(text, head, restval=""):
                yield {key: cell for key, cell in row.items() if isinstance(key, str)}
        except csv.Error as cause:
            raise InputError(f"{path}: {cause}", hint=COPY_IT_AGAIN) from cause


def counts_of(told: Mapping[str, object], names: Mapping[str, str]) -> dict[str, object]:
    """Return the counts of a run by cpmodel's names; unknown counts are missing.

    Parameters
    ----------
    names : cpmodel's name for each name of the tool
    """
    found: dict[str, object] = {}
    for name, ours in names.items():
        number = as_numbers([told.get(name)])
        if ours not in found and number is not None and np.isfinite(number[0]):
            found[ours] = float(number[0])
    return found
