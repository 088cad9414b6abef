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


def predict(fitted: Fitted, target: float, *, inclusive: bool = False) -> Predicted:
    """Predict every call path at `target`, which may be infinite.

    The errors of different call paths are taken as independent: in a sum, half-widths of bands
    add as squares.
    """
    models, modelled, where = fitted.models, fitted.modelled, np.array([target])
    if np.isinf(target):
        columns = (models.values(where),) * 3
    else:
        prediction = models.predict(where)
        columns = (prediction.value, prediction.low, prediction.high)
    value, low, high = (np.where(modelled, column[:, 0], np.nan) for column in columns)
    growth = np.where(modelled, models.growth_rank(), -1)
    lead = np.where(modelled, models.leading_coefficient(), 0.0)
    leader = np.where(modelled, np.arange(len(value)), -1)
    if not inclusive:
        return Predicted(value, low, high, leader, growth, lead)
    tree = fitted.experiment.tree
    total = inclusive_values(tree, value)
    with np.errstate(invalid="ignore"):
        below, above = (
            np.where(np.isfinite(side), side, 0.0) ** 2 for side in (value - low, high - value)
        )
    growth, lead, leader = _fastest(tree, growth, lead, leader)
    return Predicted(
        total,
        np.maximum(total - np.sqrt(tree.inclusive(below)), 0.0),
        total + np.sqrt(tree.inclusive(above)),
        leader,
        growth,
        lead,
    )


def predict_curve(
    fitted: Fitted, row: int, points: NDArray[np.float64], *, inclusive: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Predict one call path at many finite points; return value, low and high, each [points]."""
    end = int(fitted.experiment.tree.end[row]) if inclusive else row + 1
    rows = row + np.flatnonzero(fitted.modelled[row:end])
    parts = fitted.models.take(rows).predict(points)
    value = parts.value.sum(axis=0)
    below = np.sqrt(((parts.value - parts.low) ** 2).sum(axis=0))
    above = np.sqrt(((parts.high - parts.value) ** 2).sum(axis=0))
    return value, np.maximum(value - below, 0.0), value + above


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
