"""Judgement of a history: changed call paths, their commits, and the next commit to measure.

Three questions are asked of each call path: did it change at the largest common scale, did its
growth change, and did it change at the target? Growth is the slope of logarithms over the
logarithm of the scale. The change at the target extrapolates the changes at the measured scales as
a power of the scale. All answers together have one false-alarm rate.

A control is a set of call paths that did not change. With a control, the noise is what its call
paths share, and the cost of all others relative to it is that of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from callpath_modeler.analysis.changes import shared_deviations
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.history.alarms import (
    Alarm,
    AlarmRule,
    Replayed,
    log_factors,
    record_weights,
    replay,
    series_weights,
)
from callpath_modeler.modeling import centre
from callpath_modeler.modeling.distributions import normal_quantile, student_quantile

LEAST_CONTROL = 3
"""Fewest call paths of a control: fewer do not tell how sure their factor is."""


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Logarithms of values, relative to the first record of each call path and scale.

    Attributes
    ----------
    own : [n, T, K] centre of the repetitions after the common deviation is taken out; NaN = missing
    error : [n, T, K] squared standard error of `own` by the scatter of the repetitions; 0 = there
        is one
    common : [T, K] centre of the deviations that all call paths share, or those of the control;
        NaN = scale not measured, or too few values of the control
    program : [T, K] centre of the cost of all call paths beside the control, relative to it; None =
        there is no control
    program_error : [T, K] squared standard error of `program` by the scatter of the repetitions
    """

    own: FloatArray
    error: FloatArray
    common: FloatArray
    program: FloatArray | None = None
    program_error: FloatArray | None = None


def relative_levels(values: FloatArray, control: BoolArray | None = None) -> Levels:
    """Return the levels of a history. The levels of a record depend only on it and earlier ones.

    Parameters
    ----------
    values : [n, T, K, R] call paths, records, scales and repetitions; NaN or 0 = missing
    control : [n] call paths that did not change; None = all are compared with each other
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values > 0, np.log(values), np.nan)
    rows, records, scales, repetitions = logs.shape
    first = np.full((rows, scales), np.nan)
    own = np.full((rows, records, scales), np.nan)
    error = np.zeros((rows, records, scales))
    common = np.full((records, scales), np.nan)
    program, program_error = np.full((2, records, scales), np.nan)
    first_cost = np.full(scales, np.nan)
    for record in range(records):
        deviation = logs[:, record] - first[:, :, None]
        if control is None:
            shared = shared_deviations(deviation.reshape(rows, -1)).reshape(scales, repetitions)
        else:
            shared = _of_control(logs[control, record], deviation[control])
        measured = ~np.isnan(logs[:, record]).all(axis=0)
        centred = centre(logs[:, record] - shared, "median")
        error[:, record] = _squared_error(logs[:, record] - shared)
        new = np.isnan(first)
        first[new] = centred[new]
        own[:, record] = centred - first
        common[record] = centre(np.where(measured, shared, np.nan)[None], "median")[0]
        if control is not None:
            # The sum sees changes of any number of call paths, and new call paths.
            cost = _log_sum(logs[~control, record] - shared)
            level, program_error[record] = centre(cost[None], "median")[0], _squared_error(cost)
            first_cost = np.where(np.isnan(first_cost), level, first_cost)
            program[record] = level - first_cost
    if control is None:
        return Levels(own, error, common)
    return Levels(own, error, common, program, program_error)


def _of_control(logs: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return the deviation that a control shares, [K, R]; NaN = too few of it have values.

    Parameters
    ----------
    logs : [n, K, R] logarithms of the values of the control
    deviation : [n, K, R] the same relative to the first records; NaN = there is no earlier record
    """
    has_begun = (~np.isnan(deviation)).any(axis=(0, 2), keepdims=True)
    known = np.where(has_begun, deviation, logs)
    shared = shared_deviations(deviation.reshape(len(deviation), -1), 1).reshape(logs.shape[1:])
    return np.where((~np.isnan(known)).sum(axis=0) >= LEAST_CONTROL, shared, np.nan)


