"""What is expected of a growth, how far it may deviate, and by how much it does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Self

from callpath_modeler.modeling.growth import CONSTANT_GROWTH, Growth

_HALF = Fraction(1, 2)


class DeviationMatch(IntEnum):
    """How well a growth matches an expectation, the better the larger."""

    NO_MODEL = -1
    NONE = 0
    APPROXIMATE = 1
    EXACT = 2


@dataclass(frozen=True, slots=True)
class DeviationLimits:
    """Between which growths a growth has to be; the limits themselves are within.

    Parameters
    ----------
    low, high : Growth or None
        None = no limit on that side.

    Raises
    ------
    ValueError
        If nothing is within.
    """

    low: Growth | None
    high: Growth | None

    def __post_init__(self) -> None:
        """Refuse limits that nothing is within."""
        if self.low is not None and self.high is not None and self.high < self.low:
            raise ValueError(f"no growth is above {self.low} and below {self.high}")

    def side(self, growth: Growth) -> int:
        """Return -1 for a growth below the limits, 1 above, 0 within."""
        if self.low is not None and growth < self.low:
            return -1
        return int(self.high is not None and growth > self.high)


def default_deviation(expected: Growth) -> Growth:
    """Return the deviation limit of an expectation that names none.

    It is the leading factor of the expectation with half its exponent, in its own class: sqrt(p)
    of p and of p log p, log^(1/2) p of log p, 2^(k/2) of k^3 2^k. Of O(1) it is O(1), so that
    nothing but a constant matches. Of a falling growth such as 1/p it is sqrt(p), as of p: a
    deviation limit is a factor, and never below 1.
    """
    if expected.rate:
        return Growth(Fraction(0), 0, abs(expected.rate) * _HALF)
    if expected.exponent:
        return Growth(abs(expected.exponent) * _HALF, 0)
    return Growth(
        Fraction(0), Fraction(expected.log if expected.log > 0 else -expected.log) * _HALF
    )


@dataclass(frozen=True, slots=True)
class ExpectedGrowth:
    """A growth E that is expected, and a factor D by which it may be missed on either side.

    Parameters
    ----------
    growth : Growth
        E.
    deviation : Growth
        D, not below O(1).

    Raises
    ------
    ValueError
        If the deviation is below O(1).
    """

    growth: Growth
    deviation: Growth

    def __post_init__(self) -> None:
        """Refuse a deviation that turns the limits round."""
        if self.deviation < CONSTANT_GROWTH:
            raise ValueError(f"a deviation limit is O(1) or more, not {self.deviation}")

    @classmethod
    def of(cls, growth: Growth, deviation: Growth | None = None) -> Self:
        """Make an expectation, by default with `default_deviation`."""
        return cls(growth, default_deviation(growth) if deviation is None else deviation)

    @property
    def limits(self) -> DeviationLimits:
        """E / D and E D: what is within matches."""
        return DeviationLimits(self.growth / self.deviation, self.growth * self.deviation)

    def divergence(self, growth: Growth) -> Growth:
        """Return by what factor a growth misses the expectation: delta = G / E."""
        return growth / self.growth

    def match(self, growth: Growth) -> DeviationMatch:
        """Compare a growth: exact where it is E, approximate within the limits."""
        if growth == self.growth:
            return DeviationMatch.EXACT
        return DeviationMatch.APPROXIMATE if self.limits.side(growth) == 0 else DeviationMatch.NONE
