"""All expectations of a file, held against models."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from callpath_modeler.analysis.expectations.outcome_text import sentence
from callpath_modeler.analysis.expectations.verdicts import Outcome, Status, is_worse
from callpath_modeler.notebook_repr import HtmlReprMixin


class BrokenExpectationsError(AssertionError):
    """Expectations that models do not meet; an assertion, so that test runners report it as one."""


@dataclass(frozen=True, slots=True, eq=False)
class Check(HtmlReprMixin):
    """The expectations of a file, held against models.

    Attributes
    ----------
    path : the file
    outcomes : one per expectation, in the order of the file
    """

    path: str
    outcomes: tuple[Outcome, ...]

    def __repr__(self) -> str:
        return f"<Check of {self.path}: {self.summary()}>"

    @property
    def passed(self) -> bool:
        """Whether no expectation fails."""
        return not any(outcome.failed for outcome in self.outcomes)

    def outcome(self, name: str) -> Outcome:
        """Return the outcome of the expectation called `name`; `KeyError` if there is none."""
        for outcome in self.outcomes:
            if outcome.expectation.name == name:
                return outcome
        raise KeyError(name)

    def control_of(self, outcome: Outcome) -> Outcome | None:
        """Return what came of the expectation that another one names as its control."""
        name = outcome.expectation.control
        return None if name is None else self.outcome(name)

    def counts(self) -> dict[Status, int]:
        """Return how many expectations there are of each status that occurs."""
        found = Counter(outcome.status for outcome in self.outcomes)
        return {status: found[status] for status in Status if found[status]}

    def of_call_paths(self) -> dict[int | None, tuple[Status, Outcome]]:
        """Return what became of each call path that some expectation names.

        Returns
        -------
        dict
            By row, the worst status with its outcome, of equal ones the first in the file; None =
            the whole program. Rules across functions are about none of them.
        """
        found: dict[int | None, tuple[Status, Outcome]] = {}
        for outcome in self.outcomes:
            for row, status in outcome.statuses().items():
                if row not in found or is_worse(status, found[row][0]):
                    found[row] = status, outcome
        return found

    def summary(self) -> str:
        """Say in a few words what came of all of them."""
        words = {
            Status.FAIL: "failed",
            Status.UNSURE: "unsure",
            Status.PASS: "passed",
            Status.XFAIL: "failed as expected",
            Status.XPASS: "passed although expected to fail",
        }
        counts = self.counts()
        return ", ".join(f"{counts[s]} {said}" for s, said in words.items() if s in counts)

    def raise_for_failures(self) -> None:
        """Raise `BrokenExpectationsError` with a line for every expectation that fails."""
        failed = [outcome for outcome in self.outcomes if outcome.failed]
        if failed:
            lines = [f"{self.path}:{o.line}: {o.expectation.name}: {sentence(o)}" for o in failed]
            raise BrokenExpectationsError("\n".join(lines))
