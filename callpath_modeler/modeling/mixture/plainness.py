"""How plain laws are: of two that fit as well, programs have the plainer one as a rule."""

from __future__ import annotations

import numpy as np

from callpath_modeler.modeling.breaks import Break, Kind
from callpath_modeler.modeling.differences import Difference
from callpath_modeler.modeling.growth import as_float
from callpath_modeler.modeling.shapes import Shape
from callpath_modeler.modeling.terms import Term

_STEEP, _STEEP_IN_PAIRS = 1.0, 0.25
"""By how much more than its intricacy a power above 1 counts: what is flat and then rises has just
begun to, as a rule, and takes no p^3 of the time of a process."""
_TOGETHER = 2.5
"""By how much more all of it counts in pairs: what is measured at one process is met by any."""
_FLOOR = 0.1
"""Against other breaks, how probable a floor is: what falls does so towards a constant mostly."""
_BEGINNING = 0.25
"""The same of what begins at a capacity: many places are tried that are nearly alike."""
_LATE = 0.1
"""The same of what is beside a law from the last point on."""
_IN_PROPORTION = 0.999
"""How probable a leap is against a step, which fits as well: rounding must not choose."""


def plainness(shape: Shape) -> float:
    """Weigh a shape by itself, beside a constant or without."""
    return _plainness(shape, _STEEP)


def plainness_in_pairs(shape: Shape) -> float:
    """Weigh a shape beside another; what both weigh is to be multiplied."""
    return float(_plainness(shape, _STEEP_IN_PAIRS) ** _TOGETHER)


def _plainness(shape: Shape, steep: float) -> float:
    if isinstance(shape, Term):
        more = 0.0 if shape.rate else steep * _steepness(as_float(shape.exponent))
        return float(np.exp(-intricacy(shape) - more))
    if isinstance(shape, Difference) and not shape.decreasing:
        return plainness_in_pairs(shape.larger) * plainness_in_pairs(shape.smaller)
    if not isinstance(shape, Break):
        return 1.0
    if shape.begins:
        return _BEGINNING
    # A leap is nothing by itself.
    return {Kind.FLOOR: _FLOOR, Kind.LEAP: 0.0}.get(shape.kind, 1.0)


def lateness(shape: Shape) -> float:
    """Weigh what is beside a law from the last point on; zero of anything else."""
    if not isinstance(shape, Break):
        return 0.0
    return {Kind.STEP: _LATE, Kind.LEAP: _LATE * _IN_PROPORTION}.get(shape.kind, 0.0)


def intricacy(shape: Term) -> float:
    """Tell how far a term is from those that programs are known to have, in nats."""
    exponent = as_float(shape.exponent)
    if shape.rate:
        return exponent / 2
    steep = _steepness(exponent)
    logs = max(shape.log - (exponent == 0), 0) * (0.5 if steep == 0 else 2.0)
    fine = {1: 0.0, 2: 0.0, 3: 0.3}.get(shape.exponent.denominator, 0.6)
    return steep / 2 + logs + fine * (1 if steep == 0 else 4)


def _steepness(exponent: float) -> float:
    """Tell by how much a power exceeds 1."""
    return max(0.0, exponent - 1)
