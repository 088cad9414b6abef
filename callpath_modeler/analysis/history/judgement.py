"""Judgement of a history: which call paths changed, since which commit, and what all share.

Three questions are asked of each call path: did it change at the largest common scale, did its
growth change, and did it change at the target? Growth is the slope of logarithms over the
logarithm of the scale. The change at the target extrapolates the changes at the measured scales as
a power of the scale. All answers together have one false-alarm rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from callpath_modeler.analysis.history.alarms import Alarm, AlarmRule, Replayed, replay
from callpath_modeler.analysis.history.evidence import series_weights
from callpath_modeler.analysis.history.levels import Levels, relative_levels
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray

LARGEST, GROWTH, TARGET = "largest", "growth", "target"
"""Questions: value at the largest common scale, growth, and value at the target."""

PROGRAM_SHARE = 0.5
"""Share of the program in the false-alarm rate of a history with a control."""

LEAST_SCALES = 3
"""Fewest common scales of the questions of growth and of the target."""


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """A change of one call path, or of what all call paths share.

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
    """Return the changes of the cost of all call paths beside a control, relative to it.

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
