"""Verdicts on criteria, and outcomes of expectations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from callpath_modeler.analysis.bands import basis_of
from callpath_modeler.analysis.expectations.expectation import Criterion, Expectation
from callpath_modeler.arrays import BoolArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Growth
from callpath_modeler.profile.omissions import REST, WHOLE, Omission, is_partial


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
    broken: BoolArray
    unsure: BoolArray

    def verdicts(self) -> list[tuple[int | None, Verdict]]:
        """Return each subject with its verdict; None = the whole program."""
        rows = [None] if self.rows is None else self.rows.tolist()
        words = np.where(self.broken, 2, np.where(self.unsure, 1, 0)).tolist()
        known = (Verdict.KEPT, Verdict.UNSURE, Verdict.BROKEN)
        return [(row, known[word]) for row, word in zip(rows, words, strict=True)]


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
    decides : scale of a run that would decide; None = there is none, or it is decided
    repetitions : number of repetitions at the target that would decide; None = not known, or too
        many
    crossing : scale from which on the bound is broken; None = not computed
    broken_at : measured scales that break a rule
    in_the_end : growths of both sides of a rule; None = not about a rule, or a model is missing
    meaning : what the number is, if rankings show another one: ``"run time"`` of the program, not
        the sum of call paths; ``"sum with callees"``, not the fastest growth among them; else ""
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
    decides: float | None = None
    repetitions: int | None = None
    crossing: Crossing | None = None
    broken_at: tuple[float, ...] = ()
    in_the_end: tuple[Growth, Growth] | None = None
    meaning: str = ""
    alone: Growth | None = None
    part: int | None = None
    each: SubjectVerdicts | None = field(default=None, compare=False, repr=False)

    @property
    def basis(self) -> str:
        """Basis of the verdict: ``"measured"`` or ``"predicted"``."""
        return basis_of(self.measured)


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
    judgements: tuple[Judgement, ...]
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
