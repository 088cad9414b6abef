"""Numbers as a function of the rank and of the rounds of loops."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul

import msgspec
import numpy as np

from callpath_modeler.arrays import Int64Array

RANK = -1
"""The axis of a table that counts ranks; others count the rounds of the loop of that depth."""


class Expression(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A number: what is regular as a sum, and the rest in a table.

    Attributes
    ----------
    base : the number itself where nothing varies
    rank : what it grows by from rank to rank
    steps : what it grows by from round to round, of each loop around, the outermost first
    axes : what the table depends on, in order; () if there is none
    sizes : lengths of the axes
    table : what is added, the last axis varying fastest
    """

    base: int = 0
    rank: int = 0
    steps: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    table: tuple[int, ...] = ()

    def depends_on(self, depth: int) -> bool:
        """Tell whether it depends on the rounds of a loop, 0 for the outermost."""
        return depth in self.axes or (depth < len(self.steps) and self.steps[depth] != 0)

    def values(self, ranks: Sequence[int], counts: Sequence[int]) -> Int64Array:
        """Return the numbers of ranks [n] in all rounds, [n x rounds of each loop].

        Parameters
        ----------
        ranks : all that the operation is of, in order
        counts : rounds of each loop around, the outermost first
        """
        sizes = [len(ranks), *counts]
        found = np.full(sizes, self.base, np.int64)
        if not (self.rank or self.steps or self.axes):
            return found
        found += self.rank * _along(np.array(ranks, np.int64), 0, len(sizes))
        for depth, step in enumerate(self.steps):
            found += step * _along(np.arange(counts[depth]), depth + 1, len(sizes))
        if self.axes:
            shape = [size if axis - 1 in self.axes else 1 for axis, size in enumerate(sizes)]
            found += np.array(self.table, np.int64).reshape(shape)
        return found

    def of_rank(self, place: int) -> Expression:
        """Return the expression of a single rank, by its place among those of the table."""
        if RANK not in self.axes:
            return self
        row = len(self.table) // self.sizes[0]
        own = self.table[place * row : (place + 1) * row]
        return msgspec.structs.replace(self, sizes=(1, *self.sizes[1:]), table=own)

    def jumps(self, axis: int) -> Int64Array:
        """Return after which rounds [n] of a loop the table grows otherwise than at first."""
        table = np.array(self.table, np.int64).reshape(self.sizes)
        grown = np.moveaxis(np.diff(table, axis=self.axes.index(axis)), self.axes.index(axis), 0)
        return np.flatnonzero((grown != grown[:1]).reshape(len(grown), -1).any(axis=1))


def find(values: Int64Array, ranks: Sequence[int]) -> Expression:
    """Return the expression of numbers [ranks x rounds of each loop], exact for all of them."""
    if (values == values.flat[0]).all():
        return Expression(int(values.flat[0]))
    rest = values.astype(np.int64)
    by_rank, rest = _slope(rest, 0, np.array(ranks, np.int64))
    steps = []
    for depth, count in enumerate(values.shape[1:]):
        step, rest = _slope(rest, depth + 1, np.arange(count))
        steps.append(step)
    axes = [axis for axis in range(rest.ndim) if (rest != rest.take([0], axis)).any()]
    if not axes:
        return Expression(int(rest.flat[0]), by_rank, tuple(steps))
    kept = rest[tuple(slice(None) if axis in axes else 0 for axis in range(rest.ndim))]
    return Expression(
        0,
        by_rank,
        tuple(steps),
        tuple(axis - 1 for axis in axes),
        kept.shape,
        tuple(kept.ravel().tolist()),
    )


def size_of(shape: Sequence[int]) -> int:
    """Return how many numbers there are along axes of such lengths."""
    return reduce(mul, shape, 1)


def _slope(values: Int64Array, axis: int, places: Int64Array) -> tuple[int, Int64Array]:
    """Return what numbers grow by along an axis, zero if unevenly, and what is left of them."""
    if len(places) < 2:
        return 0, values
    grown, distance = np.diff(values, axis=axis), np.diff(places)
    slope = int(grown.flat[0]) // int(distance[0])
    if not slope or (grown != slope * _along(distance, axis, values.ndim)).any():
        return 0, values
    return slope, values - slope * _along(places, axis, values.ndim)


def _along(column: Int64Array, axis: int, dimensions: int) -> Int64Array:
    return column.reshape([-1 if k == axis else 1 for k in range(dimensions)])
