"""Centre of repetitions: the same one for models and for comparisons of measured values.

A difference between a mean and a median would be due to the kind of centre.
"""

from __future__ import annotations

from typing import get_args

import numpy as np

from callpath_modeler import modeling
from callpath_modeler.argument_checks import check_choice
from callpath_modeler.modeling import Aggregate, Centre
from callpath_modeler.profile.experiment import Experiment

WITHOUT_MODELS: Centre = "median"
"""Centre if there are too few scales to choose one by models."""


def aggregate_for(
    experiment: Experiment,
    metric: str,
    parameter: str | None = None,
    aggregate: Aggregate = "auto",
) -> Centre:
    """Return the centre of repetitions for models of a metric.

    Parameters
    ----------
    metric, parameter : metric and parameter of the models
    aggregate : name of a centre; ``"auto"`` = the one that scatters least, if models can be made
    """
    check_choice(aggregate, get_args(Aggregate), "aggregate")
    if aggregate != "auto":
        return aggregate
    if not experiment.parameters:
        return WITHOUT_MODELS
    names = experiment.modelled_parameters(parameter)
    points, values = experiment.by_setting(experiment.metric(metric).name, names)
    measured = ~np.isnan(values).all(axis=(0, 2))
    points, values = points[measured], values[:, measured]
    scales = [np.unique(column) for column in points.T]
    least = modeling.MIN_POINTS["mixture"]
    if len(names) > modeling.MOST_PARAMETERS or min(map(len, scales)) < least or points.min() <= 0:
        return WITHOUT_MODELS
    return modeling.centre_of_models(points if len(names) > 1 else points[:, 0], values)
