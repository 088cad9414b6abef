"""Values with uncertainty bands, and marks of trust.

Both follow from bands. A band should hold the value in as many cases as its confidence says. The
measured rates are in benchmarks/ACCURACY.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, IntArray
from callpath_modeler.modeling import Models
from callpath_modeler.modeling.distributions import normal_quantile, normal_share

_MOST_EXPONENT = 700.0

Total = tuple[float, float, float]
"""A value, its lower end and its upper end."""


class Band(Struct, frozen=True, eq=False):
    """Values with bands, in arrays of one shape; NaN = not known.

    Attributes
    ----------
    value, low, high : in one unit
    measured : True for centres of repetitions with confidence intervals, False for predictions
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    measured: BoolArray | np.bool_ = np.False_

    def __getitem__(self, index: int | slice | IntArray) -> Band:
        measured = np.broadcast_to(self.measured, self.value.shape)
        return Band(self.value[index], self.low[index], self.high[index], measured[index])

    def at(self, index: int) -> tuple[float, float, float]:
        """Return one value with its lower and upper end."""
        return float(self.value[index]), float(self.low[index]), float(self.high[index])

    def rows(self) -> list[Total]:
        """Return each value with its lower and upper end."""
        return [*zip(self.value.tolist(), self.low.tolist(), self.high.tolist(), strict=True)]


def propagate_errors(
    of: Callable[[Sequence[FloatArray]], FloatArray], parts: Sequence[Band]
) -> Band:
    """Return the band of a function of several bands, by propagation of errors.

    Each argument in turn is replaced by the ends of its band. The squares of the resulting changes
    are added, as for independent errors. The result is measured if all arguments are.

    Parameters
    ----------
    of : the function, of one array per argument
    parts : the arguments, which broadcast against each other
    """
    centre = [part.value for part in parts]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.asarray(of(centre), float)
        below, above = np.zeros_like(value), np.zeros_like(value)
        for k, part in enumerate(parts):
            moved = [
                of([*centre[:k], end, *centre[k + 1 :]]) - value for end in (part.low, part.high)
            ]
            below += np.minimum(np.minimum(*moved), 0.0) ** 2
            above += np.maximum(np.maximum(*moved), 0.0) ** 2
    measured = np.logical_and.reduce(np.broadcast_arrays(*(part.measured for part in parts)))
    return Band(value, value - np.sqrt(below), value + np.sqrt(above), measured)


