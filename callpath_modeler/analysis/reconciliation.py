"""Reconciliation of predictions of call paths with the prediction of the run time.

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

import numpy as np

from callpath_modeler.analysis.bands import Band, Total, stretched
from callpath_modeler.analysis.excess import is_summed
from callpath_modeler.analysis.measured import sum_over
from callpath_modeler.arrays import FloatArray
from callpath_modeler.fitted import Fitted
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
    """Return the models with the bands by which predictions are reconciled."""
    models, run_time = fitted.models, fitted.run_time
    if models.confidence == _CONFIDENCE and fitted.band_factor == 1:
        return fitted
    return replace(
        fitted,
        models=replace(models, confidence=_CONFIDENCE),
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
