"""Predictions at a target: of each call path by itself, or summed over what it calls.

Models are of exclusive values. Inclusive predictions are their sums, as inclusive measurements are,
so a caller is never predicted below its callees, and both views have one total.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import inclusive_values


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
    """

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    leader: NDArray[np.intp]
    growth: NDArray[np.int64]
    lead: NDArray[np.float64]


def predict(fitted: Fitted, target: float) -> Predicted:
    """Predict every call path by itself at `target`, which may be infinite."""
    models, modelled = fitted.models, fitted.modelled
    value, low, high = costs(fitted, target)
    growth = np.where(modelled, models.growth_rank(), -1)
    lead = np.where(modelled, models.leading_coefficient(), 0.0)
    leader = np.where(modelled, np.arange(len(value)), -1)
    return Predicted(value, low, high, leader, growth, lead)


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
    below, above = squared_widths(own.value, own.low, own.high)
    growth, lead, leader = _fastest(tree, own.growth, own.lead, own.leader)
    return Predicted(
        value,
        np.maximum(value - np.sqrt(tree.inclusive(below)), 0.0),
        value + np.sqrt(tree.inclusive(above)),
        leader,
        growth,
        lead,
    )


def predict_sum(
    fitted: Fitted, rows: NDArray[np.integer], points: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Predict what some call paths cost together; return value, low and high, each [points]."""
    parts = fitted.models.take(rows[fitted.modelled[rows]]).predict(points)
    value = parts.value.sum(axis=0)
    below, above = squared_widths(parts.value, parts.low, parts.high)
    low = np.maximum(value - np.sqrt(below.sum(axis=0)), 0.0)
    return value, low, value + np.sqrt(above.sum(axis=0))


def squared_widths(
    value: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what adds up where values do: the squares of how far a band reaches down and up.

    The errors of different call paths are taken as independent. What has no band, for want of a
    model or at infinity, adds nothing.
    """
    with np.errstate(invalid="ignore"):
        down, up = value - low, high - value
    return np.where(np.isnan(down), 0.0, down) ** 2, np.where(np.isnan(up), 0.0, up) ** 2


def summed(
    value: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Return value, low and high of the whole program: of what was predicted, the sum."""
    total = float(np.nansum(value))
    if not np.isfinite(total):
        return total, total, total
    below, above = squared_widths(value, low, high)
    return total, max(0.0, total - float(np.sqrt(below.sum()))), total + float(np.sqrt(above.sum()))


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
