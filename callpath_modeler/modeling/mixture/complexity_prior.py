"""How plain laws are: of two that fit as well, programs have the plainer one as a rule."""

from __future__ import annotations

import numpy as np

from callpath_modeler.modeling.breaks import FROM_NOTHING, Break, BreakKind
from callpath_modeler.modeling.differences import TermDifference
from callpath_modeler.modeling.growth import as_float
from callpath_modeler.modeling.products import Shape
from callpath_modeler.modeling.terms import Term

_STEEP, _STEEP_IN_PAIRS = 1.0, 0.6
"""By how much more than its intricacy a power above 1 counts: what is flat and then rises has just
begun to, as a rule, and takes no p^3 of the time of a process."""
_STEEP_BESIDE_SHARED = 1.1
"""By how much more beside work that is shared: all that makes the last point dearer looks so."""
_OTHERS_BESIDE_SHARED = 1.0
"""By how much less probable all but p and logarithms are there: a constant and messages, three
terms with that work, are met by its sum with p^(1/4)."""
_TOGETHER = 2.5
"""By how much more all of it counts in pairs: what is measured at one process is met by any."""
_SUMS_OF_WHOLE = {2: 1.0, 3: 0.2}
"""How probable sums of whole powers are by the steeper one, against the plainest pair: algorithms
take such of the size of a problem, but a program no p^3 of its processes."""
_BESIDE_OTHERS = {2: 0.3, 3: 0.05}
"""The same of a square or a cube beside any other term, against the plainest with that."""
_WITH_LOGARITHM = 0.3
"""The same of either beside its product with a logarithm: transforms, and what else is done to each
number."""
BETWEEN = 0.1
"""How probable a power between two others is, against the plainest pair."""
_FLOOR = 0.1
"""Against other breaks, how probable a floor is: what falls does so towards a constant mostly."""
_BEGINNING = 0.25
"""The same of what begins at a capacity: many places are tried that are nearly alike."""
_FINE = {1: 0.0, 2: 0.0, 3: 0.3}
_FINE_FALLING = {**_FINE, 4: 2.0, 5: 3.0, 10: 3.0}
"""How intricate powers are by their denominators; 1/p and a constant falls like many of them."""
_FASTER_THAN_SHARED = 2.5
"""How intricate it is to fall faster than 1 / p, which takes more than work that is shared."""
_SORTED = 0.05
"""How probable it is that each process sorts its share, against that it just has one."""
_IN_PROPORTION = 0.999
"""How probable a leap is against a step, which fits as well: rounding must not choose."""
_BESIDE = {
    BreakKind.STEP: 0.1,
    BreakKind.ONCE: 0.1,
    BreakKind.LEAP: 0.1 * _IN_PROPORTION,
    BreakKind.PLATEAU: 0.25,
    BreakKind.FLOOR: 0.25,
    **dict.fromkeys(FROM_NOTHING, 0.1),
}
"""Against other breaks, how probable one is beside another shape."""


def prior_weight(shape: Shape, last: float) -> float:
    """Weigh a shape by itself, beside a constant or without, over points up to the `last`."""
    if isinstance(shape, Break) and shape.in_pairs_only(last):
        return 0.0
    return _plainness(shape, _STEEP)


def prior_weight_in_pairs(shape: Shape) -> float:
    """Weigh a shape beside another; what both weigh is to be multiplied."""
    return float(_plainness(shape, _STEEP_IN_PAIRS) ** _TOGETHER)


def prior_weight_of_whole(first: Shape, second: Shape) -> float:
    """Weigh a pair of growing terms, the second a square or a cube; NaN of any other pair."""
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
    """Weigh a break that is beside another shape; NaN of anything else."""
    return _BESIDE.get(shape.kind, 0.0) if isinstance(shape, Break) else np.nan


def prior_weight_beside_shared(shape: Shape) -> float:
    """Weigh a shape beside work that is shared, against what it weighs in other pairs."""
    if not isinstance(shape, Term):
        return 1.0
    others = 0.0 if shape.exponent in (0, 1) else _OTHERS_BESIDE_SHARED
    steep = _STEEP_BESIDE_SHARED * _steepness(as_float(shape.exponent))
    return float(np.exp(-others - steep))


def description_length(shape: Term) -> float:
    """Tell how far a term is from those that programs are known to have, in nats."""
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
    """Tell by how much a power exceeds 1."""
    return max(0.0, exponent - 1)
