"""Bands around predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


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
