"""Verdicts on criteria, outcomes of expectations as text, and results of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import overload

from callpath_modeler.analysis.expectations.expectation import (
    Bound,
    Criterion,
    CriterionKind,
    Expectation,
    GrowthLimit,
    RuleText,
)
from callpath_modeler.analysis.uncertain import basis_of
from callpath_modeler.arrays import IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Growth
from callpath_modeler.modeling.expected_growth import DeviationMatch
from callpath_modeler.printable import printable
from callpath_modeler.profile.omissions import REST, WHOLE, Omission, is_partial, omissions_text
from callpath_modeler.profile.pruning import excluded_call_paths
from callpath_modeler.support.expression import Comparison
from callpath_modeler.support.front_ends import FrameMixin, HtmlReprMixin
from callpath_modeler.units import (
    counted,
    interval,
    parameter_value,
    percent,
    quantity,
    rough_value,
    setting_text,
    significant,
)


class Verdict(StrEnum):
    """Result of one criterion."""

    KEPT = "kept"
    BROKEN = "broken"
    UNSURE = "unsure"


class Status(StrEnum):
    """Result of an expectation."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    UNSURE = "unsure"
    XFAIL = "xfail"  # broken, and known to be
    XPASS = "xpass"  # kept, although known to be broken


@dataclass(frozen=True, slots=True)
class Crossing:
    """Scale from which on a bound is broken.

    Attributes
    ----------
    likely : smallest scale from which on predictions break the bound; None = no such scale
    surely : smallest of these scales at which the whole band is beyond
    """

    likely: float | None
    surely: float | None


_ORDER = (Status.PASS, Status.XFAIL, Status.XPASS, Status.UNSURE, Status.FAIL)
"""Statuses in ascending order of urgency."""


def status_of(verdict: Verdict, expectation: Expectation) -> Status:
    """Return the status of an expectation with a verdict."""
    if verdict is Verdict.UNSURE:
        return Status.PASS if expectation.unsure == "pass" else Status.UNSURE
    if verdict is Verdict.KEPT:
        return Status.PASS if expectation.xfail is None else Status.XPASS
    return Status.FAIL if expectation.xfail is None else Status.XFAIL


