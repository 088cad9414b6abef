"""Values with uncertainty bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray

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
