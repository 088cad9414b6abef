"""The next run of a series: by the band of the total at a target, and by a budget.

The models are made again after each run. `analysis.advise` predicts what each possible run would
do to the band, as it does for ``cpmodel info --advise``. With ``--profile-once``, a run before the
series chooses the functions that the others do not measure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.printable import shortened
from callpath_modeler.units import factor_text, interval, quantity

if TYPE_CHECKING:
    from callpath_modeler.campaign.launch import RunRecord, SeriesFolder
    from callpath_modeler.campaign.plan import Plan, PlannedRun
    from callpath_modeler.fitted import Fitted

_GOAL = re.compile(r"band\s+(?:[x×]\s*)?([0-9]+(?:\.[0-9]+)?)\s+at\s+(?:p\s*=\s*)?([0-9]{1,12})")
_BUDGET = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*core-?\s*(h|hours?|min|minutes?|s|seconds?)")
_HOURS = {"h": 1.0, "m": 1 / 60, "s": 1 / 3600}
_FIRST_SCALES, _FIRST_REPETITIONS = 3, 2
"""The runs without which there is no model, and no estimate of noise."""
_SAFETY = 1.25
"""Rest of the budget that a run needs, over its expected cost, because an ended run is lost."""
_MOST_TRIED = 8
"""Largest number of scales whose effect is simulated: the largest ones."""


class Goal(Struct, frozen=True):
    """A band that is narrow enough.

    Attributes
    ----------
    ratio : upper over lower end
    target : the scale of the prediction
    """

    ratio: float
    target: int


class SeriesAnswer(Struct, frozen=True):
    """The total at the target with its band, in SI base units."""

    target: int
    value: float
    low: float
    high: float
    unit: str

    @property
    def ratio(self) -> float:
        """Upper end of the band over its lower end."""
        return self.high / self.low if self.low > 0 else math.inf

    @property
    def text(self) -> str:
        """The answer in words, as `cpmodel info --advise` states it."""
        value = quantity(self.value, self.unit)
        band = f"{value} ({interval(self.low, self.high, self.unit)})"
        ratio = factor_text(self.ratio)
        return f"At p = {self.target} the sum of all call paths is {band}: a band of × {ratio}"


class SteeringStep(Struct, frozen=True):
    """What to run next.

    Attributes
    ----------
    runs : the next runs; none = the series ends
    limit : seconds after which a run would exceed the budget; 0 = no limit
    reason : why the series ends
    answer : the present answer; None = there are too few runs
    """

    runs: Sequence[PlannedRun] = ()
    limit: float = 0.0
    reason: str = ""
    answer: SeriesAnswer | None = None


def goal_of(text: str) -> Goal:
    """Return a goal such as ``band 1.5 at 1024``.

    Raises
    ------
    UsageError
        If the text is no such goal.
    """
    found = _GOAL.fullmatch(text.strip())
    if found is None or not (float(found[1]) > 1 and int(found[2]) > 0):
        raise UsageError(
            f"--until {shortened(text)!r} is no goal",
            hint="e.g. 'band 1.5 at 1024': the upper end of the band over its lower end, above 1",
        )
    return Goal(float(found[1]), int(found[2]))


def core_hours_of(text: str) -> float:
    """Return the core-hours of a budget such as ``200 core-hours``.

    Raises
    ------
    UsageError
        If the text is no such budget.
    """
    found = _BUDGET.fullmatch(text.strip())
    hours = float(found[1]) * _HOURS[found[2][0]] if found else 0.0
    if not 0 < hours < math.inf:
        raise UsageError(
            f"--budget {shortened(text)!r} is no budget",
            hint="e.g. '200 core-hours' or '30 core-minutes'",
        )
    return hours


def expected_seconds(records: Sequence[RunRecord], processes: int) -> float:
    """Return the mean run time at the measured scale nearest to a scale; 0 = none was measured."""
    seconds: dict[int, list[float]] = {}
    for each in records:
        if not each.failure:
            seconds.setdefault(each.parameters["p"], []).append(each.seconds)
    if not seconds:
        return 0.0
    nearest = min(seconds, key=lambda p: max(p, processes) / min(p, processes))
    return sum(seconds[nearest]) / len(seconds[nearest])


class Steering:
    """The choice of the next run of a series.

    Parameters
    ----------
    series, plan : the series; the plan has all runs that are possible
    attempts : number of failures of a scale after which it is left out
    """

    def __init__(self, series: SeriesFolder, plan: Plan, attempts: int) -> None:
        self._series = series
        self._plan = plan
        self._attempts = attempts
        self._goal = goal_of(plan.until) if plan.until else None
        self._budget = core_hours_of(plan.budget) if plan.budget else math.inf
        self._failures: dict[int, int] = {}
        if self._goal is not None and plan.varied:
            raise UsageError("--until needs series in p alone", hint="omit --vary or --until")

    def failed(self, record: RunRecord) -> None:
        """Count a failure of a scale."""
        scale = record.parameters["p"]
        self._failures[scale] = self._failures.get(scale, 0) + 1

    @property
    def used(self) -> float:
        """Core-hours of all runs so far, also of failed ones."""
        return sum(record.core_hours for record in self._series.records())

    def choice(self) -> SteeringStep:
        """Return the next run, or why there is none."""
        missing: dict[int, list[PlannedRun]] = {}
        for run in self._plan.runs():
            is_left_out = self._failures.get(run.processes, 0) >= self._attempts
            if not (self._series.is_done(run) or is_left_out):
                missing.setdefault(run.processes, []).append(run)
        for runs in missing.values():
            runs.sort(key=lambda run: run.repetition)
        first = self._first(missing) if self._goal else []
        answer, fitted = (None, None) if first or not self._goal else self._answer(self._goal)
        if self._goal and answer and answer.ratio <= self._goal.ratio:
            return SteeringStep(reason="the band is narrow enough", answer=answer)
        if not missing:
            return SteeringStep(reason="all runs are done", answer=answer)
        left = self._budget - self.used
        if first or fitted is None or self._goal is None:
            chosen = self._affordable(first or self._in_order(missing), left)
        else:
            chosen = self._narrowing(fitted, self._goal, missing, left)
        if chosen is None:
            return SteeringStep(reason="no further run is within the budget", answer=answer)
        limit = 0.0 if math.isinf(left) else 3600 * left / chosen.processes
        return SteeringStep((chosen,), limit, answer=answer)

    def _in_order(self, missing: Mapping[int, Sequence[PlannedRun]]) -> list[PlannedRun]:
        """Return the missing runs in the random order of the plan."""
        left = {run.name for runs in missing.values() for run in runs}
        return [run for run in self._plan.runs() if run.name in left]

    def _first(self, missing: Mapping[int, Sequence[PlannedRun]]) -> list[PlannedRun]:
        """Return missing runs at the smallest scales, from which the first models are made."""
        usable = [p for p in self._plan.scales if self._failures.get(p, 0) < self._attempts]
        repetitions = min(_FIRST_REPETITIONS, self._plan.repetitions)
        smallest = usable[:_FIRST_SCALES]
        return [
            run
            for run in self._in_order(missing)
            if run.processes in smallest and run.repetition <= repetitions
        ]

    def _affordable(self, runs: Sequence[PlannedRun], left: float) -> PlannedRun | None:
        """Return the first run that is expected to be within the budget."""
        records = self._series.records()
        for run in runs:
            seconds = expected_seconds(records, run.processes)
            if left > 0 and _SAFETY * seconds * run.processes / 3600 <= left:
                return run
        return None

    def _answer(self, goal: Goal) -> tuple[SeriesAnswer | None, Fitted | None]:
        """Return the present answer with its models; None = the runs allow no model."""
        from callpath_modeler.analysis.advise import band_at
        from callpath_modeler.studies.study import Study

        try:
            fitted, target = Study(self._series.path).predicted(target=goal.target)
            value, low, high = band_at(fitted, target)
        except DataError:
            return None, None
        return SeriesAnswer(goal.target, value, low, high, fitted.metric.unit), fitted

    def _narrowing(
        self,
        fitted: Fitted,
        goal: Goal,
        missing: Mapping[int, Sequence[PlannedRun]],
        left: float,
    ) -> PlannedRun | None:
        """Return the run that `Advice.best` chooses, within the budget."""
        from callpath_modeler.analysis.advise import advise

        scales = [p for p in sorted(missing) if p <= goal.target][-_MOST_TRIED:]
        runs = [missing[p][0] for p in scales]
        if not runs:
            return None
        try:
            advice = advise(fitted, goal.target, scales, repetitions=1, measured_too=True)
        except DataError:
            return self._affordable(runs[::-1], left)
        best = advice.best(left / _SAFETY, goal.ratio)
        return None if best is None else missing[int(best.scale)][0]


def first_of(series: SeriesFolder, plan: Plan) -> tuple[SeriesFolder, Plan]:
    """Return the series of the run that chooses the filter: once, at the smallest values."""
    from callpath_modeler.campaign.launch import SeriesFolder

    smallest = {name: [min(values)] for name, values in plan.varied.items()}
    once = structs.replace(
        plan, scales=[min(plan.scales)], varied=smallest, repetitions=1, profile_once=False,
        until="", budget="",
    )  # fmt: skip
    return SeriesFolder(series.state / "first"), once
