"""Scales from which on bounds are broken."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from callpath_modeler.analysis.bands import Band
from callpath_modeler.analysis.expectations.verdicts import Crossing
from callpath_modeler.arrays import FloatArray

_FURTHEST = 2.0**20
"""Largest extrapolation factor in the search for the scale that breaks a bound."""

_PER_DOUBLING = 4
_FINER = 65


def crossing(beyond: Callable[[FloatArray], Band], points: FloatArray) -> Crossing:
    """Return the scale from which on a bound is probably broken, and the first one with certainty.

    Parameters
    ----------
    beyond : function that returns the difference of both sides at many scales
    points : measured scales, ascending
    """
    doublings = np.log2(_FURTHEST * points[-1] / points[0])
    grid = np.geomspace(points[0], _FURTHEST * points[-1], int(doublings * _PER_DOUBLING) + 2)
    found = beyond(grid)
    # Exponentials end where no number holds them.
    end = len(grid) if np.isfinite(found.value).all() else int(np.isfinite(found.value).argmin())
    within = np.flatnonzero(~(found.value[:end] > 0))
    first = int(within[-1]) + 1 if len(within) else 0
    if first == end:
        return Crossing(None, None)
    # Bands widen without end: what is sure at a scale is not sure at all that follow.
    surely = np.flatnonzero(found.low[first:end] > 0)
    return Crossing(
        _refined(grid, first, lambda p: beyond(p).value),
        _refined(grid, first + int(surely[0]), lambda p: beyond(p).low) if len(surely) else None,
    )


def _refined(grid: FloatArray, first: int, beyond: Callable[[FloatArray], FloatArray]) -> float:
    """Return the first scale beyond the bound, between two neighbours of the grid."""
    finer = np.geomspace(grid[max(first - 1, 0)], grid[first], _FINER)
    return float(finer[np.argmax(beyond(finer) > 0)])
