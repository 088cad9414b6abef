"""Comparison of two experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler import modeling
from callpath_modeler.analysis.diff import Differences, ExperimentDifference
from callpath_modeler.analysis.measured_only import says_no_scale, with_unknown_scale
from callpath_modeler.analysis.pair_forecast import PairForecast, PairInputs
from callpath_modeler.analysis.pairing import common_line, pair_findings, pair_up
from callpath_modeler.argument_checks import check_probability, check_type
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import UNKNOWN_SCALE, Fitted
from callpath_modeler.loading import LoadOptions, load, load_both
from callpath_modeler.modeling import Aggregate
from callpath_modeler.notebook_repr import HtmlReprMixin
from callpath_modeler.pipeline import FitOptions, fit, fit_options_of, models_of_loaded
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.parameter_line import ParameterLine
from callpath_modeler.readers.parallel_reading import Progress
from callpath_modeler.target_query import (
    PredictionQuery,
    checked_target,
    findings_at,
    parse_target,
    slice_findings,
)
from callpath_modeler.targets import settings_of, target_of
from callpath_modeler.units import counted, parameter_value, setting_text

if TYPE_CHECKING:
    from concurrent.futures import Executor


@dataclass(frozen=True, slots=True)
class Compared(HtmlReprMixin):
    """A difference of two experiments, with findings about both.

    Attributes
    ----------
    difference : costs, ratios and significance of every call path
    base, new : findings about each experiment
    both : findings about the comparison
    """

    difference: ExperimentDifference
    base: tuple[Finding, ...]
    new: tuple[Finding, ...]
    both: tuple[Finding, ...]

    def __repr__(self) -> str:
        return f"{repr(self.difference)[:-1]}, {counted(len(self.findings), 'finding')}>"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings; each names its experiment."""
        sides = (("base", self.base), ("new", self.new))
        named = [replace(f, subject=f"{side}, {f.subject}") for side, fs in sides for f in fs]
        return (*self.both, *named)


def difference_of(
    base: Sequence[str | Path],
    new: Sequence[str | Path],
    question: PredictionQuery,
    *,
    load_options: LoadOptions | None = None,
    fit_options: FitOptions | None = None,
    progress: Progress | None = None,
) -> Compared:
    """Return the comparison of two experiments that are loaded and modelled here.

    Without a target, an experiment with too few scales for models is compared as measured. A target
    that both experiments ran at least twice is compared as measured, unless the question asks for
    predictions.

    Parameters
    ----------
    base, new : sources, as for `load`
    question : the question, in the words of the command line
    load_options, fit_options : options of loading and of making models
    progress : called with the number of files that are read, and of all files

    Raises
    ------
    UsageError, InputError, DataError
        As `load`, `fit` and `difference` do.
    """
    load_options, fit_options = load_options or LoadOptions(), fit_options or FitOptions()
    asked = parse_target(question.target, question.at, fit_options.parameter)
    target = asked.value if asked.parameter is None else asked.named[asked.parameter]
    if target is not None and np.isinf(target):
        raise UsageError(
            "--target inf: there is no difference at infinity",
            hint="give a finite target; growth before and after is always compared",
        )
    load_options = load_options.of_metric(question.metric)
    wanted = asked.parameter or fit_options.parameter
    held = {name: value for name, value in asked.named.items() if name != wanted}
    before, after, wanted = _at_scales(*load_both(base, new, load_options, progress), wanted)
    line = common_line(before, after, wanted, held)
    fit_options = replace(fit_options, parameter=wanted)

    def models(experiment: Experiment, sources: Sequence[str | Path]) -> Fitted | Experiment:
        if target is None and not _enough_points(experiment, question.metric, line, fit_options):
            return experiment
        found = models_of_loaded(experiment, sources, question.metric, load_options, fit_options)
        if target is not None:
            checked_target(found, target)
        return found

    return compare(
        models(before, base),
        models(after, new),
        target,
        metric=question.metric,
        parameter=wanted,
        held=held,
        inclusive=question.inclusive,
        confidence=fit_options.confidence,
        predicted=question.predicted,
        aggregate=fit_options.aggregate,
        jobs=fit_options.jobs,
        executor=fit_options.executor,
    )


