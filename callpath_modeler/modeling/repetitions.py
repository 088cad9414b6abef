"""Repetitions of a measurement: their centre, their spread, and exact values.

See docs/explanation/noise-and-bands.md, 'Noise'.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.modeling.constants.noise import (
    DRAWS,
    EXACT,
    FEWEST_RESIDUALS,
    LARGEST_COUNT,
    MEDIAN_VARIANCE,
)
from callpath_modeler.modeling.distributions import student_quantile

Centre = Literal["mean", "median", "trimmed", "midrange", "first-quartile", "min"]
ClassicCentre = Literal["median", "mean", "min"]
CENTRES: tuple[Centre, ...] = ("mean", "median", "trimmed", "midrange", "first-quartile", "min")
"""All centres of repetitions."""


def centred(y: FloatArray, how: Centre) -> FloatArray:
    """Return one value per point from its repetitions.

    Parameters
    ----------
    y : ndarray [n, K, R]
        Values; NaN = missing.
    how : {'mean', 'median', 'trimmed', 'midrange', 'first-quartile', 'min'}
        The centre. Trimmed leaves out the smallest and the largest of three or more; midrange is
        half their sum. The first quartile lies between two repetitions as in the seventh definition
        of Hyndman and Fan (Sample quantiles in statistical packages, 1996).

    Returns
    -------
    ndarray [n, K]
        NaN where no repetition has a value. Bit-identical for every order of the repetitions.
    """
    return centre_of_sorted(np.sort(y, axis=2), how)


def centre_of_sorted(ordered: FloatArray, how: Centre) -> FloatArray:
    """Return as `centred`, of values that ascend along the last axis, NaN last."""
    if not np.isnan(ordered[:, :, -1]).any():
        return _centre_of_all(ordered, how)
    counts = (~np.isnan(ordered)).sum(axis=2).astype(np.float64)
    if how == "median":
        return _median(ordered, counts)
    if how == "min":
        return ordered[:, :, 0].copy()
    if how == "first-quartile":
        return _first_quartile(ordered, counts)
    last = np.maximum(counts.astype(np.int64) - 1, 0)[..., None]
    if how == "midrange":
        largest = np.take_along_axis(ordered, last, axis=2)[..., 0]
        return np.asarray(ordered[:, :, 0] + (largest - ordered[:, :, 0]) / 2)
    if how == "trimmed":
        enough = counts > 2
        number = np.arange(ordered.shape[2])
        end = (number == 0) | (number == last)
        ordered = np.where(end & enough[..., None], np.nan, ordered)
        counts = np.where(enough, counts - 2, counts)
    total = np.nansum(ordered, axis=2)
    return np.where(counts > 0, total / np.maximum(counts, 1.0), np.nan)


def _centre_of_all(ordered: FloatArray, how: Centre) -> FloatArray:
    """Return as `centre_of_sorted`, if no value is missing."""
    size = ordered.shape[2]
    if how in ("mean", "trimmed"):
        few = ordered[:, :, 1:-1] if how == "trimmed" and size > 2 else ordered
        return np.asarray(few.sum(axis=2) / few.shape[2])
    between = {
        "median": ((size - 1) // 2, size // 2, 0.5),
        "midrange": (0, size - 1, 0.5),
        "min": (0, 0, 0.0),
        "first-quartile": ((size - 1) // 4, -(-(size - 1) // 4), (size - 1) % 4 / 4),
    }
    low, high, share = between[how]
    least = ordered[:, :, low]
    if low == high:  # the difference of infinite values would be NaN
        return np.array(least)
    return np.asarray(least + share * (ordered[:, :, high] - least))


def relative_efficiency(residuals: FloatArray, repetitions: int, how: Centre) -> float:
    """Return the variance of a centre relative to that of the mean, under the noise of residuals.

    Parameters
    ----------
    residuals : ndarray [m]
        Ratios of measured values to models, in any order.
    repetitions : int
        Number of repetitions that make a centre.
    how : str
        The centre.

    Returns
    -------
    float
        Its relative variance divided by that of the mean, from a simulation with a fixed seed that
        draws from the residuals.
    """
    if how == "mean" or repetitions < 3:
        return 1.0
    if len(residuals) < FEWEST_RESIDUALS or np.ptp(residuals) <= EXACT:
        return 1.0
    drawn = np.random.default_rng(0).choice(np.sort(residuals), (1, DRAWS, repetitions))
    drawn.sort(axis=2)
    # Draws are contiguous in memory, so that numpy sums many of them at a time.
    drawn = np.asfortranarray(drawn)
    of_mean, of_centre = (
        float(sample.var() / sample.mean() ** 2)
        for sample in (centre_of_sorted(drawn, each)[0] for each in ("mean", how))
    )
    return of_centre / of_mean


class Repetitions(Struct, frozen=True):
    """Statistics of the repetitions of n rows at K points; a point without a value is NaN.

    Attributes
    ----------
    centre : ndarray [n, K]
        The value of each point, in the unit of the metric.
    counts : ndarray [n, K]
        Number of repetitions of each point.
    spread : ndarray [n]
        Relative standard deviation of one repetition, pooled over the points of a row; NaN
        without repetitions.
    dof : ndarray [n]
        Degrees of freedom of `spread`.
    centre_variance : ndarray [n]
        Relative variance of a centre; NaN without repetitions.
    indistinct : ndarray [n]
        Statistical quality control: whether one value lies in the confidence interval of every
        point, so that repetitions deviate by more than configurations differ.
    """

    centre: FloatArray
    counts: FloatArray
    spread: FloatArray
    dof: FloatArray
    centre_variance: FloatArray
    indistinct: BoolArray


def summarise(y: FloatArray, aggregate: ClassicCentre, confidence: float) -> Repetitions:
    """Return centres and a pooled spread of repetitions.

    Parameters
    ----------
    y : ndarray [n, K, R]
        Values; NaN = no repetition.
    aggregate : {'median', 'mean', 'min'}
        The centre.
    confidence : float
        Confidence of the intervals of the quality control, between 0 and 1.

    Returns
    -------
    Repetitions
        Bit-identical for every order of the repetitions.
    """
    ordered = np.sort(y, axis=2)
    present = ~np.isnan(ordered)
    counts = present.sum(axis=2).astype(np.float64)
    some = np.maximum(counts, 1.0)
    mean = np.where(present, ordered, 0.0).sum(axis=2) / some
    if aggregate == "median":
        centre = _median(ordered, counts)
    elif aggregate == "mean":
        centre = np.where(counts > 0, mean, np.nan)
    else:
        centre = ordered[:, :, 0].copy()
    squares = np.where(present, (ordered - mean[..., None]) ** 2, 0.0).sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(squares > 0, squares / mean**2, 0.0)
    freedom = np.maximum(counts - 1.0, 0.0)
    dof = freedom.sum(axis=1)
    points = np.maximum((counts > 0).sum(axis=1), 1)
    per_point = np.where(counts > 0, _centre_factor(some, aggregate), 0.0).sum(axis=1) / points
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(dof > 0, relative.sum(axis=1) / dof, np.nan)
        deviation = np.sqrt(squares / freedom / some)
    reach = student_quantile(np.maximum(freedom, 1.0), 0.5 + confidence / 2) * deviation
    low = np.fmax.reduce(np.where(freedom > 0, mean - reach, np.nan), axis=1)
    high = np.fmin.reduce(np.where(freedom > 0, mean + reach, np.nan), axis=1)
    return Repetitions(
        centre, counts, np.sqrt(variance), dof, variance * per_point, (dof > 0) & (low <= high)
    )


def _median(ordered: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the median along the last axis of values sorted with NaN last."""
    last = np.maximum(counts.astype(np.int64) - 1, 0)
    lower = np.take_along_axis(ordered, (last // 2)[..., None], axis=2)[..., 0]
    upper = np.take_along_axis(ordered, ((last + 1) // 2)[..., None], axis=2)[..., 0]
    return np.asarray(lower + (upper - lower) / 2)


def _first_quartile(ordered: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the first quartile along the last axis of values sorted with NaN last."""
    place = np.maximum(counts - 1.0, 0.0) / 4
    below = np.floor(place).astype(np.int64)
    lower = np.take_along_axis(ordered, below[..., None], axis=2)[..., 0]
    upper = np.take_along_axis(ordered, np.ceil(place).astype(np.int64)[..., None], axis=2)[..., 0]
    return np.asarray(lower + (place - below) * (upper - lower))


def _centre_factor(counts: FloatArray, aggregate: ClassicCentre) -> FloatArray:
    """Return the variance of a centre relative to that of one repetition."""
    if aggregate == "min":
        # A minimum is steadier than a mean under skewed noise, and less steady under even noise.
        return np.minimum(1.0, 2.0 / counts)
    if aggregate == "median":
        return np.where(counts > 2, MEDIAN_VARIANCE, 1.0) / counts
    return 1.0 / counts


def looks_exact(
    p: FloatArray, centre: FloatArray, spread: FloatArray, dof: FloatArray
) -> BoolArray:
    """Return which rows are counts, whose values carry no noise.

    With repetitions, all of them have to agree. With one repetition, noise is unknown. Then only
    rows of moderate whole numbers, or of averages of whole numbers over p processes, count as
    exact; larger whole numbers may be ticks of a clock.

    Parameters
    ----------
    p : ndarray [K]
        Points.
    centre : ndarray [n, K]
        Values; 0 where missing.
    spread, dof : ndarray [n]
        Relative standard deviation of the repetitions, and its degrees of freedom.

    Returns
    -------
    ndarray [n]
        Whether the row is exact.
    """
    totals = centre * p
    close = np.abs(totals - np.round(totals)) <= EXACT * np.abs(totals)
    whole = (close & (centre < LARGEST_COUNT)).all(axis=1)
    return np.where(dof > 0, np.nan_to_num(spread) <= EXACT, whole)
