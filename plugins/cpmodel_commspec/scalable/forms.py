"""Partners as functions of the place of a rank, the same for every number of processes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec
import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.scalable.scales import AXES, Scale

Step3 = tuple[int, int, int]
"""A distance on a grid, in x, y and z."""


class Relation(StrEnum):
    """The function that gives a partner."""

    GRID = "grid"
    """The neighbour at a distance on the grid; ends of the grid meet."""

    LINE = "line"
    """The neighbour at a distance in the order of ranks; the ends meet."""

    RANK = "rank"
    """The rank of a number."""

    LAST = "last"
    """The rank of a number, counted down from the last."""

    OTHER = "other"
    """The other rank of a number: all but this one, from 0."""

    AHEAD = "ahead"
    """The rank that is a number of ranks further on; the ends meet."""

    XOR = "xor"
    """The exclusive or of the rank and a number."""

    XOR_POWER = "xor power"
    """The exclusive or of the rank and two to the power of a number."""

    AHEAD_POWER = "ahead power"
    """The rank that is two to the power of a number further on; the ends meet."""

    BEHIND_POWER = "behind power"

    TRANSPOSED = "transposed"
    """The place with x and y exchanged.

    If x is r * y, groups of r ranks stay together, as in NPB CG.
    """

    MIRRORED = "mirrored"
    """The rank that is as far from the last as this one is from the first."""

    PARENT = "parent"
    """The parent in a binary tree: (rank - 1) / 2."""

    CHILD = "child"
    """The child of a number in a binary tree: 2 rank + 1 or 2 rank + 2."""

    AHEAD_X = "ahead in x"
    """The rank that is a number of places further on along x; the ends meet."""

    AHEAD_Y = "ahead in y"
    AHEAD_Z = "ahead in z"

    ANY = "any"
    """Any rank that sends."""


POWERS = frozenset({Relation.XOR_POWER, Relation.AHEAD_POWER, Relation.BEHIND_POWER})
ALONG = (Relation.AHEAD_X, Relation.AHEAD_Y, Relation.AHEAD_Z)


class Form(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How a partner is told.

    Attributes
    ----------
    step : the distance of `Relation.GRID` and, in x, of `Relation.LINE`
    wraps : in which dimensions messages go from the end of the grid to its beginning
    """

    relation: Relation
    step: Step3 = (0, 0, 0)
    wraps: tuple[bool, bool, bool] = (False, False, False)

    def peers(self, scale: Scale, ranks: Int64Array, numbers: Int64Array) -> Int64Array:
        """Return the partners of ranks [n] by numbers [n] of a formula; -1 = no partner."""
        if self.relation in {Relation.GRID, Relation.LINE}:
            grid = Scale(scale.processes) if self.relation is Relation.LINE else scale
            found = _moved(grid, ranks, self.step)
            moved = grid.places(found) - grid.places(ranks)
            ends = [k for k, wraps in enumerate(self.wraps) if not wraps]
            is_over = (moved != np.array(self.step)[:, np.newaxis])[ends].any(axis=0)
            return np.where(is_over, -1, found)
        return peers(self.relation, scale, ranks, numbers)


def peers(relation: Relation, scale: Scale, ranks: Int64Array, numbers: Int64Array) -> Int64Array:
    """Return the partners of ranks [n] by numbers [n]; -1 = no partner."""
    p = scale.processes
    if relation in POWERS:
        far = (numbers < 0) | (numbers > 40)
        ahead = np.left_shift(1, np.where(far, 0, numbers))
        if relation is Relation.XOR_POWER:
            found = ranks ^ ahead
        else:
            found = (ranks + (ahead if relation is Relation.AHEAD_POWER else -ahead)) % p
        return np.where(far | (found >= p), -1, found)
    if relation is Relation.TRANSPOSED:
        return transposed(scale, ranks)
    if relation in ALONG:
        places, k = scale.places(ranks), ALONG.index(relation)
        places[k] = (places[k] + numbers) % scale.sizes[k]
        return scale.ranks(places)
    found = {
        Relation.RANK: numbers + 0 * ranks,
        Relation.LAST: p - 1 - numbers + 0 * ranks,
        Relation.OTHER: np.where(numbers < 0, -1, numbers + (numbers >= ranks)),
        Relation.AHEAD: (ranks + numbers) % p,
        Relation.XOR: ranks ^ numbers,
        Relation.MIRRORED: p - 1 - ranks,
        Relation.PARENT: (ranks - 1) // 2,
        Relation.CHILD: 2 * ranks + numbers,
        Relation.ANY: 0 * ranks,
    }[relation]
    return np.where((found < 0) | (found >= p), -1, found)


