"""Numbers of rows that are equal in some columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray

_FEW = 64
"""Largest number of rows that Python numbers faster than numpy."""


def count(number: IntArray) -> int:
    """Return how many different numbers rows have, as `refined` and `joined` return them."""
    return int(number.max()) + 1 if len(number) else 0


def refined(number: IntArray, cells: Sequence[object]) -> IntArray:
    """Return a number per row, [n], equal for rows with equal `number` and equal cells."""
    return joined([number, numbered(cells)], len(number))


def joined(columns: Sequence[FloatArray | IntArray], rows: int) -> IntArray:
    """Return a number per row, [rows], equal for rows with equal values in all columns."""
    if columns and rows <= _FEW:
        cells = [*zip(*(column.tolist() for column in columns), strict=True)]
        # A number that is not equal to itself is not known.
        if all(cell == cell for row in cells for cell in row):  # noqa: PLR0124
            return _numbered(cells)
    found = np.zeros(rows, np.intp)
    for column in columns:
        own = np.unique(column, return_inverse=True)[1]
        found = np.unique(found * (int(own.max()) + 1) + own, return_inverse=True)[1]
    return found


def numbered(cells: Sequence[object]) -> IntArray:
    """Return a number per row, [n], equal for rows with equal cells, in order of appearance."""
    try:
        return _numbered(cells)
    except TypeError:
        # JSON may contain lists, which cannot be dictionary keys.
        return _numbered([repr(cell) for cell in cells])


def _numbered(cells: Sequence[Hashable]) -> IntArray:
    known = dict.fromkeys(cells)
    number = dict(zip(known, range(len(known)), strict=True))
    return np.fromiter(map(number.__getitem__, cells), np.intp, len(cells))
