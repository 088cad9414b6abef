"""The prior of hypotheses within their kind: plain laws are more probable.

See docs/explanation/hypotheses.md, 'How plain a term is'.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.modeling.breaks import FROM_NOTHING, Break, BreakKind
from callpath_modeler.modeling.differences import TermDifference
from callpath_modeler.modeling.growth import as_float
from callpath_modeler.modeling.products import Shape
from callpath_modeler.modeling.terms import Term

_STEEP, _STEEP_IN_PAIRS = 1.0, 0.6
"""Nats for each power above 1, in addition to the intricacy: alone, and in pairs.

Values that are flat and then rise have usually just begun to rise; they do not follow p^3.
"""
_STEEP_BESIDE_SHARED = 1.1
"""Nats for each power above 1 with shared work, in addition to those in pairs.

Anything that makes the last point more expensive looks like a small amount of a steep power.
"""
_OTHERS_BESIDE_SHARED = 1.0
"""Nats for powers other than 0 and 1 with shared work, in addition to those in pairs.

Shared work with a constant and messages looks like shared work with p^(1/4).
"""
_TOGETHER = 2.5
"""Factor of all nats in pairs, since any pair fits the value measured on one process."""
_SUMS_OF_WHOLE = {2: 1.0, 3: 0.2}
"""Prior of a sum of whole powers by the steeper power, relative to the plainest pair.

The cost of an algorithm over its problem size is such a sum, but no program takes p^3 of its
processes.
"""
_BESIDE_OTHERS = {2: 0.3, 3: 0.05}
"""Prior of a square or a cube with another term, relative to that of the other term in pairs."""
_WITH_LOGARITHM = 0.3
"""Prior of p^2 or p^3 with its product with a logarithm, relative to the plainest pair.

Such sums are transforms with other work on each number.
"""
BETWEEN = 0.1
"""Prior of a power between two others, which is their sum, relative to the plainest pair."""
_FLOOR = 0.1
"""Prior of floors and settling, relative to other easings: most work falls towards a constant."""
_BEGINNING = 0.25
"""Prior of breaks that begin at a capacity and of gradual growth, relative to other breaks.

Many places are tried that are nearly alike.
"""
_FINE = {1: 0.0, 2: 0.0, 3: 0.3}
"""Intricacy of growing terms by the denominator of the power, in nats; 0.6 for others."""
_FINE_FALLING = {**_FINE, 4: 2.0, 5: 3.0, 10: 3.0}
"""The same for falling terms: 1/p and a constant together fall like many of them."""
_FASTER_THAN_SHARED = 2.5
"""Intricacy of terms that fall faster than 1/p, in nats: sharing work does not suffice for that."""
_SORTED = 0.05
"""Prior of work that sorts the share of each process, relative to other shared work."""
_IN_PROPORTION = 0.999
"""Prior of a leap relative to a step that fits equally well, so that rounding does not choose."""
_BESIDE = {
    BreakKind.STEP: 0.1,
    BreakKind.ONCE: 0.1,
    BreakKind.LEAP: 0.1 * _IN_PROPORTION,
    BreakKind.PLATEAU: 0.25,
    BreakKind.FLOOR: 0.25,
    **dict.fromkeys(FROM_NOTHING, 0.1),
}
"""Prior of a break with another shape by the kind of the break, relative to other breaks."""


def prior_weight(shape: Shape, last: float) -> float:
    """Return the weight of a shape alone, with or without a constant, for points up to `last`."""
    if isinstance(shape, Break) and shape.in_pairs_only(last):
        return 0.0
    return _plainness(shape, _STEEP)


def prior_weight_in_pairs(shape: Shape) -> float:
    """Return the weight of a shape in a pair; the weight of the pair is the product of both."""
    return float(_plainness(shape, _STEEP_IN_PAIRS) ** _TOGETHER)


def prior_weight_of_whole(first: Shape, second: Shape) -> float:
    """Return the weight of a pair of growing terms whose second one is a square or a cube.

    All other pairs get NaN.
    """
    if not (isinstance(first, Term) and isinstance(second, Term)) or second.rate:
        return np.nan
    if first.decreasing or second.exponent not in _SUMS_OF_WHOLE:
        return np.nan
    whole = first.is_power and first.exponent.denominator == 1
    if second.log:
        alike = whole and second.log == 1 and first.exponent == second.exponent
        return _WITH_LOGARITHM if alike else np.nan
    power = int(second.exponent)
    return _SUMS_OF_WHOLE[power] if whole else _BESIDE_OTHERS[power] * prior_weight_in_pairs(first)


def _plainness(shape: Shape, steep: float) -> float:
    if isinstance(shape, Term):
        more = 0.0 if shape.rate else steep * _steepness(as_float(shape.exponent))
        return float(np.exp(-description_length(shape) - more))
    if isinstance(shape, TermDifference) and not shape.decreasing:
        return prior_weight_in_pairs(shape.larger) * prior_weight_in_pairs(shape.smaller)
    if not isinstance(shape, Break):
        return 1.0
    if shape.kind is BreakKind.SORTED:
        return _SORTED
    if shape.begins or shape.kind is BreakKind.SWELL:
        return _BEGINNING
    return _FLOOR if shape.kind in (BreakKind.FLOOR, BreakKind.SETTLE) else 1.0


def prior_weight_beside(shape: Shape) -> float:
    """Return the weight of a break with another shape; NaN for shapes other than breaks."""
    return _BESIDE.get(shape.kind, 0.0) if isinstance(shape, Break) else np.nan


def prior_weight_beside_shared(shape: Shape) -> float:
    """Return the weight of a shape with shared work, relative to its weight in other pairs."""
    if not isinstance(shape, Term):
        return 1.0
    others = 0.0 if shape.exponent in (0, 1) else _OTHERS_BESIDE_SHARED
    steep = _STEEP_BESIDE_SHARED * _steepness(as_float(shape.exponent))
    return float(np.exp(-others - steep))


def description_length(shape: Term) -> float:
    """Return the intricacy of a term, in nats: its distance from the terms of known programs."""
    exponent = as_float(shape.exponent)
    if shape.rate:
        return exponent / 2
    steep = _steepness(exponent)
    logs = max(shape.log - (exponent == 0), 0) * (0.5 if steep == 0 else 2.0)
    fine = (_FINE if exponent > 0 else _FINE_FALLING).get(shape.exponent.denominator, 0.6)
    if exponent < -1:
        return logs + _FASTER_THAN_SHARED
    return steep / 2 + logs + fine * (1 if steep == 0 else 4)


def _steepness(exponent: float) -> float:
    """Return the excess of a power over 1."""
    return max(0.0, exponent - 1)
