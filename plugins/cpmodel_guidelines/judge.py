"""Verdicts on checks, as functions of arrays.

Logarithms of times are compared, as in `callpath_modeler.analysis.changes`. For measured
checks, `statistics` limits the error rate. A guideline holds if the whole interval is below the
tolerance. `predicted_excess` judges predicted checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

import numpy as np

from callpath_modeler.analysis.changes import (
    SampleComparison,
    compare_bands,
    compare_samples,
)
from callpath_modeler.analysis.measured import Sample
from callpath_modeler.analysis.uncertain import Band, propagate_errors
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.modeling.distributions import normal_quantile
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
    chance : probability of this factor or a larger one if the guideline held (p-value); at a target
        that was not measured, probability that no violation is shown there
    rate : error rate of the whole answer at which this check is called violated; NaN = predicted
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


def _sample(of: Estimates) -> Sample:
    return Sample(of.value, np.ones_like(of.value), of.variance, of.dof)
