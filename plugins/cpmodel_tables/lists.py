"""Lists of repetitions in the cells of a table, as in Extra-P's JSON Lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat

import numpy as np

from callpath_modeler.input_limits import InputLimits, Work
from cpmodel_tables.columns import ONE_ROW_PER_VALUE
from cpmodel_tables.grid import Grid

REPETITION = "repetition"
"""Title of the column that numbers the values of lists."""


def with_repetitions(grid: Grid) -> Grid:
    """Return a table with one number per cell: each number of a list gets its own row.

    Rows with equal values in the other columns are repetitions, numbered in the order of the file.
    """
    listed = [title for title, cells in grid.columns.items() if _has_lists(cells)]
    if not listed:
        return grid
    counts = np.ones(len(grid.lines), np.intp)
    for title in listed:
        counts = np.maximum(counts, [_length(cell) for cell in grid.columns[title]])
    limits = InputLimits.of(grid.path)
    limits.check(Work.TABLE, int(counts.sum()) * len(grid.columns), ONE_ROW_PER_VALUE)
    row = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    columns: dict[str, Sequence[object]] = {}
    for title, cells in grid.columns.items():
        of_row = row.tolist()
        if title in listed:
            places = zip(of_row, within.tolist(), strict=True)
            columns[title] = [_cell(cells[k], number) for k, number in places]
        else:
            columns[title] = [cells[k] for k in of_row]
    if REPETITION not in columns and grid.repetition is None:
        others = [cells for title, cells in grid.columns.items() if title not in listed]
        columns[REPETITION] = _numbered(others, counts.tolist())
    return replace(grid, columns=columns, lines=grid.lines[row], has_lists=True)


def _has_lists(cells: Sequence[object]) -> bool:
    lists = [cell for cell in cells if isinstance(cell, list)]
    return bool(lists) and all(_is_number(value) for cell in lists for value in cell)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _length(cell: object) -> int:
    return max(1, len(cell)) if isinstance(cell, list) else 1


def _cell(cell: object, number: int) -> object:
    if not isinstance(cell, list):
        return cell
    return cell[number] if number < len(cell) else None


def _numbered(columns: Sequence[Sequence[object]], counts: Sequence[int]) -> list[object]:
    """Return the numbers of the values of each row among the rows with equal `columns`."""
    seen: Counter[tuple[str, ...]] = Counter()
    numbers: list[object] = []
    rows = zip(*columns, strict=True) if columns else repeat((), len(counts))
    for cells, count in zip(rows, counts, strict=True):
        key = tuple(map(repr, cells))
        numbers += range(seen[key] + 1, seen[key] + count + 1)
        seen[key] += count
    return numbers
