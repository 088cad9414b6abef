"""The next commit to measure for the date of a change, and the cheapest runs that decide it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.distributions import normal_quantile

_ERROR = 0.05
"""Probability that the runs are on the wrong side of the middle between the two levels."""

_MOST_REPETITIONS = 50


@dataclass(frozen=True, slots=True)
class DecidingRuns:
    """Runs of one commit that tell whether it has a change.

    Attributes
    ----------
    scale : number of the scale
    repetitions : number of runs
    cost : their cost, e.g. in core-seconds; NaN = not known
    error : probability that they are on the wrong side
    """

    scale: int
    repetitions: int
    cost: float
    error: float


def deciding_runs(
    before: FloatArray, after: FloatArray, repetitions: float, cost: FloatArray
) -> DecidingRuns | None:
    """Return the cheapest runs that tell two levels apart.

    A level is decided by the middle between the mean before and the mean after. The number of
    repetitions follows from the scatter of records, each of which is a centre of repetitions.

    Parameters
    ----------
    before, after : [T, K] levels of records without and with the change, in logarithms; NaN =
        missing
    repetitions : typical number of repetitions of these records
    cost : [K] cost of one run

    Returns
    -------
    DecidingRuns or None
        None if no scale tells the levels apart with at most 50 runs.
    """
    best: DecidingRuns | None = None
    z = float(normal_quantile(1.0 - _ERROR))
    for scale in range(before.shape[1]):
        left, right = (each[~np.isnan(each[:, scale]), scale] for each in (before, after))
        if len(left) < 2 or not len(right):
            continue
        half = abs(right.mean() - left.mean()) / 2.0
        scatter = float(left.std(ddof=1)) * np.sqrt(repetitions)
        if not half or (needed := (z * scatter / half) ** 2) > _MOST_REPETITIONS:
            continue
        number = max(1, int(np.ceil(needed)))
        found = DecidingRuns(scale, number, number * float(cost[scale]), _ERROR)
        # Where no cost is known, fewer runs at a smaller scale are cheaper.
        key = (found.cost, number)
        if (
            best is None
            or np.isnan(best.cost) > np.isnan(found.cost)
            or key
            < (
                best.cost,
                best.repetitions,
            )
        ):
            best = found
    return best


def narrowed(levels: FloatArray, earliest: int, latest: int) -> tuple[int, int]:
    """Return the interval of the first changed record after runs at a few scales.

    Such a record has no value at the largest scale, which the alarm is about. It has the change if
    its levels are beyond the middle between those before the interval and those after it.

    Parameters
    ----------
    levels : [T, K] logarithms; NaN = missing
    earliest, latest : interval of the first changed record
    """
    middle = np.full((2, levels.shape[1]), np.nan)
    for side, part in enumerate((levels[:earliest], levels[latest:])):
        count = (~np.isnan(part)).sum(axis=0)
        middle[side] = np.where(count > 0, np.nansum(part, axis=0) / np.maximum(count, 1), np.nan)
    before, after = middle
    for record in range(earliest, latest):
        known = ~np.isnan(levels[record]) & (np.abs(after - before) > 0)
        if not known.any() or not np.isnan(levels[record, -1]):
            continue
        part = (levels[record, known] - before[known]) / (after[known] - before[known])
        if np.mean(part) >= 0.5:
            return earliest, record
        earliest = record + 1
    return earliest, latest


def middle_of(number: int) -> int:
    """Return the candidate that halves `number` candidates for the first changed commit.

    The last candidate has the change for certain, so that it is never measured.
    """
    return (number - 1) // 2
