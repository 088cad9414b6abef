"""Judgement of a history: changed call paths, their commits, and the next commit to measure.

Four questions are asked of each call path. Did it change at all scales? Did it change at the large
ones? Did its growth change? Did it change at the target? Each answer weighs the scales by their
precision: a noisy scale counts little. Growth is the slope of logarithms over the
logarithm of the scale. The change at the target extrapolates the changes at the measured scales as
a power of the scale. All answers together have one false-alarm rate.

Runs cannot tell a change of the program from one of the machine. So a call path is named if it
alone changed, or if there is evidence that the machine did not: a control, or equal labels. Few
call paths that become slower while all others stay the same are worse as a group. A change of many
call paths is a joint change.

A control is a set of call paths that did not change. With a control, its call paths show the noise,
and the program is the cost of all others relative to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from callpath_modeler.analysis.changes import shared_deviations
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.history.alarms import (
    Alarm,
    AlarmRule,
    Replayed,
    Series,
    log_factors,
    record_weights,
    replay,
    series_weights,
)
from callpath_modeler.modeling import centre
from callpath_modeler.modeling.constants.days import RECENT, REFERENCE_RECORDS
from callpath_modeler.modeling.day_scatter import (
    centre_of_repetitions,
    learnt_scatter,
    precision_of_scales,
    risk_of_majorities,
    spread_of_repetitions,
    usual_levels,
    without_odd_scales,
)
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
    shared = _shared_factors(logs, control)
    common = centre(np.where(np.isnan(logs).all(axis=0), np.nan, shared), "median")
    own = logs - shared
    spread = spread_of_repetitions(own)
    level, error = centre_of_repetitions(own, spread)
    error = error + risk_of_majorities(own, level, spread)[..., None]
    if control is None:
        return Levels(_relative(level), error, common)
    # The sum sees changes of any number of call paths, and new call paths.
    program, program_error = levels_of_sum(own[~control])
    return Levels(_relative(level), error, common, _relative(program)[0], program_error[0])


def _relative(levels: FloatArray) -> FloatArray:
    """Return levels [n, T, K] relative to the first one of each series and scale."""
    there = ~np.isnan(levels)
    first = np.take_along_axis(levels, there.argmax(axis=1)[:, None], axis=1)
    return np.asarray(levels - first)


def _shared_factors(logs: FloatArray, control: BoolArray | None) -> FloatArray:
    """Return the logarithms of the factors of runs, [T, K, R].

    They are deviations from the usual levels of call paths, each the median of its first records.
    A level that followed the records would follow its own errors as well, and so would a mean if
    noise is one-sided.
    """
    rows, records, scales, repetitions = logs.shape
    usual = np.full((rows, scales), np.nan)
    first = np.full((rows, scales, REFERENCE_RECORDS), np.nan)
    number = np.zeros((rows, scales), np.intp)
    shared = np.zeros((records, scales, repetitions))
    for record in range(records):
        # Before any record, repetitions differ from their own middle.
        is_first = np.isnan(usual).all(axis=0)
        middle = centre(logs[:, record], "median")
        deviation = logs[:, record] - np.where(is_first, middle, usual)[:, :, None]
        if control is None:
            found = shared_deviations(deviation.reshape(rows, -1)).reshape(scales, repetitions)
        else:
            found = _of_control(logs[control, record], deviation[control])
        shared[record] = found
        level = centre(logs[:, record] - found, "median")
        there = ~np.isnan(level)
        more = there & (number < REFERENCE_RECORDS)
        if more.any():
            row, scale = np.nonzero(more)
            first[row, scale, number[more]] = level[more]
            number += more
            changed = more.any(axis=1)
            usual[changed] = centre(first[changed].reshape(-1, 1, REFERENCE_RECORDS), "median")[
                :, 0
            ].reshape(-1, scales)
    return shared


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


def levels_of_sum(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the levels of the sum over call paths, and their squared standard errors, [1, T, K].

    Parameters
    ----------
    logs : [n, T, K, R] logarithms of values; NaN = missing
    """
    most = np.fmax.reduce(logs, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = (np.log(np.nansum(np.exp(logs - most), axis=0)) + most)[None]
    return centre_of_repetitions(cost, spread_of_repetitions(cost))


ALL, LARGEST, GROWTH, TARGET = "all", "largest", "growth", "target"
"""Questions: level at all scales, level at the large scales, growth, and value at the target."""

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
        names = (TARGET, ALL, LARGEST, GROWTH)
        return next(self.answers[name] for name in names if name in self.answers).change > 0

    @property
    def level(self) -> tuple[str, Alarm] | None:
        """The question about the level that describes the change best, with its alarm.

        None = only growth changed. If growth changed as well, it is that of the large scales.
        """
        names = (LARGEST, ALL) if GROWTH in self.answers else (ALL, LARGEST)
        return next(((name, self.answers[name]) for name in names if name in self.answers), None)

    @property
    def size(self) -> float:
        """Logarithm of the level after over before; NaN = only growth changed."""
        return self.level[1].change if self.level else float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class JointChange:
    """A change of several call paths at one time.

    Attributes
    ----------
    rows : numbers of the call paths
    raised : record of the alarm
    earliest, likely, latest : first changed record, and the interval that holds it
    change : median of the logarithms of the levels after over before; NaN = only growth changed
    parts : changes of the call paths whose own evidence suffices
    is_few : True = they are few, by more than 10 % each, and all others did not change
    is_alike : True = they are many and changed by one factor, as a change of the machine does
    """

    rows: IntArray
    raised: int
    earliest: int
    likely: int
    latest: int
    change: float
    parts: tuple[HistoryChange, ...] = ()
    is_few: bool = False
    is_alike: bool = False

    @property
    def is_worse(self) -> bool:
        """True if the call paths became slower in the middle."""
        return not self.change < 0


@dataclass(frozen=True, slots=True, eq=False)
class JudgedHistory:
    """The judgement of a history.

    Attributes
    ----------
    levels : levels of call paths without the common noise
    own : changes of single call paths, the newest first
    common : changes that all call paths share, the newest first
    joint : changes of several call paths at one time, the newest first
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
    machines: IntArray | None = None,
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
    machines : [T] number of the machine of each record, as labels tell; -1 = not known; None = no
        record tells
    """
    levels = relative_levels(values, control)
    asked = questions(scales, target)
    # With a control, the program is one more series.
    shares = _shares(values) / len(asked) * (1.0 if control is None else 1.0 - PROGRAM_SHARE)
    records = values.shape[1]
    found = replay(
        _series(levels.own, levels.error, scales, target),
        records,
        np.tile(shares, len(asked)),
        rule,
        paths=len(values),
    )
    whole = levels.common[None]
    common = replay(
        _series(whole, np.zeros(whole.shape), scales, target),
        records,
        np.full(len(asked), 1.0 / len(asked)),
        rule,
        paths=1,
    )
    cost = np.nan_to_num(np.nanmedian(values[..., -1], axis=(1, 2))) if len(values) else shares
    own, joint = _blamed(
        _own_changes(found, asked, len(values)),
        cost,
        rule,
        lambda change: control is not None or _one_machine(machines, change),
    )
    return JudgedHistory(
        levels,
        own,
        tuple(replace(each, row=None) for each in _own_changes(common, asked, 1)),
        joint,
        np.asarray(found.suspected.reshape(len(asked), -1).any(axis=0)),
        () if control is None else _program_changes(levels, control, scales, target, rule),
        len(asked),
    )


def _one_machine(machines: IntArray | None, change: JointChange) -> bool:
    """Return whether labels say that the machine is the same on both sides of a change."""
    if machines is None:
        return False
    around = machines[max(change.earliest - 1, 0) : change.raised + 1]
    return bool((around >= 0).all() and (around == around[0]).all())


def _program_changes(
    levels: Levels,
    control: BoolArray,
    scales: FloatArray,
    target: float | None,
    rule: AlarmRule,
) -> tuple[HistoryChange, ...]:
    """Return the changes of the cost of all other call paths, relative to the control.

    The factor of a control is only as sure as its call paths agree. If they change by different
    amounts at one time, the evidence of a change of the program counts for less.
    """
    assert levels.program is not None
    assert levels.program_error is not None
    own = np.concatenate([levels.program[None], levels.own[control]])
    error = np.concatenate([levels.program_error[None], levels.error[control]])
    asked = questions(scales, target)
    is_program = np.arange(len(own)) == 0
    share = np.where(is_program, PROGRAM_SHARE / len(asked), 0.0)
    found = replay(
        _series(own, error, scales, target),
        own.shape[1],
        np.tile(share, len(asked)),
        rule,
        ~is_program,
        paths=len(own),
    )
    return tuple(replace(each, row=None) for each in _own_changes(found, asked, len(own)))


def questions(scales: FloatArray, target: float | None) -> tuple[str, ...]:
    """Return the questions that scales can answer."""
    if len(scales) < 2:
        return (ALL,)
    if len(scales) < LEAST_SCALES:
        return ALL, LARGEST
    return (ALL, LARGEST, GROWTH) if target is None else (ALL, LARGEST, GROWTH, TARGET)


def scale_weights(
    precision: FloatArray, scales: FloatArray, target: float | None, question: str
) -> FloatArray:
    """Return the weights of the scales in a question, [n, K]; the answer is a sum of levels.

    They are those of a regression over the logarithm of the scale. NaN = too few scales.

    Parameters
    ----------
    precision : [n, K] inverse variance of a record; 0 = the scale is missing
    scales, target : as for `judge`
    question : one of those of `questions`
    """
    usable = precision > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        part = precision / precision.sum(axis=1, keepdims=True)
        if question == ALL:
            return np.asarray(part)
        if question == LARGEST:
            # The upper half of the usable scales.
            rank = np.cumsum(usable[:, ::-1], axis=1)[:, ::-1]
            part = np.where(rank <= (usable.sum(axis=1) // 2).clip(1)[:, None], precision, 0.0)
            return np.asarray(part / part.sum(axis=1, keepdims=True))
        x = np.log(scales)
        off = x - (part * x).sum(axis=1, keepdims=True)
        lever = part * off / (part * off**2).sum(axis=1, keepdims=True)
        lever[usable.sum(axis=1) < LEAST_SCALES] = np.nan
        if question == GROWTH:
            return np.asarray(lever)
        assert target is not None
        return np.asarray(part + lever * (np.log(target) - x + off)[:, [0]])


def _series(
    levels: FloatArray,
    errors: FloatArray,
    scales: FloatArray,
    target: float | None,
) -> Series:
    """Return the series of all questions, as the first records tell the precision of scales."""
    names = questions(scales, target)

    def series(known: int, part: slice) -> tuple[FloatArray, FloatArray]:
        recent = slice(max(0, known - RECENT), known)
        precision = precision_of_scales(levels[:, recent], errors[:, recent])
        usual = usual_levels(levels[:, recent])
        asked_levels, asked_errors = levels[:, part], errors[:, part]
        values, variance = [], []
        for name in names:
            weight = scale_weights(precision, scales, target, name)[:, None]
            needed, own = weight != 0, asked_levels
            if name in (ALL, LARGEST):
                own = without_odd_scales(own, usual, np.where(needed[:, 0], precision, 0.0))
            values.append(np.where(needed, weight * own, 0.0).sum(axis=2))
            variance.append(np.where(needed, weight**2 * asked_errors, 0.0).sum(axis=2))
        return np.concatenate(values), np.concatenate(variance)

    return series


def _shares(values: FloatArray) -> FloatArray:
    """Return the share of each call path in the false-alarm rate, by its cost when it appeared."""
    there = np.asarray(~np.isnan(values).all(axis=(2, 3)))
    first = np.where(there.any(axis=1), there.argmax(axis=1), values.shape[1])
    records = values[np.arange(len(values)), np.minimum(first, values.shape[1] - 1)]
    cost = np.nanmax(np.nan_to_num(records), axis=(1, 2), initial=0.0)
    return series_weights(first, cost)


def _own_changes(replayed: Replayed, asked: Sequence[str], paths: int) -> tuple[HistoryChange, ...]:
    """Return the changes of call paths; the series are those of each question in turn."""
    return _merged(
        (asked[each.row // paths], replace(each, row=each.row % paths)) for each in replayed.alarms
    )


def _merged(alarms: Iterable[tuple[str, Alarm]]) -> tuple[HistoryChange, ...]:
    """Return changes, the newest first: answers of one series about one time are one change."""
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


_LARGE = np.log(1.1)
"""Logarithm of the smallest factor by which few call paths are worse as a group."""

_UNSURE = 0.05
"""Largest share of call paths that may have changed a little beside a group."""

_MANY = 0.3
"""Smallest share of call paths that a change of the machine moves alike."""


def _blamed(
    changes: Sequence[HistoryChange],
    cost: FloatArray,
    rule: AlarmRule,
    has_evidence: Callable[[JointChange], bool],
) -> tuple[tuple[HistoryChange, ...], tuple[JointChange, ...]]:
    """Return the changes of single call paths, and those of several at one time.

    Parameters
    ----------
    changes : changes of call paths, whoever caused them
    cost : [n] usual cost of each call path
    rule : when evidence is an alarm
    has_evidence : whether the machine is known not to have caused a change
    """
    groups: list[list[HistoryChange]] = []
    for change in sorted(changes, key=lambda each: each.leading.likely):
        last = groups[-1] if groups else []
        latest = max((each.leading.latest for each in last), default=-2)
        if change.leading.earliest <= latest + 1 and change.row not in {each.row for each in last}:
            last.append(change)
        else:
            groups.append([change])
    own: list[HistoryChange] = []
    joint: list[JointChange] = []
    for group in groups:
        found = _joint(group, cost, rule)
        named = {each.row for each in group}
        if len(found.rows) <= max(1.0, rule.few * len(cost)) and (
            len(named) == 1 or has_evidence(found)
        ):
            own += group
        else:
            joint.append(found)
    own.sort(key=lambda each: (-each.raised, -1 if each.row is None else each.row))
    return tuple(own), tuple(reversed(joint))


def _joint(group: Sequence[HistoryChange], cost: FloatArray, rule: AlarmRule) -> JointChange:
    """Return what happened to several call paths at one time."""
    alarms = [each for change in group for each in change.answers.values()]
    rows = sorted(set().union(*(each.moved for each in alarms)))
    dates = [
        int(np.median([getattr(each.leading, name) for each in group]))
        for name in ("earliest", "likely", "latest")
    ]
    sizes = np.array([each.size for each in group])
    known = sizes[~np.isnan(sizes)]
    at = [each.row for each in group if each.row is not None]
    more = float(np.sum(cost[at] * np.expm1(np.nan_to_num(sizes))))
    slower = known[known > 0]
    unsure = min((each.unsure for each in alarms), default=0)
    is_few = (
        len(rows) <= rule.few * len(cost)
        and unsure <= _UNSURE * len(cost)
        and more > 0
        and bool((np.abs(known) >= _LARGE).all() and len(slower))
    )
    is_alike = len(rows) >= _MANY * len(cost) and bool(
        len(known) and np.ptp(known) <= 2.0 * np.median([_reach(each) for each in group])
    )
    return JointChange(
        np.array(rows),
        min(each.raised for each in group),
        dates[0],
        dates[1],
        dates[2],
        float(np.median(known)) if len(known) else float("nan"),
        tuple(group),
        is_few,
        is_alike,
    )


def _reach(change: HistoryChange) -> float:
    """Return the width of the interval of the size of a change; 0 = only growth changed."""
    return change.level[1].high - change.level[1].low if change.level else 0.0


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

    It is that of the program at all scales, relative to the control, and it is named with a
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
    recent = slice(max(begin, len(levels.program) - rule.memory), None)
    program, error = levels.program[None, recent], levels.program_error[None, recent]
    weight = scale_weights(precision_of_scales(program, error), np.empty(0), None, ALL)[:, None]
    values = np.where(weight > 0, weight * program, 0.0).sum(axis=2)
    errors = np.where(weight > 0, weight**2 * error, 0.0).sum(axis=2)
    before = int((~np.isnan(values)).sum())
    if before < _LEAST_RECORDS:
        return float("inf")
    known = learnt_scatter(values, errors, np.zeros(values.shape, np.intp), rule.least_sd)
    scatter, dof = float(known.sd[0]) ** 2, float(known.dof[0])
    size = before * SOON / (before + SOON) * float((1 - known.correlation[0]) ** 2)
    t = np.geomspace(1.0, 1e4, 1_000)
    evidence = log_factors(t, np.full_like(t, dof), np.full_like(t, size))
    number = len(found.program)
    share = PROGRAM_SHARE / found.questions / ((number + 1) * (number + 2))
    prior = record_weights(len(levels.program) + 1)[-1]
    enough = np.flatnonzero(evidence >= -np.log(rule.false_alarms * share * prior))
    if not len(enough):
        return float("inf")
    # If the control scatters more than usual at this time, the evidence counts for less.
    largest = student_quantile(dof, 0.5 + 0.5 * _SURE ** (1.0 / control))
    excess = max(float(largest / student_quantile(dof, 1.0 - 0.25 / control)), 1.0)
    needed = t[enough[0]] * excess + float(normal_quantile(_SURE))
    return float(needed * np.sqrt(scatter / size))
