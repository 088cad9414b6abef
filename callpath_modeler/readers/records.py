"""Runs from rows of measurements, in tables and data frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.diagnostics import Finding, Notices
from callpath_modeler.errors import InputError
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import DeclaredMetric, Extent, Metric, MetricStatus, Reduction
from callpath_modeler.readers.base import Reduced, RunSource
from callpath_modeler.readers.paths import (
    Title,
    exclusive_of,
    is_processes,
    means_first,
    read_title,
    tree_of,
)
from callpath_modeler.readers.tokens import NameWord, word_of
from callpath_modeler.support.input_limits import InputLimits, Work
from callpath_modeler.units import counted, parameter_value

_CALLERS = 3
_COMPARISONS = 6
"""Fewest pairs of caller and run for a decision.

Exclusive values of callers such as main are mostly small, so many large ones are not an accident.
"""
_ROUNDING = 1e-3
"""Relative tolerance, because tools print few digits and take a little time themselves."""
_AT_ONCE = 1 << 18
"""Number of values that are compared together."""
_SAME = 0.01
"""Relative difference below which two functions have the same time, recorded twice."""


def looks_inclusive(tree: CallTree, values: FloatArray) -> str:
    """Return the reason why exclusive times look inclusive; "" = they look exclusive.

    Parameters
    ----------
    tree : the call tree
    values : [call paths, runs]; NaN = not measured
    """
    called = np.flatnonzero(tree.parent != ROOT)
    calls, comparisons = np.zeros(len(tree), bool), 0
    width = max(1, _AT_ONCE // max(1, len(tree)))
    for first in range(0, values.shape[1], width):
        measured = values[:, first : first + width]
        own = np.nan_to_num(measured)
        runs = own.shape[1]
        bins = tree.parent[called, None] * runs + np.arange(runs)
        sums = np.bincount(bins.ravel(), own[called].ravel(), minlength=own.size)
        callees = sums.reshape(own.shape)
        compared = (callees > 0) & ~np.isnan(measured)
        if (own[compared] < callees[compared] * (1 - _ROUNDING)).any():
            return ""
        calls |= compared.any(axis=1)
        comparisons += int(compared.sum())
    callers = int(calls.sum())
    if callers < _CALLERS or comparisons < _COMPARISONS:
        return ""
    return f"each of {callers} callers takes at least the time of its callees"


def same_times(tree: CallTree, values: FloatArray) -> str:
    """Return the reason why times seem to contain each other without being sums of callees.

    Parameters
    ----------
    tree : the call tree
    values : [call paths, runs]; NaN = not measured

    Returns
    -------
    str
        The number of functions that have the largest time in every run. They are either nested or
        in a list without callers. "" = no such functions.
    """
    values = np.nan_to_num(values)
    largest = values.max(axis=0, initial=0.0)
    alike = (values >= (1 - _SAME) * largest).all(axis=1) & (largest > 0).all()
    rows = np.flatnonzero(alike)
    if len(rows) < _CALLERS or values.shape[1] < _CALLERS:
        return ""
    nested = bool((tree.end[rows[:-1]] > rows[1:]).all())
    if (tree.parent != ROOT).any() and not nested:
        return ""
    return f"{counted(len(rows), 'function')} take the same, largest time in every run"


_ROUNDING_OF_TABLES = 1e-9
"""Relative excess of callees over their caller that is not reported."""
_FEW = 64
"""Largest number of rows that Python sorts faster than numpy."""


@dataclass(frozen=True, slots=True)
class Records:
    """Measurements as rows with one value each.

    Attributes
    ----------
    subject : name of the file or of another source, for messages
    paths : distinct call paths, as names from the root
    path : [n] index into `paths`
    parameters : [n] values of parameters, by name
    repetition : [n] number of the repetition, or None. Without numbers, if most call paths have
        several rows at a setting, the rows are repetitions in order; otherwise they are siblings of
        one name and are added
    titles : titles of the columns of values
    title : [n] index into `titles`
    values : [n]; NaN = no value
    limits : limits of the work that the source may cause
    units : units by title, if the title does not contain the unit
    lines : [n] line of each row, or None
    program : name of the program, or ""
    creator : name of the tool that wrote the file, or ""
    words : [n] texts about the runs, by title. A text that is the same in all rows of a run becomes
        metadata
    cases : keys of `words` that tell programs, inputs or machines apart; such runs are never
        repetitions of each other
    assumed : titles whose unit in `units` is assumed
    are_events : whether values of one call path and run are added instead of repetitions
    runs_are_numbered : whether `repetition` numbers runs, and not just the values of a call path. A
        call path without a row in a run then costs nothing there, if a repetition has a row
    whole : index into `paths` of the caller whose values contain those of all others, or None
    of_whole : indices into `titles` for which this is so
    """

    subject: str
    paths: Sequence[tuple[str, ...]]
    path: IntArray
    parameters: Mapping[str, FloatArray]
    repetition: IntArray | None
    titles: Sequence[str]
    title: IntArray
    values: FloatArray
    limits: InputLimits
    units: Mapping[str, str] = field(default_factory=dict)
    lines: IntArray | None = None
    program: str = ""
    creator: str = ""
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    cases: Sequence[str] = ()
    assumed: frozenset[str] = frozenset()
    are_events: bool = False
    runs_are_numbered: bool = False
    whole: int | None = None
    of_whole: frozenset[int] = frozenset()


class RecordedRun:
    """One run from rows of measurements, with recorded values that are not reduced further."""

    def __init__(
        self,
        call_tree: CallTree,
        extent: Extent,
        metadata: Mapping[str, str],
        columns: Mapping[str, tuple[DeclaredMetric, Reduced]],
        findings: Sequence[Finding],
    ) -> None:
        self._tree = call_tree
        self._extent = extent
        self._metadata = metadata
        self._columns = columns
        self._findings = findings

    @property
    def call_tree(self) -> CallTree:
        """The call paths of all runs of the table."""
        return self._tree

    @property
    def metrics(self) -> Sequence[DeclaredMetric]:
        """The metrics that have values in this run."""
        return [declared for declared, _ in self._columns.values()]

    @property
    def extent(self) -> Extent:
        """Number of processes, threads and nodes, if they are parameters; 0 = not known."""
        return self._extent

    @property
    def reductions(self) -> Sequence[Reduction]:
        """Only ``GIVEN``: values are as recorded."""
        return (Reduction.GIVEN,)

    @property
    def metadata(self) -> Mapping[str, str]:
        """Further entries about the run."""
        return self._metadata

    def findings(self) -> Sequence[Finding]:
        """Return findings about the run."""
        return self._findings

    def reduce(self, metric: str, over_locations: Reduction) -> Reduced:  # noqa: ARG002
        """Return the recorded values.

        Raises
        ------
        KeyError
            If there is no such metric.
        """
        return self._columns[metric][1]


@dataclass(frozen=True, slots=True)
class _Column:
    """One metric of all runs: exclusive [call paths, runs] and total [runs]."""

    metric: Metric
    exclusive: FloatArray
    total: FloatArray
    unit_is_assumed: bool = False


def runs_of(records: Records, noticed: Sequence[Finding] = ()) -> list[RunSource]:
    """Return the runs in rows of measurements.

    Parameters
    ----------
    records : the rows
    noticed : findings about the whole source, which the first run reports

    Raises
    ------
    InputError
        If there are no values, if a setting is not finite, or if two values have the same call
        path, metric, setting and repetition.
    """
    for name, column in records.parameters.items():
        if not np.isfinite(column).all():
            raise InputError(
                f"{records.subject}: parameter {name} is not a number", hint="correct it"
            )
    if np.isnan(records.values).all():
        raise InputError(f"{records.subject}: holds no values", hint="measure again")
    settings, setting = _settings(records)
    keys, run = _runs(records, setting)
    hint = "write a file for each run, or one row per value, with columns metric and value"
    records.limits.check(Work.NAMES, sum(map(len, records.paths)), hint)
    records.limits.check(Work.RUNS, len(keys), hint)
    records.limits.check(Work.METRICS, len(records.titles), hint)
    records.limits.check(Work.COLUMNS, len(keys) * len(records.titles), hint)
    tree, row = tree_of(records.paths)
    records.limits.check(Work.CELLS, len(tree) * len(keys) * len(records.titles), hint)
    notices = [Notices(records.subject) for _ in keys]
    # Sums that overflow are removed when runs are read.
    with np.errstate(over="ignore", invalid="ignore"):
        absent = np.zeros((len(tree), len(keys)), dtype=np.bool_)
        if records.runs_are_numbered:
            absent = _absent(row[records.path], run, len(tree), [of for of, _ in keys])
        columns = list(_columns(records, tree, row, run, absent, notices))
    metadata = {"program": records.program, "creator": records.creator}
    metadata = {key: text for key, text in metadata.items() if text}
    texts = _texts(records, run, len(keys))
    numbered = records.repetition is not None or max(number for _, number in keys) > 1
    runs = []
    for k, (of, number) in enumerate(keys):
        held = {
            column.metric.name: (
                DeclaredMetric(
                    column.metric, MetricStatus.DATA, unit_is_assumed=column.unit_is_assumed
                ),
                Reduced(column.exclusive[:, k], float(column.total[k])),
            )
            for column in columns
            if not np.isnan(column.exclusive[:, k]).all()
        }
        findings = [*noticed, *notices[k].findings()] if k == 0 else notices[k].findings()
        told = {**metadata, **texts[k]}
        cases = tuple(title for title in records.cases if title in texts[k])
        source = RecordedRun(tree, _extent(settings[of]), told, held, findings)
        runs.append(RunSource(source, settings[of], number if numbered else None, cases))
    return runs


def _texts(records: Records, run: IntArray, runs: int) -> list[dict[str, str]]:
    """Return the texts of each run that are the same in all its rows."""
    texts: list[dict[str, str]] = [{} for _ in range(runs)]
    for title, column in records.words.items():
        found: dict[int, set[str]] = {}
        for k, text in zip(run.tolist(), column, strict=True):
            found.setdefault(k, set()).add(text)
        for k, own in found.items():
            if len(own) == 1:
                texts[k][title] = next(iter(own))
    return texts


def _settings(records: Records) -> tuple[list[dict[str, float]], IntArray]:
    """Return the distinct settings of the parameters, and the setting of each row, [n]."""
    names = list(records.parameters)
    if "p" not in names:
        told = [name for name in names if is_processes(name)]
        told += [name for name in names if word_of(name) is NameWord.PROCESSES]
        processes = next(iter(told), None)
        names = ["p" if name == processes else name for name in names]
    columns = [*records.parameters.values(), *_codes_of_cases(records)]
    if not columns:
        return [{}], np.zeros(len(records.values), np.intp)
    distinct, setting = _distinct(columns)
    return [dict(zip(names, row[: len(names)], strict=True)) for row in distinct], setting


def _codes_of_cases(records: Records) -> list[IntArray]:
    """Return the number of the text of each row, [n], for each column of cases."""
    columns = [records.words[title] for title in records.cases if title in records.words]
    codes = [{text: code for code, text in enumerate(sorted({*column}))} for column in columns]
    return [
        np.fromiter(map(code.__getitem__, column), np.intp, len(column))
        for code, column in zip(codes, columns, strict=True)
    ]


def _runs(records: Records, setting: IntArray) -> tuple[list[tuple[int, int]], IntArray]:
    """Return setting and repetition of each run, and the run of each row, [n]."""
    key = (setting * len(records.paths) + records.path) * len(records.titles) + records.title
    if records.are_events:
        number = np.ones(len(setting), np.intp)
    elif records.repetition is None:
        number = 1 + _occurrence(key) * _repeats(key, setting)
    else:
        number = records.repetition
    pairs, run = _distinct([setting, number])
    if records.repetition is not None:
        again = np.flatnonzero(_occurrence(key * len(pairs) + run))
        if len(again):
            raise _twice(records, int(again[0]))
    return [(of, number) for of, number in pairs], run


def _distinct(columns: Sequence[NDArray[Any]]) -> tuple[list[list[Any]], IntArray]:
    """Return the distinct rows of columns [n], ascending, and the index of each row in them."""
    if len(columns[0]) <= _FEW:
        rows = [*zip(*(column.tolist() for column in columns), strict=True)]
        order = {row: index for index, row in enumerate(sorted({*rows}))}
        return [[*row] for row in order], np.fromiter(map(order.__getitem__, rows), np.intp)
    which, first = np.zeros(len(columns[0]), np.intp), np.zeros(1, np.intp)
    for column in columns:
        # This is much faster than sorting whole rows.
        values, own = np.unique(column, return_inverse=True)
        key = which * len(values) + own
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
    return np.stack([column[first] for column in columns], axis=1).tolist(), which


def _repeats(key: IntArray, setting: IntArray) -> BoolArray:
    """Return for each row whether most call paths have several rows at its setting, [n]."""
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    keys = np.bincount(setting[first])
    several = np.bincount(setting[first], weights=count > 1)
    repeated: BoolArray = (several * 2 > keys)[setting]
    return repeated


def _occurrence(key: IntArray) -> IntArray:
    """Return the number of earlier rows with the same key, [n]."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    lengths = np.diff(np.append(starts, len(key)))
    count = np.empty(len(key), np.intp)
    count[order] = np.arange(len(key)) - np.repeat(starts, lengths)
    return count


