"""Changes of verdicts and of times between two campaigns.

Verdicts come from the verification of each campaign. In addition, mpiruns of both campaigns are
compared: the times of the left sides, and the factors of left over right side. All these tests are
one family, whose error rate is controlled as in a verification. They are two-sided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.errors import DataError
from callpath_modeler.modeling.distributions import student_quantile
from callpath_modeler.units import setting_text
from cpmodel_guidelines.answer import Judged, Method, Row, Test, Verification
from cpmodel_guidelines.checks import Group, GuidelineCheck
from cpmodel_guidelines.judge import GuidelineVerdict, Slowdown
from cpmodel_guidelines.rules import Guideline
from cpmodel_guidelines.statistics.permutations import Control, adjusted, permutation_test
from cpmodel_guidelines.statistics.two_sample_tests import (
    rank_sum_chances,
    smirnov_chances,
    two_sided,
    welch_chances,
    welch_interval,
)

Setting = tuple[tuple[str, float], ...]
"""Names and values of all parameters."""


class VerdictChange(StrEnum):
    """Verdict after, in the light of the verdict before; the most urgent one first."""

    NEW = "new"  # it held before, or its factor is larger
    SHOWN = "newly shown"  # it was not decided before, and its factor is not shown to be larger
    STILL = "still violated"
    HIDDEN = "no longer shown"  # it was violated, and is not decided
    MENDED = "mended"
    OPEN = "not decided"
    HOLDS = "holds"


def change_of(
    before: GuidelineVerdict, after: GuidelineVerdict, *, is_larger: bool
) -> VerdictChange:
    """Return the change of a verdict.

    Parameters
    ----------
    before, after : verdicts
    is_larger : whether the factor is shown to be larger
    """
    if after is GuidelineVerdict.VIOLATED:
        if before is GuidelineVerdict.VIOLATED:
            return VerdictChange.STILL
        is_new = is_larger or before is GuidelineVerdict.HOLDS
        return VerdictChange.NEW if is_new else VerdictChange.SHOWN
    if before is GuidelineVerdict.VIOLATED:
        holds = after is GuidelineVerdict.HOLDS
        return VerdictChange.MENDED if holds else VerdictChange.HIDDEN
    both = before is after is GuidelineVerdict.HOLDS
    return VerdictChange.HOLDS if both else VerdictChange.OPEN


@dataclass(frozen=True, slots=True, eq=False)
class Ratios:
    """Ratios of after over before, [N] each.

    Attributes
    ----------
    ratio, low, high : geometric means with their intervals; NaN = unknown
    rate : error rate at which the ratio differs from 1; NaN = not tested
    larger, smaller : whether the ratio is shown to be beyond the tolerance
    """

    ratio: FloatArray
    low: FloatArray
    high: FloatArray
    rate: FloatArray
    larger: BoolArray
    smaller: BoolArray

    def change(self, row: int) -> Slowdown:
        """Return one ratio with its interval."""
        return Slowdown(*(float(column[row]) for column in (self.ratio, self.low, self.high)))

    def take(self, rows: IntArray) -> Ratios:
        """Return the ratios at `rows`."""
        return Ratios(
            *(self.ratio[rows], self.low[rows], self.high[rows], self.rate[rows]),
            *(self.larger[rows], self.smaller[rows]),
        )


@dataclass(frozen=True, slots=True)
class CheckPair:
    """The same check in both campaigns.

    Attributes
    ----------
    before, after : row numbers of the check
    setting : setting of the left side
    change : change of the verdict
    """

    before: int
    after: int
    setting: Setting
    change: VerdictChange


@dataclass(frozen=True, slots=True)
class GuidelineChange:
    """A guideline in a group, in both campaigns.

    Attributes
    ----------
    before, after : the guideline in each campaign
    pairs : numbers of the pairs of checks
    change : the most urgent change
    deciding : number of the pair with that change and the largest factor; None = the mean of all
        settings has changed its verdict, and no single one has
    """

    before: Row
    after: Row
    pairs: tuple[int, ...]
    change: VerdictChange
    deciding: int | None

    @property
    def guideline(self) -> Guideline:
        """Return the guideline."""
        return self.after.guideline

    @property
    def group(self) -> Group:
        """Return the group."""
        return self.after.group


@dataclass(frozen=True, slots=True)
class FunctionChange:
    """The time of a function in both campaigns.

    Attributes
    ----------
    group, function : library or caller, and name
    settings : its settings
    rows : row of each setting in the ratios of times
    number : row of the mean of all settings in the ratios of means
    """

    group: Group
    function: str
    settings: tuple[Setting, ...]
    rows: tuple[int, ...]
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class CampaignChange:
    """Everything that two campaigns have in common, compared.

    Attributes
    ----------
    before, after : verification of each campaign
    pairs : common checks
    times : ratios of the times of functions at settings; `FunctionChange` has the rows
    means : [functions] ratios of the means of all settings; NaN = one setting, or not tested
    of_left : [P] row of the left side of each pair among `times`
    factors : [P] ratios of the factors of left over right side
    guidelines : common guidelines, the most urgent first
    functions : common functions, those that changed most first
    only_before, only_after : groups, functions and settings that only one campaign has
    is_tested : whether both campaigns have enough mpiruns for tests of times
    """

    before: Verification
    after: Verification
    pairs: tuple[CheckPair, ...]
    times: Ratios
    means: Ratios
    of_left: tuple[int, ...]
    factors: Ratios
    guidelines: tuple[GuidelineChange, ...]
    functions: tuple[FunctionChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    is_tested: bool

    def slowdowns(self, pair: CheckPair) -> tuple[Slowdown, Slowdown]:
        """Return the slowdowns of a check before and after."""
        before, after = self.before.here.verdicts, self.after.here.verdicts
        return before.slowdown(pair.before), after.slowdown(pair.after)

    def that_are(self, change: VerdictChange) -> list[GuidelineChange]:
        """Return the guidelines with a change."""
        return [each for each in self.guidelines if each.change is change]

    def slower(self) -> list[FunctionChange]:
        """Return the functions that are slower at a setting, or in the mean of all."""
        return self._that_changed(self.times.larger, self.means.larger)

    def faster(self) -> list[FunctionChange]:
        """Return the functions that are faster at a setting, or in the mean of all."""
        return self._that_changed(self.times.smaller, self.means.smaller)

    def _that_changed(self, times: BoolArray, means: BoolArray) -> list[FunctionChange]:
        return [each for each in self.functions if times[[*each.rows]].any() or means[each.number]]

    def fails(self, *, worse: bool) -> bool:
        """Return whether a guideline is newly violated, or with `worse` a function is slower."""
        return bool(self.that_are(VerdictChange.NEW) or (worse and self.slower()))


def compare(before: Verification, after: Verification) -> CampaignChange:
    """Return the changes between two campaigns, with the method and tolerance of the second.

    Raises
    ------
    DataError
        If the campaigns have no check in common.
    """
    first, second = _keys(before), _keys(after)
    common = [key for key in second if key in first]
    if not common:
        raise _nothing(before, after)
    rows = np.array([(first[key], second[key]) for key in common], np.intp)
    lefts = [(guideline.left.function, group, setting) for guideline, group, setting in common]
    places = {place: k for k, place in enumerate(dict.fromkeys(lefts))}
    of_left = tuple(places[place] for place in lefts)
    functions = _functions([*places])
    sides = [_runs(before.here, rows[:, 0]), _runs(after.here, rows[:, 1])]
    once = np.unique(np.array(of_left, np.intp), return_index=True)[1]
    same = np.array([_has_same_right(before, after, *pair) for pair in rows.tolist()], bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = [np.where(same[:, None], left / right, np.nan) for left, right in sides]
    # Both sides of each test: times of functions, then factors of checks.
    tested = [
        np.concatenate([left[once], factor])
        for (left, _), factor in zip(sides, factors, strict=True)
    ]
    groups = [np.array(each.rows, np.intp) for each in functions]
    by_guideline: dict[tuple[Guideline, Group], list[int]] = {}
    for k, (guideline, group, _) in enumerate(common):
        by_guideline.setdefault((guideline, group), []).append(k)
    groups += [len(places) + np.array(each, np.intp) for each in by_guideline.values()]
    ratios, means = _ratios(tested[0], tested[1], groups, len(places), after)
    factor_ratios = ratios.take(np.arange(len(places), len(places) + len(common)))
    pairs = tuple(
        _pair(before, after, int(row), int(other), key[2], is_larger=bool(is_larger))
        for (row, other), key, is_larger in zip(rows, common, factor_ratios.larger, strict=True)
    )
    times = ratios.take(np.arange(len(places)))
    of_functions = means.take(np.arange(len(functions)))
    larger = means.larger[len(functions) :].tolist()
    known = [{(row.guideline, row.group): row for row in each.rows} for each in (before, after)]
    guidelines = [
        _guideline(
            before,
            after,
            [rows_of[which] for rows_of in known],
            tuple(numbers),
            pairs,
            is_larger=is_larger,
        )
        for (which, numbers), is_larger in zip(by_guideline.items(), larger, strict=True)
    ]
    order = [*VerdictChange]
    return CampaignChange(
        *(before, after, pairs, times, of_functions, of_left, factor_ratios),
        tuple(sorted(guidelines, key=lambda each: order.index(each.change))),
        tuple(sorted(functions, key=lambda each: -_largest(each, times))),
        tuple(_only(before, after)),
        tuple(_only(after, before)),
        bool(np.isfinite(times.rate + times.low).any()),
    )


def _pair(
    before: Verification,
    after: Verification,
    row: int,
    other: int,
    setting: Setting,
    *,
    is_larger: bool,
) -> CheckPair:
    verdicts = before.here.verdicts.verdict(row), after.here.verdicts.verdict(other)
    return CheckPair(row, other, setting, change_of(*verdicts, is_larger=is_larger))


def _keys(of: Verification) -> dict[tuple[Guideline, Group, Setting], int]:
    """Return the row number of each measured check."""
    names = of.benchmark.names
    return {
        (check.guideline, check.group, tuple(zip(names, check.left.setting, strict=True))): k
        for k, check in enumerate(of.here.checks)
    }


def _functions(places: Sequence[tuple[str, Group, Setting]]) -> list[FunctionChange]:
    found: dict[tuple[Group, str], list[int]] = {}
    for k, (function, group, _) in enumerate(places):
        found.setdefault((group, function), []).append(k)
    return [
        FunctionChange(*which, tuple(places[row][2] for row in rows), tuple(rows), number)
        for number, (which, rows) in enumerate(found.items())
    ]


def _runs(of: Judged, rows: IntArray) -> tuple[FloatArray, FloatArray]:
    assert of.runs is not None, "measured checks have mpiruns"
    left, right = of.runs
    return left[rows], right[rows]


def _has_same_right(before: Verification, after: Verification, row: int, other: int) -> bool:
    """Return whether the right sides are the same functions at the same sizes."""
    if before.here.basis[row] != after.here.basis[other]:
        return False
    one, two = before.here.checks[row], after.here.checks[other]
    return one.times == two.times and _right(before, one) == _right(after, two)


def _right(of: Verification, check: GuidelineCheck) -> list[object]:
    return [(of.benchmark.functions[each.row], each.setting) for each in check.right]


def _ratios(
    before: FloatArray, after: FloatArray, groups: Sequence[IntArray], times: int, of: Verification
) -> tuple[Ratios, Ratios]:
    """Return the ratios of after over before, [N], and of the means of groups, [G].

    Parameters
    ----------
    before, after : [N, R] values of mpiruns; the first ones are `times`, the others factors
    groups : rows of each group
    of : a verification with the method and the tolerance
    """
    method, confidence = of.method, of.confidence
    difference, low, high = welch_interval(after, before, confidence)
    mean, error = np.full((2, len(groups)), np.nan)
    rate, mean_rate = np.full(len(before), np.nan), np.full(len(groups), np.nan)
    if method.control is Control.PERMUTATION:
        by_ranks, every = method.test is Test.RANK_SUM, np.ones(len(before), bool)
        tests = [
            permutation_test(one, other, every, groups, method.rate, by_ranks=by_ranks)
            for one, other in ((after, before), (before, after))
        ]
        # Each test counts both directions, so the smaller rate needs no correction.
        rate = np.minimum(tests[0].rate, tests[1].rate)
        if not by_ranks:
            mean, error = tests[0].difference, tests[0].error
            mean_rate = np.minimum(tests[0].means, tests[1].means)
    else:
        rate = adjusted(
            _chances(after, before, method), method.control, (np.arange(len(before)) >= times) * 1
        )
    dof = max(after.shape[1] + before.shape[1] - 2, 1)
    reach = float(student_quantile(np.array([float(dof)]), 0.5 + confidence / 2)[0]) * error
    return (
        _ratios_of(difference, low, high, rate, of),
        _ratios_of(mean, mean - reach, mean + reach, mean_rate, of),
    )


def _chances(left: FloatArray, right: FloatArray, method: Method) -> FloatArray:
    """Return the two-sided p-values."""
    test = {
        Test.MEANS: welch_chances,
        Test.RANK_SUM: rank_sum_chances,
        Test.SMIRNOV: smirnov_chances,
    }[method.test]
    return two_sided(test(left, right), test(right, left))


def _ratios_of(
    difference: FloatArray, low: FloatArray, high: FloatArray, rate: FloatArray, of: Verification
) -> Ratios:
    is_shown = np.nan_to_num(rate, nan=2.0) <= of.method.rate
    least = np.log1p(of.tolerance)
    # A reader sees the interval, so a change may not contradict it.
    larger = is_shown & (difference >= least) & (low > 0)
    smaller = is_shown & (difference <= -least) & (high < 0)
    with np.errstate(over="ignore"):
        return Ratios(np.exp(difference), np.exp(low), np.exp(high), rate, larger, smaller)


def _guideline(
    before: Verification,
    after: Verification,
    rows: Sequence[Row],
    numbers: tuple[int, ...],
    pairs: Sequence[CheckPair],
    *,
    is_larger: bool,
) -> GuidelineChange:
    """Return the change of a guideline: the most urgent one of its checks and their mean."""
    tallies = [row.here for row in rows]
    changes = {pairs[k].change for k in numbers}
    if any(tally is not None and tally.mean is not None for tally in tallies):
        verdicts = [GuidelineVerdict.OPEN if tally is None else tally.verdict for tally in tallies]
        changes.add(change_of(*verdicts, is_larger=is_larger))
    change = next(each for each in VerdictChange if each in changes)
    of = before if change in {VerdictChange.MENDED, VerdictChange.HIDDEN} else after
    factors = np.nan_to_num(of.here.verdicts.factor)
    deciding = max(
        (k for k in numbers if pairs[k].change is change),
        key=lambda k: float(factors[pairs[k].before if of is before else pairs[k].after]),
        default=None,
    )
    return GuidelineChange(rows[0], rows[1], numbers, change, deciding)


def _largest(of: FunctionChange, times: Ratios) -> float:
    """Return the largest change of a function that is shown, as a logarithm."""
    rows = np.array(of.rows, np.intp)
    shown = times.larger[rows] | times.smaller[rows]
    return float(np.abs(np.log(times.ratio[rows][shown])).max(initial=0.0))


def _only(one: Verification, other: Verification) -> Iterator[str]:
    """Yield what one campaign has and the other one lacks: groups, functions, settings."""
    groups = [{each.group for each in of.benchmark.functions} for of in (one, other)]
    for group in sorted(groups[0] - groups[1]):
        yield "/".join(group) or "functions without a library"
    both = groups[0] & groups[1]
    names = [
        {(each.group, each.title) for each in of.benchmark.functions if each.group in both}
        for of in (one, other)
    ]
    yield from ("/".join((*group, title)) for group, title in sorted(names[0] - names[1]))
    settings = [
        {setting_text(dict(zip(of.benchmark.names, each, strict=True)))
         for each in of.benchmark.settings.tolist()}
        for of in (one, other)
    ]  # fmt: skip
    yield from sorted(settings[0] - settings[1])


def _nothing(before: Verification, after: Verification) -> DataError:
    """Return the error for campaigns without a common check."""
    names = [
        ", ".join(sorted({"/".join(each.group) for each in of.benchmark.functions} - {""}))
        for of in (before, after)
    ]
    if names[0] != names[1]:
        said = " and ".join(name or "no library" for name in names)
        return DataError(
            f"the campaigns have no library in common: {said}",
            hint="give both the same name: NAME=BEFORE NAME=AFTER",
        )
    return DataError(
        "the campaigns have no guideline at a common setting",
        hint="measure the same functions, sizes and numbers of processes",
    )
