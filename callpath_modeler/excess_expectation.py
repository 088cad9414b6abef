"""Expected costs of excess work: those of ``--expect`` for some runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Protocol

import numpy as np

from callpath_modeler import modeling
from callpath_modeler.analysis.excess import per_process
from callpath_modeler.analysis.expectation_text import ExcessExpectation
from callpath_modeler.analysis.expectations.growths import growth_ideal
from callpath_modeler.analysis.ideals import GrowthIdeal, ReferenceIdeal, scaling_over
from callpath_modeler.analysis.pairing import ExperimentPair, common_line, pair_up
from callpath_modeler.analysis.predict import predict
from callpath_modeler.analysis.run_time import predicted_run_time
from callpath_modeler.analysis.scale_pairs import (
    expected_pairs,
    measured_line,
    no_excess_work,
)
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.ideal import Ideal
from callpath_modeler.modeling import Centre
from callpath_modeler.pipeline import FitOptions
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.parameter_line import ParameterLine
from callpath_modeler.profile.scaling_kind import with_scaling_of
from callpath_modeler.profile.schema import Metric


class OtherStudy(Protocol):
    """Another experiment with its models; `callpath_modeler.study.Study` is one."""

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
