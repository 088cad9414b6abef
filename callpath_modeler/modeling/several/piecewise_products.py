"""Laws that break along one of several parameters."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.breaks import Break, BreakKind, at_last, breaks
from callpath_modeler.modeling.mixture.complexity_prior import description_length
from callpath_modeler.modeling.products import NOTHING, Factor
from callpath_modeler.modeling.terms import Term

FloatArray = npt.NDArray[np.float64]

BESIDE_BREAKS = 0.5
"""How intricate other factors of a law that breaks are at most: up to cubes."""

_COSTS = {
    BreakKind.STEP: 0.5,
    BreakKind.DROP: 0.5,
    BreakKind.ONCE: 0.5,
    BreakKind.ONSET: 0.5,
    BreakKind.LEAP: 0.502,  # rounding is not to choose between leaps and steps
    BreakKind.BEND: 1.0,
    BreakKind.PLATEAU: 1.0,
    BreakKind.FLOOR: 1.0,
}
"""Kinds of breaks, and how intricate each is."""

_PLAIN = 0.4
"""How intricate a factor is that a step of the same parameter may be beside."""

_MORE = BreakKind.STEP, BreakKind.ONCE, BreakKind.ONSET
"""Kinds of what is added from some value on, or at the last one."""

_LEVELLING = BreakKind.FLOOR, BreakKind.PLATEAU
_BENDING = *_LEVELLING, BreakKind.BEND
_KINKED = Fraction(1, 2), Fraction(1)
"""Kinds and powers of laws that bend between two values, beside linear `BEND`s."""

_FEWEST_FOR_KINKS = 5
"""Values of a parameter that tell what levels off from a law, as in one parameter."""

_LEAPING = tuple(Fraction(text) for text in ("-1", "1/2", "1", "2"))
"""Powers all of which may take longer, or less, from some value on."""


def break_cost(factor: Break) -> float:
    """Return how intricate a break is."""
    return _COSTS[factor.kind]


def identifiable_breaks(factors: Sequence[Factor], values: FloatArray) -> list[Break]:
    """Return breaks along a parameter that measurements at `values` [K] could show.

    Those of one parameter, of what begins to grow only what is there at the last value alone; and
    of the powers among its `factors` leaps between any two values, since other parameters tell them
    apart from growth. What levels off does so at the last value too: beside what does before, it is
    what levels off between them.
    """
    levels = np.unique(values)
    kinds = _COSTS.keys() - {BreakKind.LEAP}
    late = at_last(levels)
    every = [each for each in breaks(levels) if each.kind in kinds]
    found = [each for each in every if each.kind is not BreakKind.ONSET or each in late]
    # Two at measured values are what bends between these.
    found = [each for each in found if each.kind not in _BENDING or each.at in levels]
    places = [each.at for each in found if each.kind is BreakKind.STEP]
    powers = [power for power in _LEAPING if Term(power, 0) in factors]
    if len(levels) >= _FEWEST_FOR_KINKS:
        last = float(levels[-1])
        found += [Break(kind, last, power) for kind in _LEVELLING for power in _KINKED]
    return found + [Break(BreakKind.LEAP, at, power) for at in places for power in powers]


def is_leap(factor: Factor) -> TypeGuard[Break]:
    """Tell whether a factor is a power from some value on."""
    return isinstance(factor, Break) and factor.kind is BreakKind.LEAP


def only_beside_others(factor: Factor, last: float) -> bool:
    """Tell whether a factor is tried beside others only; `last` is the parameter's largest value.

    What levels off there is a power as far as anybody knows.
    """
    late = isinstance(factor, Break) and factor.kind in _LEVELLING and factor.at >= last
    return late or is_leap(factor)


def is_onset(factor: Factor) -> bool:
    """Tell whether a factor is what is added from some value on."""
    return isinstance(factor, Break) and factor.kind in _MORE


def plain_factors(factors: Sequence[Factor]) -> list[int]:
    """Return which factors of a parameter are plain, as codes; none is one of them."""
    return [
        code
        for code, factor in enumerate(factors)
        if isinstance(factor, Term) and description_length(factor) <= _PLAIN
    ]


def kinks_beside(factors: Sequence[Factor]) -> list[list[int]]:
    """Return beside which of the factors of a parameter each is a kink between two, as codes.

    Beside the next one of its kind and power, and the first one beside what it is before.
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
    """Return beside which of the factors of a parameter each break among them may be, as codes.

    A leap is beside its power; what is more beside nothing and plain factors, a step down beside
    nothing.
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
