"""Results of the expectations of a file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from callpath_modeler.analysis.expectations.outcome_text import sentence
from callpath_modeler.analysis.expectations.verdicts import Outcome, Status, is_worse
from callpath_modeler.diagnostics import Finding
from callpath_modeler.notebook_repr import HtmlReprMixin
from callpath_modeler.profile.omissions import Omission, omissions_text


class BrokenExpectationsError(AssertionError):
    """Failed expectations; it is an AssertionError, so that test runners report a failure."""


@dataclass(frozen=True, slots=True, eq=False)
class Check(HtmlReprMixin):
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
