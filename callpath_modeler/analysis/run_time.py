"""The run time of the program at a target: measured where it was run, else predicted.

The run time is the inclusive time of the program on the slowest process. It is a series of its own
with a model of its own: listed call paths are means over processes, or maxima of different
processes, and do not add up to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.at_target import Total
from callpath_modeler.analysis.measured import Measured
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.reductions import statistic_of_present

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RunTime:
    """The run time at a target, in the unit of the metric.

    Attributes
    ----------
    fitted : the model of the run time
    target : value of the parameter
    repetitions : runs of the target, if the value is measured; 0 = it is predicted
    total : value, and its band or interval; NaN where one run tells no interval
    predicted : the value of the model
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


def maxima_at_largest(fitted: Fitted) -> tuple[Values, Values]:
    """Return the maxima over processes at the largest scale, and the imbalance there.

    Returns
    -------
    maximum, imbalance : [call paths], medians of repetitions; the imbalance is the largest over the
        mean of the processes; NaN where it is not known
    """
    line, metric = fitted.line, fitted.metric.name
    here = line.settings([fitted.parameter])[:, 0] == fitted.points[-1]
    if not fitted.metric.additive:
        nothing = np.full(len(line.tree), np.nan)
        return nothing, nothing
    maxima, known = line.maxima(metric)[:, here], line.columns[metric].imbalance
    maximum = statistic_of_present(maxima, Reduction.MEDIAN)
    if known is None:
        return maximum, np.where(np.isnan(maximum), np.nan, 1.0)
    return maximum, statistic_of_present(known[:, here].astype(np.float64), Reduction.MEDIAN)


def run_time_at(
    fitted: Fitted, target: float, measured: Measured, *, predicted: bool = False
) -> RunTime | None:
    """Return the run time at a target.

    Parameters
    ----------
    fitted : models of call paths, with that of the run time
    target : value of the parameter
    measured : the runs behind the models
    predicted : ask the model, even where the target was measured

    Returns
    -------
    RunTime or None
        None where runs do not tell their run time, or it has no model, and at infinity.
    """
    of_program = fitted.run_time
    if of_program is None or np.isinf(target):
        return None
    band = of_program.models.predict(np.array([target]))
    said = float(band.value[0, 0]), float(band.low[0, 0]), float(band.high[0, 0])
    runs = Measured(of_program)
    point = None if predicted else runs.ran(target)
    if point is not None:
        total = _measured_at(runs, measured, point)
        return RunTime(of_program, target, runs.repetitions(point), total, said[0])
    if np.isnan(said[0]) or not of_program.modelled[0]:
        return None
    return RunTime(of_program, target, 0, said, said[0])


def _measured_at(runs: Measured, pool: Measured, point: int) -> Total:
    """Return what was measured at a point, with an interval by the noise of all call paths."""
    fitted = runs.fitted
    value = float(fitted.measured[0, point])
    if runs.point(float(fitted.points[point])) is None:
        return value, float("nan"), float("nan")
    centre, confidence = fitted.measured[:, point], fitted.models.confidence
    band = pool.interval(np.asarray(centre), runs.runs, point, confidence)
    return value, float(band.low[0]), float(band.high[0])
