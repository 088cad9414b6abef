"""Predictions at a target, reconciled with the prediction of the run time.

Models describe exclusive values. Inclusive predictions are sums of exclusive ones, as for
measurements. So a caller is never predicted below its callees, and both views have one total.

The run time and the call paths have independent models. No process is slower than the slowest, so
the sum of means over processes never exceeds the run time. Predictions may break this rule. Then a
sum of many noisy models is too large, or a model of the whole misses a small part that grows. The
run time is then a mean of both, weighted by their precision, and the call paths are adjusted to add
up to it. Uncertain predictions take most of the adjustment.

References
----------
Stone, Champernowne, Meade: The Precision of National Income Estimates (Review of Economic Studies
9, 1942). Wickramasuriya, Athanasopoulos, Hyndman: Optimal Forecast Reconciliation for Hierarchical
and Grouped Time Series through Trace Minimization (JASA 114, 2019).
"""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from callpath_modeler.analysis.excess_work import is_summed
from callpath_modeler.analysis.measured import sum_over
from callpath_modeler.analysis.uncertain import Band, Total, stretched
from callpath_modeler.arrays import FloatArray, Int64Array, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Models, Prediction
from callpath_modeler.modeling.constants.bands import COLUMNS
from callpath_modeler.modeling.sums import addable, ends_of_sums
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.groups import inclusive_values
from callpath_modeler.profile.schema import Reduction

_AT_MOST_MEANS = frozenset({Reduction.MEAN, Reduction.GEOMEAN, Reduction.MIN, Reduction.SUM})
"""Reductions whose result, per process, is at most the mean over processes."""
_TOLERANCE = 0.01
"""Relative tolerance of the sum of call paths against the run time."""
_CONFIDENCE = 0.95
"""Confidence of the bands that weigh predictions. So other confidences do not change values."""
_EXACT = 1e-13
"""Relative precision of reconciled sums."""
_STEPS = 200
"""Largest number of steps of Newton's method; the usual number is below 20."""


def sum_is_a_bound(fitted: Fitted) -> bool:
    """Return True if the run time is never less than the sum of the call paths.

    This follows from the definition of means over processes. Profiles that break the rule use
    another definition, so the rule is not applied to them.
    """
    experiment, line = fitted.experiment, fitted.line
    values = line.columns[fitted.metric.name]
    if experiment.reduction not in _AT_MOST_MEANS or values.run_time is None:
        return False
    processes: FloatArray | float = 1.0
    if experiment.reduction is Reduction.SUM:
        if not is_summed(experiment, fitted.parameter):
            return False
        processes = line.settings([fitted.parameter])[:, 0]
    sums = sum_over(values.exclusive)
    return not (sums > processes * values.run_time * (1 + _TOLERANCE)).any()


def processes_summed(fitted: Fitted, points: FloatArray) -> FloatArray:
    """Return the numbers of processes over which values at [m] points are sums, [m]."""
    one = np.ones_like(points)
    return points if is_summed(fitted.experiment, fitted.parameter) else one


def run_time_by_model(fitted: Fitted, points: FloatArray) -> Band | None:
    """Return the predictions of the model of the run time, [m]; None = it has no model."""
    of_program = fitted.run_time
    if of_program is None or not of_program.modelled[0]:
        return None
    band = of_program.models.predict(points)
    ends = stretched(band.value[0], band.low[0], band.high[0], of_program.band_factor)
    return Band(band.value[0], *ends)


def with_usual_bands(fitted: Fitted) -> Fitted:
    """Return the models with the bands by which predictions are reconciled.

    That waiting has causes which a profile does not show says nothing about which call path errs.
    """
    models, run_time = fitted.models, fitted.run_time
    is_widened = bool(fitted.widened.any())
    if models.confidence == _CONFIDENCE and fitted.band_factor == 1 and not is_widened:
        return fitted
    if is_widened:
        models = models.not_waiting(fitted.widened)
    return replace(
        fitted,
        models=replace(models, confidence=_CONFIDENCE),
        is_narrow=True,
        run_time=None if run_time is None else with_usual_bands(run_time),
        band_factor=1.0,
    )


