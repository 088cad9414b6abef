"""Excess work of an ensemble of runs: the loss of every call path between pairs of scales.

The equations are those of `analysis.excess`, for many pairs of measured scales at once. Excess work
is a fraction of one run time. Therefore it is additive, and any view of the call tree can show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import NoneType
from typing import TYPE_CHECKING, get_args

import numpy as np
from msgspec import Struct

from callpath_modeler.analysis.excess_work import (
    Excess,
    Loss,
    excess_beyond,
    per_process,
    repetitions_of_pair,
    run_times_at,
)
from callpath_modeler.analysis.ideals import ideal_of, perfect, scaling_over
from callpath_modeler.analysis.scales import (
    Pair,
    expected_pairs,
    measured_line,
    no_excess_work,
    pairs_of,
)
from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import DataError, check_choice, check_type
from callpath_modeler.fitted import Fitted, Ideal
from callpath_modeler.modeling import Centre, centre
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.runs import ParameterLine, settings_of, target_of
from callpath_modeler.profile.scaling_kind import with_scaling_of
from callpath_modeler.profile.schema import Metric
from callpath_modeler.support.front_ends import LossesPlotMixin
from callpath_modeler.units import setting_text

if TYPE_CHECKING:
    from callpath_modeler.analysis.pairing import Unmatched

ROUNDED = 5e-4
"""Relative difference that a number with three digits may hide."""


@dataclass(frozen=True, eq=False)
class Losses(LossesPlotMixin):
    """Excess work of every call path between pairs of scales.

    All scales are measured, except the larger one of the last pair if there is a `target`.

    Attributes
    ----------
    experiment : the runs
    metric : the metric
    line : the parameter of the scales, and fixed values of the others
    scaling : weak or strong
    ideal : the expected costs
    pairs : the smaller and the larger scale of each pair
    points : [points] scales of the pairs, ascending; then the base and the target
    places : positions in `points` of both scales of each pair
    centre : centre of the repetitions
    costs : [call paths, points] cost per process, SI base units
    run_time : [points] run time of the program, which is that of the slowest process; the sum of
        all costs, if it was not recorded
    has_run_time : whether the run time was recorded
    expected : [call paths, pairs] expected cost per process at the larger scale of the pair
    excess : [call paths, pairs] fractions of the run time at the larger scale of the pair
    total : [pairs] excess work of the program: that of its call paths, and of the imbalance.
        Under weak or strong scaling, 1 minus it is the relative parallel efficiency
    omitted : measured scales that are in no pair, because no cost is expected for them
    target : the larger scale of the last pair, if costs there are predicted; else None
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
    has_run_time: bool
    expected: Costs
    excess: Costs
    total: FloatArray
    omitted: tuple[float, ...] = ()
    target: float | None = None

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
        return self.target is not None and pair == len(self.pairs) - 1

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
    def imbalance(self) -> FloatArray:
        """Excess work of the run time beyond the sum of the call paths, [pairs]."""
        return self.total - self.excess.total

    @property
    def has_imbalance(self) -> bool:
        """True if three digits show that the call paths do not add up to the run time."""
        rest = np.abs(self.run_time - self.costs.total)
        return self.has_run_time and bool((rest > ROUNDED * self.run_time).any())

    @cached_property
    def ensemble(self) -> EnsembleExcess:
        """Mean excess work over all pairs of measured scales."""
        return ensemble_excess(
            self.experiment, self.metric, self.parameter, self.ideal, self.centre
        )


class EnsembleExcess(Struct, frozen=True, eq=False):
    """Mean excess work over all pairs of measured scales.

    Attributes
    ----------
    costs : [call paths, 1]; NaN = the call path was never measured, or there are no pairs
    total : excess work of the program, as in `Losses`; NaN = there are no pairs
    count : number of pairs
    """

    costs: Costs
    total: float
    count: int

    @property
    def imbalance(self) -> float:
        """Excess work of the run time beyond the sum of the call paths."""
        return self.total - float(self.costs.total[0])


