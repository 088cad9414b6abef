"""Bands of predicted costs and intervals of measured costs, for sums over call paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.bands import Total, stretched
from callpath_modeler.analysis.measured import Measured, sum_over
from callpath_modeler.analysis.predict import Predicted
from callpath_modeler.analysis.trust import LIMITS, at_most, limited, marks_of_trust
from callpath_modeler.arrays import FloatArray, Int8Array
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling.constants.sums import COLUMNS
from callpath_modeler.modeling.sums import addable, ends_of_sums
from callpath_modeler.profile.groups import Costs

_CHUNK = 4_096
"""Rows whose bands are made before the next check for cancellation."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelBands:
    """Bands of predictions.

    Attributes
    ----------
    costs : additive numbers for bands and for limits of marks, [call paths, columns]
    factor : factor of the widths of bands, as in `Fitted.band_factor`
    """

    costs: Costs
    factor: float = 1.0

    @property
    def has_differences(self) -> bool:
        """Whether differences of costs have bands; corrections of bands are about costs alone."""
        return self.factor == 1

    def ends(self, value: FloatArray, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of values [n], from their sums of `costs`, [n, columns]."""
        return stretched(value, *ends_of_sums(value, parts[:, :COLUMNS]), self.factor)

    def total(self, value: float) -> Total:
        """Return the total of the program with its band."""
        low, high = self.ends(np.array([value]), self.costs.total[None])
        return value, float(low[0]), float(high[0])

    def trust(
        self, value: FloatArray, low: FloatArray, high: FloatArray, parts: FloatArray
    ) -> Int8Array:
        """Return marks of values with bands, from their sums of `costs`, [n, columns]."""
        return at_most(marks_of_trust(value, low, high), value, parts[:, COLUMNS:])


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredIntervals:
    """Confidence intervals of measured values.

    Attributes
    ----------
    costs : values of all runs, [call paths, K * R]
    measured : the runs
    point : index of the point
    """

    costs: Costs
    measured: Measured
    point: int

    @property
    def has_differences(self) -> bool:
        """False, because excess work that was measured has no interval."""
        return False

    def ends(self, value: FloatArray, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of values [n], from their sums of `costs`, [n, K * R]."""
        measured = self.measured
        runs = parts.reshape(len(parts), *measured.runs.shape[1:])
        band = measured.interval(value, runs, self.point, measured.fitted.models.confidence)
        return band.low, band.high

    def total(self, value: float) -> Total:
        """Return the total of the program with its interval."""
        confidence = self.measured.fitted.models.confidence
        whole = self.measured.values(
            lambda columns: sum_over(columns)[None], self.point, confidence
        )
        return value, float(whole.low[0]), float(whole.high[0])

    def trust(
        self,
        value: FloatArray,
        low: FloatArray,
        high: FloatArray,
        parts: FloatArray,  # noqa: ARG002
    ) -> Int8Array:
        """Return marks of values with intervals, [n]."""
        return marks_of_trust(value, low, high)


def model_bands(
    fitted: Fitted,
    target: float,
    own: Predicted | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> ModelBands | None:
    """Return the bands of predictions at a finite target; None = cancelled.

    Parameters
    ----------
    fitted : the models
    target : value of the parameter
    own : exclusive predictions there, if they were made already
    is_wanted : called repeatedly; False cancels. Bands of 10^6 call paths take seconds
    """
    models, modelled, where = fitted.models, fitted.modelled, np.array([target])
    times = fitted.times_largest(target)
    added = np.zeros((len(models), COLUMNS + LIMITS), order="F")
    for start in range(0, len(models), _CHUNK):
        if not is_wanted():
            return None
        part = slice(start, start + _CHUNK)
        some = models.take(part)
        if own is None:
            band = some.predict(where)
            value, parts = band.value[:, 0], addable(some, where, band)[:, 0]
        else:
            value, parts = own.value[part], own.added[part]
        parts = np.concatenate([parts, limited(some, value, times)], axis=1)
        added[part] = np.where(modelled[part, None], parts, 0.0)
    return ModelBands(Costs.of(fitted.experiment.tree, added), fitted.band_factor)
