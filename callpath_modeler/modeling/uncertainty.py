"""Bands around predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

_LEAST_SPREAD = 1e-12
_REACH = 4.0
_HALVINGS = 26


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Predictions of n rows at m targets, with prediction intervals.

    Attributes
    ----------
    value, low, high : ndarray [n, m]
        In the unit of the metric; ``0 <= low <= value <= high``; NaN without a model.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """What n rows may be at m targets: a mixture of C two-piece log-normal distributions each.

    Attributes
    ----------
    centre : ndarray [n, C, m]
        What each hypothesis predicts, in the unit of the metric.
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
        """Return the probability to lie above `value`, which broadcasts against [n, m]; [n, m]."""
        with np.errstate(divide="ignore"):
            return self._exceedance_of_log(np.log(np.atleast_1d(value)))

    def _exceedance_of_log(self, log: FloatArray) -> FloatArray:
        from scipy import special

        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.log(self.centre) - log[..., None, :]
        # Where prediction and threshold are both zero, neither exceeds the other.
        distance = np.where(np.isnan(distance), 0.0, distance)
        spread = np.where(distance > 0, self.below, self.above)
        share = special.ndtr(distance / np.maximum(spread, _LEAST_SPREAD))
        return np.asarray(np.einsum("nc,ncm->nm", self.weight, share))

    def quantile(self, probability: float) -> FloatArray:
        """Return a quantile, [n, m]: bisection in the logarithm."""
        present = np.broadcast_to((self.weight > 0)[:, :, None], self.centre.shape)
        with np.errstate(divide="ignore"):
            log = np.log(self.centre)
        reach = _REACH * np.maximum(self.below, self.above)
        low = np.where(present, log - reach, np.inf).min(axis=1)
        high = np.where(present, log + reach, -np.inf).max(axis=1)
        usable = np.isfinite(low) & np.isfinite(high)
        low, high = np.where(usable, low, 0.0), np.where(usable, high, 0.0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            above = self._exceedance_of_log(middle) > 1 - probability
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        nothing = np.where(present, self.centre, 0.0).max(axis=1) == 0
        return np.where(usable, np.exp((low + high) / 2), np.where(nothing, 0.0, np.inf))

    def band(self, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return the outer quantiles, each [n, m]."""
        tail = (1 - confidence) / 2
        return self.quantile(tail), self.quantile(1 - tail)


def prediction_band(
    value: FloatArray,
    shapes: FloatArray,
    covariance: FloatArray,
    spread: FloatArray,
    dof: FloatArray,
    alternatives: FloatArray,
    counted: BoolArray,
    confidence: float,
) -> Prediction:
    """Put bands around predictions.

    The half width is Student's t times the root of two variances: that of the model at the target
    (its leverage there) and that of a measured centre about the model. The band is then widened
    to hold the predictions of the alternatives that count.

    Parameters
    ----------
    value : ndarray [n, m]
        Predictions.
    shapes : ndarray [n, q, m]
        What each coefficient is multiplied by at the targets.
    covariance : ndarray [n, q, q]
        Covariance of the coefficients.
    spread, dof : ndarray [n]
        Relative standard deviation of a centre, and its degrees of freedom.
    alternatives : ndarray [n, a, m]
        Predictions of the runners-up.
    counted : ndarray [n, a]
        Which of them widen the band.
    confidence : float
        Between 0 and 1.

    Returns
    -------
    Prediction
        Low is clipped at zero.
    """
    from scipy import special

    quantile = special.stdtrit(np.maximum(dof, 1.0), 0.5 + confidence / 2)[:, None]
    with np.errstate(invalid="ignore", over="ignore"):
        variance = np.einsum("nqm,nqm->nm", covariance @ shapes, shapes)
        variance = np.maximum(variance, 0.0) + (spread[:, None] * value) ** 2
        reach = quantile * np.sqrt(variance)
        low, high = value - reach, value + reach
    # At infinity the band of a growing model has no end and its lower side says nothing.
    low = np.where(np.isfinite(low), low, np.where(np.isnan(value), np.nan, 0.0))
    high = np.where(np.isnan(high) & ~np.isnan(value), np.inf, high)
    seen = counted[..., None]
    low = np.minimum(low, np.where(seen, alternatives, np.inf).min(axis=1, initial=np.inf))
    high = np.maximum(high, np.where(seen, alternatives, -np.inf).max(axis=1, initial=-np.inf))
    return Prediction(value, np.maximum(low, 0.0), high)
