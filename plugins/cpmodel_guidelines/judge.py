"""Verdicts on checks, as functions of arrays.

Logarithms of times are compared, as in `callpath_modeler.analysis.changes`. For measured
checks, `statistics` limits the error rate. For predicted checks, the share of false violations is
limited for each kind of guideline (Benjamini and Hochberg 1995). A guideline holds if the whole
interval is below the tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.changes import (
    SampleComparison,
    compare_bands,
    compare_samples,
    false_discovery_rate,
)
from callpath_modeler.analysis.measured import Sample
from callpath_modeler.analysis.uncertain import Band, propagate_errors
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.modeling.distributions import normal_quantile, normal_share
from callpath_modeler.units import signed_percent
from cpmodel_guidelines.benchmark import Estimates

NO_TIME = Estimates(np.zeros(1), np.zeros(1), np.ones(1))
"""A time of zero, for missing parts of the right side."""


class GuidelineVerdict(StrEnum):
    """GuidelineVerdict on a guideline."""

    VIOLATED = "violated"
    HOLDS = "holds"
    OPEN = "not decided"


@dataclass(frozen=True, slots=True)
class Slowdown:
    """Time of the left side over time of the right side, with its interval; NaN = unknown."""

    factor: float
    low: float
    high: float

    @property
    def by(self) -> str:
        """Return the slowdown as a signed percentage."""
        return signed_percent(self.factor - 1)

    @property
    def interval(self) -> str:
        """Return the interval as signed percentages; "" = unknown."""
        if np.isnan(self.low):
            return ""
        return f"{signed_percent(self.low - 1)} … {signed_percent(self.high - 1)}"


@dataclass(frozen=True, slots=True, eq=False)
class GuidelineVerdicts:
    """GuidelineVerdicts on checks, [C] each.

    Attributes
    ----------
    factor, low, high : time of the left side over time of the right side, with its interval; NaN =
        unknown
    chance : probability of this factor or a larger one if the guideline held (p-value)
    rate : error rate of the whole answer at which this check is called violated
    violated, holds : verdicts; if both are false, the check is not decided
    """

    factor: FloatArray
    low: FloatArray
    high: FloatArray
    chance: FloatArray
    rate: FloatArray
    violated: BoolArray
    holds: BoolArray

    def take(self, rows: Sequence[int]) -> GuidelineVerdicts:
        """Return the verdicts on the checks at `rows`."""
        return GuidelineVerdicts(*(getattr(self, each.name)[[*rows]] for each in fields(self)))

    def slowdown(self, check: int) -> Slowdown:
        """Return the slowdown of one check."""
        return Slowdown(*(float(column[check]) for column in (self.factor, self.low, self.high)))

    def verdict(self, check: int) -> GuidelineVerdict:
        """Return the verdict on one check."""
        if self.violated[check]:
            return GuidelineVerdict.VIOLATED
        return GuidelineVerdict.HOLDS if self.holds[check] else GuidelineVerdict.OPEN


def added(parts: Sequence[Estimates], times: FloatArray) -> Estimates:
    """Return the time of calls that are executed one after the other, [C].

    Parameters
    ----------
    parts : time of each call, [C] each
    times : [C] number of executions of the whole sequence
    """
    whole = np.sum([part.value for part in parts], axis=0)
    shares = [(part.value / whole) ** 2 * part.variance for part in parts]
    variance = np.sum(shares, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Degrees of freedom by Welch and Satterthwaite; exact times contribute no error.
        each = [share**2 / part.dof for share, part in zip(shares, parts, strict=True)]
        dof = np.where(variance > 0, variance**2 / np.sum(each, axis=0), parts[0].dof)
    return Estimates(whole * times, variance, dof)


def interpolated(
    less: Estimates, more: Estimates, weight: FloatArray, confidence: float
) -> Estimates:
    """Return values between two values, [n], with intervals that enclose the intervals of both.

    Parameters
    ----------
    weight : [n] position on a logarithmic scale, from 0 (`less`) to 1 (`more`)
    confidence : level of the intervals
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rise = np.log(more.value / less.value)
        value = less.value * np.exp(weight * rise)
        reach = np.maximum(weight, 1 - weight) * np.abs(rise)
    error = reach / normal_quantile(0.5 + confidence / 2)
    variance = error**2 + np.maximum(less.variance, more.variance)
    return Estimates(value, variance, np.minimum(less.dof, more.dof))


def measured(left: Estimates, right: Estimates, confidence: float) -> SampleComparison:
    """Return the comparison of two measured sides, [C]."""
    return compare_samples(_sample(right), _sample(left), confidence)


