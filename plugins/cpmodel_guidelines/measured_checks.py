"""Verdicts on measured checks: tests of mpiruns with a controlled error rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.two_samples import SampleComparison
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.distributions import student_quantile
from callpath_modeler.units import counted, percent
from cpmodel_guidelines.answer import MeanOfChecks, Method, Test
from cpmodel_guidelines.checks import Group, GuidelineCheck
from cpmodel_guidelines.judge import GuidelineVerdicts, slower_chance, verdicts_of
from cpmodel_guidelines.rules import Guideline, GuidelineKind
from cpmodel_guidelines.statistics.adjustment import Control, adjusted
from cpmodel_guidelines.statistics.permutations import permutation_test, smallest_rate
from cpmodel_guidelines.statistics.two_sample_tests import (
    mean_chances,
    moments,
    rank_sum_chances,
    smirnov_chances,
)

_KINDS = tuple(GuidelineKind)
_SMALL = 1.1
"""Slowdown for which the power note names the number of mpiruns."""
_MOST_RUNS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredVerdicts:
    """Verdicts on measured checks.

    Attributes
    ----------
    verdicts : columns over the checks
    means : mean of the checks of each guideline and group; empty without permutations
    power : result that this number of mpiruns can show, as text; "" = not known
    """

    verdicts: GuidelineVerdicts
    means: Mapping[tuple[Guideline, Group], MeanOfChecks]
    power: str


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
        power = _power(left, right, can_break, found.critical, method)
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
    return MeasuredVerdicts(verdicts, means, power)


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
) -> str:
    """Return what permutations of this number of mpiruns can show."""
    n, m = _most(left), _most(right)
    if min(n, m) < 2 or smallest_rate(n, m) > method.rate:
        least = next(k for k in range(2, _MOST_RUNS) if smallest_rate(k, k) <= method.rate)
        return (
            f"With {counted(min(n, m), 'mpirun')}, nothing can be shown at an error rate of "
            f"{percent(method.rate)}: measure at least {least}."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = [np.log(side[can_break]) for side in (left, right)]
    spread = np.sqrt(sum(moments(each)[2] for each in logs))
    spread = spread[np.isfinite(spread) & (spread > 0)]
    if not len(spread) or not np.isfinite(critical):
        return ""
    # Half of the checks are less noisy than this one.
    each = float(np.median(spread))
    found = np.exp(critical * each / np.sqrt(min(n, m))) - 1
    runs = int(np.ceil((critical * each / np.log(_SMALL)) ** 2))
    said = (
        f"With {min(n, m)} mpiruns, a typical check is found at one size if it is violated by "
        f"{percent(found)}"
    )
    if found <= _SMALL - 1 or runs > _MOST_RUNS:
        return f"{said}."
    return f"{said}: about {runs} mpiruns would find 10 %."


def _power_of_ranks(left: FloatArray, right: FloatArray) -> str:
    """Return the smallest p-value of a rank-sum test."""
    n, m = _most(left), _most(right)
    if not n or not m:
        return ""
    low, high = np.arange(m, dtype=float), m + np.arange(n, dtype=float)
    least = float(rank_sum_chances(high[None], low[None])[0])
    return f"With {min(n, m)} mpiruns, the p-value of a rank-sum test is {least:.2g} or larger."
