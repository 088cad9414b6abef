"""Experiment -> models -> ranking: what every front end calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from callpath_modeler import modeling, store
from callpath_modeler.analysis.rank import By, Ranking, rank
from callpath_modeler.analysis.repetitions import repetition_findings
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.loading import LoadOptions, load, parse_number
from callpath_modeler.modeling import Aggregate, FitStatus, Method, Models, SearchSpace
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.readers.assemble import Progress

RECOMMENDED_POINTS = 5
LIMITS = (1e-30, 1e30)
"""Bounds of a finite target: powers of it are to remain numbers."""

FAR = 16
"""From this multiple of the largest scale on, a prediction comes with a warning."""


@dataclass(frozen=True, slots=True)
class FitOptions:
    """How to model.

    Attributes
    ----------
    parameter : the parameter of the models; None = p if it varies
    method : a probability for every hypothesis, or one chosen by cross-validation
    space : the terms of hypotheses; None = those of the method
    folds : number of folds of the classic cross-validation; None = leave one out
    aggregate : how repetitions become one value
    confidence : probability that a band is to hold
    """

    parameter: str | None = None
    method: Method = "mixture"
    space: SearchSpace | None = None
    folds: int | None = None
    aggregate: Aggregate = "auto"
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the models, in the words of the command line.

    Attributes
    ----------
    target, at : the target scale as ``"4096"`` or ``"p=4096"``; one of them
    metric : which metric; None = the run time
    inclusive : of call paths with all that they call
    """

    target: str | None = None
    at: str | None = None
    metric: str | None = None
    inclusive: bool = False


def parse_target(target: str | None, at: str | None) -> tuple[str | None, float | None]:
    """Return the parameter and value that ``--target`` and ``--at`` stand for.

    ``--target 4096`` is short for ``--at p=4096`` when p is what is modelled.
    """
    if target is not None and at is not None:
        raise UsageError("--target and --at say the same", hint="give one of them")
    if target is None and at is None:
        return None, None
    name, _, text = (at or "").rpartition("=") if at else ("", "", target or "")
    if at and ("," in at or not name):
        raise UsageError(
            f"--at {at!r} is malformed",
            hint="models have one parameter: --at p=4096; fix the others with --where",
        )
    value = parse_number(text, "target")
    if not value > 0:
        raise UsageError(f"target {text} is not positive", hint="e.g. --target 4096")
    if not LIMITS[0] <= value <= LIMITS[1] and "inf" not in text.lower():
        raise UsageError(
            f"target {text} is out of bounds", hint="--target inf ranks by growth alone"
        )
    return name.strip() or None, value


def fit(
    experiment: Experiment, metric: str | None = None, options: FitOptions | None = None
) -> Fitted:
    """Model one metric of every call path.

    Raises
    ------
    DataError
        If the runs do not allow any model.
    UsageError
        If there is no such metric or parameter, or more folds than points.
    """
    options = options or FitOptions()
    chosen = experiment.metric(metric)
    parameter = _parameter(experiment, options)
    points, values = experiment.by_point(chosen.name, parameter)
    measured = ~np.isnan(values).all(axis=(0, 2))
    points, values = points[measured], values[:, measured]
    _check_points(points, parameter, modeling.MIN_POINTS[options.method])
    _check_method(options)
    if options.folds is not None and options.folds > len(points):
        raise UsageError(
            f"--folds {options.folds}: there are {len(points)} points of {parameter}",
            hint=f"2 to {len(points)}; without it one point is left out at a time",
        )
    models = modeling.fit(
        points,
        values,
        method=options.method,
        space=options.space,
        folds=options.folds,
        aggregate=options.aggregate,
        confidence=options.confidence,
    )
    centres = modeling.centre(values, models.aggregate)
    return Fitted(
        experiment=experiment,
        metric=chosen,
        parameter=parameter,
        points=points,
        measured=centres,
        models=models,
        settings=_settings(options, parameter),
        findings=(
            *repetition_findings(experiment, chosen.name),
            *_covariates(experiment, parameter),
            *_fit_findings(models, points, centres),
        ),
    )


