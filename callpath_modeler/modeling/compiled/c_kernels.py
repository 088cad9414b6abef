"""The kernels of the compiled library.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray, Int8Array, Int16Array, IntArray
from callpath_modeler.modeling.compiled.library import (
    call,
    compiled,
    compiled_candidates,
    float64_arrays,
    int32_arrays,
    reload,
    screened,
    starts,
)
from callpath_modeler.modeling.constants.bands import COLUMNS, ENDS
from callpath_modeler.modeling.constants.hypotheses import SCATTERED
from callpath_modeler.modeling.constants.limits import MOST_TOGETHER_IN_C, TERMS
from callpath_modeler.modeling.distributions import Mixture, Prediction, normal_share, scores
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


def elementwise(name: str, *columns: npt.ArrayLike, results: int = 1) -> list[FloatArray]:
    """Return the results of a function of columns that broadcast against each other."""
    shape = np.broadcast_shapes(*map(np.shape, columns))
    found = [np.empty(shape) for _ in range(results)]
    given = float64_arrays(*(np.broadcast_to(column, shape).ravel() for column in columns))
    call(name, found[0].size, *given, *(each.reshape(-1) for each in found))
    return found


def _parts(mixture: Mixture) -> list[FloatArray]:
    return float64_arrays(mixture.centre, mixture.below, mixture.above, mixture.weight)


def _columns(
    models: ModelColumns, p: FloatArray, shapes: ShapeTables
) -> list[npt.NDArray[Any] | int]:
    peak, at, inside = shapes.peak, shapes.at, shapes.inside
    beyond = np.log2(np.maximum(p / models.points[-1], 1.0))
    others = models.alternative_weight.shape[1]
    return [
        *(len(models), others, len(peak), len(p)),
        _exactly(models.terms[:, :TERMS], np.int16),
        *float64_arrays(models.coefficients[:, : 1 + TERMS], models.weight),
        _exactly(models.alternative_terms, np.int16),
        *float64_arrays(models.alternative_coefficients),
        *(_exactly(column, np.float32) for column in (models.alternative_weight, models.root)),
        *float64_arrays(models.unit, models.spread, models.drift),
        *float64_arrays(peak, inside.min(axis=1), inside.max(axis=1), at.T, beyond),
    ]


def _exactly(column: npt.NDArray[Any], kind: type[np.generic]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(column, dtype=kind)


_STATUS = np.array(
    [FitStatus.ZERO, FitStatus.NEGATIVE, FitStatus.TOO_FEW_POINTS, FitStatus.NON_FINITE],
    dtype=np.int8,
)
"""Codes that ``state`` writes, in its order."""


def _columns_of_stats(reps: RepetitionStats) -> list[FloatArray]:
    return float64_arrays(reps.centre, reps.count, reps.squares)


def compiled_posterior(
    found: Candidates,
    data: ScaledRows,
    deviations: Deviations,
    beliefs: LogPriors,
    growth: FloatArray,
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the columns of `Posterior`; `growth` [L] belongs to deviations beyond the points."""
    found = found.by_row()
    rows, size, drifts = len(data.values), len(found.row), len(deviations.drifts)
    row, chosen = np.empty((2, size), dtype=np.int64)
    weight, numbers, elements = np.empty(size), np.empty((3, size)), np.empty((6, size))
    variance, drift = np.empty((2, rows))
    count = np.zeros(1, dtype=np.int64)
    call(
        "posterior",
        *(rows, size, len(deviations.deviation), drifts),
        *int32_arrays(starts(found.row, rows), found.chosen),
        *float64_arrays(found.log_evidence.T),
        *float64_arrays(
            *(np.moveaxis(each, 2, 0) for each in (found.coefficients, found.covariance))
        ),
        *float64_arrays(
            data.variance, beliefs.hypotheses, beliefs.deviations, deviations.deviation**2
        ),
        *int32_arrays(np.searchsorted(deviations.drift_of, np.arange(drifts + 1))),
        *float64_arrays(growth),
        *(row, chosen, weight, numbers, elements, variance, drift, count),
    )
    kept = slice(int(count[0]))
    return (
        row[kept],
        chosen[kept],
        weight[kept],
        numbers[:, kept],
        elements[:, kept],
        variance,
        drift,
    )


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
        *(len(rows), len(found.row), len(hypotheses.shapes), len(far)),
        *(columns["alternative_weight"].shape[1], rows, starts(found.row, len(rows))),
        *int32_arrays(found.chosen),
        *float64_arrays(found.weight, found.coefficients, found.covariance),
        *int32_arrays(hypotheses.first, hypotheses.second),
        *float64_arrays(hypotheses.scale, far, unit, data.least),
        *(columns[name] for name in _WRITTEN),
        scaled,
    )
    return scaled


_WRITTEN = (
    *("terms", "coefficients", "weight", "alternative_terms", "alternative_coefficients"),
    *("alternative_weight", "root"),
)
"""Columns that ``choose`` writes, in its order."""


