"""Repetitions for `mixture.repetition_noise` and `mixture.row_status`: calls into ``spread.c``.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray, Int8Array, Int16Array
from callpath_modeler.modeling.compiled.library import call, float64_arrays
from callpath_modeler.modeling.mixture.repetition_noise import Noise, Pool, RepetitionStats
from callpath_modeler.modeling.noise import CENTRES, Centre
from callpath_modeler.modeling.status import FitStatus

_STATUS = np.array(
    [FitStatus.ZERO, FitStatus.NEGATIVE, FitStatus.TOO_FEW_POINTS, FitStatus.NON_FINITE],
    dtype=np.int8,
)
"""Codes that ``state`` writes, in its order."""


def repetition_stats(y: FloatArray, how: Centre) -> RepetitionStats:
    """Return the same as `mixture.repetition_noise.repetition_stats`."""
    (rows, points, repetitions), how_many = y.shape, y.shape[0] * y.shape[1]
    (every,) = float64_arrays(y)
    centre, count, squares = np.empty((3, how_many))
    sizes = how_many, repetitions, CENTRES.index(how)
    call("sum_up", *sizes, every.reshape(how_many, repetitions), centre, count, squares)
    return RepetitionStats(*(each.reshape(rows, points) for each in (centre, count, squares)))


def row_status(y: FloatArray, reps: RepetitionStats, enough: int) -> Int8Array:
    """Return the status of rows that cannot be modelled; `enough` points need a value."""
    status = np.empty(len(y), dtype=np.int8)
    columns = float64_arrays(y, reps.centre, reps.count)
    call("state", *y.shape, enough, *columns, _STATUS, status)
    return status


def row_spread(reps: RepetitionStats) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the same as `mixture.repetition_noise.row_spread`."""
    raw, dof, size = np.empty((3, len(reps.centre)))
    call("spread_of_rows", *reps.centre.shape, *_columns(reps), raw, dof, size)
    return raw, dof, size


def pooled_noise(pool: Pool, reps: RepetitionStats, efficiency: float) -> Noise:
    """Return the same as `mixture.repetition_noise.Pool.noise`."""
    variance, dof, spread = np.empty((3, len(reps.centre)))
    weight = np.empty(reps.centre.shape)
    line = np.array([pool.dof, pool.level, pool.slope, pool.about, *pool.reach], dtype=np.float64)
    columns = [*_columns(reps), *row_spread(reps), line, *float64_arrays(pool.profile)]
    found = variance, dof, spread, weight
    call("noise_of_rows", *reps.centre.shape, *columns, float(efficiency), *found)
    known = pool.is_known or bool(pool.dof)
    return Noise(reps.centre, variance, dof, weight, known, spread)


def _columns(reps: RepetitionStats) -> list[FloatArray]:
    return float64_arrays(reps.centre, reps.count, reps.squares)


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
