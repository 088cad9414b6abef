"""Verdicts: arrays in, arrays out.

Logarithms are compared, as `callpath_modeler.analysis.two_samples` does. Of the guidelines that are
told to be violated, over all of one kind, a small share should be so by chance (Benjamini and
Hochberg 1995). That one holds is shown where the whole interval says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.bands import Band, propagate_errors
from callpath_modeler.analysis.sample import Sample
from callpath_modeler.analysis.two_samples import (
    SampleComparison,
    compare_bands,
    compare_samples,
    false_discovery_rate,
)
from callpath_modeler.modeling.distributions import normal_quantile, normal_share
from cpmodel_guidelines.benchmark import Estimates

Values = NDArray[np.float64]
Flags = NDArray[np.bool_]


NO_TIME = Estimates(np.zeros(1), np.zeros(1), np.ones(1))
"""What does not have to be done."""


FALSE = 0.01
"""Whoever says that a library is slow should be right: this share of guidelines is told falsely."""


class GuidelineVerdict(StrEnum):
    """What is known of a guideline."""

    VIOLATED = "violated"
    HOLDS = "holds"
    OPEN = "not decided"


@dataclass(frozen=True, slots=True, eq=False)
class GuidelineVerdicts:
    """What came of checks, each [checks].

    Attributes
    ----------
    factor, low, high : time over that of the emulation, with its interval; NaN = not known
    chance : probability of such a factor, or a larger one, if the guideline held there
    rate : share of false ones among guidelines told to be violated, if this were the last of them
    violated, holds : verdicts; where neither is true it is not decided
    """

    factor: Values
    low: Values
    high: Values
    chance: Values
    rate: Values
    violated: Flags
    holds: Flags

    def take(self, rows: Sequence[int]) -> GuidelineVerdicts:
        """Return those of some checks."""
        return GuidelineVerdicts(*(getattr(self, each.name)[[*rows]] for each in fields(self)))

    def verdict(self, check: int) -> GuidelineVerdict:
        """Return the verdict on one check."""
        if self.violated[check]:
            return GuidelineVerdict.VIOLATED
        return GuidelineVerdict.HOLDS if self.holds[check] else GuidelineVerdict.OPEN


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


def measured(left: Estimates, right: Estimates, confidence: float) -> SampleComparison:
    """Compare two sides as they were measured, [checks]."""
    return compare_samples(_sample(right), _sample(left), confidence)


def predicted(left: Band, parts: Sequence[Band], confidence: float) -> SampleComparison:
    """Compare two sides as models predict them, [checks]."""
    whole = propagate_errors(lambda values: np.sum(values, axis=0), parts)
    # No time is below zero, and of zero there is no logarithm.
    right = whole.value, np.maximum(whole.low, np.finfo(float).tiny), whole.high
    return compare_bands(right, (left.value, left.low, left.high), confidence)


def judged(
    comparison: SampleComparison,
    *,
    tolerance: float,
    confidence: float,
    can_break: Flags,
    can_hold: Flags,
    guidelines: NDArray[np.integer],
    families: NDArray[np.integer],
    backing: Values | None = None,
) -> GuidelineVerdicts:
    """Decide on checks, [checks].

    A guideline is told to be violated if its checks together show that; of these, where each by
    itself does.

    Parameters
    ----------
    comparison : of time with that of the emulation
    tolerance : how much slower is no violation, as fraction
    confidence : of intervals; half of the rest is the chance of each check, and the share of false
        ones among guidelines that are told to be violated; of measured ones at most `FALSE`
    can_break, can_hold : what checks may tell
    guidelines : checks of one number are of one guideline
    families : guidelines of one number are told together
    backing : probabilities by chance of what else a violation needs, where models are compared;
        None = measurements are
    """
    least, most = np.log1p(tolerance), (1 - confidence) / 2
    slower = comparison.difference > 0
    chance = np.where(slower, comparison.p / 2, 1 - comparison.p / 2)
    chance = np.where(can_break, chance, np.nan)
    # Where several things have to be shown, the one that is shown least decides.
    needed = chance if backing is None else np.maximum(chance, backing)
    error = (comparison.difference - comparison.low) / normal_quantile(1 - most)
    if backing is not None:
        # Errors of models have much in common: they do not average out.
        error = np.full_like(error, np.inf)
    rate = np.full(len(chance), np.nan)
    for family in np.unique(families):
        rows = np.flatnonzero(families == family)
        each, place = np.unique(guidelines[rows], return_inverse=True)
        parts = [rows[place.ravel() == k] for k in range(len(each))]
        chances = [
            chance_of_any(needed[part], comparison.difference[part], error[part]) for part in parts
        ]
        rate[rows] = false_discovery_rate(np.array(chances))[place.ravel()]
    holds = can_hold & (comparison.high <= least)
    allowed = min(FALSE, most) if backing is None else most
    shown = (np.nan_to_num(rate, nan=1.0) <= allowed) & (np.nan_to_num(needed, nan=1.0) <= most)
    violated = ~holds & shown & slower & (comparison.difference >= least)
    with np.errstate(over="ignore"):
        factor, low, high = (
            np.exp(each) for each in (comparison.difference, comparison.low, comparison.high)
        )
    return GuidelineVerdicts(factor, low, high, chance, rate, violated, holds)


def chance_of_any(chance: Values, difference: Values, error: Values) -> float:
    """Return the probability of what checks of a guideline show, if it held in all of them.

    That some of them show much (Simes: An improved Bonferroni procedure for multiple tests of
    significance, 1986), or that they do in the mean.

    Parameters
    ----------
    chance : [n] of each; NaN = it does not tell
    difference, error : [n] logarithms of factors with their errors; infinite = no mean is made
    """
    known = ~np.isnan(chance)
    count = int(known.sum())
    if not count:
        return np.nan
    some = float((np.sort(chance[known]) * count / np.arange(1, count + 1)).min())
    weight = error[known] ** -2.0
    if count == 1 or not weight.sum() > 0:
        return min(some, 1.0)
    mean = float(normal_share(-(weight * difference[known]).sum() / np.sqrt(weight.sum())))
    return min(2 * min(some, mean), 1.0)


def backing(scales: Values, of: GuidelineVerdicts, confidence: float) -> float:
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
