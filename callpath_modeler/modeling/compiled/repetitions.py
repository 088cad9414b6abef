"""Repetitions for `mixture.repetition_noise` and `mixture.row_status`: calls into ``spread.c``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from callpath_modeler.arrays import FloatArray, Int8Array, Int16Array
from callpath_modeler.modeling.compiled.library import call, float64_arrays
from callpath_modeler.modeling.noise import CENTRES, Centre
from callpath_modeler.modeling.status import FitStatus

Summed = tuple[FloatArray, FloatArray, FloatArray]
"""Centre, count and squares, [n, K], as in `RepetitionStats`."""

_STATUS = np.array(
    [FitStatus.ZERO, FitStatus.NEGATIVE, FitStatus.TOO_FEW_POINTS, FitStatus.NON_FINITE],
    dtype=np.int8,
)
"""Codes that ``state`` writes, in its order."""


def repetition_stats(y: FloatArray, how: Centre) -> Summed:
    """Return the same as `mixture.repetition_noise.repetition_stats`."""
    centre, count, squares = np.empty((3, *y.shape[:2]))
    points = y.shape[0] * y.shape[1]
    call(
        "sum_up", points, y.shape[2], CENTRES.index(how), *float64_arrays(y), centre, count, squares
    )
    return centre, count, squares


def status_of(y: FloatArray, reps: Summed, enough: int) -> Int8Array:
    """Return the status of rows that cannot be modelled; `enough` points need a value."""
    status = np.empty(len(y), dtype=np.int8)
    call("state", *y.shape, enough, *float64_arrays(y, *reps[:2]), _STATUS, status)
    return status


def row_spread(reps: Summed) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the same as `mixture.repetition_noise.row_spread`."""
    raw, dof, size = np.empty((3, len(reps[0])))
    call("spread_of_rows", *reps[0].shape, *float64_arrays(*reps), raw, dof, size)
    return raw, dof, size


def noise(
    reps: Summed, pool: Sequence[float], profile: FloatArray, efficiency: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return variance, dof and spread [n], and weight [n, K], of `Pool.noise`.

    `pool` is dof, level, slope, about and the two ends of reach of a `Pool`; `profile` [K] is its
    profile.
    """
    variance, dof, spread = np.empty((3, len(reps[0])))
    weight = np.empty(reps[0].shape)
    known = np.array(pool, dtype=np.float64)
    told = row_spread(reps)
    written = variance, dof, spread, weight
    size, columns = reps[0].shape, float64_arrays(*reps)
    of_all = known, *float64_arrays(profile)
    call("noise_of_rows", *size, *columns, *told, *of_all, float(efficiency), *written)
    return written


def point_counts(
    count: FloatArray, points: FloatArray
) -> tuple[Int16Array, FloatArray, FloatArray]:
    """Return the number of points with a value, the smallest and the largest of them, each [n]."""
    low, high = np.empty((2, len(count)))
    used = np.empty(len(count), dtype=np.int16)
    call("facts_of_rows", *count.shape, *float64_arrays(count, points), used, low, high)
    return used, low, high


def own_units(centre: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return values [n, K] in the unit of each row, zero without a weight, and the unit [n]."""
    values, unit = np.empty(centre.shape), np.empty(len(centre))
    call("own_units", *centre.shape, *float64_arrays(centre, weight), values, unit)
    return values, unit
