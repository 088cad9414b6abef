"""Expected growths, limits of their deviation, and matches.

See docs/explanation/expectations.md, 'Limits, divergence, match'.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Self

from callpath_modeler.modeling.growth import CONSTANT_GROWTH, Growth


class DeviationMatch(IntEnum):
    """The match of a growth with an expectation; a larger number is a better match."""

    NO_MODEL = -1
    NONE = 0
    APPROXIMATE = 1
    EXACT = 2


@dataclass(frozen=True, slots=True)
class DeviationLimits:
    """Limits of a growth, which are themselves allowed.

    Parameters
    ----------
    low, high : Growth or None
        Slowest and fastest allowed growth; None = no limit on that side.

    Raises
    ------
    ValueError
        If no growth lies within the limits.
    """

    low: Growth | None
    high: Growth | None

    def __post_init__(self) -> None:
        """Check that some growth lies within the limits."""
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
    for p and for p log p, log^(1/2) p for log p, 2^(k/2) for k^3 2^k. For O(1) it is O(1), so that
    only a constant matches. For a falling growth such as 1/p it is sqrt(p), as for p: a deviation
    limit is a factor, and at least 1.
    """
    if expected.rate:
        return Growth(Fraction(0), 0, abs(expected.rate) / 2)
    if expected.exponent:
        return Growth(abs(expected.exponent) / 2, 0)
    return Growth(Fraction(0), Fraction(expected.log if expected.log > 0 else -expected.log) / 2)


@dataclass(frozen=True, slots=True)
class ExpectedGrowth:
    """An expected growth E, and a factor D by which a growth may deviate on either side.

    Parameters
    ----------
    growth : Growth
        The expected growth E.
    deviation : Growth
        The deviation limit D, at least O(1).

    Raises
    ------
    ValueError
        If the deviation limit is below O(1).
    """

    growth: Growth
    deviation: Growth

    def __post_init__(self) -> None:
        """Check the deviation limit; one below O(1) would exchange the limits."""
        if self.deviation < CONSTANT_GROWTH:
            raise ValueError(f"a deviation limit is O(1) or more, not {self.deviation}")

    @classmethod
    def of(cls, growth: Growth, deviation: Growth | None = None) -> Self:
        """Return an expectation, by default with `default_deviation`."""
        return cls(growth, default_deviation(growth) if deviation is None else deviation)

    @property
    def limits(self) -> DeviationLimits:
        """The limits E / D and E D; growths between them match."""
        return DeviationLimits(self.growth / self.deviation, self.growth * self.deviation)

    def divergence(self, growth: Growth) -> Growth:
        """Return the factor by which a growth misses the expectation: delta = G / E."""
        return growth / self.growth

    def match(self, growth: Growth) -> DeviationMatch:
        """Return the match of a growth: exact if it is E, approximate within the limits."""
        if growth == self.growth:
            return DeviationMatch.EXACT
        return DeviationMatch.APPROXIMATE if self.limits.side(growth) == 0 else DeviationMatch.NONE
