"""Threads of processes, units that the user declares, and parts of the run time of a run.

The threads of a process run side by side. Their times never add up to the time of the process, and
neither do maxima over threads, because each call path has another slowest thread. Therefore every
reader takes the times of a process from one thread, the longest one. The sums over its threads are
a metric of their own, in which call paths that only other threads run have their time.

The values of GPU streams are metrics of their own, see `Metric.on_gpu_streams`. The threads of
processes keep their metrics, so the time of a GPU is never added to the time of a CPU. Times of the
streams of a process are added, as the time that its kernels take.

They are read in passes of their own over the profile, because a maximum of sums over call paths is
not a sum of maxima. A pass sums the values of each thread over groups of call paths. A group is one
activity in one subtree, outside of the subtrees inside it. So each value is added once, and the
sums of nested subtrees are sums of groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.arrays import BoolArray, FloatArray, Int64Array, IntArray
from callpath_modeler.diagnostics import Finding, Notices
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.profile.balance import (
    PARTS,
    Activity,
    Balance,
    activities_of,
    activity_of,
    in_subtrees,
    innermost,
    parts_of,
)
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.pattern import Patterns
from callpath_modeler.profile.schema import (
    COMPUTED,
    DeclaredMetric,
    Extent,
    MetricStatus,
    Reduction,
    base_unit,
)
from callpath_modeler.profile.unify import scatter_to_union, unify
from callpath_modeler.readers.base import (
    MainThreadSource,
    ProfileSource,
    Reduced,
    ReducedSource,
    ThreadSource,
    ThreadSums,
)
from callpath_modeler.readers.reductions import BlockSink, Columns, Fold, Noticed, Reducer, is_plain
from callpath_modeler.units import counted, percent

_MATTERS = 0.01
"""Share of the time of the longest thread from which on a call path of other threads is named."""


def fold_of(declared: DeclaredMetric) -> Fold:
    """Return the statistic over threads or GPU streams that makes a metric of a process."""
    metric = declared.metric
    if metric.is_on_gpu_streams and metric.additive:
        return Fold.SUM
    if metric.can_be_run_time:
        return Fold.LONGEST
    return Fold.MAX if metric.is_time and not metric.is_of_all_threads else Fold.SUM


def run_time_metric(metrics: Sequence[DeclaredMetric]) -> str:
    """Return the first duration with values, whose totals decide which thread is longest, or ""."""
    return next(
        (
            each.metric.name
            for each in metrics
            if each.metric.can_be_run_time and each.status is MetricStatus.DATA
        ),
        "",
    )


def result_of(
    reducer: Reducer,
    declared: DeclaredMetric,
    notices: Notices,
    tree: CallTree,
    scale: float = 1.0,
) -> Reduced:
    """Return the result of a reducer to which all values were added.

    For a duration, it has the run time, and there may be a finding about call paths that only other
    threads than the longest ones run.

    Parameters
    ----------
    reducer : the reducer
    declared : the metric
    notices : findings about the profile
    tree : the call tree
    scale : factor from the values of the file to SI base units
    """
    run_time = float("nan")
    if declared.metric.can_be_run_time:
        longest = reducer.largest_total()
        note_others(notices, declared.metric.name, reducer.noticed, tree, longest)
        run_time = longest * scale
    factor = 1.0 if reducer.reduction is Reduction.IMBALANCE else scale
    total = reducer.total() * factor if declared.metric.additive else float("nan")
    return Reduced(reducer.values * factor, total, reducer.imbalance, run_time)


def note_others(
    notices: Notices, metric: str, noticed: Noticed, tree: CallTree, longest: float
) -> None:
    """Add a finding about call paths that only other threads than the longest ones run.

    Waiting of these threads is not reported.

    Parameters
    ----------
    notices : findings about the profile
    metric : name of the duration
    noticed : counts of reading its values
    tree : the call tree
    longest : time of the longest thread, in the unit of `noticed`
    """
    is_waiting = np.array([activity_of(region) is Activity.THREADING for region in tree.regions])
    others = {
        row: largest
        for row, largest in noticed.others.items()
        if largest > _MATTERS * longest and not is_waiting[tree.region[row]]
    }
    if others:
        row = max(others, key=lambda row: others[row])
        what, share = counted(len(others), "call path"), percent(others[row] / longest)
        message = f"{metric}: {what}, the longest {tree.path(row)} with {share} of the run time"
        notices.note("CPM173", message, len(others), about=metric)


def note_invalid(notices: Notices, metric: str, noticed: Noticed, tree: CallTree) -> None:
    """Add findings about values that are not finite, and about values below zero.

    Parameters
    ----------
    notices : findings about the profile
    metric : name of the metric
    noticed : counts of reading its values
    tree : the call tree
    """
    if noticed.not_finite:
        count = noticed.not_finite
        notices.note("CPM117", f"{metric}: {count} values", count, about=metric)
    if noticed.negative:
        lowest = f"the lowest {noticed.worst:.3g} in {tree.path(noticed.worst_row)}"
        message = f"{metric}: {noticed.negative} values, {lowest}"
        notices.note("CPM105", message, noticed.negative, about=metric)


def with_longest_threads(
    columns: Columns, source: ThreadSource, metrics: Sequence[DeclaredMetric], call_paths: int
) -> Columns:
    """Return columns with the longest thread of each process.

    The first duration of a profile decides, also for other durations. So all times of a process are
    of one thread.

    Parameters
    ----------
    columns : the threads of each process
    source : the profile with the values of these threads
    metrics : the metrics of the profile
    call_paths : number of call paths of the profile

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    if columns.threads == 1:
        return columns
    totals, name = np.zeros(columns.stored), run_time_metric(metrics)
    if name:
        sums = source.sums_of_threads(name, np.zeros(call_paths, np.intp), 1)
        totals[columns.threads_in_order[1]] = sums.values[0]
    return columns.with_longest(totals)