def exceeded_run_time(fitted: Fitted, target: float, total: float) -> Band | None:
    """Return the prediction of the run time that the sum of the call paths exceeds; None = none.

    Parameters
    ----------
    target : value of the parameter
    total : predicted sum of the call paths there

    Returns
    -------
    Band or None
        One prediction [1], in the unit of the call paths.
    """
    if not 0 < total < np.inf or np.isinf(target):
        return None
    where = np.array([target])
    alone = run_time_by_model(fitted, where)
    if alone is None:
        return None
    by = processes_summed(fitted, where)
    if not 0 < alone.value[0] * by[0] < total or not sum_is_a_bound(fitted):
        return None
    return Band(alone.value * by, alone.low * by, alone.high * by)


def larger(alone: Band, of_call_paths: Band, times_largest: FloatArray) -> Band:
    """Return predicted run times, from their model and from the sum of reconciled call paths.

    Parameters
    ----------
    alone, of_call_paths : the predictions of both, [m]; NaN = not known
    times_largest : [m] targets in units of the largest scale

    Returns
    -------
    Band
        The larger values and the larger lower ends. If the upper end of the sum is larger, it is
        mixed with that of the model, on a logarithmic scale. The sum of many uncertain upper ends
        is too large, and the model misses small parts that grow, which matters more far away. So
        the sum weighs 0 at the largest scale, 1/2 at twice and 3/4 at 8 times this scale.
    """
    value = np.fmax(alone.value, of_call_paths.value)
    low = np.fmin(np.fmax(alone.low, of_call_paths.low), value)
    high = np.fmax(alone.high, of_call_paths.high)
    doublings = np.log2(np.maximum(times_largest, 1.0))
    weight = doublings / (1 + doublings)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mixed = alone.high * (high / alone.high) ** weight
    # Without a model, and at a limit of zero, the end is that of the sum.
    high = np.where((high > alone.high) & np.isfinite(mixed), mixed, high)
    return Band(value, low, np.fmax(high, value))


def most_of_call_paths(fitted: Fitted, target: float, total: Total) -> float:
    """Return the upper end of the predicted run time, in the unit of the call paths.

    No call path takes longer than the program, so no band of a call path ends above it.

    Parameters
    ----------
    target : value of the parameter
    total : predicted sum of the reconciled call paths there, with its band

    Returns
    -------
    float
        inf = the run time does not bound the call paths.
    """
    where = np.array([target])
    alone = None if np.isinf(target) else run_time_by_model(fitted, where)
    if alone is None or not sum_is_a_bound(fitted):
        return np.inf
    by = processes_summed(fitted, where)
    value, low, high = (np.array([end]) / by for end in total)
    found = larger(alone, Band(value, low, high), where / fitted.points[-1])
    return float((found.high * by)[0])


def reconciled_total(alone: Band, of_call_paths: Band) -> FloatArray:
    """Return the sums of reconciled call paths.

    Parameters
    ----------
    alone : predictions of the run time by its model
    of_call_paths : predicted sums of the call paths; NaN = not known

    Returns
    -------
    FloatArray
        Sums that obey the rule. Where the sum exceeds the run time, the mean of both logarithms,
        weighted by their precision, but not less than the lower end of the sum.
    """
    weight = weight_of_sum(alone, of_call_paths)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = np.exp((1 - weight) * np.log(alone.value) + weight * np.log(of_call_paths.value))
    exceeds = (of_call_paths.value > alone.value) & (alone.value > 0)
    return np.where(exceeds, np.fmax(middle, of_call_paths.low), of_call_paths.value)