def _parameter(experiment: Experiment, options: FitOptions) -> str:
    """Return the parameter to model in; where there is none, a run left out may be the reason."""
    try:
        return experiment.modelled_parameter(options.parameter)
    except DataError as error:
        left_out = [finding for finding in experiment.findings if finding.code == "CPM101"]
        if not left_out or experiment.parameters:
            raise
        first = f"{left_out[0].subject}: {left_out[0].message}"
        raise DataError(
            f"{error.message}; {len(left_out)} left out, the first is {first}", hint=error.hint
        ) from error


def _check_method(options: FitOptions) -> None:
    if options.method == "classic":
        if options.aggregate in ("midrange", "trimmed", "first-quartile"):
            raise UsageError(
                f"--aggregate {options.aggregate}: the classic method does not know it",
                hint="median, mean or min; or --method mixture",
            )
    elif options.folds is not None:
        raise UsageError(
            "--folds: the mixture method does not cross-validate", hint="--method classic"
        )


def _covariates(experiment: Experiment, parameter: str) -> list[Finding]:
    """Name the parameters that change together with the one that is modelled."""
    others = [other for other in experiment.parameters if other.name != parameter]
    return [
        Finding("CPM116", other.name, f"{len(other.values)} values over those of {parameter}")
        for other in others
    ]


def _check_points(points: NDArray[np.float64], parameter: str, least: int) -> None:
    if points[0] <= 0:
        raise DataError(
            f"{parameter} = {points[0]:g}: models need positive values",
            hint=f"leave such runs out with --where '{parameter}>0'",
        )
    if len(points) < least:
        listed = ", ".join(f"{point:g}" for point in points)
        raise DataError(
            f"{len(points)} points of {parameter} ({listed}): too few for a model",
            hint=f"measure at {least} scales at least, better at {RECOMMENDED_POINTS} or more",
        )


def _settings(options: FitOptions, parameter: str) -> dict[str, str]:
    """Return everything that decides a model, as text: what a stored model is known by."""
    space = options.space or modeling.default_space(options.method)
    return {
        "parameter": parameter,
        "method": options.method,
        "repetitions": options.aggregate,
        "cross-validation": "leave-one-out" if options.folds is None else f"{options.folds} folds",
        "confidence": f"{options.confidence:g}",
        "hypotheses": json.dumps(space.to_header()),
    }


def fit_options_of(fitted: Fitted) -> FitOptions:
    """Return the options that models were fitted with."""
    settings, models = fitted.settings, fitted.models
    folds = settings["cross-validation"].removesuffix(" folds")
    return FitOptions(
        parameter=fitted.parameter,
        method="classic" if models.method == "classic" else "mixture",
        space=models.space,
        folds=int(folds) if folds.isdecimal() else None,
        aggregate=settings["repetitions"],  # type: ignore[arg-type] # as it was given
        confidence=models.confidence,
    )


def _fit_findings(
    models: Models, points: NDArray[np.float64], centres: NDArray[np.float64]
) -> list[Finding]:
    total = np.nansum(centres)
    found = []
    for code, status, words in (
        ("CPM201", FitStatus.TOO_FEW_POINTS, "occur at too few points for a model"),
        ("CPM202", FitStatus.OUTSIDE, "deviate from every model by more than their noise"),
        ("CPM203", FitStatus.NOISY, "vary more between repetitions than between points"),
    ):
        rows = models.status == status
        if rows.any():
            share = np.nansum(centres[rows]) / total if total > 0 else 0.0
            message = f"{int(rows.sum())} call paths, {share:.1%} of the cost, {words}"
            found.append(Finding(code, "models", message, int(rows.sum())))
    if len(points) < RECOMMENDED_POINTS:
        found.append(Finding("CPM204", "models", f"{len(points)} points"))
    return found


