"""Predictions at a target: of each call path by itself, or summed over what it calls.

Models are of exclusive values. Inclusive predictions are their sums, as inclusive measurements are,
so a caller is never predicted below its callees, and both views have one total.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.sums import COLUMNS, addable, ends_of_sums
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Models, Prediction
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import inclusive_values

_CHUNK = 16_384
"""Predictions that are made together: each takes a kilobyte."""


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """Predictions of all call paths, each [call paths].

    Attributes
    ----------
    value, low, high : in the metric's unit; NaN without a model
    added : what adds up of them where values do, [call paths, columns]; as of `sums.addable`
    leader : the row whose model grows fastest: the call path's own, or one that it calls; -1
        without a model
    growth : code of that growth, the larger the faster; -1 without a model
    lead : coefficient of that growth, summed over all call paths that share it
    confidence : of the bands
    """

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    added: NDArray[np.float64]
    leader: NDArray[np.intp]
    growth: NDArray[np.int64]
    lead: NDArray[np.float64]
    confidence: float

    def total(self) -> tuple[float, float, float]:
        """Return value, low and high of the whole program."""
        value = np.array(np.nansum(self.value))
        low, high = ends_of_sums(value, self.added.sum(axis=0))
        return float(value), float(low), float(high)


def predict(fitted: Fitted, target: float) -> Predicted:
    """Predict every call path by itself at `target`, which may be infinite."""
    models, modelled, where = fitted.models, fitted.modelled, np.array([target])
    band = _prediction(models, where)
    value, low, high = (
        np.where(modelled, column[:, 0], np.nan) for column in (band.value, band.low, band.high)
    )
    added = np.where(modelled[:, None], addable(models, where, band)[:, 0], 0.0)
    growth = np.where(modelled, models.growth_rank(), -1)
    lead = np.where(modelled, models.leading_coefficient(), 0.0)
    leader = np.where(modelled, np.arange(len(value)), -1)
    return Predicted(value, low, high, added, leader, growth, lead, models.confidence)


def _prediction(models: Models, points: NDArray[np.float64]) -> Prediction:
    """Predict with bands; at infinity, where all are endless, without."""
    if np.isfinite(points).all():
        return models.predict(points)
    value = models.values(points)
    return Prediction(value, value, value)


def with_callees(tree: CallTree, own: Predicted) -> Predicted:
    """Sum predictions over subtrees."""
    value, added = inclusive_values(tree, own.value), tree.inclusive(own.added)
    low, high = ends_of_sums(value, added)
    growth, lead, leader = _fastest(tree, own.growth, own.lead, own.leader)
    return Predicted(value, low, high, added, leader, growth, lead, own.confidence)


def predict_sum(
    fitted: Fitted, rows: NDArray[np.integer], points: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Predict what some call paths cost together; return value, low and high, each [points]."""
    return total_of(fitted.models.take(rows[fitted.modelled[rows]]), points)


def total_of(
    models: Models, points: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Predict the sum of rows that all have models; return value, low and high, each [points]."""
    value, added = np.zeros(len(points)), np.zeros((len(points), COLUMNS))
    rows = max(1, _CHUNK // len(points))
    for start in range(0, len(models), rows):
        some = models.take(np.arange(start, min(start + rows, len(models))))
        parts = some.predict(points)
        value += parts.value.sum(axis=0)
        added += addable(some, points, parts).sum(axis=0)
    return value, *ends_of_sums(value, added)


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
