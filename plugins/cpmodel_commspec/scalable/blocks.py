"""Blocks of elements: the whole elements that each place gets, where the size divides unevenly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import combinations, product
from math import gcd, prod

import msgspec
import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.scalable.quantities import Quantity, Unfit, fit, whole
from cpmodel_commspec.scalable.scales import AXES, PEER, RANK, Scale


class Rule(StrEnum):
    """The elements of a place; n is the total, p the number of places."""

    DOWN = "down"
    """Every place gets n / p."""

    CEILING = "ceiling"
    """Every place gets ceil(n / p)."""

    FIRST = "first"
    """The first places get one more: n / p + (place < n % p)."""

    SPREAD = "spread"
    """Block ends are rounded down: (place + 1) * n / p - place * n / p."""

    LAST = "last"
    """The last place gets the whole remainder."""

    UP = "up"
    """Blocks of ceil(n / p), of which the last ones are shorter or empty."""


_EVEN = (Rule.DOWN, Rule.CEILING)


class Block(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Elements of the block at a place, times their size.

    Attributes
    ----------
    total : elements of all places
    unit : bytes of an element
    axes : of the grid, whose sizes divide the total
    place : name of the feature that is the place; "" if all places are alike
    turn : variable of a loop, times 1 or -1, and a number that are added to the place, modulo p
    """

    rule: Rule
    total: int
    unit: Quantity
    axes: str
    place: str = ""
    turn: tuple[str, int, int] | None = None

    def values(self, scale: Scale, features: Mapping[str, Int64Array]) -> Int64Array | int:
        """Return the bytes at places [n], or those of all places."""
        n, total = _size(scale, self.axes), self.total
        length = -(-total // n)
        if self.rule in _EVEN:
            return self.unit.value(scale) * (length if self.rule is Rule.CEILING else total // n)
        place = features[self.place]
        if self.turn is not None:
            name, sign, ahead = self.turn
            place = (place + sign * features[name] + ahead) % scale.processes
        if self.rule is Rule.FIRST:
            elements = total // n + (place < total % n)
        elif self.rule is Rule.SPREAD:
            elements = (place + 1) * total // n - place * total // n
        elif self.rule is Rule.LAST:
            elements = total // n + (place == n - 1) * (total % n)
        else:
            elements = np.clip(total - place * length, 0, length)
        found: Int64Array = self.unit.value(scale) * elements
        return found

    def turned(self, place: str) -> str:
        """Return the place with its turn, before the remainder is taken."""
        if self.turn is None:
            return place
        name, sign, ahead = self.turn
        end = f" {'-' if ahead < 0 else '+'} {abs(ahead)}" * (ahead != 0)
        return f"{place} {'-' if sign < 0 else '+'} {name}{end}"

    def text(self, unit: str, place: str) -> str:
        """Return the formula in words that C shares, by the names of its parts."""
        n, size = self.total, " * ".join(self.axes)
        size = f"({size})" if " " in size else size
        group = f"({place})" if " " in place else place
        elements = {
            Rule.DOWN: f"{n} / {size}",
            Rule.CEILING: f"({n} + {size} - 1) / {size}",
            Rule.FIRST: f"{n} / {size} + ({group} < {n} % {size})",
            Rule.SPREAD: f"({group} + 1) * {n} / {size} - {group} * {n} / {size}",
            Rule.LAST: f"{n} / {size} + ({group} == {size} - 1) * ({n} % {size})",
            Rule.UP: f"block_up({n}, {size}, {place})",
        }[self.rule]
        return f"({elements})" if unit == "1" else f"{unit} * ({elements})"


def _size(scale: Scale, axes: str) -> int:
    own = (scale.processes if axis == "p" else scale.sizes[AXES.index(axis)] for axis in axes)
    return prod(own)


def blocks(
    scales: Sequence[Scale], values: Sequence[Int64Array], features: Sequence[Mapping[str,
    Int64Array]], names: Sequence[str], dimensions: int, turns: Sequence[str] = (),
) -> Iterator[Block]:  # fmt: skip
    """Yield the blocks that give the values [n] of all traces.

    Parameters
    ----------
    turns : variables of loops in which ranks pass blocks on
    """
    axes = "xyz"[:dimensions] if dimensions > 1 else ""
    places = {name: (name,) if name in AXES else ("p",) for name in names if name in _PLACES}
    if not any((own != own[0]).any() for own in values):
        # Nothing tells places apart.
        own = [*axes, *map("".join, combinations(axes, 2)), "p"]
        places = {"": (*own, *(f"p{axis}" for axis in axes or "p"))}
    rules = _EVEN if "" in places else [rule for rule in Rule if rule not in _EVEN]
    for unit in _units(scales, values, dimensions):
        shares = [own // unit.value(scale) for scale, own in zip(scales, values, strict=True)]
        for place, along in places.items():
            for own_axes in along:
                # The trace of fewest places leaves the fewest totals.
                n, k = min((_size(scale, own_axes), k) for k, scale in enumerate(scales))
                least, most = int(shares[k].min()), int(shares[k].max())
                near = ((n * x, n * (x + 1)) for x in {least - 1, least, most - 1, most})
                for total in sorted({x for a, b in near for x in range(max(0, a), b + 1)}):
                    for rule, turn in product(rules, _turns(turns) if place in _RANKS else (None,)):
                        one = Block(rule, total, unit, own_axes, place, turn)
                        if all(
                            np.all(one.values(at, of) == own)
                            for at, own, of in zip(scales, values, features, strict=True)
                        ):
                            yield one


def _turns(names: Sequence[str]) -> Iterator[tuple[str, int, int] | None]:
    """Yield no turn, or those of the loops of a ring if there are any."""
    if not names:
        yield None
    yield from product(names, (-1, 1), (0, -1, 1))


_USUAL = (8, 16)
"""Bytes of the elements of most programs."""

_RANKS = (RANK, PEER)
_PLACES = frozenset({*AXES, *_RANKS})


def _units(
    scales: Sequence[Scale], values: Sequence[Int64Array], dimensions: int
) -> Iterator[Quantity]:
    """Yield the sizes of an element: the step between values, or the common divisor."""
    steps = {}
    for scale, own in zip(scales, values, strict=True):
        different = np.unique(own)
        if len(different) > 1:
            steps[scale] = gcd(*np.diff(different).tolist())
    known = fit([*steps], [*steps.values()], dimensions)
    if len(steps) == 1:
        # One trace shows the step, and the values of the others tell whether it grows with p.
        [(scale, step)] = steps.items()
        per_rank = fit([Scale(1), scale], [step // scale.processes, step], dimensions)
        known = [whole(step, dimensions), *per_rank]
    common = gcd(*(gcd(*np.unique(own).tolist()) for own in values))
    usual = [unit for unit in _USUAL if common % unit == 0] or [max(common, 1)]
    for unit in dict.fromkeys((*known, *(whole(x, dimensions) for x in usual))):
        with suppress(Unfit):
            sizes = [unit.value(scale) for scale in scales]
            if min(sizes) > 0 and not any(
                (x % n).any() for x, n in zip(values, sizes, strict=True)
            ):
                yield unit
