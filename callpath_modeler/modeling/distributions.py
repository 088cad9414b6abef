"""Distributions, special functions, mixtures of distributions, and quantiles of rows.

Importing scipy takes longer than these functions do, so they come from the engine in C. Functions
that are needed rarely come from scipy. All work elementwise on arrays that broadcast against each
other. See docs/explanation/architecture.md, 'The engine in C', and
docs/explanation/noise-and-bands.md, 'Prediction and band'.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.modeling.constants.bands import BEYOND, INNER, OUTER, STEPS, WIDE
from callpath_modeler.modeling.kernels import kernels


def normal_share(z: FloatArray | float) -> FloatArray:
    """Return the probability that a standard normal variable is below `z`."""
    result: FloatArray = kernels().normal_share(z)
    return result


def log_normal_share(z: FloatArray | float) -> FloatArray:
    """Return the logarithm of `normal_share`, exact far in the tails."""
    result: FloatArray = kernels().log_normal_share(z)
    return result


def normal_quantile(probability: FloatArray | float) -> FloatArray:
    """Return the quantile of the standard normal distribution at a probability between 0 and 1."""
    result: FloatArray = kernels().normal_quantile(probability)
    return result


def student_share(dof: FloatArray | float, t: FloatArray | float) -> FloatArray:
    """Return the probability that a Student variable with `dof` degrees of freedom is below `t`.

    It is NaN without degrees of freedom.
    """
    result: FloatArray = kernels().student_share(dof, t)
    return result


def student_quantile(dof: FloatArray | float, probability: FloatArray | float) -> FloatArray:
    """Return the quantile of Student's distribution at a probability between 0 and 1."""
    result: FloatArray = kernels().student_quantile(dof, probability)
    return result


def polygammas(x: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the digamma, trigamma and tetragamma functions of positive numbers."""
    result: tuple[FloatArray, FloatArray, FloatArray] = kernels().polygammas(x)
    return result


class Prediction(Struct, frozen=True, eq=False):
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


class Mixture(Struct, frozen=True, eq=False):
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


def end_score(confidence: float) -> float:
    """Return the normal score of the upper end of a band."""
    return float(normal_quantile(0.5 + confidence / 2))


def scores(confidence: float) -> FloatArray:
    """Return the normal scores of the quantiles of a row, ascending; the middle one is 0.

    The second and the last but one belong to the ends of the band.
    """
    end = end_score(confidence)
    outer = max(OUTER, end + BEYOND)
    positive = np.array([*(share * end for share in INNER), end, outer])
    return np.concatenate([-positive[::-1], [0.0], positive])


def is_wide(band: Prediction) -> BoolArray:
    """Return whether the shape of a distribution counts, [n, m], or its band alone."""
    with np.errstate(over="ignore"):
        return np.isfinite(band.high) & (band.high > WIDE * band.low)


def as_normal(
    value: FloatArray, low: FloatArray, high: FloatArray, confidence: float
) -> FloatArray:
    """Return quantiles of distributions that are normal on either side of a value, [..., scores].

    Parameters
    ----------
    value, low, high : [...] with bands; a value without a band is exact, and NaN is nothing
    confidence : confidence of the bands
    """
    share = scores(confidence) / end_score(confidence)
    value, low, high = (column[..., None] for column in (value, low, high))
    with np.errstate(invalid="ignore", over="ignore"):
        # At the ends themselves no digit is to be lost.
        edge = np.where(share < 0, low, high)
        quantiles = np.where(np.abs(share) == 1, edge, value + np.abs(share) * (edge - value))
    quantiles = np.where(np.isnan(quantiles), value, quantiles)
    return np.nan_to_num(np.maximum(quantiles, 0.0), nan=0.0, posinf=np.inf)


def between(columns: FloatArray) -> FloatArray:
    """Return columns with linearly interpolated ones between them."""
    share = np.arange(STEPS) / STEPS
    start, step = columns[..., :-1, None], np.diff(columns)[..., None]
    inner = (start + share * step).reshape(*columns.shape[:-1], STEPS * (columns.shape[-1] - 1))
    return np.concatenate([inner, columns[..., -1:]], axis=-1)
