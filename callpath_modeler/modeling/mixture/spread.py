"""The noise of a whole experiment: one row has few repetitions, an application has many rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from callpath_modeler.modeling.noise import Centre, centred

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

EXACT_VARIANCE = 1e-14
"""Relative variance below which values are exact: counts, and averages of counts."""

_MOST_DOF = 100.0
"""What other rows say of a row's noise counts as this many degrees of freedom at most."""

_FEWEST_ROWS = 3
_TREND_ROWS = 12
_WEIGHT_RANGE = (0.05, 3.0)


@dataclass(frozen=True, slots=True)
class Noise:
    """What repetitions say of the noise of n rows at K points.

    Attributes
    ----------
    centre : [n, K] one value per point; NaN without any
    variance : [n] relative variance of a centre, shrunk towards the other rows'; `EXACT_VARIANCE`
        where repetitions agree or there are none
    dof : [n] degrees of freedom behind it
    weight : [n, K] of each point, about 1; 0 without a value
    known : whether repetitions tell anything
    spread : [n] relative standard deviation of one repetition; NaN without repetitions
    """

    centre: FloatArray
    variance: FloatArray
    dof: FloatArray
    weight: FloatArray
    known: bool
    spread: FloatArray


@dataclass(frozen=True, slots=True)
class Within:
    """The repetitions of n rows at K points, summed up.

    Attributes
    ----------
    centre : [n, K] NaN without a value
    count : [n, K] repetitions
    squares : [n, K] sum of squared relative deviations from the mean
    """

    centre: FloatArray
    count: FloatArray
    squares: FloatArray


def within(y: FloatArray, how: Centre) -> Within:
    """Sum up repetitions `y` [n, K, R], NaN = missing."""
    count = np.isfinite(y).sum(axis=2).astype(np.float64)
    mean = centred(y, "mean")
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = np.nansum((y / mean[:, :, None] - 1) ** 2, axis=2)
    squares = np.where((count > 1) & (mean > 0), squares, 0.0)
    return Within(mean if how == "mean" else centred(y, how), count, squares)


def noise_of(reps: Within, efficiency: float) -> Noise:
    """Pool the spread of repetitions over all rows of one metric.

    The relative variance of each row is shrunk towards that of all rows by empirical Bayes: log
    variances scatter by their degrees of freedom and by how much rows really differ; the second
    part sets how much a row borrows (Smyth: Linear models and empirical Bayes methods, 2004). Where
    small values are noisier, what a row borrows follows a line in log variance against log value.

    Parameters
    ----------
    reps : the repetitions
    efficiency : variance of the centre against that of a mean
    """
    centre, count, squares = reps.centre, reps.count, reps.squares
    present = count > 0
    freedom = np.where(np.nan_to_num(centre) > 0, np.maximum(count - 1, 0.0), 0.0)
    dof = freedom.sum(axis=1)
    raw = squares.sum(axis=1) / np.maximum(dof, 1.0)
    effective = count.sum(axis=1) / np.maximum(present.sum(axis=1), 1)
    weight = np.where(present, count / np.maximum(effective, 1.0)[:, None], 0.0)
    told = dof > 0
    noisy = told & (raw > EXACT_VARIANCE)
    spread = np.where(told, np.sqrt(raw), np.nan)
    n = len(centre)
    if not noisy.any():
        exact = np.full(n, EXACT_VARIANCE)
        return Noise(centre, exact, np.full(n, _MOST_DOF), weight, bool(told.any()), spread)
    size = np.where(present, np.nan_to_num(centre), 0.0).max(axis=1)
    prior, prior_dof = _prior(raw, dof, noisy, size)
    shrunk = (prior_dof * prior + dof * raw) / (prior_dof + dof)
    share = min(prior_dof, _MOST_DOF)
    local = (share * shrunk[:, None] + squares) / (share + freedom)
    ratio = np.clip(shrunk[:, None] / np.maximum(local, EXACT_VARIANCE), *_WEIGHT_RANGE)
    # Two values say next to nothing of the noise of their own point.
    weight = weight * np.where(freedom > 1, ratio, 1.0)
    variance = np.maximum(shrunk * efficiency / np.maximum(effective, 1.0), EXACT_VARIANCE)
    variance = np.where(told & ~noisy, EXACT_VARIANCE, variance)
    return Noise(centre, variance, np.minimum(prior_dof + dof, _MOST_DOF), weight, True, spread)


def _prior(
    raw: FloatArray, dof: FloatArray, noisy: BoolArray, size: FloatArray
) -> tuple[FloatArray, float]:
    """Return what rows borrow: a variance per row, and its degrees of freedom."""
    half = dof[noisy] / 2
    log = np.log(raw[noisy]) - special.digamma(half) + np.log(half)
    x = np.log(np.maximum(size, np.finfo(float).tiny))
    line = np.full(len(raw), float(log.mean()))
    if noisy.sum() >= _TREND_ROWS and np.ptp(x[noisy]) > 1:
        centred_x = x[noisy] - x[noisy].mean()
        slope = float(np.clip((centred_x * log).sum() / (centred_x**2).sum(), -1.5, 0.0))
        line = log.mean() + slope * np.clip(x - x[noisy].mean(), centred_x.min(), centred_x.max())
    if noisy.sum() < _FEWEST_ROWS:
        return np.exp(line), 4.0
    excess = float(((log - line[noisy]) ** 2).mean() - special.polygamma(1, half).mean())
    prior_dof = 2 * _inverse_trigamma(excess) if excess > 0.01 else 2 * _MOST_DOF
    prior_dof = min(prior_dof, 2 * _MOST_DOF)
    return np.exp(line + special.digamma(prior_dof / 2) - np.log(prior_dof / 2)), prior_dof


def _inverse_trigamma(value: float) -> float:
    """Solve trigamma(x) = `value` by Newton's method on 1 / trigamma."""
    x = 0.5 + 1 / value
    for _ in range(20):
        there = float(special.polygamma(1, x))
        x += there * (1 - there / value) / float(special.polygamma(2, x))
    return x
