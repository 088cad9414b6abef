"""Numbers that are not known exactly: values with the ends of their bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Values with bands, each of the same shape; NaN = not known.

    Attributes
    ----------
    value, low, high : in one unit
    measured : which are centres of repetitions with their intervals; the others are predicted
    """

    value: Values
    low: Values
    high: Values
    measured: Flags | np.bool_ = np.False_

    def __getitem__(self, index: int | slice) -> Band:
        measured = np.broadcast_to(self.measured, self.value.shape)
        return Band(self.value[index], self.low[index], self.high[index], measured[index])

    def at(self, index: int) -> tuple[float, float, float]:
        """Return value, low and high of one."""
        return float(self.value[index]), float(self.low[index]), float(self.high[index])

    def known_or(self, other: Band) -> Band:
        """Return the band with what is not known of it taken from another one."""
        known = ~np.isnan(self.value)
        return Band(
            np.where(known, self.value, other.value),
            np.where(known, self.low, other.low),
            np.where(known, self.high, other.high),
            np.where(known, self.measured, other.measured),
        )


def propagate_errors(of: Callable[[Sequence[Values]], Values], parts: Sequence[Band]) -> Band:
    """Return a function of several bands; it is measured where all of them are.

    One part at a time goes to the ends of its band; the squares of how far that moves the result
    add up, as those of independent errors do.

    Parameters
    ----------
    of : the function, of one array per part
    parts : arrays that broadcast against each other
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
