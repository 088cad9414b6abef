"""Expectations of an experiment: evaluation of their files, and expected costs of excess work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Protocol

import numpy as np

from callpath_modeler import modeling
from callpath_modeler.analysis.excess_work import per_process
from callpath_modeler.analysis.expectations.check_result import Check
from callpath_modeler.analysis.expectations.clauses import ExcessExpectation, read
from callpath_modeler.analysis.expectations.expectation import Expectations
from callpath_modeler.analysis.expectations.growth_check import growth_ideal
from callpath_modeler.analysis.expectations.judge import Judge, Procedure
from callpath_modeler.analysis.ideals import GrowthIdeal, ReferenceIdeal, scaling_over
from callpath_modeler.analysis.pairing import ExperimentPair, common_line, pair_up
from callpath_modeler.analysis.predict import predict
from callpath_modeler.analysis.run_time import predicted_run_time
from callpath_modeler.analysis.scales import expected_pairs, measured_line, no_excess_work
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import DataError, UsageError, check_type
from callpath_modeler.fitted import Fitted, Ideal
from callpath_modeler.modeling import Centre, SearchSpace
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.runs import ParameterLine, settings_of, target_of
from callpath_modeler.profile.scaling_kind import with_scaling_of
from callpath_modeler.profile.schema import Metric
from callpath_modeler.studies.pipeline import FitOptions, fit, fit_options_of
from callpath_modeler.studies.question import check_names, slice_findings
from callpath_modeler.support.expression import Comparison


def check(
    models: Fitted,
    path: str | Path,
    *,
    target: float | Mapping[str, float] | None = None,
    procedure: Procedure = "mixture",
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
    procedure : ``"published"`` compares the one growth that the method of the publication chooses

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

    def of_metric(name: str, space: SearchSpace | None) -> Fitted:
        options = fit_options_of(models)
        options = options if space is None else replace(options, space=space)
        return fit(models.experiment, name, options).holding(models.said, models.parameter)

    return judged(models, read(Path(path)), at, of_metric, procedure)


def judged(
    models: Fitted,
    expectations: Expectations,
    target: Mapping[str, float],
    of_metric: Callable[[str, SearchSpace | None], Fitted],
    procedure: Procedure = "mixture",
) -> Check:
    """Return the results of expectations.

    Parameters
    ----------
    models : models of the metric of all expectations that name none
    expectations : the content of the file
    target : values of parameters by name, instead of those of the file
    of_metric : function that returns the models of a metric in a space; None = that of `models`
    procedure : how growths are compared with limits
    """
    made: dict[tuple[str, SearchSpace | None], Fitted] = {(models.metric.name, None): models}

    def models_of(name: str | None, space: SearchSpace | None = None) -> Fitted:
        which = name or models.metric.name, space
        if which not in made:
            made[which] = of_metric(*which)
        return made[which]

    outcomes = Judge(expectations, models_of, target, models_of, procedure).outcomes()
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


class OtherStudy(Protocol):
    """Another experiment with its models; `callpath_modeler.studies.study.Study` is one."""

    def experiment(self, metric: str | None = None) -> Experiment:
        """Return the runs."""

    def models(self, metric: str | None = None) -> Fitted:
        """Return the models of a metric."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparedRuns:
    """The runs whose excess work is asked for.

    Attributes
    ----------
    experiment : all runs
    metric : the metric
    line : parameter of the scales, and fixed values of the others
    centre : centre of repetitions
    scaling : scaling of call paths that a file of expectations does not name
    """

    experiment: Experiment
    metric: Metric
    line: ParameterLine
    centre: Centre
    scaling: Scaling

    @classmethod
    def between(
        cls, experiment: Experiment, metric: Metric, line: ParameterLine, centre: Centre
    ) -> ComparedRuns:
        """Return the runs along a line, with their own scaling."""
        along = with_scaling_of(experiment.at(line.held)) if line.held else experiment
        return cls(experiment, metric, line, centre, scaling_over(along, line.parameter))

    @classmethod
    def of(cls, fitted: Fitted) -> ComparedRuns:
        """Return the runs of some models, with the scaling of their excess work."""
        line = ParameterLine(fitted.parameter, fitted.held, fitted.measured_at, fitted.assumed)
        scaling = scaling_over(fitted.experiment, fitted.parameter)
        return cls(fitted.experiment, fitted.metric, line, fitted.models.aggregate, scaling)


