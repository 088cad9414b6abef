"""Rows of a table without a run: statistics at its end, failed runs, missing times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from callpath_modeler.arrays import BoolArray
from callpath_modeler.diagnostics import Finding
from cpmodel_tables.grid import Grid
from cpmodel_tables.notations import is_missing
from cpmodel_tables.title_words import Place, place_of, plain, scale_name

_STATISTICS = frozenset(
    {"total", "sum", "average", "avg", "mean", "median", "min", "max", "std", "stddev", "geomean",
     "minimum", "maximum", "speedup", "efficiency"}
)  # fmt: skip
_STATES = frozenset({"state", "status", "exit status", "result", "outcome"})
_FAILED = ("fail", "timeout", "cancel", "out_of_memory", "oom", "node_fail", "error", "abort",
           "dnf", "crash")  # fmt: skip
_MOST_FOOTERS = 10
_MOST_NAMED = 5


def without_footers(grid: Grid) -> Grid:
    """Return a table without rows of statistics at its end, such as ``Total,191``."""
    scales = [title for title in grid.columns if scale_name(title)]
    last = len(grid.lines)
    while (
        last > 1
        and len(grid.lines) - last < _MOST_FOOTERS
        and any(plain(str(grid.columns[title][last - 1])) in _STATISTICS for title in scales)
    ):
        last -= 1
    return grid if last == len(grid.lines) else _rows(grid, np.arange(len(grid.lines)) < last)


def without_failures(grid: Grid) -> tuple[Grid, list[Finding]]:
    """Return a table without failed runs, and a finding about them."""
    states = [title for title in grid.columns if plain(title) in _STATES]
    states = [title for title in states if not grid.is_numeric(title)]
    failed = np.zeros(len(grid.lines), bool)
    for title in states:
        failed |= [str(cell).strip().lower().startswith(_FAILED) for cell in grid.columns[title]]
    if not failed.any() or failed.all():
        return grid, []
    message = f"{int(failed.sum())} of {len(failed)} runs failed"
    found = Finding("CPM166", str(grid.path), message, int(failed.sum()))
    return _rows(grid, ~failed), [found]


def without_gaps(grid: Grid, value: str, needed: Iterable[str]) -> tuple[Grid, list[Finding]]:
    """Return a table without rows that lack the default metric, and a finding about them.

    Scripts write 0 or -1 for failed runs, so only a positive, finite run time counts.

    Parameters
    ----------
    value : title of the default metric
    needed : titles of the parameters; a row without all of them is an error of its own
    """
    missing = np.array([*map(is_missing, grid.columns[value])], bool)
    times = grid.parsed(value)
    is_time = value == grid.time or place_of(value) in {Place.TOTAL, Place.TIME}
    if times is not None and is_time:
        missing |= ~((times > 0) & np.isfinite(times))
    for title in needed:
        missing &= [not is_missing(cell) for cell in grid.columns[title]]
    if not missing.any() or missing.all():
        return grid, []
    lines = grid.lines[missing].tolist()
    named = ", ".join(map(str, lines[:_MOST_NAMED])) + ", ..." * (len(lines) > _MOST_NAMED)
    message = f"{grid.place} {named}: no value of {value}"
    found = Finding("CPM101", str(grid.path), message, len(lines))
    return _rows(grid, ~missing), [found]


def _rows(grid: Grid, kept: BoolArray) -> Grid:
    rows = np.flatnonzero(kept).tolist()
    columns = {title: [cells[k] for k in rows] for title, cells in grid.columns.items()}
    return replace(grid, columns=columns, lines=grid.lines[kept])
