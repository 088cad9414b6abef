"""Costs of call paths at a target: measured if the target was run at least twice, else predicted.

All costs are measured, or all are predicted. A call path that does not occur in the runs of a
measured target costs nothing there, even if its model predicts a cost. So sums equal those of the
runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.measured import Measured, sum_over
from callpath_modeler.analysis.predict import Predicted
from callpath_modeler.arrays import FloatArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.metric_values import inclusive_values

Total = tuple[float, float, float]


def basis_of(measured: bool) -> str:
    """Return the word in tables for the basis of a number: ``"measured"`` or ``"predicted"``."""
    return "measured" if measured else "predicted"


@dataclass(frozen=True, slots=True, eq=False)
class TargetCosts:
    """Costs of call paths at a target, each [call paths]; NaN = not known.

    Attributes
    ----------
    repetitions : number of runs at the target if costs are measured; 0 = they are predicted
    own : exclusive values
    value, low, high : exclusive or inclusive values, with prediction bands, or with confidence
        intervals, which are NaN if there are too few repetitions
    total : sum of all call paths with its band or interval; NaN = the metric is not additive
    modelled : the part of `value` that belongs to call paths with a model
    modelled_total : the part of the total that belongs to call paths with a model
    """

    repetitions: int
    own: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    total: Total
    modelled: FloatArray
    modelled_total: float


def predicted_at(fitted: Fitted, own: Predicted, view: Predicted) -> TargetCosts:
    """Return predicted costs: exclusive ones, and those of the view."""
    total = own.total() if fitted.metric.additive else (np.nan,) * 3
    return TargetCosts(0, own.value, view.value, view.low, view.high, total, view.value, total[0])


def measured_at(measured: Measured, point: int, *, inclusive: bool) -> TargetCosts:
    """Return measured costs at a repeated point."""
    fitted, confidence = measured.fitted, measured.fitted.models.confidence
    tree, own = fitted.experiment.tree, np.asarray(fitted.measured[:, point])

    def viewed(columns: FloatArray) -> FloatArray:
        return inclusive_values(tree, columns) if inclusive else columns

    value = viewed(own)
    band = measured.interval(value, viewed(measured.runs), point, confidence)
    modelled = np.where(fitted.modelled, own, np.nan)
    whole, total = np.nan, (np.nan,) * 3
    if fitted.metric.additive:
        whole, total = float(np.nansum(modelled)), total_at(measured, point)
    return TargetCosts(
        repetitions=measured.repetitions(point),
        own=own,
        value=value,
        low=band.low,
        high=band.high,
        total=total,
        modelled=viewed(modelled),
        modelled_total=whole,
    )


def total_at(measured: Measured, point: int) -> Total:
    """Return the measured total of the program at a repeated point, with its interval."""
    confidence = measured.fitted.models.confidence
    whole = measured.values(lambda columns: sum_over(columns)[None], point, confidence)
    centre = float(np.nansum(measured.fitted.measured[:, point]))
    return centre, float(whole.low[0]), float(whole.high[0])


def deviation(predicted: FloatArray, measured: FloatArray) -> FloatArray:
    """Return the relative deviation of predictions from measurements; NaN = not known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        off = predicted / measured - 1
    return np.where((predicted == 0) & (measured == 0), 0.0, off)