class CompiledKernels:
    """Kernels in C, with the attributes and methods of `ReferenceKernels`."""

    most_together = MOST_TOGETHER_IN_C
    in_threads = True

    def normal_share(self, z: FloatArray | float) -> FloatArray:
        """Return as `distributions.normal_share`."""
        return elementwise("normal_shares", z)[0]

    def log_normal_share(self, z: FloatArray | float) -> FloatArray:
        """Return as `distributions.log_normal_share`."""
        return elementwise("log_normal_shares", z)[0]

    def normal_quantile(self, probability: FloatArray | float) -> FloatArray:
        """Return as `distributions.normal_quantile`."""
        return elementwise("normal_quantiles", probability)[0]

    def student_share(self, dof: FloatArray | float, t: FloatArray | float) -> FloatArray:
        """Return as `distributions.student_share`."""
        return elementwise("student_shares", dof, t)[0]

    def student_quantile(
        self, dof: FloatArray | float, probability: FloatArray | float
    ) -> FloatArray:
        """Return as `distributions.student_quantile`."""
        return elementwise("student_quantiles", dof, probability)[0]

    def polygammas(self, x: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return as `distributions.polygammas`."""
        first, second, third = elementwise("polygammas", x, results=3)
        return first, second, third

    @staticmethod
    def exceedance(mixture: Mixture, value: FloatArray) -> FloatArray:
        """Return the same as `Mixture.exceedance`."""
        rows, _, columns = mixture.centre.shape
        found = np.empty((rows, columns))
        of_value = float64_arrays(np.broadcast_to(value, found.shape))
        call("exceedances", *mixture.centre.shape, *_parts(mixture), *of_value, found)
        return found

    @staticmethod
    def quantiles(mixture: Mixture, probabilities: FloatArray) -> FloatArray:
        """Return the same as `Mixture.quantiles`."""
        rows, _, columns = mixture.centre.shape
        found = np.empty((len(probabilities), rows, columns))
        (asked,) = float64_arrays(probabilities)
        call("quantiles", *mixture.centre.shape, *_parts(mixture), len(asked), asked, found)
        return found

    @staticmethod
    def mixture(models: ModelColumns, p: FloatArray, shapes: ShapeTables) -> Mixture:
        """Return the same as `predictive_mixture`."""
        size = len(models), 1 + models.alternative_weight.shape[1], len(p)
        centre, below, above = np.empty((3, *size))
        weight = np.empty(size[:2])
        call("mixtures", *_columns(models, p, shapes), centre, below, above, weight)
        return Mixture(centre, below, above, weight)

    @staticmethod
    def bands(
        models: ModelColumns, p: FloatArray, shapes: ShapeTables, least: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return as `prediction_interval`, without alternatives of a probability below `least`."""
        tail = (1 - models.confidence) / 2
        low, high = np.empty((2, len(models), len(p)))
        ends = np.array([tail, 1 - tail])
        call("bands", *_columns(models, p, shapes), float(least), ends, low, high)
        return low, high

    @staticmethod
    def quantiles_of_bands(
        models: ModelColumns, p: FloatArray, shapes: ShapeTables, band: Prediction
    ) -> FloatArray:
        """Return as `predicted_bands.quantiles_of_bands`."""
        score = scores(models.confidence)
        found = np.empty((*band.value.shape, len(score)))
        asked = normal_share(np.delete(score, ENDS))
        of_band = float64_arrays(band.value, band.low, band.high, score, asked)
        call("quantiles_of_bands", *_columns(models, p, shapes), *of_band, found)
        return found

    @staticmethod
    def addends(quantiles: FloatArray, correlation: float, weights: FloatArray) -> FloatArray:
        """Return as `predicted_bands.addends`."""
        found = np.empty((len(quantiles), COLUMNS))
        given = float64_arrays(quantiles), float64_arrays(weights)
        call("addends", len(quantiles), *given[0], float(correlation), *given[1], found)
        return found

    @staticmethod
    def repetition_stats(y: FloatArray, how: Centre) -> RepetitionStats:
        """Return the same as `scaled_rows.repetition_stats`."""
        (rows, points, repetitions), how_many = y.shape, y.shape[0] * y.shape[1]
        (every,) = float64_arrays(y)
        centre, count, squares = np.empty((3, how_many))
        sizes = how_many, repetitions, CENTRES.index(how)
        call("sum_up", *sizes, every.reshape(how_many, repetitions), centre, count, squares)
        return RepetitionStats(*(each.reshape(rows, points) for each in (centre, count, squares)))

    @staticmethod
    def row_spread(reps: RepetitionStats) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the same as `scaled_rows.row_spread`."""
        raw, dof, size = np.empty((3, len(reps.centre)))
        call("spread_of_rows", *reps.centre.shape, *_columns_of_stats(reps), raw, dof, size)
        return raw, dof, size

    @staticmethod
    def pooled_noise(pool: Pool, reps: RepetitionStats, efficiency: float) -> Noise:
        """Return the same as `scaled_rows.Pool.noise`."""
        variance, dof, spread = np.empty((3, len(reps.centre)))
        weight = np.empty(reps.centre.shape)
        line = np.array(
            [pool.dof, pool.level, pool.slope, pool.about, *pool.reach], dtype=np.float64
        )
        columns = [
            *_columns_of_stats(reps),
            *CompiledKernels.row_spread(reps),
            line,
            *float64_arrays(pool.profile),
        ]
        found = variance, dof, spread, weight
        call("noise_of_rows", *reps.centre.shape, *columns, float(efficiency), *found)
        known = pool.is_known or bool(pool.dof)
        return Noise(reps.centre, variance, dof, weight, known, spread)

    @staticmethod
    def row_status(y: FloatArray, reps: RepetitionStats) -> Int8Array:
        """Return as `row_models.row_status`."""
        status = np.empty(len(y), dtype=np.int8)
        columns = float64_arrays(y, reps.centre, reps.count)
        call("state", *y.shape, MIN_POINTS["mixture"], *columns, _STATUS, status)
        return status

    @staticmethod
    def point_counts(
        count: FloatArray, points: FloatArray
    ) -> tuple[Int16Array, FloatArray, FloatArray]:
        """Return the number of points with a value, the smallest and the largest one, each [n]."""
        low, high = np.empty((2, len(count)))
        used = np.empty(len(count), dtype=np.int16)
        call("facts_of_rows", *count.shape, *float64_arrays(count, points), used, low, high)
        return used, low, high

    @staticmethod
    def own_units(centre: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values [n, K] in the unit of each row, zero without a weight, and the unit [n]."""
        values, unit = np.empty(centre.shape), np.empty(len(centre))
        call("own_units", *centre.shape, *float64_arrays(centre, weight), values, unit)
        return values, unit

    def screen(
        self,
        data: ScaledRows,
        hypotheses: Hypotheses,
        log_prior: FloatArray,
        drifts: Sequence[Drift],
    ) -> ScreenedHypotheses:
        """Return as `evidence_bounds.screen`."""
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
        self,
        data: ScaledRows,
        chosen: ScreenedHypotheses,
        hypotheses: Hypotheses,
        deviations: Deviations,
    ) -> Candidates:
        """Return as `candidates.candidates`."""
        return Candidates(*compiled_candidates(data, chosen, hypotheses, deviations))

    def posterior(
        self, found: Candidates, data: ScaledRows, deviations: Deviations, beliefs: LogPriors
    ) -> Posterior:
        """Return as `posterior.posterior`."""
        growth = growth_beyond(deviations)
        return Posterior(*compiled_posterior(found, data, deviations, beliefs, growth))

    @staticmethod
    def fitted_values(found: Posterior, hypotheses: Hypotheses) -> FloatArray:
        """Return the mean of the models of each row at the points, [n, K]."""
        rows, points, codes = (
            len(found.variance),
            hypotheses.table.shape[1],
            hypotheses.codes(found.chosen),
        )
        shapes = np.where(codes < 0, len(hypotheses.shapes), codes)
        fitted = np.empty((rows, points))
        call(
            "fitted_values",
            *(rows, len(found.row), points),
            *int32_arrays(found.row, shapes[:, 0], shapes[:, 1]),
            *float64_arrays(found.weight, found.coefficients, hypotheses.table_and_none),
            fitted,
        )
        return fitted

    @staticmethod
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
        values, weight = float64_arrays(data.values, data.weight)
        size, (rows,) = values.shape, int32_arrays(rows)
        scaled = _choose(columns, rows, found, data, unit, hypotheses, far)
        call(
            "measure_quality",
            *(
                *size,
                rows,
                values,
                weight,
                *float64_arrays(floor_of(data), hypotheses.table),
                scaled,
            ),
            *(columns[name] for name in ("terms", "rss", "cv_error", "r2", "adjusted_r2")),
        )
        first = data.points if data.points.ndim == 1 else data.points[:, 0]
        breaks = found.weight * hypotheses.outside[found.chosen]
        broken = np.bincount(found.row, breaks, minlength=len(rows))
        broken = np.maximum(broken, hypotheses.breaks[columns["terms"][rows]].any(axis=1))
        call(
            "name_outcomes",
            *(*size, rows),
            *float64_arrays(first, values, weight, unit, data.variance, found.variance, broken),
            *float64_arrays(baseline.exactly(data)),
            baseline.most,
            *(columns[name] for name in ("noise", "rss", "terms")),
            *(np.array(_CLEAR_STATUS, dtype=np.int8), columns["status"]),
        )


def available() -> CompiledKernels | None:
    """Return the kernels, or None if no library was compiled from these sources."""
    reload()
    return CompiledKernels() if compiled() else None
