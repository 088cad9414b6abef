"""What call paths cost at a target: measured where it was run two times or more, else predicted.

Where runs tell what is asked, models have no say. All is measured then, or all is predicted: what
does not occur in the runs of a target costs nothing there, whatever its model says, so that sums
of what is shown are those of the runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.measured import Measured, sum_over
from callpath_modeler.analysis.predict import Predicted
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.experiment import inclusive_values

Values = NDArray[np.float64]
Total = tuple[float, float, float]


def basis_of(measured: bool) -> str:
    """Say what a number is based on, in the word for tables."""
    return "measured" if measured else "predicted"


@dataclass(frozen=True, slots=True, eq=False)
class TargetCosts:
    """What call paths cost at a target, each [call paths]; NaN = nothing is known of it.

    Attributes
    ----------
    repetitions : of the target, if that is what tells; 0 = models do
    own : exclusive values
    value, low, high : exclusive or inclusive ones with bands, or intervals of what was measured,
        which are NaN where repetitions do not tell
    total : the sum of all with its band or interval; NaN where it has no meaning
    modelled : the part of `value` that is of call paths with a model
    modelled_total : that of the total
    """

    repetitions: int
    own: Values
    value: Values
    low: Values
    high: Values
    total: Total
    modelled: Values
    modelled_total: float


def predicted_at(fitted: Fitted, own: Predicted, view: Predicted) -> TargetCosts:
    """Return predictions of call paths by themselves, and as they are viewed."""
    total = own.total() if fitted.metric.additive else (np.nan,) * 3
    return TargetCosts(0, own.value, view.value, view.low, view.high, total, view.value, total[0])


def measured_at(measured: Measured, point: int, *, inclusive: bool) -> TargetCosts:
    """Return what was measured at a point that was repeated."""
    fitted, confidence = measured.fitted, measured.fitted.models.confidence
    tree, own = fitted.experiment.tree, np.asarray(fitted.measured[:, point])

    def viewed(columns: Values) -> Values:
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
    """Return what the whole program took at a point that was repeated, with its interval."""
    confidence = measured.fitted.models.confidence
    whole = measured.values(lambda columns: sum_over(columns)[None], point, confidence)
    centre = float(np.nansum(measured.fitted.measured[:, point]))
    return centre, float(whole.low[0]), float(whole.high[0])


def deviation(predicted: Values, measured: Values) -> Values:
    """Return how far predictions are off, as fractions of what was measured; NaN = not known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        off = predicted / measured - 1
    return np.where((predicted == 0) & (measured == 0), 0.0, off)
