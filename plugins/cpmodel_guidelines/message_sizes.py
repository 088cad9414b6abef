"""Neighbouring message sizes of functions."""

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
    """The known neighbours of a place.

    Attributes
    ----------
    less, more : nearest known places with messages at most, and at least, as long
    weight : position between them on a logarithmic scale, from 0 (`less`) to 1 (`more`)
    """

    less: FunctionAtSetting
    more: FunctionAtSetting
    weight: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """Message sizes at which functions are known.

    Attributes
    ----------
    axis : index of the message size in settings; None = no such parameter
    known : ascending sizes of each function at each setting of the other parameters
    """

    axis: int | None
    known: Mapping[FunctionAtSetting, tuple[float, ...]]

    @classmethod
    def of(cls, places: Iterable[FunctionAtSetting], axis: int | None) -> Sizes:
        """Return the sizes of `places`, sorted."""
        found: dict[FunctionAtSetting, set[float]] = {}
        for place in places:
            size = 0.0 if axis is None else place.setting[axis]
            found.setdefault(_line(place, axis), set()).add(size)
        return cls(axis, {line: tuple(sorted(sizes)) for line, sizes in found.items()})

    def least(self, place: FunctionAtSetting) -> float | None:
        """Return the smallest known size of a function at the setting of a place; None = none."""
        sizes = self.known.get(_line(place, self.axis))
        return None if sizes is None else sizes[0]

    def between(self, place: FunctionAtSetting) -> Between | None:
        """Return the neighbours of a place; None = outside the measured sizes.

        A known place is its own neighbour, twice.
        """
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
        # A message of zero bytes has no logarithm, so the weight is the middle.
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
