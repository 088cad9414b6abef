"""The prior of hypotheses within their kind: plain laws are more probable.

See docs/explanation/hypotheses.md, 'How plain a term is'.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.modeling.breaks import FROM_NOTHING, Break, BreakKind
from callpath_modeler.modeling.constants.priors import (
    BEGINNING,
    BESIDE,
    BESIDE_FROM_NOTHING,
    BESIDE_OTHERS,
    FASTER_THAN_SHARED,
    FINE,
    FINE_FALLING,
    FLOOR,
    OTHERS_BESIDE_SHARED,
    SORTED_PRIOR,
    STEEP,
    STEEP_BESIDE_SHARED,
    STEEP_IN_PAIRS,
    SUMS_OF_WHOLE,
    TOGETHER,
    WITH_LOGARITHM,
)
from callpath_modeler.modeling.differences import TermDifference
from callpath_modeler.modeling.growth import as_float
from callpath_modeler.modeling.products import Shape
from callpath_modeler.modeling.terms import Term

_BESIDE = {
    **{BreakKind[name]: weight for name, weight in BESIDE.items()},
    **dict.fromkeys(FROM_NOTHING, BESIDE_FROM_NOTHING),
}


def prior_weight(shape: Shape, last: float) -> float:
    """Return the weight of a shape alone, with or without a constant, for points up to `last`."""
    if isinstance(shape, Break) and shape.in_pairs_only(last):
        return 0.0
    return _plainness(shape, STEEP)


def prior_weight_in_pairs(shape: Shape) -> float:
    """Return the weight of a shape in a pair; the weight of the pair is the product of both."""
    return float(_plainness(shape, STEEP_IN_PAIRS) ** TOGETHER)


def prior_weight_of_whole(first: Shape, second: Shape) -> float:
    """Return the weight of a pair of growing terms whose second one is a square or a cube.

    All other pairs get NaN.
    """
    if not (isinstance(first, Term) and isinstance(second, Term)) or second.rate:
        return np.nan
    if first.decreasing or second.exponent not in SUMS_OF_WHOLE:
        return np.nan
    whole = first.is_power and first.exponent.denominator == 1
    if second.log:
        alike = whole and second.log == 1 and first.exponent == second.exponent
        return WITH_LOGARITHM if alike else np.nan
    power = int(second.exponent)
    return SUMS_OF_WHOLE[power] if whole else BESIDE_OTHERS[power] * prior_weight_in_pairs(first)


def _plainness(shape: Shape, steep: float) -> float:
    if isinstance(shape, Term):
        more = 0.0 if shape.rate else steep * _steepness(as_float(shape.exponent))
        return float(np.exp(-description_length(shape) - more))
    if isinstance(shape, TermDifference) and not shape.decreasing:
        return prior_weight_in_pairs(shape.larger) * prior_weight_in_pairs(shape.smaller)
    if not isinstance(shape, Break):
        return 1.0
    if shape.kind is BreakKind.SORTED:
        return SORTED_PRIOR
    if shape.begins or shape.kind is BreakKind.SWELL:
        return BEGINNING
    return FLOOR if shape.kind in (BreakKind.FLOOR, BreakKind.SETTLE) else 1.0


def prior_weight_beside(shape: Shape) -> float:
    """Return the weight of a break with another shape; NaN for shapes other than breaks."""
    return _BESIDE.get(shape.kind, 0.0) if isinstance(shape, Break) else np.nan


def prior_weight_beside_shared(shape: Shape) -> float:
    """Return the weight of a shape with shared work, relative to its weight in other pairs."""
    if not isinstance(shape, Term):
        return 1.0
    others = 0.0 if shape.exponent in (0, 1) else OTHERS_BESIDE_SHARED
    steep = STEEP_BESIDE_SHARED * _steepness(as_float(shape.exponent))
    return float(np.exp(-others - steep))


def description_length(shape: Term) -> float:
    """Return the intricacy of a term, in nats: its distance from the terms of known programs."""
    exponent = as_float(shape.exponent)
    if shape.rate:
        return exponent / 2
    steep = _steepness(exponent)
    logs = max(shape.log - (exponent == 0), 0) * (0.5 if steep == 0 else 2.0)
    fine = (FINE if exponent > 0 else FINE_FALLING).get(shape.exponent.denominator, 0.6)
    if exponent < -1:
        return logs + FASTER_THAN_SHARED
    return steep / 2 + logs + fine * (1 if steep == 0 else 4)


def _steepness(exponent: float) -> float:
    """Return the excess of a power over 1."""
    return max(0.0, exponent - 1)
