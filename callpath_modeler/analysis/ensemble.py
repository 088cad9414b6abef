"""Excess work of an ensemble of runs: the loss of every call path between pairs of scales.

The equations are those of `analysis.excess`, for many pairs of measured scales at once. Excess work
is a fraction of one run time. Therefore it is additive, and any view of the call tree can show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import NoneType
from typing import get_args

import numpy as np

from callpath_modeler.analysis.excess import (
    Excess,
    Loss,
    excess_beyond,
    per_process,
    repetitions_of_pair,
)
from callpath_modeler.analysis.ideals import ideal_of, perfect, scaling_over
from callpath_modeler.analysis.scale_pairs import (
    Pair,
    expected_pairs,
    measured_line,
    no_excess_work,
    pairs_of,
)
from callpath_modeler.analysis.unmatched import Unmatched, diverging
from callpath_modeler.argument_checks import check_choice, check_type
from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import DataError
from callpath_modeler.fitted import Fitted
from callpath_modeler.ideal import Ideal
from callpath_modeler.modeling import Centre, centre
from callpath_modeler.notebook_repr import LossesPlotMixin
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.parameter_line import ParameterLine
from callpath_modeler.profile.scaling_kind import with_scaling_of
from callpath_modeler.profile.schema import Metric
from callpath_modeler.targets import settings_of, target_of
from callpath_modeler.units import setting_text


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
    run_time : [points] cost per process of the whole program
    slowest : [points] run time of the program, which is that of the slowest process; NaN = not
        recorded
    expected : [call paths, pairs] expected cost per process at the larger scale of the pair
    excess : [call paths, pairs] fractions of the run time at the larger scale of the pair
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
    slowest: FloatArray
    expected: Costs
    excess: Costs
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
            expected = ideal.cost(p, q, cost[:, base])
            total += Loss(1.0, run_time).excess(cost[:, scale], expected)
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
    points, cost = _measured_costs(
        fitted.line, fitted.metric.name, fitted.parameter, fitted.models.aggregate
    )
    larger = fitted.points[fitted.points > base].tolist()
    found = []
    for pair in dict.fromkeys([*((base, scale) for scale in larger), *more]):
        if not ideal.gap(*pair):
            before, after = (cost[:, int(np.flatnonzero(points == at)[0])] for at in pair)
            expected = ideal.cost(*pair, np.nan_to_num(before))
            found.append(excess_beyond(tree, pair, expected, after))
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


def ensemble_of(fitted: Fitted) -> tuple[Costs, int]:
    """Return the mean excess work over all pairs of measured scales, and the number of pairs.

    It is [call paths, 1], as `Losses.ensemble`; NaN if the metric does not add up.
    """
    if not fitted.metric.additive or fitted.has_unknown_scale or not fitted.experiment.parameters:
        nothing = np.full((len(fitted.experiment.tree), 1), np.nan)
        return Costs(nothing, nothing), 0
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
    loss = Loss(1.0, float(np.nansum(after)))
    if not loss.run_time > 0:
        raise no_total(metric, parameter, pair[1])
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
    base, scale = losses.columns(pair)
    before, after = losses.costs.inclusive[:, base], losses.costs.inclusive[:, scale]
    totals = float(losses.run_time[base]), float(losses.run_time[scale])
    return diverging(losses.experiment.tree, (before, after), totals)