_CODE = "CPM110"


def note_streams(notices: Notices, streams: int, *, unowned: int = 0, others: int = 0) -> None:
    """Add findings about the locations of a profile that are no threads of processes.

    Parameters
    ----------
    notices : findings of the profile
    streams : number of GPU streams whose values are separate metrics
    unowned : number of GPU streams whose process is unknown, and whose values are not used
    others : number of locations that are neither threads nor GPU streams, which are not used
    """
    if streams:
        message = f"{counted(streams, 'GPU stream')}, whose values are separate metrics"
        notices.note(_CODE, message, streams, about="streams")
    if unowned:
        message = (
            f"the process of {counted(unowned, 'GPU stream')} is unknown, so values are excluded"
        )
        notices.note(_CODE, message, unowned, about="unowned")
    if others:
        message = f"values of {counted(others, 'location')} of another kind are excluded"
        notices.note(_CODE, message, others, about="others")


def no_threads(metric: str) -> DataError:
    """Return the error for values of single threads of a metric that has GPU streams instead."""
    return DataError(
        f"{metric} has values of GPU streams, not of single threads",
        hint="choose a metric of the threads with -m; `cpmodel info` lists the metrics",
    )


_UNKNOWN = frozenset({"1", "", "ticks"})
"""Units that stand for an unknown unit; a tick belongs to a clock of unknown rate."""


class DeclaredUnits(Struct, frozen=True):
    """The metrics of a profile, with the units that the user gave.

    Attributes
    ----------
    declared : metrics of the profile, with these units
    factors : conversion factor from the reader's values to SI base units, by metric
    """

    declared: tuple[DeclaredMetric, ...]
    factors: Mapping[str, float]

    def converted(self, metric: str, found: Reduced, reduction: Reduction) -> Reduced:
        """Return the values of a metric in SI base units."""
        factor = self.factors.get(metric, 1.0)
        # The imbalance is a ratio without a unit.
        if factor == 1.0 or reduction is Reduction.IMBALANCE:
            return found
        return replace(
            found,
            exclusive=found.exclusive * factor,
            total=found.total * factor,
            run_time=found.run_time * factor,
        )

    def findings(self, subject: str, metrics: Iterable[str], reduction: Reduction) -> list[Finding]:
        """Return a finding for each metric whose unit is assumed to be seconds.

        Tables get no finding: their titles state units, and their format defines seconds as the
        unit of a column `time`.
        """
        if reduction is Reduction.GIVEN:
            return []
        assumed = {d.metric.name for d in self.declared if d.unit_is_assumed}
        message = "the profile states no unit, so seconds are assumed"
        return [
            Finding("CPM160", subject, f"{name}: {message}") for name in metrics if name in assumed
        ]


def in_given_units(
    declared: Sequence[DeclaredMetric], units: Mapping[str, str], extent: Extent
) -> DeclaredUnits:
    """Return the metrics of a profile, with the units that the user gave.

    Parameters
    ----------
    declared : metrics of the profile
    units : unit by metric name
    extent : number of processes and threads of the run

    Raises
    ------
    UsageError
        If the profile states the unit of the metric, or if a duration would be a sum over threads.
    """
    found, factors = [], {}
    for each in declared:
        metric = each.metric
        # Values on GPU streams have the unit of those on threads.
        stated = metric.name if metric.name in units else metric.of_threads
        if stated not in units:
            found.append(each)
            continue
        unit, factor = base_unit(units[stated])
        if not each.unit_is_assumed and metric.unit not in _UNKNOWN:
            raise UsageError(
                f"--unit {stated}={units[stated]}: the profile states the unit "
                f"of {metric.name}, and values are converted to {metric.unit}",
                hint="omit the option",
            )
        if unit == "s" and not metric.is_time and metric.unit != "ticks" and extent.threads > 1:
            raise UsageError(
                f"--unit {stated}={units[stated]}: values of {metric.name} are sums "
                "over the threads of a process, and durations of threads do not add up",
                hint="model the metric as a number, without --unit",
            )
        factors[metric.name] = factor
        told = replace(metric, unit=unit)
        found.append(structs.replace(each, metric=told, unit_is_assumed=False))
    return DeclaredUnits(tuple(found), factors)