def ensemble_excess(
    experiment: Experiment, metric: Metric, parameter: str, ideal: Ideal, how: Centre
) -> EnsembleExcess:
    """Return the mean excess work over all pairs of measured scales.

    Pairs without a cost at the larger scale, or without an expected cost, are excluded.

    Parameters
    ----------
    experiment : runs along one parameter
    metric, parameter : the metric and the parameter
    ideal : the expected costs
    how : centre of repetitions
    """
    points, cost = _measured_costs(experiment, metric.name, parameter, how)
    never = np.isnan(cost).all(axis=1)
    cost = np.nan_to_num(cost)
    run_time = _run_times_or_sums(experiment, metric, parameter, points, how, cost)[0]
    of_rows, of_program, count = np.zeros(len(cost)), 0.0, 0
    for scale in range(1, len(points)):
        q, whole = float(points[scale]), float(run_time[scale])
        for base in range(scale):
            p = float(points[base])
            if not whole > 0 or ideal.gap(p, q):
                continue
            before = cost[:, base]
            of_rows += Loss(1.0, whole).excess(cost[:, scale], ideal.cost(p, q, before))
            of_program += 1 - ideal.run_time(p, q, float(run_time[base]), before) / whole
            count += 1
    if not count:
        return EnsembleExcess(Costs.of(experiment.tree, np.full(len(cost), np.nan)), np.nan, 0)
    mean = np.where(never, np.nan, of_rows / count)
    return EnsembleExcess(Costs.of(experiment.tree, mean), of_program / count, count)


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


def losses(
    experiment: Experiment,
    metric: str | None = None,
    parameter: str | None = None,
    *,
    held: Mapping[str, float] | None = None,
    pair: Pair | Sequence[Pair] | None = None,
    base: float | None = None,
    aggregate: Centre = "mean",
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
    aggregate : centre of repetitions
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
    check_choice(aggregate, get_args(Centre), "aggregate")
    chosen = experiment.metric(metric)
    if not chosen.additive:
        raise no_excess_work(chosen)
    line = measured_line(experiment, parameter, settings_of(held or {}, "held"))
    parameter = line.parameter
    if line.held:
        experiment = with_scaling_of(experiment.at(line.held))
    ideal = ideal or perfect(scaling_over(experiment, parameter))
    base = None if base is None else target_of(base, what="base")
    return _losses_along(experiment, chosen, line, ideal, aggregate, pairs_of(pair), base)


def measured_excess_of(fitted: Fitted, more: Sequence[Pair] = ()) -> list[Excess]:
    """Return the excess work between the base of models and each larger measured scale.

    Scales at which no cost is expected are excluded.

    Parameters
    ----------
    fitted : the models, of an additive metric
    more : further pairs of measured scales
    """
    ideal, base, tree = ideal_of(fitted), fitted.base, fitted.experiment.tree
    line, metric, how = fitted.line, fitted.metric, fitted.models.aggregate
    points, cost = _measured_costs(line, metric.name, fitted.parameter, how)
    run_times, _ = _run_times_or_sums(line, metric, fitted.parameter, points, how, cost)
    larger = fitted.points[fitted.points > base].tolist()
    found = []
    for pair in dict.fromkeys([*((base, scale) for scale in larger), *more]):
        if not ideal.gap(*pair):
            before, after = (cost[:, int(np.flatnonzero(points == at)[0])] for at in pair)
            expected = ideal.cost(*pair, np.nan_to_num(before))
            run_time = float(run_times[int(np.flatnonzero(points == pair[1])[0])])
            found.append(excess_beyond(tree, pair, expected, after, run_time))
    return found


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
    ideal = ideal_of(fitted)
    how = fitted.models.aggregate
    return _losses_along(fitted.line, fitted.metric, line, ideal, how, fitted.pairs, None)


def ensemble_of(fitted: Fitted) -> EnsembleExcess:
    """Return the mean excess work over all pairs of measured scales.

    It is NaN if the metric does not add up.
    """
    if not fitted.metric.additive or fitted.has_unknown_scale or not fitted.experiment.parameters:
        nothing = np.full((len(fitted.experiment.tree), 1), np.nan)
        return EnsembleExcess(Costs(nothing, nothing), np.nan, 0)
    ideal = ideal_of(fitted)
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
    pairs = expected_pairs(measured, line, pair, base, ideal)
    points = np.unique(pairs)
    costs = Costs.of(experiment.tree, cost[:, np.searchsorted(measured, points)])
    places = tuple(tuple(np.searchsorted(points, one).tolist()) for one in pairs)
    run_time, has_run_time = _run_times_or_sums(
        experiment, chosen, parameter, points, how, costs.exclusive
    )
    expected, relative, total = [], [], []
    for one, at in zip(pairs, places, strict=True):
        if not run_time[at[1]] > 0:
            raise no_total(chosen, parameter, one[1])
        columns = relative_excess(ideal, one, costs.exclusive, at, float(run_time[at[1]]))
        expected.append(columns[0])
        relative.append(columns[1])
        before = np.nan_to_num(costs.exclusive[:, at[0]])
        spent = ideal.run_time(*one, float(run_time[at[0]]), before)
        total.append(1 - spent / run_time[at[1]])
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
        run_time=run_time,
        has_run_time=has_run_time,
        expected=Costs.of(experiment.tree, np.column_stack(expected)),
        excess=Costs.of(experiment.tree, np.column_stack(relative)),
        total=np.array(total),
        omitted=() if pair else _without_pair(measured, points, base),
    )


