"""Functions at settings, and which messages are next to each other in size."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log

Setting = tuple[float, ...]
"""Values of all parameters, in their order."""


@dataclass(frozen=True, slots=True)
class FunctionAtSetting:
    """A function, by its row, at a setting."""

    row: int
    setting: Setting


@dataclass(frozen=True, slots=True)
class Between:
    """Where a place lies among those that are known.

    Attributes
    ----------
    less, more : the nearest ones with messages as long or shorter, and as long or longer
    weight : how near it is to the second, from 0 to 1, in ratios
    """

    less: FunctionAtSetting
    more: FunctionAtSetting
    weight: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of messages at which functions are known.

    Attributes
    ----------
    axis : where in settings the size stands; None = nowhere
    known : ascending, of each function at each setting of other parameters
    """

    axis: int | None
    known: Mapping[FunctionAtSetting, tuple[float, ...]]

    @classmethod
    def of(cls, places: Iterable[FunctionAtSetting], axis: int | None) -> Sizes:
        """Sort places by their size."""
        found: dict[FunctionAtSetting, set[float]] = {}
        for place in places:
            size = 0.0 if axis is None else place.setting[axis]
            found.setdefault(_line(place, axis), set()).add(size)
        return cls(axis, {line: tuple(sorted(sizes)) for line, sizes in found.items()})

    def least(self, place: FunctionAtSetting) -> float | None:
        """Return the smallest size at which a function is known beside a place."""
        sizes = self.known.get(_line(place, self.axis))
        return None if sizes is None else sizes[0]

    def between(self, place: FunctionAtSetting) -> Between | None:
        """Find what a place lies between, which is itself if it is known; None = it is beyond."""
        sizes = self.known.get(_line(place, self.axis))
        if sizes is None:
            return None
        if self.axis is None:
            return Between(place, place, 0.0)
        size = place.setting[self.axis]
        above, below = bisect_left(sizes, size), bisect_right(sizes, size) - 1
        if above == len(sizes) or below < 0:
            return None
        less, more = sizes[below], sizes[above]
        first, second = (
            FunctionAtSetting(place.row, moved(place.setting, self.axis, end))
            for end in (less, more)
        )
        # Of nothing there is no ratio.
        weight = 0.0 if less == more else log(size / less) / log(more / less) if less > 0 else 0.5
        return Between(first, second, weight)


def moved(setting: Setting, axis: int, value: float) -> Setting:
    """Return a setting with another value of one parameter."""
    return (*setting[:axis], value, *setting[axis + 1 :])


def without(setting: Setting, axis: int) -> Setting:
    """Return the values of the other parameters."""
    return (*setting[:axis], *setting[axis + 1 :])


def _line(place: FunctionAtSetting, axis: int | None) -> FunctionAtSetting:
    return place if axis is None else FunctionAtSetting(place.row, without(place.setting, axis))
