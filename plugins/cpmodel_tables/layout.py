"""Roles of the columns of a table, from titles and values."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import IntArray
from callpath_modeler.errors import InputError
from callpath_modeler.readers.titles import is_measured, is_processes
from callpath_modeler.readers.tokens import REPETITIONS
from cpmodel_tables.grid import HINT, Grid, refuse_many

_CALL_PATHS = ("callpath", "call path", "call tree path", "callstack", "call stack")
_REGIONS = ("path", "region", "function", "routine", "kernel", "name", "node", "call site", "stack")
_METRICS = ("metric", "metric name", "counter")
_VALUES = ("value", "val", "measurement", "measured", "result")
_REPETITIONS = (*sorted(REPETITIONS), "jube wp iteration")
_UNITS = ("unit", "units")
_RUNS = ("file", "source", "profile", "file name", "filename", "directory", "run")
_PASSED_OVER = frozenset({"", "id", "nid", "index", "depth", "type", "line", "unnamed 0"})
_LOCATIONS = frozenset(
    {"rank", "process", "process id", "mpi rank", "thread", "thread id", "location", "location id"}
)
_ABOUT_RUNS = frozenset(
    {"compiler", "host", "hostname", "host name", "machine", "cluster", "system", "platform",
     "architecture", "arch", "partition", "queue", "user", "date", "time stamp", "timestamp",
     "version", "commit", "branch", "build", "status", "state", "comment", "comments", "note",
     "notes", "job", "job id", "jobid", "job name", "jobname", "environment", "input",
     "dataset", "configuration", "config", "variant"}
)  # fmt: skip
"""Titles of texts about runs, which are not call paths."""
_OF_RESULTS = frozenset({"growth", "model"})
_PROGRAMS = ("program", "application", "executable")
_COUNTS = frozenset(
    {"tasks", "threads", "nodes", "n threads", "n nodes", "num nodes", "num threads", "cores"}
)
"""Titles of counts that belong to a whole run, at any position in a table."""

_FILLED = 0.5
"""At each setting of the parameters, more than this share of the call paths must have a row."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Roles of the columns of a table.

    Attributes
    ----------
    callpath : titles whose texts form the call path; none = one call path for all rows
    parameters, values : titles
    repetition, metric, unit, run : titles, or None; with `metric` there is one title of values
    left_out : titles of unused columns
    metadata : titles of texts about the runs
    """

    callpath: tuple[str, ...]
    parameters: tuple[str, ...]
    values: tuple[str, ...]
    repetition: str | None
    metric: str | None
    unit: str | None
    run: str | None
    left_out: tuple[str, ...]
    metadata: tuple[str, ...] = ()


def plain(title: str) -> str:
    """Return a title in lower case, without unit and punctuation.

    >>> plain("Call_Path"), plain("value[s]"), plain("Thread ID")
    ('call path', 'value', 'thread id')
    """
    bare = re.sub(r"[\[(][^\[(\])]*[\])]", "", title)
    return " ".join(re.findall(r"[0-9a-z]+", bare.lower()))


def is_table(titles: Sequence[str]) -> bool:
    """Return whether a table contains measurements per call path, by its titles."""
    names = {plain(title) for title in titles}
    if names >= _OF_RESULTS:
        return False
    if names & {*_CALL_PATHS}:
        return len(names) > 1
    about_runs = any(map(is_processes, titles)) or bool(names & {*_REGIONS, *_COUNTS, *_PROGRAMS})
    return about_runs and any(map(is_measured, titles))


def names_call_paths(layout: TableLayout) -> bool:
    """Return whether the titles of the call path identify it as one."""
    known = {*_CALL_PATHS, *_REGIONS, *_PROGRAMS}
    return not layout.callpath or any(plain(title) in known for title in layout.callpath)


def layout_of(grid: Grid) -> TableLayout:
    """Return the role of every column.

    Raises
    ------
    InputError
        If a necessary role has no column, or the role of a column is not supported.
    """
    _refuse(grid)
    if not (grid.parameters or grid.is_result or is_table(list(grid.columns))):
        raise InputError(f"{grid.path}: not a table of measurements", hint=HINT)
    search = _Search(grid)
    metric = search.take(_METRICS)
    unit = search.take(_UNITS)
    callpath = search.take_call_path()
    run = search.take(_RUNS, numeric=False)
    repetition = search.take(_REPETITIONS, numeric=True)
    told = [title for title in grid.parameters if title in search.free]
    numeric = [title for title in _without(search.free, told) if search.is_numeric(title)]
    values = search.values(metric, numeric)
    parameters = told
    if not told:
        rest = _without(numeric, values)
        parameters, others = search.parameters(rest, values, callpath)
        if metric is None:
            values = [*values, *others]
        if not values:
            values = search.unnamed_values(parameters)
            parameters = _without(parameters, values)
    values = values or _without(numeric, parameters)
    if not any(map(is_processes, parameters)):
        # A number of processes keeps its role even if it is written in words: reading it raises an
        # error.
        parameters = [*parameters, *(title for title in search.free if is_processes(title))]
    if not values:
        raise InputError(f"{grid.path}: no column has values", hint=HINT)
    used = {*callpath, *parameters, *values, run}
    left_out = tuple(title for title in search.free if title not in used)
    roles = tuple(callpath), tuple(parameters), tuple(values)
    return TableLayout(*roles, repetition, metric, unit, run, left_out)


def _without(titles: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return the titles that are not among others."""
    excluded = frozenset(others)
    return [title for title in titles if title not in excluded]