def _without_pair(
    measured: FloatArray, points: FloatArray, base: float | None
) -> tuple[float, ...]:
    """Return the measured scales from the base on that are in no pair."""
    first = measured[0] if base is None else base
    return tuple(measured[(measured >= first) & ~np.isin(measured, points)].tolist())


def _run_times_or_sums(
    experiment: Experiment,
    metric: Metric,
    parameter: str,
    points: FloatArray,
    how: Centre,
    cost: FloatArray,
) -> tuple[FloatArray, bool]:
    """Return the run times at points, [points], and whether they were recorded.

    If they were not, they are the sums of the costs per process, [call paths, points].
    """
    found = run_times_at(experiment, metric.name, parameter, points, how)
    if np.isnan(found).any():
        return np.nansum(cost, axis=0), False
    return found, True


def relative_excess(
    ideal: Ideal,
    pair: Pair,
    cost: FloatArray,
    at: tuple[int, int],
    run_time: float,
) -> tuple[FloatArray, FloatArray]:
    """Return expected costs and exclusive excess work, each [call paths].

    Excess work is NaN for a call path with a cost at neither scale.

    Parameters
    ----------
    ideal : the expected costs
    pair : the smaller and the larger scale
    cost : [call paths, points] exclusive cost per process; NaN = did not occur
    at : positions of both scales in `cost`
    run_time : run time at the larger scale, above zero
    """
    before, after = (cost[:, place] for place in at)
    loss = Loss(1.0, run_time)
    expected = ideal.cost(*pair, np.nan_to_num(before))
    absent = np.isnan(before) & np.isnan(after) & (expected == 0)
    return expected, np.where(absent, np.nan, loss.excess(after, expected))


def no_total(metric: Metric, parameter: str, scale: float) -> DataError:
    """Return the error of a scale at which the program costs nothing."""
    return DataError(
        f"{metric.name} is zero at {setting_text({parameter: scale})}: nothing to be a share of",
        hint="choose another metric with -m, or other scales with --pair",
    )


def unmatched(losses: Losses, pair: int) -> Unmatched:
    """Return the subtrees that occur at one scale of a pair only."""
    from callpath_modeler.analysis.pairing import diverging

    base, scale = losses.columns(pair)
    before, after = losses.costs.inclusive[:, base], losses.costs.inclusive[:, scale]
    totals = float(losses.run_time[base]), float(losses.run_time[scale])
    return diverging(losses.experiment.tree, (before, after), totals)
