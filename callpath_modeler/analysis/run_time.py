"""The run time of the program at a target: measured if it was run, else predicted.

The run time is the inclusive time of the program on the slowest process. It is a separate series
with its own model. Listed call paths are means over processes, or maxima of different processes,
and do not add up to it.

No process is slower than the slowest, so the sum of means never exceeds the run time. The models of
the run time and of the call paths are independent. If their predictions disagree with this rule,
the predicted run time is the sum of the call paths. For the value and for each end of the band, the
larger number is used. On measured series, this is closer than the model of the run time alone
(docs/explanation/accuracy.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.bands import Band, Total, stretched
from callpath_modeler.analysis.measured import Measured, sum_over
from callpath_modeler.analysis.predict import predict, predict_sum
from callpath_modeler.arrays import FloatArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.reductions import statistic_of_present

_AT_MOST_MEANS = frozenset({Reduction.MEAN, Reduction.GEOMEAN, Reduction.MIN})
"""Reductions whose result is at most the mean over processes."""
_TOLERANCE = 0.01
"""Relative tolerance of the sum of call paths against the run time."""


@dataclass(frozen=True, slots=True, eq=False)
class RunTime:
    """Run time at a target, in the unit of the metric.

    Attributes
    ----------
    fitted : model of the run time
    target : value of the parameter
    repetitions : number of runs at the target if the value is measured; 0 = it is predicted
    total : value with its band or interval; NaN ends = a single run has no interval
    predicted : predicted value, even if the target was measured
    by_model : prediction of the model of the run time alone; it is less than `predicted` if that is
        the sum of the call paths
    """

    fitted: Fitted
    target: float
    repetitions: int
    total: Total
    predicted: float
    by_model: float

    @property
    def is_sum(self) -> bool:
        """True if the predicted run time is the sum of the call paths."""
        return self.predicted > self.by_model

    @property
    def at_largest(self) -> float:
        """The run time measured at the largest scale."""
        return float(self.fitted.measured[0, -1])


def maxima_at_largest(fitted: Fitted) -> tuple[FloatArray, FloatArray]:
    """Return the maxima over processes at the largest scale, and the imbalance there.

    Returns
    -------
    maximum, imbalance : [call paths], medians of repetitions; the imbalance is the largest over the
        mean of the processes; NaN = not known
    """
    line, metric = fitted.line, fitted.metric.name
    nothing = np.broadcast_to(np.nan, len(line.tree))
    if not fitted.metric.additive:
        return nothing, nothing
    here = np.flatnonzero(line.settings([fitted.parameter])[:, 0] == fitted.points[-1])
    maxima, known = line.maxima(metric, here), line.columns[metric].imbalance
    if known is None and np.isnan(maxima).all():
        return nothing, nothing
    maximum = statistic_of_present(maxima, Reduction.MEDIAN)
    if known is None:
        return maximum, np.where(np.isnan(maximum), np.nan, 1.0)
    return maximum, statistic_of_present(known[:, here].astype(np.float64), Reduction.MEDIAN)


def run_time_at(
    fitted: Fitted,
    target: float,
    measured: Measured,
    of_call_paths: Total,
    *,
    predicted: bool = False,
) -> RunTime | None:
    """Return the run time at a target.

    Parameters
    ----------
    fitted : models of call paths, with that of the run time
    target : value of the parameter
    measured : measured values at the scales of the models
    of_call_paths : predicted sum of the call paths at the target
    predicted : use predictions even if the target was measured

    Returns
    -------
    RunTime or None
        None if the run time is not recorded, if it has no model, and at infinity.
    """
    of_program = fitted.run_time
    if of_program is None or np.isinf(target):
        return None
    band = of_program.models.predict(np.array([target]))
    low, high = stretched(band.value, band.low, band.high, of_program.band_factor)
    alone = float(band.value[0, 0]), float(low[0, 0]), float(high[0, 0])
    said = larger(alone, of_call_paths) if sum_is_a_bound(fitted) else alone
    runs = Measured(of_program)
    point = None if predicted else runs.ran(target)
    if point is not None:
        total = _measured_at(runs, measured, point)
        return RunTime(of_program, target, runs.repetitions(point), total, said[0], alone[0])
    if np.isnan(alone[0]) or not of_program.modelled[0]:
        return None
    return RunTime(of_program, target, 0, said, said[0], alone[0])


def sum_is_a_bound(fitted: Fitted) -> bool:
    """Return True if the run time is never less than the sum of the call paths.

    This follows from the definition of means over processes. Profiles that break the rule use
    another definition, so the rule is not applied to them.
    """
    experiment, line = fitted.experiment, fitted.line
    values = line.columns[fitted.metric.name]
    if experiment.reduction not in _AT_MOST_MEANS or values.run_time is None:
        return False
    sums = sum_over(values.exclusive)
    return not (sums > values.run_time * (1 + _TOLERANCE)).any()


def larger(one: Total, other: Total) -> Total:
    """Return the larger value, lower end and upper end of two; an end may be NaN in one of them."""
    low, high = float(np.fmax(one[1], other[1])), float(np.fmax(one[2], other[2]))
    value = float(np.fmax(one[0], other[0]))
    return value, min(low, value), max(high, value)


def run_times(fitted: Fitted, points: FloatArray) -> FloatArray:
    """Return the predicted run times at [m] values of the parameter.

    Without a model of the run time, these are the sums of all call paths.
    """
    of_program = _model_of(fitted)
    alone: FloatArray | None = None
    if of_program is not None:
        alone = of_program.models.values(points)[0]
    if alone is not None and not sum_is_a_bound(fitted):
        return alone
    sums = fitted.models.sum_values(np.flatnonzero(fitted.modelled), points)
    return sums if alone is None else np.maximum(alone, sums)


def predicted_run_time(fitted: Fitted, target: float, of_call_paths: Total | None = None) -> Total:
    """Return the predicted run time at one target with its band, from the same models.

    Parameters
    ----------
    of_call_paths : predicted sum of the call paths there, if it is known already
    """
    of_program = _model_of(fitted)
    alone = None if of_program is None else predict(of_program, target).total()
    if alone is not None and not sum_is_a_bound(fitted):
        return alone
    of_call_paths = of_call_paths or predict(fitted, target).total()
    return of_call_paths if alone is None else larger(alone, of_call_paths)


def run_time_bands(fitted: Fitted, points: FloatArray) -> Band:
    """Return the predicted run times at [m] finite values of the parameter, with their bands."""
    of_call_paths = Band(*predict_sum(fitted, np.arange(len(fitted.modelled)), points))
    of_program = _model_of(fitted)
    if of_program is None:
        return of_call_paths
    alone = Band(*predict_sum(of_program, np.zeros(1, np.intp), points))
    if not sum_is_a_bound(fitted):
        return alone
    pairs = ((alone.value, of_call_paths.value), (alone.low, of_call_paths.low),
             (alone.high, of_call_paths.high))  # fmt: skip
    value, low, high = (np.fmax(one, other) for one, other in pairs)
    return Band(value, np.minimum(low, value), np.maximum(high, value))


def _model_of(fitted: Fitted) -> Fitted | None:
    """Return the model of the run time, if there is one."""
    of_program = fitted.run_time
    return of_program if of_program is not None and of_program.modelled[0] else None


def _measured_at(runs: Measured, pool: Measured, point: int) -> Total:
    """Return the measured run time at a point; its interval uses the noise of all call paths."""
    fitted = runs.fitted
    value = float(fitted.measured[0, point])
    if runs.point(float(fitted.points[point])) is None:
        return value, float("nan"), float("nan")
    centre, confidence = fitted.measured[:, point], fitted.models.confidence
    band = pool.interval(np.asarray(centre), runs.runs, point, confidence)
    return value, float(band.low[0]), float(band.high[0])
