"""The door to the inner loops of models, which exist in numpy and in C.

Everything else in `callpath_modeler` calls `kernels`, which chooses once: the compiled library if
there is one for this machine, else numpy. The module `reference.kernels` defines the results, and
`compiled.kernels` computes the same in C. Both are loaded by name, so that they can use the types
of the other modules, and the other modules need neither.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy.typing as npt

from callpath_modeler.arrays import FloatArray, Int8Array, Int16Array, IntArray

if TYPE_CHECKING:
    from callpath_modeler.modeling.mixture.candidates import Candidates
    from callpath_modeler.modeling.mixture.deviations import Deviations, Drift
    from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
    from callpath_modeler.modeling.mixture.misfit_baseline import MisfitBaseline
    from callpath_modeler.modeling.mixture.posterior import LogPriors, Posterior
    from callpath_modeler.modeling.mixture.repetition_noise import Noise, Pool, RepetitionStats
    from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows
    from callpath_modeler.modeling.mixture.screened_hypotheses import ScreenedHypotheses
    from callpath_modeler.modeling.model_columns import ModelColumns
    from callpath_modeler.modeling.noise import Centre
    from callpath_modeler.modeling.predictive import ShapeTables
    from callpath_modeler.modeling.uncertainty import Mixture, Prediction

_IMPLEMENTATIONS = ("compiled", "reference")
"""Packages with a module `kernels`, the preferred one first."""


class Kernels(Protocol):
    """The inner loops of models; the functions that call them document arguments and results."""

    @property
    def most_together(self) -> int:
        """Hypotheses times rows that are evaluated together, as memory allows."""

    @property
    def in_threads(self) -> bool:
        """Whether threads model rows at the same time."""

    def normal_share(self, z: FloatArray | float) -> FloatArray:
        """Return as `distributions.normal_share`."""

    def log_normal_share(self, z: FloatArray | float) -> FloatArray:
        """Return as `distributions.log_normal_share`."""

    def normal_quantile(self, probability: FloatArray | float) -> FloatArray:
        """Return as `distributions.normal_quantile`."""

    def student_share(self, dof: FloatArray | float, t: FloatArray | float) -> FloatArray:
        """Return as `distributions.student_share`."""

    def student_quantile(
        self, dof: FloatArray | float, probability: FloatArray | float
    ) -> FloatArray:
        """Return as `distributions.student_quantile`."""

    def polygammas(self, x: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return as `distributions.polygammas`."""

    def exceedance(self, mixture: Mixture, value: FloatArray) -> FloatArray:
        """Return as `uncertainty.Mixture.exceedance`."""

    def quantiles(self, mixture: Mixture, probabilities: FloatArray) -> FloatArray:
        """Return as `uncertainty.Mixture.quantiles`."""

    def mixture(self, models: ModelColumns, p: FloatArray, shapes: ShapeTables) -> Mixture:
        """Return as `predictive.predictive_mixture`, without change points."""

    def bands(
        self, models: ModelColumns, p: FloatArray, shapes: ShapeTables, least: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return as `predictive.prediction_interval`, without change points.

        `least` is the total probability of the alternatives that are left out.
        """

    def quantiles_of_bands(
        self, models: ModelColumns, p: FloatArray, shapes: ShapeTables, band: Prediction
    ) -> FloatArray:
        """Return as `reference.sums.quantiles_of_bands`."""

    def addends(self, quantiles: FloatArray, correlation: float, weights: FloatArray) -> FloatArray:
        """Return as `reference.sums.addends`."""

    def repetition_stats(self, y: FloatArray, how: Centre) -> RepetitionStats:
        """Return as `mixture.repetition_noise.repetition_stats`."""

    def row_spread(self, reps: RepetitionStats) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return as `mixture.repetition_noise.row_spread`."""

    def pooled_noise(self, pool: Pool, reps: RepetitionStats, efficiency: float) -> Noise:
        """Return as `mixture.repetition_noise.Pool.noise`."""

    def row_status(self, y: FloatArray, reps: RepetitionStats) -> Int8Array:
        """Return as `mixture.row_status.row_status`."""

    def point_counts(
        self, count: FloatArray, points: FloatArray
    ) -> tuple[Int16Array, FloatArray, FloatArray]:
        """Return as `mixture.row_status.point_counts`."""

    def own_units(self, centre: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values [n, K] in the unit of each row, 0 without a weight, and the units [n]."""

    def screen(
        self,
        data: ScaledRows,
        hypotheses: Hypotheses,
        log_prior: FloatArray,
        drifts: Sequence[Drift],
    ) -> ScreenedHypotheses:
        """Return as `mixture.screened_hypotheses.screen`."""

    def candidates(
        self,
        data: ScaledRows,
        chosen: ScreenedHypotheses,
        hypotheses: Hypotheses,
        deviations: Deviations,
    ) -> Candidates:
        """Return as `mixture.candidates.candidates`."""

    def posterior(
        self, found: Candidates, data: ScaledRows, deviations: Deviations, beliefs: LogPriors
    ) -> Posterior:
        """Return as `mixture.posterior.posterior`."""

    def fitted_values(self, found: Posterior, hypotheses: Hypotheses) -> FloatArray:
        """Return as `mixture.posterior.fitted_values`."""

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
        """Write as `mixture.outcome.write_models`."""


def kernels() -> Kernels:
    """Return the kernels for this machine; the first call chooses."""
    return _chosen()


@cache
def _chosen() -> Kernels:
    for name in _IMPLEMENTATIONS:
        found: Kernels | None = import_module(f"{__package__}.{name}.kernels").available()
        if found is not None:
            return found
    raise AssertionError("numpy is always available")


def choose_again() -> None:
    """Let the next call of `kernels` choose, because the environment has changed."""
    _chosen.cache_clear()