def expected_costs(
    expectation: ExcessExpectation,
    runs: ComparedRuns,
    another: Callable[[str], OtherStudy],
) -> Ideal:
    """Return the costs that an expectation expects of some runs.

    Parameters
    ----------
    expectation : result of `parse_expectation`
    runs : the runs
    another : function that returns another experiment with its models, by its path

    Raises
    ------
    UsageError
        If a growth is in another parameter, or applies to no call path.
    DataError
        If another experiment has nothing in common with the runs.
    """
    parameter, metric = runs.line.parameter, runs.metric
    if expectation.growth is not None:
        function, name = expectation.growth
        if name not in (None, parameter):
            raise UsageError(
                f"--expect {expectation.text!r} is in {name}, but the scales are values of "
                f"{parameter}",
                hint=f"a growth in {parameter}, a path that exists, or --parameter with another",
            )
        return GrowthIdeal(expectation.text, function, parameter)
    if expectation.expectations is not None:
        first = runs.experiment.metric(None).name
        return growth_ideal(
            expectation.expectations,
            runs.experiment.tree,
            parameter,
            runs.scaling,
            lambda one: (one.metric or first) == metric.name,
        )
    return _reference(expectation.text, runs, another)


def ideal_between(
    expectation: ExcessExpectation | None,
    experiment: Experiment,
    metric: str | None,
    another: Callable[[str], OtherStudy],
    fit_options: FitOptions,
    held: Mapping[str, float] | None = None,
) -> Ideal | None:
    """Return the costs that an expectation expects between measured scales of an experiment.

    Parameters
    ----------
    expectation : result of `parse_expectation`; None = perfect scaling, so the result is None
    experiment : the runs
    metric : name of the metric; None = the first duration
    another : function that returns another experiment with its models, by its path
    fit_options : parameter of the scales, and centre of repetitions
    held : measured values of other parameters; by default the largest ones

    Raises
    ------
    UsageError, DataError
        As `measured_line` and `expected_costs`.
    """
    if expectation is None:
        return None
    line = measured_line(experiment, fit_options.parameter, held or {})
    one = experiment.metric(metric)
    runs = ComparedRuns.between(experiment, one, line, fit_options.aggregate)
    return expected_costs(expectation, runs, another)


def with_expected_costs(
    fitted: Fitted,
    expectation: ExcessExpectation,
    another: Callable[[str], OtherStudy],
    *,
    is_required: bool,
) -> Fitted:
    """Return models whose excess work is relative to an expectation.

    The base is the smallest scale from which a cost is expected.

    Parameters
    ----------
    fitted : the models, or measured values
    expectation : result of `parse_expectation`
    another : function that returns another experiment with its models, by its path
    is_required : False = a file of expectations that states no growth changes nothing, because its
        verdicts are shown

    Raises
    ------
    UsageError
        If nothing is compared, or as `expected_costs` and `expected_pairs`.
    DataError
        As `expected_costs`.
    """
    is_file = expectation.expectations is not None
    compared = fitted.metric.additive and len(fitted.points) > 1
    if not compared and is_file and not is_required:
        return fitted
    if not fitted.metric.additive:
        raise no_excess_work(fitted.metric)
    if not compared:
        raise UsageError(
            "--expect: runs of one scale have no excess work",
            hint="give profiles of two scales; `cpmodel diff` compares experiments at one scale",
        )
    runs = ComparedRuns.of(fitted)
    try:
        ideal = expected_costs(expectation, runs, another)
    except UsageError:
        if is_file and not is_required:
            return fitted
        raise
    last = float(fitted.points[-1])
    chosen = fitted.pairs or (((float(fitted.points[0]), last),) if fitted.is_measured_only else ())
    measured = fitted.line.points(fitted.parameter)
    pairs = expected_pairs(measured, runs.line, chosen, None, ideal)
    base = pairs[0][0] if not chosen else float(fitted.points[0])
    return replace(fitted, ideal=ideal, base_point=int(np.flatnonzero(fitted.points == base)[0]))


