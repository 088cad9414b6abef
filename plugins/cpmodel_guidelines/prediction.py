"""Verdicts on measured checks, and predictions on other numbers of processes.

Each function has one model along the number of processes for every message size. Models along the
size are not needed, and would fail where libraries change their algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from callpath_modeler.analysis.changes import SampleComparison
from callpath_modeler.analysis.expectations.bounds import crossing
from callpath_modeler.analysis.expectations.check_result import Crossing
from callpath_modeler.analysis.measured import deviation_of_models
from callpath_modeler.analysis.uncertain import Band, propagate_errors
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.errors import DataError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling.distributions import student_quantile
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.groups import MetricValues as Column
from callpath_modeler.profile.runs import Parameter, Run
from callpath_modeler.profile.schema import Region
from callpath_modeler.studies.pipeline import FitOptions, fit
from callpath_modeler.units import as_option
from cpmodel_guidelines.answer import MeanOfChecks, Method, Test
from cpmodel_guidelines.benchmark import Benchmark
from cpmodel_guidelines.checks import (
    FunctionAtSetting,
    Group,
    GuidelineCheck,
    Sizes,
    moved,
    places_of,
)
from cpmodel_guidelines.judge import GuidelineVerdicts, slower_chance, verdicts_of
from cpmodel_guidelines.rules import Guideline, GuidelineKind
from cpmodel_guidelines.statistics.permutations import Control, adjusted, permutation_test
from cpmodel_guidelines.statistics.power import Power
from cpmodel_guidelines.statistics.two_sample_tests import (
    mean_chances,
    moments,
    rank_sum_chances,
    smirnov_chances,
)


@dataclass(frozen=True, eq=False)
class Predictor:
    """Models of the functions of a benchmark.

    Attributes
    ----------
    fitted : models along the number of processes
    rows : row of the model of each function and setting, with 0 as number of processes
    axis : index of the number of processes in settings
    sizes : message sizes with models
    """

    fitted: Fitted
    rows: Mapping[FunctionAtSetting, int]
    axis: int
    sizes: Sizes

    def bands(self, places: Sequence[FunctionAtSetting]) -> Band:
        """Return the prediction bands of functions at settings, [places]; NaN without a model.

        Between two sizes, a band encloses the bands of both.
        """
        found = np.full((3, len(places)), np.nan)
        inside = [(k, self.sizes.between(self.line(place))) for k, place in enumerate(places)]
        known = [(k, between) for k, between in inside if between is not None]
        if not known:
            return Band(*found)
        here = np.array([k for k, _ in known])
        scales = [places[k].setting[self.axis] for k in here]
        points, at = np.unique(scales, return_inverse=True)
        models, which = np.unique(
            [[self.rows[b.less] for _, b in known], [self.rows[b.more] for _, b in known]],
            return_inverse=True,
        )
        told = self.fitted.models.take(models).predict(points)
        less, more = which.reshape(2, -1)
        weight, at = np.array([between.weight for _, between in known]), at.ravel()
        # Linear in logarithms, but also defined where a model predicts zero.
        found[0, here] = told.value[less, at] ** (1 - weight) * told.value[more, at] ** weight
        found[1, here] = np.minimum(told.low[less, at], told.low[more, at])
        found[2, here] = np.maximum(told.high[less, at], told.high[more, at])
        return Band(*found)

    def line(self, place: FunctionAtSetting) -> FunctionAtSetting:
        """Return a place with 0 as number of processes."""
        return FunctionAtSetting(place.row, moved(place.setting, self.axis, 0.0))

    def sides(self, checks: Sequence[GuidelineCheck]) -> list[Band]:
        """Return the bands of the left side and of each part of the right side, [checks] each."""
        places = list(dict.fromkeys(place for c in checks for place in (c.left, *c.right)))
        order = {place: k for k, place in enumerate(places)}
        band = self.bands(places)
        # A missing part of the right side has a time of zero.
        columns = [np.append(column, 0.0) for column in (band.value, band.low, band.high)]
        left, parts = places_of(checks, order.__getitem__)
        return [Band(*(column[rows] for column in columns)) for rows in (left, *parts)]

    def crossing(self, at: Callable[[float], GuidelineCheck], scales: FloatArray) -> Crossing:
        """Return the number of processes from which a guideline is predicted to be violated.

        Parameters
        ----------
        at : returns the check at a number of processes
        scales : measured numbers of processes, ascending
        """

        def beyond(points: FloatArray) -> Band:
            sides = self.sides([at(float(point)) for point in points])
            return propagate_errors(lambda values: values[0] - np.sum(values[1:], axis=0), sides)

        return crossing(beyond, scales)

    def deviations(self, benchmark: Benchmark) -> tuple[FloatArray, FloatArray]:
        """Return relative variances of deviations from the models, and their degrees of freedom.

        Each has one value per function and setting, [functions, K]; NaN without a model.
        """
        shape = len(benchmark.functions), len(benchmark.settings)
        variance, dof = np.full((2, *shape), np.nan)
        of_models = deviation_of_models(self.fitted, inclusive=False)
        for k, setting in enumerate(benchmark.settings.tolist()):
            for row in range(shape[0]):
                model = self.rows.get(self.line(FunctionAtSetting(row, tuple(setting))))
                if model is not None:
                    variance[row, k], dof[row, k] = (column[model] for column in of_models)
        return variance, dof


def predictor_of(benchmark: Benchmark, options: FitOptions) -> Predictor | None:
    """Return models of the functions of a benchmark; None if the runs allow no model."""
    axis = benchmark.axis(benchmark.processes)
    if axis is None:
        return None
    lines = np.array([moved(tuple(s), axis, 0.0) for s in benchmark.settings.tolist()])
    others, of_setting = np.unique(lines, axis=0, return_inverse=True)
    points, of_point = np.unique(benchmark.settings[:, axis], return_inverse=True)
    functions, _, repetitions = benchmark.values.shape
    cube = np.full((functions, len(others), len(points), repetitions), np.nan)
    cube[:, of_setting.ravel(), of_point.ravel()] = benchmark.values
    places = [
        FunctionAtSetting(row, tuple(line)) for row in range(functions) for line in others.tolist()
    ]
    values = cube.reshape(len(places), len(points), repetitions)
    there = np.flatnonzero((~np.isnan(values)).sum(axis=(1, 2)))
    rows = {places[k]: number for number, k in enumerate(there.tolist())}
    names = [_name(benchmark, place, axis) for place in rows]
    experiment = _experiment(benchmark, names, points, values[there])
    chosen = replace(options, parameter=None)
    sizes = Sizes.of(rows, benchmark.axis(benchmark.size))
    try:
        return Predictor(fit(experiment, benchmark.metric.name, chosen), rows, axis, sizes)
    except DataError:
        return None


def _name(benchmark: Benchmark, place: FunctionAtSetting, axis: int) -> str:
    """Return a function with the values of the other parameters that vary, as a name."""
    function = benchmark.functions[place.row]
    varying = {each.name for each in benchmark.experiment.parameters} - {benchmark.names[axis]}
    named = zip(benchmark.names, place.setting, strict=True)
    at = as_option({name: value for name, value in named if name in varying})
    return "/".join((*function.group, function.title)) + (f" at {at}" if at else "")


def _experiment(
    benchmark: Benchmark, names: Sequence[str], points: FloatArray, values: FloatArray
) -> Experiment:
    """Return an experiment along the number of processes, with one call path per model.

    Parameters
    ----------
    names : [models] names of the call paths
    points : [P] numbers of processes
    values : [models, P, R] in the unit of the metric
    """
    name, first = str(benchmark.processes), benchmark.experiment.runs[0]
    runs = tuple(
        Run(first.source, first.reader, first.extent, {name: point}, repetition)
        for point in points.tolist()
        for repetition in range(1, 1 + values.shape[2])
    )
    tree = CallTree.from_parents([ROOT] * len(names), range(len(names)), [*map(Region, names)])
    flat = values.reshape(len(values), -1)
    column = Column(benchmark.metric, flat, np.nansum(flat, axis=0))
    varying = (Parameter(name, tuple(points.tolist()), "settings"),) if len(points) > 1 else ()
    return replace(
        benchmark.experiment,
        tree=tree,
        runs=runs,
        parameters=varying,
        constants={},
        columns={benchmark.metric.name: column},
    )


_KINDS = tuple(GuidelineKind)


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredVerdicts:
    """Verdicts on measured checks.

    Attributes
    ----------
    verdicts : columns over the checks
    means : mean of the checks of each guideline and group; empty without permutations
    power : result that this number of mpiruns can show, as text; "" = not known
    sensitivity : the same as numbers; None = not known, or no permutations
    """

    verdicts: GuidelineVerdicts
    means: Mapping[tuple[Guideline, Group], MeanOfChecks]
    power: str
    sensitivity: Power | None = None


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredSides:
    """Both sides of measured checks.

    Attributes
    ----------
    checks : [C] checks
    comparison : comparison of the values of both sides, for factors and intervals
    left, right : [C, R] times of both sides in each mpirun; NaN = missing
    is_repeated : whether there are several mpiruns; otherwise Holm's method controls the rate of
        the tests of the comparison
    """

    checks: Sequence[GuidelineCheck]
    comparison: SampleComparison
    left: FloatArray
    right: FloatArray
    is_repeated: bool


def judge_measured(
    sides: MeasuredSides, method: Method, *, tolerance: float, confidence: float
) -> MeasuredVerdicts:
    """Return the verdicts on checks.

    Parameters
    ----------
    sides : both sides of the checks
    method : test and control of the error rate
    tolerance : slowdown that is not a violation, as a fraction
    confidence : level of the intervals
    """
    checks, comparison = sides.checks, sides.comparison
    left, right = sides.left, sides.right
    can_break = np.array([check.can_break for check in checks], bool)
    can_hold = np.array([check.can_hold for check in checks], bool)
    chance = np.where(can_break, _chances(sides, method.test), np.nan)
    control, means, power = method.control, {}, ""
    sensitivity: Power | None = None
    if control is Control.PERMUTATION and not sides.is_repeated:
        control = Control.HOLM
    if control is Control.PERMUTATION:
        groups: dict[tuple[Guideline, Group], list[int]] = {}
        for k, check in enumerate(checks):
            groups.setdefault((check.guideline, check.group), []).append(k)
        rows: list[IntArray] = [np.array(each, np.intp) for each in groups.values()]
        by_ranks = method.test is Test.RANK_SUM
        found = permutation_test(left, right, can_break, rows, method.rate, by_ranks=by_ranks)
        rate = found.rate
        if not by_ranks:
            bounds = _bounds(found.difference, found.error, left, right, confidence)
            for key, *told in zip(groups, *bounds, found.means.tolist(), strict=True):
                factor, low, high, mean_rate = map(float, told)
                violated = mean_rate <= method.rate and factor >= 1 + tolerance
                means[key] = MeanOfChecks(factor, low, high, mean_rate, violated)
        sensitivity = _power(left, right, can_break, found.critical, method)
        power = "" if sensitivity is None else sensitivity.said()
    else:
        kinds = np.array([_KINDS.index(check.guideline.kind) for check in checks], np.intp)
        rate = adjusted(chance, control, kinds)
        if method.test is Test.RANK_SUM:
            power = _power_of_ranks(left, right)
    verdicts = verdicts_of(
        *(comparison, chance, rate),
        largest_rate=method.rate,
        tolerance=tolerance,
        can_hold=can_hold,
    )
    return MeasuredVerdicts(verdicts, means, power, sensitivity)


def _chances(sides: MeasuredSides, test: Test) -> FloatArray:
    left, right = sides.left, sides.right
    if test is Test.RANK_SUM:
        return rank_sum_chances(left, right)
    if test is Test.SMIRNOV:
        return smirnov_chances(left, right)
    # Without several mpiruns, intervals or models give the noise.
    return mean_chances(left, right) if sides.is_repeated else slower_chance(sides.comparison)


def _bounds(
    difference: FloatArray,
    error: FloatArray,
    left: FloatArray,
    right: FloatArray,
    confidence: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return factors of means, with the ends of their intervals."""
    dof = max(_most(left) + _most(right) - 2, 1)
    reach = float(student_quantile(np.array([float(dof)]), 0.5 + confidence / 2)[0]) * error
    return np.exp(difference), np.exp(difference - reach), np.exp(difference + reach)


