"""Promises of rules, held against a campaign that was measured with the rules.

Both campaigns become one, in which the second one has functions of its own. Guidelines state what
is to be tested. At each place with a rule, the library without it is not slower than with it. If
this guideline is violated, the gain has come. With the rule, the library is not slower than the
promised way. At all places, the library with the rules is not slower than without. All checks
together share one error rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError
from callpath_modeler.printable import shortened
from cpmodel_guidelines.answer import MOCK_UP, Verification
from cpmodel_guidelines.benchmark import benchmark_of
from cpmodel_guidelines.campaigns.campaign import Campaign, Measurement, experiment_of
from cpmodel_guidelines.checks import Group
from cpmodel_guidelines.functions import canonical, mock_up
from cpmodel_guidelines.judge import GuidelineVerdict, Slowdown
from cpmodel_guidelines.rules import Guideline, GuidelineKind, GuidelineTerm, others_in
from cpmodel_guidelines.tuning.choices import Rules, What
from cpmodel_guidelines.tuning.gains import Gain, Place, Question, scale_of
from cpmodel_guidelines.verification import verify


class Outcome(StrEnum):
    """What became of a promise."""

    KEPT = "kept"
    BROKEN = "broken"
    OPEN = "not decided"
    ABSENT = "not measured"


@dataclass(frozen=True, slots=True)
class Promise:
    """A rule at a measured place.

    Attributes
    ----------
    place : function, processes and size
    what : the way that the rule selects
    promised : the gain before the rules
    measured : the time before over the time after; None = not measured
    outcome : what became of it
    """

    place: Place
    what: What
    promised: Gain
    measured: Slowdown | None
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Kept:
    """The comparison of promises with a campaign.

    Attributes
    ----------
    promises : one for each rule at a measured place
    slower : places that are slower with the rules, with the time after over the time before
    compared : number of places that both campaigns measured
    violated : guidelines that are violated with the rules
    power : what the number of mpiruns can show; "" = not known
    findings : data quality findings about the campaign with the rules
    """

    promises: tuple[Promise, ...]
    slower: tuple[tuple[Place, Slowdown], ...]
    compared: int
    violated: tuple[tuple[Group, Guideline], ...]
    power: str
    findings: tuple[Finding, ...]

    @property
    def fails(self) -> bool:
        """Return whether a gain did not come, or a function became slower."""
        return bool(self.slower) or any(each.outcome is Outcome.BROKEN for each in self.promises)


def hold(
    rules: Rules,
    before: Campaign,
    after: Campaign,
    guidelines: Sequence[Guideline],
    question: Question,
) -> Kept:
    """Return what became of the promises of rules.

    Parameters
    ----------
    rules : the rules with which `after` was measured
    before, after : campaigns without and with the rules; `before` may contain algorithms
    guidelines : patterns to look for in `after`
    question : how changes are judged

    Raises
    ------
    DataError
        If the campaigns have no function in common.
    """
    library = _library(rules.group)
    mine = _of_library(after, library)
    both = _Both(rules, library)
    joined = Campaign(before.name, (*both.of_before(before), *both.of_after(mine)))
    tested = [*both.guidelines(joined)]
    named = others_in(tested)
    if not tested:
        raise DataError(
            f"{after.name}: no function was measured with and without the rules",
            hint="measure the same functions, processes and sizes again",
        )
    # Names that no guideline uses would be taken for other callers of a collective.
    used = tuple(
        each
        for each in joined.measurements
        if canonical(each.cell.function) is not None or each.cell.function in named
    )
    joined = replace(joined, measurements=used)
    tukey = question.without_outliers
    bench = benchmark_of(experiment_of(joined, without_outliers=tukey), others=named)
    found = verify(
        bench,
        tested,
        tolerance=question.tolerance,
        method=question.method,
        with_singles=False,
    )
    verdicts = _Verdicts(found)
    promises = tuple(
        _promise(place, what, gain, verdicts, both) for place, (what, gain) in rules.written.items()
    )
    slower = tuple(verdicts.violated(rules.group, _AFTER))
    again = benchmark_of(experiment_of(mine, without_outliers=tukey), others=others_in(guidelines))
    left = verify(again, guidelines, tolerance=question.tolerance, method=question.method)
    violated = tuple(
        (row.group, row.guideline) for row in left.rows_that_are(GuidelineVerdict.VIOLATED)
    )
    return Kept(promises, slower, verdicts.count(_AFTER), violated, found.power, after.findings)


_AFTER, _RULED, _WAY = "with_the_rules", "with_rule", "promised"


def _library(group: Group) -> str:
    return group[0] if group else ""


def _of_library(after: Campaign, library: str) -> Campaign:
    """Return the measurements of the library with the rules, under the name that it has before."""
    names = {each.library for each in after.measurements}
    if library not in names and len(names) > 1:
        raise DataError(
            f"{after.name}: {len(names)} libraries, and none is {shortened(library)!r}",
            hint="give --verify the campaign of one library",
        )
    chosen = library if library in names else next(iter(names))
    kept = tuple(
        replace(each, library=library) for each in after.measurements if each.library == chosen
    )
    return Campaign(after.name, kept, after.findings)


@dataclass(frozen=True)
class _Both:
    """Names of functions in the joined campaign."""

    rules: Rules
    library: str

    @cached_property
    def ways(self) -> dict[tuple[str, str], int]:
        """Return the number of each way of each function with a rule."""
        ways = dict.fromkeys(
            (place.function, gain.guideline.text) for place, (_, gain) in self.rules.written.items()
        )
        return {way: number for number, way in enumerate(ways, 1)}

    def name(self, gain: Gain, what: str) -> str:
        """Return the name of a function for one way: with its rule, or the promised way itself."""
        number = self.ways[gain.place.function, gain.guideline.text]
        return f"{gain.place.function}_{what}_{number}"

    def of_before(self, campaign: Campaign) -> Iterator[Measurement]:
        """Yield the times of functions, of algorithms and of promised mock-ups before the rules."""
        promised: dict[tuple[str, tuple[str, ...]], str] = {}
        for _, gain in self.rules.written.values():
            key = gain.place.function, gain.guideline.parts
            promised[key] = self.name(gain, _WAY)
        for each in campaign.measurements:
            if each.library != self.library:
                continue
            made = mock_up(each.cell.function)
            if made is None:
                yield each
            elif made in promised:
                yield replace(each, cell=replace(each.cell, function=promised[made]))

    def of_after(self, campaign: Campaign) -> Iterator[Measurement]:
        """Yield the times of functions with the rules, and again those at places with a rule."""
        for each in campaign.measurements:
            name = canonical(each.cell.function)
            if name is None:
                continue
            yield replace(each, cell=replace(each.cell, function=f"{name}_{_AFTER}"))
            place = Place(self.rules.group, name, each.processes, each.cell.size)
            if place in self.rules.written:
                _, gain = self.rules.written[place]
                ruled = self.name(gain, _RULED)
                yield replace(each, cell=replace(each.cell, function=ruled))

    def guidelines(self, joined: Campaign) -> Iterator[Guideline]:
        """Yield the guidelines that the joined campaign allows."""
        known = {each.cell.function for each in joined.measurements}
        for name in sorted({each for each in map(canonical, known) if each is not None}):
            if f"{name}_{_AFTER}" in known:
                yield _guideline(f"{name}_{_AFTER}", (GuidelineTerm(name),))
        told = {self.name(gain, _RULED): gain for _, gain in self.rules.written.values()}
        for ruled, gain in told.items():
            if ruled in known:
                yield self.of_gain(gain)
                yield self.of_way(gain)

    def of_gain(self, gain: Gain) -> Guideline:
        """Return the guideline whose violation shows that a gain has come."""
        return _guideline(gain.place.function, (GuidelineTerm(self.name(gain, _RULED)),))

    def of_way(self, gain: Gain) -> Guideline:
        """Return the guideline that a function with its rule is not slower than promised."""
        right = gain.guideline.right
        if gain.algorithm is None and gain.basis == MOCK_UP:
            right = (GuidelineTerm(self.name(gain, _WAY)),)
        return _guideline(self.name(gain, _RULED), right)


def _guideline(left: str, right: tuple[GuidelineTerm, ...]) -> Guideline:
    text = f"{left} <= {' + '.join(map(str, right))}"
    return Guideline(GuidelineKind.PATTERN, text, GuidelineTerm(left), right, "rules")


class _Verdicts:
    """Verdicts by the left side, the right side, and the place."""

    def __init__(self, found: Verification) -> None:
        self._found = found
        self._of: dict[tuple[str, str, int, float], int] = {}
        for k, check in enumerate(found.here.checks):
            at = scale_of(found.benchmark, check.left.setting)
            self._of[check.guideline.text, check.guideline.left.function, *at] = k

    def check(self, guideline: Guideline, place: Place) -> int | None:
        """Return the row of a check; None = not measured."""
        key = guideline.text, guideline.left.function, place.processes, place.size
        return self._of.get(key)

    def change(self, k: int) -> Slowdown:
        """Return the change that a check measured."""
        return self._found.here.verdicts.slowdown(k)

    def verdict(self, k: int) -> GuidelineVerdict:
        """Return the verdict on a check."""
        return self._found.here.verdicts.verdict(k)

    def violated(self, group: Group, suffix: str) -> Iterator[tuple[Place, Slowdown]]:
        """Yield the places at which a function with a suffix is slower."""
        for (_, left, processes, size), k in sorted(self._of.items()):
            if left.endswith(f"_{suffix}") and self.verdict(k) is GuidelineVerdict.VIOLATED:
                name = left.removesuffix(f"_{suffix}")
                yield Place(group, name, processes, size), self.change(k)

    def count(self, suffix: str) -> int:
        """Return the number of checks of functions with a suffix."""
        return sum(left.endswith(f"_{suffix}") for _, left, _, _ in self._of)


def _promise(place: Place, what: What, gain: Gain, verdicts: _Verdicts, both: _Both) -> Promise:
    """Return what became of a promise.

    It is kept if a gain is shown, and the call is not shown to be slower than the promised way. It
    is broken if there is no gain, or that is shown.
    """
    came = verdicts.check(both.of_gain(gain), place)
    if came is None:
        return Promise(place, what, gain, None, Outcome.ABSENT)
    against = verdicts.check(both.of_way(gain), place)
    short = against is not None and verdicts.verdict(against) is GuidelineVerdict.VIOLATED
    outcome = Outcome.OPEN
    if short or verdicts.verdict(came) is GuidelineVerdict.HOLDS:
        outcome = Outcome.BROKEN
    elif verdicts.verdict(came) is GuidelineVerdict.VIOLATED:
        outcome = Outcome.KEPT
    return Promise(place, what, gain, verdicts.change(came), outcome)
