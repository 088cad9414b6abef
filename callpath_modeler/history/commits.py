"""Histories of commits: the judgement of all records of runs.

`run_records` makes the records, and `history_store` keeps them. `judged` lays the records of one
series on a grid of call paths, records, scales and repetitions. Then `judgement` judges this grid.
The words for people are in `report.history_text`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.errors import DataError, UsageError, did_you_mean
from callpath_modeler.history.alarms import AlarmRule
from callpath_modeler.history.history_store import HistoryRecord
from callpath_modeler.history.judgement import (
    LEAST_CONTROL,
    HistoryChange,
    JointChange,
    JudgedHistory,
    judge,
    least_program_change,
)
from callpath_modeler.modeling import centre
from callpath_modeler.printable import shortened
from callpath_modeler.profile.omissions import Omission
from callpath_modeler.profile.pattern import Patterns
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.paths import split_at_slashes, tree_of
from callpath_modeler.readers.reductions import statistic_of_present
from callpath_modeler.support.input_limits import UNLIMITED, InputLimits, Work
from callpath_modeler.units import counted, parameter_value

WORTH = 0.001
"""Least share of the cost, at any scale of any record, of a call path that is judged."""

_BYTES_OF_A_RECORD, _BYTES_OF_A_SCALE, _BYTES_OF_A_VALUE = 640, 48, 24
"""Memory of the judgement of a call path in a record, of its scales, and of its repetitions."""


@dataclass(frozen=True, slots=True, eq=False)
class CommitHistory:
    """The records of one series on one grid, with their judgement.

    Attributes
    ----------
    records : T records in their order
    others : number of records of other series or with other labels
    callpaths : [n] names of the judged call paths
    scales : [K] scales that the newest record and at least half of all have in common
    values : [n, T, K, R] exclusive values; NaN = missing
    target : value of the parameter that the third question is about; None = none
    rule : when evidence is an alarm
    found : the judgement
    accepted : number of the oldest records, up to which the user accepts all changes
    control : [n] call paths that the user says did not change; None = none are named
    """

    records: tuple[HistoryRecord, ...]
    others: int
    callpaths: tuple[str, ...]
    scales: FloatArray
    values: FloatArray
    target: float | None
    rule: AlarmRule
    found: JudgedHistory
    accepted: int = 0
    control: BoolArray | None = None

    @property
    def newest(self) -> HistoryRecord:
        """The newest record."""
        return self.records[-1]

    @property
    def omissions(self) -> tuple[Omission, ...]:
        """Parts of the program that any of the records leaves out, the newest record first."""
        every = (each for record in reversed(self.records) for each in record.omissions)
        return tuple(dict.fromkeys(every))

    @property
    def regressions(self) -> tuple[HistoryChange, ...]:
        """Changes for the worse that are neither accepted nor followed by one for the better.

        They are of single call paths, and with a control of the program.
        """
        standing, better = [], set()
        for change in (*self.found.program, *self.found.own):  # the newest first
            if not change.is_worse:
                better.add(change.row)
            elif change.row not in better and change.leading.latest >= self.accepted:
                standing.append(change)
        return tuple(standing)

    @property
    def worse_groups(self) -> tuple[JointChange, ...]:
        """Changes for the worse of few call paths together, neither accepted nor made good."""
        standing: list[JointChange] = []
        better: set[int] = set()
        later = [(each.raised, {each.row}) for each in self.found.own if not each.is_worse]
        for group in self.found.joint:  # the newest first
            rows = {each.row for each in group.parts}
            made_good = better.union(*(few for raised, few in later if raised > group.raised))
            if not group.is_worse:
                better |= {row for row in rows if row is not None}
            elif group.is_few and group.latest >= self.accepted and not rows <= made_good:
                standing.append(group)
        return tuple(standing)

    def efficiency_before(self) -> FloatArray:
        """Return the median factors of earlier records at the newest scales, [factors, K]."""
        newest = self.newest
        earlier = np.full((max(len(self.records) - 1, 1), *newest.efficiency.shape), np.nan)
        for number, record in enumerate(self.records[:-1]):
            if record.efficiency.size:
                there = np.isin(newest.scales, record.scales)
                own = np.isin(record.scales, newest.scales)
                earlier[number][:, there] = record.efficiency[:, own]
        flat = earlier.reshape(len(earlier), -1).T
        return statistic_of_present(flat, Reduction.MEDIAN).reshape(newest.efficiency.shape)

    def control_change(self) -> float | None:
        """Return the newest relative change of the control; None = without a control.

        It is that of the newest record, from the median of earlier ones, at the largest common
        scale at which the newest record has enough values of the control. NaN = not known.
        """
        if self.control is None:
            return None
        levels = self.found.levels.common
        known = np.flatnonzero(~np.isnan(levels[-1]))
        column = levels[:, known[-1]] if len(known) else np.full(1, np.nan)
        earlier = column[:-1][~np.isnan(column[:-1])]
        if not len(earlier):
            return float("nan")
        return float(np.expm1(min(column[-1] - np.median(earlier), 700.0)))

    def least_program_change(self) -> float | None:
        """Return the smallest relative slowdown of the program that the third record with it shows.

        None = there is no control. Infinity = no slowdown is named so soon.
        """
        if self.control is None:
            return None
        least = least_program_change(self.found, self.rule, int(self.control.sum()))
        return math.expm1(least) if least < 700.0 else math.inf

    def levels(self, row: int) -> FloatArray:
        """Return the centre of the values of a call path at the largest scale, [T]."""
        return np.asarray(centre(self.values[[row], :, -1], "median")[0])


def judged(
    records: Sequence[HistoryRecord],
    rule: AlarmRule | None = None,
    *,
    target: float | None = None,
    metric: str | None = None,
    labels: Mapping[str, str] | None = None,
    accepted: str | None = None,
    control: Sequence[str] = (),
    limits: InputLimits = UNLIMITED,
) -> CommitHistory:
    """Return the judgement of a history: of the newest state, and of all changes before it.

    Parameters
    ----------
    records : records in their order
    rule : when evidence is an alarm
    target : a further scale to judge; None = that of the newest predictions
    metric : judge the records of this metric; None = that of the newest record
    labels : judge the records with these labels
    accepted : commit up to which changes are accepted
    control : patterns of call paths that did not change, as in `profile.pattern`
    limits : limits of the file of the records

    Raises
    ------
    DataError
        If no record is left, or the newest one has no scale in common with most others, or too few
        values of the control.
    UsageError
        If there is no such metric or commit, or if a pattern names no call path, or all too few.
    """
    rule, wanted = rule or AlarmRule(), labels or {}
    chosen = [each for each in records if wanted.items() <= each.labels.items()]
    if metric is not None and records and metric not in {each.metric for each in records}:
        known = sorted({each.metric for each in records})
        raise UsageError(f"no record of metric {metric!r}", hint=f"metrics: {', '.join(known)}")
    chosen = [each for each in chosen if metric in (None, each.metric)]
    if not chosen:
        raise DataError("the history has no such record", hint="cpmodel watch add STORE RUNS")
    newest = chosen[-1]
    mine = [each for each in chosen if each.series == newest.series]
    scales = _common_scales(mine)
    callpaths, values = grid_of(mine, scales, limits)
    target = newest.target if target is None else target
    named = _control(callpaths, control) if control else None
    found = judge(values, scales, target, rule, named, _machines(mine))
    if named is not None and np.isnan(found.levels.common[-1]).any():
        raise DataError(
            f"--control: commit {newest.commit} has fewer than {LEAST_CONTROL} call paths of the "
            "control at a scale, so the noise of the machine is not known",
            hint="name call paths that all commits have",
        )
    until = 0 if accepted is None else 1 + position_of(accepted, mine)
    others = len(records) - len(mine)
    return CommitHistory(
        tuple(mine), others, callpaths, scales, values, target, rule, found, until, named
    )


def _machines(records: Sequence[HistoryRecord]) -> IntArray:
    """Return the number of the labels of each record, [T]; -1 = it has none."""
    known: dict[tuple[tuple[str, str], ...], int] = {}
    numbers = []
    for record in records:
        labels = tuple(sorted(record.labels.items()))
        numbers.append(known.setdefault(labels, len(known)) if labels else -1)
    return np.array(numbers, np.intp)


def _control(callpaths: Sequence[str], patterns: Sequence[str]) -> BoolArray:
    """Return the call paths that any of the patterns names, [n]."""
    tree, rows = tree_of([split_at_slashes(name) for name in callpaths])
    known, named = Patterns.of(tree), np.zeros(len(callpaths), bool)
    for pattern in patterns:
        found = known.match(pattern)[rows]
        if not found.any():
            # A caller without cost of its own is in the tree, but it is not judged.
            meant = known.nearest(pattern)
            is_judged = bool(meant) and known.match(meant)[rows].any()
            raise UsageError(
                f"--control: no judged call path matches {shortened(pattern)!r}",
                hint=f"did you mean {meant!r}?"
                if is_judged
                else "`watch status STORE --junit FILE` lists them",
            )
        named |= found
    if named.sum() < LEAST_CONTROL:
        raise UsageError(
            f"--control names {counted(int(named.sum()), 'call path')} that carry cost: too few to "
            "tell how sure their common factor is",
            hint=f"name {LEAST_CONTROL} or more, e.g. '**/kernel_*'",
        )
    if named.all():
        raise UsageError(
            "--control names all call paths, so nothing is left to judge",
            hint="name call paths that did not change",
        )
    return named


def position_of(commit: str, records: Sequence[HistoryRecord]) -> int:
    """Return the number of the newest record of a commit, given by its name or its beginning.

    Raises
    ------
    UsageError
        If there is no such record, or if several commits begin so.
    """
    names = [each.commit for each in records]
    found = {name for name in names if name == commit} or {
        name for name in names if name.startswith(commit)
    }
    if not commit or len(found) != 1:
        what = "no record" if not found else "several records"
        raise UsageError(
            f"{what} of commit {commit!r}", hint=did_you_mean(commit, names) or "its full name"
        )
    return len(names) - 1 - names[::-1].index(found.pop())


def _common_scales(records: Sequence[HistoryRecord]) -> FloatArray:
    """Return the scales that the newest record and at least half of all have."""
    count = Counter(scale for each in records for scale in each.scales.tolist())
    newest = records[-1].scales.tolist()
    common = [scale for scale in newest if 2 * count[scale] >= len(records)]
    if not common:
        listed = " and ".join(parameter_value(scale) for scale in newest)
        raise DataError(
            f"most records have no run at {records[-1].parameter} = {listed}, as the newest has",
            hint="measure the newest commit at a scale of the earlier ones",
        )
    return np.array(common)


def grid_of(
    records: Sequence[HistoryRecord],
    scales: FloatArray,
    limits: InputLimits,
    least_share: float = WORTH,
) -> tuple[tuple[str, ...], FloatArray]:
    """Return the call paths that carry cost in any record, and their values [n, T, K, R].

    Parameters
    ----------
    records : T records
    scales : [K] values of the parameter
    limits : limits of the file of the records
    least_share : least share of the cost of a call path, at any scale of any record
    """
    rows: dict[str, int] = {}
    for record in records:
        there = np.isin(record.scales, scales)
        cost = np.nan_to_num(record.values[:, there]).max(axis=2)
        worth = (cost >= least_share * cost.sum(axis=0)).any(axis=1) & (cost > 0).any(axis=1)
        for name in np.array(record.callpaths, object)[worth].tolist():
            rows.setdefault(name, len(rows))
    repetitions = max(each.values.shape[2] for each in records)
    shape = len(rows), len(records), len(scales), repetitions
    of_scale = _BYTES_OF_A_SCALE + _BYTES_OF_A_VALUE * repetitions
    memory = len(rows) * len(records) * (_BYTES_OF_A_RECORD + len(scales) * of_scale)
    fewer = f"judge the newest records: --last {max(1, min(100, len(records) // 2))}"
    limits.check(Work.MEMORY, memory, fewer)
    values = np.full(shape, np.nan)
    for number, record in enumerate(records):
        own_scales = np.flatnonzero(np.isin(record.scales, scales))
        columns = np.searchsorted(scales, record.scales[own_scales])
        known = [(rows[name], k) for k, name in enumerate(record.callpaths) if name in rows]
        if known:
            to, own = np.array(known).T
            block = record.values[np.ix_(own, own_scales)]
            values[to[:, None], number, columns[None], : block.shape[2]] = block
    return tuple(rows), values
