"""Laws that break along one of several parameters."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.breaks import Break, Kind, breaks
from callpath_modeler.modeling.mixture.plainness import intricacy
from callpath_modeler.modeling.products import NOTHING, Factor
from callpath_modeler.modeling.terms import Term

FloatArray = npt.NDArray[np.float64]

BESIDE_BREAKS = 0.5
"""How intricate other factors of a law that breaks are at most: up to cubes."""

_COSTS = {
    Kind.STEP: 0.5,
    Kind.DROP: 0.5,
    Kind.LEAP: 0.502,  # rounding is not to choose between leaps and steps
    Kind.BEND: 1.0,
    Kind.PLATEAU: 1.0,
    Kind.FLOOR: 1.0,
}
"""Kinds of breaks, and how intricate each is."""

_PLAIN = 0.4
"""How intricate a factor is that a step of the same parameter may be beside."""

_LEAPING = tuple(Fraction(text) for text in ("-1", "1/2", "1", "2"))
"""Powers all of which may take longer, or less, from some value on."""


def of_break(factor: Break) -> float:
    """Return how intricate a break is."""
    return _COSTS[factor.kind]


def broken(factors: Sequence[Factor], values: FloatArray) -> list[Break]:
    """Return breaks along a parameter that measurements at `values` [K] could show.

    Those of one parameter; and of the powers among its `factors` leaps between any two values,
    since other parameters tell them apart from growth.
    """
    levels = np.unique(values)
    kinds = _COSTS.keys() - {Kind.LEAP}
    found = [each for each in breaks(levels) if each.kind in kinds]
    # Of bends those at measured values are many enough.
    found = [each for each in found if each.kind is not Kind.BEND or each.at in levels]
    places = [each.at for each in found if each.kind is Kind.STEP]
    powers = [power for power in _LEAPING if Term(power, 0) in factors]
    return found + [Break(Kind.LEAP, at, power) for at in places for power in powers]


def is_leap(factor: Factor) -> TypeGuard[Break]:
    """Tell whether a factor is one that is nothing by itself."""
    return isinstance(factor, Break) and factor.kind is Kind.LEAP


def broken_beside(factors: Sequence[Factor]) -> list[list[int]]:
    """Return beside which of the factors of a parameter each break among them may be, as codes.

    A leap is beside its power; a step up beside nothing and plain factors, one down beside nothing.
    """
    place = {factor: code for code, factor in enumerate(factors)}
    nothing, found = place[NOTHING], []
    plain = [
        code
        for factor, code in place.items()
        if isinstance(factor, Term) and intricacy(factor) <= _PLAIN
    ]
    for factor in factors:
        if is_leap(factor):
            found.append([place[Term(factor.exponent, 0)]])
        elif isinstance(factor, Break) and factor.kind is Kind.STEP:
            found.append(plain)
        else:
            down = isinstance(factor, Break) and factor.kind is Kind.DROP
            found.append([nothing] if down else [])
    return found
