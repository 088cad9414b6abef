"""Rows to fit in units of their largest values, with their noise of repetitions.

One row has few repetitions, but an application has many rows. See
docs/explanation/noise-and-bands.md, 'Noise'.

See docs/explanation/noise-and-bands.md, 'Noise'.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.noise import (
    AS_A_RULE,
    BESIDE_PRIOR,
    DEVIATIONS_ALONE,
    DEVIATIONS_BESIDE_NOISE,
    DIFFERENCES_BY_CHANCE,
    EXACT,
    EXACT_VARIANCE,
    FEWEST_ROWS,
    FIRST_APART,
    GROWTHS_OF_DRIFTS,
    LEAST,
    LEAST_FAR,
    LEAST_OF_SEVERAL,
    MOST_DOF,
    MOST_TICKS,
    OF_ROUNDING,
    PROFILE_RANGE,
    ROUNDS,
    SMALL,
    TICKS,
    TREND_ROWS,
    WILD,
    WILD_PRIOR,
)
from callpath_modeler.modeling.distributions import polygammas
from callpath_modeler.modeling.kernels import kernels
from callpath_modeler.modeling.repetitions import Centre
from callpath_modeler.modeling.shapes import doublings


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


class Drift(Struct, frozen=True):
    """Growth of deviations towards small scales, which may follow another regime than large ones.

    Attributes
    ----------
    growth : growth of the variance per doubling of the distance from the largest point
    apart : whether the first point has almost no weight
    """

    growth: float
    apart: bool = False

    def variances(self, points: FloatArray) -> FloatArray:
        """Return the variance at each point relative to that at the largest one, [K]."""
        return np.asarray(variances((self,), points)[0])

    @property
    def of_first(self) -> float:
        """Factor of the variance at the first point, in addition to that of its distance."""
        return FIRST_APART if self.apart else 1.0


def variances(drifts: Sequence[Drift], points: FloatArray) -> FloatArray:
    """Return the variance at each point under each drift, relative to the largest point, [L, K]."""
    growth = np.array([[drift.growth] for drift in drifts])
    return np.asarray(1 + growth * doublings(points))


DRIFTS = tuple(map(Drift, GROWTHS_OF_DRIFTS))
"""Drifts that are tried. The first one stands for no drift."""
ALONE = Drift(GROWTHS_OF_DRIFTS[1], apart=True)
"""Drift for runs that begin with one process, which has no partner to talk to or to wait for."""


class Deviations(Struct, frozen=True):
    """The deviations of measurements from a law that are tried.

    The relative variance of a point is ``(noise + deviation**2) drift(point)``.

    Attributes
    ----------
    drifts : L distinct drifts; the first one is no drift
    deviation, drift_of : [D] relative deviation, and number of its drift in ascending order
    log_prior : [D] logarithm of the prior
    """

    drifts: tuple[Drift, ...]
    deviation: FloatArray
    drift_of: IntArray
    log_prior: FloatArray

    @property
    def extremes(self) -> tuple[Drift, ...]:
        """The drifts that bracket all others: none, the largest one, that of one process."""
        return self.drifts[0], *self.drifts[len(DRIFTS) - 1 :]

    def steady(self) -> Deviations:
        """Return the deviations without a drift; they come first."""
        few = self.drift_of == 0
        return Deviations(
            self.drifts[:1], self.deviation[few], self.drift_of[few], self.log_prior[few]
        )


def deviations(points: FloatArray, *, noise_known: bool) -> Deviations:
    """Return the deviations that are tried over `points`, [K] ascending or [K, D].

    Without repetitions the deviations include the noise.
    """
    sizes: tuple[float, ...] = DEVIATIONS_BESIDE_NOISE if noise_known else DEVIATIONS_ALONE
    prior = BESIDE_PRIOR if noise_known else (1 / len(sizes),) * len(sizes)
    if noise_known and points.ndim > 1:
        sizes, prior = (*sizes, WILD), (*prior, WILD_PRIOR)
    drifts = (*DRIFTS, ALONE) if points.ndim == 1 and points[0] == 1 else DRIFTS
    cells = [
        (size, drift, share * (AS_A_RULE if drifts[drift].apart else 1.0))
        for drift in range(len(drifts))
        for size, share in zip(sizes, prior, strict=True)
        # Noise alone does not drift, and the largest deviation is the same everywhere.
        if not drift or not noise_known or 0 < size < WILD
    ]
    size, drift, share = (np.array(column) for column in zip(*cells, strict=True))
    return Deviations(drifts, size, drift, np.log(share / share.sum()))


class SortedValues(Struct, frozen=True):
    """Values `y` [n, K, R], with points in `order`.

    They are sorted a few rows at a time, because all of them take much memory.
    """

    y: FloatArray
    order: IntArray

    @classmethod
    def by_point(cls, points: FloatArray, y: FloatArray) -> SortedValues:
        """Return `y` in the order of `points`, [K] or [K, D]."""
        return cls(y, np.lexsort(points.reshape(len(points), -1).T[::-1]))

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: IntArray | slice) -> FloatArray:
        wanted = self.y[rows]
        return wanted if (np.diff(self.order) == 1).all() else wanted[:, self.order]

    def chunks(self, size: int) -> Iterator[slice]:
        """Return slices that divide the rows into chunks of `size`."""
        return (slice(start, start + size) for start in range(0, len(self), size))


@dataclass(frozen=True)
class ScaledRows:
    """Rows to fit, [n, K]; a missing value has a weight of zero.

    Attributes
    ----------
    points : [K] ascending, or [K, D] of several parameters
    values : values in units of the row
    weight : weight of the points, about 1
    variance, dof : [n] relative variance of a centre by noise, and its degrees of freedom
    rounding : [n] variance of each value of a row by rounding, in its unit; 0 where values are not
        small whole multiples of a number, and where all values are the same
    """

    points: FloatArray
    values: FloatArray
    weight: FloatArray
    variance: FloatArray
    dof: FloatArray
    rounding: FloatArray

    def take(self, rows: IntArray | BoolArray) -> ScaledRows:
        """Return some rows."""
        values, weight = (column.T[:, rows].T for column in (self.values, self.weight))
        its = (column[rows] for column in (self.variance, self.dof, self.rounding))
        return ScaledRows(self.points, values, weight, *its)

    def distinct(self) -> tuple[IntArray, IntArray]:
        """Return the first one of all equal rows, and the position of each row among these, [n]."""
        every = np.arange(len(self.values))
        key = self.values @ np.sqrt(np.arange(2.0, 2 + len(self.points)))
        if len(np.unique(key)) == len(every):
            return every, every
        columns = (column[:, None] for column in (self.variance, self.dof, self.rounding))
        rows = np.concatenate([self.values, self.weight, *columns], axis=1)
        _, first, like = np.unique(key, return_index=True, return_inverse=True)
        if not np.array_equal(rows, rows[first[like]]):
            # Sorting whole rows takes a hundred times as long.
            _, first, like = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        return first, like.ravel()

    @cached_property
    def least(self) -> FloatArray:
        """The smallest value above zero of each row, [n]."""
        # Point by point: numpy is slow along short rows.
        return reduce(np.minimum, np.where(self.values > 0, self.values, np.inf).T)

    @cached_property
    def used(self) -> FloatArray:
        """Number of points with a value, [n]."""
        return np.asarray((self.weight > 0).sum(axis=1), dtype=np.float64)


def data_of(points: FloatArray, noise: Noise) -> tuple[ScaledRows, FloatArray]:
    """Return rows to fit, and the unit of each row, which is its largest value."""
    values, unit = kernels().own_units(noise.centre, noise.weight)
    differ, equal = _rounding(points, noise, unit)
    return ScaledRows(points, values, noise.weight, noise.variance + equal, noise.dof, differ), unit


def _rounding(points: FloatArray, noise: Noise, unit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the variance by rounding of rows of small whole numbers of ticks, [n].

    Returns
    -------
    FloatArray
        Variance of rows with different values. Their tick is the largest number that divides all of
        them: 75, 150, 150 say no more about a law than 1, 2, 2.
    FloatArray
        Variance of rows with equal values of a few of the finest ticks, such as times of a
        microsecond. Other equal values are exact.
    """
    found = np.zeros((2, len(noise.variance)))
    exact = np.flatnonzero(noise.variance <= EXACT_VARIANCE)
    if points.ndim > 1 or not exact.size:
        return found[0], found[1]
    used = noise.weight[exact] > 0
    values = np.where(used, noise.centre[exact], 0.0)
    least = np.where(values > 0, values, np.inf).min(axis=1)
    equal = least >= values.max(axis=1)
    left = np.arange(len(exact))
    for tick in TICKS:
        ticks = values[left] / tick
        whole = (np.abs(ticks - np.rint(ticks)) <= EXACT * ticks).all(axis=1)
        whole &= ticks.max(axis=1, initial=0.0) < MOST_TICKS
        its = left[whole]
        number = tick * np.gcd.reduce(np.rint(ticks[whole]).astype(np.int64), axis=1)
        number = np.where(equal[its], tick if tick == TICKS[-1] else 0.0, number)
        few = least[its] < SMALL * number
        rows = exact[its[few]]
        found[equal[its[few]].astype(np.intp), rows] = (OF_ROUNDING * number[few] / unit[rows]) ** 2
        left = left[~whole]
    return found[0], found[1]


