"""What came of guidelines: checks, their verdicts, and what they add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.expectations.verdicts import Crossing
from callpath_modeler.diagnostics import Finding
from cpmodel_guidelines.benchmark import Benchmark
from cpmodel_guidelines.checks import Group, GuidelineCheck, MissingFunctions
from cpmodel_guidelines.judge import GuidelineVerdict, GuidelineVerdicts
from cpmodel_guidelines.potential_savings import PotentialSavings
from cpmodel_guidelines.rules import Guideline

Values = NDArray[np.float64]

MEASURED, BETWEEN, PREDICTED = "measured", "between sizes", "predicted"
"""What a check is based on: runs, runs with messages of the sizes next to it, or models."""


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Checks and what came of them.

    Attributes
    ----------
    checks : in the order of the guidelines
    left, right : [checks] what both sides take, in the unit of the metric
    verdicts : columns over the checks
    basis : of each check
    """

    checks: tuple[GuidelineCheck, ...]
    left: Values
    right: Values
    verdicts: GuidelineVerdicts
    basis: tuple[str, ...]

    def take(self, rows: Sequence[int]) -> Judged:
        """Return some of the checks, with the verdicts that they have among all."""
        return Judged(
            tuple(self.checks[row] for row in rows),
            self.left[[*rows]],
            self.right[[*rows]],
            self.verdicts.take(rows),
            tuple(self.basis[row] for row in rows),
        )


@dataclass(frozen=True, slots=True)
class VerdictTally:
    """The checks of one guideline in one group, taken together.

    Attributes
    ----------
    checks : their numbers
    violated, holds : how many of them
    worst : number of the one that decides: with the largest factor among those of the verdict
    """

    checks: tuple[int, ...]
    violated: int
    holds: int
    worst: int

    @property
    def verdict(self) -> GuidelineVerdict:
        """Violated where one is; holds where all do."""
        if self.violated:
            return GuidelineVerdict.VIOLATED
        return GuidelineVerdict.HOLDS if self.holds == len(self.checks) else GuidelineVerdict.OPEN


def tallies(of: Judged) -> dict[tuple[Guideline, Group], VerdictTally]:
    """Return what came of the checks of each guideline in each group."""
    checks: dict[tuple[Guideline, Group], list[int]] = {}
    for k, check in enumerate(of.checks):
        checks.setdefault((check.guideline, check.group), []).append(k)
    return {which: _tally(of.verdicts, rows) for which, rows in checks.items()}


def _tally(verdicts: GuidelineVerdicts, rows: Sequence[int]) -> VerdictTally:
    violated, holds = int(verdicts.violated[rows].sum()), int(verdicts.holds[rows].sum())
    deciding = [
        row for row in rows if (verdicts.violated[row] if violated else not verdicts.holds[row])
    ]
    factors = np.nan_to_num(verdicts.factor)
    worst = max(deciding or rows, key=lambda row: float(factors[row]))
    return VerdictTally(tuple(rows), violated, holds, worst)


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one guideline in one group.

    Attributes
    ----------
    guideline, group : which
    here : where it was measured; None = nowhere
    ahead : at the target; None = not asked, or it is not about several functions
    crossing : from which number of processes on it is predicted to be violated; None = it holds at
        the target, too, or was violated before
    """

    guideline: Guideline
    group: Group
    here: VerdictTally | None
    ahead: VerdictTally | None = None
    crossing: Crossing | None = None

    @property
    def turns(self) -> bool:
        """Whether it holds where it was measured, and is predicted to be violated."""
        before, then = (tally and tally.verdict for tally in (self.here, self.ahead))
        return before is GuidelineVerdict.HOLDS and then is GuidelineVerdict.VIOLATED


@dataclass(frozen=True, slots=True, eq=False)
class Verification:
    """The answer.

    Attributes
    ----------
    benchmark : what was measured
    here, ahead : checks at measured settings, and at the target
    rows : guidelines, the worst first
    missing : guidelines that could not be checked
    target : number of processes; None = not asked
    tolerance : how much slower is no violation, as fraction
    confidence : of intervals
    stakes : of a program; None = not asked
    findings : what a user should know
    """

    benchmark: Benchmark
    here: Judged
    ahead: Judged | None
    rows: tuple[Row, ...]
    missing: tuple[MissingFunctions, ...]
    target: float | None
    tolerance: float
    confidence: float
    stakes: PotentialSavings | None
    findings: tuple[Finding, ...]

    def rows_that_are(self, verdict: GuidelineVerdict) -> list[Row]:
        """Return the guidelines with a verdict, as measured."""
        return [row for row in self.rows if row.here is not None and row.here.verdict is verdict]

    def fails(self, *, ahead: bool) -> bool:
        """Tell whether a guideline is violated as measured, or `ahead` at the target."""
        tallies = [each for row in self.rows for each in (row.here, row.ahead if ahead else None)]
        return any(each is not None and each.violated for each in tallies)

    @property
    def is_run(self) -> bool:
        """Whether runs of the target tell, and not models."""
        basis = () if self.ahead is None else self.ahead.basis
        return bool(basis) and PREDICTED not in basis

    def gain(self, function: str, of: Judged, check: int) -> float | None:
        """Return what the program gains at most where a check is violated; None = not asked."""
        if self.stakes is None or not of.verdicts.violated[check]:
            return None
        return self.stakes.gain(function, float(of.verdicts.factor[check]))

    def best_gain(self, row: Row) -> float | None:
        """Return the gain by the check that decides: as measured, or else at the target."""
        for of, tally in ((self.here, row.here), (self.ahead, row.ahead)):
            if of is not None and tally is not None and tally.violated:
                return self.gain(row.guideline.left.function, of, tally.worst)
        return None
