"""The functions of the engine, with the types of the modules that call them.

See docs/explanation/architecture.md, 'The engine in C'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray, Int8Array, Int16Array, IntArray
from callpath_modeler.modeling.compiled.library import (
    call,
    compiled_candidates,
    screened,
    starts,
)
from callpath_modeler.modeling.constants.bands import ENDS
from callpath_modeler.modeling.constants.hypotheses import SCATTERED
from callpath_modeler.modeling.constants.limits import TERMS
from callpath_modeler.modeling.distributions import Mixture, Prediction, scores
from callpath_modeler.modeling.mixture.candidates import Candidates
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses
from callpath_modeler.modeling.mixture.posterior import LogPriors, Posterior, growth_beyond
from callpath_modeler.modeling.mixture.residuals import MisfitBaseline, ScreenedHypotheses
from callpath_modeler.modeling.mixture.row_models import write_spread
from callpath_modeler.modeling.mixture.scaled_rows import (
    Deviations,
    Drift,
    Noise,
    Pool,
    RepetitionStats,
    ScaledRows,
    floor_of,
)
from callpath_modeler.modeling.model_columns import MIN_POINTS, FitStatus, ModelColumns, ShapeTables
from callpath_modeler.modeling.repetitions import CENTRES, Centre


def elementwise(name: str, *columns: npt.ArrayLike) -> list[FloatArray]:
    """Return the results of a function of columns that broadcast against each other."""
    shape = np.broadcast_shapes(*map(np.shape, columns))
    found = call(name, *(np.broadcast_to(column, shape).ravel() for column in columns))
    return [each.reshape(shape) for each in found]


def _parts(mixture: Mixture) -> tuple[FloatArray, ...]:
    return mixture.centre, mixture.below, mixture.above, mixture.weight


def _columns(models: ModelColumns, p: FloatArray, shapes: ShapeTables) -> list[npt.NDArray[Any]]:
    peak, at, inside = shapes.peak, shapes.at, shapes.inside
    beyond = np.log2(np.maximum(p / models.points[-1], 1.0))
    return [
        *(models.terms[:, :TERMS], models.coefficients[:, : 1 + TERMS], models.weight),
        *(models.alternative_terms, models.alternative_coefficients, models.alternative_weight),
        *(models.root, models.unit, models.spread, models.drift, models.grain / models.unit),
        *(peak, inside.min(axis=1), inside.max(axis=1), at.T, beyond),
    ]


_STATUS = np.array(
    [FitStatus.ZERO, FitStatus.NEGATIVE, FitStatus.TOO_FEW_POINTS, FitStatus.NON_FINITE],
    dtype=np.int8,
)
"""Codes that ``state`` writes, in its order."""


def compiled_posterior(
    found: Candidates,
    data: ScaledRows,
    deviations: Deviations,
    beliefs: LogPriors,
    growth: FloatArray,
) -> tuple[npt.NDArray[Any], ...]:
    """Return the columns of `Posterior`; `growth` [L] belongs to deviations beyond the points."""
    found = found.by_row()
    rows, count = len(data.values), np.zeros(1, dtype=np.int64)
    *columns, variance, drift = call(
        "posterior",
        *(starts(found.row, rows), found.chosen, found.log_evidence.T),
        *(np.moveaxis(each, 2, 0) for each in (found.coefficients, found.covariance)),
        *(data.variance, beliefs.hypotheses, beliefs.deviations, deviations.deviation**2),
        np.searchsorted(deviations.drift_of, np.arange(len(deviations.drifts) + 1)),
        *(growth, count),
        rows=rows,
    )
    return (*(column[..., : int(count[0])] for column in columns), variance, drift)


Columns = dict[str, npt.NDArray[Any]]

_CLEAR_STATUS = (FitStatus.CONSTANT, FitStatus.OK, FitStatus.OUTSIDE, FitStatus.NOISY)
"""Codes that ``name_outcomes`` writes, in its order."""


def _choose(
    columns: Columns,
    rows: IntArray,
    found: Posterior,
    data: ScaledRows,
    unit: FloatArray,
    hypotheses: Hypotheses,
    far: FloatArray,
) -> FloatArray:
    """Write models and alternatives; return the coefficients in the unit of the row, [n, 3]."""
    scaled = np.zeros((len(rows), 3))
    call(
        "choose",
        *(rows, starts(found.row, len(rows)), found.chosen),
        *(found.weight, found.coefficients, found.covariance),
        *(hypotheses.first, hypotheses.second, hypotheses.scale, far, unit, data.least),
        *(columns[name] for name in _WRITTEN),
        scaled,
    )
    return scaled


_WRITTEN = (
    *("terms", "coefficients", "weight", "alternative_terms", "alternative_coefficients"),
    *("alternative_weight", "root"),
)
"""Columns that ``choose`` writes, in its order."""


def normal_share(z: FloatArray | float) -> FloatArray:
    """Return as `distributions.normal_share`."""
    return elementwise("normal_shares", z)[0]


def log_normal_share(z: FloatArray | float) -> FloatArray:
    """Return as `distributions.log_normal_share`."""
    return elementwise("log_normal_shares", z)[0]


def normal_quantile(probability: FloatArray | float) -> FloatArray:
    """Return as `distributions.normal_quantile`."""
    return elementwise("normal_quantiles", probability)[0]


def student_share(dof: FloatArray | float, t: FloatArray | float) -> FloatArray:
    """Return as `distributions.student_share`."""
    return elementwise("student_shares", dof, t)[0]


def student_quantile(dof: FloatArray | float, probability: FloatArray | float) -> FloatArray:
    """Return as `distributions.student_quantile`."""
    return elementwise("student_quantiles", dof, probability)[0]


def polygammas(x: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return as `distributions.polygammas`."""
    first, second, third = elementwise("polygammas", x)
    return first, second, third


