"""Numbers of rows that are equal in some columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from callpath_modeler.arrays import IntArray


def refined(number: IntArray, cells: Sequence[object]) -> IntArray:
    """Return a number per row, [n], equal for rows with equal `number` and equal cells."""
    own = numbered(cells)
    _, found = np.unique(number * (int(own.max()) + 1) + own, return_inverse=True)
    return np.asarray(found, np.intp)


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
