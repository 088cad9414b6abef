"""Counters of 32 bits that started again at 0: they fall where they rose before."""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray

RANGE = 2.0**32
"""Number of values of a counter of 32 bits."""
_NEAR = 0.02
"""Largest relative distance between the law and a value with whole ranges added."""
_MOST = 8
"""Largest number of ranges. With more of them, any value has the law nearby by chance."""
_BEFORE = 2
"""Number of points that a power law needs."""
_LEAST_BEFORE = 2.0**20
"""Smallest value before the fall. From smaller ones, no power goes beyond the range at once."""
_LEAST = 4
"""Number of points that must lie on the law, with few ranges added."""


def wrapped_from(points: FloatArray, values: FloatArray) -> IntArray:
    """Return the point from which each counter is wrapped.

    A wrapped counter falls, but rose as a power of the parameter before. A multiple of 2^32 brings
    its values back to that power.

    Parameters
    ----------
    points : [K] positive, ascending
    values : [n, K] counts of one run, or means over runs and processes; NaN or 0 = not known

    Returns
    -------
    [n]
        Column of the first wrapped value; -1 = none.
    """
    found = np.full(len(values), -1, np.intp)
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in range(_BEFORE, len(points)):
            before = values[:, k - 1]
            falls = (values[:, k] < before) & (before >= _LEAST_BEFORE) & (before < RANGE)
            rows = np.flatnonzero(falls & (found < 0))
            found[rows[_are_wrapped(points, values[rows], k)]] = k
    return found


def _are_wrapped(points: FloatArray, values: FloatArray, k: int) -> BoolArray:
    """Return whether the law of the points before `k` holds at all points, [n]."""
    log_x, log_y = np.log(points), np.log(values)
    slope = (log_y[:, k - 1] - log_y[:, 0]) / (log_x[k - 1] - log_x[0])
    law = values[:, :1] * np.exp(slope[:, None] * (log_x - log_x[0]))
    ranges = np.maximum(np.round((law - values) / RANGE), 0)
    ranges[:, :k] = 0
    # At a single scale, a range brings many values close to the law.
    near = abs((values + ranges * RANGE) / law - 1) <= _NEAR
    told = (near & (ranges <= _MOST)).sum(axis=1) >= _LEAST
    holds = (near | (ranges > _MOST)).all(axis=1) & (values < RANGE).all(axis=1)
    return np.asarray((ranges[:, k] >= 1) & told & holds)