def exceedance(mixture: Mixture, value: FloatArray) -> FloatArray:
    """Return the same as `Mixture.exceedance`."""
    rows, _, columns = mixture.centre.shape
    of_value = np.broadcast_to(value, (rows, columns))
    return call("exceedances", *_parts(mixture), of_value)[0]


def quantiles(mixture: Mixture, probabilities: FloatArray) -> FloatArray:
    """Return the same as `Mixture.quantiles`."""
    return call("quantiles", *_parts(mixture), probabilities)[0]


def mixture(models: ModelColumns, p: FloatArray, shapes: ShapeTables) -> Mixture:
    """Return the same as `predictive_mixture`."""
    return Mixture(*call("mixtures", *_columns(models, p, shapes)))


def bands(
    models: ModelColumns, p: FloatArray, shapes: ShapeTables, least: float
) -> tuple[FloatArray, FloatArray]:
    """Return as `prediction_interval`, without alternatives of a probability below `least`."""
    tail = (1 - models.confidence) / 2
    columns = _columns(models, p, shapes)
    low, high = call("bands", *columns, [tail, 1 - tail], negligible=least)
    return low, high


def quantiles_of_bands(
    models: ModelColumns, p: FloatArray, shapes: ShapeTables, band: Prediction
) -> FloatArray:
    """Return as `sums.quantiles_of_bands`."""
    score = scores(models.confidence)
    asked = normal_share(np.delete(score, ENDS))
    of_band = band.value, band.low, band.high, score, asked
    return call("quantiles_of_bands", *_columns(models, p, shapes), *of_band)[0]


def addends(quantiles: FloatArray, correlation: float, weights: FloatArray) -> FloatArray:
    """Return as `sums.as_addends`."""
    return call("addends", quantiles, weights, correlation=correlation)[0]


def repetition_stats(y: FloatArray, how: Centre) -> RepetitionStats:
    """Return the same as `scaled_rows.repetition_stats`."""
    rows, points, repetitions = y.shape
    each = y.reshape(rows * points, repetitions)
    found = call("sum_up", each, how=CENTRES.index(how))
    return RepetitionStats(*(column.reshape(rows, points) for column in found))


