"""Numbers and partners as functions of the rank and of the rounds of loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
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


_MOST_DIMENSIONS = 4
LEAST_SERIES = 4
"""Partners of one rank that make a series; fewer are as short one by one."""


class Relation(StrEnum):
    """The origin of the number of a partner."""

    RANK = "rank"
    """Zero: every process has the same partner."""

    DISTANCE = "distance"
    """Own rank."""

    TORUS = "torus"
    """Own place on a grid whose ends meet: one ring, exclusive or, or neighbours in dimensions."""


class Partner(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How a number tells a partner.

    Attributes
    ----------
    dimensions : of the torus, the one that ranks count up first; () for other relations
    """

    relation: Relation
    dimensions: tuple[int, ...] = ()

    def number(self, rank: Int64Array, peer: Int64Array) -> Int64Array:
        """Return the number of each peer [n] of each rank [n]."""
        if self.relation is Relation.RANK:
            return peer
        if self.relation is Relation.DISTANCE:
            return peer - rank
        return self._on_torus(peer, -rank_digits(rank, self.dimensions))

    def peer(self, rank: Int64Array, number: Int64Array) -> Int64Array:
        """Return the peers [n] that numbers [n] tell: the inverse of `number`."""
        if self.relation is Relation.RANK:
            return number
        if self.relation is Relation.DISTANCE:
            return rank + number
        return self._on_torus(number, rank_digits(rank, self.dimensions))

    def _on_torus(self, place: Int64Array, shift: Int64Array) -> Int64Array:
        digits = rank_digits(place, self.dimensions) + shift
        total: Int64Array = np.zeros_like(digits[0])
        unit = 1
        for digit, size in zip(digits, self.dimensions, strict=True):
            total = total + digit % size * unit
            unit *= size
        return total


def rank_digits(rank: Int64Array, dimensions: Sequence[int]) -> Int64Array:
    """Return the places of ranks [n] on a grid, [dimensions x n]."""
    digits, rest = [], np.asarray(rank, np.int64)
    for size in dimensions:
        digits.append(rest % size)
        rest = rest // size
    return np.stack(digits)


def grids(processes: int) -> Iterator[tuple[int, ...]]:
    """Yield the grids that so many processes fill, those of fewest dimensions first."""
    known: list[tuple[tuple[int, ...], int]] = [((), processes)]
    for _ in range(_MOST_DIMENSIONS):
        yield from ((*sizes, rest) for sizes, rest in known if rest > 1)
        known = [
            ((*sizes, size), rest // size)
            for sizes, rest in known
            for size in range(2, rest // 2 + 1)
            if rest % size == 0
        ]
    yield from _hypercube(processes)


def _hypercube(processes: int) -> Iterator[tuple[int, ...]]:
    """Yield the grid whose partners are exclusive ors, if the processes fill one."""
    bits = processes.bit_length() - 1
    if processes == 1 << bits and bits > 1:
        yield (2,) * bits


def choose(rank: Int64Array, peer: Int64Array, processes: int) -> Partner:
    """Return what tells all partners by the fewest numbers.

    Parameters
    ----------
    rank, peer : [n], who communicates with whom
    """
    pairs = np.unique(np.stack([rank, peer]), axis=1)
    ranks, counts = np.unique(pairs[0], return_counts=True)
    if len(ranks) == 1:
        return Partner(Relation.RANK)
    # No relation needs fewer numbers than the rank with most partners has.
    fewest = int(counts.max())
    simple = [Partner(Relation.DISTANCE), Partner(Relation.RANK)]
    best = min(simple, key=lambda x: _numbers(x, pairs))
    needed = _numbers(best, pairs)
    for dimensions in ((processes,), *_hypercube(processes), *grids(processes)):
        if needed == fewest:
            break
        torus = Partner(Relation.TORUS, dimensions)
        numbers = _numbers(torus, pairs)
        if numbers < needed:
            best, needed = torus, numbers
    return best


def is_series(numbers: Sequence[Int64Array], least: int = LEAST_SERIES) -> bool:
    """Tell whether partners follow each other evenly: from 1, from 2, from 3 ...

    Parameters
    ----------
    numbers : of each rank, in order
    least : partners of one rank
    """
    return is_even(numbers) and max(len(np.unique(x)) for x in numbers) >= least


def is_even(numbers: Sequence[Int64Array]) -> bool:
    """Tell whether numbers grow by one step, and start again by another."""
    return len(np.unique(np.concatenate([np.diff(x) for x in numbers]))) <= 2


def _numbers(partner: Partner, pairs: Int64Array) -> int:
    return len(np.unique(partner.number(pairs[0], pairs[1])))
