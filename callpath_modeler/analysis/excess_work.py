"""Excess work between two scales: the part of the run time that perfect scaling would not have.

Coarfa, Mellor-Crummey, Froyd, Dotsenko: Scalability Analysis of SPMD Codes Using Expectations
(ICS 2007). With p < q processes, cost C per process and run time T,

- strong scaling: X = (q C_q - p C_p) / (q T_q)
- weak scaling:   X = (C_q - C_p) / T_q

T is the time of the slowest process. If it was not recorded, it is the sum of all costs. So X of
the program is that of its call paths and of the rest of its run time, the imbalance.

0 is perfect, positive is a loss, negative is superlinear. 1 - X of the whole program is its
relative parallel efficiency. The efficiency of a call path is its cost under perfect scaling over
its cost. If inclusive and exclusive X are about equal, the loss is in the call path itself. If
inclusive X is larger, the loss is in the callees.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import get_args

import numpy as np
from msgspec import Struct

from callpath_modeler.analysis.ideals import ideal_cost, ideal_of, scaling_over
from callpath_modeler.analysis.uncertain import Band, propagate_errors
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.errors import UsageError, check_choice, check_type
from callpath_modeler.fitted import Fitted, Ideal
from callpath_modeler.modeling import Centre, centre
from callpath_modeler.modeling.constants.bands import COLUMNS
from callpath_modeler.modeling.sums import ends_of_sums
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import TOLD_SCALINGS, Experiment, Scaling
from callpath_modeler.profile.groups import Costs, inclusive_values
from callpath_modeler.profile.runs import target_of
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.units import parameter_value, setting_text

CARRIES_COST = 0.01
"""From this share of the whole on, a call path carries cost."""


@dataclass(frozen=True, eq=False, repr=False)
class Excess:
    """Excess work of every call path between two scales.

    Attributes
    ----------
    tree : the call tree
    base, scale : the smaller and the larger number of processes
    exclusive : [call paths], fractions of the run time at `scale`
    lost : [call paths], exclusive cost per process at `scale` beyond the expected cost, in the unit
        of the metric
    cost : [call paths], exclusive cost per process at `scale`; NaN = not known
    counted : [call paths], which of them count in sums over subtrees; None = all
    """

    tree: CallTree
    base: float
    scale: float
    exclusive: FloatArray
    lost: FloatArray
    cost: FloatArray
    counted: BoolArray | None = None

    @cached_property
    def inclusive(self) -> FloatArray:
        """Sums of `exclusive` over subtrees, [call paths]; NaN = none of the subtree counts."""
        if self.counted is None:
            return self.tree.inclusive(self.exclusive)
        return inclusive_values(self.tree, np.where(self.counted, self.exclusive, np.nan))

    @cached_property
    def efficiency(self) -> FloatArray:
        """Expected inclusive cost of each subtree over its inclusive cost, [call paths].

        NaN = the cost is zero or not known. Under weak or strong scaling, it is the relative
        parallel efficiency.
        """
        cost = self.tree.inclusive(np.nan_to_num(self.cost))
        return efficiency_of(cost, self.tree.inclusive(self.lost))


def excess_work(
    tree: CallTree,
    scaling: Scaling,
    base: tuple[float, FloatArray],
    scale: tuple[float, FloatArray],
    run_time: float | None = None,
) -> Excess:
    """Return the excess work between two scales.

    Parameters
    ----------
    tree : call tree of n call paths
    scaling : weak or strong
    base, scale : number of processes, and exclusive cost per process [n]; NaN = did not occur,
        which costs nothing
    run_time : run time at `scale`, which is that of the slowest process; None = the sum of all
        costs there

    Returns
    -------
    Excess
        Excess work of the n call paths, as fractions of the run time at `scale`.

    Raises
    ------
    UsageError
        If `scaling` is neither weak nor strong, a scale is not positive, or an array does not have
        n costs.

    References
    ----------
    Coarfa, Mellor-Crummey, Froyd, Dotsenko: Scalability Analysis of SPMD Codes Using Expectations
    (ICS 2007), the equations for strong and weak scaling.
    """
    check_choice(scaling, TOLD_SCALINGS, "scaling")
    (p, cost_p), (q, cost_q) = (_costs(tree, *each) for each in (base, scale))
    expected = ideal_cost(Scaling(scaling), p, q, np.nan_to_num(cost_p))
    return excess_beyond(tree, (p, q), expected, cost_q, run_time)


def excess_beyond(
    tree: CallTree,
    pair: tuple[float, float],
    expected: FloatArray,
    cost: FloatArray,
    run_time: float | None = None,
) -> Excess:
    """Return the excess work of n call paths beyond expected costs.

    Parameters
    ----------
    tree : call tree of n call paths
    pair : the smaller and the larger scale
    expected : [n] expected exclusive cost per process at the larger scale
    cost : [n] exclusive cost per process there; NaN = did not occur
    run_time : run time there; None = the sum of all costs
    """
    loss = Loss(1.0, float(np.nansum(cost)) if run_time is None else run_time)
    own = loss.excess(cost, expected)
    return Excess(tree, *pair, own, loss.lost(cost, expected), cost)


def efficiency_of(cost: FloatArray, lost: FloatArray) -> FloatArray:
    """Return the fraction of costs that perfect scaling has as well; NaN = no cost.

    Parameters
    ----------
    cost, lost : arrays of one shape: the cost, and its part beyond that of perfect scaling
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(cost > 0, 1.0 - lost / cost, np.nan))


