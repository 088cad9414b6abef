"""Threads of processes in profiles: the longest one gives the times; GPU streams are no threads.

The threads of a process run side by side. Their times never add up to the time of the process, and
neither do maxima over threads, because each call path has another slowest thread. Therefore every
reader takes the times of a process from one thread, the longest one. The sums over its threads are
a metric of their own, in which call paths that only other threads run have their time.

The values of GPU streams are metrics of their own, see `Metric.on_gpu_streams`. The threads of
processes keep their metrics, so the time of a GPU is never added to the time of a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from callpath_modeler.diagnostics import Notices
from callpath_modeler.errors import DataError
from callpath_modeler.profile.activities import Activity, activity_of
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import DeclaredMetric, MetricStatus
from callpath_modeler.readers.base import ThreadSource
from callpath_modeler.readers.noticed import Noticed
from callpath_modeler.readers.reductions import Columns, Fold
from callpath_modeler.units import counted, percent

_MATTERS = 0.01
"""Share of the time of the longest thread from which on a call path of other threads is named."""


def fold_of(declared: DeclaredMetric) -> Fold:
    """Return the statistic over threads with which a metric of a process is made."""
    metric = declared.metric
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
