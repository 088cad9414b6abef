"""Excess work of an ensemble of runs: the loss of every call path between pairs of scales.

The equations are those of `analysis.excess`, for many pairs of measured scales at once. Excess work
is a fraction of one run time. Therefore it is additive, and any view of the call tree can show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from numbers import Real
from types import NoneType

import numpy as np

from callpath_modeler.analysis.aggregation import aggregate_for
from callpath_modeler.analysis.excess import per_process, scaling_over
from callpath_modeler.analysis.ideals import Ideal, ScalingIdeal
from callpath_modeler.argument_checks import check_type
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Aggregate, Centre, centre
from callpath_modeler.notebook_repr import LossesPlotMixin
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.groups import Costs, Rows
from callpath_modeler.profile.parameter_line import ParameterLine, nearest_line
from callpath_modeler.profile.schema import Metric
from callpath_modeler.readers.program import with_scaling_of
from callpath_modeler.targets import settings_of, target_of, targets_of
from callpath_modeler.units import as_option, parameter_value, setting_text

Pair = tuple[float, float]

NOTICEABLE = 0.005
"""Excess work below this share of the run time is neither loss nor gain."""

_MINOR = 0.1
"""Smallest ratio of two parts of a loss at which both are named."""


class ExcessPattern(StrEnum):
    """Conclusion from the inclusive and the exclusive excess work of a call path."""

    OWN = "own cost"
    CALLEES = "look at the callees"
    BOTH = "own cost and callees"
    GAIN = "superlinear"
    NONE = "no loss"


@dataclass(frozen=True, slots=True, eq=False)
class PredictedTarget:
    """Predicted costs at a target.

    Attributes
    ----------
    target : the scale
    value : [call paths, 1] predictions
    addends : [call paths, columns] additive numbers for bands; the first are those of
        `sums.addable`
    modelled : [call paths] whether there is a prediction
    unmodelled_share : share of the other call paths at the largest measured scale
    confidence : confidence of the bands
    """

    target: float
    value: Costs
    addends: Costs
    modelled: BoolArray
    unmodelled_share: float
    confidence: float


@dataclass(frozen=True, eq=False)
class Losses(LossesPlotMixin):
    """Excess work of every call path between pairs of scales.

    All scales are measured, except the larger one of the last pair if there is a `prediction`.

    Attributes
    ----------
    experiment : the runs
    metric : the metric
    line : the parameter of the scales, and fixed values of the others
    scaling : weak or strong
    ideal : the expected costs
    pairs : the smaller and the larger scale of each pair
    points : [points] scales of the pairs, ascending; then the base and the target of a prediction
    places : positions in `points` of both scales of each pair
    centre : centre of the repetitions
    costs : [call paths, points] cost per process, SI base units
    run_time : [points] cost per process of the whole program
    slowest : [points] run time of the program, which is that of the slowest process; NaN = not
        recorded
    expected : [call paths, pairs] expected cost per process at the larger scale of the pair
    excess : [call paths, pairs] fractions of the run time at the larger scale of the pair
    omitted : measured scales that are in no pair, because no cost is expected for them
    prediction : predicted costs at a target; None = there is no target
    """

    experiment: Experiment
    metric: Metric
    line: ParameterLine
    scaling: Scaling
    ideal: Ideal
    pairs: tuple[Pair, ...]
    points: FloatArray
    places: tuple[tuple[int, int], ...]
    centre: Centre
    costs: Costs
    run_time: FloatArray
    slowest: FloatArray
    expected: Costs
    excess: Costs
    omitted: tuple[float, ...] = ()
    prediction: PredictedTarget | None = None

    def __repr__(self) -> str:
        scales = f"{len(self.points)} scales of {self.parameter}"
        return f"<Losses {self.experiment.name}: {self.metric.name}, {scales}, {self.scaling}>"

    @property
    def parameter(self) -> str:
        """Parameter of the scales."""
        return self.line.parameter

    def columns(self, pair: int) -> tuple[int, int]:
        """Return the positions of the two scales of a pair among `points`."""
        return self.places[pair]

    def is_predicted(self, pair: int) -> bool:
        """Return whether the larger scale of a pair is a target whose costs are predicted."""
        return self.prediction is not None and pair == len(self.pairs) - 1

    def repetitions(self, pair: int) -> tuple[Costs, Costs] | None:
        """Return the costs of the runs of a pair, each [call paths, repetitions], per process.

        The first array has the expected costs at the larger scale: one for each run at the smaller
        one. The second array has the runs at the larger scale. A call path that did not occur costs
        nothing. None = costs are predicted, or no run states the expected ones.
        """
        if self.is_predicted(pair):
            return None
        return repetitions_of_pair(
            self.experiment, self.metric.name, self.parameter, self.ideal, self.pairs[pair]
        )

    @property
    def total(self) -> FloatArray:
        """Excess work of the program, [pairs].

        Under weak or strong scaling, 1 minus it is the relative parallel efficiency.
        """
        return self.excess.total

    @cached_property
    def ensemble(self) -> tuple[Costs, int]:
        """Mean excess work over all pairs of measured scales, and the number of these pairs.

        The mean is [call paths, 1]; NaN = the call path was never measured.
        """
        return ensemble_excess(
            self.experiment, self.metric, self.parameter, self.ideal, self.centre
        )


@dataclass(frozen=True, slots=True, eq=False)
class Unmatched:
    """Subtrees that occur on one side only: at one of two scales, or in one of two experiments.

    Attributes
    ----------
    rows : roots of these subtrees, in descending order of cost
    is_new : [rows] True = the subtree occurs at the larger scale, or in the new experiment
    cost : [rows] inclusive cost per process there
    share : [rows] fraction of the run time there
    callpaths : [rows] number of call paths in the subtree
    """

    rows: Rows
    is_new: BoolArray
    cost: FloatArray
    share: FloatArray
    callpaths: Rows


def repetitions_of_pair(
    experiment: Experiment, metric: str, parameter: str, ideal: Ideal, pair: Pair
) -> tuple[Costs, Costs] | None:
    """Return the costs of the runs of a pair of scales, as `Losses.repetitions` does."""
    points, cube = experiment.by_point(metric, parameter)
    of_runs = []
    for point in pair:
        runs = cube[:, int(np.searchsorted(points, point))]
        runs = np.nan_to_num(runs[:, ~np.isnan(runs).all(axis=0)])
        of_runs.append(per_process(experiment, parameter, runs, point))
    before, after = of_runs
    expected = ideal.runs(*pair, before)
    if expected is None:
        return None
    return Costs.of(experiment.tree, expected), Costs.of(experiment.tree, after)


def ensemble_excess(
    experiment: Experiment, metric: Metric, parameter: str, ideal: Ideal, how: Centre
) -> tuple[Costs, int]:
    """Return the mean excess work over all pairs of measured scales, and the number of pairs.

    Pairs without a cost at the larger scale, or without an expected cost, are excluded.

    Parameters
    ----------
    experiment : runs along one parameter
    metric, parameter : the metric and the parameter
    ideal : the expected costs
    how : centre of repetitions

    Returns
    -------
    Costs, int
        The mean, [call paths, 1]; NaN = the call path was never measured. It is NaN everywhere if
        there are no pairs.
    """
    points, cost = _measured_costs(experiment, metric.name, parameter, how)
    never = np.isnan(cost).all(axis=1)
    cost = np.nan_to_num(cost)
    total, count = np.zeros(len(cost)), 0
    for scale in range(1, len(points)):
        q, run_time = float(points[scale]), cost[:, scale].sum()
        for base in range(scale):
            p = float(points[base])
            if not run_time > 0 or ideal.gap(p, q):
                continue
            total += (cost[:, scale] - ideal.cost(p, q, cost[:, base])) / run_time
            count += 1
    mean = np.where(never, np.nan, total / count if count else np.nan)
    return Costs.of(experiment.tree, mean), count


def _measured_costs(
    experiment: Experiment, metric: str, parameter: str, how: Centre
) -> tuple[FloatArray, FloatArray]:
    """Return the measured scales and the costs per process there, [call paths, scales]."""
    points, cube = experiment.by_point(metric, parameter)
    has_values = ~np.isnan(cube).all(axis=(0, 2))
    points, cube = points[has_values], cube[:, has_values]
    columns = centre(cube, how).T
    cost = [
        per_process(experiment, parameter, column, float(point))
        for column, point in zip(columns, points, strict=True)
    ]
    return points, np.column_stack(cost)


def choose_pairs(
    points: FloatArray,
    line: ParameterLine,
    pair: Pair | Sequence[Pair] | None = None,
    base: float | None = None,
) -> tuple[Pair, ...]:
    """Return the pairs to compare: those of `pair`, or each larger scale with `base`.

    Parameters
    ----------
    points : scales measured on a line, ascending
    pair : two scales, or several pairs of them
    base : the smaller scale of all pairs; None = the smallest scale

    Raises
    ------
    UsageError
        If a scale was not measured, or if none is larger than the base.
    """
    listed, chosen = _listed(points), pairs_of(pair)
    for wanted in [scale for one in chosen for scale in one] or ([] if base is None else [base]):
        if wanted not in points:
            at = line.at(wanted)
            raise UsageError(
                f"no run at {setting_text(at)}",
                hint=f"measured: {listed}; "
                f"predictions are `cpmodel rank --at {shell_word(as_option(at))}`",
            )
    for one in chosen:
        if one[0] == one[1]:
            raise UsageError("--pair names one scale twice", hint=f"two of {listed}")
    if chosen:
        return tuple(dict.fromkeys((min(one), max(one)) for one in chosen))
    first = float(points[0]) if base is None else base
    pairs = tuple((first, float(point)) for point in points if point > first)
    if not pairs:
        raise UsageError(
            f"no scale is larger than the base, {setting_text({line.parameter: first})}",
            hint=f"--base with one of {listed}, but the last",
        )
    return pairs


def _expected_pairs(
    points: FloatArray, line: ParameterLine, pair: Sequence[Pair], base: float | None, ideal: Ideal
) -> tuple[Pair, ...]:
    """Return the pairs to compare for which a cost is expected.

    Without `pair` and `base`, the base is the smallest scale from which a cost is expected.

    Raises
    ------
    UsageError
        As `choose_pairs`, or if there is no such pair, or not for a pair of `pair`.
    """
    found = choose_pairs(points, line, pair, base)
    gaps = [gap for one in found if (gap := ideal.gap(*one))]
    if not gaps:
        return found
    left = () if pair else tuple(one for one in found if not ideal.gap(*one))
    bases = [] if pair or base is not None else points[1:-1].tolist()
    for first in bases:
        if left:
            break
        later = choose_pairs(points, line, base=first)
        left = tuple(one for one in later if not ideal.gap(*one))
    if not left:
        raise UsageError(
            f"no excess work: {gaps[0]}",
            hint=f"--base or --pair with others of {_listed(points)}, or another --expect",
        )
    return left


def losses(
    experiment: Experiment,
    metric: str | None = None,
    parameter: str | None = None,
    *,
    held: Mapping[str, float] | None = None,
    pair: Pair | Sequence[Pair] | None = None,
    base: float | None = None,
    aggregate: Aggregate = "auto",
    ideal: Ideal | None = None,
) -> Losses:
    """Return the excess work of every call path between measured scales.

    Parameters
    ----------
    experiment : the measured runs
    metric : name of the metric; None = the first duration
    parameter : name of the parameter; None = p if it varies
    held : measured values of other parameters; by default the largest ones
    pair, base : two scales or several pairs of scales, or the smaller scale of all pairs
    aggregate : centre of repetitions; ``"auto"`` = the same as for models of the metric
    ideal : expected costs; None = perfect weak or strong scaling, as the program scales

    Returns
    -------
    Losses
        Excess work [call paths, pairs], as fractions of the run time at the larger scale.

    Raises
    ------
    UsageError
        If there is no such metric, parameter, scale or value, or if the metric is not additive.
    DataError
        If there are fewer than two scales, or if the total at one of them is zero.

    References
    ----------
    Coarfa, Mellor-Crummey, Froyd, Dotsenko: Scalability Analysis of SPMD Codes Using Expectations
    (ICS 2007), the equations for strong and weak scaling.
    """
    check_type(experiment, Experiment, "experiment")
    check_type(ideal, (Ideal, NoneType), "ideal")
    chosen = experiment.metric(metric)
    if not chosen.additive:
        raise no_excess_work(chosen)
    line = measured_line(experiment, parameter, settings_of(held or {}, "held"))
    parameter = line.parameter
    how = aggregate_for(experiment, chosen.name, parameter, aggregate)
    if line.held:
        experiment = with_scaling_of(experiment.at(line.held))
    ideal = ideal or ScalingIdeal(scaling_over(experiment, parameter))
    base = None if base is None else target_of(base, what="base")
    return _losses_along(experiment, chosen, line, ideal, how, pairs_of(pair), base)


def with_pairs(fitted: Fitted, pairs: Sequence[Pair]) -> Fitted:
    """Return models that show the excess work between pairs of measured scales as well.

    Raises
    ------
    UsageError
        If a scale was not measured, or the metric does not add up over call paths.
    """
    if not fitted.metric.additive:
        raise no_excess_work(fitted.metric)
    line = ParameterLine(fitted.parameter, fitted.held, fitted.measured_at, fitted.assumed)
    return replace(fitted, pairs=choose_pairs(fitted.points, line, pairs_of(pairs)))


def no_excess_work(metric: Metric) -> UsageError:
    """Return the error about a metric that does not add up over call paths."""
    return UsageError(
        f"no excess work: {metric.name} does not add up over call paths",
        hint="choose a time or a count with --metric, and not --locations imbalance",
    )


def losses_of_pairs(fitted: Fitted) -> Losses | None:
    """Return the excess work between the pairs of scales that the user chose for some models.

    The scaling is that of the models. None = no pair was chosen, or the metric does not add up.

    Raises
    ------
    UsageError
        If a scale of a pair was not measured.
    DataError
        If the total at the larger scale of a pair is zero.
    """
    if not (fitted.pairs and fitted.metric.additive):
        return None
    line = ParameterLine(fitted.parameter, fitted.held, fitted.measured_at, fitted.assumed)
    ideal = ScalingIdeal(scaling_over(fitted.experiment, fitted.parameter))
    how = fitted.models.aggregate
    return _losses_along(fitted.line, fitted.metric, line, ideal, how, fitted.pairs, None)


def ensemble_of(fitted: Fitted) -> tuple[Costs, int]:
    """Return the mean excess work over all pairs of measured scales, and the number of pairs.

    It is [call paths, 1], as `Losses.ensemble`; NaN if the metric does not add up.
    """
    if not fitted.metric.additive or fitted.has_unknown_scale or not fitted.experiment.parameters:
        nothing = np.full((len(fitted.experiment.tree), 1), np.nan)
        return Costs(nothing, nothing), 0
    ideal = ScalingIdeal(scaling_over(fitted.experiment, fitted.parameter))
    how = fitted.models.aggregate
    return ensemble_excess(fitted.line, fitted.metric, fitted.parameter, ideal, how)


def _losses_along(
    experiment: Experiment,
    chosen: Metric,
    line: ParameterLine,
    ideal: Ideal,
    how: Centre,
    pair: tuple[Pair, ...],
    base: float | None,
) -> Losses:
    """Return the excess work of runs along a line."""
    parameter = line.parameter
    measured, cost = _measured_costs(experiment, chosen.name, parameter, how)
    if len(measured) < 2:
        raise DataError(
            f"{chosen.name} was measured at one scale only", hint="measure it at two or more"
        )
    pairs = _expected_pairs(measured, line, pair, base, ideal)
    points = np.unique(pairs)
    costs = Costs.of(experiment.tree, cost[:, np.searchsorted(measured, points)])
    places = tuple(tuple(np.searchsorted(points, one).tolist()) for one in pairs)
    expected, relative = [], []
    for one, at in zip(pairs, places, strict=True):
        columns = relative_excess(ideal, one, costs.exclusive, at, chosen, parameter)
        expected.append(columns[0])
        relative.append(columns[1])
    return Losses(
        experiment=experiment,
        metric=chosen,
        line=line,
        scaling=scaling_over(experiment, parameter),
        ideal=ideal,
        pairs=pairs,
        points=points,
        places=places,
        centre=how,
        costs=costs,
        run_time=costs.total,
        slowest=_run_times(experiment, chosen, parameter, points, how),
        expected=Costs.of(experiment.tree, np.column_stack(expected)),
        excess=Costs.of(experiment.tree, np.column_stack(relative)),
        omitted=() if pair else _without_pair(measured, points, base),
    )


def _without_pair(
    measured: FloatArray, points: FloatArray, base: float | None
) -> tuple[float, ...]:
    """Return the measured scales from the base on that are in no pair."""
    first = measured[0] if base is None else base
    return tuple(measured[(measured >= first) & ~np.isin(measured, points)].tolist())


def _run_times(
    experiment: Experiment, metric: Metric, parameter: str, points: FloatArray, how: Centre
) -> FloatArray:
    """Return the run times at points, [points]; NaN = not recorded."""
    program = experiment.of_program(metric.name)
    if program is None:
        return np.full(len(points), np.nan)
    known, cube = program.by_point(metric.name, parameter)
    return np.asarray(centre(cube[:, np.searchsorted(known, points)], how)[0])


def pairs_of(pair: Pair | Sequence[Pair] | None) -> tuple[Pair, ...]:
    """Return one pair of scales, or several, as a tuple of pairs.

    Raises
    ------
    UsageError
        If a pair is not two positive numbers.
    """
    if pair is None:
        return ()
    is_one = any(isinstance(each, Real | str) for each in pair)
    return tuple(_pair(one) for one in ([pair] if is_one else pair))  # type: ignore[arg-type]


def _pair(scales: Pair) -> Pair:
    """Return two scales as a pair."""
    found = targets_of(scales).tolist()
    if len(found) != 2:
        raise UsageError(f"a pair is of two scales, not {len(found)}", hint="e.g. pair=(8, 128)")
    return found[0], found[1]


def measured_line(
    experiment: Experiment, parameter: str | None, held: Mapping[str, float]
) -> ParameterLine:
    """Return a line with at least two measured scales.

    Parameters
    ----------
    experiment : the measured runs
    parameter : name of the parameter; None = p if it varies
    held : measured values of other parameters; by default the largest ones

    Raises
    ------
    DataError
        If there are no two scales.
    UsageError
        If there is no such parameter or value.
    """
    if not experiment.parameters:
        raise DataError(
            "all runs are at one scale: nothing to compare",
            hint="give profiles of two scales or more, e.g. p = 8 and 128",
        )
    names = experiment.modelled_parameters(parameter)
    chosen = parameter or names[0]
    names = (chosen, *(name for name in names if name != chosen))
    for name in held:
        if name == chosen:
            raise UsageError(
                f"--at {as_option({name: held[name]})}: excess work is between scales of {name}",
                hint="--pair or --base choose scales; --parameter another parameter",
            )
        if name not in names:
            raise UsageError(
                f"no parameter {name!r} varies independently of {chosen}",
                hint=f"parameters: {', '.join(names)}",
            )
    settings = np.unique(experiment.settings(names), axis=0)
    _, of_line, scales = np.unique(settings[:, 1:], axis=0, return_inverse=True, return_counts=True)
    settings = settings[scales[of_line.ravel()] > 1]
    if not len(settings):
        raise DataError(
            f"no two scales of {chosen} were measured where others are the same",
            hint="measure such, or compare --parameter another",
        )
    axes = [names.index(name) for name in held]
    there = settings[(settings[:, axes] == [*held.values()]).all(axis=1)]
    if not len(there):
        listed = (f"{name} = {_listed(settings[:, names.index(name)])}" for name in names[1:])
        raise UsageError(
            f"no two scales of {chosen} were measured at {setting_text(held)}",
            hint=f"there are at {'; '.join(listed)}",
        )
    line = nearest_line(names, there, held)
    return replace(line, held=line.measured_at)


def _listed(values: FloatArray) -> str:
    return ", ".join(map(parameter_value, np.unique(values)))


def relative_excess(
    ideal: Ideal,
    pair: Pair,
    cost: FloatArray,
    at: tuple[int, int],
    metric: Metric,
    parameter: str,
) -> tuple[FloatArray, FloatArray]:
    """Return expected costs and exclusive excess work, each [call paths].

    Excess work is NaN for a call path with a cost at neither scale.

    Parameters
    ----------
    ideal : the expected costs
    pair : the smaller and the larger scale
    cost : [call paths, points] exclusive cost per process; NaN = did not occur
    at : positions of both scales in `cost`
    metric, parameter : names for the error message

    Raises
    ------
    DataError
        If the total at the larger scale is zero.
    """
    before, after = (cost[:, place] for place in at)
    whole = np.nansum(after)
    if not whole > 0:
        raise DataError(
            f"{metric.name} is zero at {setting_text({parameter: pair[1]})}:"
            " nothing to be a share of",
            hint="choose another metric with -m, or other scales with --pair",
        )
    expected = ideal.cost(*pair, np.nan_to_num(before))
    lost = np.nan_to_num(after) - expected
    absent = np.isnan(before) & np.isnan(after) & (expected == 0)
    return expected, np.where(absent, np.nan, lost / whole)


def doubtful(excess: FloatArray, overlaps: BoolArray | None) -> BoolArray:
    """Return which noticeable excess work noise of the repetitions could explain, [n]."""
    found = np.abs(np.nan_to_num(excess)) >= NOTICEABLE
    return np.zeros_like(found) if overlaps is None else found & overlaps


def readings(inclusive: FloatArray, exclusive: FloatArray) -> list[ExcessPattern]:
    """Return the origin of losses from inclusive [n] and exclusive [n] excess work.

    The part of the callees is inclusive less exclusive excess work. Gains of one part do not
    compensate losses of the other: faster callees do not excuse a slow caller.
    """
    own, below = np.nan_to_num(exclusive), np.nan_to_num(inclusive - exclusive)
    found = []
    for total, mine, theirs in zip(
        np.nan_to_num(inclusive).tolist(), own.tolist(), below.tolist(), strict=True
    ):
        if max(mine, theirs) < NOTICEABLE:
            found.append(ExcessPattern.GAIN if total <= -NOTICEABLE else ExcessPattern.NONE)
        elif theirs <= _MINOR * mine:
            found.append(ExcessPattern.OWN)
        elif mine <= _MINOR * theirs:
            found.append(ExcessPattern.CALLEES)
        else:
            found.append(ExcessPattern.BOTH)
    return found


def overlap(before: FloatArray, after: FloatArray) -> BoolArray | None:
    """Return whether the repetitions of two scales overlap, so that noise may explain a difference.

    Parameters
    ----------
    before, after : [n, repetitions] and [n, other repetitions]

    Returns
    -------
    [n]; None if a scale has a single run
    """
    if min(before.shape[1], after.shape[1]) < 2:
        return None
    apart: BoolArray = after.max(axis=1) < before.min(axis=1)
    apart |= after.min(axis=1) > before.max(axis=1)
    return ~apart


def unmatched(losses: Losses, pair: int) -> Unmatched:
    """Return the subtrees that occur at one scale of a pair only."""
    base, scale = losses.columns(pair)
    before, after = losses.costs.inclusive[:, base], losses.costs.inclusive[:, scale]
    totals = float(losses.run_time[base]), float(losses.run_time[scale])
    return diverging(losses.experiment.tree, (before, after), totals)


def diverging(
    tree: CallTree, costs: tuple[FloatArray, FloatArray], totals: tuple[float, float]
) -> Unmatched:
    """Return the subtrees that occur on one side only.

    Parameters
    ----------
    tree : call tree of both sides
    costs : [call paths] inclusive costs of the base and of the new side; NaN = does not occur
    totals : costs of the whole program on both sides
    """
    before, after = costs
    one_only = np.isnan(before) != np.isnan(after)
    is_topmost = one_only & ~((tree.parent != ROOT) & one_only[tree.parent])
    rows = np.flatnonzero(is_topmost)
    is_new = np.isnan(before[rows])
    cost = np.where(is_new, after[rows], before[rows])
    whole = np.where(is_new, totals[1], totals[0])
    share = np.divide(cost, whole, out=np.zeros_like(cost), where=whole > 0)
    callpaths = tree.inclusive(one_only.astype(float))[rows].astype(np.intp)
    order = np.argsort(-share, kind="stable")
    return Unmatched(rows[order], is_new[order], cost[order], share[order], callpaths[order])
