"""Causes of growth: why the time of a call path grows.

The data flow is

1. `callpath_modeler.profile.call_class` tells which cost law can hold for a call path;
2. `needs` collects time, noise, requirements and delays of some call paths, at all points and at
   the target;
3. `families` lists the cost laws of a class, such as ``t = m (c1 + c2 s)`` for messages, and the
   algorithms of collective operations with their sources;
4. `hypotheses` turns laws into regressions: requirements alone, with a delay, or with waiting;
5. `regressions` gives every hypothesis a probability and non-negative coefficients, for all call
   paths at once;
6. `find` decides on one label for each call path, or none;
7. `cause` predicts the explained and the unexplained time of one call path at the target, with
   bands.
"""

from callpath_modeler.analysis.causes.cause import (
    IMBALANCE,
    NOTHING,
    UNEXPLAINED,
    Cause,
    Causes,
    Explained,
    Imbalance,
    LawTerm,
    Share,
)
from callpath_modeler.analysis.causes.find import find_causes
from callpath_modeler.analysis.causes.hypotheses import Driver, Kind

__all__ = [
    "IMBALANCE",
    "NOTHING",
    "UNEXPLAINED",
    "Cause",
    "Causes",
    "Driver",
    "Explained",
    "Imbalance",
    "Kind",
    "LawTerm",
    "Share",
    "find_causes",
]