class GroupSums(BlockSink):
    """Sums of blocks of exclusive values over groups of call paths, for each thread.

    Missing values count as zero.
    """

    def __init__(self, columns: Columns, group: IntArray, groups: int) -> None:
        super().__init__(columns)
        self._group = group
        self._sums = np.zeros((groups, columns.stored))

    def add(
        self,
        rows: Int64Array,
        block: FloatArray,
        within: Callable[[IntArray], FloatArray] | None = None,
    ) -> None:
        """Add the values of call paths, as described in `BlockSink.add`."""
        if not len(rows):
            return
        if not is_plain(block):
            self._clear(rows, block, within)
            block[np.isnan(block)] = 0.0
        group = self._group[rows]
        order = np.argsort(group, kind="stable")
        order = order[np.searchsorted(group[order], 0) :]
        if not len(order):
            return
        of_block = group[order]
        begins = np.flatnonzero(np.diff(of_block, prepend=-1))
        # Damaged values may be huge.
        with np.errstate(over="ignore"):
            self._sums[of_block[begins]] += np.add.reduceat(block[order], begins, axis=0)

    def result(self, scale: float = 1.0) -> ThreadSums:
        """Return the sums; no more blocks can be added.

        Parameters
        ----------
        scale : factor to SI base units
        """
        process, column = self._columns.threads_in_order
        is_sorted = np.array_equal(column, np.arange(self._columns.stored))
        # The sums may take most of the memory, so they are copied only if they must be.
        values = self._sums if is_sorted else self._sums[:, column]
        with np.errstate(over="ignore"):
            values *= scale
        return ThreadSums(values, process)


_HELD = 1 << 28
"""Memory for the sums of one pass, in bytes."""
_MOST = 500
"""Largest number of subtrees of a run."""
_LEAST = 1e-3
"""Smallest share of the time; smaller subtrees have no separate parts."""
_LARGEST = 1e15
"""Largest plausible time of a thread in seconds; larger ones come from damaged files."""
_INSTRUCTIONS = ("papi_tot_ins", "instructions", "inst_retired:any_p", "perf::instructions")
_CYCLES = ("papi_tot_cyc", "cycles", "cpu-cycles", "perf::cycles", "perf::cpu-cycles")
"""Names of counters in lower case, the most common first."""
_ADDING = (Reduction.MEAN, Reduction.SUM, Reduction.MAX)
"""Reductions whose values of call paths select the costliest subtrees, the best first."""


class BalanceRequest(Struct, frozen=True):
    """Request for parts of the time.

    Attributes
    ----------
    metric : name of the time; None = the first duration
    ignore : patterns of call paths that are left out with their subtrees
    """

    metric: str | None = None
    ignore: tuple[str, ...] = ()


def read_balance(source: ProfileSource, stated: DeclaredUnits, request: BalanceRequest) -> Balance:
    """Return the parts of the run time of the program and of its costliest subtrees.

    Parameters
    ----------
    source : the opened profile
    stated : its metrics in the units that the user gave
    request : what is read

    Returns
    -------
    Balance
        Its `rows` are rows of the call tree of the profile. Of call paths that share a row of the
        common tree, it is the first one.

    Raises
    ------
    DataError
        If the profile has no values of single threads, or no time. The message does not name it.
    InputError
        If the file cannot be read.
    """
    if not isinstance(source, ThreadSource):
        raise DataError(
            "profiles of this format have no values of single threads",
            hint="measure with Score-P, HPCToolkit or TAU, which store them",
        )
    metric = _time_of(stated.declared, request.metric)
    tree = source.call_tree
    united = unify([tree])
    own, merged = united.rows[0], united.tree
    ignored = _ignored(merged, request.ignore)
    if ignored.all():
        raise DataError("--ignore excludes all call paths", hint="give patterns that match fewer")
    cost = _costs(source, metric, merged, own)
    cost[ignored] = 0.0
    activity = activities_of(merged)
    threads = max(1, source.extent.processes) * max(1, source.extent.threads)
    chosen, left_out = _costliest(merged, cost, threads)
    home = innermost(merged, chosen) + 1
    subtrees, activities = len(chosen) + 1, len(Activity)
    group = np.where(ignored, ROOT, home * activities + activity)[own]
    sums = source.sums_of_threads(metric, group, subtrees * activities)
    if isinstance(source, MainThreadSource):
        is_main = source.main_threads()
        sums = ThreadSums(sums.values[:, is_main], sums.process[is_main])
    time = sums.values.reshape(subtrees, activities, -1)
    time *= stated.factors.get(metric, 1.0)
    if not (time <= _LARGEST).all():
        raise DataError(
            f"a thread has more than {_LARGEST:g} s of {metric}", hint="measure the run again"
        )
    outer = _outer(merged, chosen)
    parts = np.empty((subtrees, PARTS))
    # Inner subtrees come after outer ones, so every subtree is complete when its turn comes.
    for k in range(subtrees - 1, -1, -1):
        parts[k] = parts_of(time[k], sums.process)
        if k:
            time[outer[k]] += time[k]
    first = np.full(len(merged), ROOT, np.intp)
    first[own[::-1]] = np.arange(len(tree))[::-1]
    counted = np.where(activity == Activity.COMPUTATION, np.where(ignored, ROOT, home), ROOT)[own]
    return Balance(
        np.concatenate([[ROOT], first[chosen]]),
        parts,
        len(sums.process),
        _counter(source, stated.declared, _INSTRUCTIONS, counted, outer),
        _counter(source, stated.declared, _CYCLES, counted, outer),
        bool((activity == Activity.COMMUNICATION).any()),
        left_out,
    )