def _twice(records: Records, row: int) -> InputError:
    at = ", ".join(f"{k} = {parameter_value(v[row])}" for k, v in records.parameters.items())
    path = "/".join(records.paths[records.path[row]])
    number = "" if records.repetition is None else f", repetition {records.repetition[row]}"
    where = "" if records.lines is None else f" line {records.lines[row]}:"
    return InputError(
        f"{records.subject}:{where} a second value of {records.titles[records.title[row]]} "
        f"for {path} at {at}{number}",
        hint="give each repetition its own number, or add up the values of one call path",
    )


def _extent(setting: Mapping[str, float]) -> Extent:
    def count(name: str) -> int:
        value = setting.get(name, 0)
        return int(value) if 0 < value < 2**53 and value == int(value) else 0

    return Extent(count("p"), count("threads"), count("nodes"))


def _absent(row: IntArray, run: IntArray, rows: int, settings: Sequence[int]) -> BoolArray:
    """Return which call paths have no record in a run, but in a repetition of it, [rows, runs].

    Tools list a call path in a run only if it was seen there, so its cost is 0. A record without a
    value is another matter: the value is not known.

    Parameters
    ----------
    row, run : [n] call path and run of each record
    rows : number of call paths
    settings : number of the setting of each run
    """
    recorded = np.zeros((rows, len(settings)), dtype=np.bool_)
    recorded[row, run] = True
    _, setting = np.unique(settings, return_inverse=True)
    of_setting = np.zeros((rows, setting.max() + 1), dtype=np.bool_)
    of_setting[row, setting[run]] = True
    return np.asarray(of_setting[:, setting] & ~recorded)


