"""Predictions at a target: of each call path by itself, or summed over what it calls.

Models are of exclusive values. Inclusive predictions are their sums, as inclusive measurements are,
so a caller is never predicted below its callees, and both views have one total.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.bands import addable, ends_of_sums
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import inclusive_values

_CHUNK = 1024
"""Call paths that are predicted together: at hundreds of points each takes kilobytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """Predictions of all call paths, each [call paths].

    Attributes
    ----------
    value, low, high : in the metric's unit; NaN without a model
    leader : the row whose model grows fastest: the call path's own, or one that it calls; -1
        without a model
    growth : code of that growth, the larger the faster; -1 without a model
    lead : coefficient of that growth, summed over all call paths that share it
    correlation : between the errors of call paths
    """

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    leader: NDArray[np.intp]
    growth: NDArray[np.int64]
    lead: NDArray[np.float64]
    correlation: float

    def total(self) -> tuple[float, float, float]:
        """Return value, low and high of the whole program."""
        return summed(self.value, self.low, self.high, self.correlation)


def predict(fitted: Fitted, target: float) -> Predicted:
    """Predict every call path by itself at `target`, which may be infinite."""
    models, modelled = fitted.models, fitted.modelled
    value, low, high = costs(fitted, target)
    growth = np.where(modelled, models.growth_rank(), -1)
    lead = np.where(modelled, models.leading_coefficient(), 0.0)
    leader = np.where(modelled, np.arange(len(value)), -1)
    return Predicted(value, low, high, leader, growth, lead, models.correlation)


def costs(
    fitted: Fitted, target: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Predict what every call path costs by itself; return value, low and high, each [call paths].

    NaN without a model.
    """
    models, where = fitted.models, np.array([target])
    if np.isinf(target):
        columns = (models.values(where),) * 3
    else:
        prediction = models.predict(where)
        columns = (prediction.value, prediction.low, prediction.high)
    value, low, high = (np.where(fitted.modelled, column[:, 0], np.nan) for column in columns)
    return value, low, high


def with_callees(tree: CallTree, own: Predicted) -> Predicted:
    """Sum predictions over subtrees."""
    value = inclusive_values(tree, own.value)
    added = tree.inclusive(addable(own.value, own.low, own.high))
    low, high = ends_of_sums(value, added, own.correlation)
    growth, lead, leader = _fastest(tree, own.growth, own.lead, own.leader)
    return Predicted(value, low, high, leader, growth, lead, own.correlation)


def predict_sum(
    fitted: Fitted, rows: NDArray[np.integer], points: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Predict what some call paths cost together; return value, low and high, each [points]."""
    modelled = rows[fitted.modelled[rows]]
    value, added = np.zeros(len(points)), np.zeros((len(points), 4))
    for start in range(0, len(modelled), _CHUNK):
        parts = fitted.models.take(modelled[start : start + _CHUNK]).predict(points)
        value += parts.value.sum(axis=0)
        added += addable(parts.value, parts.low, parts.high).sum(axis=0)
    return value, *ends_of_sums(value, added, fitted.models.correlation)


def summed(
    value: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    correlation: float,
) -> tuple[float, float, float]:
    """Return value, low and high of the whole program: of what was predicted, the sum."""
    total = float(np.nansum(value))
    if not np.isfinite(total):
        return total, total, total
    added = addable(value, low, high).sum(axis=0)
    ends = ends_of_sums(np.array(total), added, correlation)
    return total, float(ends[0]), float(ends[1])


def _fastest(
    tree: CallTree,
    growth: NDArray[np.int64],
    lead: NDArray[np.float64],
    leader: NDArray[np.intp],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.intp]]:
    """Find the fastest growth in each subtree, its summed coefficient, and who has most of it."""
    growth, lead, leader, most = growth.copy(), lead.copy(), leader.copy(), lead.copy()
    for rows in reversed(tree.levels()[1:]):
        callers, home = np.unique(tree.parent[rows], return_inverse=True)
        rival = np.concatenate([callers, rows])
        home = np.concatenate([np.arange(len(callers)), home])
        order = np.lexsort((most[rival], growth[rival], home))
        best = rival[order[np.flatnonzero(np.diff(home[order], append=-1))]]
        equal = growth[rival] == growth[best][home]
        total = np.bincount(home, weights=np.where(equal, lead[rival], 0.0))
        growth[callers], leader[callers], most[callers] = growth[best], leader[best], most[best]
        lead[callers] = total
    return growth, lead, leader
