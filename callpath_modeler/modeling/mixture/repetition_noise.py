"""Noise of repetitions, pooled over all rows of a metric.

One row has few repetitions, but an application has many rows. See
docs/explanation/noise-and-bands.md, 'Noise'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.compiled import repetitions
from callpath_modeler.modeling.compiled.library import compiled
from callpath_modeler.modeling.distributions import polygammas
from callpath_modeler.modeling.noise import Centre, centre_of_sorted

EXACT_VARIANCE = 1e-14
"""Relative variance below which values are exact, such as counts and averages of counts."""

_MOST_DOF = 100.0
"""Largest number of degrees of freedom of the noise."""

_FEWEST_ROWS = 3
"""Rows needed to know how much their noise differs."""
_TREND_ROWS = 12
"""Rows needed for a trend of the noise with the size of values."""
_WEIGHT_RANGE = (0.05, 3.0)
"""Range of the weight of a point by its own noise, relative to its usual weight."""

_MUCH = 0.1
"""Relative deviation of repetitions from which on logarithms replace relative deviations."""

_PROFILE_RANGE = (0.01, 100.0)
"""Range of the variance of a point, relative to the average of all points."""
_ROUNDS = 20
"""Rounds of the iteration for the variances of points."""
_BY_CHANCE = 4.0
"""Mean square of the differences of points, in units of chance, that is attributed to chance.

It is 1 on average for points with equal noise.
"""


@dataclass(frozen=True, slots=True)
class Noise:
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


@dataclass(frozen=True, slots=True)
class RepetitionStats:
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

    @property
    def columns(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Centre, count and squares."""
        return self.centre, self.count, self.squares

    def take(self, rows: IntArray) -> RepetitionStats:
        """Return the statistics of some rows."""
        return RepetitionStats(self.centre[rows], self.count[rows], self.squares[rows])