def floor_of(data: ScaledRows) -> FloatArray:
    """Return the smallest value that counts in relative errors, [n, 1]; zeros count as this large.

    Otherwise a value close to zero on one process would distort the law of many processes. If no
    parameter begins at one, start-up times are small compared with the cost of messages of all
    sizes, but say as much about the law.
    """
    least = LEAST
    if data.points.ndim > 1:
        far = (data.points.min(axis=0) > 1).all()
        least = LEAST_FAR if far else LEAST_OF_SEVERAL
    return np.asarray(np.maximum(data.least, least)[:, None])


def error_unit(data: ScaledRows, fitted: FloatArray) -> FloatArray:
    """Return the values that errors are relative to, [n, K]: fitted values, at least the floor."""
    return np.maximum(fitted, floor_of(data))


def relative_weights(data: ScaledRows, unit: FloatArray, drift: Drift) -> FloatArray:
    """Return the weights of points under a drift, [n, K], for errors relative to `unit` [n, K].

    The growth of the variance with the distance has a geometric mean of 1 over the points.
    """
    spread = drift.variances(data.points)
    used = data.weight > 0
    level = np.exp((used @ np.log(spread)) / np.maximum(used.sum(axis=1), 1))
    weights = data.weight / unit**2 / spread * level[:, None]
    weights[:, 0] /= drift.of_first
    return np.asarray(weights)
