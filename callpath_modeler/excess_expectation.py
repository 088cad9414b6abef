"""Expected costs of excess work, in the words of the command line: ``--expect``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from callpath_modeler import modeling
from callpath_modeler.analysis.excess import per_process, scaling_over
from callpath_modeler.analysis.expectations.expectation import Expectations
from callpath_modeler.analysis.expectations.growths import growth_ideal
from callpath_modeler.analysis.expectations.interpretation import read
from callpath_modeler.analysis.ideals import GrowthIdeal, Ideal, ReferenceIdeal
from callpath_modeler.analysis.pairing import ExperimentPair, common_line, pair_up
from callpath_modeler.analysis.predict import predict
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.loading import LoadOptions, load
from callpath_modeler.modeling import Centre, Function, GrowthSyntaxError, parse_function
from callpath_modeler.pipeline import FitOptions, models_of_loaded
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.parameter_line import ParameterLine
from callpath_modeler.profile.schema import Metric
from callpath_modeler.readers.program import with_scaling_of

_EXAMPLES = "e.g. --expect 'O(log p)', --expect expectations.toml, or a directory of runs"


@dataclass(frozen=True, slots=True)
class ExcessExpectation:
    """The content of ``--expect``: a growth, a file of expectations, or another experiment.

    Attributes
    ----------
    text : what the user wrote
    growth : the growth and its parameter; None = it is none
    expectations : the expectations of a file; None = it is none. Without both, `text` is the path
        of another experiment
    """

    text: str
    growth: tuple[Function, str | None] | None = None
    expectations: Expectations | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ComparedRuns:
    """The runs whose excess work is asked for.

    Attributes
    ----------
    experiment : all runs
    metric : the metric
    line : parameter of the scales, and fixed values of the others
    centre : centre of repetitions
    target : a scale that is predicted; None = only measured scales are compared
    """

    experiment: Experiment
    metric: Metric
    line: ParameterLine
    centre: Centre
    target: float | None = None


def parse_expectation(text: str) -> ExcessExpectation:
    """Return the content of ``--expect``.

    A path that exists is a file of expectations if its suffix is ``.toml``, else an experiment. All
    else is a growth.

    Raises
    ------
    UsageError
        If the text is neither a path nor a growth.
    InputError
        If the file of expectations is invalid.
    """
    if text.endswith(".toml"):
        return ExcessExpectation(text, expectations=read(Path(text)))
    if text in list(Scaling):
        raise UsageError(f"--expect {text} is a kind of scaling", hint=f"--scaling {text}")
    try:
        if text.strip() and Path(text).exists():
            return ExcessExpectation(text)
    except (OSError, ValueError):
        pass  # The text is too long for a path, or has a null character.
    try:
        return ExcessExpectation(" ".join(text.split()), growth=parse_function(text))
    except GrowthSyntaxError as cause:
        message = f"--expect is neither a growth nor an existing path: {cause}"
        raise UsageError(message, hint=_EXAMPLES) from None


def expected_costs(
    expectation: ExcessExpectation,
    runs: ComparedRuns,
    load_options: LoadOptions,
    fit_options: FitOptions,
) -> Ideal:
    """Return the costs that an expectation expects of some runs.

    Parameters
    ----------
    expectation : result of `parse_expectation`
    runs : the runs
    load_options, fit_options : options of loading another experiment and of making its models

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
            _scaling(runs),
            lambda one: (one.metric or first) == metric.name,
        )
    return _reference(expectation.text, runs, load_options, fit_options)


def _scaling(runs: ComparedRuns) -> Scaling:
    """Return the scaling of the runs along the line, as excess work recognises it."""
    held = runs.line.held
    along = with_scaling_of(runs.experiment.at(held)) if held else runs.experiment
    return scaling_over(along, runs.line.parameter)


def _reference(
    source: str, runs: ComparedRuns, load_options: LoadOptions, fit_options: FitOptions
) -> ReferenceIdeal:
    """Return the costs of another experiment."""
    name, parameter = runs.metric.name, runs.line.parameter
    options = load_options.of_another().of_metric(name)
    other = load([source], options)
    line = common_line(other, runs.experiment, parameter, runs.line.held)
    pair = pair_up((other, None), (runs.experiment, None), name, line, runs.centre)
    home = _homes(pair)
    costs, measured, predicted = {}, {}, {}
    scales = pair.new.points.tolist() + ([] if runs.target is None else [runs.target])
    known = pair.base.points if line.held == line.measured_at else pair.base.points[:0]
    for scale in scales:
        place = np.flatnonzero(known == scale)
        if len(place):
            cube = pair.base.values[:, int(place[0])]
            cube = np.nan_to_num(cube[:, ~np.isnan(cube).all(axis=0)])
            middle = np.nan_to_num(modeling.centre(pair.base.values[:, place], runs.centre)[:, 0])
            costs[scale] = _folded(per_process(other, parameter, middle, scale), home, pair)
            measured[scale] = _folded(per_process(other, parameter, cube, scale), home, pair)
    missing = [scale for scale in scales if scale not in costs]
    fitted = _models(other, source, name, options, fit_options, line) if missing else None
    if fitted is not None:
        for scale in missing:
            found = predict(fitted, scale)
            value = pair.base.spread(np.nan_to_num(found.value), absent=0.0)
            added = pair.base.spread(found.added, absent=0.0)
            costs[scale] = _folded(per_process(other, parameter, value, scale), home, pair)
            predicted[scale] = _folded(added, home, pair)
    largest = np.nansum(np.nan_to_num(pair.base.values[:, -1]), axis=1)
    whole = largest.sum() or 1.0
    here = np.isin(np.arange(len(home)), pair.new.rows)
    moved = float(largest[~here & (home >= 0)].sum() / whole)
    lost = float(largest[home < 0].sum() / whole)
    return ReferenceIdeal(source, parameter, costs, measured, predicted, moved, lost)


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


def _models(
    other: Experiment,
    source: str,
    metric: str,
    load_options: LoadOptions,
    fit_options: FitOptions,
    line: ParameterLine,
) -> Fitted | None:
    """Return the models of another experiment along a line; None = it has too few scales."""
    try:
        fitted = models_of_loaded(other, [source], metric, load_options, fit_options)
    except (DataError, UsageError):
        return None
    if any(name not in fitted.parameters for name in line.held):
        return None
    return fitted.holding(line.held, line.parameter)
