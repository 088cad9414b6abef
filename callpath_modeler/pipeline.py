"""Experiment -> models -> ranking: what every front end calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from callpath_modeler import modeling, store
from callpath_modeler.analysis.rank import By, Ranking, rank
from callpath_modeler.analysis.repetitions import repetition_findings
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.fitted import Fitted, Surface, sliced
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
    target, at : the target scale as ``"4096"`` or ``"p=4096,n=1e6"``; one of them
    metric : which metric; None = the run time
    inclusive : of call paths with all that they call
    """

    target: str | None = None
    at: str | None = None
    metric: str | None = None
    inclusive: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """Where to predict.

    Attributes
    ----------
    value : of the main parameter; None = not said
    named : values of parameters by name, in the order given
    """

    value: float | None = None
    named: Mapping[str, float] = field(default_factory=dict)

    @property
    def parameter(self) -> str | None:
        """The parameter that the target is along: p if it is named, else the first."""
        return "p" if "p" in self.named else next(iter(self.named), None)

    def alone(self) -> tuple[str | None, float | None]:
        """Return the parameter and its value; None = not said.

        Raises
        ------
        UsageError
            If several parameters are named.
        """
        if len(self.named) > 1:
            raise UsageError(
                f"--at names {', '.join(self.named)}: here only one parameter can be told",
                hint="fix the others, e.g. --where 'n=30'",
            )
        return self.parameter, self.named.get(self.parameter or "", self.value)


def parse_target(target: str | None, at: str | None) -> Target:
    """Return what ``--target`` and ``--at`` stand for.

    ``--target 4096`` is short for ``--at p=4096`` when p is what is modelled.
    """
    if target is not None and at is not None:
        raise UsageError("--target and --at say the same", hint="give one of them")
    if target is not None:
        return Target(_scale(target))
    named: dict[str, float] = {}
    for part in at.split(",") if at is not None else ():
        name, _, text = (piece.strip() for piece in part.partition("="))
        if not name or not text or name in named:
            raise UsageError(f"--at {at!r} is malformed", hint="e.g. --at p=4096 or p=4096,n=1e6")
        named[name] = _scale(text)
    found = Target(named=named)
    if sum(np.isinf(list(named.values()))) > (np.isinf(named.get(found.parameter or "", 1.0))):
        raise UsageError(
            f"--at {at!r}: only {found.parameter} may be infinite", hint="give the others a value"
        )
    return found


def _scale(text: str) -> float:
    value = parse_number(text, "target")
    if not value > 0:
        raise UsageError(f"target {text} is not positive", hint="e.g. --target 4096")
    if not LIMITS[0] <= value <= LIMITS[1] and "inf" not in text.lower():
        raise UsageError(
            f"target {text} is out of bounds", hint="--target inf ranks by growth alone"
        )
    return value


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
    parameters = _parameters(experiment, options)
    points, values = experiment.by_setting(chosen.name, parameters)
    measured = ~np.isnan(values).all(axis=(0, 2))
    points, values = points[measured], values[:, measured]
    _check_points(points, parameters, options)
    _check_method(options)
    if options.folds is not None and options.folds > len(points):
        raise UsageError(
            f"--folds {options.folds}: there are {len(points)} points of {parameters[0]}",
            hint=f"2 to {len(points)}; without it one point is left out at a time",
        )
    models = modeling.fit(
        points if len(parameters) > 1 else points[:, 0],
        values,
        method=options.method,
        space=options.space,
        folds=options.folds,
        aggregate=options.aggregate,
        confidence=options.confidence,
    )
    centres = modeling.centre(values, models.aggregate)
    findings = (
        *repetition_findings(experiment, chosen.name),
        *_covariates(experiment, parameters),
        *_fit_findings(models, points, parameters, centres),
    )
    settings = _settings(options, parameters)
    if len(parameters) > 1:
        surface = Surface(parameters, models)
        return sliced(experiment, chosen, surface, settings, findings, options.parameter)
    return Fitted(
        experiment=experiment,
        metric=chosen,
        parameter=parameters[0],
        points=points[:, 0],
        measured=centres,
        models=models,
        settings=settings,
        findings=findings,
    )


def _parameters(experiment: Experiment, options: FitOptions) -> tuple[str, ...]:
    """Return the parameters to model in; where there is none, a run left out may be the reason."""
    try:
        # In which one of several a user is interested does not change the models.
        several = experiment.modelled_parameters()
        if len(several) > 1 and (options.parameter is None or options.parameter in several):
            return several
        return experiment.modelled_parameters(options.parameter)
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


