"""How much of a program's time is at stake where collectives are slower than they had to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from callpath_modeler.errors import DataError
from callpath_modeler.modeling import Aggregate
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.report.exchange import at_largest
from cpmodel_guidelines.functions import functions_in


@dataclass(frozen=True, slots=True)
class PotentialSavings:
    """What a program spends in collectives, at its largest runs.

    Attributes
    ----------
    name : of the experiment
    unit : of times
    at : values of the parameters of these runs
    total : of the whole program
    seconds : by collective
    """

    name: str
    unit: str
    at: Mapping[str, float]
    total: float
    seconds: Mapping[str, float]

    def gain(self, function: str, factor: float) -> float:
        """Return what the program gains at most if a collective became so much faster."""
        return self.seconds.get(function, 0.0) * (1 - 1 / factor)


def potential_savings(experiment: Experiment, aggregate: Aggregate = "auto") -> PotentialSavings:
    """Sum up what a program spends in collectives.

    Raises
    ------
    DataError
        If its run time was not measured, or none is called.
    """
    metric = experiment.metric()
    if not (metric.is_time and metric.additive):
        raise DataError(
            f"{experiment.name}: no run time that adds up over call paths",
            hint="--application takes the profiles of a program",
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
            hint="--application takes the profiles of a program that calls some",
        )
    at = {each.name: each.values[-1] for each in experiment.parameters}
    return PotentialSavings(experiment.name, metric.unit, at, float(np.nansum(costs)), seconds)