def numbers(
    relation: Relation, scale: Scale, ranks: Int64Array, partners: Int64Array
) -> Int64Array | None:
    """Return the numbers [n] of partners; None if the relation does not give them."""
    p = scale.processes
    simple = {
        Relation.RANK: partners,
        Relation.LAST: p - 1 - partners,
        Relation.OTHER: partners - (partners > ranks),
        Relation.AHEAD: (partners - ranks) % p,
        Relation.XOR: ranks ^ partners,
    }
    if relation in simple:
        return simple[relation]
    if relation in ALONG:
        moved = scale.places(partners) - scale.places(ranks)
        k = ALONG.index(relation)
        return None if np.delete(moved, k, axis=0).any() else moved[k] % scale.sizes[k]
    if relation is Relation.CHILD:
        which = partners - 2 * ranks
        return which if np.isin(which, (1, 2)).all() else None
    if relation in POWERS:
        ahead = {
            Relation.XOR_POWER: ranks ^ partners,
            Relation.AHEAD_POWER: (partners - ranks) % p,
            Relation.BEHIND_POWER: (ranks - partners) % p,
        }[relation]
        is_power = (ahead > 0) & ((ahead & (ahead - 1)) == 0)
        if not is_power.all():
            return None
        exponents: Int64Array = np.round(np.log2(ahead.astype(np.float64))).astype(np.int64)
        return exponents
    nothing: Int64Array = np.zeros_like(ranks)
    return nothing if (peers(relation, scale, ranks, nothing) == partners).all() else None


def transposed(scale: Scale, ranks: Int64Array) -> Int64Array:
    """Return the partner of each rank [n] in a transposition; -1 if the grid has none."""
    x, y, z = scale.sizes
    if z != 1 or x % y:
        return np.full_like(ranks, -1)
    r = x // y
    column, row = ranks % x, ranks // x
    return r * (column // r * y + row) + column % r


def distances(scale: Scale, ranks: Int64Array, partners: Int64Array) -> Int64Array:
    """Return the distances [3 x n] on a grid whose ends meet, the shorter way round."""
    sizes = np.array(scale.sizes, np.int64)[:, np.newaxis]
    below = (sizes - 1) // 2
    found: Int64Array = (scale.places(partners) - scale.places(ranks) + below) % sizes - below
    return found


def wrapped(scale: Scale, ranks: Int64Array, partners: Int64Array, step: Step3) -> list[bool]:
    """Return for each dimension whether a message goes over the end of the grid."""
    moved = scale.places(partners) - scale.places(ranks)
    return [bool((moved[k] != step[k]).any()) for k in range(3)]


def _moved(scale: Scale, ranks: Int64Array, step: Sequence[int]) -> Int64Array:
    sizes = np.array(scale.sizes, np.int64)[:, np.newaxis]
    places = (scale.places(ranks) + np.array(step, np.int64)[:, np.newaxis]) % sizes
    return scale.ranks(places)


def is_step(scale: Scale, ranks: Int64Array, partners: Int64Array, step: Step3) -> Int64Array:
    """Return which partners [n] are at a distance, as numbers 0 and 1."""
    found: Int64Array = (_moved(scale, ranks, step) == partners).astype(np.int64)
    return found


def form_text(form: Form, number: str, dimensions: int) -> str:
    """Return the formula of a partner, in words that C shares where it can."""
    if form.relation is Relation.GRID and dimensions > 1:
        parts = [
            f"{axis} {'+' if step > 0 else '-'} {abs(step)}" + " around" * form.wraps[k]
            for k, (axis, step) in enumerate(zip(AXES, form.step, strict=True))
            if step
        ]
        return f"the neighbour at {', '.join(parts)}" if parts else "rank"
    if form.relation in {Relation.GRID, Relation.LINE}:
        step = form.step[0]
        text = f"rank {'-' if step < 0 else '+'} {abs(step)}" if step else "rank"
        return f"({text}) % p" if form.wraps[0] else text
    group = f"({number})" if " " in number else number
    return {
        Relation.RANK: number,
        Relation.LAST: f"p - 1 - {group}" if number != "0" else "p - 1",
        Relation.OTHER: f"the other rank of number {number}",
        Relation.AHEAD: f"(rank + {number}) % p",
        Relation.XOR: f"rank ^ {group}",
        Relation.XOR_POWER: f"rank ^ (1 << {group})",
        Relation.AHEAD_POWER: f"(rank + (1 << {group})) % p",
        Relation.BEHIND_POWER: f"(rank - (1 << {group})) % p",
        Relation.TRANSPOSED: "the transposed place",
        Relation.MIRRORED: "p - 1 - rank",
        Relation.PARENT: "(rank - 1) / 2",
        Relation.CHILD: f"2 * rank + {group}",
        **{x: f"the place {number} further on along {AXES[k]}" for k, x in enumerate(ALONG)},
        Relation.ANY: "any source",
    }[form.relation]
