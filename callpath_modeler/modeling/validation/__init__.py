"""Validation of expected growths: deviation limits, search spaces, matches and verdicts.

The method comes from Shudler, Berens, Calotoiu, Hoefler, Strube, Wolf: Engineering Algorithms for
Scalability through Continuous Validation of Performance Expectations (TPDS 30(8), 2019). In
addition to its match there is a verdict with a probability.

See docs/explanation/expectations.md, 'The verdict'.
"""

from callpath_modeler.modeling.validation.limits import (
    DeviationLimits,
    DeviationMatch,
    ExpectedGrowth,
    default_deviation,
)
from callpath_modeler.modeling.validation.match import Validation, validate
from callpath_modeler.modeling.validation.spaces import MPI_SPACE, search_space
from callpath_modeler.modeling.validation.verdict import (
    GrowthVerdicts,
    deciding_run,
    deciding_run_of_value,
    growth_probabilities,
    judge,
)

__all__ = [
    "MPI_SPACE",
    "DeviationLimits",
    "DeviationMatch",
    "ExpectedGrowth",
    "GrowthVerdicts",
    "Validation",
    "deciding_run",
    "deciding_run_of_value",
    "default_deviation",
    "growth_probabilities",
    "judge",
    "search_space",
    "validate",
]
