"""The run time of the program at a target: measured if it was run, else predicted.

The run time is the inclusive time of the program on the slowest process. It is a separate series
with its own model. Listed call paths are means over processes, or maxima of different processes,
and do not add up to it.

No process is slower than the slowest, so the sum of means never exceeds the run time. The models of
the run time and of the call paths are independent. If their predictions keep this rule, the model
of the run time predicts. If the sum is larger, one of both is wrong. A sum of many noisy models is
too large, or a model of the whole misses a small part that grows. The prediction is then a mean of
both, weighted by their precision. Its band is wider the more they disagree. On measured series,
this is closer than each of them (docs/explanation/accuracy.md).
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from callpath_modeler.analysis.bands import Band, Total, stretched
from callpath_modeler.analysis.measured import Measured, sum_over
from callpath_modeler.analysis.predict import predict, predict_sum
from callpath_modeler.arrays import FloatArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.reductions import statistic_of_present

_AT_MOST_MEANS = frozenset({Reduction.MEAN, Reduction.GEOMEAN, Reduction.MIN})
"""Reductions whose result is at most the mean over processes."""
_DISAGREEMENT = 3.0
"""Width that a disagreement of two predictions of the run time adds to its band.

Unit: distances of their logarithms, at equal weights twice this factor. Evidence: 139 predictions
of measured series in which both disagree; the bands held in 99 %, and in 97 % with a factor of 2.
"""
_TOLERANCE = 0.01
"""Relative tolerance of the sum of call paths against the run time."""


class RunTime(Struct, frozen=True, eq=False):
    """Run time at a target, in the unit of the metric.

    Attributes
    ----------
    fitted : model of the run time
    target : value of the parameter
    repetitions : number of runs at the target if the value is measured; 0 = it is predicted
    total : value with its band or interval; NaN ends = a single run has no interval
    predicted : predicted value, even if the target was measured
    """

    fitted: Fitted
    target: float
    repetitions: int
    total: Total
    predicted: float

    @property
    def at_largest(self) -> float:
        """The run time measured at the largest scale."""
        return float(self.fitted.measured[0, -1])


def maxima_at_largest(fitted: Fitted) -> tuple[FloatArray, FloatArray]:
    """Return the maxima over processes at the largest scale, and the imbalance there.

    Returns
    -------
    maximum, imbalance : [call paths], means of repetitions; the imbalance is the largest over the
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
    maximum = statistic_of_present(maxima, Reduction.MEAN)
    if known is None:
        return maximum, np.where(np.isnan(maximum), np.nan, 1.0)
    return maximum, statistic_of_present(known[:, here].astype(np.float64), Reduction.MEAN)


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
    said = predicted_run_time(fitted, target, of_call_paths)
    runs = Measured(of_program)
    point = None if predicted else runs.ran(target)
    if point is not None:
        total = _measured_at(runs, measured, point)
        return RunTime(of_program, target, runs.repetitions(point), total, said[0])
    if not of_program.modelled[0]:
        return None
    return RunTime(of_program, target, 0, said, said[0])


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


def reconciled(alone: Band, of_call_paths: Band) -> Band:
    """Return predicted run times, from their model and from the sum of the call paths.

    Parameters
    ----------
    alone, of_call_paths : the predictions of both; NaN = not known

    Returns
    -------
    Band
        The predictions of the model with the larger ends of both bands, unless the sum of the call
        paths is larger. Then the mean of both logarithms, weighted by their precision, with the
        weighted mean of the bands, which is wider the more both disagree. It is not below the lower
        end of the sum.
    """
    weight = weight_of_sum(alone, of_call_paths)
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = (np.log([band.value, band.low, band.high]) for band in (alone, of_call_paths))
        middle = (1 - weight) * one[0] + weight * other[0]
        reach = (1 - weight) * np.abs(one - one[0]) + weight * np.abs(other - other[0])
        disagreement = _DISAGREEMENT * np.sqrt(weight * (1 - weight)) * (other[0] - one[0])
        _, below, above = np.hypot(reach, disagreement)
        both = np.exp([middle, middle - below, middle + above])
    # The run time is at least the sum, so it is at least what the sum is at least.
    both = np.fmax(both, of_call_paths.low)
    low = np.fmin(np.fmax(alone.low, of_call_paths.low), alone.value)
    columns = [
        np.where(weight == 0, of_model, np.where(weight == 1, of_sum, of_both))
        for of_model, of_sum, of_both in zip(
            (alone.value, low, np.fmax(alone.high, of_call_paths.high)),
            (of_call_paths.value, of_call_paths.low, of_call_paths.high),
            both,
            strict=True,
        )
    ]
    return Band(*columns)


