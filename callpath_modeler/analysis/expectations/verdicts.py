"""What came of expectations: verdicts on what was expected, and the status of each expectation."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.expectations.expectation import Criterion, Expectation
from callpath_modeler.analysis.target_costs import basis_of
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Growth


class Verdict(StrEnum):
    """What the data say of one criterion."""

    KEPT = "kept"
    BROKEN = "broken"
    UNSURE = "unsure"


class Status(StrEnum):
    """What became of an expectation."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    UNSURE = "unsure"
    XFAIL = "xfail"  # broken, and known to be
    XPASS = "xpass"  # kept, although known to be broken


@dataclass(frozen=True, slots=True)
class Crossing:
    """From which scale on a bound is broken.

    Attributes
    ----------
    likely : by the prediction, here and at all larger scales; None = at no scale looked at
    surely : the smallest of these scales where the whole band is beyond
    """

    likely: float | None
    surely: float | None


_ORDER = (Status.PASS, Status.XFAIL, Status.XPASS, Status.UNSURE, Status.FAIL)
"""From what needs no look to what needs one most."""


def status_of(verdict: Verdict, expectation: Expectation) -> Status:
    """Return what becomes of an expectation by a verdict."""
    if verdict is Verdict.UNSURE:
        return Status.PASS if expectation.unsure == "pass" else Status.UNSURE
    if verdict is Verdict.KEPT:
        return Status.PASS if expectation.xfail is None else Status.XPASS
    return Status.FAIL if expectation.xfail is None else Status.XFAIL


@dataclass(frozen=True, slots=True, eq=False)
class SubjectVerdicts:
    """The verdicts on single subjects.

    Attributes
    ----------
    rows : call paths, [n]; None = the whole program, which is one subject
    broken, unsure : [n]
    """

    rows: NDArray[np.intp] | None
    broken: NDArray[np.bool_]
    unsure: NDArray[np.bool_]

    def verdicts(self) -> list[tuple[int | None, Verdict]]:
        """Return each subject with its verdict; None = the whole program."""
        rows = [None] if self.rows is None else self.rows.tolist()
        words = np.where(self.broken, 2, np.where(self.unsure, 1, 0)).tolist()
        known = (Verdict.KEPT, Verdict.UNSURE, Verdict.BROKEN)
        return [(row, known[word]) for row, word in zip(rows, words, strict=True)]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What came of one criterion of an expectation.

    Attributes
    ----------
    criterion : what was expected
    verdict : of all subjects
    worst : call path that decides, or the worst; None = the whole program
    judged, broken, unsure : how many subjects
    unmodelled : share of the cost of the worst that has no model; of one without a model 1
    outside : whether no law explains the worst, or its law changes within the measurements
    measured : whether `found` was measured, because the target was repeated; else it is predicted
    found : value, low, high of the worst at the target, in `unit`, bands as wide as many subjects
        need; of growth None
    expected : the other side of a bound, in `unit`
    unit : SI base unit, ``"1"`` for fractions
    target : scale that it was judged at; None = in the limit
    growths : probable growths of the worst, the most probable first, with probabilities
    beyond : probability that the worst grows out of its limit; None = not about growth
    decides : scale of a run that would decide; None = none would, or nothing is to decide
    repetitions : how many at the target would decide; None = not told, or more than anybody makes
    crossing : from which scale on it is broken; None = not looked at
    broken_at : measured scales at which a rule is broken
    in_the_end : growths of the sides of a rule by their leading terms; None = not about a rule, or
        not all of it has a model
    each : the verdicts on single subjects; None = not about call paths
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
    each: SubjectVerdicts | None = field(default=None, compare=False, repr=False)

    @property
    def basis(self) -> str:
        """What it is judged by, in a word."""
        return basis_of(self.measured)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What came of one expectation.

    Attributes
    ----------
    expectation : what was expected
    fitted : the models it was held against
    line : where it stands in its file
    status : what became of it
    matched : how many call paths its pattern names; the whole program is one, and so is a rule
    missing : pattern, of a rule too, that names no call path; "" = there is none
    meant : a pattern like that which names some; "" = there is none
    judgements : of every criterion; none where the pattern names too few call paths
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
    def failed(self) -> bool:
        """Whether it fails the check."""
        told = self.status is Status.UNSURE and self.expectation.unsure == "fail"
        return self.status is Status.FAIL or (told and self.expectation.xfail is None)

    @property
    def too_few(self) -> bool:
        """Whether its pattern names fewer call paths than it should."""
        return self.matched < self.expectation.at_least

    @property
    def verdict(self) -> Verdict:
        """The verdict on all that was expected."""
        verdicts = {judgement.verdict for judgement in self.judgements}
        if self.too_few or Verdict.BROKEN in verdicts:
            return Verdict.BROKEN
        return Verdict.UNSURE if Verdict.UNSURE in verdicts else Verdict.KEPT

    @property
    def decisive(self) -> Judgement | None:
        """The judgement that the verdict comes from; None where there is none."""
        found = (j for j in self.judgements if j.verdict is self.verdict)
        return next(found, None)

    def statuses(self) -> dict[int | None, Status]:
        """Return what became of the expectation at each call path; None = the whole program."""
        found: dict[int | None, Status] = {}
        for judgement in self.judgements:
            for row, verdict in () if judgement.each is None else judgement.each.verdicts():
                status = status_of(verdict, self.expectation)
                found[row] = max(found.get(row, status), status, key=_ORDER.index)
        return found


def is_worse(one: Status, other: Status) -> bool:
    """Tell whether a status needs a look before another one."""
    return _ORDER.index(one) > _ORDER.index(other)