def predicted(left: Band, parts: Sequence[Band], confidence: float) -> SampleComparison:
    """Return the comparison of two predicted sides, [C]."""
    whole = propagate_errors(lambda values: np.sum(values, axis=0), parts)
    # Times are positive, and zero has no logarithm.
    right = whole.value, np.maximum(whole.low, np.finfo(float).tiny), whole.high
    return compare_bands(right, (left.value, left.low, left.high), confidence)


def slower_chance(comparison: SampleComparison) -> FloatArray:
    """Return the one-sided p-values of the hypothesis that the left side is not slower."""
    return np.where(comparison.difference > 0, comparison.p / 2, 1 - comparison.p / 2)


def verdicts_of(
    comparison: SampleComparison,
    chance: FloatArray,
    rate: FloatArray,
    *,
    largest_rate: float,
    tolerance: float,
    can_hold: BoolArray,
) -> GuidelineVerdicts:
    """Return the verdicts on checks, [C].

    Parameters
    ----------
    comparison : left side compared with the right side
    chance : [C] p-value of each check; NaN = decides nothing
    rate : [C] error rate at which each check is called violated; NaN = cannot be violated
    largest_rate : largest error rate of a violation
    tolerance : slowdown that is not a violation, as a fraction
    can_hold : [C] whether a check can show that a guideline holds
    """
    least = np.log1p(tolerance)
    holds = can_hold & (comparison.high <= least)
    shown = np.nan_to_num(rate, nan=2.0) <= largest_rate
    # A reader sees the interval, so a violation may not contradict it.
    shown &= comparison.low > 0
    violated = ~holds & shown & (comparison.difference >= least)
    with np.errstate(over="ignore"):
        factor, low, high = (
            np.exp(each) for each in (comparison.difference, comparison.low, comparison.high)
        )
    return GuidelineVerdicts(factor, low, high, chance, rate, violated, holds)


def judged_prediction(
    comparison: SampleComparison,
    *,
    tolerance: float,
    confidence: float,
    can_break: BoolArray,
    can_hold: BoolArray,
    guidelines: NDArray[np.integer],
    families: NDArray[np.integer],
    backing: FloatArray,
) -> GuidelineVerdicts:
    """Return the verdicts on predicted checks, [C].

    A guideline is violated if its checks together show it. Its checks are then tested one by one.

    Parameters
    ----------
    comparison : left side compared with the right side
    tolerance : slowdown that is not a violation, as a fraction
    confidence : level of the intervals; half of the remainder limits the error of each check, and
        the share of false violations
    can_break, can_hold : [C] whether a check can show a violation, or that a guideline holds
    guidelines : [C] number of the guideline
    families : [C] number of the kind of guideline
    backing : [C] p-values of the support by measurements
    """
    most = (1 - confidence) / 2
    chance = np.where(can_break, slower_chance(comparison), np.nan)
    # If several conditions are necessary, the weakest one decides.
    needed = np.maximum(chance, backing)
    rate = np.full(len(chance), np.nan)
    for family in np.unique(families):
        rows = np.flatnonzero(families == family)
        each, place = np.unique(guidelines[rows], return_inverse=True)
        parts = [rows[place.ravel() == k] for k in range(len(each))]
        chances = [chance_of_any(needed[part]) for part in parts]
        rate[rows] = false_discovery_rate(np.array(chances))[place.ravel()]
    shown = np.where(np.nan_to_num(needed, nan=1.0) <= most, rate, np.nan)
    found = verdicts_of(
        *(comparison, chance, shown), largest_rate=most, tolerance=tolerance, can_hold=can_hold
    )
    return replace(found, rate=rate)


def chance_of_any(chance: FloatArray) -> float:
    """Return the p-value of the checks of a guideline together.

    This is the combination of Simes (An improved Bonferroni procedure for multiple tests of
    significance, 1986). A mean would be smaller, but errors of models are correlated.

    Parameters
    ----------
    chance : [n] p-values of the checks; NaN = decides nothing
    """
    known = chance[~np.isnan(chance)]
    count = len(known)
    if not count:
        return np.nan
    return min(float((np.sort(known) * count / np.arange(1, count + 1)).min()), 1.0)


def backing(scales: FloatArray, of: GuidelineVerdicts, confidence: float) -> float:
    """Return the p-value of the support that measurements give to a predicted violation.

    Models may be wrong beyond the measured scales. So a guideline also has to be violated at the
    largest scale, or to come closer to a violation from scale to scale.

    Parameters
    ----------
    scales : [n] numbers of processes of the checks
    of : [n] verdicts on the checks
    confidence : level of the intervals

    Returns
    -------
    Probability of a factor as large, or of a rise as steep, without a violation; 1 = no support.
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
