"""Arguments of the formulas of a rank: its place, and the rounds of loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.formulas import variable
from cpmodel_commspec.scalable.scales import AXES, Scale

RANK, PEER, ZEROS, BITS, NEIGHBOURS = "rank", "peer", "zeros", "bits", "neighbours"
"""The rank, its partner, its trailing zero bits, its bits, and its neighbours on the grid."""

PLACES = (RANK, *AXES)


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
    return found
