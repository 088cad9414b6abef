"""Sources -> experiment -> models: what every front end calls."""

from __future__ import annotations

import glob
import json
import operator
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from callpath_modeler import modeling, store
from callpath_modeler.analysis.rank import By, Ranking, rank
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, InputError, UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import DEFAULT_SPACE, FitStatus, Models, SearchSpace
from callpath_modeler.profile.experiment import Aggregate, Experiment
from callpath_modeler.readers.assemble import Progress, ReadOptions, assemble
from callpath_modeler.readers.base import Agreement, VerifyingReader
from callpath_modeler.readers.discover import discover, write_manifest
from callpath_modeler.readers.registry import Registry

_COMPARE = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_CONDITION = re.compile(r"\s*([A-Za-z_]\w*)\s*(>=|<=|!=|==|=|>|<)\s*([^\s]+)\s*")
RECOMMENDED_POINTS = 5
LIMITS = (1e-30, 1e30)
"""Bounds of a finite target: powers of it are to remain numbers."""

FAR = 16
"""From this multiple of the largest scale on, a prediction comes with a warning."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Which runs to take, and how to read them.

    Attributes
    ----------
    read : what to read of each profile
    where : conditions on parameters, e.g. ``"p>=64,n=30"``
    name_pattern : pattern of run names, e.g. ``"app.p{p}.r{rep}"``
    reader : name of the reader; None = recognise
    """

    read: ReadOptions = field(default_factory=ReadOptions)
    where: str = ""
    name_pattern: str | None = None
    reader: str | None = None


@dataclass(frozen=True, slots=True)
class FitOptions:
    """How to model.

    Attributes
    ----------
    inclusive : model inclusive values instead of exclusive ones
    parameter : the parameter of the models; None = p if it varies
    space : the hypotheses
    folds : number of folds of the cross-validation; None = leave one out
    aggregate : how repetitions become one value
    confidence : probability that a band is to hold
    """

    inclusive: bool = False
    parameter: str | None = None
    space: SearchSpace = DEFAULT_SPACE
    folds: int | None = None
    aggregate: Aggregate = "median"
    confidence: float = 0.95


def load(
    sources: Sequence[str | Path],
    options: LoadOptions | None = None,
    progress: Progress | None = None,
) -> Experiment:
    """Read profiles, directories of runs, globs, manifests, or one stored experiment.

    Raises
    ------
    InputError
        If nothing can be read.
    DataError
        If what was read does not belong together, or `where` leaves no run.
    UsageError
        If an option makes no sense.
    """
    options = options or LoadOptions()
    paths = _expand(sources)
    stored = [path for path in paths if store.is_stored(path)]
    if stored:
        if len(paths) > 1:
            raise UsageError(
                f"{stored[0]}: a stored experiment stands alone",
                hint="give either one .cpm or profiles",
            )
        experiment = _opened(stored[0], options)
    else:
        registry = Registry.of_installed(options.reader)
        files = discover(paths, registry, name_pattern=options.name_pattern)
        experiment = assemble(files, registry, options.read, progress)
    return experiment.where(_kept(experiment, options.where)) if options.where else experiment


def _opened(path: Path, options: LoadOptions) -> Experiment:
    """Open a stored experiment, or refuse an option that only reading profiles can heed."""
    experiment = store.read_experiment(path)
    read = options.read
    refused = {
        "--locations": read.locations not in {None, experiment.reduction},
        "--param": bool(read.parameter_sources),
        "--name": options.name_pattern is not None,
        "--reader": options.reader is not None,
    }
    for option, is_given in refused.items():
        if is_given:
            raise UsageError(
                f"{path}: {option} says how to read profiles; this store holds what was read "
                f"({experiment.reduction} over processes)",
                hint=f"cpmodel fit PROFILES {option} ... -o NAME.cpm",
            )
    if read.scaling is not None:
        experiment = replace(experiment, scaling=read.scaling, scaling_reason="as told")
    return experiment


def _profiles(sources: Sequence[str | Path]) -> list[Path]:
    paths = _expand(sources)
    for path in paths:
        if store.is_stored(path):
            raise UsageError(f"{path}: holds no profiles", hint="give the profiles themselves")
    return paths


def _expand(sources: Sequence[str | Path]) -> list[Path]:
    paths: list[Path] = []
    for source in sources:
        text = str(source)
        # A shell that finds no match hands the pattern through; so do scripts and Windows.
        if not Path(text).exists() and glob.has_magic(text):
            found = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - may be absolute
            if not found:
                raise InputError(f"{text}: no file matches", hint="check the directory")
            paths += [Path(path) for path in found]
        else:
            paths.append(Path(text))
    return paths


def _kept(experiment: Experiment, conditions: str) -> NDArray[np.bool_]:
    keep = np.ones(len(experiment.runs), bool)
    for condition in conditions.split(","):
        parsed = _CONDITION.fullmatch(condition)
        if parsed is None:
            raise UsageError(
                f"condition {condition!r} is malformed", hint="e.g. --where 'p>=64,n=30'"
            )
        name, sign, text = parsed.groups()
        known = experiment.runs[0].parameters
        if name not in known:
            raise UsageError(
                f"no parameter {name!r} in --where", hint=f"parameters: {', '.join(known)}"
            )
        compare = _COMPARE["=" if sign == "==" else sign]
        bound = parse_number(text, name)
        keep &= [bool(compare(run.parameters[name], bound)) for run in experiment.runs]
    if not keep.any():
        raise DataError(f"no run is left where {conditions}", hint="see `cpmodel info`")
    return keep


