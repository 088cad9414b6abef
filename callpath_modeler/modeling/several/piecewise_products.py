"""Factors with a break along one of several parameters.

See docs/explanation/several-parameters.md, 'Breaks along one parameter'.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TypeGuard

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.breaks import Break, BreakKind, at_last, breaks
from callpath_modeler.modeling.constants.several import (
    BREAK_COSTS,
    KINKED,
    PLAIN_BESIDE_BREAKS,
)
from callpath_modeler.modeling.constants.shapes import FEWEST_FOR_THREE
from callpath_modeler.modeling.mixture.complexity_prior import description_length
from callpath_modeler.modeling.products import NOTHING, Factor
from callpath_modeler.modeling.terms import Term

_COSTS = {BreakKind[name]: cost for name, cost in BREAK_COSTS.items()}


_MORE = BreakKind.STEP, BreakKind.ONCE, BreakKind.ONSET
"""Kinds of breaks that add something from some value on, or at the last value."""

_LEVELLING = BreakKind.FLOOR, BreakKind.PLATEAU
"""Kinds of breaks that level off."""
_BENDING = *_LEVELLING, BreakKind.BEND
"""Kinds of laws that bend between two values; bends are linear."""


_LEAPING = tuple(Fraction(text) for text in ("-1", "1/2", "1", "2"))
"""Powers that may take longer, or less, from some value on."""


def break_cost(factor: Break) -> float:
    """Return the intricacy of a break."""
    return _COSTS[factor.kind]


def identifiable_breaks(factors: Sequence[Factor], values: FloatArray) -> list[Break]:
    """Return the breaks along a parameter that measurements at `values` [K] could show.

    They are the breaks of one parameter, with three differences. Breaks that begin at a capacity
    occur at the last value only. Leaps of the powers among the `factors` occur between any two
    values, because the other parameters distinguish them from growth. Plateaus and floors occur at
    the last value, too: in a pair with the one before, they level off between both values.
    """
    levels = np.unique(values)
    kinds = _COSTS.keys() - {BreakKind.LEAP}
    late = at_last(levels)
    every = [each for each in breaks(levels) if each.kind in kinds]
    found = [each for each in every if each.kind is not BreakKind.ONSET or each in late]
    # A pair of bends at measured values represents a bend between these.
    found = [each for each in found if each.kind not in _BENDING or each.at in levels]
    places = [each.at for each in found if each.kind is BreakKind.STEP]
    powers = [power for power in _LEAPING if Term(power, 0) in factors]
    if len(levels) >= FEWEST_FOR_THREE:
        last = float(levels[-1])
        found += [Break(kind, last, power) for kind in _LEVELLING for power in KINKED]
    return found + [Break(BreakKind.LEAP, at, power) for at in places for power in powers]


def is_leap(factor: Factor) -> TypeGuard[Break]:
    """Return whether a factor is a power from some value on."""
    return isinstance(factor, Break) and factor.kind is BreakKind.LEAP


def only_beside_others(factor: Factor, last: float) -> bool:
    """Return whether a factor is tried in pairs only; `last` is the largest value of the parameter.

    A plateau or floor at the last value equals a power at all measured values.
    """
    late = isinstance(factor, Break) and factor.kind in _LEVELLING and factor.at >= last
    return late or is_leap(factor)


def is_onset(factor: Factor) -> bool:
    """Return whether a factor adds something from some value on."""
    return isinstance(factor, Break) and factor.kind in _MORE


def plain_factors(factors: Sequence[Factor]) -> list[int]:
    """Return the codes of the plain factors of a parameter, which include the factor 1."""
    return [
        code
        for code, factor in enumerate(factors)
        if isinstance(factor, Term) and description_length(factor) <= PLAIN_BESIDE_BREAKS
    ]


def kinks_beside(factors: Sequence[Factor]) -> list[list[int]]:
    """Return the partners, as codes, that make each factor of a parameter bend between two values.

    The partner is the next factor of its kind and power. For the first one it is also the law
    before.
    """
    place = {factor: code for code, factor in enumerate(factors)}
    beside: list[list[int]] = [[] for _ in factors]
    of_kinds: dict[tuple[BreakKind, Fraction], list[Break]] = {}
    for factor in factors:
        if isinstance(factor, Break) and (factor.kind in _LEVELLING or _is_linear(factor)):
            of_kinds.setdefault((factor.kind, factor.exponent), []).append(factor)
    for kinks in of_kinds.values():
        kinks.sort(key=lambda kink: kink.at)
        for kink, later in pairwise(kinks):
            beside[place[kink]].append(place[later])
        before = Term(Fraction(1), 0) if _is_linear(kinks[0]) else NOTHING
        if before in place:
            beside[place[kinks[0]]].append(place[before])
    return beside


def _is_linear(factor: Break) -> bool:
    return factor.kind is BreakKind.BEND and factor.exponent == 1


def broken_beside(factors: Sequence[Factor]) -> list[list[int]]:
    """Return the partners, as codes, of each break among the factors of a parameter.

    The partner of a leap is its power. Breaks that add something have the factor 1 and all plain
    factors as partners. A step down has the factor 1.
    """
    place = {factor: code for code, factor in enumerate(factors)}
    nothing, plain, found = place[NOTHING], plain_factors(factors), []
    for factor in factors:
        if is_leap(factor):
            found.append([place[Term(factor.exponent, 0)]])
        elif is_onset(factor):
            found.append(plain)
        else:
            down = isinstance(factor, Break) and factor.kind is BreakKind.DROP
            found.append([nothing] if down else [])
    return found