def _costs(tree: CallTree, scale: float, cost: FloatArray) -> tuple[float, FloatArray]:
    costs = np.asarray(cost, np.float64)
    if costs.shape != (len(tree),):
        raise UsageError(
            f"costs have shape {costs.shape}; there are {len(tree)} call paths",
            hint="one cost for each, e.g. experiment.values()[:, 0]",
        )
    return target_of(scale, what="scale"), costs


def measured_excess(
    experiment: Experiment,
    metric: str,
    parameter: str,
    base: float,
    scale: float,
    aggregate: Centre = "mean",
) -> Excess:
    """Return the excess work between two measured scales.

    Sums over processes are divided by the number of processes first.

    Parameters
    ----------
    experiment : the measured runs
    metric : name of the metric
    parameter : name of the parameter of `base` and `scale`
    base, scale : the smaller and the larger scale
    aggregate : centre of repetitions

    Returns
    -------
    Excess
        Excess work of every call path, as fractions of the run time at `scale`.

    Raises
    ------
    UsageError
        If a scale was not measured, or if there is no such metric or parameter.

    References
    ----------
    Coarfa, Mellor-Crummey, Froyd, Dotsenko: Scalability Analysis of SPMD Codes Using Expectations
    (ICS 2007), the equations for strong and weak scaling.
    """
    check_type(experiment, Experiment, "experiment")
    check_choice(aggregate, get_args(Centre), "aggregate")
    points, values = experiment.by_point(metric, parameter)
    costs = []
    for point in (base, scale):
        index = np.flatnonzero(points == target_of(point, what="scale"))
        here = centre(values[:, index], aggregate)
        if np.isnan(here).all():
            raise UsageError(
                f"{metric} was not measured at {setting_text({parameter: point})}",
                hint=f"measured: {', '.join(map(parameter_value, points))}",
            )
        here = here[:, 0]
        costs.append(per_process(experiment, parameter, here, point))
    run_time = float(run_times_at(experiment, metric, parameter, np.array([scale]), aggregate)[0])
    return excess_work(
        experiment.tree,
        scaling_over(experiment, parameter),
        (base, costs[0]),
        (scale, costs[1]),
        None if np.isnan(run_time) else run_time,
    )


def run_times_at(
    experiment: Experiment, metric: str, parameter: str, points: FloatArray, how: Centre
) -> FloatArray:
    """Return the run times at measured points, [points]; NaN = not recorded."""
    program = experiment.of_program(metric)
    if program is None:
        return np.full(len(points), np.nan)
    known, cube = program.by_point(metric, parameter)
    return np.asarray(centre(cube[:, np.searchsorted(known, points)], how)[0])


def per_process(
    experiment: Experiment, parameter: str, values: FloatArray, point: float
) -> FloatArray:
    """Return cost per process at a point; only sums over p processes need a division."""
    return values / point if is_summed(experiment, parameter) else values


def is_summed(experiment: Experiment, parameter: str) -> bool:
    """Return True if values are sums over p processes."""
    return experiment.reduction is Reduction.SUM and parameter == "p"


class Loss(Struct, frozen=True):
    """Factors of excess work between the base and a target.

    Attributes
    ----------
    of_target : factor that converts a cost at the target to one process
    run_time : run time at the target, or the sum of all costs per process; ``inf`` = only costs
        that grow without limit are lost
    """

    of_target: float
    run_time: float

    def lost(self, value: FloatArray, expected: FloatArray) -> FloatArray:
        """Return the cost per process at the target beyond the expected one."""
        if np.isinf(self.run_time):
            return np.where(np.isinf(value), np.inf, 0.0)
        return self.of_target * np.nan_to_num(value) - expected

    def excess(
        self, value: FloatArray, expected: FloatArray, share: FloatArray | None = None
    ) -> FloatArray:
        """Return lost costs as fractions of the run time at the target.

        Parameters
        ----------
        value, expected : [n] costs at the target, and expected costs per process
        share : [n] shares of the total, which replace lost costs if the run time is infinite
        """
        if np.isinf(self.run_time) and share is not None:
            return np.nan_to_num(share)
        lost = self.lost(value, expected)
        return lost / self.run_time if self.run_time > 0 else np.zeros_like(lost)


