"""Sets of ranks in the words of a program: intervals of places on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.expressions import grids, rank_digits


@dataclass(frozen=True, slots=True)
class Interval:
    """A condition on one place: ``low <= rank // unit % size <= high``.

    Attributes
    ----------
    unit : ranks from one place to the next
    size : places; 0 for the last dimension, where nothing is behind
    low, high : None where the grid ends
    """

    unit: int
    size: int
    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class Condition:
    """Who takes part.

    Attributes
    ----------
    intervals : all of which hold; () for every rank
    is_negated : whether those take part of whom they do not all hold
    listed : the ranks one by one, where no intervals tell them; else ()
    """

    intervals: tuple[Interval, ...] = ()
    is_negated: bool = False
    listed: tuple[int, ...] = ()


def condition(ranks: Sequence[int], processes: int) -> Condition:
    """Return what tells `ranks`, in order, from all others, in as few dimensions as can be."""
    chosen = np.array(ranks, np.int64)
    others = np.setdiff1d(np.arange(processes), chosen)
    if not len(others):
        return Condition()
    for dimensions in grids(processes):
        for part, is_negated in ((chosen, False), (others, True)):
            intervals = _box(part, dimensions)
            if intervals is not None:
                return Condition(intervals, is_negated)
    step = int(chosen[1] - chosen[0]) if len(chosen) > 1 else 0
    if len(chosen) > 2 and np.array_equal(chosen, np.arange(chosen[0], processes, step)):
        first = int(chosen[0])
        if first < step:
            last = first if first < step - 1 else None
            return Condition((Interval(1, step, first or None, last),))
    return Condition(listed=tuple(ranks))


def _box(ranks: Int64Array, dimensions: Sequence[int]) -> tuple[Interval, ...] | None:
    """Return the intervals of a block on a grid that is full; None if it is not."""
    places = rank_digits(ranks, dimensions)
    low, high = places.min(axis=1), places.max(axis=1)
    if int(np.prod(high - low + 1)) != len(ranks):
        return None
    intervals, unit = [], 1
    for k, size in enumerate(dimensions):
        first, last = int(low[k]), int(high[k])
        if (first, last) != (0, size - 1):
            intervals.append(
                Interval(
                    unit,
                    size if k + 1 < len(dimensions) else 0,
                    first or None,
                    last if last < size - 1 else None,
                )
            )
        unit *= size
    return tuple(intervals)
