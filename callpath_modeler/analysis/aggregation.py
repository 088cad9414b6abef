"""The centre of repetitions: the same one whether models are made, or values compared as they are.

Means of some call paths against medians of others would differ by their kind alone.
"""

from __future__ import annotations

from typing import get_args

import numpy as np

from callpath_modeler import modeling
from callpath_modeler.argument_checks import check_choice
from callpath_modeler.modeling import Aggregate, Centre
from callpath_modeler.profile.experiment import Experiment

WITHOUT_MODELS: Centre = "median"
"""What is taken where runs at too few scales allow no model by which to choose."""


def aggregate_for(
    experiment: Experiment,
    metric: str,
    parameter: str | None = None,
    aggregate: Aggregate = "auto",
) -> Centre:
    """Return the centre of repetitions that models of a metric are of, or would be.

    Parameters
    ----------
    metric, parameter : of the models
    aggregate : how to choose; ``"auto"`` takes what scatters least, if models can be made to tell
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