def loss_at(fitted: Fitted, target: float, whole: float) -> Loss | None:
    """Return the factors of excess work at `target`; None = excess work is not defined.

    `no_excess` states the reason.

    Parameters
    ----------
    whole : cost of the whole program at the target, in the unit of the call paths
    """
    if no_excess(fitted, target):
        return None
    if is_summed(fitted.experiment, fitted.parameter):
        return Loss(1 / target, whole / target)
    return Loss(1.0, whole)


def no_excess(fitted: Fitted, target: float) -> str:
    """Return why excess work is not defined at `target`; "" = it is defined."""
    ideal = ideal_of(fitted)
    if not fitted.metric.additive:
        return f"{fitted.metric.name} does not add up over call paths"
    if target < fitted.base:
        return f"the target is below {setting_text({fitted.parameter: fitted.base})}"
    if np.isinf(target) and is_summed(fitted.experiment, fitted.parameter):
        return "sums over processes grow with their number"
    if np.isinf(target) and ideal.scaling is None:
        return ideal.gap(fitted.base, fitted.base) or "no cost is expected at infinity"
    return ideal.gap(fitted.base, target) if np.isfinite(target) else ""


def compares_scales(fitted: Fitted, target: float) -> bool:
    """Return whether measured values at a target are compared with those of a smaller scale.

    This is so without models, if a cost is expected at the target.
    """
    return fitted.compares(target) and not no_excess(fitted, target)


def expected_at(fitted: Fitted, target: float, *, predicted: bool) -> FloatArray:
    """Return the expected cost of each call path at `target`, exclusive, per process.

    It is [call paths], and zero where excess work is not defined.

    Parameters
    ----------
    predicted : whether the cost at the target is predicted; call paths without a model are then
        excluded
    """
    if no_excess(fitted, target):
        return np.zeros(len(fitted.experiment.tree))
    known = fitted.modelled if predicted else np.full(len(fitted.experiment.tree), True)
    before = np.nan_to_num(np.where(known, fitted.at_base(), 0.0))
    before = per_process(fitted.experiment, fitted.parameter, before, fitted.base)
    return np.where(known, ideal_of(fitted).cost(fitted.base, target, before), 0.0)


def expected_addends(fitted: Fitted, target: float) -> FloatArray | None:
    """Return additive numbers for bands of `expected_at`, [call paths, columns]; None = no band."""
    if no_excess(fitted, target) or np.isinf(target):
        return None
    addends = ideal_of(fitted).added(target)
    return None if addends is None else np.where(fitted.modelled[:, None], addends, 0.0)


def repetitions_compared(fitted: Fitted, target: float) -> tuple[Costs, Costs] | None:
    """Return the expected costs of the runs at the base, and the costs at the target.

    None = no run states the expected costs.
    """
    line, pair = fitted.line, (fitted.base, target)
    return repetitions_of_pair(line, fitted.metric.name, fitted.parameter, ideal_of(fitted), pair)


def repetitions_of_pair(
    experiment: Experiment, metric: str, parameter: str, ideal: Ideal, pair: tuple[float, float]
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


def expected_band(expected: FloatArray, addends: FloatArray | None, one: float) -> Band:
    """Return expected costs per process with their bands, [n].

    Parameters
    ----------
    expected : expected costs per process, [n]
    addends : [n, columns] additive numbers of the costs as they were read; None = there is no band
    one : factor that converts a cost to one process
    """
    if addends is None:
        return Band(expected, expected, expected)
    low, high = ends_of_sums(expected / one, addends)
    return Band(expected, low * one, high * one)


def excess_band(
    value: FloatArray,
    addends: FloatArray,
    total: tuple[float, FloatArray],
    expected: Band,
    loss: Loss,
) -> Band:
    """Return excess work with its band, [n]; NaN = no prediction.

    The errors of a cost, of the rest of the program and of the expected cost are propagated.

    Parameters
    ----------
    value : [n] predicted costs
    addends : [n, columns] their additive numbers; the first are those of `sums.addable`
    total : predicted sum of all costs, and its additive numbers [columns]
    expected : expected costs per process, [n]
    loss : the factors of excess work
    """
    cost, parts = np.nan_to_num(value), addends[:, :COLUMNS]
    rest = np.maximum(total[0] - cost, 0.0)
    beside = np.maximum(total[1][:COLUMNS] - parts, 0.0)
    mine = Band(cost, *ends_of_sums(cost, parts))
    others = Band(rest, *ends_of_sums(rest, beside))
    one = loss.of_target
    shares = propagate_errors(
        lambda of: (of[0] * one - of[2]) / ((of[0] + of[1]) * one), [mine, others, expected]
    )
    # The run time differs from the sum of all costs by the imbalance.
    by = total[0] * one / loss.run_time if loss.run_time > 0 else 1.0
    ends = by * np.array([shares.value, shares.low, shares.high])
    share, low, high = np.where(np.isnan(value), np.nan, ends)
    return Band(share, low, high)


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
