"""Excess work: how much of the time at a larger scale would not be there under perfect scaling.

Coarfa, Mellor-Crummey, Froyd, Dotsenko: Scalability Analysis of SPMD Codes Using Expectations
(ICS 2007). With p < q processes, cost C per process and run time T,

- strong scaling: X = (q C_q - p C_p) / (q T_q)
- weak scaling:   X = (C_q - C_p) / T_q

0 is perfect, positive is loss, negative is superlinear. 1 - X of the whole program is its relative
parallel efficiency. That of a call path is its cost under perfect scaling over its cost.
X of the inclusive cost about equal to X of the exclusive cost: the loss is in the call path's
own cost; X inclusive above X exclusive: look at the callees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.aggregation import aggregate_for
from callpath_modeler.argument_checks import check_type, parse_enum
from callpath_modeler.errors import UsageError
from callpath_modeler.modeling import Aggregate, centre
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.targets import target_of
from callpath_modeler.units import parameter_value, setting_text

CARRIES_COST = 0.01
"""From this share of the whole on, a call path carries cost."""


@dataclass(frozen=True, slots=True)
class Excess:
    """Excess work of every call path between two scales.

    Attributes
    ----------
    base, scale : the smaller and the larger number of processes
    exclusive, inclusive : [call paths], fractions of the run time at `scale`
    lost : [call paths], the exclusive cost per process at `scale` that perfect scaling would not
        have, in the unit of the metric
    efficiency : [call paths], relative parallel efficiency of each subtree: the inclusive cost that
        perfect scaling would have over the inclusive cost; NaN where that is zero or not known
    """

    base: float
    scale: float
    exclusive: NDArray[np.float64]
    inclusive: NDArray[np.float64]
    lost: NDArray[np.float64]
    efficiency: NDArray[np.float64]


def excess_work(
    tree: CallTree,
    scaling: Scaling,
    base: tuple[float, NDArray[np.float64]],
    scale: tuple[float, NDArray[np.float64]],
) -> Excess:
    """Return the excess work between two scales.

    Parameters
    ----------
    tree : n call paths
    scaling : weak or strong
    base, scale : number of processes, and exclusive cost per process [n] there; NaN counts as
        zero, a call path that does not occur costs nothing

    Returns
    -------
    Excess
        Excess work of the n call paths, as fractions of the run time at `scale`.

    Raises
    ------
    UsageError
        If the scaling is none, a scale is not positive, or a cost is not that of n call paths.

    References
    ----------
    Coarfa, Mellor-Crummey, Froyd, Dotsenko: Scalability Analysis of SPMD Codes Using Expectations
    (ICS 2007).
    """
    scaling = parse_enum(Scaling, scaling, "scaling")
    (p, cost_p), (q, cost_q) = (_costs(tree, *each) for each in (base, scale))
    lost = np.nan_to_num(cost_q) - ideal_cost(scaling, p, q, np.nan_to_num(cost_p))
    run_time = np.nansum(cost_q)
    relative = lost / run_time if run_time > 0 else np.zeros_like(lost)
    whole = tree.inclusive(np.nan_to_num(cost_q))
    efficiency = efficiency_of(whole, tree.inclusive(lost))
    return Excess(p, q, relative, tree.inclusive(relative), lost, efficiency)


def efficiency_of(cost: NDArray[np.float64], lost: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the part of costs that perfect scaling would have, too; NaN where there is no cost.

    Parameters
    ----------
    cost, lost : of the same shape, the cost, and the part of it that perfect scaling would not have
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(cost > 0, 1.0 - lost / cost, np.nan))


def _costs(
    tree: CallTree, scale: float, cost: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    costs = np.asarray(cost, np.float64)
    if costs.shape != (len(tree),):
        raise UsageError(
            f"costs have shape {costs.shape}; there are {len(tree)} call paths",
            hint="one cost for each, e.g. experiment.values()[:, 0]",
        )
    return target_of(scale, what="scale"), costs


def ideal_cost(
    scaling: Scaling, base: float, scale: float, cost: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what `cost` per process at the base would be at `scale` under perfect scaling."""
    return cost * (base / scale) if scaling is Scaling.STRONG else cost


def measured_excess(
    experiment: Experiment,
    metric: str,
    parameter: str,
    base: float,
    scale: float,
    aggregate: Aggregate = "auto",
) -> Excess:
    """Return the excess work between two scales that were measured.

    Sums over processes are brought back to one process.

    Parameters
    ----------
    experiment : the measured runs
    metric : name of the metric
    parameter : name of the parameter that `base` and `scale` are values of
    base, scale : the smaller and the larger scale
    aggregate : how repetitions become one cost; ``"auto"`` as in models of the metric

    Returns
    -------
    Excess
        Excess work of every call path, as fractions of the run time at `scale`.

    Raises
    ------
    UsageError
        If a scale is not among the points, or there is no such metric or parameter.

    References
    ----------
    Coarfa, Mellor-Crummey, Froyd, Dotsenko: Scalability Analysis of SPMD Codes Using Expectations
    (ICS 2007).
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
    """Return which formula holds; over another parameter than p, costs compare as they are."""
    return experiment.scaling if parameter == "p" else Scaling.WEAK


def per_process(
    experiment: Experiment, parameter: str, values: NDArray[np.float64], point: float
) -> NDArray[np.float64]:
    """Return cost per process at a point, where the locations were summed and `parameter` is p."""
    return values / point if is_summed(experiment, parameter) else values


def is_summed(experiment: Experiment, parameter: str) -> bool:
    """Tell whether values are sums over p processes."""
    return experiment.reduction is Reduction.SUM and parameter == "p"
