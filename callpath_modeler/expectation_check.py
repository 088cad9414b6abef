"""Evaluation of expectation files, for every user interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from callpath_modeler.analysis.expectations.check import Check
from callpath_modeler.analysis.expectations.expectation import Expectations
from callpath_modeler.analysis.expectations.expression import Comparison
from callpath_modeler.analysis.expectations.interpretation import read
from callpath_modeler.analysis.expectations.judge import Judge
from callpath_modeler.argument_checks import check_type
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.loading import LoadOptions
from callpath_modeler.pipeline import FitOptions, fit, fit_options_of, models_of
from callpath_modeler.readers.parallel_reading import Progress
from callpath_modeler.target_query import (
    PredictionQuery,
    check_names,
    parse_target,
    slice_at,
    slice_findings,
)
from callpath_modeler.targets import settings_of, target_of


def check(
    models: Fitted, path: str | Path, *, target: float | Mapping[str, float] | None = None
) -> Check:
    """Return the results of the expectations of a file.

    An expectation about another metric is evaluated with models of that metric. They are made with
    the same options from the same runs.

    Parameters
    ----------
    models : models of the metric of all expectations that name none
    path : the expectation file
    target : scale of the predictions, or values of parameters by name; by default the targets of
        the file

    Returns
    -------
    Check
        One outcome per expectation. ``check(...).raise_for_failures()`` is an assertion for pytest.

    Raises
    ------
    InputError
        If the file cannot be read, or if a line of it is invalid; the message begins with file and
        line.
    UsageError
        If a target is not positive, or if the models do not have its parameter.

    References
    ----------
    Shudler, Berens, Calotoiu, Hoefler, Strube, Wolf: Engineering Algorithms for Scalability through
    Continuous Validation of Performance Expectations (TPDS 30(8), 2019).
    """
    check_type(models, Fitted, "models")
    check_type(path, (str, Path), "path")
    if target is None:
        at = {}
    elif isinstance(target, Mapping):
        at = settings_of(target)
    else:
        at = {models.parameter: target_of(target)}
    check_names(models, at)
    return _check(models, read(Path(path)), at)


def _check(
    models: Fitted,
    expectations: Expectations,
    target: Mapping[str, float],
    like: FitOptions | None = None,
) -> Check:
    made = {models.metric.name: models}

    def of_metric(name: str | None) -> Fitted:
        if name is None:
            return models
        if name not in made:
            found = fit(models.experiment, name, fit_options_of(models, like))
            made[name] = found.holding(models.said, models.parameter)
        return made[name]

    outcomes = Judge(expectations, of_metric, target).outcomes()
    return Check(expectations.written.path, outcomes)


def check_of(
    sources: Sequence[str | Path],
    path: Path,
    question: PredictionQuery,
    *,
    load_options: LoadOptions | None = None,
    fit_options: FitOptions | None = None,
    progress: Progress | None = None,
) -> tuple[Check, tuple[Finding, ...]]:
    """Return the results of the expectations of a file for some runs, and all findings.

    Parameters
    ----------
    sources : sources, as for `load`
    path : the expectation file
    question : target that replaces the file's for its parameters, and the metric of expectations
        that name none
    load_options, fit_options : options of loading and of making models
    progress : called with the number of files that are read, and of all files

    Raises
    ------
    InputError
        As in `check`, before any run is read where that is possible.
    """
    expectations = read(path)
    load_options, fit_options = load_options or LoadOptions(), fit_options or FitOptions()
    asked = parse_target(question.target, question.at, fit_options.parameter)
    said = (asked.parameter, fit_options.parameter)
    parameter = asked.parameter or fit_options.parameter or expectations.parameter
    fit_options = replace(fit_options, parameter=parameter)
    metrics = [each.metric or question.metric for each in expectations.expectations]
    # The first metric need not be the run time if no expectation is about it.
    first = question.metric if None in metrics or not metrics else metrics[0]
    load_options = replace(
        load_options, read=replace(load_options.read, metrics=_wanted(expectations, metrics))
    )
    try:
        models = slice_at(models_of(sources, first, load_options, fit_options, progress), asked)
    except (UsageError, DataError) as cause:
        is_of_file = parameter is not None and parameter not in said
        _blame(expectations, cause, parameter if is_of_file else None)
        raise
    at = asked.named or ({} if asked.value is None else {models.parameter: asked.value})
    found = _check(models, expectations, at, fit_options)
    assumed = {name: one.fitted.held[name] for one in found.outcomes for name in one.fitted.assumed}
    findings = (*models.experiment.findings, *models.findings, *slice_findings(assumed, [*assumed]))
    return found, findings


def _blame(
    expectations: Expectations, cause: UsageError | DataError, parameter: str | None
) -> None:
    """Raise an error about the file if the file is the reason why models cannot be made.

    Parameters
    ----------
    expectations : the content of the file
    cause : the error of making models
    parameter : the parameter that the file demands
    """
    written = expectations.written
    places = {
        f"metric {each.metric!r}": (*each.place, "metric")
        for each in expectations.expectations
        if each.metric is not None
    }
    if parameter is not None:
        targets = (place for place in written.lines if place[-2:] == ("target", parameter))
        places[f"parameter {parameter!r}"] = next(targets, ("target",))
    for said, place in places.items():
        if said in cause.message:
            written.refuse(place, cause.message, cause.hint or "")


def reading_for(path: Path, metric: str | None, options: LoadOptions) -> LoadOptions:
    """Return the options to read all metrics that the expectations of a file need.

    Parameters
    ----------
    path : the expectation file
    metric : metric of expectations that name none; None = the run time
    options : options of loading

    Raises
    ------
    InputError
        As in `check`.
    """
    expectations = read(path)
    metrics = [metric, *(each.metric or metric for each in expectations.expectations)]
    return replace(options, read=replace(options.read, metrics=_wanted(expectations, metrics)))


def _wanted(expectations: Expectations, metrics: Sequence[str | None]) -> tuple[str, ...] | None:
    """Return the metrics to read from profiles; empty = the run time, None = all."""
    named = tuple(dict.fromkeys(metric for metric in metrics if metric is not None))
    criteria = (one for each in expectations.expectations for one in each.criteria)
    # A name in arithmetic can only be recognised as a metric after the profiles are read.
    if any(isinstance(one, Comparison) for one in criteria):
        return None
    return named if None not in metrics or not named else None
