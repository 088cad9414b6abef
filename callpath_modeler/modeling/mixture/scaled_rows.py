"""What is fitted: rows in their own unit, with the weights of their points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.compiled import repetitions
from callpath_modeler.modeling.compiled.library import compiled
from callpath_modeler.modeling.mixture.deviations import Drift
from callpath_modeler.modeling.mixture.repetition_noise import EXACT_VARIANCE, Noise
from callpath_modeler.modeling.noise import EXACT

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]


_LEAST, _LEAST_OF_SEVERAL, _LEAST_FAR = 0.003, 0.01, 1e-5
"""Against the largest value of a row, what is as good as zero."""

_OF_ROUNDING = 12**-0.5
"""Standard deviation of what is rounded to the nearest whole number."""
_TICKS = 10.0 ** -np.arange(7.0)
"""Of counts, of timers, and of tables that were written with few digits."""
_SMALL = 1000.0
"""From a least value of so many ticks on, half a tick is too little to matter."""
_MOST_TICKS = 2.0**53
"""Larger whole numbers have no neighbours among floating-point numbers."""


@dataclass(frozen=True, slots=True)
class SortedValues:
    """Values `y` [n, K, R] as they are modelled: some rows at a time, since all are many bytes.

    Points are in `order`.
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
        """Divide the rows into parts of `size`."""
        return (slice(start, start + size) for start in range(0, len(self), size))


@dataclass(frozen=True)
class ScaledRows:
    """Rows to fit, [n, K]; zero weight where a value is missing.

    Attributes
    ----------
    points : [K] ascending, or [K, D] of several parameters
    values : in units of the row
    weight : of the points, about 1
    variance, dof : [n] of the noise of a centre
    rounding : [n] what rounding adds to the variance of any value of a row, in its unit; 0 where
        values are no small whole multiples of a number, and where they are all the same
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
        """Return the first of all rows that are alike, and which of these each row is like, [n]."""
        every = np.arange(len(self.values))
        key = self.values @ np.sqrt(np.arange(2.0, 2 + len(self.points)))
        if len(np.unique(key)) == len(every):
            return every, every
        columns = (column[:, None] for column in (self.variance, self.dof, self.rounding))
        rows = np.concatenate([self.values, self.weight, *columns], axis=1)
        _, first, like = np.unique(key, return_index=True, return_inverse=True)
        if not np.array_equal(rows, rows[first[like]]):
            # Whole rows take a hundred times as long to sort.
            _, first, like = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        return first, like.ravel()

    @cached_property
    def least(self) -> FloatArray:
        """The least value above zero of each row, [n]."""
        # Point by point: numpy is slow along short rows.
        return reduce(np.minimum, np.where(self.values > 0, self.values, np.inf).T)

    @cached_property
    def used(self) -> FloatArray:
        """How many points have a value, [n]."""
        return np.asarray((self.weight > 0).sum(axis=1), dtype=np.float64)


def data_of(points: FloatArray, noise: Noise) -> tuple[ScaledRows, FloatArray]:
    """Return rows to fit, and the unit of each: its largest value."""
    if compiled():
        values, unit = repetitions.own_units(noise.centre, noise.weight)
        weight = noise.weight
    else:
        # Points first in memory: rows lie together.
        weight = np.asfortranarray(noise.weight)
        values = np.where(weight > 0, np.asfortranarray(noise.centre), 0.0)
        unit = values.max(axis=1)
        values /= unit[:, None]
    differ, equal = _rounding(points, noise, unit)
    return ScaledRows(points, values, weight, noise.variance + equal, noise.dof, differ), unit


def _rounding(points: FloatArray, noise: Noise, unit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the variance of rounding of rows of small whole numbers of ticks, [n].

    Returns
    -------
    FloatArray
        Of rows of values that differ. Their tick is the largest number that divides all of them:
        75, 150, 150 say no more of a law than 1, 2, 2.
    FloatArray
        Of rows of equal values of a few of the finest ticks: times of a microsecond. Other equal
        values are exact.
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
    for tick in _TICKS:
        ticks = values[left] / tick
        whole = (np.abs(ticks - np.rint(ticks)) <= EXACT * ticks).all(axis=1)
        whole &= ticks.max(axis=1, initial=0.0) < _MOST_TICKS
        its = left[whole]
        number = tick * np.gcd.reduce(np.rint(ticks[whole]).astype(np.int64), axis=1)
        number = np.where(equal[its], tick if tick == _TICKS[-1] else 0.0, number)
        few = least[its] < _SMALL * number
        rows = exact[its[few]]
        found[equal[its[few]].astype(np.intp), rows] = (
            _OF_ROUNDING * number[few] / unit[rows]
        ) ** 2
        left = left[~whole]
    return found[0], found[1]


def floor_of(data: ScaledRows) -> FloatArray:
    """Return the least value that counts in relative terms, [n, 1]: a zero is as precise as it.

    What takes next to nothing on one process would bend the law of many. Where no parameter begins
    at one, start-up times are small beside what messages of all sizes take, and as telling.
    """
    least = _LEAST
    if data.points.ndim > 1:
        far = (data.points.min(axis=0) > 1).all()
        least = _LEAST_FAR if far else _LEAST_OF_SEVERAL
    return np.asarray(np.maximum(data.least, least)[:, None])


def error_unit(data: ScaledRows, fitted: FloatArray) -> FloatArray:
    """Return what errors are relative to, [n, K]: what was fitted, zeros as the floor."""
    return np.maximum(fitted, floor_of(data))


def relative_weights(data: ScaledRows, unit: FloatArray, drift: Drift) -> FloatArray:
    """Weigh points under a drift, [n, K]; `unit` [n, K] is what errors are relative to.

    What grows with the distance is normalised to a geometric mean of 1.
    """
    spread = drift.variances(data.points)
    used = data.weight > 0
    level = np.exp((used @ np.log(spread)) / np.maximum(used.sum(axis=1), 1))
    weights = data.weight / unit**2 / spread * level[:, None]
    weights[:, 0] /= drift.of_first
    return np.asarray(weights)
