"""Performance models of measurements: arrays in, arrays out, without names or files.

See docs/explanation/modeling.md.
"""

import importlib
from typing import TYPE_CHECKING

from callpath_modeler.modeling.constants.limits import MOST_PARAMETERS
from callpath_modeler.modeling.distributions import Mixture, Prediction
from callpath_modeler.modeling.fitting import (
    Exponentials,
    Method,
    better_exponentials,
    centre,
    default_space,
    fit,
    learn,
)
from callpath_modeler.modeling.growth import Function, Growth
from callpath_modeler.modeling.model_columns import MIN_POINTS, FitStatus
from callpath_modeler.modeling.models import (
    Alternative,
    ChangePoint,
    Models,
    change_point,
    changes_since,
)
from callpath_modeler.modeling.products import Break, Product, Shape, TermDifference
from callpath_modeler.modeling.repetitions import Centre, Repetitions, summarise
from callpath_modeler.modeling.terms import CLASSIC_SPACE, DEFAULT_SPACE, SearchSpace, Term

if TYPE_CHECKING:
    from callpath_modeler.modeling.lines import runs_along, slice_along, slice_with_line_models
    from callpath_modeler.modeling.notation import (
        GrowthSyntaxError,
        ParsedGrowth,
        parse_function,
        parse_growth,
        parse_growths,
    )

_ON_DEMAND = {
    "GrowthSyntaxError": "notation",
    "ParsedGrowth": "notation",
    "parse_function": "notation",
    "parse_growth": "notation",
    "parse_growths": "notation",
    "runs_along": "lines",
    "slice_along": "lines",
    "slice_with_line_models": "lines",
}
"""Modules of names that most commands do not need."""

__all__ = [
    "CLASSIC_SPACE",
    "DEFAULT_SPACE",
    "MIN_POINTS",
    "MOST_PARAMETERS",
    "Alternative",
    "Break",
    "Centre",
    "ChangePoint",
    "Exponentials",
    "FitStatus",
    "Function",
    "Growth",
    "GrowthSyntaxError",
    "Method",
    "Mixture",
    "Models",
    "ParsedGrowth",
    "Prediction",
    "Product",
    "Repetitions",
    "SearchSpace",
    "Shape",
    "Term",
    "TermDifference",
    "better_exponentials",
    "centre",
    "change_point",
    "changes_since",
    "default_space",
    "fit",
    "learn",
    "parse_function",
    "parse_growth",
    "parse_growths",
    "runs_along",
    "slice_along",
    "slice_with_line_models",
    "summarise",
]


def __getattr__(name: str) -> object:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
