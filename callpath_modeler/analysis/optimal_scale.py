"""Where a program of strong scaling stops getting faster: the least of its predicted total.

Work that is shared costs each of more processes less, what is not shared costs them more. The sum
falls, has a least value, and rises.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.excess import is_summed, scaling_over
from callpath_modeler.analysis.run_time import predicted_run_time, run_times
from callpath_modeler.analysis.target_costs import Total
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.experiment import Scaling

Values = NDArray[np.float64]

_PER_DOUBLING = 128
"""Scales that are looked at: half a percent apart."""

_FURTHEST = 1024.0
"""How many times the largest scale is looked for the least, where the target has no end."""

_RISES = 0.005
"""By less than that, three digits show no difference."""


@dataclass(frozen=True, slots=True)
class ScalingOptimum:
    """The scale at which the whole program is predicted to be fastest.

    Attributes
    ----------
    at : the scale, which may be the smallest that was measured
    total : the predicted total there, with its band
    first, last : about `at`, the scales whose total is not above that band
    until : the scale up to which the least was looked for: the target, unless that is infinite
    is_slower : whether the band of the total there is above that of the least as a whole
    """

    at: float
    total: Total
    first: float
    last: float
    until: float
    is_slower: bool


def scaling_optimum(fitted: Fitted, target: float, total: Total) -> ScalingOptimum | None:
    """Find the scale before a target from which on more processes make a program slower.

    Asked is the run time, or the sum of all call paths where that has no model.

    Parameters
    ----------
    fitted : the models
    target : beyond the largest scale; it may be infinite
    total : predicted at the target, with its band; at infinity it is not asked

    Returns
    -------
    Turning or None
        None where nothing is faster than the target, and where there is no such question: with
        weak scaling, inside the data, of sums over processes, and of what is not a time or does
        not add up.
    """
    if target <= fitted.points[-1] or not _has_run_time(fitted):
        return None
    until = target if np.isfinite(target) else _FURTHEST * float(fitted.points[-1])
    points = _scales(float(fitted.points[0]), until)
    totals = run_times(fitted, points)
    least = int(totals.argmin())
    if not totals[-1] > totals[least] * (1 + _RISES):
        return None
    at = float(points[least])
    there = predicted_run_time(fitted, at)
    end = total if np.isfinite(target) else predicted_run_time(fitted, until)
    first, last = plateau(points, totals, least, there[2])
    return ScalingOptimum(at, there, first, last, until, end[1] > there[2])


def _has_run_time(fitted: Fitted) -> bool:
    """Tell whether the total is a time that more processes are to make shorter."""
    experiment, parameter, metric = fitted.experiment, fitted.parameter, fitted.metric
    is_time = metric.additive and metric.is_time and not is_summed(experiment, parameter)
    return is_time and scaling_over(experiment, parameter) is Scaling.STRONG


def _scales(start: float, end: float) -> Values:
    """Return scales from start to end, evenly in logarithms."""
    return np.geomspace(start, end, 1 + int(np.ceil(_PER_DOUBLING * np.log2(end / start))))


def plateau(points: Values, totals: Values, least: int, limit: float) -> tuple[float, float]:
    """Return the ends of the unbroken stretch about the least where totals are up to a limit.

    Parameters
    ----------
    points, totals : [m] scales, ascending, and the totals there
    least : number of the point with the least total
    limit : of totals; that of the least is within it, whatever it is
    """
    is_above = totals > max(limit, totals[least])
    before, after = np.flatnonzero(is_above[:least]), np.flatnonzero(is_above[least:])
    first = before[-1] + 1 if len(before) else 0
    last = least + after[0] - 1 if len(after) else len(points) - 1
    return float(points[first]), float(points[last])