def _columns(
    records: Records,
    tree: CallTree,
    row: IntArray,
    run: IntArray,
    absent: BoolArray,
    notices: Sequence[Notices],
) -> Iterator[_Column]:
    """Yield the exclusive values of each metric, in order of the first title."""
    # Call paths that occur only as callers of others.
    is_only_named = np.ones(len(tree), np.bool_)
    is_only_named[row] = False
    only_named = np.flatnonzero(is_only_named)

    def values(k: int, title: Title) -> FloatArray:
        mine = (records.title == k) & ~np.isnan(records.values)
        at, value = (row[records.path[mine]], run[mine]), records.values[mine]
        table = np.full((len(tree), len(notices)), np.nan)
        # The values of siblings of one name are added, or the largest is used.
        table[at] = 0.0 if title.additive else -np.inf
        with np.errstate(over="ignore", invalid="ignore"):
            (np.add if title.additive else np.maximum).at(table, at, value * title.factor)
        _note_siblings(at, table.shape, notices)
        endless = np.isinf(table)
        for of in np.flatnonzero(endless.any(axis=0)).tolist():
            count = int(endless[:, of].sum())
            notices[of].note("CPM117", records.titles[k], count, about=records.titles[k])
        table[endless] = np.nan
        if title.additive:
            table[absent & ~np.isnan(table).all(axis=0)] = 0.0
        if records.whole is not None and k in records.of_whole:
            top = row[records.whole]
            others = np.nansum(np.delete(table, top, axis=0), axis=0)
            table[top] = np.maximum(table[top] - others, 0.0)
        return table

    for name, flavours in _metrics(records, notices[0]).items():
        title = next(iter(flavours.values()))[1]
        metric = Metric(name, title.unit, _description(records, flavours), title.additive)
        tables = {inclusive: values(k, t) for inclusive, (k, t) in flavours.items()}
        column = _column(metric, tables, tree, notices)
        if list(tables) == [True] and len(tree) > 1 and (tree.parent == ROOT).all():
            # The callers are not known, so a sum would contain shared costs several times.
            message = f"{name}: {len(tree)} functions in a list without callers are inclusive"
            notices[0].note("CPM155", message, about=name)
            column = _without_total(column)
        if metric.is_time and metric.additive and title.inclusive is None:
            column = _by_looks(column, tables[False], tree, notices)
            metric = column.metric
        if metric.additive and len(only_named):
            _fill_named(column, tree, only_named)
        is_assumed = title.is_assumed or any(
            records.titles[k] in records.assumed for k, _ in flavours.values()
        )
        yield replace(column, unit_is_assumed=is_assumed)