def row_spread(reps: RepetitionStats) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the same as `scaled_rows.row_spread`."""
    raw, dof, size = call("spread_of_rows", reps.centre, reps.count, reps.squares)
    return raw, dof, size


def pooled_noise(pool: Pool, reps: RepetitionStats, efficiency: float) -> Noise:
    """Return the same as `scaled_rows.Pool.noise`."""
    line = [pool.dof, pool.level, pool.slope, pool.about, *pool.reach]
    variance, dof, spread, weight = call(
        "noise_of_rows",
        *(reps.centre, reps.count, reps.squares, *row_spread(reps)),
        *(line, pool.profile),
        efficiency=efficiency,
    )
    known = pool.is_known or bool(pool.dof)
    return Noise(reps.centre, variance, dof, weight, known, spread)


def row_status(y: FloatArray, reps: RepetitionStats) -> Int8Array:
    """Return as `row_models.row_status`."""
    columns = y, reps.centre, reps.count, _STATUS
    return call("state", *columns, enough=MIN_POINTS["mixture"])[0]


def point_counts(
    count: FloatArray, points: FloatArray
) -> tuple[Int16Array, FloatArray, FloatArray]:
    """Return the number of points with a value, the smallest and the largest one, each [n]."""
    used, low, high = call("facts_of_rows", count, points)
    return used, low, high


def own_units(centre: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return values [n, K] in the unit of each row, zero without a weight, and the unit [n]."""
    values, unit = call("own_units", centre, weight)
    return values, unit


def screen(
    data: ScaledRows,
    hypotheses: Hypotheses,
    log_prior: FloatArray,
    drifts: Sequence[Drift],
) -> ScreenedHypotheses:
    """Return as `residuals.screen`."""
    found = screened(data, hypotheses, log_prior, drifts)
    return ScreenedHypotheses(
        found.row,
        found.shape,
        tuple(np.flatnonzero(found.families >> family & 1) for family in range(3)),
        found.pair_row,
        found.pair,
        found.variance,
        found.fitted,
        np.flatnonzero(found.variance > SCATTERED**2),
    )


def candidates(
    data: ScaledRows,
    chosen: ScreenedHypotheses,
    hypotheses: Hypotheses,
    deviations: Deviations,
    *,
    absolute: bool = False,
) -> Candidates:
    """Return as `candidates.candidates`, or as `absolute_candidates` there."""
    found = compiled_candidates(data, chosen, hypotheses, deviations, absolute=absolute)
    return Candidates(*found)


def posterior(
    found: Candidates, data: ScaledRows, deviations: Deviations, beliefs: LogPriors
) -> Posterior:
    """Return as `posterior.posterior`."""
    growth = growth_beyond(deviations)
    return Posterior(*compiled_posterior(found, data, deviations, beliefs, growth))


def fitted_values(found: Posterior, hypotheses: Hypotheses) -> FloatArray:
    """Return the mean of the models of each row at the points, [n, K]."""
    codes = hypotheses.codes(found.chosen)
    shapes = np.where(codes < 0, len(hypotheses.shapes), codes)
    return call(
        "fitted_values",
        *(found.row, shapes[:, 0], shapes[:, 1]),
        *(found.weight, found.coefficients, hypotheses.table_and_none),
        rows=len(found.variance),
    )[0]


def write_models(
    columns: Columns,
    rows: IntArray,
    found: Posterior,
    data: ScaledRows,
    unit: FloatArray,
    hypotheses: Hypotheses,
    far: FloatArray,
    baseline: MisfitBaseline,
) -> None:
    """Write models, alternatives, quality and status, as `row_models.write_models` does."""
    write_spread(columns, rows, found, data, unit)
    scaled = _choose(columns, rows, found, data, unit, hypotheses, far)
    call(
        "measure_quality",
        *(rows, data.values, data.weight, floor_of(data), hypotheses.table, scaled),
        *(columns[name] for name in ("terms", "rss", "cv_error", "r2", "adjusted_r2")),
    )
    first = data.points if data.points.ndim == 1 else data.points[:, 0]
    breaks = found.weight * hypotheses.outside[found.chosen]
    broken = np.bincount(found.row, breaks, minlength=len(rows))
    broken = np.maximum(broken, hypotheses.breaks[columns["terms"][rows]].any(axis=1))
    call(
        "name_outcomes",
        *(rows, first, data.values, data.weight, unit, data.variance, found.variance, broken),
        baseline.exactly(data),
        *(columns[name] for name in ("noise", "rss", "terms")),
        *(np.array(_CLEAR_STATUS, dtype=np.int8), columns["status"]),
        most=baseline.most,
    )
