"""Quantiles of rows at a few normal scores.

See docs/explanation/noise-and-bands.md, 'Sums'.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.modeling.constants.sums import BEYOND, INNER, OUTER, STEPS, WIDE
from callpath_modeler.modeling.distributions import normal_quantile
from callpath_modeler.modeling.uncertainty import Prediction


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