def weight_of_sum(alone: Band, of_call_paths: Band) -> FloatArray:
    """Return the weights of the sums of the call paths in predicted run times, 0 to 1.

    Parameters
    ----------
    alone, of_call_paths : as for `reconciled`; without bands, both weigh the same
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        # The sum may be too large, and the model too small: these sides of the bands count.
        above = np.log(alone.high / alone.value)
        below = np.log(of_call_paths.value / of_call_paths.low)
        weight = 1 / (1 + (below / above) ** 2)
        is_larger = of_call_paths.value > alone.value
    weight = np.where(is_larger, np.where(np.isnan(weight), 0.5, weight), 0.0)
    is_known = ~np.isnan(of_call_paths.value)
    return np.where(alone.value > 0, weight, is_known.astype(np.float64))


def run_times(fitted: Fitted, points: FloatArray, weight: float = 0.5) -> FloatArray:
    """Return the predicted run times at [m] values of the parameter.

    Without a model of the run time, these are the sums of all call paths.

    Parameters
    ----------
    weight : weight of the sum of the call paths, as `weight_of_sum` returns it
    """
    of_program = fitted.run_time
    alone: FloatArray | None = None
    if of_program is not None and of_program.modelled[0]:
        alone = of_program.models.values(points)[0]
    if alone is not None and not sum_is_a_bound(fitted):
        return alone
    sums = fitted.models.sum_values(np.flatnonzero(fitted.modelled), points)
    if alone is None:
        return sums
    larger = (sums > alone) & (alone > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        weighted = np.exp((1 - weight) * np.log(alone) + weight * np.log(sums))
    return np.where(larger, weighted, np.where(alone > 0, alone, sums))


def predicted_run_time(fitted: Fitted, target: float, of_call_paths: Total | None = None) -> Total:
    """Return the predicted run time at one target with its band, from the same models.

    Parameters
    ----------
    of_call_paths : predicted sum of the call paths there, if it is known already
    """
    alone = _by_model(fitted, np.array([target]))
    if alone is not None and not sum_is_a_bound(fitted):
        return alone.at(0)
    sums = of_call_paths or predict(fitted, target).total()
    return sums if alone is None else reconciled(alone, Band(*map(np.atleast_1d, sums))).at(0)


def run_time_bands(fitted: Fitted, points: FloatArray) -> Band:
    """Return the predicted run times at [m] finite values of the parameter, with their bands."""
    alone = _by_model(fitted, points)
    if alone is not None and not sum_is_a_bound(fitted):
        return alone
    of_call_paths = Band(*predict_sum(fitted, np.arange(len(fitted.modelled)), points))
    return of_call_paths if alone is None else reconciled(alone, of_call_paths)


def _by_model(fitted: Fitted, points: FloatArray) -> Band | None:
    """Return predictions of the run time by its model; None = there is no model."""
    of_program = fitted.run_time
    if of_program is None or not of_program.modelled[0]:
        return None
    band = of_program.models.predict(points)
    ends = stretched(band.value[0], band.low[0], band.high[0], of_program.band_factor)
    return Band(band.value[0], *ends)


def _measured_at(runs: Measured, pool: Measured, point: int) -> Total:
    """Return the measured run time at a point; its interval uses the noise of all call paths."""
    fitted = runs.fitted
    value = float(fitted.measured[0, point])
    if runs.point(float(fitted.points[point])) is None:
        return value, float("nan"), float("nan")
    centre, confidence = fitted.measured[:, point], fitted.models.confidence
    band = pool.interval(np.asarray(centre), runs.runs, point, confidence)
    return value, float(band.low[0]), float(band.high[0])