def _log_sum(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the sum over call paths [n, K, R]; NaN = no value."""
    most = np.fmax.reduce(logs, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(np.nansum(np.exp(logs - most), axis=0)) + most)


def _squared_error(logs: FloatArray) -> FloatArray:
    """Return the squared standard error of the centre of repetitions [..., R]."""
    count = (~np.isnan(logs)).sum(axis=-1)
    mean = np.nansum(logs, axis=-1) / np.maximum(count, 1)
    squares = np.nansum((logs - mean[..., None]) ** 2, axis=-1)
    return np.where(count > 1, squares / np.maximum(count - 1, 1) / np.maximum(count, 1), 0.0)


LARGEST, GROWTH, TARGET = "largest", "growth", "target"
"""Questions: value at the largest common scale, growth, and value at the target."""

PROGRAM_SHARE = 0.5
"""Share of the program in the false-alarm rate of a history with a control."""

LEAST_SCALES = 3
"""Fewest common scales of the questions of growth and of the target."""


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """A change of one call path, or of the part that all call paths share.

    Attributes
    ----------
    row : number of the call path; None = all call paths
    answers : alarms by question. Sizes are logarithms of the level after over before; for growth,
        they are differences of the exponent of the scale
    """

    row: int | None
    answers: Mapping[str, Alarm]

    @property
    def leading(self) -> Alarm:
        """The alarm with the narrowest interval of records."""
        return min(self.answers.values(), key=lambda each: each.latest - each.earliest)

    @property
    def raised(self) -> int:
        """Record of the first alarm."""
        return min(each.raised for each in self.answers.values())

    @property
    def is_worse(self) -> bool:
        """True if the change makes the call path slower, or grow faster."""
        order = [self.answers[name] for name in (TARGET, LARGEST, GROWTH) if name in self.answers]
        return order[0].change > 0


@dataclass(frozen=True, slots=True, eq=False)
class JointChange:
    """A change of many call paths at one time, by different amounts.

    Attributes
    ----------
    rows : numbers of the call paths
    raised : record of the alarm
    earliest, likely, latest : first changed record, and the interval that holds it
    change : median of the logarithms of the levels after over before, at the largest common scale;
        NaN = only growth changed
    """

    rows: IntArray
    raised: int
    earliest: int
    likely: int
    latest: int
    change: float


@dataclass(frozen=True, slots=True, eq=False)
class JudgedHistory:
    """The judgement of a history.

    Attributes
    ----------
    levels : levels of call paths without the common noise
    own : changes of single call paths, the newest first
    common : changes that all call paths share, the newest first
    joint : changes of many call paths by different amounts, the newest first
    suspected : [n] True = the newest record alone deviates, and one more like it raises an alarm
    program : changes of the cost of all call paths beside a control relative to it, the newest
        first
    questions : number of questions that were asked of each call path
    """

    levels: Levels
    own: tuple[HistoryChange, ...]
    common: tuple[HistoryChange, ...]
    joint: tuple[JointChange, ...]
    suspected: BoolArray
    program: tuple[HistoryChange, ...] = ()
    questions: int = 1


def judge(
    values: FloatArray,
    scales: FloatArray,
    target: float | None,
    rule: AlarmRule,
    control: BoolArray | None = None,
) -> JudgedHistory:
    """Return the judgement of a history.

    Parameters
    ----------
    values : [n, T, K, R] exclusive values of call paths, one or more records in their order, scales
        in ascending order, and repetitions; NaN = missing
    scales : [K] values of the parameter
    target : value of the parameter that the third question is about; None = it is not asked
    rule : when evidence is an alarm
    control : [n] call paths that did not change: what they share is noise of the machine, and the
        cost of all others relative to it is that of the program. None = there are none
    """
    levels = relative_levels(values, control)
    asked = questions(scales, target)
    # With a control, the program is one more series.
    shares = _shares(values) / len(asked) * (1.0 if control is None else 1.0 - PROGRAM_SHARE)
    replayed = {
        name: replay(_sum(levels.own, weights), _sum(levels.error, weights**2), shares, rule)
        for name, weights in asked.items()
    }
    whole, share = levels.common[None], np.array([1.0 / len(asked)])
    common = {
        name: replay(_sum(whole, weights), np.zeros(whole.shape[:2]), share, rule)
        for name, weights in asked.items()
    }
    suspected = np.zeros(len(values), bool)
    for each in replayed.values():
        suspected |= each.suspected
    return JudgedHistory(
        levels,
        _own_changes(replayed),
        tuple(replace(each, row=None) for each in _own_changes(common)),
        _joint_changes(replayed),
        suspected,
        () if control is None else _program_changes(levels, control, asked, rule),
        len(asked),
    )


def _program_changes(
    levels: Levels, control: BoolArray, asked: Mapping[str, FloatArray], rule: AlarmRule
) -> tuple[HistoryChange, ...]:
    """Return the changes of the cost of all other call paths, relative to the control.

    The factor of a control is only as sure as its call paths agree. If they change by different
    amounts at one time, the evidence of a change of the program counts for less.
    """
    assert levels.program is not None
    assert levels.program_error is not None
    own = np.concatenate([levels.program[None], levels.own[control]])
    error = np.concatenate([levels.program_error[None], levels.error[control]])
    is_program = np.arange(len(own)) == 0
    share = np.where(is_program, PROGRAM_SHARE / len(asked), 0.0)
    replayed = {
        name: replay(_sum(own, each), _sum(error, each**2), share, rule, ~is_program)
        for name, each in asked.items()
    }
    return tuple(replace(each, row=None) for each in _own_changes(replayed))


def questions(scales: FloatArray, target: float | None) -> dict[str, FloatArray]:
    """Return the weights of the scales in each question, [K]; the answer is a sum of levels."""
    if len(scales) < LEAST_SCALES:
        return {LARGEST: np.eye(len(scales))[-1]}
    x = np.log(scales)
    lever = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    found = {LARGEST: np.eye(len(scales))[-1], GROWTH: lever}
    if target is not None:
        found[TARGET] = 1.0 / len(scales) + lever * (np.log(target) - x.mean())
    return found


def _sum(levels: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted sums of levels [n, T, K]; a missing level matters if it has a weight."""
    some = weights != 0
    return np.asarray(levels[..., some] @ weights[some])


def _shares(values: FloatArray) -> FloatArray:
    """Return the share of each call path in the false-alarm rate, by its cost when it appeared."""
    there = np.asarray(~np.isnan(values).all(axis=(2, 3)))
    first = np.where(there.any(axis=1), there.argmax(axis=1), values.shape[1])
    records = values[np.arange(len(values)), np.minimum(first, values.shape[1] - 1)]
    cost = np.nanmax(np.nan_to_num(records), axis=(1, 2), initial=0.0)
    return series_weights(first, cost)


def _own_changes(replayed: Mapping[str, Replayed]) -> tuple[HistoryChange, ...]:
    """Return the changes of single series: answers of one series about one time are one change."""
    alarms = [
        (name, each) for name, found in replayed.items() for each in found.alarms if not each.shared
    ]
    changes: list[tuple[int, dict[str, Alarm]]] = []
    for name, alarm in sorted(alarms, key=lambda each: (each[1].row, each[1].likely)):
        if changes:
            row, answers = changes[-1]
            if row == alarm.row and name not in answers and _meet(alarm, answers.values()):
                answers[name] = alarm
                continue
        changes.append((alarm.row, {name: alarm}))
    found = [HistoryChange(row, answers) for row, answers in changes]
    return tuple(sorted(found, key=lambda each: (-each.raised, each.row)))


def _meet(alarm: Alarm, others: Iterable[Alarm]) -> bool:
    """Return whether an alarm may be about the same record as one of the others."""
    return any(
        alarm.earliest <= each.latest + 1 and each.earliest <= alarm.latest + 1 for each in others
    )


def _joint_changes(replayed: Mapping[str, Replayed]) -> tuple[JointChange, ...]:
    """Return the changes of many call paths: alarms that were raised while intervals overlap."""
    shared = [
        (name, each) for name, found in replayed.items() for each in found.alarms if each.shared
    ]
    groups: list[list[tuple[str, Alarm]]] = []
    for name, alarm in sorted(shared, key=lambda each: each[1].likely):
        if groups and alarm.earliest <= np.median([each.latest for _, each in groups[-1]]) + 1:
            groups[-1].append((name, alarm))
        else:
            groups.append([(name, alarm)])
    return tuple(_joint(group) for group in reversed(groups))


def _joint(group: Sequence[tuple[str, Alarm]]) -> JointChange:
    alarms = [each for _, each in group]
    sizes = [each.change for name, each in group if name == LARGEST]
    middle = [
        int(np.median([getattr(each, name) for each in alarms]))
        for name in ("earliest", "likely", "latest")
    ]
    return JointChange(
        np.unique([each.row for each in alarms]),
        min(each.raised for each in alarms),
        middle[0],
        middle[1],
        middle[2],
        float(np.median(sizes)) if sizes else float("nan"),
    )


_ERROR = 0.05
"""Probability that the runs are on the wrong side of the middle between the two levels."""

_MOST_REPETITIONS = 50


@dataclass(frozen=True, slots=True)
class DecidingRuns:
    """Runs of one commit that tell whether it has a change.

    Attributes
    ----------
    scale : number of the scale
    repetitions : number of runs
    cost : their cost, e.g. in core-seconds; NaN = not known
    error : probability that they are on the wrong side
    """

    scale: int
    repetitions: int
    cost: float
    error: float


def deciding_runs(
    before: FloatArray, after: FloatArray, repetitions: float, cost: FloatArray
) -> DecidingRuns | None:
    """Return the cheapest runs that tell two levels apart.

    A level is decided by the middle between the mean before and the mean after. The number of
    repetitions follows from the scatter of records, each of which is a centre of repetitions.

    Parameters
    ----------
    before, after : [T, K] levels of records without and with the change, in logarithms; NaN =
        missing
    repetitions : typical number of repetitions of these records
    cost : [K] cost of one run

    Returns
    -------
    DecidingRuns or None
        None if no scale tells the levels apart with at most 50 runs.
    """
    best: DecidingRuns | None = None
    z = float(normal_quantile(1.0 - _ERROR))
    for scale in range(before.shape[1]):
        left, right = (each[~np.isnan(each[:, scale]), scale] for each in (before, after))
        if len(left) < 2 or not len(right):
            continue
        half = abs(right.mean() - left.mean()) / 2.0
        scatter = float(left.std(ddof=1)) * np.sqrt(repetitions)
        if not half or (needed := (z * scatter / half) ** 2) > _MOST_REPETITIONS:
            continue
        number = max(1, int(np.ceil(needed)))
        found = DecidingRuns(scale, number, number * float(cost[scale]), _ERROR)
        # Where no cost is known, fewer runs at a smaller scale are cheaper.
        key = (found.cost, number)
        if (
            best is None
            or np.isnan(best.cost) > np.isnan(found.cost)
            or key
            < (
                best.cost,
                best.repetitions,
            )
        ):
            best = found
    return best


def narrowed(levels: FloatArray, earliest: int, latest: int) -> tuple[int, int]:
    """Return the interval of the first changed record after runs at a few scales.

    Such a record has no value at the largest scale, which the alarm is about. It has the change if
    its levels are beyond the middle between those before the interval and those after it.

    Parameters
    ----------
    levels : [T, K] logarithms; NaN = missing
    earliest, latest : interval of the first changed record
    """
    middle = np.full((2, levels.shape[1]), np.nan)
    for side, part in enumerate((levels[:earliest], levels[latest:])):
        count = (~np.isnan(part)).sum(axis=0)
        middle[side] = np.where(count > 0, np.nansum(part, axis=0) / np.maximum(count, 1), np.nan)
    before, after = middle
    for record in range(earliest, latest):
        known = ~np.isnan(levels[record]) & (np.abs(after - before) > 0)
        if not known.any() or not np.isnan(levels[record, -1]):
            continue
        part = (levels[record, known] - before[known]) / (after[known] - before[known])
        if np.mean(part) >= 0.5:
            return earliest, record
        earliest = record + 1
    return earliest, latest


def middle_of(number: int) -> int:
    """Return the candidate that halves `number` candidates for the first changed commit.

    The last candidate has the change for certain, so that it is never measured.
    """
    return (number - 1) // 2


SOON = 3
"""Number of records with a change at which it should be named."""

_LEAST_RECORDS = 5
"""Fewest records whose scatter is an estimate."""

_SURE = 0.75
"""Quantile of two kinds of bad luck: noise against the change, and scatter of the control.

With it, about 90 % of changes of the stated size are named so soon in simulated histories.
"""


def least_program_change(found: JudgedHistory, rule: AlarmRule, control: int) -> float:
    """Return the logarithm of the smallest change that is named at the third record with it.

    It is that of the program at the largest scale, relative to the control, and it is named with a
    probability of about 90 %. It follows from the scatter of the records since the last change.
    Infinity = no change is named so soon, or too few records.

    Parameters
    ----------
    found : judgement of a history with a control
    rule : when evidence is an alarm
    control : number of call paths of the control
    """
    levels = found.levels
    assert levels.program is not None
    assert levels.program_error is not None
    begin = max((each.leading.latest for each in found.program), default=0)
    program, error = levels.program[begin:, -1], levels.program_error[begin:, -1]
    there = np.flatnonzero(~np.isnan(program))[-rule.memory :]
    before = len(there)
    if before < _LEAST_RECORDS:
        return float("inf")
    scatter = max(np.var(program[there], ddof=1), np.mean(error[there])) + rule.least_sd**2
    size, dof = before * SOON / (before + SOON), before + SOON - 2.0
    t = np.geomspace(1.0, 1e4, 1_000)
    evidence = log_factors(t, np.full_like(t, dof), np.full_like(t, size))
    number = len(found.program)
    share = PROGRAM_SHARE / found.questions / ((number + 1) * (number + 2))
    prior = record_weights(len(program) + 1)[-1]
    enough = np.flatnonzero(evidence >= -np.log(rule.false_alarms * share * prior))
    if not len(enough):
        return float("inf")
    # If the control scatters more than usual at this time, the evidence counts for less.
    largest = student_quantile(dof, 0.5 + 0.5 * _SURE ** (1.0 / control))
    excess = max(float(largest / student_quantile(dof, 1.0 - 0.25 / control)), 1.0)
    needed = t[enough[0]] * excess + float(normal_quantile(_SURE))
    return float(needed * np.sqrt(scatter / size))
