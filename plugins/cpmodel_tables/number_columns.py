"""Columns of numbers that people wrote, and rows of units, as plain numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from cpmodel_tables.grid import Grid, as_numbers
from cpmodel_tables.notations import TIMES, is_missing, written_numbers
from cpmodel_tables.title_words import is_cost, scale_name

_UNIT = re.compile(r"[\[(]?\s*([A-Za-zµ%#/]{0,12})\.?\s*[\])]?")


def with_numbers(grid: Grid) -> Grid:
    """Return a table whose columns of numbers in any notation have plain numbers."""
    grid = _without_units_row(grid)
    texts = [title for title, cells in grid.columns.items() if as_numbers(cells) is None]
    if not texts:
        return grid
    point = any(
        "." in str(cell)
        for title, cells in grid.columns.items()
        if title not in texts
        for cell in cells[:100]
    )
    columns, units = dict(grid.columns), dict(grid.units)
    for title in texts:
        found = written_numbers(grid.columns[title], point=point)
        if found is None or (found.unit == "x" and scale_name(title)):
            continue
        columns[title] = found.values
        if found.unit == "s":
            units.setdefault(title, "s")
    return replace(grid, columns=columns, units=units)


def _without_units_row(grid: Grid) -> Grid:
    """Return a table without a first row that has the units of the columns."""
    firsts = {title: cells[0] for title, cells in grid.columns.items()}
    rest = {title: cells[1:] for title, cells in grid.columns.items()}
    if len(grid.lines) < 2 or not all(map(_is_unit, firsts.values())):
        return grid
    numeric = [title for title, cells in rest.items() if _has_numbers(cells)]
    if not any(not is_missing(firsts[title]) for title in numeric):
        return grid
    units = dict(grid.units)
    for title in numeric:
        unit = _unit_of(firsts[title])
        if unit and (unit.lower() not in TIMES or is_cost(title) or "t" in title.lower()):
            units.setdefault(title, unit)
    return replace(grid, columns=rest, lines=grid.lines[1:], units=units)


def _has_numbers(cells: Sequence[object]) -> bool:
    return as_numbers(cells[:100]) is not None and not all(map(is_missing, cells[:100]))


def _unit_of(cell: object) -> str:
    found = _UNIT.fullmatch(str(cell or "").strip())
    return found[1] if found and str(cell).strip() != "-" else ""


def _is_unit(cell: object) -> bool:
    return is_missing(cell) or bool(isinstance(cell, str) and _UNIT.fullmatch(cell.strip()))
