"""Scale with the shortest predicted run time under strong scaling.

The cost per process of shared work falls with the number of processes, and other costs rise. The
sum falls, reaches a minimum, and rises.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from callpath_modeler.analysis.bands import Total
from callpath_modeler.analysis.excess import is_summed
from callpath_modeler.analysis.ideals import scaling_over
from callpath_modeler.analysis.run_time import predicted_run_time, run_times
from callpath_modeler.arrays import FloatArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.experiment import Scaling

_PER_DOUBLING = 128
"""Scales that are evaluated per doubling; neighbours differ by half a percent."""

_FURTHEST = 1024.0
"""Largest extrapolation factor of the search if the target is infinite."""

_RISES = 0.005
"""Relative differences below this one do not show in three digits."""


class ScalingOptimum(Struct, frozen=True):
    """Scale with the shortest predicted run time.

    Attributes
    ----------
    at : the scale, which may be the smallest measured one
    total : predicted total there, with its band
    first, last : ends of the range of scales around `at` whose total is inside that band
    until : end of the search: the target, unless it is infinite
    is_slower : True if the whole band of the total at `until` is above the band at `at`
    """

    at: float
    total: Total
    first: float
    last: float
    until: float
    is_slower: bool


def scaling_optimum(fitted: Fitted, target: float, total: Total) -> ScalingOptimum | None:
    """Return the scale before a target from which on more processes make a program slower.

    The total is the run time, or the sum of all call paths if the run time has no model.

    Parameters
    ----------
    fitted : the models
    target : a scale beyond the largest one; it may be infinite
    total : predicted total at the target, with its band; not used at infinity

    Returns
    -------
    ScalingOptimum or None
        None if nothing is faster than the target. None also under weak scaling, inside the data,
        for sums over processes, and for metrics that are not times or not additive.
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
    if not end[0] > there[0] * (1 + _RISES):
        return None
    first, last = plateau(points, totals, least, there[2])
    return ScalingOptimum(at, there, first, last, until, end[1] > there[2])


def _has_run_time(fitted: Fitted) -> bool:
    """Return True if the total is a time that more processes should shorten."""
    experiment, parameter, metric = fitted.experiment, fitted.parameter, fitted.metric
    is_time = metric.can_be_run_time and not is_summed(experiment, parameter)
    return is_time and scaling_over(experiment, parameter) is Scaling.STRONG


def _scales(start: float, end: float) -> FloatArray:
    """Return scales from start to end, equally spaced in logarithms."""
    return np.geomspace(start, end, 1 + int(np.ceil(_PER_DOUBLING * np.log2(end / start))))


def plateau(
    points: FloatArray, totals: FloatArray, least: int, limit: float
) -> tuple[float, float]:
    """Return the ends of the contiguous range around the minimum with totals up to a limit.

    Parameters
    ----------
    points, totals : [m] scales, ascending, and totals there
    least : index of the smallest total
    limit : largest total; the minimum is always inside
    """
    is_above = totals > max(limit, totals[least])
    before, after = np.flatnonzero(is_above[:least]), np.flatnonzero(is_above[least:])
    first = before[-1] + 1 if len(before) else 0
    last = least + after[0] - 1 if len(after) else len(points) - 1
    return float(points[first]), float(points[last])