def _by_looks(
    column: _Column, table: FloatArray, tree: CallTree, notices: Sequence[Notices]
) -> _Column:
    """Return times without a label as inclusive if they look inclusive.

    Inclusive times in a list without callers cannot be made exclusive, so they are not additive.
    """
    metric, name = column.metric, column.metric.name
    why = looks_inclusive(tree, column.exclusive)
    if why:
        notices[0].note("CPM135", f"{name}: {why}", about=name)
        return _column(metric, {True: table}, tree, notices)
    why = same_times(tree, column.exclusive)
    if why:
        notices[0].note("CPM155", f"{name}: {why}", about=name)
        return _without_total(column)
    return column


def _without_total(column: _Column) -> _Column:
    """Return a metric as not additive, without a total."""
    unknown = np.full_like(column.total, np.nan)
    return replace(column, metric=replace(column.metric, additive=False), total=unknown)


def _note_siblings(
    at: tuple[IntArray, IntArray], shape: tuple[int, ...], notices: Sequence[Notices]
) -> None:
    count = np.zeros(shape, np.intp)
    np.add.at(count, at, 1)
    for of in np.flatnonzero((count > 1).any(axis=0)).tolist():
        added = int((count[:, of] > 1).sum())
        notices[of].note("CPM112", f"{added} call paths have several rows", added)