def repetition_stats(y: FloatArray, how: Centre) -> RepetitionStats:
    """Return the statistics of repetitions `y` [n, K, R], in any order; NaN = missing."""
    if compiled():
        return RepetitionStats(*repetitions.repetition_stats(y, how))
    # The order of the parts of a sum affects its rounding.
    y = np.sort(y, axis=2)
    # Repetitions come first, so that rows are contiguous in memory.
    ordered = np.ascontiguousarray(np.moveaxis(y, 2, 0))
    present = np.isfinite(ordered)
    count = present.sum(axis=0).astype(np.float64)
    values = np.where(present, ordered, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = values.sum(axis=0) / count
        values /= mean
        values -= present
        squares = (values**2).sum(axis=0)
        centre = mean if how == "mean" else centre_of_sorted(y, how)
    squares = np.where((count > 1) & (mean > 0), squares, 0.0)
    _take_logarithms(squares, ordered, mean, count)
    return RepetitionStats(centre, count, squares)


def _take_logarithms(
    squares: FloatArray, ordered: FloatArray, mean: FloatArray, count: FloatArray
) -> None:
    """Replace large `squares` by those of the logarithms of `ordered` [R, n, K] about their mean.

    Three values that differ by factors of hundreds deviate from their mean by less than twice the
    mean, but a model misses some of them by all of these factors.
    """
    row, point = np.nonzero(squares > _MUCH**2 * count)
    here = row, point
    its = ordered[:, row, point]
    there, positive = np.isfinite(its), np.isfinite(its) & (its > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.where(positive, np.log(its / mean[here]), 0.0)
        away -= np.where(positive, away.sum(axis=0) / count[here], 0.0)
        found = (away**2).sum(axis=0)
    # A value of zero has no logarithm.
    squares[here] = np.where((there == positive).all(axis=0), found, squares[here])


@dataclass(frozen=True, slots=True)
class Pool:
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
        if compiled():
            pool = self.dof, self.level, self.slope, self.about, *self.reach
            variance, dof, spread, weight = repetitions.noise(
                reps.columns, pool, self.profile, efficiency
            )
            known = self.is_known or bool(self.dof)
            return Noise(reps.centre, variance, dof, weight, known, spread)
        count, squares = reps.count, reps.squares
        present = count > 0
        raw, dof, size = row_spread(reps)
        effective = count.sum(axis=1) / np.maximum(present.sum(axis=1), 1)
        weight = np.where(present, count / np.maximum(effective, 1.0)[:, None], 0.0)
        told = dof > 0
        spread = np.where(told, np.sqrt(raw), np.nan)
        if not self.dof:
            n = len(raw)
            exact, sure = np.full(n, EXACT_VARIANCE), np.full(n, _MOST_DOF)
            return Noise(reps.centre, exact, sure, weight, self.is_known, spread)
        prior = np.exp(self.level + self.slope * np.clip(_log(size) - self.about, *self.reach))
        shrunk = (self.dof * prior + dof * raw) / (self.dof + dof)
        share, freedom = min(self.dof, _MOST_DOF), _freedom(reps)
        expected = shrunk[:, None] * self.profile
        # Two values say almost nothing about the noise of their point.
        local = np.where(freedom > 1, (share * expected + squares) / (share + freedom), expected)
        ratio = np.clip(shrunk[:, None] / np.maximum(local, EXACT_VARIANCE), *_WEIGHT_RANGE)
        exact = told & (raw <= EXACT_VARIANCE)
        weight = np.where(exact[:, None], weight, weight * ratio)
        variance = np.maximum(shrunk * efficiency / np.maximum(effective, 1.0), EXACT_VARIANCE)
        variance = np.where(exact, EXACT_VARIANCE, variance)
        dof = np.minimum(self.dof + dof, _MOST_DOF)
        return Noise(reps.centre, variance, dof, weight, True, spread)


def row_spread(reps: RepetitionStats) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return relative variance of one repetition, degrees of freedom, and size of rows, each [n].

    The size of a row is its largest centre.
    """
    if compiled():
        return repetitions.row_spread(reps.columns)
    dof = _freedom(reps).sum(axis=1)
    raw = reps.squares.sum(axis=1) / np.maximum(dof, 1.0)
    return raw, dof, np.where(reps.count > 0, np.nan_to_num(reps.centre), 0.0).max(axis=1)


def _freedom(reps: RepetitionStats) -> FloatArray:
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
    squares, freedom = reps.squares[noisy], _freedom(reps)[noisy]
    of_point, of_row = freedom.sum(axis=0), freedom.sum(axis=1)
    found = np.ones(reps.count.shape[1])
    if not of_point.any():
        return found
    told, per_point = of_point > 0, np.maximum(of_point, 1.0)
    share = of_point / of_point.sum()
    for _ in range(_ROUNDS):
        seen = (of_row / (squares @ (1 / found))) @ squares
        found = np.where(told, seen / per_point, 1.0)
        found = np.clip(found / (found @ share), *_PROFILE_RANGE)
    away = found - 1
    # A variance with f degrees of freedom has itself a relative variance of 2 / f.
    beyond_chance = float((away**2 * of_point / 2).mean())
    return np.asarray(1 + away * max(0.0, 1 - _BY_CHANCE / max(beyond_chance, _BY_CHANCE)))


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
    if len(x) >= _TREND_ROWS and np.ptp(x) > 1:
        slope = float(np.clip((away * log).sum() / (away**2).sum(), -1.5, 0.0))
    if len(x) < _FEWEST_ROWS:
        return Pool(known, profile, 4.0, level, slope, about, reach)
    scatter = ((log - level - slope * away) ** 2).mean()
    excess = float(scatter - trigamma[which].mean())
    prior_dof = 2 * _inverse_trigamma(excess) if excess > 0.01 else 2 * _MOST_DOF
    prior_dof = min(prior_dof, 2 * _MOST_DOF)
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
