"""Predictions at a target, exclusive or inclusive.

Models describe exclusive values. Inclusive predictions are sums of exclusive ones, as for
measurements. So a caller is never predicted below its callees, and both views have one total.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.bands import Band, stretched
from callpath_modeler.analysis.reconciliation import (
    exceeded_run_time,
    lowered,
    reconciled_total,
    with_usual_bands,
)
from callpath_modeler.arrays import FloatArray, Int64Array, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Models, Prediction
from callpath_modeler.modeling.constants.bands import COLUMNS
from callpath_modeler.modeling.sums import addable, ends_of_sums
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.metric_values import inclusive_values

_CHUNK = 16_384
"""Predictions that are made at a time; each takes a kilobyte."""


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """Predictions of all call paths, each [call paths].

    Attributes
    ----------
    value, low, high : in the unit of the metric; NaN = no model
    added : additive numbers for bands of sums, [call paths, columns], from `sums.addable`
    leader : row in the subtree, or of the call path itself, whose model grows fastest; -1 = no
        model
    growth : code of that growth, larger for faster growth; -1 = no model
    lead : coefficient of that growth, summed over all call paths that have it
    confidence : confidence of the bands
    factor : factor of the widths of all bands, as in `Fitted.band_factor`; `added` is without it
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    added: FloatArray
    leader: IntArray
    growth: Int64Array
    lead: FloatArray
    confidence: float
    factor: float = 1.0

    def total(self) -> tuple[float, float, float]:
        """Return the predicted total of the program with its band."""
        value = np.array(np.nansum(self.value))
        ends = ends_of_sums(value, self.added.sum(axis=0))
        low, high = stretched(value, *ends, self.factor)
        return float(value), float(low), float(high)


def predict(fitted: Fitted, target: float, total: float | None = None) -> Predicted:
    """Return exclusive predictions of every call path at `target`, which may be infinite.

    Values are reconciled with the run time. Bands are those of the models.

    Parameters
    ----------
    fitted : the models
    target : value of the parameter
    total : measured total that predictions do not exceed; None = the predicted run time
    """
    models, modelled, where = fitted.models, fitted.modelled, np.array([target])
    band = _prediction(models, where)
    ends = stretched(band.value, band.low, band.high, fitted.band_factor)
    value, low, high = (np.where(modelled, column[:, 0], np.nan) for column in (band.value, *ends))
    added = addable(models, where, band)[:, 0]
    added[~modelled] = 0.0
    growth = np.where(modelled, models.growth_rank(), -1)
    lead = np.where(modelled, models.leading_coefficient(), 0.0)
    leader = np.where(modelled, np.arange(len(value)), -1)
    own = Predicted(
        value, low, high, added, leader, growth, lead, models.confidence, fitted.band_factor
    )
    if total is not None:
        if not total < np.nansum(value) < np.inf:
            return own
        value = lowered(value, low, total)
        return replace(own, value=value, low=np.fmin(low, value))
    alone = exceeded_run_time(fitted, target, float(np.nansum(value)))
    if alone is None:
        return own
    usual = with_usual_bands(fitted)
    if usual is not fitted:
        value = predict(usual, target).value
        return replace(own, value=value, low=np.fmin(low, value), high=np.fmax(high, value))
    agreed = reconciled_total(alone, Band(*map(np.atleast_1d, own.total())))
    return replace(own, value=lowered(value, low, float(agreed[0])))


def predicted_values(fitted: Fitted, target: float, total: float | None = None) -> FloatArray:
    """Return exclusive predictions at a target, [call paths]; bands are made only if needed.

    Parameters
    ----------
    fitted, target, total : as for `predict`
    """
    values = fitted.models.values(np.array([target]))[:, 0]
    value = np.where(fitted.modelled, values, np.nan)
    if total is None and exceeded_run_time(fitted, target, float(np.nansum(value))) is None:
        return value
    return predict(fitted, target, total).value


def _prediction(models: Models, points: FloatArray) -> Prediction:
    """Return predictions with bands; at infinity, without bands."""
    if np.isfinite(points).all():
        return models.predict(points)
    value = models.values(points)
    return Prediction(value, value, value)


def with_callees(tree: CallTree, own: Predicted) -> Predicted:
    """Return predictions summed over subtrees."""
    value, added = inclusive_values(tree, own.value), tree.inclusive(own.added)
    low, high = stretched(value, *ends_of_sums(value, added), own.factor)
    growth, lead, leader = _fastest(tree, own.growth, own.lead, own.leader)
    return replace(
        own, value=value, low=low, high=high, added=added, leader=leader, growth=growth, lead=lead
    )


def predict_sum(
    fitted: Fitted, rows: NDArray[np.integer], points: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the sum of the models of some call paths: value, low and high, each [points]."""
    value, low, high = total_of(fitted.models.take(rows[fitted.modelled[rows]]), points)
    return value, *stretched(value, low, high, fitted.band_factor)


def total_of(models: Models, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the predicted sum of rows with models: value, low and high, each [points]."""
    value, added = np.zeros(len(points)), np.zeros((len(points), COLUMNS))
    rows = max(1, _CHUNK // len(points))
    for start in range(0, len(models), rows):
        some = models.take(slice(start, start + rows))
        parts = some.predict(points)
        value += parts.value.sum(axis=0)
        added += addable(some, points, parts).sum(axis=0)
    return value, *ends_of_sums(value, added)


def _fastest(
    tree: CallTree,
    growth: Int64Array,
    lead: FloatArray,
    leader: IntArray,
) -> tuple[Int64Array, FloatArray, IntArray]:
    """Return the fastest growth in each subtree, its summed coefficient, and its main row."""
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