def _metrics(records: Records, notices: Notices) -> dict[str, dict[bool, tuple[int, Title]]]:
    """Return the columns of each metric, by name and by flavour; True = inclusive."""
    metrics: dict[str, dict[bool, tuple[int, Title]]] = {}
    for k in means_first(records.titles):
        text = records.titles[k]
        title = read_title(text, records.units.get(text))
        flavours = metrics.setdefault(title.name, {})
        flavour = bool(title.inclusive) and title.additive
        if flavour in flavours:
            first = records.titles[flavours[flavour][0]]
            notices.note("CPM118", f"{first} and {text}", about=text)
        flavours.setdefault(flavour, (k, title))
    return metrics


def _description(records: Records, flavours: Mapping[bool, tuple[int, Title]]) -> str:
    titles = [records.titles[flavours[flavour][0]] for flavour in sorted(flavours)]
    return f"{titles[0]}, less that of the callees" if list(flavours) == [True] else titles[0]


def _column(
    metric: Metric, tables: Mapping[bool, FloatArray], tree: CallTree, notices: Sequence[Notices]
) -> _Column:
    if True not in tables:
        exclusive = tables[False]
        bound = np.zeros_like(exclusive)
    else:
        derived, total = exclusive_of(tree, tables[True])
        bound = _ROUNDING_OF_TABLES * np.abs(tables[True])
        exclusive = tables.get(False, derived)
    if metric.additive:
        _clip(metric, exclusive, bound, notices)
    if True not in tables:
        total = np.nansum(exclusive, axis=0) if metric.additive else np.full(len(notices), np.nan)
    return _Column(metric, exclusive, total)


def _clip(
    metric: Metric, exclusive: FloatArray, bound: FloatArray, notices: Sequence[Notices]
) -> None:
    """Replace negative values by zero, with a finding if they exceed rounding."""
    below = exclusive < -bound
    for at in np.flatnonzero(below.any(axis=0)).tolist():
        lowest, count = float(np.nanmin(exclusive[:, at])), int(below[:, at].sum())
        notices[at].note("CPM105", f"{metric.name}, down to {lowest:.3g}", count, about=metric.name)
    exclusive[exclusive < 0] = 0.0


def _fill_named(column: _Column, tree: CallTree, rows: IntArray) -> None:
    """Set callers without rows to zero cost where one of their callees occurs."""
    occurs = np.vstack(
        [
            np.zeros(column.exclusive.shape[1], np.intp)[None],
            np.cumsum(~np.isnan(column.exclusive), axis=0),
        ]
    )
    seen = occurs[tree.end[rows]] > occurs[rows]
    column.exclusive[rows] = np.where(seen, 0.0, np.nan)
