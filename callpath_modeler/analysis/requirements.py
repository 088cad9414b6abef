"""Requirements of call paths, and wait time that they do not explain.

Calls, messages, bytes and operations are counted exactly, times are not (Calotoiu et al., SC13,
section 4: requirement models). A call path whose time grows faster than all its requirements does
not do more work: it waits, or each operation takes longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.linear_program import most_within
from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.arrays import FloatArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Growth
from callpath_modeler.profile.schema import Metric

_UNREPEATED = 0.05
"""Relative error of a time without repetitions."""
_SURE = 2.0
"""Tolerance in standard errors."""


@dataclass(frozen=True, slots=True, eq=False)
class Requirement:
    """One requirement metric of a call path.

    Attributes
    ----------
    metric : visits, bytes or operations
    values : [K] at the points of the models of the time, SI base units; NaN = did not occur
    growth : growth of its model; None = no model
    at_target : predicted value at the target; NaN = no model
    """

    metric: Metric
    values: FloatArray
    growth: Growth | None
    at_target: float


@dataclass(frozen=True, slots=True, eq=False)
class Requirements:
    """Requirements of a call path, and the largest part of its time that they explain.

    Attributes
    ----------
    points : [K] values of the parameter
    time : [K] time of the call path, seconds; NaN = did not occur
    time_at_target : predicted or measured time at the target, seconds
    needs : requirements that are not zero; at least one
    base : index of the smallest point at which all requirements of the largest point occur
    explained : [K] the largest part of `time` that the requirements explain if each unit costs the
        same at all scales; NaN below the base
    explained_at_target : the same at the target; NaN = not known
    """

    points: FloatArray
    time: FloatArray
    time_at_target: float
    needs: tuple[Requirement, ...]
    base: int
    explained: FloatArray
    explained_at_target: float

    @property
    def share(self) -> float:
        """Largest explained fraction of the time at the largest point."""
        return float(self.explained[-1] / self.time[-1])

    @property
    def share_at_target(self) -> float:
        """Largest explained fraction of the time at the target; NaN = not known."""
        known = self.time_at_target > 0
        return self.explained_at_target / self.time_at_target if known else float("nan")

    def times(self, values: FloatArray) -> float:
        """Return the ratio of `values` [K] at the largest point to those at the base."""
        return float(values[-1] / values[self.base])


def requirements(ranking: Ranking, models: Sequence[Fitted], row: int) -> Requirements | None:
    """Return the part of the exclusive time of a call path that its requirements explain at most.

    A cost ``c >= 0`` of each call, byte or operation that is the same at all scales cannot explain
    more than was measured at any scale: ``c R(p) <= t(p)`` for a requirement R. At each scale, the
    costs that explain most are used. The rest is wait time, contention, or code that became slower,
    for any such costs.

    Parameters
    ----------
    ranking : ranking by a time at the target
    models : models of requirements over the same runs; requirements that are zero are ignored
    row : number of the call path

    Returns
    -------
    Requirements or None
        None if the call path has no requirement, or if the requirements of the largest point occur
        at fewer than two points. Inclusive values of call paths with callees have no requirements,
        because calls of different functions have different costs.
    """
    fitted, tree = ranking.fitted, ranking.fitted.experiment.tree
    if ranking.inclusive and tree.end[row] > row + 1:
        return None
    found = (_requirement(fitted, each, row, ranking.target) for each in models)
    needs = tuple(each for each in found if np.nan_to_num(each.values[-1]) > 0)
    time = fitted.measured[row]
    whole = (np.nan_to_num([time, *(each.values for each in needs)]) > 0).all(axis=0)
    if not needs or not whole[-1] or whole.sum() < 2:
        return None
    needed = np.array([each.values[whole] for each in needs])
    most = time[whole] * (1 + _SURE * _error(fitted, row)[whole])
    explained = np.full(len(time), np.nan)
    explained[whole] = [_most_explained(needed, most, scale) for scale in needed.T]
    at, beyond = np.array([each.at_target for each in needs]), np.nan
    then = float(ranking.value[row])
    if np.isfinite(at).all():
        beyond = min(_most_explained(needed, most, at), then)
    base = int(np.flatnonzero(whole)[0])
    return Requirements(fitted.points, time, then, needs, base, np.minimum(explained, time), beyond)


def _requirement(fitted: Fitted, models: Fitted, row: int, target: float) -> Requirement:
    """Return one metric of a call path at the points of `fitted`, and at a target."""
    values = np.full(len(fitted.points), np.nan)
    _, here, there = np.intersect1d(fitted.points, models.points, return_indices=True)
    values[here] = models.measured[row, there]
    growth, at_target = None, np.nan
    if models.modelled[row]:
        growth = models.models.growth(row)
        if np.isfinite(target):
            at_target = float(models.models.take([row]).values([target])[0, 0])
    return Requirement(models.metric, values, growth, at_target)


def _error(fitted: Fitted, row: int) -> FloatArray:
    """Return the relative standard error of the times of a call path, [K]."""
    _, values = fitted.line.by_point(fitted.metric.name, fitted.parameter)
    runs = values[row][np.isin(fitted.line.points(fitted.parameter), fitted.points)]
    count = np.maximum((~np.isnan(runs)).sum(axis=1), 1)
    freedom = int((count - 1).sum())
    if not freedom:
        return np.full(len(runs), _UNREPEATED)
    centre = (np.nansum(runs, axis=1) / count)[:, None]
    off = np.divide(runs - centre, centre, out=np.zeros_like(runs), where=centre > 0)
    return np.asarray(np.sqrt(np.nansum(off**2) / freedom / count))


def _most_explained(needed: FloatArray, most: FloatArray, scale: FloatArray) -> float:
    """Return the most that `scale` [m] of what is needed explains.

    Parameters
    ----------
    needed : [m, K] at points where all of it is above zero
    most : [K] what it may explain at these points
    """
    last, unit = needed[:, -1], most[-1]
    return float(unit * most_within(scale / last, (needed / last[:, None] * (unit / most)).T))
