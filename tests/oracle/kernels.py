"""The functions of the engine as equations, with the names of `c_kernels`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from callpath_modeler.arrays import FloatArray, Int8Array, Int16Array, IntArray
from callpath_modeler.modeling.constants.noise import (
    EXACT_VARIANCE,
    LARGE_SPREAD,
    MOST_DOF,
    WEIGHT_RANGE,
)
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses
from callpath_modeler.modeling.mixture.posterior import Posterior, values_at_points
from callpath_modeler.modeling.mixture.posterior import posterior_of_sums as posterior
from callpath_modeler.modeling.mixture.residuals import MisfitBaseline
from callpath_modeler.modeling.mixture.row_models import ShapeColumns, write_found
from callpath_modeler.modeling.mixture.scaled_rows import (
    Noise,
    Pool,
    RepetitionStats,
    ScaledRows,
    degrees_of_freedom,
)
from callpath_modeler.modeling.model_columns import MIN_POINTS, FitStatus
from callpath_modeler.modeling.repetitions import Centre, centre_of_sorted
from oracle.bands import addends, bands, exceedance, mixture, quantiles, quantiles_of_bands
from oracle.bounds import screen
from oracle.candidates import candidates

__all__ = [
    "addends",
    "bands",
    "candidates",
    "exceedance",
    "mixture",
    "posterior",
    "quantiles",
    "quantiles_of_bands",
    "screen",
]
"""Equations of other modules; those of this one follow."""


def repetition_stats(y: FloatArray, how: Centre) -> RepetitionStats:
    """Return as `scaled_rows.repetition_stats`."""
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
    """Return as `scaled_rows.row_spread`."""
    dof = degrees_of_freedom(reps).sum(axis=1)
    raw = reps.squares.sum(axis=1) / np.maximum(dof, 1.0)
    return raw, dof, np.where(reps.count > 0, np.nan_to_num(reps.centre), 0.0).max(axis=1)


def pooled_noise(pool: Pool, reps: RepetitionStats, efficiency: float) -> Noise:
    """Return as `scaled_rows.Pool.noise`."""
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
    """Return as `row_models.row_status`."""
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
    """Return as `row_models.point_counts`."""
    present = count > 0
    low, high = np.where(present, points, np.inf), np.where(present, points, -np.inf)
    return present.sum(axis=1).astype(np.int16), low.min(axis=1), high.max(axis=1)


def own_units(centre: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return values [n, K] in the unit of each row, 0 without a weight, and the units [n]."""
    values = np.where(weight > 0, centre, 0.0)
    unit = values.max(axis=1)
    return values / unit[:, None], unit


def normal_share(z: FloatArray | float) -> FloatArray:
    """Return as `distributions.normal_share`."""
    return np.asarray(special.ndtr(z))


def log_normal_share(z: FloatArray | float) -> FloatArray:
    """Return as `distributions.log_normal_share`."""
    return np.asarray(special.log_ndtr(z))


def normal_quantile(probability: FloatArray | float) -> FloatArray:
    """Return as `distributions.normal_quantile`."""
    return np.asarray(special.ndtri(probability))


def student_share(dof: FloatArray | float, t: FloatArray | float) -> FloatArray:
    """Return as `distributions.student_share`."""
    return np.asarray(special.stdtr(dof, t))


def student_quantile(dof: FloatArray | float, probability: FloatArray | float) -> FloatArray:
    """Return as `distributions.student_quantile`."""
    return np.asarray(special.stdtrit(dof, probability))


def polygammas(x: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return as `distributions.polygammas`."""
    first, second, third = (np.asarray(special.polygamma(k, x)) for k in range(3))
    return first, second, third


def fitted_values(found: Posterior, hypotheses: Hypotheses) -> FloatArray:
    """Return as `posterior.fitted_values`."""
    return values_at_points(found, hypotheses.codes(found.chosen), hypotheses.table)


def write_models(
    columns: dict[str, npt.NDArray[Any]],
    rows: IntArray,
    found: Posterior,
    data: ScaledRows,
    unit: FloatArray,
    hypotheses: Hypotheses,
    far: FloatArray,
    baseline: MisfitBaseline,
) -> None:
    """Write as `row_models.write_models`."""
    codes = hypotheses.codes(found.chosen)
    shapes = ShapeColumns.of(hypotheses, far)
    write_found(columns, rows, found, codes, data, unit, shapes, baseline)
