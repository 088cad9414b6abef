"""Excess work up to a target, and of the lines of functions.

A line has the exclusive cost of its statements, and the inclusive cost of its calls. Both follow
the formulas of `analysis.excess`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from callpath_modeler.analysis.answer import Answer, answer_at
from callpath_modeler.analysis.ensemble import Losses, no_total
from callpath_modeler.analysis.excess_work import is_summed, per_process
from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.analysis.predict import processes_summed
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import centre
from callpath_modeler.profile.calltree import NO_LINE
from callpath_modeler.profile.groups import Costs, Rows
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


_FEW = 100
"""Number of calls below which their subtrees are summed one by one."""

Place = tuple[str, int]
"""Source file and line."""


@dataclass(frozen=True, slots=True)
class LineLosses:
    """Values of the lines of some call paths.

    Attributes
    ----------
    base, scale : the smaller and the larger scale; equal = values are shares of the cost there
    values : excess work of each line, as a fraction of the run time at `scale`; or its share
    """

    base: float
    scale: float
    values: dict[Place, float]

    @property
    def is_share(self) -> bool:
        """Whether there is one scale, so that nothing is lost since a smaller one."""
        return self.base == self.scale

    @property
    def worst(self) -> Place | None:
        """The line with the largest value above zero, or None."""
        place = max(self.values, key=lambda each: self.values[each], default=None)
        return place if place is not None and self.values[place] > 0 else None


def line_losses(fitted: Fitted, rows: Rows) -> LineLosses:
    """Return the excess work of lines between its base and the largest measured scale.

    There are no values of lines if another experiment states the expected costs, because it does
    not divide them by these lines.

    Parameters
    ----------
    fitted : the measured costs, of an additive metric
    rows : call paths whose lines are chosen, ascending
    """
    base, scale, ideal = fitted.base, float(fitted.points[-1]), ideal_of(fitted)
    alone, last = np.ones(len(fitted.experiment.tree)), len(fitted.points) - 1
    whole = _whole_at_largest(fitted)
    if not whole > 0:
        return LineLosses(base, scale, {})
    if base == scale:
        costs = _costs(fitted, rows, last, alone)
        return LineLosses(base, scale, {place: cost / whole for place, cost in costs.items()})
    if not ideal.is_relative or ideal.gap(base, scale):
        return LineLosses(base, scale, {})
    # The expected cost of a call path is proportional to its cost at the base.
    grown = ideal.cost(base, scale, alone)
    if is_summed(fitted.experiment, fitted.parameter):
        grown = grown * (scale / base)
    expected = _costs(fitted, rows, fitted.base_point, grown)
    after = _costs(fitted, rows, last, alone)
    lost = {
        place: (after.get(place, 0.0) - expected.get(place, 0.0)) / whole
        for place in sorted({*expected, *after})
    }
    return LineLosses(base, scale, lost)


def _whole_at_largest(fitted: Fitted) -> float:
    """Return the run time at the largest scale, or the sum, in the unit of the call paths."""
    if fitted.run_time is None:
        return float(np.nansum(fitted.measured[:, -1]))
    summed = processes_summed(fitted, fitted.points[-1:])
    return float(fitted.run_time.measured[0, -1] * summed[0])


def _costs(fitted: Fitted, rows: Rows, point: int, factor: FloatArray) -> dict[Place, float]:
    """Return the cost of each line at a point, with the cost of each call path times a factor."""
    found: dict[Place, float] = {}
    for one in np.unique(factor[rows]).tolist():
        some = _of_statements(fitted, rows[factor[rows] == one], float(fitted.points[point]))
        for place, cost in some.items():
            found[place] = found.get(place, 0.0) + one * cost
    tree, called = fitted.experiment.tree, _called(fitted, rows)
    measured = np.nan_to_num(fitted.measured[:, point]) * factor
    if len(called) < _FEW:
        costs = [float(measured[row : tree.end[row]].sum()) for row in called.tolist()]
    else:
        costs = tree.inclusive(measured)[called].tolist()
    files = [region.file for region in tree.regions]
    callers, lines = tree.region[tree.parent[called]].tolist(), tree.site[called].tolist()
    for caller, line, cost in zip(callers, lines, costs, strict=True):
        place = files[caller], line
        found[place] = found.get(place, 0.0) + cost
    return found


def _called(fitted: Fitted, rows: Rows) -> IntArray:
    """Return the callees whose line of the call is known."""
    tree = fitted.experiment.tree
    is_caller = np.zeros(len(tree) + 1, bool)  # the last entry stands for callers of roots
    is_caller[rows] = True
    return np.flatnonzero(is_caller[tree.parent] & (tree.site != NO_LINE))


def _of_statements(fitted: Fitted, rows: Rows, point: float) -> dict[Place, float]:
    """Return the exclusive costs of lines, with the same centre of repetitions as models."""
    line = fitted.line
    if not line.lines:
        return {}
    here = np.flatnonzero(line.settings((fitted.parameter,))[:, 0] == point).tolist()
    runs = [line.lines[run] for run in here]
    of_runs = [run[fitted.metric.name].of_rows(rows) for run in runs if fitted.metric.name in run]
    places = list(dict.fromkeys(place for run in of_runs for place in run))
    if not places:
        return {}
    # A line without samples in a repetition took no time there.
    table: FloatArray = np.array([[run.get(place, 0.0) for run in of_runs] for place in places])
    costs = centre(table[:, np.newaxis], fitted.models.aggregate)[:, 0]
    return dict(zip(places, costs.tolist(), strict=True))