def weight_of_sum(alone: Band, of_call_paths: Band) -> FloatArray:
    """Return the weights of the sums of the call paths where these exceed the run time, 0 to 1.

    Parameters
    ----------
    alone, of_call_paths : as for `reconciled_total`; without bands, both weigh the same
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        # The sum may be too large, and the model too small: these sides of the bands count.
        above = np.log(alone.high / alone.value)
        below = np.log(of_call_paths.value / of_call_paths.low)
        weight = 1 / (1 + (below / above) ** 2)
    return np.where(np.isnan(weight), 0.5, weight)


def lowered(value: FloatArray, low: FloatArray, total: float) -> FloatArray:
    """Return predictions of call paths that add up to a total below their sum, [n].

    A prediction v moves towards the lower end of its band, at the distance d:

        v - k d^2 / (1 + k d)

    Small moves go with the square of the uncertainty, as in least squares. No move passes the end.

    Parameters
    ----------
    value, low : [n] predictions and lower ends of their bands; NaN = none
    total : their sum afterwards, above zero
    """
    distance = np.nan_to_num(value - low)
    excess, most = float(np.nansum(value)) - total, float(distance.sum())
    if excess >= most:
        return low * (total / np.nansum(low))
    # The sum of moves is concave in k, so Newton's method approaches its root from below.
    # Distances are relative to their sum, because squares of large ones have no number.
    relative, wanted = distance / most, excess / most
    k, part = wanted / float(relative @ relative), np.empty_like(relative)
    for _ in range(_STEPS):
        np.multiply(relative, k, out=part)
        part += 1
        np.divide(relative, part, out=part)
        lacking = wanted - k * float(relative @ part)
        if lacking <= _EXACT * wanted:
            break
        k += lacking / float(part @ part)
    part *= k
    part *= distance
    return np.subtract(value, part, out=part)


_CHUNK = 16_384
"""Predictions that are made at a time; each takes a kilobyte."""
_AT_ONCE = 131_072
"""Call paths whose models are in memory at a time."""
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
    value = predicted_values(fitted, target, own)
    own = structs.replace(own, value=value, low=np.fmin(own.low, value))
    most = most_of_call_paths(fitted, target, own.total())
    return structs.replace(own, high=np.minimum(np.fmax(own.high, value), most), most=most)


def _of_models(fitted: Fitted, target: float) -> Predicted:
    """Return the predictions of the models, each of which knows its own call path alone."""
    models, where, count = fitted.models, np.array([target]), len(fitted.models)
    value, low, high = (np.full(count, np.nan) for _ in range(3))
    added, lead = np.zeros((count, COLUMNS)), np.zeros(count)
    growth = np.full(count, -1)
    for start in range(0, count, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        its, modelled = models.take(part), fitted.modelled[part]
        band = _prediction(its, where)
        ends = stretched(band.value, band.low, band.high, fitted.band_factor)
        for column, all_rows in zip((value, low, high), (band.value, *ends), strict=True):
            column[part][modelled] = all_rows[modelled, 0]
        added[part][modelled] = addable(its, where, band)[modelled, 0]
        growth[part][modelled] = its.growth_rank()[modelled]
        lead[part][modelled] = its.leading_coefficient()[modelled]
        models.give_back()
    leader = np.where(fitted.modelled, np.arange(count), -1)
    return Predicted(
        value, low, high, added, leader, growth, lead, models.confidence, fitted.band_factor
    )


def predicted_values(fitted: Fitted, target: float, own: Predicted | None = None) -> FloatArray:
    """Return the values of `predict`, [call paths]; bands are made only if needed.

    Parameters
    ----------
    fitted, target : as for `predict`
    own : predictions of the models with their bands, if these were made
    """
    last = _RECONCILED.get(fitted)
    if last is not None and last[0] == target:
        return last[1]
    if own is None:
        values = fitted.models.values(np.array([target]))[:, 0]
        value = np.where(fitted.modelled, values, np.nan)
    else:
        value = own.value
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
    fitted.models.give_back()
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
    """Return predictions summed over subtrees, with the fastest growths there."""
    return sums_below(tree, fastest_below(tree, own))


def sums_below(tree: CallTree, own: Predicted) -> Predicted:
    """Return predictions whose values and bands are summed over subtrees."""
    value, added = inclusive_values(tree, own.value), tree.inclusive(own.added)
    low, high = stretched(value, *ends_of_sums(value, added), own.factor)
    high = np.minimum(high, own.most)
    return structs.replace(own, value=value, low=low, high=high, added=added)


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


def fastest_below(tree: CallTree, own: Predicted) -> Predicted:
    """Return predictions with the fastest growth in each subtree.

    Its coefficient is summed, and its leader has the largest coefficient.
    """
    growth, leader = own.growth.copy(), own.leader.copy()
    lead, most = own.lead.copy(), own.lead.copy()
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
    return structs.replace(own, leader=leader, growth=growth, lead=lead)