def _reference(
    source: str, runs: ComparedRuns, another: Callable[[str], OtherStudy]
) -> ReferenceIdeal:
    """Return the costs of another experiment."""
    name, parameter = runs.metric.name, runs.line.parameter
    study = another(source)
    other = study.experiment(name)
    line = common_line(other, runs.experiment, parameter, runs.line.held)
    pair = pair_up((other, None), (runs.experiment, None), name, line, runs.centre)
    home = _homes(pair)
    costs, measured = {}, {}
    known = pair.base.points if line.held == line.measured_at else pair.base.points[:0]
    scales = pair.new.points.tolist()
    for scale in scales:
        place = np.flatnonzero(known == scale)
        if len(place):
            cube = pair.base.values[:, int(place[0])]
            cube = np.nan_to_num(cube[:, ~np.isnan(cube).all(axis=0)])
            middle = np.nan_to_num(modeling.centre(pair.base.values[:, place], runs.centre)[:, 0])
            costs[scale] = _folded(per_process(other, parameter, middle, scale), home, pair)
            measured[scale] = _folded(per_process(other, parameter, cube, scale), home, pair)
    models = cache(partial(_models, study, name, line))

    def run_time_at(scale: float) -> float:
        """Return the run time at a scale, measured or predicted; NaN = not known."""
        run_times, place = pair.base.run_times, np.flatnonzero(known == scale)
        if run_times is None:
            return float("nan")
        if len(place):
            return float(modeling.centre(run_times[:, place], runs.centre)[0, 0])
        fitted = models()
        return float("nan") if fitted is None else predicted_run_time(fitted, scale)[0]

    def predicted_at(scale: float) -> tuple[FloatArray, FloatArray] | None:
        """Return predicted costs at a scale; the models are made when they are first needed."""
        fitted = models()
        if fitted is None:
            return None
        predicted = predict(fitted, scale)
        value = pair.base.spread(np.nan_to_num(predicted.value), absent=0.0)
        added = pair.base.spread(predicted.added, absent=0.0)
        cost = _folded(per_process(other, parameter, value, scale), home, pair)
        return cost, _folded(added, home, pair)

    largest = np.nansum(np.nan_to_num(pair.base.values[:, -1]), axis=1)
    whole = largest.sum() or 1.0
    here = np.isin(np.arange(len(home)), pair.new.rows)
    moved = float(largest[~here & (home >= 0)].sum() / whole)
    lost = float(largest[home < 0].sum() / whole)
    ideal = ReferenceIdeal(
        source,
        parameter,
        costs,
        measured,
        moved=moved,
        lost=lost,
        predict=predicted_at,
        run_time_at=run_time_at,
    )
    for scale in scales:
        # The notes of the ideal name the scales that were measured here and predicted there.
        ideal.gap(scale, scale)
    return ideal


def _homes(pair: ExperimentPair) -> IntArray:
    """Return the row of the new experiment for each common call path: its own or its caller's.

    The result is [call paths of both]; -1 = no caller occurs in the new experiment.
    """
    home: IntArray = pair.new.own_rows().copy()
    for level in pair.tree.levels():
        callers = np.where(pair.tree.parent[level] == ROOT, -1, home[pair.tree.parent[level]])
        home[level] = np.where(home[level] < 0, callers, home[level])
    return home


def _folded(values: FloatArray, home: IntArray, pair: ExperimentPair) -> FloatArray:
    """Return columns [call paths of both, ...] as columns [call paths of the new experiment, ...].

    Call paths that do not occur there are part of their callers.
    """
    found = np.zeros((len(pair.new.rows), *values.shape[1:]))
    there = home >= 0
    np.add.at(found, home[there], values[there])
    return found


def _models(study: OtherStudy, metric: str, line: ParameterLine) -> Fitted | None:
    """Return the models of another experiment along a line; None = it has too few scales."""
    try:
        fitted = study.models(metric)
    except (DataError, UsageError):
        return None
    if any(name not in fitted.parameters for name in line.held):
        return None
    return fitted.holding(line.held, line.parameter)
