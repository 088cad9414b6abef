"""Predictions with bands, and mixtures of two-piece log-normal distributions.

See docs/explanation/noise-and-bands.md, 'Prediction and band'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.kernels import kernels


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Predictions of n rows at m targets, with prediction intervals.

    Attributes
    ----------
    value, low, high : ndarray [n, m]
        Value and ends of the interval, in the unit of the metric; ``0 <= low <= value <= high``;
        NaN without a model.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Distributions of n rows at m targets: mixtures of C two-piece log-normal distributions.

    Attributes
    ----------
    centre : ndarray [n, C, m]
        Prediction of each hypothesis, in the unit of the metric.
    below, above : ndarray [n, C, m]
        Standard deviations of the logarithm on either side.
    weight : ndarray [n, C]
        Probabilities; 0 = no such hypothesis.
    """

    centre: FloatArray
    below: FloatArray
    above: FloatArray
    weight: FloatArray

    def exceedance(self, value: npt.ArrayLike) -> FloatArray:
        """Return the probability to exceed `value`, which broadcasts against [n, m]; [n, m]."""
        result: FloatArray = kernels().exceedance(self, np.asarray(value, dtype=np.float64))
        return result

    def quantile(self, probability: float) -> FloatArray:
        """Return a quantile, [n, m]."""
        found: FloatArray = self.quantiles([probability])[0]
        return found

    def quantiles(self, probabilities: npt.ArrayLike) -> FloatArray:
        """Return the quantiles at [k] probabilities, [k, n, m]."""
        result: FloatArray = kernels().quantiles(self, np.asarray(probabilities, dtype=np.float64))
        return result

    def band(self, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper end of the band, each [n, m]."""
        tail = (1 - confidence) / 2
        return self.quantile(tail), self.quantile(1 - tail)
