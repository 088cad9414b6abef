"""Power: which violation a number of mpiruns finds, and how many mpiruns find a violation.

A check is called violated if its t exceeds a critical value. Its t has two parts that scatter: the
difference of the means, and the standard error that divides it. Both are nearly normal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, lgamma, log, sqrt

import numpy as np

from callpath_modeler.modeling.distributions import normal_quantile, normal_share, student_quantile
from callpath_modeler.units import counted, percent, significant
from cpmodel_guidelines.statistics.permutations import smallest_rate

FOUND = 0.8
"""Probability with which a violation is found that a campaign is said to find."""
SMALL = 0.1
"""Slowdown for which the note names the number of mpiruns."""
MOST_MPIRUNS = 1000


@dataclass(frozen=True)
class Power:
    """Power of a check with a typical noise, at one size and setting.

    Attributes
    ----------
    mpiruns : number of mpiruns of each side
    noise : standard deviation of the logarithm of left over right in one mpirun
    checks : number of checks of the family
    rate : family-wise error rate
    correlation : critical value, relative to the one of as many independent checks

    Examples
    --------
    >>> planned = Power(mpiruns=10, noise=0.07, checks=495, rate=0.05)
    >>> round(planned.slowdown, 2), planned.mpiruns_for(0.1)
    (0.14, 16)
    """

    mpiruns: int
    noise: float
    checks: int
    rate: float
    correlation: float = 1.0

    @classmethod
    def measured(
        cls, mpiruns: int, noise: float, checks: int, rate: float, critical: float
    ) -> Power:
        """Return the power of a campaign with the critical value of its permutations."""
        alone = cls(mpiruns, noise, checks, rate)
        return replace(alone, correlation=critical / alone.critical)

    @property
    def can_show(self) -> bool:
        """Return whether this number of mpiruns can show anything at all."""
        return self.mpiruns > 1 and smallest_rate(self.mpiruns, self.mpiruns) <= self.rate

    @property
    def degrees(self) -> int:
        """Return the degrees of freedom of the standard error."""
        return 2 * self.mpiruns - 2

    @cached_property
    def critical(self) -> float:
        """Return the t from which a check is called violated."""
        # Both directions count in permutations.
        level = 1 - self.rate / (2 * max(self.checks, 1))
        return self.correlation * float(student_quantile(np.array([float(self.degrees)]), level)[0])

    def chance(self, slowdown: float) -> float:
        """Return the probability that a violation by a slowdown, as a fraction, is found."""
        if not self.can_show:
            return 0.0
        middle, scatter = self._limit
        distance = log(1 + slowdown) * sqrt(self.mpiruns) / self.noise
        return float(normal_share((distance - middle) / scatter))

    @property
    def slowdown(self) -> float:
        """Return the slowdown that is found with the probability `FOUND`; infinite = none."""
        if not self.can_show:
            return np.inf
        middle, scatter = self._limit
        distance = middle + float(normal_quantile(FOUND)) * scatter
        return exp(min(distance * self.noise / sqrt(self.mpiruns), 700.0)) - 1

    def mpiruns_for(self, slowdown: float) -> int | None:
        """Return the least number of mpiruns that find a slowdown; None = more than the maximum."""
        if self.with_mpiruns(MOST_MPIRUNS).slowdown > slowdown:
            return None
        low, high = 1, MOST_MPIRUNS
        while high - low > 1:
            middle = (low + high) // 2
            finds = self.with_mpiruns(middle).slowdown <= slowdown
            low, high = (low, middle) if finds else (middle, high)
        return high

    def with_mpiruns(self, mpiruns: int) -> Power:
        """Return the power of another number of mpiruns."""
        return replace(self, mpiruns=mpiruns)

    def said(self) -> str:
        """Return the power as a sentence."""
        if not self.can_show:
            return (
                f"With {counted(self.mpiruns, 'mpirun')}, nothing can be shown at an error rate of "
                f"{percent(self.rate)}: measure at least {least_mpiruns(self.rate)}."
            )
        # A percentage of several hundred has to be read twice.
        factor = 1 + self.slowdown
        slowdown = percent(factor - 1) if factor < 3 else f"a factor of {significant(factor, 2)}"
        runs = None if self.slowdown <= SMALL else self.mpiruns_for(SMALL)
        return (
            f"At typical noise, {self.mpiruns} mpiruns find a violation by {slowdown} at one size "
            f"with a probability of {percent(FOUND)}."
            + f" {runs} mpiruns would find {percent(SMALL)}."
            * (runs is not None)
        )

    @property
    def _limit(self) -> tuple[float, float]:
        """Return mean and standard deviation of the distance that a found check exceeds.

        The standard error is that of the true noise, times a chi variable over the root of its
        degrees of freedom. The difference itself scatters by one.
        """
        half = self.degrees / 2
        mean = exp(lgamma(half + 0.5) - lgamma(half)) / sqrt(half)
        return self.critical * mean, sqrt(1 + self.critical**2 * (1 - mean**2))


def least_mpiruns(rate: float) -> int:
    """Return the least number of mpiruns that can show anything at an error rate.

    >>> least_mpiruns(0.05), least_mpiruns(0.001)
    (4, 7)
    """
    return next(k for k in range(2, MOST_MPIRUNS) if smallest_rate(k, k) <= rate)