def parse_number(text: str, what: str) -> float:
    """Return the number that `text` writes, or raise `UsageError` naming `what`."""
    try:
        return float(text)
    except ValueError:
        raise UsageError(
            f"{what}: {text!r} is not a number", hint="e.g. 4096, 1e6 or inf"
        ) from None


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
    parameter = experiment.modelled_parameter(options.parameter)
    points, values = experiment.by_point(chosen.name, parameter, inclusive=options.inclusive)
    _check_points(points, parameter)
    if options.folds is not None and options.folds > len(points):
        raise UsageError(
            f"--folds {options.folds}: there are {len(points)} points of {parameter}",
            hint=f"2 to {len(points)}; without it one point is left out at a time",
        )
    models = modeling.fit(
        points,
        values,
        space=options.space,
        folds=options.folds,
        aggregate=options.aggregate,
        confidence=options.confidence,
    )
    centres = modeling.centre(values, options.aggregate)
    return Fitted(
        experiment=experiment,
        metric=chosen,
        inclusive=options.inclusive,
        parameter=parameter,
        points=points,
        measured=centres,
        models=models,
        settings=_settings(options, parameter),
        findings=(
            *_covariates(experiment, parameter),
            *_fit_findings(models, points, centres),
        ),
    )


def _covariates(experiment: Experiment, parameter: str) -> list[Finding]:
    """Name the parameters that change together with the one that is modelled."""
    others = [other for other in experiment.parameters if other.name != parameter]
    return [
        Finding("CPM116", other.name, f"{len(other.values)} values over those of {parameter}")
        for other in others
    ]


def _check_points(points: NDArray[np.float64], parameter: str) -> None:
    if points[0] <= 0:
        raise DataError(
            f"{parameter} = {points[0]:g}: models need positive values",
            hint=f"leave such runs out with --where '{parameter}>0'",
        )
    if len(points) < modeling.MIN_POINTS:
        listed = ", ".join(f"{point:g}" for point in points)
        raise DataError(
            f"{len(points)} points of {parameter} ({listed}): too few for a model",
            hint=f"measure at {modeling.MIN_POINTS} scales at least, better at "
            f"{RECOMMENDED_POINTS} or more",
        )


def _settings(options: FitOptions, parameter: str) -> dict[str, str]:
    """Return everything that decides a model, as text: what a stored model is known by."""
    return {
        "parameter": parameter,
        "values": "inclusive" if options.inclusive else "exclusive",
        "repetitions": options.aggregate,
        "cross-validation": "leave-one-out" if options.folds is None else f"{options.folds} folds",
        "confidence": f"{options.confidence:g}",
        "hypotheses": json.dumps(options.space.to_header()),
    }


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
    """Load and fit; a stored experiment that holds these very models is not fitted again."""
    load_options, fit_options = load_options or LoadOptions(), fit_options or FitOptions()
    experiment = load(sources, load_options, progress)
    if len(sources) == 1 and store.is_stored(path := Path(sources[0])) and not load_options.where:
        settings = _settings(fit_options, experiment.modelled_parameter(fit_options.parameter))
        found = store.read_models(path, experiment, experiment.metric(metric).name, settings)
        if found is not None:
            return found
    return fit(experiment, metric, fit_options)


def ranking_of(
    sources: Sequence[str | Path],
    *,
    target: str | None,
    at: str | None = None,
    by: str = "value",
    metric: str | None = None,
    load_options: LoadOptions | None = None,
    fit_options: FitOptions | None = None,
    progress: Progress | None = None,
    default_factor: float | None = None,
) -> tuple[Ranking, tuple[Finding, ...]]:
    """Load, fit and rank at a target written as text; return the ranking and all findings.

    Parameters
    ----------
    target, at : the target as ``"4096"`` or ``"p=4096"``; one of them
    default_factor : without a target, predict at this multiple of the largest scale

    Raises
    ------
    UsageError
        If there is no target, or it is not one.
    """
    name, value = parse_target(target, at)
    if value is None and default_factor is None:
        raise UsageError("no target scale", hint="give --target 262144, or --target inf for growth")
    load_options, fit_options = load_options or LoadOptions(), fit_options or FitOptions()
    if name is not None:
        fit_options = replace(fit_options, parameter=name)
    if metric is not None:
        load_options = replace(load_options, read=replace(load_options.read, metrics=(metric,)))
    fitted = models_of(sources, metric, load_options, fit_options, progress)
    if value is None:
        value = float(fitted.points[-1]) * (default_factor or 1.0)
    ranking = rank(fitted, value, By(by))
    findings = [*fitted.experiment.findings, *fitted.findings]
    factor = value / fitted.points[-1]
    if FAR <= factor < np.inf:
        message = f"{fitted.parameter} = {value:g} is {factor:.0f} times the largest run"
        findings.append(Finding("CPM205", "target", message))
    return ranking, tuple(findings)


def manifest(sources: Sequence[str | Path], options: LoadOptions, directory: Path) -> str:
    """Return the text of a manifest of the runs that `sources` stand for."""
    registry = Registry.of_installed(options.reader)
    files = discover(_profiles(sources), registry, name_pattern=options.name_pattern)
    return write_manifest(files, directory)


def verify(
    sources: Sequence[str | Path], options: LoadOptions
) -> Iterator[tuple[Path, Sequence[Agreement] | None]]:
    """Read every profile with an independent reader as well, and compare value by value.

    Yields
    ------
    path, and the agreement per metric, or None where the reader has nothing to compare with
    """
    registry = Registry.of_installed(options.reader)
    for file in discover(_profiles(sources), registry, name_pattern=options.name_pattern):
        reader = registry.find(file.path)
        yield file.path, reader.verify(file.path) if isinstance(reader, VerifyingReader) else None
