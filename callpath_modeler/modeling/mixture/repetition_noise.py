"""Noise of repetitions, pooled over all rows of a metric.

One row has few repetitions, but an application has many rows. See
docs/explanation/noise-and-bands.md, 'Noise'.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.noise import (
    DIFFERENCES_BY_CHANCE,
    EXACT_VARIANCE,
    FEWEST_ROWS,
    MOST_DOF,
    PROFILE_RANGE,
    ROUNDS,
    TREND_ROWS,
)
from callpath_modeler.modeling.distributions import polygammas
from callpath_modeler.modeling.kernels import kernels
from callpath_modeler.modeling.noise import Centre


class Noise(Struct, frozen=True):
    """Noise of n rows at K points, estimated from repetitions.

    Attributes
    ----------
    centre : [n, K] centre of the repetitions; NaN = no value
    variance : [n] relative variance of a centre, shrunk towards that of all rows; `EXACT_VARIANCE`
        where repetitions agree or there are none
    dof : [n] degrees of freedom of this variance
    weight : [n, K] weight of each point, about 1; 0 = no value
    is_known : whether there are repetitions
    spread : [n] relative standard deviation of one repetition; NaN without repetitions
    """

    centre: FloatArray
    variance: FloatArray
    dof: FloatArray
    weight: FloatArray
    is_known: bool
    spread: FloatArray


class RepetitionStats(Struct, frozen=True):
    """Statistics of the repetitions of n rows at K points.

    Attributes
    ----------
    centre : [n, K] centre of the repetitions; NaN = no value
    count : [n, K] number of repetitions
    squares : [n, K] sum of squared relative deviations from the mean; of squared deviations of
        logarithms where these are large
    """

    centre: FloatArray
    count: FloatArray
    squares: FloatArray

    def take(self, rows: IntArray) -> RepetitionStats:
        """Return the statistics of some rows."""
        return RepetitionStats(self.centre[rows], self.count[rows], self.squares[rows])


def repetition_stats(y: FloatArray, how: Centre) -> RepetitionStats:
    """Return the statistics of repetitions `y` [n, K, R], in any order; NaN = missing."""
    result: RepetitionStats = kernels().repetition_stats(y, how)
    return result


class Pool(Struct, frozen=True):
    """Noise of repetitions, pooled over all rows of one metric.

    Attributes
    ----------
    is_known : whether there are repetitions
    profile : [K] relative variance of the noise of each point; 1 = average of a row
    dof : degrees of freedom that a row borrows; 0 if all repetitions agree
    level, slope, about, reach : line in log variance against log size x from which a row borrows,
        ``level + slope (x - about)``, with x - about within `reach`
    """

    is_known: bool
    profile: FloatArray
    dof: float = 0.0
    level: float = 0.0
    slope: float = 0.0
    about: float = 0.0
    reach: tuple[float, float] = (0.0, 0.0)

    def noise(self, reps: RepetitionStats, efficiency: float) -> Noise:
        """Return the noise of some rows.

        Parameters
        ----------
        reps : statistics of their repetitions
        efficiency : variance of the centre relative to that of a mean
        """
        result: Noise = kernels().pooled_noise(self, reps, efficiency)
        return result


def row_spread(reps: RepetitionStats) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return relative variance of one repetition, degrees of freedom, and size of rows, each [n].

    The size of a row is its largest centre.
    """
    result: tuple[FloatArray, FloatArray, FloatArray] = kernels().row_spread(reps)
    return result


def degrees_of_freedom(reps: RepetitionStats) -> FloatArray:
    """Return the degrees of freedom of the noise of each row at each point, [n, K]."""
    return np.where(np.nan_to_num(reps.centre) > 0, np.maximum(reps.count - 1, 0.0), 0.0)


def _log(size: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(size, np.finfo(float).tiny)))


