"""Predictions at a target, exclusive or inclusive.

Models describe exclusive values. Inclusive predictions are sums of exclusive ones, as for
measurements. So a caller is never predicted below its callees, and both views have one total.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from callpath_modeler.analysis.bands import Band, stretched
from callpath_modeler.analysis.reconciliation import (
    exceeded_run_time,
    lowered,
    most_of_call_paths,
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
_MANY = 20_000
"""Call paths from which on a sample shows how uncertain they are; their bands take .03 s."""
_BLOCK = 100
"""Neighbours that are sampled together."""

_RECONCILED: WeakKeyDictionary[Fitted, tuple[float, FloatArray]] = WeakKeyDictionary()
"""Target and predictions of the last reconciliation of models."""

ABSENT = {
    **dict.fromkeys(("value", "low", "high"), np.nan),
    **dict.fromkeys(("added", "lead"), 0.0),
    **dict.fromkeys(("leader", "growth"), -1),
}
"""Columns of predictions, and their values for call paths without a model."""


class Predicted(Struct, frozen=True, eq=False):
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
    most : upper end of the run time, which no call path exceeds; inf = not known
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
    most: float = np.inf

    def total(self) -> tuple[float, float, float]:
        """Return the sum of all predictions with its band, which does not know the run time."""
        value = np.array(np.nansum(self.value))
        ends = ends_of_sums(value, self.added.sum(axis=0))
        low, high = stretched(value, *ends, self.factor)
        return float(value), float(low), float(high)


def predict(fitted: Fitted, target: float) -> Predicted:
    """Return exclusive predictions of every call path at `target`, which may be infinite.

    Values are reconciled with the run time. Bands are those of the models.
    """
    own = _of_models(fitted, target)
    value = _reconciled(fitted, target, own.value, own)
    own = structs.replace(own, value=value, low=np.fmin(own.low, value))
    most = most_of_call_paths(fitted, target, own.total())
    return structs.replace(own, high=np.minimum(np.fmax(own.high, value), most), most=most)


def predicted_values(fitted: Fitted, target: float) -> FloatArray:
    """Return the values of `predict`, [call paths]; bands are made only if needed."""
    values = fitted.models.values(np.array([target]))[:, 0]
    return _reconciled(fitted, target, np.where(fitted.modelled, values, np.nan))


def _of_models(fitted: Fitted, target: float) -> Predicted:
    """Return the predictions of the models, each of which knows its own call path alone."""
    models, modelled, where = fitted.models, fitted.modelled, np.array([target])
    band = _prediction(models, where)
    ends = stretched(band.value, band.low, band.high, fitted.band_factor)
    value, low, high = (np.where(modelled, column[:, 0], np.nan) for column in (band.value, *ends))
    added = addable(models, where, band)[:, 0]
    added[~modelled] = 0.0
    growth = np.where(modelled, models.growth_rank(), -1)
    lead = np.where(modelled, models.leading_coefficient(), 0.0)
    leader = np.where(modelled, np.arange(len(value)), -1)
    return Predicted(
        value, low, high, added, leader, growth, lead, models.confidence, fitted.band_factor
    )


def _reconciled(
    fitted: Fitted, target: float, value: FloatArray, own: Predicted | None = None
) -> FloatArray:
    """Return predictions that are reconciled with the run time, [call paths].

    Parameters
    ----------
    fitted, target : as for `predict`
    value : predictions of the models
    own : the same with their bands, if these were made
    """
    last = _RECONCILED.get(fitted)
    if last is not None and last[0] == target:
        return last[1]
    usual = with_usual_bands(fitted)
    alone = exceeded_run_time(usual, target, float(np.nansum(value)))
    if alone is None:
        return value
    own = own if usual is fitted else None
    if len(value) > _MANY:
        low, sums = _sampled_bands(usual, target, value, own)
    else:
        own = own or _of_models(usual, target)
        low, sums = own.low, own.total()
    agreed = reconciled_total(alone, Band(*map(np.atleast_1d, sums)))
    found = lowered(value, low, float(agreed[0]))
    found.setflags(write=False)
    _RECONCILED[fitted] = target, found
    return found


def _sampled_bands(
    fitted: Fitted, target: float, value: FloatArray, own: Predicted | None
) -> tuple[FloatArray, tuple[float, float, float]]:
    """Return lower ends of bands [call paths], and the sum with its band, of many call paths.

    Bands of 10^6 call paths take seconds. So half of the bands are those of the costliest call
    paths, and the others are a sample, which stands for all other call paths.

    Parameters
    ----------
    fitted, target, value, own : as for `_reconciled`
    """
    cost, half = np.nan_to_num(value), _MANY // 2
    costly = np.argpartition(cost, len(cost) - half)[-half:]
    is_other = np.ones(len(cost), bool)
    is_other[costly] = False
    others = np.flatnonzero(is_other)
    blocks = np.linspace(0, len(others) - _BLOCK, half // _BLOCK).astype(np.intp)
    # Neighbours are read together from a file.
    sample = others[(blocks[:, None] + np.arange(_BLOCK)).ravel()]
    of_sample = cost[sample].sum()
    # The sample stands for all others.
    by = (cost.sum() - cost[costly].sum()) / of_sample if of_sample > 0 else 0.0
    low, added = np.zeros(len(cost)), np.zeros(COLUMNS)
    for rows, times in ((sample, by), (costly, 1.0)):
        if own is None:
            models, where = fitted.models.take(rows), np.array([target])
            band = models.predict(where)
            its_low, parts = band.low[:, 0], addable(models, where, band)[:, 0]
        else:
            its_low, parts = own.low[rows], own.added[rows]
        if rows is sample:
            low = cost * (np.nansum(its_low) / of_sample if of_sample > 0 else 0.0)
        low[rows] = np.nan_to_num(its_low)
        added += np.nansum(parts, axis=0) * times
    total = np.array(cost.sum())
    ends = ends_of_sums(total, added)
    return low, (float(total), float(ends[0]), float(ends[1]))


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
    high = np.minimum(high, own.most)
    growth, lead, leader = _fastest(tree, own.growth, own.lead, own.leader)
    return structs.replace(
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