def _most(values: FloatArray) -> int:
    """Return the largest number of mpiruns of a check."""
    return int((~np.isnan(values)).sum(axis=1).max(initial=0))


def _power(
    left: FloatArray, right: FloatArray, can_break: BoolArray, critical: float, method: Method
) -> Power | None:
    """Return what permutations of this number of mpiruns can show; None = not known."""
    mpiruns = min(_most(left), _most(right))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = [np.log(side[can_break]) for side in (left, right)]
    spread = np.sqrt(sum(moments(each)[2] for each in logs))
    spread = spread[np.isfinite(spread) & (spread > 0)]
    # Half of the checks are less noisy than this one.
    noise = float(np.median(spread)) if len(spread) else np.nan
    found = Power(mpiruns, noise, int(can_break.sum()), method.rate)
    if not found.can_show:
        return found
    if not np.isfinite(critical * noise):
        return None
    return Power.measured(mpiruns, noise, found.checks, method.rate, critical)


def _power_of_ranks(left: FloatArray, right: FloatArray) -> str:
    """Return the smallest p-value of a rank-sum test."""
    n, m = _most(left), _most(right)
    if not n or not m:
        return ""
    low, high = np.arange(m, dtype=float), m + np.arange(n, dtype=float)
    least = float(rank_sum_chances(high[None], low[None])[0])
    return f"With {min(n, m)} mpiruns, the p-value of a rank-sum test is {least:.2g} or larger."
