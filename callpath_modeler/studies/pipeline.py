"""Models of experiments, and causes of growth: the functions that every user interface calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import TYPE_CHECKING, get_args

import numpy as np

from callpath_modeler import modeling
from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.cause import Cause
from callpath_modeler.analysis.cause_search import find_causes
from callpath_modeler.analysis.data_quality import (
    RECOMMENDED_POINTS,
    findings_of_counters,
    findings_of_models,
    findings_of_parameters,
    repetition_findings,
)
from callpath_modeler.analysis.waiting import with_waiting
from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import (
    CONFIDENCE,
    DataError,
    UsageError,
    check_choice,
    check_count,
    check_executor,
    check_probability,
    check_type,
)
from callpath_modeler.fitted import UNKNOWN_SCALE, Fitted, Surface, sliced
from callpath_modeler.modeling import Centre, Method, Models, SearchSpace
from callpath_modeler.modeling.model_columns import MapLike
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.runs import main_parameter
from callpath_modeler.profile.schema import Metric
from callpath_modeler.support.front_ends import counted_map, stage
from callpath_modeler.support.parallel import WorkerPool, worth
from callpath_modeler.units import as_option, counted, setting_text

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from callpath_modeler.modeling.empirical_bayes import FittedPriors


_LEFT_OUT = ("CPM101", "CPM125")
"""Codes of findings about profiles and columns that were not used."""

_SECONDS_PER_ROW = (4e-5, 1e-3, 6e-3)
"""Seconds to make a model in one, two, and three or more parameters."""


@dataclass(frozen=True, slots=True)
class FitOptions:
    """Options of making models.

    Attributes
    ----------
    parameter : parameter of the models; None = p if it varies
    method : ``"mixture"`` gives every hypothesis a probability; ``"classic"`` chooses one by
        cross-validation
    space : terms of hypotheses; None = those of the method
    folds : number of folds of the cross-validation of the classic method; None = leave one out
    aggregate : centre of the repetitions
    confidence : probability that a band holds a measurement
    jobs : largest number of processes or threads; 0 = one for each processor. The models are the
        same for every number
    executor : makes the models instead of processes or threads of this machine
    """

    parameter: str | None = None
    method: Method = "mixture"
    space: SearchSpace | None = None
    folds: int | None = None
    aggregate: Centre = "mean"
    confidence: float = CONFIDENCE
    jobs: int = field(default=1, compare=False)
    executor: Executor | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice(self.method, get_args(modeling.Method), "method")
        check_choice(self.aggregate, get_args(modeling.Centre), "aggregate")
        check_type(self.space, (SearchSpace, NoneType), "space")
        check_probability(self.confidence, "--confidence")
        check_count(self.jobs, 0, "--jobs")
        check_executor(self.executor)
        if self.folds is not None:
            check_count(self.folds, 2, "--folds")


def fit(
    experiment: Experiment, metric: str | None = None, options: FitOptions | None = None
) -> Fitted:
    """Return the models of one metric, one for every call path.

    Parameters
    ----------
    experiment : the measured runs
    metric : name of the metric; None = the first duration
    options : options of making models; None = the defaults of `FitOptions`

    Returns
    -------
    Fitted
        One model per call path, in SI base units. A model predicts the exclusive value.

    Raises
    ------
    DataError
        If the runs do not allow any model.
    UsageError
        If there is no such metric or parameter, or more folds than points.

    References
    ----------
    Calotoiu, Hoefler, Poke, Wolf: Using Automated Performance Modeling to Find Scalability Bugs in
    Complex Codes (SC 2013), for the terms of models and the classic method.
    """
    check_type(experiment, Experiment, "experiment")
    check_type(options, (FitOptions, NoneType), "options")
    options = options or FitOptions()
    chosen = experiment.metric(metric)
    parameters = _parameters(experiment, options)
    points, values = experiment.by_setting(chosen.name, parameters)
    measured = ~np.isnan(values).all(axis=(0, 2))
    if not measured.any():
        raise DataError(f"no call path has a value of {chosen.name}", hint="see `cpmodel info`")
    points, values = points[measured], values[:, measured]
    _check_points(points, parameters, options)
    _check_method(options)
    if options.folds is not None and options.folds > len(points):
        raise UsageError(
            f"--folds {options.folds}: there are {len(points)} points of {parameters[0]}",
            hint=f"2 to {len(points)}; the default leaves one point out at a time",
        )
    several = len(parameters) > 1
    with stage("fit"), sharing(options, len(values), len(parameters)) as shared:
        scales = points if several else points[:, 0]
        priors = modeling.learn(
            scales,
            values,
            method=options.method,
            space=options.space,
            aggregate=options.aggregate,
        )
        each = counted_map(f"fit {chosen.name}", shared.map, len(values))
        models = _models(scales, values, options, priors, each)
    centres = modeling.centre(values, models.aggregate)
    settings = _settings(options, parameters)
    with stage("findings"):
        findings = (
            *repetition_findings(experiment, chosen.name),
            *findings_of_parameters(experiment, parameters),
            *findings_of_models(models, points, parameters, centres),
            *findings_of_counters(chosen, points, parameters, centres),
        )
    found = _fitted(experiment, chosen, options, points, models, centres, settings)
    run_time = _run_time(experiment, chosen, options, points, priors, settings)
    return with_waiting(replace(found, findings=findings, run_time=run_time))


def _run_time(
    experiment: Experiment,
    metric: Metric,
    options: FitOptions,
    points: FloatArray,
    priors: FittedPriors | None,
    settings: dict[str, str],
) -> Fitted | None:
    """Return the model of the run time; None if some run does not record it.

    It has the options of the models of the call paths, and the priors learnt from these.
    """
    program = experiment.of_program(metric.name)
    if program is None:
        return None
    parameters = _parameters(program, options)
    settings_of_program, run_times = program.by_setting(metric.name, parameters)
    there = (settings_of_program[:, None] == points).all(axis=2).any(axis=1)
    if there.sum() != len(points) or np.isnan(run_times[:, there]).all(axis=2).any():
        return None
    run_times, several = run_times[:, there], len(parameters) > 1
    made = _models(points if several else points[:, 0], run_times, options, priors)
    made = made if several else made.steadied()
    centres = modeling.centre(run_times, made.aggregate)
    return _fitted(program, metric, options, points, made, centres, settings)


def _models(
    points: FloatArray,
    values: FloatArray,
    options: FitOptions,
    priors: FittedPriors | None,
    each: MapLike = map,
) -> Models:
    """Return the models of some rows with the options of `fit`."""
    return modeling.fit(
        points,
        values,
        method=options.method,
        space=options.space,
        folds=options.folds,
        aggregate=options.aggregate,
        confidence=options.confidence,
        priors=priors,
        each=each,
    )


def _fitted(
    experiment: Experiment,
    metric: Metric,
    options: FitOptions,
    points: FloatArray,
    models: Models,
    centres: FloatArray,
    settings: dict[str, str],
) -> Fitted:
    """Return models over points [K, D], with their experiment, metric and options."""
    parameters = _parameters(experiment, options)
    if len(parameters) > 1:
        surface = Surface(parameters, models)
        return sliced(experiment, metric, surface, settings, (), options.parameter)
    return Fitted(
        experiment=experiment,
        metric=metric,
        parameter=parameters[0],
        points=points[:, 0],
        measured=centres,
        models=models,
        settings=settings,
        findings=(),
    )


def sharing(options: FitOptions, rows: int, parameters: int) -> WorkerPool:
    """Return the workers for `rows`: threads if most of the work is in the engine in C.

    Sums of products, which only three parameters or more need, are made in Python.
    """
    seconds = rows * _SECONDS_PER_ROW[min(parameters, len(_SECONDS_PER_ROW)) - 1]
    threads = options.method == "mixture" and parameters < len(_SECONDS_PER_ROW)
    count = worth(options.jobs, seconds, threads=threads)
    return WorkerPool(count, threads=threads, executor=options.executor)


def _parameters(experiment: Experiment, options: FitOptions) -> tuple[str, ...]:
    """Return the parameters of the models; an error mentions runs that were excluded."""
    try:
        return experiment.modelled_parameters(options.parameter)
    except DataError as error:
        left_out = [each for each in experiment.findings if each.code in _LEFT_OUT]
        if not left_out or experiment.parameters:
            raise
        first = f"{left_out[0].subject}: {left_out[0].message}"
        raise DataError(
            f"{error.message}; {len(left_out)} excluded, the first is {first}", hint=error.hint
        ) from error


def _check_method(options: FitOptions) -> None:
    if options.method == "classic":
        if options.aggregate in ("midrange", "trimmed", "first-quartile"):
            raise UsageError(
                f"--aggregate {options.aggregate}: the classic method does not support it",
                hint="median, mean or min; or --method mixture",
            )
    elif options.folds is not None:
        raise UsageError(
            "--folds: the mixture method does not cross-validate", hint="--method classic"
        )


def _check_points(points: FloatArray, parameters: tuple[str, ...], options: FitOptions) -> None:
    several, least = len(parameters) > 1, modeling.MIN_POINTS[options.method]
    fix = as_option(dict(zip(parameters[1:], _most_common(points[:, 1:]), strict=True)))
    if several and (options.method == "classic" or len(parameters) > modeling.MOST_PARAMETERS):
        most = 1 if options.method == "classic" else modeling.MOST_PARAMETERS
        raise DataError(
            f"{len(parameters)} parameters vary ({', '.join(parameters)}): the {options.method} "
            f"method models {most}",
            hint=f"fix others, e.g. --where {shell_word(fix)}",
        )
    for parameter, column in zip(parameters, points.T, strict=True):
        values = np.unique(column)
        if values[0] <= 0:
            raise DataError(
                f"{setting_text({parameter: values[0]})}: models need positive values",
                hint=f"if {parameter} numbers kinds of runs, choose one with --where "
                f"{shell_word(f'{parameter}={values[-1]:g}')}, or rank each with --group-by "
                f"{shell_word(parameter)} (if 0 is a size, exclude it with --where "
                f"{shell_word(f'{parameter}>0')})",
            )
        if len(values) < least:
            listed = ", ".join(f"{value:g}" for value in values)
            fixed = as_option({parameter: float(_most_common(column[:, None])[0])})
            raise DataError(
                f"{counted(len(values), 'point')} of {parameter} ({listed}): too few for a model",
                hint=f"measure at {least} scales at least, better at {RECOMMENDED_POINTS} or more"
                + "; `cpmodel excess` compares two" * (len(values) > 1)
                + (f"; or fix it: --where {shell_word(fixed)}" if several else ""),
            )


def _most_common(settings: FloatArray) -> FloatArray:
    """Return the row that occurs most often, and the largest of several, [parameters]."""
    rows, count = np.unique(settings, axis=0, return_counts=True)
    return np.asarray(rows[np.flatnonzero(count == count.max())[-1]])


def fit_settings(experiment: Experiment, options: FitOptions) -> dict[str, str]:
    """Return everything that decides the models of an experiment, as text.

    A store finds its models by it.
    """
    if not experiment.parameters:
        name = options.parameter or main_parameter(experiment.constants) or UNKNOWN_SCALE
        return _settings(options, (name,))
    return _settings(options, _parameters(experiment, options))


def _settings(options: FitOptions, parameters: tuple[str, ...]) -> dict[str, str]:
    several = len(parameters) > 1
    space = options.space or modeling.default_space(options.method, several=several)
    return {
        "parameter": ",".join(parameters),
        "method": options.method,
        "repetitions": options.aggregate,
        "cross-validation": "leave-one-out" if options.folds is None else f"{options.folds} folds",
        "confidence": f"{options.confidence:g}",
        "hypotheses": json.dumps(space.to_header()),
    }


def fit_options_of(fitted: Fitted, like: FitOptions | None = None) -> FitOptions:
    """Return the options of existing models, with the workers of `like`."""
    like = like or FitOptions()
    settings, models = fitted.settings, fitted.models
    folds = settings["cross-validation"].removesuffix(" folds")
    return FitOptions(
        parameter=fitted.parameter,
        method="classic" if models.method == "classic" else "mixture",
        space=models.space,
        folds=int(folds) if folds.isdecimal() else None,
        aggregate=settings["repetitions"],  # type: ignore[arg-type] # as it was given
        confidence=models.confidence,
        jobs=like.jobs,
        executor=like.executor,
    )


def explain(ranking: Ranking, row: int) -> Cause | None:
    """Return why the time of a call path grows.

    Parameters
    ----------
    ranking : ranking by a time; the other additive metrics of its experiment are the requirements
    row : number of the call path

    Returns
    -------
    Cause or None
        None if the ranking is not by a time, or if the call path has no time.

    Raises
    ------
    UsageError
        If there is no such call path.

    References
    ----------
    Calotoiu, Hoefler, Poke, Wolf: Using Automated Performance Modeling to Find Scalability Bugs in
    Complex Codes (SC 2013), section 4, for requirement models.
    """
    check_type(ranking, Ranking, "ranking")
    chosen = int(ranking.fitted.experiment.tree.chosen([row])[0])
    return explain_all(ranking, [chosen]).get(chosen)


def explain_all(ranking: Ranking, rows: Sequence[int]) -> dict[int, Cause]:
    """Return the causes of growth of call paths by row, without call paths that have no time.

    Inclusive values of call paths with callees have no causes, because calls of different functions
    have different costs. One or two scales show no causes.
    """
    if ranking.fitted.is_measured_only:
        return {}
    tree = ranking.fitted.experiment.tree
    asked = [row for row in rows if not (ranking.inclusive and tree.end[row] > row + 1)]
    found = find_causes(ranking.fitted, ranking.target, asked, examine_all=True) if asked else None
    if found is None:
        return {}
    causes = {row: found.at(row) for row in asked}
    return {row: cause for row, cause in causes.items() if cause is not None and cause.is_examined}
