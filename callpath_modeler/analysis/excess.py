"""Excess work between two scales: the part of the run time that perfect scaling would not have.

Coarfa, Mellor-Crummey, Froyd, Dotsenko: Scalability Analysis of SPMD Codes Using Expectations
(ICS 2007). With p < q processes, cost C per process and run time T,

- strong scaling: X = (q C_q - p C_p) / (q T_q)
- weak scaling:   X = (C_q - C_p) / T_q

0 is perfect, positive is a loss, negative is superlinear. 1 - X of the whole program is its
relative parallel efficiency. The efficiency of a call path is its cost under perfect scaling over
its cost. If inclusive and exclusive X are about equal, the loss is in the call path itself. If
inclusive X is larger, the loss is in the callees.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from callpath_modeler.analysis.aggregation import aggregate_for
from callpath_modeler.argument_checks import check_type, parse_enum
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.errors import UsageError
from callpath_modeler.modeling import Aggregate, centre
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.metric_values import inclusive_values
from callpath_modeler.profile.parameter_line import worker_parameter
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.targets import target_of
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
) -> Excess:
    """Return the excess work between two scales.

    Parameters
    ----------
    tree : call tree of n call paths
    scaling : weak or strong
    base, scale : number of processes, and exclusive cost per process [n]; NaN = did not occur,
        which costs nothing

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
    scaling = parse_enum(Scaling, scaling, "scaling")
    (p, cost_p), (q, cost_q) = (_costs(tree, *each) for each in (base, scale))
    expected = ideal_cost(scaling, p, q, np.nan_to_num(cost_p))
    return excess_beyond(tree, (p, q), expected, cost_q)


def excess_beyond(
    tree: CallTree, pair: tuple[float, float], expected: FloatArray, cost: FloatArray
) -> Excess:
    """Return the excess work of n call paths beyond expected costs.

    Parameters
    ----------
    tree : call tree of n call paths
    pair : the smaller and the larger scale
    expected : [n] expected exclusive cost per process at the larger scale
    cost : [n] exclusive cost per process there; NaN = did not occur
    """
    lost = np.nan_to_num(cost) - expected
    run_time = np.nansum(cost)
    relative = lost / run_time if run_time > 0 else np.zeros_like(lost)
    return Excess(tree, *pair, relative, lost, cost)


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


def ideal_cost(scaling: Scaling, base: float, scale: float, cost: FloatArray) -> FloatArray:
    """Return the cost per process at `scale` under perfect scaling, from `cost` at the base."""
    return cost * (base / scale) if scaling is Scaling.STRONG else cost


def measured_excess(
    experiment: Experiment,
    metric: str,
    parameter: str,
    base: float,
    scale: float,
    aggregate: Aggregate = "auto",
) -> Excess:
    """Return the excess work between two measured scales.

    Sums over processes are divided by the number of processes first.

    Parameters
    ----------
    experiment : the measured runs
    metric : name of the metric
    parameter : name of the parameter of `base` and `scale`
    base, scale : the smaller and the larger scale
    aggregate : centre of repetitions; ``"auto"`` = the same as for models of the metric

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
    how = aggregate_for(experiment, metric, parameter, aggregate)
    points, values = experiment.by_point(metric, parameter)
    costs = []
    for point in (base, scale):
        index = np.flatnonzero(points == target_of(point, what="scale"))
        here = centre(values[:, index], how)
        if np.isnan(here).all():
            raise UsageError(
                f"{metric} was not measured at {setting_text({parameter: point})}",
                hint=f"measured: {', '.join(map(parameter_value, points))}",
            )
        here = here[:, 0]
        costs.append(per_process(experiment, parameter, here, point))
    return excess_work(
        experiment.tree, scaling_over(experiment, parameter), (base, costs[0]), (scale, costs[1])
    )


def scaling_over(experiment: Experiment, parameter: str) -> Scaling:
    """Return the kind of scaling; without more workers, costs are compared as they are."""
    workers = worker_parameter(each.name for each in experiment.parameters)
    return experiment.scaling if parameter in {workers, "p"} else Scaling.WEAK


def per_process(
    experiment: Experiment, parameter: str, values: FloatArray, point: float
) -> FloatArray:
    """Return cost per process at a point; only sums over p processes need a division."""
    return values / point if is_summed(experiment, parameter) else values


def is_summed(experiment: Experiment, parameter: str) -> bool:
    """Return True if values are sums over p processes."""
    return experiment.reduction is Reduction.SUM and parameter == "p"
