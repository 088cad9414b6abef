"""Time that a program spends in collectives, and the gain if they were faster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from callpath_modeler.errors import DataError
from callpath_modeler.modeling import Centre
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.report.exports import at_largest
from cpmodel_guidelines.functions import functions_in


@dataclass(frozen=True, slots=True)
class PotentialSavings:
    """Time in collectives at the largest scale of a program.

    Attributes
    ----------
    name : name of the experiment
    unit : unit of all times
    at : parameter values of the largest scale
    total : time of the whole program
    seconds : time by collective
    """

    name: str
    unit: str
    at: Mapping[str, float]
    total: float
    seconds: Mapping[str, float]

    def gain(self, function: str, factor: float) -> float:
        """Return the time that the program can save if a collective is faster by `factor`."""
        return self.seconds.get(function, 0.0) * (1 - 1 / factor)


def potential_savings(experiment: Experiment, aggregate: Centre = "mean") -> PotentialSavings:
    """Return the time that a program spends in collectives.

    Raises
    ------
    DataError
        If there is no run time that can be summed over call paths, or no call of a collective.
    """
    metric = experiment.metric()
    if not (metric.is_time and metric.additive):
        raise DataError(
            f"{experiment.name}: no run time can be summed over call paths",
            hint="give --application the profiles of a program",
        )
    tree = experiment.tree
    costs = at_largest(experiment, metric.name, aggregate)
    seconds: dict[str, float] = {}
    for function, cost in zip(
        functions_in([tree.names(row) for row in range(len(tree))]), costs.tolist(), strict=True
    ):
        if function is not None and cost > 0:
            seconds[function.name] = seconds.get(function.name, 0.0) + cost
    if not seconds:
        raise DataError(
            f"{experiment.name}: no call path is an MPI collective",
            hint="give --application the profiles of a program that calls collectives",
        )
    at = {each.name: each.values[-1] for each in experiment.parameters}
    return PotentialSavings(experiment.name, metric.unit, at, float(np.nansum(costs)), seconds)
