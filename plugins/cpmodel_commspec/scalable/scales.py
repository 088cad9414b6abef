"""Numbers of processes, the grids that they fill, and places on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import partial
from math import isqrt

import msgspec
import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.formulas import variable

AXES = ("x", "y", "z")


class Scale(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A grid that processes fill: ranks count up x first, then y, then z."""

    x: int
    y: int = 1
    z: int = 1

    @property
    def processes(self) -> int:
        """Number of processes."""
        return self.x * self.y * self.z

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Sizes of the grid."""
        return self.x, self.y, self.z

    def places(self, ranks: Int64Array) -> Int64Array:
        """Return the places of ranks [n] on the grid, [3 x n]."""
        return np.stack([ranks % self.x, ranks // self.x % self.y, ranks // (self.x * self.y)])

    def ranks(self, places: Int64Array) -> Int64Array:
        """Return the ranks [n] of places [3 x n]."""
        ranks: Int64Array = places[0] + self.x * (places[1] + self.y * places[2])
        return ranks

    def positions(self, ranks: Int64Array) -> Int64Array:
        """Return where ranks [n] are on the grid: a digit of base 3 for each dimension.

        A digit is 0 at the first place, 2 at the last, and 1 between them.
        """
        found = np.zeros_like(ranks)
        for place, size, unit in zip(self.places(ranks), self.sizes, (1, 3, 9), strict=True):
            found = found + unit * ((place > 0) * 1 + ((place > 0) & (place == size - 1)))
        return found

    def __str__(self) -> str:
        """Return the scale in words."""
        grid = [str(size) for size in self.sizes]
        while len(grid) > 1 and grid[-1] == "1":
            grid.pop()
        return f"p = {self.processes}" + (f" ({' x '.join(grid)})" if len(grid) > 1 else "")


class Order(StrEnum):
    """The order of the sizes of an even grid."""

    UP = "up"
    """The smallest first: ranks count up the last dimension of `MPI_Dims_create` first."""

    DOWN = "down"


def factorisations(processes: int, dimensions: int) -> Iterator[tuple[int, ...]]:
    """Yield the grids of so many processes, with every order of the sizes."""
    if dimensions == 1:
        yield (processes,)
        return
    for size in range(1, processes + 1):
        if processes % size == 0:
            for rest in factorisations(processes // size, dimensions - 1):
                yield (size, *rest)


def even(processes: int, dimensions: int, order: Order) -> Scale:
    """Return the most even grid, as `MPI_Dims_create` chooses it."""
    falling = (sizes for sizes in factorisations(processes, dimensions))
    # Of several, that with the smallest largest size, and so on.
    best = min(tuple(sorted(sizes, reverse=True)) for sizes in falling)
    return Scale(*(best if order is Order.DOWN else best[::-1]))


def _greedy(processes: int, dimensions: int, order: Order, *, has_squares: bool) -> Scale:
    """Return the grid that prime factors make, each of which multiplies the smallest size.

    Parameters
    ----------
    has_squares : whether squares of odd primes are factors, too
    """
    divisors = (n for n in range(2, processes + 1) if processes % n == 0)
    primes = [n for n in divisors if all(n % k for k in range(2, isqrt(n) + 1))]
    factors = {*primes, *(n * n for n in primes if has_squares and n > 2)}
    sizes, rest = [1] * dimensions, processes
    for factor in sorted(factors, reverse=True):
        while rest % factor == 0:
            rest //= factor
            sizes[sizes.index(min(sizes))] *= factor
    return Scale(*sorted(sizes, reverse=order is Order.DOWN))


def other_grids(scales: Sequence[Scale], dimensions: int, order: Order, grid: Scale) -> list[str]:
    """Return grids of MPI libraries that differ here and not at the traces, in words."""
    found = []
    for has_squares, library in ((False, "Open MPI"), (True, "SimGrid and old Open MPI")):
        rule = partial(_greedy, dimensions=dimensions, order=order, has_squares=has_squares)
        other = rule(grid.processes)
        if other != grid and all(rule(one.processes) == one for one in scales):
            found.append(
                f"{grid} is the most even grid, and {library} may choose {other}: a trace decides, "
                "and --grid gives another"
            )
    return found


def common_order(scales: Iterator[Scale] | tuple[Scale, ...], dimensions: int) -> Order | None:
    """Return the order of sizes in which each grid is the most even; None = no such order."""
    known = tuple(scales)
    for order in Order:
        if all(scale == even(scale.processes, dimensions, order) for scale in known):
            return order
    return None


RANK, PEER, ZEROS, BITS, NEIGHBOURS = "rank", "peer", "zeros", "bits", "neighbours"
"""The rank, its partner, its trailing zero bits, its bits, and its neighbours on the grid."""

CHILDREN, ODD, FIRST, LAST = "children", "(rank % 2)", "(rank == 0)", "(rank == p - 1)"
"""The children in a binomial tree, and 1 for odd ranks, for the first rank and for the last."""

PLACES = (RANK, *AXES)
ROUNDS, PARTNERS, ENDS = (CHILDREN, BITS, NEIGHBOURS), (CHILDREN, ZEROS, BITS), (FIRST, LAST)
"""Features that rounds, partners and sizes depend on, besides the place."""

CALLS = {ZEROS: "zero_bits", BITS: "bits", NEIGHBOURS: "neighbours", CHILDREN: "children"}
"""Functions of programs in C that return features."""


def places(scale: Scale, ranks: Int64Array) -> dict[str, Int64Array]:
    """Return features of ranks [n] by name."""
    x, y, z = scale.places(ranks)
    return {RANK: ranks, "x": x, "y": y, "z": z}


def bits(ranks: Int64Array) -> Int64Array:
    """Return the length of each number [n] in bits; 0 for 0."""
    found: Int64Array = np.ceil(np.log2(ranks.astype(np.float64) + 1)).astype(np.int64)
    return found


def zeros(scale: Scale, ranks: Int64Array) -> Int64Array:
    """Return the trailing zero bits of each number [n]; for 0, those that all ranks have."""
    lowest = np.where(ranks == 0, 1 << (scale.processes - 1).bit_length(), ranks & -ranks)
    return bits(lowest) - 1


def neighbours(scale: Scale, ranks: Int64Array) -> Int64Array:
    """Return how many neighbours each rank [n] has on a grid whose ends do not meet."""
    found: Int64Array = np.zeros_like(ranks)
    for place, size in zip(scale.places(ranks), scale.sizes, strict=True):
        found = found + (place > 0) + (place < size - 1)
    return found


def features(
    scale: Scale, ranks: Int64Array, rounds: Sequence[Int64Array]
) -> dict[str, Int64Array]:
    """Return the features of operations [n] by name; `rounds` [n] are those of each loop around."""
    found = {variable(depth): column for depth, column in enumerate(rounds)}
    found |= places(scale, ranks)
    found[ZEROS], found[BITS] = zeros(scale, ranks), bits(ranks)
    found[NEIGHBOURS] = neighbours(scale, ranks)
    last = scale.processes - 1
    found[CHILDREN] = np.minimum(found[ZEROS], bits(last - ranks))
    found[ODD], found[FIRST] = ranks % 2, (ranks == 0).astype(np.int64)
    found[LAST] = (ranks == last).astype(np.int64)
    return found