def models_of(
    sources: Sequence[str | Path],
    metric: str | None = None,
    load_options: LoadOptions | None = None,
    fit_options: FitOptions | None = None,
    progress: Progress | None = None,
) -> Fitted:
    """Load and fit; a stored experiment that holds such models is not fitted again.

    Without any wish of how to model, the models stored are the ones that are meant.
    """
    load_options, fit_options = load_options or LoadOptions(), fit_options or FitOptions()
    experiment = load(sources, load_options, progress)
    return models_of_loaded(experiment, sources, metric, load_options, fit_options)


def models_of_loaded(
    experiment: Experiment,
    sources: Sequence[str | Path],
    metric: str | None,
    load_options: LoadOptions,
    fit_options: FitOptions,
) -> Fitted:
    """Fit what `load` made of `sources`, unless such models are stored with it."""
    if len(sources) == 1 and store.is_stored(path := Path(sources[0])) and not load_options.where:
        settings = None
        if fit_options != FitOptions():
            settings = _settings(fit_options, experiment.modelled_parameter(fit_options.parameter))
        found = store.read_models(path, experiment, experiment.metric(metric).name, settings)
        if found is not None:
            return found
    return fit(experiment, metric, fit_options)


def ranking_of(
    sources: Sequence[str | Path],
    question: Question,
    *,
    by: str = "value",
    load_options: LoadOptions | None = None,
    fit_options: FitOptions | None = None,
    progress: Progress | None = None,
    default_factor: float | None = None,
) -> tuple[Ranking, tuple[Finding, ...]]:
    """Load, fit and rank; return the ranking and all findings.

    Parameters and errors are those of `asked_of`.
    """
    fitted, value = asked_of(
        sources,
        question,
        load_options=load_options,
        fit_options=fit_options,
        progress=progress,
        default_factor=default_factor,
    )
    ranking = rank(fitted, value, By(by), inclusive=question.inclusive)
    return ranking, findings_at(fitted, value)


def asked_of(
    sources: Sequence[str | Path],
    question: Question,
    *,
    load_options: LoadOptions | None = None,
    fit_options: FitOptions | None = None,
    progress: Progress | None = None,
    default_factor: float | None = None,
) -> tuple[Fitted, float]:
    """Load and fit; return the models and the target.

    Parameters
    ----------
    question : what is asked, in the words of the command line
    default_factor : without a target, predict at this multiple of the largest scale

    Raises
    ------
    UsageError
        If there is no target, or it is not one.
    """
    name, value = parse_target(question.target, question.at)
    if value is None and default_factor is None:
        raise UsageError("no target scale", hint="give --target 262144, or --target inf for growth")
    load_options, fit_options = load_options or LoadOptions(), fit_options or FitOptions()
    if name is not None:
        fit_options = replace(fit_options, parameter=name)
    metric = question.metric
    if metric is not None:
        load_options = replace(load_options, read=replace(load_options.read, metrics=(metric,)))
    fitted = models_of(sources, metric, load_options, fit_options, progress)
    if value is None:
        value = float(fitted.points[-1]) * (default_factor or 1.0)
    return fitted, checked_target(fitted, value)


def checked_target(fitted: Fitted, value: float) -> float:
    """Return a target if the models can be asked about it.

    Raises
    ------
    UsageError
        If it is a fraction of a process.
    """
    if value < 1 <= fitted.points[0]:
        raise UsageError(
            f"target {value:g} is below 1, the runs are not", hint="e.g. --target 4096"
        )
    return value


def findings_at(fitted: Fitted, target: float) -> tuple[Finding, ...]:
    """Return what a user should know about the data, the models and the target."""
    found = [*fitted.experiment.findings, *fitted.findings]
    factor = target / fitted.points[-1]
    if FAR <= factor < np.inf:
        message = f"{fitted.parameter} = {target:g} is {factor:.0f} times the largest run"
        found.append(Finding("CPM205", "target", message))
    return tuple(found)