def differences_from(
    base: Sequence[str | Path],
    new: Fitted,
    *,
    load_options: LoadOptions | None = None,
    fit_options: FitOptions | None = None,
) -> Differences:
    """Return the differences of an experiment, which is loaded here, and existing models.

    An experiment with too few scales for models is compared as measured.

    Parameters
    ----------
    base : sources, as for `load`
    new : models of the newer experiment; `base` is held at the same values
    load_options, fit_options : options of loading and of making models

    Raises
    ------
    UsageError, InputError, DataError
        As `load`, `fit` and `difference` do.
    """
    metric = new.metric.name
    load_options = (load_options or LoadOptions()).of_metric(metric)
    fit_options = fit_options or FitOptions()
    before = load(base, load_options.of_another())
    parameter = None if new.has_unknown_scale else new.parameter
    before, after, parameter = _at_scales(before, new.experiment, parameter)
    line = common_line(before, after, parameter, new.held)
    old: Fitted | Experiment = before
    if not new.is_measured_only and _enough_points(before, metric, line, fit_options):
        old = models_of_loaded(before, base, metric, load_options, fit_options)
    return differences_of(
        old,
        # Two scales that are compared have no models.
        after if new.is_measured_only else new,
        metric=metric,
        parameter=parameter,
        held=new.held,
        confidence=fit_options.confidence,
        aggregate=fit_options.aggregate,
        jobs=fit_options.jobs,
        executor=fit_options.executor,
    )


def pair_inputs(
    base: str | Path,
    fitted: Fitted,
    sources: Sequence[str | Path],
    *,
    predicted: bool = False,
    load_options: LoadOptions | None = None,
    fit_options: FitOptions | None = None,
) -> PairInputs:
    """Return an earlier experiment beside existing models, for views.

    Parameters
    ----------
    base : source of the earlier experiment
    fitted : models or measured values of the newer experiment
    sources : sources of the newer experiment, which name it if both have one name
    predicted : use predictions even if both ran a target
    load_options, fit_options : options of loading and of making models

    Raises
    ------
    UsageError, InputError, DataError
        As `differences_from` does; a view needs a metric that adds up.
    """
    found = differences_from([base], fitted, load_options=load_options, fit_options=fit_options)
    names = [side.experiment.name for side in found.pair.sides]
    if names[0] == names[1]:
        names = [str(base), " ".join(map(str, sources))]
    return PairInputs(fitted, found, (names[0], names[1]), predicted=predicted)


def compare(
    base: Fitted | Experiment,
    new: Fitted | Experiment,
    target: float | None = None,
    *,
    metric: str | None = None,
    parameter: str | None = None,
    held: Mapping[str, float] | None = None,
    inclusive: bool = False,
    predicted: bool = False,
    confidence: float = 0.95,
    aggregate: Aggregate = "auto",
    jobs: int = 1,
    executor: Executor | None = None,
) -> Compared:
    """Return the difference of two experiments, from their models or from measured values.

    Parameters
    ----------
    base, new : experiments or models, before and after. Both sides use the centre of repetitions of
        `base`; models with another centre are made again
    target : scale of the comparison, which needs models of both
    metric, parameter : metric and parameter; None = those of the models, or the run time over p
    held : values of other parameters; by default those of the models, or the largest values that
        both measured
    inclusive : compare inclusive values
    predicted : use predictions even if both ran the target at least twice
    confidence : confidence of intervals; at most a fraction of 1 - confidence of the differences
        that are called significant is due to chance
    aggregate : centre of repetitions, if there are no models
    jobs : largest number of processes that make models; 0 = one for each processor
    executor : makes the models instead of processes of this machine

    Returns
    -------
    Compared
        Costs of both experiments in SI base units, ratios with confidence intervals, and their
        significance.

    Raises
    ------
    UsageError
        If a target is not positive, or if there is no such metric or parameter.
    DataError
        If the experiments have no scale or call path in common.

    References
    ----------
    Welch: The generalization of Student's problem when several different population variances are
    involved (1947). Benjamini and Hochberg: Controlling the false discovery rate (1995).
    """
    target = None if target is None else target_of(target)
    differences = differences_of(
        base,
        new,
        metric=metric,
        parameter=parameter,
        held=held,
        confidence=confidence,
        aggregate=aggregate,
        jobs=jobs,
        executor=executor,
    )
    return compared_at(differences, target, inclusive=inclusive, predicted=predicted)


def compared_at(
    differences: Differences,
    target: float | None,
    *,
    inclusive: bool = False,
    predicted: bool = False,
) -> Compared:
    """Return the difference of two experiments at a target, with findings, as `compare`."""
    return _with_findings(differences.at(target, inclusive=inclusive, predicted=predicted), target)


