"""Results of a verification: checks, verdicts and sums over checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from callpath_modeler.analysis.expectations.check_result import Crossing
from callpath_modeler.arrays import FloatArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError
from callpath_modeler.modeling import Centre
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.report.exports import at_largest
from cpmodel_guidelines.benchmark import Benchmark
from cpmodel_guidelines.checks import Group, GuidelineCheck, MissingFunctions
from cpmodel_guidelines.functions import functions_in
from cpmodel_guidelines.judge import GuidelineVerdict, GuidelineVerdicts, Slowdown
from cpmodel_guidelines.rules import Guideline
from cpmodel_guidelines.statistics.permutations import Control
from cpmodel_guidelines.statistics.power import Power


@dataclass(frozen=True, slots=True)
class PotentialSavings:
    """Time in collectives at the largest scale of a program.

    Attributes
    ----------
    name : name of the experiment
    unit : unit of all times
    at : parameter values of the largest scale
    total : time of the whole program
    seconds : time by collective
    """

    name: str
    unit: str
    at: Mapping[str, float]
    total: float
    seconds: Mapping[str, float]

    def gain(self, function: str, factor: float) -> float:
        """Return the time that the program can save if a collective is faster by `factor`."""
        return self.seconds.get(function, 0.0) * (1 - 1 / factor)


def potential_savings(experiment: Experiment, aggregate: Centre = "mean") -> PotentialSavings:
    """Return the time that a program spends in collectives.

    Raises
    ------
    DataError
        If there is no run time that can be summed over call paths, or no call of a collective.
    """
    metric = experiment.metric()
    if not (metric.is_time and metric.additive):
        raise DataError(
            f"{experiment.name}: no run time can be summed over call paths",
            hint="give --application the profiles of a program",
        )
    tree = experiment.tree
    costs = at_largest(experiment, metric.name, aggregate)
    seconds: dict[str, float] = {}
    for function, cost in zip(
        functions_in([tree.names(row) for row in range(len(tree))]), costs.tolist(), strict=True
    ):
        if function is not None and cost > 0:
            seconds[function.name] = seconds.get(function.name, 0.0) + cost
    if not seconds:
        raise DataError(
            f"{experiment.name}: no call path is an MPI collective",
            hint="give --application the profiles of a program that calls collectives",
        )
    at = {each.name: each.values[-1] for each in experiment.parameters}
    return PotentialSavings(experiment.name, metric.unit, at, float(np.nansum(costs)), seconds)


MEASURED, MOCK_UP, COMPOSED = "measured", "mock-up", "composed"
BETWEEN, PREDICTED = "composed between sizes", "predicted"
POOLED = "predicted from similar checks"
"""Basis of a check: the same function, a measured mock-up, a sum of functions, a sum of functions
with interpolated times between two message sizes, models of both sides, or the measured excess of
similar checks."""


@dataclass(frozen=True, slots=True)
class MeanOfChecks(Slowdown):
    """The geometric mean of all checks of a guideline in a group.

    Attributes
    ----------
    rate : family-wise error rate at which the mean is called a violation; NaN = not tested
    violated : verdict
    """

    rate: float
    violated: bool


class Test(StrEnum):
    """Test of one check."""

    MEANS = (
        "means"  # Welch's test of means of logarithms, confirmed by ranks except in permutations
    )
    RANK_SUM = "rank-sum"  # Wilcoxon's test, as PGMPI publishes it
    SMIRNOV = "ks"  # the test of Kolmogorov and Smirnov


@dataclass(frozen=True, slots=True)
class Method:
    """Test and control of the error rate of measured checks.

    Attributes
    ----------
    test : test of one check
    control : error rate that is controlled, and how
    rate : largest error rate of the answer, as a fraction
    """

    test: Test = Test.MEANS
    control: Control = Control.PERMUTATION
    rate: float = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Checks with their verdicts.

    Attributes
    ----------
    checks : [C] in the order of the guidelines
    left, right : [C] values of both sides, in the unit of the metric
    verdicts : columns over the checks
    basis : [C] `MEASURED`, `MOCK_UP`, `COMPOSED`, `BETWEEN`, `PREDICTED` or `POOLED`
    composed : [C] sum of the functions that a measured mock-up executes; NaN = no mock-up, or the
        functions were not measured
    runs : [C, R] times of the left and of the right side in each mpirun; None = predicted. Between
        two sizes, the right side has the times of the longer message.
    means : mean of the checks of each guideline and group; empty = not tested
    """

    checks: tuple[GuidelineCheck, ...]
    left: FloatArray
    right: FloatArray
    verdicts: GuidelineVerdicts
    basis: tuple[str, ...]
    composed: FloatArray
    runs: tuple[FloatArray, FloatArray] | None = None
    means: Mapping[tuple[Guideline, Group], MeanOfChecks] = field(default_factory=dict)

    def above(self, share: float) -> int:
        """Return the number of checks whose violation has a larger probability."""
        return int((1 - self.verdicts.chance > share).sum())

    def likeliest(self, tally: VerdictTally) -> float:
        """Return the largest probability of a violation among predicted checks; NaN = unknown."""
        return float(np.fmax.reduce(1 - self.verdicts.chance[[*tally.checks]]))

    def take(self, rows: Sequence[int]) -> Judged:
        """Return the checks at `rows`, with the verdicts that they have among all checks."""
        return Judged(
            tuple(self.checks[row] for row in rows),
            self.left[[*rows]],
            self.right[[*rows]],
            self.verdicts.take(rows),
            tuple(self.basis[row] for row in rows),
            self.composed[[*rows]],
            None if self.runs is None else (self.runs[0][[*rows]], self.runs[1][[*rows]]),
            self.means,
        )


