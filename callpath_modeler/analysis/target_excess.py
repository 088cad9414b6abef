"""Excess work between a measured scale and a target whose costs are predicted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from callpath_modeler.analysis.answer import Answer, answer_at
from callpath_modeler.analysis.ensemble import Losses, no_total
from callpath_modeler.analysis.excess import per_process
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.groups import Costs
from callpath_modeler.units import parameter_value, setting_text


def with_target(losses: Losses, fitted: Fitted, target: float) -> tuple[Losses, Answer]:
    """Return excess work with one more pair, and the predicted costs.

    The pair is the base of the last pair, and the target. Call paths without a model are excluded
    from it at both scales.

    Parameters
    ----------
    losses : excess work between measured scales
    fitted : models of the same runs, with the same values of the other parameters
    target : a scale that was not measured

    Raises
    ------
    UsageError
        If the target was measured, is infinite or is not above the base, or if no cost is expected
        there.
    DataError
        If the predicted total is zero.
    """
    base = losses.pairs[-1][0]
    _check(losses, fitted, base, target)
    point = int(np.flatnonzero(fitted.points == base)[0])
    found = answer_at(replace(fitted, ideal=losses.ideal, base_point=point), target)
    if not found.total[0] > 0:
        raise no_total(losses.metric, losses.parameter, target)
    before, after = (
        per_process(losses.experiment, losses.parameter, costs.exclusive[:, 0], scale)
        for costs, scale in ((found.costs_at_base, base), (found.costs.value, target))
    )
    tree, count = losses.experiment.tree, len(losses.points)
    costs = Costs.of(tree, np.column_stack([before, after]))
    run_times = (losses.run_time[losses.columns(len(losses.pairs) - 1)[0]], found.cost_per_process)
    own, _ = found.call_paths
    longer = replace(
        losses,
        pairs=(*losses.pairs, (base, target)),
        points=np.array([*losses.points, base, target]),
        places=(*losses.places, (count, count + 1)),
        costs=Costs.beside([losses.costs, costs]),
        run_time=np.array([*losses.run_time, *run_times]),
        total=np.append(losses.total, found.total_excess),
        expected=Costs.beside([losses.expected, found.expected]),
        excess=Costs.beside([losses.excess, Costs.of(tree, own.excess)]),
        target=target,
    )
    return longer, found


def _check(losses: Losses, fitted: Fitted, base: float, target: float) -> None:
    """Raise `UsageError` if there is no excess work at a target."""
    parameter = losses.parameter
    at = setting_text({parameter: target})
    if not np.isfinite(target):
        raise UsageError("no excess work at infinity", hint="--target with a number")
    if target <= base:
        raise UsageError(
            f"the target {at} is not above the base, {setting_text({parameter: base})}",
            hint="a larger --target, or a smaller --base",
        )
    if target in fitted.points:
        scales = f"{parameter_value(base)},{parameter_value(target)}"
        raise UsageError(f"{at} was measured", hint=f"--pair {scales} compares the measurements")
    if gap := losses.ideal.gap(base, target):
        raise UsageError(f"no excess work at the target: {gap}", hint="another --expect")
