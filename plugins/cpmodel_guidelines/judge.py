"""Verdicts: arrays in, arrays out.

Logarithms are compared, as `callpath_modeler.analysis.two_samples` does. That a function is slower
is shown where chance would say so too rarely, over all checks of one kind (Benjamini and Hochberg
1995); that it is not, where the whole interval says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.bands import Band, varied
from callpath_modeler.analysis.sample import Sample
from callpath_modeler.analysis.two_samples import (
    Comparison,
    bands_compared,
    compared,
    false_discovery_rate,
)
from callpath_modeler.modeling.distributions import normal_quantile, normal_share
from cpmodel_guidelines.benchmark import Estimates

Values = NDArray[np.float64]
Flags = NDArray[np.bool_]


NO_TIME = Estimates(np.zeros(1), np.zeros(1), np.ones(1))
"""What does not have to be done."""


class Verdict(StrEnum):
    """What is known of a guideline."""

    VIOLATED = "violated"
    HOLDS = "holds"
    OPEN = "not decided"


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """What came of checks, each [checks].

    Attributes
    ----------
    factor, low, high : time over that of the emulation, with its interval; NaN = not known
    chance : probability of such a factor, or a larger one, if the guideline held
    rate : share of false violations, if this were the last one told
    violated, holds : verdicts; where neither is true it is not decided
    """

    factor: Values
    low: Values
    high: Values
    chance: Values
    rate: Values
    violated: Flags
    holds: Flags

    def take(self, rows: Sequence[int]) -> Verdicts:
        """Return those of some checks."""
        return Verdicts(*(getattr(self, each.name)[[*rows]] for each in fields(self)))

    def verdict(self, check: int) -> Verdict:
        """Return the verdict on one check."""
        if self.violated[check]:
            return Verdict.VIOLATED
        return Verdict.HOLDS if self.holds[check] else Verdict.OPEN


def added(parts: Sequence[Estimates], times: Values) -> Estimates:
    """Return what calls take one after the other, [checks], given what each takes, [checks] each.

    Parameters
    ----------
    times : how often they are done, [checks]
    """
    whole = np.sum([part.value for part in parts], axis=0)
    shares = [(part.value / whole) ** 2 * part.variance for part in parts]
    variance = np.sum(shares, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Welch and Satterthwaite; what is exact has no error to count.
        each = [share**2 / part.dof for share, part in zip(shares, parts, strict=True)]
        dof = np.where(variance > 0, variance**2 / np.sum(each, axis=0), parts[0].dof)
    return Estimates(whole * times, variance, dof)


def interpolated(less: Estimates, more: Estimates, weight: Values, confidence: float) -> Estimates:
    """Return what lies between two values, [n], with intervals that reach as far as both.

    Parameters
    ----------
    weight : how near to the second, from 0 to 1, in ratios
    confidence : with which it is to lie between them
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rise = np.log(more.value / less.value)
        value = less.value * np.exp(weight * rise)
        reach = np.maximum(weight, 1 - weight) * np.abs(rise)
    error = reach / normal_quantile(0.5 + confidence / 2)
    variance = error**2 + np.maximum(less.variance, more.variance)
    return Estimates(value, variance, np.minimum(less.dof, more.dof))


def measured(left: Estimates, right: Estimates, confidence: float) -> Comparison:
    """Compare two sides as they were measured, [checks]."""
    return compared(_sample(right), _sample(left), confidence)


def predicted(left: Band, parts: Sequence[Band], confidence: float) -> Comparison:
    """Compare two sides as models predict them, [checks]."""
    whole = varied(lambda values: np.sum(values, axis=0), parts)
    # No time is below zero, and of zero there is no logarithm.
    right = whole.value, np.maximum(whole.low, np.finfo(float).tiny), whole.high
    return bands_compared(right, (left.value, left.low, left.high), confidence)


def judged(
    comparison: Comparison,
    *,
    tolerance: float,
    confidence: float,
    can_break: Flags,
    can_hold: Flags,
    families: NDArray[np.integer],
    backing: Values | None = None,
) -> Verdicts:
    """Decide on checks, [checks].

    Parameters
    ----------
    comparison : of time with that of the emulation
    tolerance : how much slower is no violation, as fraction
    confidence : of intervals; half of the rest is the share of false ones among violations
    can_break, can_hold : what checks may tell
    families : checks of one number are told together
    backing : probabilities by chance of what else a violation needs; None = nothing
    """
    slower = comparison.difference > 0
    chance = np.where(slower, comparison.p / 2, 1 - comparison.p / 2)
    chance = np.where(can_break, chance, np.nan)
    # Where several things have to be shown, the one that is shown least decides.
    needed = chance if backing is None else np.maximum(chance, backing)
    rate = np.full(len(chance), np.nan)
    for family in np.unique(families):
        rows = families == family
        rate[rows] = false_discovery_rate(needed[rows])
    least = np.log1p(tolerance)
    holds = can_hold & (comparison.high <= least)
    shown = np.nan_to_num(rate, nan=1.0) <= (1 - confidence) / 2
    violated = ~holds & shown & slower & (comparison.difference >= least)
    with np.errstate(over="ignore"):
        factor, low, high = (
            np.exp(each) for each in (comparison.difference, comparison.low, comparison.high)
        )
    return Verdicts(factor, low, high, chance, rate, violated, holds)


def backing(scales: Values, of: Verdicts, confidence: float) -> float:
    """Return how well measurements back that a guideline is violated beyond them.

    Models are made of measurements, and may be wrong about what these do not show. So a guideline
    has to be violated at the largest scale, or to come closer to that from scale to scale.

    Parameters
    ----------
    scales : [n] at which it was checked
    of : [n] what came of that
    confidence : of the intervals

    Returns
    -------
    Probability of a factor as large, or a rise as steep, if there were none; 1 = no backing.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs, reach = np.log(of.factor), np.log(of.high / of.low) / 2
        weight = (normal_quantile(0.5 + confidence / 2) / reach) ** 2
    known = np.isfinite(logs) & np.isfinite(weight)
    if not known.any():
        return 1.0
    x, y, weight = np.log2(scales[known]), logs[known], weight[known]
    there = int(np.argmax(x))
    chances = [normal_share(-y[there] * np.sqrt(weight[there]))]
    apart = x - np.average(x, weights=weight)
    spread = float((weight * apart**2).sum())
    if spread > 0:
        chances.append(normal_share(-float((weight * apart * y).sum()) / np.sqrt(spread)))
    return min(1.0, len(chances) * float(min(chances)))


def _sample(of: Estimates) -> Sample:
    return Sample(of.value, np.ones_like(of.value), of.variance, of.dof)