def _time_of(declared: Sequence[DeclaredMetric], wanted: str | None) -> str:
    """Return the name of the time whose parts are read."""
    timed = [
        d.metric.name
        for d in declared
        if d.metric.can_be_run_time and d.status is MetricStatus.DATA
    ]
    if wanted is None and timed:
        return timed[0]
    if wanted not in timed or wanted is None:
        raise DataError(
            f"{wanted!r} is no time of threads that adds up over call paths"
            if wanted
            else "it has no time of call paths",
            hint=f"times: {', '.join(timed)}" if timed else "see `cpmodel info`",
        )
    return wanted


def _ignored(tree: CallTree, patterns: Sequence[str]) -> BoolArray:
    """Return which call paths are in a subtree that a pattern names."""
    named = np.zeros(len(tree), np.bool_)
    if patterns:
        names = Patterns.of(tree)
        for pattern in patterns:
            named |= names.match(pattern)
    return in_subtrees(tree, np.flatnonzero(named))


def _costs(source: ProfileSource, metric: str, merged: CallTree, own: IntArray) -> FloatArray:
    """Return exclusive times of call paths, which only select the costliest subtrees.

    They are sums over threads, because call paths of workers have factors as well.
    """
    known = source.reductions if isinstance(source, ReducedSource) else COMPUTED
    how = next((each for each in _ADDING if each in known), known[0])
    declared = next(each for each in source.metrics if each.metric.name == metric)
    sums = declared.of_all_threads().metric.name
    chosen = sums if any(each.metric.name == sums for each in source.metrics) else metric
    values = scatter_to_union(source.reduce(chosen, how).exclusive, own, len(merged))
    return np.nan_to_num(values)


def _costliest(tree: CallTree, cost: FloatArray, threads: int) -> tuple[IntArray, int]:
    """Return the rows of the costliest subtrees, ascending, and the number of those left out."""
    whole = tree.inclusive(cost)
    total = float(cost.sum())
    worth = np.flatnonzero(whole >= _LEAST * total) if total > 0 else np.empty(0, np.intp)
    most = min(_MOST, max(1, _HELD // (8 * len(Activity) * threads)))
    costliest = worth[np.argsort(-whole[worth], kind="stable")][:most]
    return np.sort(costliest), len(worth) - len(costliest)


def _outer(tree: CallTree, chosen: IntArray) -> IntArray:
    """Return, for the program and each subtree, the next subtree around it; 0 = the program."""
    found = np.zeros(len(chosen) + 1, np.intp)
    open_: list[int] = []
    for position, row in enumerate(chosen.tolist(), start=1):
        while open_ and tree.end[chosen[open_[-1] - 1]] <= row:
            open_.pop()
        found[position] = open_[-1] if open_ else 0
        open_.append(position)
    return found


def _counter(
    source: ThreadSource,
    declared: Sequence[DeclaredMetric],
    names: Sequence[str],
    group: IntArray,
    outer: IntArray,
) -> FloatArray:
    """Return the sum of a counter over the computation of each subtree; NaN = not measured."""
    measured = {
        d.metric.name.lower(): d.metric.name
        for d in declared
        if d.status is MetricStatus.DATA and d.metric.additive
    }
    name = next((measured[each] for each in names if each in measured), None)
    if name is None:
        return np.full(len(outer), np.nan)
    found = source.sums_of_threads(name, group, len(outer)).values.sum(axis=1)
    for k in range(len(outer) - 1, 0, -1):
        found[outer[k]] += found[k]
    return np.where(found > 0, found, np.nan)