def compared_in(forecast: PairForecast, *, inclusive: bool) -> Compared:
    """Return the difference that a view of two experiments shows, with findings."""
    found = forecast.found[1 if inclusive else 0]
    return _with_findings(found, None if found.at_target is None else found.at_target.scale)


def _with_findings(found: ExperimentDifference, target: float | None) -> Compared:
    pair = found.pair
    base, new = (_findings(side.experiment, side.fitted, target) for side in pair.sides)
    line = pair.line
    both = (*pair_findings(pair), *slice_findings(line.held, line.assumed, "the largest of both"))
    return Compared(found, base, new, both)


def differences_of(
    base: Fitted | Experiment,
    new: Fitted | Experiment,
    *,
    metric: str | None = None,
    parameter: str | None = None,
    held: Mapping[str, float] | None = None,
    confidence: float = 0.95,
    aggregate: Aggregate = "auto",
    jobs: int = 1,
    executor: Executor | None = None,
) -> Differences:
    """Return the differences of two experiments at any target, with the parameters of `compare`.

    Raises
    ------
    UsageError, DataError
        As `compare` does.
    """
    for name, side in (("base", base), ("new", new)):
        check_type(side, (Fitted, Experiment), name)
    check_probability(confidence, "--confidence")
    old, young = (side if isinstance(side, Fitted) else None for side in (base, new))
    before, after = (side.experiment if isinstance(side, Fitted) else side for side in (base, new))
    known = old or young
    if known:
        metric, parameter = metric or known.metric.name, parameter or known.parameter
    if old and young and old.models.aggregate != young.models.aggregate:
        # The minimum of some repetitions and the mean of others would always differ.
        workers = FitOptions(jobs=jobs, executor=executor)
        how = replace(fit_options_of(young, workers), aggregate=old.models.aggregate)
        young = fit(after, young.metric.name, how)
    held = settings_of(held or {}, "held")
    held = _said([side for side in (old, young) if side], parameter, held)
    before, after, parameter = _at_scales(before, after, parameter)
    line = common_line(before, after, parameter, held)
    old, young = _along(old, line), _along(young, line)
    pair = pair_up((before, old), (after, young), metric, line, aggregate)
    return Differences(pair, confidence)


def _at_scales(
    base: Experiment, new: Experiment, parameter: str | None
) -> tuple[Experiment, Experiment, str | None]:
    """Return two experiments and the parameter; two of unknown scale are taken as of one scale."""
    if parameter in {None, UNKNOWN_SCALE} and says_no_scale(base) and says_no_scale(new):
        return with_unknown_scale(base), with_unknown_scale(new), UNKNOWN_SCALE
    return base, new, parameter


def _said(
    sides: Sequence[Fitted], parameter: str | None, held: Mapping[str, float]
) -> dict[str, float]:
    """Return the held values that the user chose, now or for the models."""
    said = dict(held)
    for side in sides:
        for name, value in side.said.items():
            if name not in held and name != parameter and said.setdefault(name, value) != value:
                raise UsageError(
                    f"models of base are held at {setting_text({name: said[name]})},"
                    f" of new at {parameter_value(value)}",
                    hint=f"choose a value: held={{{name!r}: {parameter_value(value)}}}",
                )
    return said


def _along(fitted: Fitted | None, line: ParameterLine) -> Fitted | None:
    """Return the models along a line."""
    if fitted is None or fitted.surface is None:
        return fitted
    mine = {name: line.held[name] for name in fitted.surface.parameters if name in line.held}
    return fitted.holding(mine, line.parameter)


def _findings(
    experiment: Experiment, fitted: Fitted | None, target: float | None
) -> tuple[Finding, ...]:
    if fitted is None:
        return experiment.findings
    return findings_at(fitted, float(fitted.points[-1]) if target is None else target)


def _enough_points(
    experiment: Experiment, metric: str | None, line: ParameterLine, options: FitOptions
) -> bool:
    """Return whether there are enough scales for models along a line."""
    if not experiment.parameters:
        return False
    names = experiment.modelled_parameters(line.parameter)
    settings, cube = experiment.by_setting(experiment.metric(metric).name, names)
    measured = settings[~np.isnan(cube).all(axis=(0, 2))]
    least = modeling.MIN_POINTS[options.method]
    return all(len(np.unique(column)) >= least for column in measured.T)