@dataclass(frozen=True, slots=True, eq=False)
class SubjectVerdicts:
    """Verdicts on single subjects.

    Attributes
    ----------
    rows : call paths, [n]; None = the whole program, which is one subject
    broken, unsure : [n]
    """

    rows: IntArray | None
    broken: Sequence[bool]
    unsure: Sequence[bool]

    def verdicts(self) -> list[tuple[int | None, Verdict]]:
        """Return each subject with its verdict; None = the whole program."""
        rows = [None] if self.rows is None else self.rows.tolist()
        return [
            (row, Verdict.BROKEN if broken else Verdict.UNSURE if unsure else Verdict.KEPT)
            for row, broken, unsure in zip(rows, self.broken, self.unsure, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Result of one criterion of an expectation, with its reasons.

    Attributes
    ----------
    criterion : growth limit, bound or rule
    verdict : verdict on all subjects
    worst : call path that decides, or the worst one; None = the whole program
    judged, broken, unsure : numbers of subjects
    unmodelled : share of the cost of the worst without a model; 1 = it has no model at all
    outside : True if no law explains the worst, or if its law changes within the measurements
    measured : True if `found` is measured at a target that was run; else it is predicted
    found : value, low and high of the worst at the target, in `unit`, with bands for simultaneous
        confidence; None for growth
    expected : the other side of a bound, in `unit`
    unit : SI base unit, ``"1"`` for fractions
    target : scale of the evaluation; None = at infinity
    growths : probable growths of the worst with probabilities: that of its model, then the most
        probable ones
    beyond : probability that the worst exceeds its growth limit; None = not about growth
    adjusted_r2 : of the model of the worst; None = not about growth
    decides : scale of a run that would decide; None = there is none, or it is decided
    repetitions : number of repetitions at the target that would decide; None = not known, or too
        many
    crossing : scale from which on the bound is broken; None = not computed
    broken_at : measured scales that break a rule
    in_the_end : growths of both sides of a rule; None = not about a rule, or a model is missing
    meaning : what the number is, if rankings show another one: ``"run time"`` of the program, not
        the sum of call paths; ``"sum with callees"``, not the fastest growth among them; else ""
    in_rankings, ranked : growth of the worst in rankings, and why it is another one: their models
        do not compare all growths that this expectation needs; None = the same growth
    alone, part : if the model of a sum and its parts disagree: the growth of that model, and the
        call path in the sum that grows faster; None = they do not disagree
    each : verdicts on single subjects; None = not about call paths
    """

    criterion: Criterion
    verdict: Verdict
    worst: int | None
    judged: int
    broken: int
    unsure: int
    unmodelled: float = 0.0
    outside: bool = False
    measured: bool = False
    found: tuple[float, float, float] | None = None
    expected: tuple[float, float, float] | None = None
    unit: str = ""
    target: float | None = None
    growths: tuple[tuple[Growth, float], ...] = ()
    beyond: float | None = None
    adjusted_r2: float | None = None
    decides: float | None = None
    repetitions: int | None = None
    crossing: Crossing | None = None
    broken_at: tuple[float, ...] = ()
    in_the_end: tuple[Growth, Growth] | None = None
    meaning: str = ""
    in_rankings: Growth | None = None
    ranked: str = ""
    alone: Growth | None = None
    part: int | None = None
    each: SubjectVerdicts | None = field(default=None, compare=False, repr=False)

    @property
    def match(self) -> DeviationMatch:
        """Match of the growth of the worst with the expectation, if there is one."""
        if not isinstance(self.criterion, GrowthLimit) or not self.growths:
            return DeviationMatch.NO_MODEL
        limit = self.criterion
        return limit.limits.match(self.growths[0][0], limit.expected)

    @property
    def basis(self) -> str:
        """Basis of the verdict: ``"measured"`` or ``"predicted"``."""
        return basis_of(self.measured)


@dataclass(eq=False, slots=True)
class KeptJudgements(Sequence[Judgement]):
    """Judgements on criteria that are met, made when their reasons are first read.

    A table lists few of the 10^5 outcomes that pass.

    Attributes
    ----------
    targets : scale of each evaluation; None = at infinity
    judge : function that returns the judgements
    """

    targets: tuple[float | None, ...]
    judge: Callable[[], tuple[Judgement, ...]]
    _made: tuple[Judgement, ...] | None = None

    @overload
    def __getitem__(self, index: int) -> Judgement: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Judgement]: ...
    def __getitem__(self, index: int | slice) -> Judgement | Sequence[Judgement]:
        if self._made is None:
            self._made = self.judge()
        return self._made[index]

    def __len__(self) -> int:
        return len(self.targets)


def verdict_of(expectation: Expectation, matched: int, judgements: Sequence[Judgement]) -> Verdict:
    """Return the verdict on all criteria of an expectation that selects some call paths."""
    verdicts = {judgement.verdict for judgement in judgements}
    if matched < expectation.at_least or Verdict.BROKEN in verdicts:
        return Verdict.BROKEN
    return Verdict.UNSURE if Verdict.UNSURE in verdicts else Verdict.KEPT


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Result of one expectation.

    Attributes
    ----------
    expectation : the expectation
    fitted : the models
    line : line in the file
    status : status of the expectation
    matched : number of selected call paths; the whole program and a rule are one
    missing : pattern that selects no call path; "" = there is none
    meant : similar pattern that selects some; "" = there is none
    judgements : one per criterion; empty if the pattern selects too few call paths
    """

    expectation: Expectation
    fitted: Fitted
    line: int
    status: Status
    matched: int
    judgements: Sequence[Judgement]
    missing: str = ""
    meant: str = ""

    @property
    def omissions(self) -> tuple[Omission, ...]:
        """Parts of the measured program that are left out."""
        return self.fitted.experiment.omissions

    @property
    def name(self) -> str:
        """The name of the expectation; only the whole program is called so."""
        name = self.expectation.name
        if self.expectation.callpath is None and is_partial(self.omissions):
            return name.replace(WHOLE, REST)
        return name

    @property
    def failed(self) -> bool:
        """True if it fails the check."""
        told = self.status is Status.UNSURE and self.expectation.unsure == "fail"
        return self.status is Status.FAIL or (told and self.expectation.xfail is None)

    @property
    def too_few(self) -> bool:
        """True if its pattern selects fewer call paths than required."""
        return self.matched < self.expectation.at_least

    @property
    def verdict(self) -> Verdict:
        """The verdict on all criteria."""
        return verdict_of(self.expectation, self.matched, self.judgements)

    @property
    def targets(self) -> tuple[float | None, ...]:
        """Scale of the evaluation of each criterion; None = at infinity."""
        if isinstance(self.judgements, KeptJudgements):
            return self.judgements.targets
        return tuple(judgement.target for judgement in self.judgements)

    @property
    def decisive(self) -> Judgement | None:
        """The judgement with the verdict of the outcome; None = there is none."""
        found = (j for j in self.judgements if j.verdict is self.verdict)
        return next(found, None)

    def statuses(self) -> dict[int | None, Status]:
        """Return the status of each call path; None = the whole program."""
        found: dict[int | None, Status] = {}
        for judgement in self.judgements:
            for row, verdict in () if judgement.each is None else judgement.each.verdicts():
                status = status_of(verdict, self.expectation)
                found[row] = max(found.get(row, status), status, key=_ORDER.index)
        return found


def is_worse(one: Status, other: Status) -> bool:
    """Return True if a status is more urgent than another one."""
    return _ORDER.index(one) > _ORDER.index(other)


_MOST = 3
"""Largest number of growths that are named if the data do not decide."""

_FRACTIONS = frozenset({CriterionKind.SHARE, CriterionKind.EXCESS})


_OF_CONTROL: Mapping[Verdict, str] = {
    Verdict.BROKEN: "is broken too: look at the machine before the program",
    Verdict.KEPT: "is kept: it is not the machine",
    Verdict.UNSURE: "does not tell: it may be the machine",
}


def sentence(outcome: Outcome) -> str:
    """Return an outcome as one line of text, without its name and line number."""
    said = _sentence(outcome)
    if outcome.expectation.callpath is None and outcome.omissions:
        return f"{said}, {omissions_text(outcome.omissions)}"
    return said


def _sentence(outcome: Outcome) -> str:
    if outcome.missing:
        meant = f"; did you mean {outcome.meant!r}?" if outcome.meant else ""
        excluded = excluded_call_paths(outcome.fitted.experiment)
        return f"{outcome.missing!r} names no call path{excluded}{meant}"
    if outcome.too_few:
        named = counted(outcome.matched, "call path")
        least = outcome.expectation.at_least
        return f"{outcome.expectation.callpath!r} names {named}, expected {least} or more"
    verdict = outcome.verdict
    found = [_said(one, outcome.fitted) for one in outcome.judgements if one.verdict is verdict]
    said = "; ".join(dict.fromkeys(found)) or "names no call path"
    if verdict is Verdict.KEPT and outcome.matched > 1:
        return f"{counted(outcome.matched, 'call path')}, worst {said}"
    return said


def _said(judgement: Judgement, fitted: Fitted) -> str:
    if not judgement.judged:
        if judgement.target is None:
            return "gone at the largest scale"
        return f"does not occur at {setting_text(fitted.at(judgement.target))}"
    if judgement.unmodelled == 1:
        return "has no model"
    if isinstance(judgement.criterion, GrowthLimit):
        return _growth(judgement, fitted)
    return _bound(judgement, fitted)


def _growth(judgement: Judgement, fitted: Fitted) -> str:
    said, growth = _growth_alone(judgement, fitted), judgement.in_rankings
    if growth is None:
        return said
    return f"{said} (rank, {judgement.ranked}: {growth.text(fitted.parameter)})"


def _growth_alone(judgement: Judgement, fitted: Fitted) -> str:
    limit, parameter = judgement.criterion, fitted.parameter
    assert isinstance(limit, GrowthLimit)
    expected = limit.text
    if fitted.held:
        expected += f" at {setting_text(fitted.held)}"
    growths = [growth.text(parameter) for growth, _ in judgement.growths]
    growths[0] = f"{judgement.meaning} {growths[0]}".lstrip()
    if judgement.verdict is not Verdict.UNSURE:
        said = f"{growths[0]}, expected {expected}"
        kept, limits = judgement.verdict is Verdict.KEPT, limit.limits
        is_one_sided = limits.low is None or limits.high is None
        if kept and (is_one_sided or judgement.match is DeviationMatch.EXACT):
            return said
        off = (judgement.growths[0][0] / limit.expected).text(parameter)
        return f"{said}: off by {off}" + ", within the limit" * kept
    if judgement.alone is not None and judgement.part is not None:
        model, row = judgement.alone.text(parameter), judgement.part
        part = printable(fitted.experiment.tree.path(row))
        disagree = f"{part} grows faster than the model of the sum, {model}"
        return f"{growths[0]}, expected {expected}: {disagree}"
    if judgement.outside:
        return f"{growths[0]}, expected {expected}: no law explains the measurements"
    if len(growths) > _MOST:
        growths = [*growths[:_MOST], "another"]
    listed = growths[0] if len(growths) == 1 else f"{', '.join(growths[:-1])} or {growths[-1]}"
    chance = f"{percent(judgement.beyond or 0.0)} beyond"
    return f"{listed}, expected {expected}: the data do not tell ({chance})"


def _bound(judgement: Judgement, fitted: Fitted) -> str:
    criterion = judgement.criterion
    assert judgement.found is not None
    assert judgement.expected is not None
    assert judgement.target is not None
    fraction = isinstance(criterion, Bound) and criterion.kind in _FRACTIONS
    found = _amount(judgement.found, judgement.unit, fraction=fraction)
    where = f"{judgement.basis} at {setting_text(fitted.at(judgement.target))}"
    what = (
        criterion.kind
        if isinstance(criterion, Bound) and criterion.kind != CriterionKind.VALUE
        else judgement.meaning
    )
    if isinstance(criterion, Comparison | RuleText):
        other = _amount(judgement.expected, judgement.unit, fraction=False)
        said = f"{found} against {other} {where}, expected {criterion.text}"
    else:
        said = f"{what} {found} {where}, expected {criterion.text}".lstrip()
    if judgement.verdict is not Verdict.UNSURE:
        return said
    if judgement.unmodelled > 0 and judgement.unsure:
        return f"{said}: {percent(judgement.unmodelled)} of it has no model"
    return f"{said}: {'the repetitions do not tell' if judgement.measured else 'within the band'}"


def _amount(numbers: tuple[float, float, float], unit: str, *, fraction: bool) -> str:
    """Return a number as text with its band, unless it is exact."""
    value, low, high = numbers
    if fraction:
        band = f"{significant(100 * low)} … {significant(100 * high)} %"
        return f"{significant(100 * value)} % ({band})"
    text = quantity(value, unit)
    return text if low == high else f"{text} ({interval(low, high, unit)})"


def details(outcome: Outcome, control: Outcome | None) -> list[str]:
    """Return lines of text that help to act on an outcome.

    Parameters
    ----------
    control : outcome of its control expectation
    """
    decisive, fitted = outcome.decisive, outcome.fitted
    parameter = fitted.parameter
    lines = []
    if decisive is not None and decisive.judged > 1 and decisive.verdict is not Verdict.KEPT:
        counts = {"broken": decisive.broken, "unsure": decisive.unsure}
        listed = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
        lines.append(f"{listed} of {counted(decisive.judged, 'call path')}")
    if decisive is not None and decisive.broken_at:
        listed = ", ".join(parameter_value(scale) for scale in decisive.broken_at)
        held = f", {setting_text(fitted.measured_at)}" if fitted.measured_at else ""
        lines.append(f"measured to be broken at {parameter} = {listed}{held}")
    if decisive is not None and decisive.in_the_end is not None:
        left, right = (growth.text(parameter) for growth in decisive.in_the_end)
        lines.append(f"in the end {left} against {right}")
    if decisive is not None and decisive.crossing is not None:
        scales = {"likely": decisive.crossing.likely, "surely": decisive.crossing.surely}
        listed = ", ".join(
            f"{word} from about {parameter} = {rough_value(scale)} on"
            for word, scale in scales.items()
            if scale is not None
        )
        if listed:
            held = f" at {setting_text(fitted.held)}" if fitted.held else ""
            lines.append(f"predicted to be broken{held} {listed}")
    lines += _deciding(decisive, fitted) if decisive is not None else []
    if control is not None and outcome.verdict is Verdict.BROKEN:
        lines.append(f"its control {control.name!r} {_OF_CONTROL[control.verdict]}")
    expectation = outcome.expectation
    if expectation.xfail is not None:
        lines.append(f"expected to fail: {expectation.xfail}")
    if outcome.verdict is not Verdict.KEPT:
        lines += [text for text in (expectation.note, expectation.source) if text]
    return lines


def _deciding(judgement: Judgement, fitted: Fitted) -> list[str]:
    """Return the runs that would decide, as text."""
    lines = []
    if judgement.decides is not None:
        lines.append(f"a run at {setting_text(fitted.at(judgement.decides))} would decide")
    if judgement.repetitions is not None and judgement.target is not None:
        runs = f"{judgement.repetitions} repetitions at {setting_text(fitted.at(judgement.target))}"
        lines.append(f"{runs} would decide, if nothing changes")
    return lines


class BrokenExpectationsError(AssertionError):
    """Failed expectations; it is an AssertionError, so that test runners report a failure."""


@dataclass(frozen=True, slots=True, eq=False)
class Check(HtmlReprMixin, FrameMixin):
    """Results of the expectations of a file.

    Attributes
    ----------
    path : the expectation file
    outcomes : one per expectation, in the order of the file
    findings : data quality findings about the runs and the models
    """

    path: str
    outcomes: tuple[Outcome, ...]
    findings: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        return f"<Check of {self.path}: {self.summary()}>"

    @property
    def passed(self) -> bool:
        """True if no expectation failed."""
        return not any(outcome.failed for outcome in self.outcomes)

    def outcome(self, name: str) -> Outcome:
        """Return the outcome of the expectation called `name`.

        Raises
        ------
        KeyError
            If there is no such expectation.
        """
        for outcome in self.outcomes:
            if outcome.expectation.name == name:
                return outcome
        raise KeyError(name)

    def control_of(self, outcome: Outcome) -> Outcome | None:
        """Return the outcome of the control expectation of an outcome; None = it has no control."""
        name = outcome.expectation.control
        return None if name is None else self.outcome(name)

    def counts(self) -> dict[Status, int]:
        """Return the number of expectations of each status that occurs."""
        found = Counter(outcome.status for outcome in self.outcomes)
        return {status: found[status] for status in Status if found[status]}

    def of_call_paths(self) -> dict[int | None, tuple[Status, Outcome]]:
        """Return the worst status of each call path that an expectation selects.

        Returns
        -------
        dict
            Keys are rows of call paths; None = the whole program. Values are a status and the first
            outcome in the file that has it. Rules across functions belong to no call path.
        """
        found: dict[int | None, tuple[Status, Outcome]] = {}
        for outcome in self.outcomes:
            for row, status in outcome.statuses().items():
                if row not in found or is_worse(status, found[row][0]):
                    found[row] = status, outcome
        return found

    def summary(self) -> str:
        """Return the number of expectations of each status as text, and what is left out."""
        words = {
            Status.FAIL: "failed",
            Status.UNSURE: "unsure",
            Status.PASS: "passed",
            Status.XFAIL: "failed as expected",
            Status.XPASS: "passed although expected to fail",
        }
        counts = self.counts()
        told = [f"{counts[s]} {said}" for s, said in words.items() if s in counts]
        return ", ".join([*told, *filter(None, [omissions_text(self.omissions)])])

    @property
    def omissions(self) -> tuple[Omission, ...]:
        """Parts of the measured program that no expectation is about."""
        every = (each for outcome in self.outcomes for each in outcome.omissions)
        return tuple(dict.fromkeys(every))

    def raise_for_failures(self) -> None:
        """Raise an error if an expectation failed.

        Raises
        ------
        BrokenExpectationsError
            With one line for every failed expectation.
        """
        failed = [outcome for outcome in self.outcomes if outcome.failed]
        if failed:
            lines = [f"{self.path}:{o.line}: {o.name}: {sentence(o)}" for o in failed]
            raise BrokenExpectationsError("\n".join(lines))
