"""The kernels of the compiled library.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray, Int8Array, Int16Array, IntArray
from callpath_modeler.modeling.compiled import bands, distributions, repetitions
from callpath_modeler.modeling.compiled.candidates import compiled_candidates
from callpath_modeler.modeling.compiled.library import compiled, reload
from callpath_modeler.modeling.compiled.outcomes import write_models
from callpath_modeler.modeling.compiled.posterior import compiled_fitted_values, compiled_posterior
from callpath_modeler.modeling.compiled.screening import screened
from callpath_modeler.modeling.constants.limits import MOST_TOGETHER_IN_C
from callpath_modeler.modeling.constants.screening import SCATTERED
from callpath_modeler.modeling.mixture.candidates import Candidates
from callpath_modeler.modeling.mixture.deviations import Deviations, Drift
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.misfit_baseline import MisfitBaseline
from callpath_modeler.modeling.mixture.outcome import write_spread
from callpath_modeler.modeling.mixture.posterior import LogPriors, Posterior, growth_beyond
from callpath_modeler.modeling.mixture.repetition_noise import Noise, Pool, RepetitionStats
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows
from callpath_modeler.modeling.mixture.screened_hypotheses import ScreenedHypotheses
from callpath_modeler.modeling.model_columns import MIN_POINTS, ModelColumns
from callpath_modeler.modeling.noise import Centre
from callpath_modeler.modeling.predictive import ShapeTables
from callpath_modeler.modeling.uncertainty import Mixture, Prediction


class CompiledKernels:
    """Kernels in C, with the attributes and methods of `ReferenceKernels`."""

    most_together = MOST_TOGETHER_IN_C
    in_threads = True

    def normal_share(self, z: FloatArray | float) -> FloatArray:
        """Return as `distributions.normal_share`."""
        return distributions.elementwise("normal_shares", z)[0]

    def log_normal_share(self, z: FloatArray | float) -> FloatArray:
        """Return as `distributions.log_normal_share`."""
        return distributions.elementwise("log_normal_shares", z)[0]

    def normal_quantile(self, probability: FloatArray | float) -> FloatArray:
        """Return as `distributions.normal_quantile`."""
        return distributions.elementwise("normal_quantiles", probability)[0]

    def student_share(self, dof: FloatArray | float, t: FloatArray | float) -> FloatArray:
        """Return as `distributions.student_share`."""
        return distributions.elementwise("student_shares", dof, t)[0]

    def student_quantile(
        self, dof: FloatArray | float, probability: FloatArray | float
    ) -> FloatArray:
        """Return as `distributions.student_quantile`."""
        return distributions.elementwise("student_quantiles", dof, probability)[0]

    def polygammas(self, x: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return as `distributions.polygammas`."""
        first, second, third = distributions.elementwise("polygammas", x, results=3)
        return first, second, third

    def exceedance(self, mixture: Mixture, value: FloatArray) -> FloatArray:
        """Return as `uncertainty.Mixture.exceedance`."""
        return bands.exceedance(mixture, value)

    def quantiles(self, mixture: Mixture, probabilities: FloatArray) -> FloatArray:
        """Return as `uncertainty.Mixture.quantiles`."""
        return bands.quantiles(mixture, probabilities)

    def mixture(self, models: ModelColumns, p: FloatArray, shapes: ShapeTables) -> Mixture:
        """Return as `predictive.predictive_mixture`, without change points."""
        return bands.mixtures(models, p, shapes)

    def bands(
        self, models: ModelColumns, p: FloatArray, shapes: ShapeTables, least: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return as `predictive.prediction_interval`, without change points."""
        return bands.bands(models, p, shapes, least)

    def quantiles_of_bands(
        self, models: ModelColumns, p: FloatArray, shapes: ShapeTables, band: Prediction
    ) -> FloatArray:
        """Return as `reference.sums.quantiles_of_bands`."""
        return bands.quantiles_of_bands(models, p, shapes, band)

    def addends(self, quantiles: FloatArray, correlation: float, weights: FloatArray) -> FloatArray:
        """Return as `reference.sums.addends`."""
        return bands.addends(quantiles, correlation, weights)

    def repetition_stats(self, y: FloatArray, how: Centre) -> RepetitionStats:
        """Return as `repetition_noise.repetition_stats`."""
        return repetitions.repetition_stats(y, how)

    def row_spread(self, reps: RepetitionStats) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return as `repetition_noise.row_spread`."""
        return repetitions.row_spread(reps)

    def pooled_noise(self, pool: Pool, reps: RepetitionStats, efficiency: float) -> Noise:
        """Return as `repetition_noise.Pool.noise`."""
        return repetitions.pooled_noise(pool, reps, efficiency)

    def row_status(self, y: FloatArray, reps: RepetitionStats) -> Int8Array:
        """Return as `row_status.row_status`."""
        return repetitions.row_status(y, reps, MIN_POINTS["mixture"])

    def point_counts(
        self, count: FloatArray, points: FloatArray
    ) -> tuple[Int16Array, FloatArray, FloatArray]:
        """Return as `row_status.point_counts`."""
        return repetitions.point_counts(count, points)

    def own_units(self, centre: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values [n, K] in the unit of each row, 0 without a weight, and the units [n]."""
        return repetitions.own_units(centre, weight)

    def screen(
        self,
        data: ScaledRows,
        hypotheses: Hypotheses,
        log_prior: FloatArray,
        drifts: Sequence[Drift],
    ) -> ScreenedHypotheses:
        """Return as `screened_hypotheses.screen`."""
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

    def fitted_values(self, found: Posterior, hypotheses: Hypotheses) -> FloatArray:
        """Return as `posterior.fitted_values`."""
        return compiled_fitted_values(found, hypotheses)

    def write_models(
        self,
        columns: dict[str, npt.NDArray[Any]],
        rows: IntArray,
        found: Posterior,
        data: ScaledRows,
        unit: FloatArray,
        hypotheses: Hypotheses,
        far: FloatArray,
        baseline: MisfitBaseline,
    ) -> None:
        """Write as `outcome.write_models`."""
        write_spread(columns, rows, found, data, unit)
        write_models(columns, rows, found, data, unit, hypotheses, far, baseline)


def available() -> CompiledKernels | None:
    """Return the kernels, or None if no library was compiled from these sources."""
    reload()
    return CompiledKernels() if compiled() else None
