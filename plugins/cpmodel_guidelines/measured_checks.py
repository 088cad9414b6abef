"""Verdicts on measured checks: tests of mpiruns with a controlled error rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.two_samples import SampleComparison
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.distributions import student_quantile
from cpmodel_guidelines.answer import MeanOfChecks, Method, Test
from cpmodel_guidelines.checks import Group, GuidelineCheck
from cpmodel_guidelines.judge import GuidelineVerdicts, slower_chance, verdicts_of
from cpmodel_guidelines.rules import Guideline, GuidelineKind
from cpmodel_guidelines.statistics.adjustment import Control, adjusted
from cpmodel_guidelines.statistics.permutations import permutation_test
from cpmodel_guidelines.statistics.power import Power
from cpmodel_guidelines.statistics.two_sample_tests import (
    mean_chances,
    moments,
    rank_sum_chances,
    smirnov_chances,
)

_KINDS = tuple(GuidelineKind)


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredVerdicts:
    """Verdicts on measured checks.

    Attributes
    ----------
    verdicts : columns over the checks
    means : mean of the checks of each guideline and group; empty without permutations
    power : result that this number of mpiruns can show, as text; "" = not known
    sensitivity : the same as numbers; None = not known, or no permutations
    """

    verdicts: GuidelineVerdicts
    means: Mapping[tuple[Guideline, Group], MeanOfChecks]
    power: str
    sensitivity: Power | None = None


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredSides:
    """Both sides of measured checks.

    Attributes
    ----------
    checks : [C] checks
    comparison : comparison of the values of both sides, for factors and intervals
    left, right : [C, R] times of both sides in each mpirun; NaN = missing
    is_repeated : whether there are several mpiruns; otherwise Holm's method controls the rate of
        the tests of the comparison
    """

    checks: Sequence[GuidelineCheck]
    comparison: SampleComparison
    left: FloatArray
    right: FloatArray
    is_repeated: bool


def judge_measured(
    sides: MeasuredSides, method: Method, *, tolerance: float, confidence: float
) -> MeasuredVerdicts:
    """Return the verdicts on checks.

    Parameters
    ----------
    sides : both sides of the checks
    method : test and control of the error rate
    tolerance : slowdown that is not a violation, as a fraction
    confidence : level of the intervals
    """
    checks, comparison = sides.checks, sides.comparison
    left, right = sides.left, sides.right
    can_break = np.array([check.can_break for check in checks], bool)
    can_hold = np.array([check.can_hold for check in checks], bool)
    chance = np.where(can_break, _chances(sides, method.test), np.nan)
    control, means, power = method.control, {}, ""
    sensitivity: Power | None = None
    if control is Control.PERMUTATION and not sides.is_repeated:
        control = Control.HOLM
    if control is Control.PERMUTATION:
        groups: dict[tuple[Guideline, Group], list[int]] = {}
        for k, check in enumerate(checks):
            groups.setdefault((check.guideline, check.group), []).append(k)
        rows: list[IntArray] = [np.array(each, np.intp) for each in groups.values()]
        by_ranks = method.test is Test.RANK_SUM
        found = permutation_test(left, right, can_break, rows, method.rate, by_ranks=by_ranks)
        rate = found.rate
        if not by_ranks:
            bounds = _bounds(found.difference, found.error, left, right, confidence)
            for key, *told in zip(groups, *bounds, found.means.tolist(), strict=True):
                factor, low, high, mean_rate = map(float, told)
                violated = mean_rate <= method.rate and factor >= 1 + tolerance
                means[key] = MeanOfChecks(factor, low, high, mean_rate, violated)
        sensitivity = _power(left, right, can_break, found.critical, method)
        power = "" if sensitivity is None else sensitivity.said()
    else:
        kinds = np.array([_KINDS.index(check.guideline.kind) for check in checks], np.intp)
        rate = adjusted(chance, control, kinds)
        if method.test is Test.RANK_SUM:
            power = _power_of_ranks(left, right)
    verdicts = verdicts_of(
        *(comparison, chance, rate),
        largest_rate=method.rate,
        tolerance=tolerance,
        can_hold=can_hold,
    )
    return MeasuredVerdicts(verdicts, means, power, sensitivity)


def _chances(sides: MeasuredSides, test: Test) -> FloatArray:
    left, right = sides.left, sides.right
    if test is Test.RANK_SUM:
        return rank_sum_chances(left, right)
    if test is Test.SMIRNOV:
        return smirnov_chances(left, right)
    # Without several mpiruns, intervals or models give the noise.
    return mean_chances(left, right) if sides.is_repeated else slower_chance(sides.comparison)


def _bounds(
    difference: FloatArray,
    error: FloatArray,
    left: FloatArray,
    right: FloatArray,
    confidence: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return factors of means, with the ends of their intervals."""
    dof = max(_most(left) + _most(right) - 2, 1)
    reach = float(student_quantile(np.array([float(dof)]), 0.5 + confidence / 2)[0]) * error
    return np.exp(difference), np.exp(difference - reach), np.exp(difference + reach)


def _most(values: FloatArray) -> int:
    """Return the largest number of mpiruns of a check."""
    return int((~np.isnan(values)).sum(axis=1).max(initial=0))


def _power(
    left: FloatArray, right: FloatArray, can_break: BoolArray, critical: float, method: Method
) -> Power | None:
    """Return what permutations of this number of mpiruns can show; None = not known."""
    mpiruns = min(_most(left), _most(right))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = [np.log(side[can_break]) for side in (left, right)]
    spread = np.sqrt(sum(moments(each)[2] for each in logs))
    spread = spread[np.isfinite(spread) & (spread > 0)]
    # Half of the checks are less noisy than this one.
    noise = float(np.median(spread)) if len(spread) else np.nan
    found = Power(mpiruns, noise, int(can_break.sum()), method.rate)
    if not found.can_show:
        return found
    if not np.isfinite(critical * noise):
        return None
    return Power.measured(mpiruns, noise, found.checks, method.rate, critical)


def _power_of_ranks(left: FloatArray, right: FloatArray) -> str:
    """Return the smallest p-value of a rank-sum test."""
    n, m = _most(left), _most(right)
    if not n or not m:
        return ""
    low, high = np.arange(m, dtype=float), m + np.arange(n, dtype=float)
    least = float(rank_sum_chances(high[None], low[None])[0])
    return f"With {min(n, m)} mpiruns, the p-value of a rank-sum test is {least:.2g} or larger."
