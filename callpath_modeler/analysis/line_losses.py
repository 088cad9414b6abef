"""Excess work of the lines of functions between two measured scales.

A line has the exclusive cost of its statements, and the inclusive cost of its calls. Both follow
the formulas of `analysis.excess`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.excess import ideal_cost, is_summed, scaling_over
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import centre
from callpath_modeler.profile.calltree import NO_LINE
from callpath_modeler.profile.groups import Rows

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
    """Return the excess work of lines between the smallest and the largest measured scale.

    Parameters
    ----------
    fitted : the measured costs, of an additive metric
    rows : call paths whose lines are chosen, ascending
    """
    base, scale = float(fitted.points[0]), float(fitted.points[-1])
    before, after = (_costs(fitted, rows, point) for point in (0, len(fitted.points) - 1))
    whole = float(np.nansum(fitted.measured[:, -1]))
    if is_summed(fitted.experiment, fitted.parameter):
        whole /= scale
        before = {place: cost / base for place, cost in before.items()}
        after = {place: cost / scale for place, cost in after.items()}
    if not whole > 0:
        return LineLosses(base, scale, {})
    if base == scale:
        return LineLosses(base, scale, {place: cost / whole for place, cost in after.items()})
    kind = scaling_over(fitted.experiment, fitted.parameter)
    places = sorted({*before, *after})
    costs = np.array([[each.get(place, 0.0) for place in places] for each in (before, after)])
    lost = (costs[1] - ideal_cost(kind, base, scale, costs[0])) / whole
    return LineLosses(base, scale, dict(zip(places, lost.tolist(), strict=True)))


def _costs(fitted: Fitted, rows: Rows, point: int) -> dict[Place, float]:
    """Return the cost of each line at a point."""
    found = _of_statements(fitted, rows, float(fitted.points[point]))
    tree, called = fitted.experiment.tree, _called(fitted, rows)
    measured = np.nan_to_num(fitted.measured[:, point])
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
