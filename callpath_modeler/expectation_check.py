"""Evaluation of expectation files, for every user interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from callpath_modeler.analysis.expectations.check import Check
from callpath_modeler.analysis.expectations.clauses import read
from callpath_modeler.analysis.expectations.expectation import Expectations
from callpath_modeler.analysis.expectations.judge import Judge
from callpath_modeler.argument_checks import check_type
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.expression import Comparison
from callpath_modeler.fitted import Fitted
from callpath_modeler.pipeline import fit, fit_options_of
from callpath_modeler.question import check_names, slice_findings
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
    return judged(
        models,
        read(Path(path)),
        at,
        lambda name: fit(models.experiment, name, fit_options_of(models)).holding(
            models.said, models.parameter
        ),
    )


def judged(
    models: Fitted,
    expectations: Expectations,
    target: Mapping[str, float],
    of_metric: Callable[[str], Fitted],
) -> Check:
    """Return the results of expectations.

    Parameters
    ----------
    models : models of the metric of all expectations that name none
    expectations : the content of the file
    target : values of parameters by name, instead of those of the file
    of_metric : function that returns the models of another metric
    """
    made = {models.metric.name: models}

    def models_of(name: str | None) -> Fitted:
        if name is None:
            return models
        if name not in made:
            made[name] = of_metric(name)
        return made[name]

    outcomes = Judge(expectations, models_of, target).outcomes()
    assumed = {name: one.fitted.held[name] for one in outcomes for name in one.fitted.assumed}
    held = slice_findings(assumed, [*assumed])
    findings = (*models.experiment.findings, *models.findings, *held)
    return Check(expectations.written.path, outcomes, findings)


def blame(expectations: Expectations, cause: UsageError | DataError, parameter: str | None) -> None:
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


def metrics_to_read(
    expectations: Expectations, metrics: Sequence[str | None]
) -> tuple[str, ...] | None:
    """Return the metrics to read from profiles; empty = the run time, None = all."""
    named = tuple(dict.fromkeys(metric for metric in metrics if metric is not None))
    criteria = (one for each in expectations.expectations for one in each.criteria)
    # A name in arithmetic can only be recognised as a metric after the profiles are read.
    if any(isinstance(one, Comparison) for one in criteria):
        return None
    return named if None not in metrics or not named else None
