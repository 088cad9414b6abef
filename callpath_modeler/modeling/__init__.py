"""Performance models: arrays in, arrays out; never sees a name or a path."""

from callpath_modeler.modeling.fitting import MIN_POINTS, centre, fit
from callpath_modeler.modeling.models import Alternative, Models
from callpath_modeler.modeling.noise import Aggregate, Repetitions, summarise
from callpath_modeler.modeling.status import FitStatus
from callpath_modeler.modeling.terms import DEFAULT_SPACE, Growth, SearchSpace, Term
from callpath_modeler.modeling.uncertainty import Prediction

__all__ = [
    "DEFAULT_SPACE",
    "MIN_POINTS",
    "Aggregate",
    "Alternative",
    "FitStatus",
    "Growth",
    "Models",
    "Prediction",
    "Repetitions",
    "SearchSpace",
    "Term",
    "centre",
    "fit",
    "summarise",
]