@dataclass(frozen=True, slots=True)
class VerdictTally:
    """Sum of the checks of one guideline in one group.

    Attributes
    ----------
    checks : row numbers of the checks
    violated, holds : number of checks with this verdict
    worst : row number of the check with the largest factor among the checks with the verdict
    mean : mean of all checks, if it is violated, and no single check is; else None
    """

    checks: tuple[int, ...]
    violated: int
    holds: int
    worst: int
    mean: MeanOfChecks | None = None

    @property
    def verdict(self) -> GuidelineVerdict:
        """Return `VIOLATED` if a check or their mean is, and `HOLDS` if all checks hold."""
        if self.violated or self.mean is not None:
            return GuidelineVerdict.VIOLATED
        return GuidelineVerdict.HOLDS if self.holds == len(self.checks) else GuidelineVerdict.OPEN

    def slowdown(self, of: Judged) -> Slowdown:
        """Return the slowdown of the mean if it decides, else of the worst check."""
        return of.verdicts.slowdown(self.worst) if self.mean is None else self.mean


def tallies(of: Judged) -> dict[tuple[Guideline, Group], VerdictTally]:
    """Return the sum of the checks of each guideline in each group."""
    checks: dict[tuple[Guideline, Group], list[int]] = {}
    for k, check in enumerate(of.checks):
        checks.setdefault((check.guideline, check.group), []).append(k)
    return {which: _tally(of, rows, of.means.get(which)) for which, rows in checks.items()}


def _tally(of: Judged, rows: Sequence[int], mean: MeanOfChecks | None) -> VerdictTally:
    verdicts = of.verdicts
    violated, holds = int(verdicts.violated[rows].sum()), int(verdicts.holds[rows].sum())
    deciding = [
        row for row in rows if (verdicts.violated[row] if violated else not verdicts.holds[row])
    ]
    factors = np.nan_to_num(verdicts.factor)
    worst = max(deciding or rows, key=lambda row: float(factors[row]))
    told = mean if mean is not None and mean.violated and not violated else None
    return VerdictTally(tuple(rows), violated, holds, worst, told)


@dataclass(frozen=True, slots=True)
class Row:
    """One guideline in one group.

    Attributes
    ----------
    guideline, group : identify the row
    here : measured checks; None = not measured
    ahead : checks at the target; None = no target, or a guideline about a single function
    crossing : number of processes from which a violation is predicted; None = the guideline also
        holds at the target, or it is violated already
    """

    guideline: Guideline
    group: Group
    here: VerdictTally | None
    ahead: VerdictTally | None = None
    crossing: Crossing | None = None

    @property
    def turns(self) -> bool:
        """Return whether the guideline holds as measured and is predicted to be violated."""
        before, then = (tally and tally.verdict for tally in (self.here, self.ahead))
        return before is GuidelineVerdict.HOLDS and then is GuidelineVerdict.VIOLATED


@dataclass(frozen=True, slots=True, eq=False)
class Verification:
    """Result of a verification.

    Attributes
    ----------
    benchmark : the measured collectives
    here, ahead : checks at the measured settings, and at the target
    rows : guidelines, the worst first
    missing : guidelines that could not be checked
    target : number of processes; None = no target
    tolerance : slowdown that is not a violation, as a fraction
    confidence : level of the intervals
    method : test and control of the error rate of measured checks
    power : what the number of mpiruns can show; "" = not known
    stakes : time that a program spends in collectives; None = no program
    findings : data quality findings
    sensitivity : `power` as numbers; None = not known, or no permutations
    """

    benchmark: Benchmark
    here: Judged
    ahead: Judged | None
    rows: tuple[Row, ...]
    missing: tuple[MissingFunctions, ...]
    target: float | None
    tolerance: float
    confidence: float
    method: Method
    power: str
    stakes: PotentialSavings | None
    findings: tuple[Finding, ...]
    sensitivity: Power | None = None

    def rows_that_are(self, verdict: GuidelineVerdict) -> list[Row]:
        """Return the guidelines whose measured verdict is `verdict`."""
        return [row for row in self.rows if row.here is not None and row.here.verdict is verdict]

    def fails(self, *, ahead: bool) -> bool:
        """Return whether a guideline is violated as measured, or with `ahead` at the target."""
        tallies = [each for row in self.rows for each in (row.here, row.ahead if ahead else None)]
        return any(
            each is not None and each.verdict is GuidelineVerdict.VIOLATED for each in tallies
        )

    @property
    def is_run(self) -> bool:
        """Return whether the target was measured, so that no model is needed."""
        basis = () if self.ahead is None else self.ahead.basis
        return bool(basis) and not {PREDICTED, POOLED} & {*basis}

    def gain(self, function: str, of: Judged, check: int) -> float | None:
        """Return the gain of the program, at most, if a check is violated; None = unknown."""
        if self.stakes is None or not of.verdicts.violated[check]:
            return None
        return self.stakes.gain(function, float(of.verdicts.factor[check]))

    def best_gain(self, row: Row) -> float | None:
        """Return the gain by the worst check: a measured one, or else one at the target."""
        for of, tally in ((self.here, row.here), (self.ahead, row.ahead)):
            if of is not None and tally is not None and tally.verdict is GuidelineVerdict.VIOLATED:
                if tally.mean is not None and self.stakes is not None:
                    return self.stakes.gain(row.guideline.left.function, tally.mean.factor)
                return self.gain(row.guideline.left.function, of, tally.worst)
        return None
