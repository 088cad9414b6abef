"""Rows of a table that are no measurements: merged cells, statistics, failed runs, totals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from callpath_modeler.arrays import BoolArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.printable import printable
from callpath_modeler.readers.paths import Title, read_title
from callpath_modeler.readers.records import Records
from cpmodel_tables.grid import Grid
from cpmodel_tables.notations import is_missing
from cpmodel_tables.text_columns import refined
from cpmodel_tables.title_words import LIKE_REGIONS, NOTES, Place, place_of, plain, scale_name

_CALLERS = frozenset({"parent", "caller", "parent region", "parent function", "called by"})
CALL_PATH = "callpath"
"""Title of the column of call paths that callers make."""
_DEEPEST = 1000


def with_merged_cells(grid: Grid) -> Grid:
    """Return a table whose first columns have no empty cells: these have the value above.

    A spreadsheet leaves cells empty that were merged. The first row must have a value, half of the
    rows must have none, and a column further right must have all.
    """
    merged: list[str] = []
    for title, cells in grid.columns.items():
        gaps = [*map(is_missing, cells)]
        if not any(gaps):
            break
        if gaps[0] or 2 * sum(gaps) < len(gaps) or plain(title) in NOTES:
            return grid
        merged.append(title)
    if not merged or len(merged) == len(grid.columns):
        return grid
    columns = {title: _filled(cells) if title in merged else cells
               for title, cells in grid.columns.items()}  # fmt: skip
    layout = {**grid.layout, "empty cells": f"have the value above in {', '.join(merged)}"}
    return replace(grid, columns=columns, layout=layout)


def _filled(cells: Sequence[object]) -> list[object]:
    filled: list[object] = []
    for cell in cells:
        filled.append(filled[-1] if filled and is_missing(cell) else cell)
    return filled


def with_callers(grid: Grid) -> Grid:
    """Return a table with call paths, if one column names functions and another their callers.

    Raises
    ------
    InputError
        If a caller has several callers itself, or if callers form a circle.
    """
    callers = [title for title in grid.columns if plain(title) in _CALLERS]
    regions = [title for title in grid.columns if plain(title) in LIKE_REGIONS]
    if len(callers) != 1 or len(regions) != 1 or CALL_PATH in grid.columns:
        return grid
    (caller,), (region,) = callers, regions
    names = [*map(str, grid.columns[region])]
    of = ["" if is_missing(cell) else str(cell) for cell in grid.columns[caller]]
    if not {*filter(None, of)} <= {*names} or not any(of):
        return grid
    above: dict[str, dict[str, None]] = {}
    for name, parent in zip(names, of, strict=True):
        above.setdefault(name, {})[parent] = None
    known: dict[str, tuple[str, ...]] = {"": ()}
    paths = [(*_chain(grid, parent, above, known), name)
             for name, parent in zip(names, of, strict=True)]  # fmt: skip
    columns: dict[str, Sequence[object]] = {CALL_PATH: [[*path] for path in paths]}
    columns |= {t: cells for t, cells in grid.columns.items() if t not in {caller, region}}
    reason = f"{region} below {caller}"
    return replace(grid, columns=columns, derived={**grid.derived, CALL_PATH: reason})


def _chain(
    grid: Grid,
    name: str,
    above: Mapping[str, Mapping[str, None]],
    known: dict[str, tuple[str, ...]],
) -> tuple[str, ...]:
    """Return the call path of a caller."""
    chain: list[str] = []
    while name not in known:
        chain.append(name)
        if len(above[name]) > 1 or len(chain) > _DEEPEST or chain.count(name) > 1:
            raise InputError(
                f"{grid.path}: the callers of {printable(name)!r} are not known: "
                f"{', '.join(printable(each) or 'none' for each in above[name])}",
                hint="write whole call paths in a column callpath, e.g. main/solve/exchange",
            )
        (name,) = above[name]
    path = known[name]
    for each in reversed(chain):
        path = known[each] = (*path, each)
    return path


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


_TOTALS = frozenset({"total", "sum", "summe", "gesamt", "overall", "all", "whole"})
_ROUNDING = 0.005
"""Largest relative excess of the sum of the other call paths over their total."""


def with_total_as_root(records: Records) -> Records:
    """Return records with the total of all other call paths as their caller.

    A row is a total if its name says so, and if its time is at least the sum of the others in every
    run. The rest is the own time of the total.
    """
    named = [k for k, path in enumerate(records.paths) if len(path) == 1]
    named = [k for k in named if plain(records.paths[k][0]) in _TOTALS]
    if len(named) != 1 or len(records.paths) < 2 or records.are_events:
        return records
    (root,) = named
    (name,) = records.paths[root]
    if any(path[0] == name for k, path in enumerate(records.paths) if k != root):
        return records
    known = {k: read_title(t, records.units.get(t)) for k, t in enumerate(records.titles)}
    known = {k: title for k, title in known.items() if title.additive}
    times = [k for k, title in known.items() if title.unit == "s"] or [*known]
    setting = _settings(records)
    if not times or not _is_total(records, root, setting, times[0], known[times[0]]):
        return records
    found = [k for k, title in known.items() if not title.inclusive]
    found = [k for k in found if _is_total(records, root, setting, k, known[k])]
    paths = [path if k == root else (name, *path) for k, path in enumerate(records.paths)]
    return replace(records, paths=paths, whole=root, of_whole=frozenset(found))


def _settings(records: Records) -> IntArray:
    """Return the number of the setting of each row, [n]."""
    setting = np.zeros(len(records.values), np.intp)
    cases = [records.words[title] for title in records.cases if title in records.words]
    for column in (*records.parameters.values(), *cases):
        setting = refined(setting, [*column])
    return setting if records.repetition is None else refined(setting, [*records.repetition])


def _is_total(records: Records, root: int, setting: IntArray, k: int, title: Title) -> bool:
    """Return whether the values of a call path are totals of the others in a column of values."""
    is_top = np.array([not title.inclusive or len(path) == 1 for path in records.paths])
    mine = (records.title == k) & is_top[records.path] & ~np.isnan(records.values)
    of_root = mine & (records.path == root)
    others = mine & ~of_root
    if not others.any():
        return False
    most = int(setting.max()) + 1
    total = np.bincount(setting[of_root], records.values[of_root], most)
    parts = np.bincount(setting[others], records.values[others], most)
    return bool((total >= (1 - _ROUNDING) * parts).all() and (total > 0).any())
