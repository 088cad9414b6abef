"""Cells that hold for the rows below, as merged cells of spreadsheets, and callers by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from callpath_modeler.errors import InputError
from callpath_modeler.printable import printable
from cpmodel_tables.grid import Grid
from cpmodel_tables.notations import is_missing
from cpmodel_tables.title_words import LIKE_REGIONS, NOTES, plain

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