def _refuse(grid: Grid) -> None:
    refuse_many(grid.path, len(grid.columns))
    names = {title: plain(title) for title in grid.columns if title not in grid.parameters}
    if {*names.values()} >= _OF_RESULTS:
        raise InputError(
            f"{grid.path}: a table of results, not of measurements",
            hint="write measurements with cpmodel export EXP --what values",
        )
    for title, name in names.items():
        is_one_word = not grid.is_numeric(title) and len({*map(str, grid.columns[title])}) == 1
        if name in _LOCATIONS and not is_one_word:
            raise InputError(
                f"{grid.path}: column {title!r} separates processes or threads",
                hint="a table has one value per call path and run: take the maximum or the mean "
                "over them first",
            )


class _Search:
    """Assignment of roles to columns, one role after the other; the others are free."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.free = {t: plain(t) for t in grid.columns if plain(t) not in _PASSED_OVER}
        self.free |= {title: plain(title) for title in grid.parameters}

    def take(self, names: Iterable[str], *, numeric: bool | None = None) -> str | None:
        """Return the first free column with one of `names`, and remove it from the free ones.

        `numeric` selects columns with numbers (True) or without (False).
        """
        for name in names:
            for title, known in self.free.items():
                if known != name or title in self.grid.parameters:
                    continue
                if numeric is None or self.grid.is_numeric(title) is numeric:
                    del self.free[title]
                    return title
        return None

    def take_call_path(self) -> list[str]:
        """Return the column of call paths, or else the leading columns of texts.

        Texts about runs are excluded. Without any column, all rows belong to the whole program.
        """
        title = self.take(_CALL_PATHS) or self.take(_REGIONS, numeric=False)
        title = title or self.take(_PROGRAMS, numeric=False)
        if title is not None:
            return [title]
        leading: list[str] = []
        for title, name in self.free.items():
            if name in _ABOUT_RUNS | _LOCATIONS:
                continue
            if self.grid.is_numeric(title):
                break
            leading.append(title)
        for title in leading:
            del self.free[title]
        return leading

    def is_numeric(self, title: str) -> bool:
        """Return whether a column contains numbers.

        Some titles require numbers: for them, a text is an error with its line. In other columns,
        one text is an error, and several texts make a column of texts.
        """
        if not self.grid.is_numeric(title) or self.grid.is_empty(title):
            return False
        if is_processes(title) or is_measured(title) or self.free[title] in _VALUES:
            return True
        return self.grid.texts_among_numbers(title) <= 1

    def values(self, metric: str | None, numeric: Sequence[str]) -> list[str]:
        """Return the columns with titles of values; with `metric` there must be exactly one."""
        named = {title: None for title in numeric if self.free[title] in _VALUES}
        if metric is None:
            return [t for t in numeric if t in named or (is_measured(t) and not is_processes(t))]
        measured = [title for title in numeric if is_measured(title) and not is_processes(title)]
        found = [*named] or measured or list(numeric[-1:])
        if len(found) > 1:
            raise InputError(
                f"{self.grid.path}: several columns may hold the values: {', '.join(found)}",
                hint="rename the column with the values to: value",
            )
        return found

    def unnamed_values(self, parameters: Sequence[str]) -> list[str]:
        """Return the columns that must be the values if no title says so."""
        measured = [t for t in self.free if is_measured(t) and not is_processes(t)]
        # A column without numbers raises an error with its line when it is read.
        return measured or [t for t in parameters if not is_processes(t)][-1:]

    def parameters(
        self, titles: Sequence[str], values: Sequence[str], callpath: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """Return the parameters and the values among the free columns of numbers.

        At each setting of the parameters, most call paths have a row. So a column that is different
        in every row is not a parameter. A single call path does not decide: then the columns after
        the first value are not parameters.
        """
        order = {title: place for place, title in enumerate(self.grid.columns)}
        first = min((order[title] for title in values), default=len(order))
        rows = len(self.grid.lines)
        paths = setting = np.zeros(rows, np.intp)
        for title in callpath:
            paths = _refined(paths, self.grid.columns[title])
        parameters: list[str] = []
        for title in titles:
            refined = _refined(setting, self.grid.columns[title])
            settings = int(refined.max()) + 1
            filled = len(np.unique(paths * settings + refined))
            full = (int(paths.max()) + 1) * settings
            telling = paths.any() or order[title] < first
            if (
                is_processes(title)
                or self.free[title] in _COUNTS
                or (telling and filled > _FILLED * full)
            ):
                parameters.append(title)
                setting = refined
        return parameters, _without(titles, parameters)


def _refined(number: IntArray, cells: Sequence[object]) -> IntArray:
    """Return a number per row, [n], equal for rows with equal `number` and equal cells."""
    try:
        own = _numbered(cells)
    except TypeError:
        # JSON may contain lists, which cannot be dictionary keys.
        own = _numbered([repr(cell) for cell in cells])
    _, refined = np.unique(number * (int(own.max()) + 1) + own, return_inverse=True)
    return np.asarray(refined, np.intp)


def _numbered(cells: Sequence[Hashable]) -> IntArray:
    known = dict.fromkeys(cells)
    number = dict(zip(known, range(len(known)), strict=True))
    return np.fromiter(map(number.__getitem__, cells), np.intp, len(cells))