def _covariates(experiment: Experiment, parameters: tuple[str, ...]) -> list[Finding]:
    """Name the parameters that change together with those that are modelled."""
    others = [other for other in experiment.parameters if other.name not in parameters]
    main = parameters[0]
    return [
        Finding("CPM116", other.name, f"{len(other.values)} values over those of {main}")
        for other in others
    ]


def _check_points(
    points: NDArray[np.float64], parameters: tuple[str, ...], options: FitOptions
) -> None:
    several, least = len(parameters) > 1, modeling.MIN_POINTS[options.method]
    fix = ",".join(f"{name}={points[-1, k]:g}" for k, name in enumerate(parameters) if k)
    if several and (options.method == "classic" or len(parameters) > modeling.MOST_PARAMETERS):
        most = 1 if options.method == "classic" else modeling.MOST_PARAMETERS
        raise DataError(
            f"{len(parameters)} parameters vary ({', '.join(parameters)}): the {options.method} "
            f"method models {most}",
            hint=f"fix others, e.g. --where '{fix}'",
        )
    for parameter, column in zip(parameters, points.T, strict=True):
        values = np.unique(column)
        if values[0] <= 0:
            raise DataError(
                f"{parameter} = {values[0]:g}: models need positive values",
                hint=f"leave such runs out with --where '{parameter}>0'",
            )
        if len(values) < least:
            listed = ", ".join(f"{value:g}" for value in values)
            fixed = f"{parameter}={values[-1]:g}" if parameter != parameters[0] else fix
            raise DataError(
                f"{len(values)} points of {parameter} ({listed}): too few for a model",
                hint=f"measure at {least} scales at least, better at {RECOMMENDED_POINTS} or more"
                + (f"; or fix it: --where '{fixed}'" if several else ""),
            )


def _settings(options: FitOptions, parameters: tuple[str, ...]) -> dict[str, str]:
    """Return everything that decides a model, as text: what a stored model is known by."""
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
    models: Models,
    points: NDArray[np.float64],
    parameters: tuple[str, ...],
    centres: NDArray[np.float64],
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
    for parameter, column in zip(parameters, points.T, strict=True):
        if (count := len(np.unique(column))) < RECOMMENDED_POINTS:
            found.append(Finding("CPM204", "models", f"{count} points of {parameter}"))
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
            settings = _settings(fit_options, _parameters(experiment, fit_options))
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
    target = parse_target(question.target, question.at)
    if target == Target() and default_factor is None:
        raise UsageError("no target scale", hint="give --target 262144, or --target inf for growth")
    load_options, fit_options = load_options or LoadOptions(), fit_options or FitOptions()
    if target.parameter is not None:
        fit_options = replace(fit_options, parameter=target.parameter)
    metric = question.metric
    if metric is not None:
        load_options = replace(load_options, read=replace(load_options.read, metrics=(metric,)))
    fitted = held_at(models_of(sources, metric, load_options, fit_options, progress), target)
    value = target.named.get(fitted.parameter, target.value)
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


def held_at(fitted: Fitted, target: Target) -> Fitted:
    """Return the models along the parameter of the target, with others held where it says.

    Raises
    ------
    UsageError
        If the target names a parameter that the models do not have.
    """
    surface = fitted.surface
    known = surface.parameters if surface else (fitted.parameter,)
    for name in target.named:
        if name not in known:
            raise UsageError(
                f"the models have no parameter {name!r}", hint=f"parameters: {', '.join(known)}"
            )
    chosen = target.parameter or fitted.parameter
    held = {name: value for name, value in target.named.items() if name != chosen}
    return fitted.holding(held, chosen)


def findings_at(fitted: Fitted, target: float) -> tuple[Finding, ...]:
    """Return what a user should know about the data, the models and the target."""
    found = [*fitted.experiment.findings, *fitted.findings]
    largest = {fitted.parameter: float(fitted.points[-1])}
    if fitted.surface:
        largest |= {name: fitted.surface.largest(name) for name in fitted.held}
    for name, value in {fitted.parameter: target, **fitted.held}.items():
        factor = value / largest[name]
        if FAR <= factor < np.inf:
            message = f"{name} = {value:g} is {factor:.0f} times the largest run"
            found.append(Finding("CPM205", "target", message))
    for name in fitted.assumed:
        message = f"{name} = {fitted.held[name]:g}, the largest measured"
        found.append(Finding("CPM206", "target", message))
    return tuple(found)
