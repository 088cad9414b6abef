"""Repetitions: their centres, noise, and the status of rows.

See docs/explanation/noise-and-bands.md, 'Noise'.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray, Int8Array, Int16Array
from callpath_modeler.modeling.constants.noise import (
    EXACT_VARIANCE,
    LARGE_SPREAD,
    MOST_DOF,
    WEIGHT_RANGE,
)
from callpath_modeler.modeling.mixture.repetition_noise import (
    Noise,
    Pool,
    RepetitionStats,
    degrees_of_freedom,
)
from callpath_modeler.modeling.model_columns import MIN_POINTS
from callpath_modeler.modeling.noise import Centre, centre_of_sorted
from callpath_modeler.modeling.status import FitStatus


def repetition_stats(y: FloatArray, how: Centre) -> RepetitionStats:
    """Return as `repetition_noise.repetition_stats`."""
    # The order of the parts of a sum affects its rounding.
    ordered = np.sort(y, axis=2)
    present = np.isfinite(ordered)
    values, count = np.where(present, ordered, 0.0), present.sum(axis=2).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = values.sum(axis=2) / count
        relative = np.where(present, values / mean[..., None] - 1, 0.0)
        squares = np.where((count > 1) & (mean > 0), (relative**2).sum(axis=2), 0.0)
        # Three values that differ by factors of hundreds deviate from their mean by less than twice
        # the mean, but a model misses some of them by all of these factors.
        logs = np.log(np.where(present, values, mean[..., None]) / mean[..., None])
        logs = np.where(present, logs - logs.sum(axis=2, keepdims=True) / count[..., None], 0.0)
        # A value of zero has no logarithm.
        large = (squares > LARGE_SPREAD**2 * count) & (values > 0).any(axis=2)
        large &= ((values > 0) | ~present).all(axis=2)
        squares = np.where(large, (logs**2).sum(axis=2), squares)
        centre = mean if how == "mean" else centre_of_sorted(ordered, how)
    return RepetitionStats(centre, count, squares)


def row_spread(reps: RepetitionStats) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return as `repetition_noise.row_spread`."""
    dof = degrees_of_freedom(reps).sum(axis=1)
    raw = reps.squares.sum(axis=1) / np.maximum(dof, 1.0)
    return raw, dof, np.where(reps.count > 0, np.nan_to_num(reps.centre), 0.0).max(axis=1)


def pooled_noise(pool: Pool, reps: RepetitionStats, efficiency: float) -> Noise:
    """Return as `repetition_noise.Pool.noise`."""
    count, squares = reps.count, reps.squares
    present = count > 0
    raw, dof, size = row_spread(reps)
    effective = count.sum(axis=1) / np.maximum(present.sum(axis=1), 1)
    weight = np.where(present, count / np.maximum(effective, 1.0)[:, None], 0.0)
    told = dof > 0
    spread = np.where(told, np.sqrt(raw), np.nan)
    if not pool.dof:
        exact, sure = np.full(len(raw), EXACT_VARIANCE), np.full(len(raw), MOST_DOF)
        return Noise(reps.centre, exact, sure, weight, pool.is_known, spread)
    log_size = np.log(np.maximum(size, np.finfo(float).tiny))
    prior = np.exp(pool.level + pool.slope * np.clip(log_size - pool.about, *pool.reach))
    shrunk = (pool.dof * prior + dof * raw) / (pool.dof + dof)
    share, freedom = min(pool.dof, MOST_DOF), degrees_of_freedom(reps)
    expected = shrunk[:, None] * pool.profile
    # Two values say almost nothing about the noise of their point.
    local = np.where(freedom > 1, (share * expected + squares) / (share + freedom), expected)
    ratio = np.clip(shrunk[:, None] / np.maximum(local, EXACT_VARIANCE), *WEIGHT_RANGE)
    exact = told & (raw <= EXACT_VARIANCE)
    weight = np.where(exact[:, None], weight, weight * ratio)
    variance = np.maximum(shrunk * efficiency / np.maximum(effective, 1.0), EXACT_VARIANCE)
    variance = np.where(exact, EXACT_VARIANCE, variance)
    dof = np.minimum(pool.dof + dof, MOST_DOF)
    return Noise(reps.centre, variance, dof, weight, True, spread)


def row_status(y: FloatArray, reps: RepetitionStats) -> Int8Array:
    """Return as `outcome.row_status`."""
    centre = np.where(reps.count > 0, reps.centre, 0.0)
    status = np.full(len(y), FitStatus.OK, dtype=np.int8)
    status[(centre == 0).all(axis=1)] = FitStatus.ZERO
    status[(centre < 0).any(axis=1)] = FitStatus.NEGATIVE
    status[(reps.count > 0).sum(axis=1) < MIN_POINTS["mixture"]] = FitStatus.TOO_FEW_POINTS
    # Sums of very large values may overflow as well.
    status[np.isinf(y).any(axis=(1, 2)) | np.isinf(centre).any(axis=1)] = FitStatus.NON_FINITE
    return status


def point_counts(
    count: FloatArray, points: FloatArray
) -> tuple[Int16Array, FloatArray, FloatArray]:
    """Return as `outcome.point_counts`."""
    present = count > 0
    low, high = np.where(present, points, np.inf), np.where(present, points, -np.inf)
    return present.sum(axis=1).astype(np.int16), low.min(axis=1), high.max(axis=1)


def own_units(centre: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return values [n, K] in the unit of each row, 0 without a weight, and the units [n]."""
    values = np.where(weight > 0, centre, 0.0)
    unit = values.max(axis=1)
    return values / unit[:, None], unit