def profile_of(reps: RepetitionStats) -> FloatArray:
    """Return the relative variance of the noise of each point, [K]; 1 = average of a row.

    The variance of a row at a point is a factor of the row times a factor of the point. With the
    right factors, each point has the share of the squared deviations of a row that it has of the
    degrees of freedom. Differences between points are shrunk by the part that chance explains, so
    that points with equal noise are equal (James and Stein: Estimation with quadratic loss, 1961).

    Parameters
    ----------
    reps : statistics of rows that represent all; rows without noise have no influence
    """
    noisy = row_spread(reps)[0] > EXACT_VARIANCE
    squares, freedom = reps.squares[noisy], degrees_of_freedom(reps)[noisy]
    of_point, of_row = freedom.sum(axis=0), freedom.sum(axis=1)
    found = np.ones(reps.count.shape[1])
    if not of_point.any():
        return found
    told, per_point = of_point > 0, np.maximum(of_point, 1.0)
    share = of_point / of_point.sum()
    for _ in range(ROUNDS):
        seen = (of_row / (squares @ (1 / found))) @ squares
        found = np.where(told, seen / per_point, 1.0)
        found = np.clip(found / (found @ share), *PROFILE_RANGE)
    away = found - 1
    # A variance with f degrees of freedom has itself a relative variance of 2 / f.
    beyond_chance = float((away**2 * of_point / 2).mean())
    return np.asarray(
        1 + away * max(0.0, 1 - DIFFERENCES_BY_CHANCE / max(beyond_chance, DIFFERENCES_BY_CHANCE))
    )


def pooled(raw: FloatArray, dof: FloatArray, size: FloatArray, profile: FloatArray) -> Pool:
    """Return the noise of repetitions, pooled over all rows of one metric.

    The relative variance of each row is shrunk towards that of all rows by empirical Bayes (Smyth:
    Linear models and empirical Bayes methods, 2004). Log variances scatter by chance, depending on
    their degrees of freedom, and because rows differ. The second part determines how much a row
    borrows. If small values are noisier, rows borrow from a line in log variance against log value.

    Parameters
    ----------
    raw, dof, size : as returned by `row_spread`
    profile : as returned by `profile_of`
    """
    noisy = (dof > 0) & (raw > EXACT_VARIANCE)
    known = bool((dof > 0).any())
    if not noisy.any():
        return Pool(known, profile)
    # There are few distinct numbers of degrees of freedom.
    half = dof[noisy] / 2
    ordered = np.sort(half)
    each = ordered[np.diff(ordered, prepend=0.0) > 0]
    which = np.searchsorted(each, half)
    digamma, trigamma, _ = polygammas(each)
    log = np.log(raw[noisy]) + (np.log(each) - digamma)[which]
    x = _log(size[noisy])
    level, slope, about = float(log.mean()), 0.0, float(x.mean())
    away = x - about
    reach = float(away.min()), float(away.max())
    if len(x) >= TREND_ROWS and np.ptp(x) > 1:
        slope = float(np.clip((away * log).sum() / (away**2).sum(), -1.5, 0.0))
    if len(x) < FEWEST_ROWS:
        return Pool(known, profile, 4.0, level, slope, about, reach)
    scatter = ((log - level - slope * away) ** 2).mean()
    excess = float(scatter - trigamma[which].mean())
    prior_dof = 2 * _inverse_trigamma(excess) if excess > 0.01 else 2 * MOST_DOF
    prior_dof = min(prior_dof, 2 * MOST_DOF)
    level += float(polygammas(prior_dof / 2)[0] - np.log(prior_dof / 2))
    return Pool(known, profile, prior_dof, level, slope, about, reach)


def noise_of(reps: RepetitionStats, efficiency: float, rows: IntArray | None = None) -> Noise:
    """Return the noise of `rows` of one metric, or of all, pooled over all rows.

    `efficiency` is the variance of the centre relative to that of a mean.
    """
    pool = pooled(*row_spread(reps), profile_of(reps))
    return pool.noise(reps if rows is None else reps.take(rows), efficiency)


def _inverse_trigamma(value: float) -> float:
    """Return the x with trigamma(x) = `value`, by Newton's method on 1 / trigamma."""
    x = 0.5 + 1 / value
    for _ in range(20):
        _, there, slope = map(float, polygammas(x))
        x += there * (1 - there / value) / slope
    return x
