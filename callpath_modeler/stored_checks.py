"""Checks that the parts of a store agree with each other.

A store may come from anybody. Types and shapes of arrays are checked by the schema of the models,
and texts by the types of the header. This module holds the rules that relate parts to each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from math import isfinite
from typing import TYPE_CHECKING, get_args

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.diagnostics import KINDS, Finding
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.runs import Parameter, Run
from callpath_modeler.profile.schema import Metric

if TYPE_CHECKING:
    from callpath_modeler.modeling import Models

_ROUNDING = 1e-9
_FOLDS = re.compile(r"leave-one-out|\d{1,9} folds")


def check_runs(
    runs: Sequence[Run],
    parameters: Sequence[Parameter],
    constants: Mapping[str, float],
    metrics: Sequence[Metric],
) -> None:
    """Raise an error if runs do not have the parameters of their experiment.

    Parameters
    ----------
    runs : the runs
    parameters : parameters of the experiment
    constants : its constants
    metrics : its metrics

    Raises
    ------
    ValueError
        If a run lacks a parameter, if values differ from those of the runs, or if a name occurs
        twice.
    """
    if not runs:
        raise ValueError("there are no runs")
    for names in ([each.name for each in parameters], [metric.name for metric in metrics]):
        if len({*names}) < len(names):
            raise ValueError("two parameters or metrics have the same name")
    for run in runs:
        _check_run(run, parameters)
        if run.parameters.keys() != runs[0].parameters.keys():
            raise ValueError("two runs have different parameters")
    for each in parameters:
        if list(each.values) != sorted({run.parameters[each.name] for run in runs}):
            raise ValueError(f"values of {each.name!r} differ from those of the runs")
    for name, value in constants.items():
        if any(run.parameters.get(name, value) != value for run in runs):
            raise ValueError(f"{name!r} is not constant")


def _check_run(run: Run, parameters: Sequence[Parameter]) -> None:
    if any(each.name not in run.parameters for each in parameters):
        raise ValueError("a run lacks a parameter")
    extent = run.extent
    if min(extent.processes, extent.threads, extent.nodes) < 0 or run.repetition < 1:
        raise ValueError("a run has a negative number of processes or repetitions")
    if not all(map(isfinite, run.parameters.values())):
        raise ValueError("a value of a parameter is not finite")


def check_findings(findings: Iterable[Finding]) -> None:
    """Raise `ValueError` if a finding has an unknown kind or counts fewer than one item."""
    for finding in findings:
        if finding.code not in KINDS or finding.count < 1:
            raise ValueError(f"invalid finding {finding.code!r} x{finding.count}")


def check_models(
    models: Models, names: Sequence[str], settings: Mapping[str, str], experiment: Experiment
) -> None:
    """Raise an error if models do not belong to this experiment or these settings.

    Parameters
    ----------
    models : the models
    names : parameters of the models
    settings : settings of the models
    experiment : the experiment

    Raises
    ------
    ValueError
        If a parameter, a point or a setting disagrees.
    """
    if not {*names} <= {parameter.name for parameter in experiment.parameters}:
        raise ValueError("the experiment lacks a parameter of the models")
    _check_points(models, names, experiment.runs)
    from callpath_modeler.modeling import Centre

    expected = {
        "parameter": ",".join(names),
        "method": "classic" if models.method == "classic" else "mixture",
        "confidence": f"{models.confidence:g}",
        "hypotheses": json.dumps(models.space.to_header()),
    }
    told = {**settings}
    repetitions, folds = told.pop("repetitions", ""), told.pop("cross-validation", "")
    if told != expected or repetitions not in get_args(Centre) or not _FOLDS.fullmatch(folds):
        raise ValueError("the settings are not those of the models")


def check_measured(
    models: Models, names: Sequence[str], experiment: Experiment, metric: str
) -> None:
    """Raise `ValueError` if a point of models in several parameters has no value of `metric`.

    Opening a store makes models of lines through these points.
    """
    there = np.isfinite(experiment.columns[metric].exclusive).any(axis=0)
    runs = [experiment.runs[k] for k in np.flatnonzero(there).tolist()]
    measured = {tuple(run.parameters[name] for name in names) for run in runs}
    if not {*map(tuple, models.points.tolist())} <= measured:
        raise ValueError("a point of the models has no value")


def check_centres(
    models: Models,
    names: Sequence[str],
    experiment: Experiment,
    metric: str,
    measured: NDArray[np.float64],
) -> None:
    """Raise `ValueError` where a centre is not between the smallest and largest repetition."""
    settings, values = experiment.by_setting(metric, names)
    of_models = np.isin(settings[:, 0], models.points)
    # One repetition after the other is several times as fast as along the last axis.
    repetitions = np.moveaxis(values[:, of_models], 2, 0)
    low, high = (reduce(least, repetitions) for least in (np.fmin, np.fmax))
    slack = _ROUNDING * np.fmax(np.abs(low), np.abs(high))
    if (np.isnan(low) != np.isnan(measured)).any():
        raise ValueError("measured has values where there are none, or none where there are some")
    if ((measured < low - slack) | (measured > high + slack)).any():
        raise ValueError("measured is not between the repetitions")


def _check_points(models: Models, names: Sequence[str], runs: Sequence[Run]) -> None:
    if len(names) != models.axes or len({*names}) < len(names):
        raise ValueError(f"models in {models.axes} parameters have {len(names)} names")
    measured = {tuple(run.parameters[name] for name in names) for run in runs}
    if any(value <= 0 for values in measured for value in values):
        raise ValueError("a parameter of the models has a value that is not above zero")
    points = models.points.reshape(len(models.points), -1).tolist()
    if not {*map(tuple, points)} <= measured:
        raise ValueError("points differ from those of the runs")
    if len({*map(tuple, points)}) < len(points) or (models.axes == 1 and points != sorted(points)):
        raise ValueError("points are not in order")
