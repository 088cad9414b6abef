"""Partners as a function of one's own rank, chosen so that as few functions as can be suffice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec
import numpy as np

from callpath_modeler.arrays import Int64Array

_MOST_DIMENSIONS = 4
_LEAST_SERIES = 4
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


def is_series(numbers: Sequence[Int64Array]) -> bool:
    """Tell whether partners follow each other evenly: from 1, from 2, from 3 ...

    Parameters
    ----------
    numbers : of each rank, in order
    """
    steps = np.unique(np.concatenate([np.diff(x) for x in numbers]))
    most = max(len(np.unique(x)) for x in numbers)
    return len(steps) <= 2 and most >= _LEAST_SERIES


def _numbers(partner: Partner, pairs: Int64Array) -> int:
    return len(np.unique(partner.number(pairs[0], pairs[1])))