def stretched(
    value: FloatArray, low: FloatArray, high: FloatArray, factor: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of bands whose widths are multiplied by a factor, on a logarithmic scale."""
    if factor == 1:
        return low, high
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        down, up = np.log(value / low), np.log(high / value)
        lower = value * np.exp(-np.minimum(factor * down, _MOST_EXPONENT))
        upper = value * np.exp(np.minimum(factor * up, _MOST_EXPONENT))
    is_ratio = (value > 0) & np.isfinite(value)
    lower = np.where(is_ratio & (low > 0), lower, low)
    return lower, np.where(is_ratio & np.isfinite(high), upper, high)


def deviation(predicted: FloatArray, measured: FloatArray) -> FloatArray:
    """Return the relative deviation of predictions from measurements; NaN = not known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        off = predicted / measured - 1
    return np.where((predicted == 0) & (measured == 0), 0.0, off)


def basis_of(measured: bool) -> str:
    """Return the word in tables for the basis of a number: ``"measured"`` or ``"predicted"``."""
    return "measured" if measured else "predicted"


MARKS = 4
"""Largest number of marks of trust."""

WITHIN = (1.1, 1.25, 2.0, 5.0)
"""Factors: a prediction whose band stays within the first has four marks, within the second three.
"""

PROBABLE = (0.25, 0.5, 0.8, 0.95)
"""Smallest probabilities of a model for one to four marks at infinity, where no band exists."""

_UNKNOWN = 1
"""Largest number of marks with which only the band of a prediction is stated."""

FAR = 16.0
"""Extrapolation factor above which a target is far beyond the data. Models are chosen by their
predictions there, and bands of real programs hold less often beyond it.
"""

MOST_IN_DOUBT, MOST_UNREPEATED = 2, 3
"""Largest number of marks far beyond the data or outside the model class, and for single runs."""

LIMITS = 2
"""Additive numbers of each prediction that limit the marks of sums."""

_HALVINGS = 60
_LEAST = 1e-12
_NEVER = 39.0
"""Normal score beyond which the normal distribution is zero in double precision."""


def marks_of_trust(value: FloatArray, low: FloatArray, high: FloatArray) -> Int8Array:
    """Return marks by the largest ratio between the value and an end of its band.

    Parameters
    ----------
    value, low, high : [n] values with bands or intervals; NaN = not known

    Returns
    -------
    [n]
        0 to `MARKS`; -1 without a band. A value of zero with a band of zero has all marks.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.maximum(high / value, value / low)
    reach = np.where((value == low) & (value == high), 1.0, reach)
    marks = MARKS - np.searchsorted(WITHIN, np.nan_to_num(reach, nan=np.inf) * (1 - _LEAST))
    return np.where(np.isnan(value) | np.isnan(low), -1, marks).astype(np.int8)


def limited(models: Models, value: FloatArray, times_largest: float) -> FloatArray:
    """Return the parts of predictions that limit their marks, [n, LIMITS]; they are additive.

    Parameters
    ----------
    models : n rows
    value : [n] predictions at the target; NaN = none
    times_largest : extrapolation factor, see `Fitted.times_largest`

    Returns
    -------
    [n, LIMITS]
        The values with at most `MOST_IN_DOUBT` marks, and those with at most `MOST_UNREPEATED`.
    """
    in_doubt = models.doubtful()
    if FAR <= times_largest < np.inf:
        in_doubt = np.ones_like(in_doubt)
    unrepeated = in_doubt | np.isnan(models.noise)
    parts = np.nan_to_num(value) + np.finfo(float).tiny
    found = np.empty((len(value), LIMITS))
    for limit, where in enumerate((in_doubt, unrepeated)):
        found[:, limit] = np.where(where, parts, 0.0)
    return found


def at_most(marks: Int8Array, value: FloatArray, parts: FloatArray) -> Int8Array:
    """Return marks, limited for values at least half of which have a limit in `parts`."""
    half = np.nan_to_num(value)[:, None] / 2
    with np.errstate(invalid="ignore"):
        is_limited = (parts > 0) & (parts >= half)
    most = np.where(is_limited[:, 1], MOST_UNREPEATED, MARKS)
    most = np.where(is_limited[:, 0], MOST_IN_DOUBT, most)
    return np.minimum(marks, most).astype(np.int8)


def is_unknown(marks: int) -> bool:
    """Return whether a prediction has so few marks of trust that only its band is stated."""
    return 0 <= marks <= _UNKNOWN


def marks_text(marks: int) -> str:
    """Return marks of trust as text; empty without a model.

    >>> marks_text(3), marks_text(-1)
    ('●●●○', '')
    """
    return "●" * marks + "○" * (MARKS - marks) if marks >= 0 else ""


def marks_of_probability(probability: FloatArray) -> Int8Array:
    """Return marks by the probability of the growth at infinity, [n]; -1 = NaN."""
    marks = np.searchsorted(PROBABLE, np.nan_to_num(probability), side="right")
    return np.where(np.isnan(probability), -1, marks).astype(np.int8)


def among_the_first(
    value: FloatArray, low: FloatArray, high: FloatArray, count: int, confidence: float
) -> FloatArray:
    """Return the probability to be among the `count` largest values, [n]; 0 without a value.

    Values are independent, with a two-piece log-normal distribution whose quantiles are the ends of
    the band. The probability is that of exceeding the threshold which `count` values exceed on
    average. So the probabilities add up to `count`.

    Parameters
    ----------
    value, low, high : [n] finite values with bands or intervals; NaN = none. A value without a band
        is exact
    count : number of largest values
    confidence : confidence of the bands
    """
    known = np.isfinite(value) & (value > 0)
    low, high = (np.where(np.isnan(end), value, end) for end in (low, high))
    if known.sum() <= count:
        return np.where(np.isnan(value), 0.0, 1.0)
    reach = float(normal_quantile(0.5 + confidence / 2))
    centre = np.log(value[known])
    with np.errstate(divide="ignore"):
        below = (centre - np.log(np.maximum(low[known], np.exp(centre - 50)))) / reach
        furthest = np.exp(np.minimum(centre + 50, 700))
        above = (np.log(np.minimum(high[known], furthest)) - centre) / reach

    below, above = np.maximum(below, _LEAST), np.maximum(above, _LEAST)
    # Of most values, the probability to exceed the threshold is zero in double precision.
    furthest = centre + _NEVER * above
    near, share = np.arange(len(centre)), np.zeros(len(centre))

    def exceeding(threshold: float) -> FloatArray:
        distance = centre[near] - threshold
        spread = np.where(distance > 0, below[near], above[near])
        share[near] = normal_share(distance / spread)
        return share

    least, most = float(centre.min()) - 50, float(centre.max()) + 50
    for _ in range(_HALVINGS):
        middle = (least + most) / 2
        if exceeding(middle).sum() > count:
            least = middle
            share[near] = 0.0
            near = near[furthest[near] > least]
        else:
            most = middle
    chance = np.zeros(len(value))
    chance[known] = exceeding((least + most) / 2)
    return chance
