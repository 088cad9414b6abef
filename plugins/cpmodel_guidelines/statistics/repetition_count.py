"""Numbers of repetitions that an mpirun needs (NREP), as ReproMPI predicts them.

Repetitions are measured in growing batches. After each batch, criteria look at all times so far.
The first batch at which all criteria are below their thresholds ends the measurement (Hunold,
Carpen-Amarie, Lübbe, Träff: Automatic verification of self-consistent MPI performance guidelines,
Euro-Par 2016).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray

_FILTERED_FROM = 10
"""Outliers are removed from more times than this."""


def without_tukey_outliers(times: FloatArray) -> FloatArray:
    """Return times without outliers.

    A time is an outlier if it is farther from the quartiles than 1.5 times their distance (Tukey:
    Exploratory data analysis, 1977). Quartiles are interpolated linearly (type 7 of R).

    >>> without_tukey_outliers(np.array([1.0, 1.1, 1.2, 1.3, 9.0]))
    array([1. , 1.1, 1.2, 1.3])
    """
    ordered = np.sort(times)
    place = (len(ordered) - 1) * np.array([0.25, 0.75])
    lower = np.floor(place).astype(np.intp)
    upper, weight = np.ceil(place).astype(np.intp), place - lower
    # R rounds in this way, and coarse clocks make times that are exactly at the limit.
    first, third = (1 - weight) * ordered[lower] + weight * ordered[upper]
    reach = 1.5 * (third - first)
    kept: FloatArray = times[(times <= third + reach) & (times >= first - reach)]
    return kept


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion with its threshold.

    Attributes
    ----------
    name : one of `CRITERIA`
    threshold : the value has to be smaller
    window : number of means or medians that are compared; `rse` has none
    """

    name: str
    threshold: float
    window: int = 10

    def value(self, times: FloatArray) -> float:
        """Return the value of the criterion for all times so far; NaN = too few times."""
        return CRITERIA[self.name](times, self.window)

    def is_met(self, times: FloatArray) -> bool:
        """Return whether the value is below the threshold."""
        return self.value(times) < self.threshold


def relative_standard_error(times: FloatArray, window: int = 0) -> float:  # noqa: ARG001
    """Return the standard error of the mean, relative to the mean."""
    kept = _filtered(times)
    if len(kept) < 2:
        return np.nan
    return float(np.std(kept, ddof=1) / (np.sqrt(len(kept)) * np.mean(kept)))


def variation_of_means(times: FloatArray, window: int) -> float:
    """Return the coefficient of variation of the means of the last `window` prefixes."""
    return _variation(times, window, lambda prefix: float(np.mean(_filtered(prefix))))


def variation_of_medians(times: FloatArray, window: int) -> float:
    """Return the coefficient of variation of the medians of the last `window` prefixes."""
    return _variation(times, window, lambda prefix: float(np.median(prefix)))


CRITERIA: dict[str, Callable[[FloatArray, int], float]] = {
    "rse": relative_standard_error,
    "cov_mean": variation_of_means,
    "cov_median": variation_of_medians,
}
"""Criteria by their names in ReproMPI."""


def _variation(times: FloatArray, window: int, centre: Callable[[FloatArray], float]) -> float:
    count = len(times)
    if window > count or window < 2:
        return np.nan
    centres = np.array([centre(times[: count - k]) for k in range(window)])
    return float(np.std(centres, ddof=1) / np.mean(centres))


def _filtered(times: FloatArray) -> FloatArray:
    return without_tukey_outliers(times) if len(times) > _FILTERED_FROM else times


def batches(least: int, most: int, step: int) -> list[int]:
    """Return the numbers of repetitions after each batch.

    The first batch has `least` repetitions. The growth doubles from batch to batch, from `step` on.

    >>> batches(10, 1000, 5)
    [10, 25, 50, 95, 180, 345, 670, 1000]
    """
    found, size, growth, count = [], least, step, 0
    while count < most:
        count = min(count + size, most)
        found.append(count)
        size, growth = size + growth, 2 * growth
    return found


@dataclass(frozen=True, slots=True)
class RepetitionCount:
    """The number of repetitions for one function at one size in one mpirun.

    Attributes
    ----------
    count : number of repetitions
    is_met : whether all criteria are met; if not, the times ended, or the maximum was reached
    values : values of the criteria at this number, by name
    """

    count: int
    is_met: bool
    values: dict[str, float]


def repetition_count(
    times: FloatArray, criteria: Sequence[Criterion], after: Sequence[int]
) -> RepetitionCount:
    """Return the number of repetitions that an mpirun needs.

    Parameters
    ----------
    times : [n] times in the order of measurement
    criteria : all of them have to be met
    after : numbers of repetitions after each batch, ascending
    """
    known = [count for count in after if count <= len(times)] or [len(times)]
    for count in known:
        values = {each.name: each.value(times[:count]) for each in criteria}
        if all(values[each.name] < each.threshold for each in criteria):
            return RepetitionCount(count, True, values)
    return RepetitionCount(known[-1], False, values)
