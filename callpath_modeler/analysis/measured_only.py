"""Measured values without models: of one scale, or of two scales that are compared.

A model needs three scales. With fewer, or with a chosen pair of scales, all answers are measured
values. They have the same form as models, so that every view shows them: no call path has a model,
and the target is a measured scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from callpath_modeler import modeling
from callpath_modeler.analysis.scales import Pair, choose_pairs, measured_line
from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import CONFIDENCE, DataError, UsageError
from callpath_modeler.fitted import UNKNOWN_SCALE, Fitted
from callpath_modeler.modeling import Centre, Models
from callpath_modeler.modeling.model_columns import column_names
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.runs import ParameterLine, main_parameter
from callpath_modeler.profile.scaling_kind import ScalingKind, with_scaling, with_scaling_of
from callpath_modeler.profile.schema import Metric
from callpath_modeler.units import parameter_value, setting_text

LEAST_SCALES = modeling.MIN_POINTS["mixture"]
"""Smallest number of scales of a model."""
_LARGEST = 1e150
"""Values up to which sums of repetitions and of their squares are finite."""


def has_too_few_scales(experiment: Experiment, parameter: str | None = None) -> bool:
    """Return whether no parameter has enough values for a model.

    Parameters
    ----------
    experiment : the measured runs
    parameter : parameter of interest; None = the main one

    Raises
    ------
    UsageError
        If no parameter of that name varies.
    """
    if not experiment.parameters:
        return True
    names = experiment.modelled_parameters(parameter)
    return all(len(experiment.points(name)) < LEAST_SCALES for name in names)


def measured_values(
    experiment: Experiment,
    metric: str | None = None,
    parameter: str | None = None,
    *,
    settings: dict[str, str],
    held: Mapping[str, float] | None = None,
    pairs: Sequence[Pair] = (),
    aggregate: Centre = "mean",
    confidence: float = CONFIDENCE,
) -> Fitted:
    """Return measured values of one metric along one parameter, without models.

    Parameters
    ----------
    experiment : the measured runs
    metric : name of the metric; None = the first duration
    parameter : name of the parameter; None = p if it is known
    settings : options of making models, as text
    held : measured values of other parameters; by default the largest ones
    pairs : pairs of measured scales; the values are those of the last pair. Empty = all scales
    aggregate : centre of repetitions
    confidence : confidence of the intervals

    Returns
    -------
    Fitted
        Its models have the status of too few points.

    Raises
    ------
    DataError
        If no call path has a value, or a scale is not above zero.
    UsageError
        If there is no such metric, parameter or scale.
    """
    chosen = experiment.metric(metric)
    if experiment.parameters:
        line = measured_line(experiment, parameter, held or {})
    else:
        experiment, line = _at_one_scale(experiment, parameter, pairs)
    along = with_scaling_of(experiment.at(line.held))
    experiment = with_scaling(experiment, ScalingKind(along.scaling, along.scaling_reason))
    points, values = along.by_point(chosen.name, line.parameter)
    points = points[~np.isnan(values).all(axis=(0, 2))]
    if not len(points):
        raise DataError(f"no call path has a value of {chosen.name}", hint="see `cpmodel info`")
    if points[0] <= 0:
        at = {line.parameter: float(points[0])}
        raise DataError(
            f"{setting_text(at)}: a scale is above zero",
            hint=f"exclude such runs with --where {shell_word(f'{line.parameter}>0')}",
        )
    chosen_pairs = choose_pairs(points, line, pairs) if pairs else ()
    if chosen_pairs:
        points = np.array(chosen_pairs[-1])
    found = _values(experiment, chosen, line, points, aggregate, settings, confidence)
    program = experiment.of_program(chosen.name)
    if len(chosen_pairs) > 1:
        found = replace(found, pairs=chosen_pairs)
    if program is None:
        return found
    # Every run that has values has a run time as well.
    run_time = _values(program, chosen, line, points, aggregate, settings, confidence)
    return replace(found, run_time=run_time)


def _values(
    experiment: Experiment,
    metric: Metric,
    line: ParameterLine,
    points: np.ndarray,
    centre: Centre,
    settings: dict[str, str],
    confidence: float,
) -> Fitted:
    """Return the values at some points of a line."""
    known, values = experiment.at(line.held).by_point(metric.name, line.parameter)
    values = values[:, np.isin(known, points)]
    models = _without_models(points, values, centre, confidence)
    return Fitted(
        experiment=experiment,
        metric=metric,
        parameter=line.parameter,
        points=points,
        measured=modeling.centre(values, centre),
        models=models,
        settings=settings,
        findings=(),
        held=line.held,
        measured_at=line.held,
        assumed=line.assumed,
        is_measured_only=True,
    )


def _without_models(
    points: FloatArray, values: FloatArray, centre: Centre, confidence: float
) -> Models:
    """Return the rows of `modeling.fit` for one point or two, which are too few for any model.

    Such rows tell at which points there are values, so rows with the same points are equal.
    """
    if len(points) >= LEAST_SCALES:
        return modeling.fit(points, values, aggregate=centre, confidence=confidence)
    # Sums of very large values may be infinite, which rows tell as well.
    with np.errstate(invalid="ignore"):
        is_large = (np.abs(values) > _LARGEST).any(axis=(1, 2))
    present = ~np.isnan(values).all(axis=2)
    kind = present @ (1 << np.arange(len(points)))
    kind[is_large] = (1 << len(points)) + np.arange(np.count_nonzero(is_large))
    _, first, which = np.unique(kind, return_index=True, return_inverse=True)
    few = modeling.fit(points, values[first], aggregate=centre, confidence=confidence)
    if len(first) > 1:
        return few.take(which)
    # All rows are alike, and need no memory of their own.
    alike: dict[str, Any] = {}
    for name in column_names():
        row = getattr(few, name)[0]
        alike[name] = np.broadcast_to(row, (len(values), *np.shape(row)))
    return replace(few, **alike)


def _at_one_scale(
    experiment: Experiment, parameter: str | None, pairs: Sequence[Pair]
) -> tuple[Experiment, ParameterLine]:
    """Return an experiment of one scale, and that scale as a line."""
    if pairs:
        raise UsageError(
            "--pair: all runs are at one scale",
            hint="omit it, or give profiles of two scales; `cpmodel diff` compares experiments",
        )
    known = _known_scales(experiment)
    if parameter is not None and parameter not in known:
        raise UsageError(
            f"no parameter {parameter!r} is known", hint=f"known: {', '.join(known) or 'none'}"
        )
    name = parameter or main_parameter(known)
    if name is not None:
        return experiment, ParameterLine(name)
    return with_unknown_scale(experiment), ParameterLine(UNKNOWN_SCALE)


def _known_scales(experiment: Experiment) -> dict[str, float]:
    return {name: value for name, value in experiment.constants.items() if value > 0}


def says_no_scale(experiment: Experiment) -> bool:
    """Return whether the runs are at one scale that nothing tells."""
    return not experiment.parameters and not _known_scales(experiment)


def with_unknown_scale(experiment: Experiment) -> Experiment:
    """Return an experiment of one scale that nothing tells; the scale counts as 1."""
    runs = tuple(
        replace(run, parameters={**run.parameters, UNKNOWN_SCALE: 1.0}) for run in experiment.runs
    )
    return replace(experiment, runs=runs)


def measured_scale(fitted: Fitted, target: float | None) -> float:
    """Return a target that was measured; None = the largest scale.

    Raises
    ------
    DataError
        If the target was not measured, so that it would need a model.
    """
    if target is None:
        return float(fitted.points[-1])
    if target in fitted.points:
        return target
    at = {fitted.parameter: target}
    listed = ", ".join(map(parameter_value, fitted.points.tolist()))
    raise DataError(
        f"{setting_text(at)} was not measured, and {_few(fitted)} allow no prediction",
        hint=f"measured: {listed}; a model needs {LEAST_SCALES} scales",
    )


def refuse_prediction(fitted: Fitted, option: str) -> None:
    """Raise `UsageError` for an option that needs models, if there are none."""
    if fitted.is_measured_only:
        raise UsageError(
            f"{option}: {_few(fitted)} allow no model",
            hint=f"a model needs {LEAST_SCALES} scales; omit the option for measured values",
        )


def _few(fitted: Fitted) -> str:
    return "two scales" if len(fitted.points) > 1 else "runs of one scale"
