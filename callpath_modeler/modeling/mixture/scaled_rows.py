"""Rows to fit, in units of their largest values, and deviations from a law beyond the noise.

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
    EXACT,
    EXACT_VARIANCE,
    FIRST_APART,
    GROWTHS_OF_DRIFTS,
    LEAST,
    LEAST_FAR,
    LEAST_OF_SEVERAL,
    MOST_TICKS,
    OF_ROUNDING,
    SMALL,
    TICKS,
    WILD,
    WILD_PRIOR,
)
from callpath_modeler.modeling.kernels import kernels
from callpath_modeler.modeling.mixture.repetition_noise import Noise
from callpath_modeler.modeling.shapes import doublings


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
