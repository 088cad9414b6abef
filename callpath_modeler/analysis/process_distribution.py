"""The distribution of values over processes, and its outlying processes.

The rule for outlying processes works on logarithms, because noise of times is skewed. The unit of
distance is the distance between the median and the quartile on the same side, divided by log 2. For
an exponential tail, this is its scale. The limit grows with the logarithm of the number of
processes, as the largest of so many values does.

Sources: robust outlier labelling by quartiles is of J. W. Tukey, Exploratory Data Analysis, 1977.
Its limits ignore the number of values and the skewness, so the constants here come from simulations
of noise; `tests/unit/analysis/test_process_distribution.py` repeats them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray

FALSE_RATE = 0.05
"""Largest fraction of call paths with an outlying process, if all processes have the same noise."""
LEAST = 8
"""Smallest number of processes with values above zero from which on processes are outlying."""

_NEAREST, _SLOPE = 6.8, 1.2
"""Limit in scales of the tail: the first, plus the second times the logarithm of the processes."""


class NotJudged(StrEnum):
    """Reason why no process is outlying."""

    FEW = "few"
    """Too few processes have a value above zero."""
    EQUAL = "equal"
    """More than half of the processes have the same value."""


@dataclass(frozen=True, slots=True, eq=False)
class ProcessDistribution:
    """The distribution of the values of processes.

    Attributes
    ----------
    values : float64 [processes]; NaN = no valid value
    low, high : a process beyond these limits is outlying; NaN = there are no limits
    reason : the reason why there are no limits, or None
    most_common : value of more than half of the processes with values above zero; NaN = none
    """

    values: FloatArray
    low: float
    high: float
    reason: NotJudged | None
    most_common: float

    @property
    def valid(self) -> FloatArray:
        """The valid values."""
        return self.values[~np.isnan(self.values)]

    @property
    def zeros(self) -> int:
        """Number of processes without cost."""
        return int(np.count_nonzero(self.values == 0))

    @property
    def median(self) -> float:
        """Median of the valid values; NaN = there are none."""
        return float(np.median(self.valid)) if len(self.valid) else float("nan")

    @property
    def mean(self) -> float:
        """Mean of the valid values; NaN = there are none."""
        return float(np.mean(self.valid)) if len(self.valid) else float("nan")

    @property
    def outlying(self) -> BoolArray:
        """Which processes are outlying, [processes]; processes without cost never are."""
        with np.errstate(invalid="ignore"):
            beyond = (self.values > self.high) | (self.values < self.low)
        return np.asarray(beyond & (self.values > 0))


def distribution(values: FloatArray) -> ProcessDistribution:
    """Return the distribution of values over processes.

    Parameters
    ----------
    values : float64 [processes], not negative; NaN = no valid value

    Returns
    -------
    ProcessDistribution
        Processes without cost are no part of the rule: they do not execute the call path. If all
        others have the same noise, normal, lognormal, exponential or of another common kind, an
        outlying process is found in at most `FALSE_RATE` of all call paths.
    """
    nowhere = float("nan")
    some = values[values > 0]
    if len(some) < LEAST:
        return ProcessDistribution(values, nowhere, nowhere, NotJudged.FEW, nowhere)
    logs = np.log(some)
    lower, middle, upper = np.quantile(logs, [0.25, 0.5, 0.75], method="median_unbiased")
    down, up = (middle - lower) / np.log(2), (upper - middle) / np.log(2)
    known, count = np.unique(some, return_counts=True)
    if 2 * count.max() > len(some):
        common = float(known[count.argmax()])
        return ProcessDistribution(values, nowhere, nowhere, NotJudged.EQUAL, common)
    # Values with few digits may have a quartile at the median, on one side only.
    down, up = down or up, up or down
    limit = _NEAREST + _SLOPE * np.log(len(some))
    with np.errstate(over="ignore"):
        low, high = float(np.exp(middle - limit * down)), float(np.exp(middle + limit * up))
    return ProcessDistribution(values, low, high, None, nowhere)


def agreement(values: FloatArray) -> float:
    """Return how well repetitions agree on the order of the processes.

    Parameters
    ----------
    values : [repetitions, processes]; NaN = no valid value

    Returns
    -------
    float
        Mean of Spearman's rank correlation over all pairs of repetitions: 1 = the same processes
        are slow in every repetition, 0 = there is no relation. NaN = there are fewer than two
        repetitions or `LEAST` processes, or the values of a repetition are all the same.
    """
    known = values[:, ~np.isnan(values).any(axis=0)]
    repetitions, processes = known.shape
    if repetitions < 2 or processes < LEAST:
        return float("nan")
    ranks = np.stack([_average_ranks(row) for row in known])
    ranks -= ranks.mean(axis=1, keepdims=True)
    lengths = np.sqrt((ranks**2).sum(axis=1, keepdims=True))
    if not lengths.all():
        return float("nan")
    ranks /= lengths
    # The square of the sum holds all pairs, and the pairs of a repetition with itself.
    total = float((ranks.sum(axis=0) ** 2).sum()) - repetitions
    return float(total / (repetitions * (repetitions - 1)))


def _average_ranks(values: FloatArray) -> FloatArray:
    """Return the rank of each value; equal values share the mean of their ranks."""
    _, which, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    found: FloatArray = (last - (count - 1) / 2)[which]
    return found
