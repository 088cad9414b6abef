"""Profile of a replayed trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

import numpy as np

from callpath_modeler.arrays import FloatArray, Int64Array, IntArray
from callpath_modeler.diagnostics import Finding, Notices
from callpath_modeler.errors import InputError
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.placement import Placement
from callpath_modeler.profile.schema import (
    DeclaredMetric,
    Extent,
    Metric,
    MetricStatus,
    Reduction,
    base_unit,
)
from callpath_modeler.readers.base import Reduced, ThreadSums
from callpath_modeler.readers.reductions import BlockSink, Columns, Fold, GroupSums, Reducer
from cpmodel_otf2.definitions import Location, MetricMember, TraceDefinitions
from cpmodel_otf2.events import EventSource
from cpmodel_otf2.paths import PathTable
from cpmodel_otf2.replay import Replay
from cpmodel_otf2.replay_totals import ReplayTotals
from cpmodel_otf2.samples import Counters, is_cost
from cpmodel_otf2.threads import Forks

_BLOCK = 1 << 21
"""Number of values that are reduced together."""

_OWN = {
    "time": Metric("time", "s", "Time"),
    "visits": Metric("visits", "1", "Number of visits"),
    "bytes_sent": Metric("bytes_sent", "B", "Bytes sent in messages and collectives"),
    "bytes_received": Metric("bytes_received", "B", "Bytes received in messages and collectives"),
    "messages_sent": Metric("messages_sent", "1", "Messages sent from one process to another"),
    "messages_received": Metric("messages_received", "1", "Messages received from one process"),
    "collectives": Metric("collectives", "1", "Collective operations"),
    "bytes_put": Metric("bytes_put", "B", "Bytes written to the memory of other processes"),
    "bytes_get": Metric("bytes_get", "B", "Bytes read from the memory of other processes"),
}


class TraceProfile:
    """Profile of a trace.

    Raises
    ------
    InputError
        If events cannot be read, or there are no calls.
    """

    def __init__(self, path: Path, source: EventSource) -> None:
        self._path = path
        self._definitions = source.definitions
        self._creator = source.creator
        self._notices = Notices(str(path))
        self._locations = _threads(source.definitions)
        if not self._locations:
            raise InputError(
                f"{path}: no location is a thread of a process", hint="check the measurement"
            )
        self.columns = Columns.of(np.array([x.group for x in self._locations]))
        self._paths = PathTable()
        self._tallies = _replayed(source, self._locations, self._paths)
        self._tree, self._rows = self._paths.tree(source.definitions.regions)
        if not len(self._tree):
            self._refuse()
        self._scales: dict[str, float] = {}
        self._metrics = self._declared()
        self._note(source)

    @property
    def call_tree(self) -> CallTree:
        """Return the call paths of all locations, in order of appearance."""
        return self._tree

    @property
    def metrics(self) -> Sequence[DeclaredMetric]:
        """Return the metrics of the replay and the metrics in the trace."""
        return tuple(self._metrics.values())

    @property
    def extent(self) -> Extent:
        """Return the number of processes, threads and nodes."""
        groups = self._definitions.location_groups
        nodes = {groups[x.group].node for x in self._locations if x.group in groups}
        known = [k for k in nodes if self._definitions.node_classes.get(k) == "node"]
        return Extent(self.columns.processes, self.columns.threads, len(known))

    @property
    def metadata(self) -> Mapping[str, str]:
        """Return the creator of the trace and the program, if they are known."""
        program = next((tally.program for tally in self._tallies if tally.program), "")
        known = {
            "creator": self._creator,
            "program": PurePath(program).name,
            "command line": program,
        }
        return {key: value for key, value in known.items() if value}

    def findings(self) -> Sequence[Finding]:
        """Return the findings about the trace."""
        return self._notices.findings()

    def reduce(self, metric: str, over_locations: Reduction) -> Reduced:
        """Return one exclusive value per call path.

        Raises
        ------
        KeyError
            If the metric does not exist, or call paths cannot have a cost in it.
        """
        declared = self._readable(metric)
        fold = Fold.MAX if declared.metric.is_time else Fold.SUM
        reducer = Reducer(len(self._tree), self.columns, fold, over_locations)
        for rows, block in self._blocks(metric):
            reducer.mark_missing(block)
            reducer.add(rows, block)
        totals = np.array([[tally.totals.get(metric, 0.0) for tally in self._tallies]])
        reducer.add_to_total(totals)
        self._note_values(metric, reducer)
        scale = 1.0 if over_locations is Reduction.IMBALANCE else self._scales[metric]
        run_time = float("nan")
        if declared.metric.is_time:
            run_time = reducer.largest_total() * self._scales[metric]
        total = reducer.total() * scale
        return Reduced(reducer.values * scale, total, reducer.imbalance, run_time)

    def sums_of_threads(self, metric: str, group: IntArray, groups: int) -> ThreadSums:
        """Return sums of exclusive values over groups of call paths, for each thread.

        Raises
        ------
        KeyError
            If the metric does not exist, or call paths cannot have a cost in it.
        """
        self._readable(metric)
        sums = GroupSums(self.columns, group, groups)
        for rows, block in self._blocks(metric):
            sums.mark_missing(block)
            sums.add(rows, block)
        self._note_values(metric, sums)
        return sums.result(self._scales[metric])

    def placement(self) -> Placement:
        """Return MPI ranks and compute nodes of the processes."""
        definitions = self._definitions
        process, column = self.columns.threads_in_order
        first = np.flatnonzero(np.diff(process, prepend=-1))
        main = [self._locations[k] for k in column[first].tolist()]
        ranks = np.array([definitions.ranks.get(x.reference, -1) for x in main], np.intp)
        if (ranks < 0).any() or len(np.unique(ranks)) < len(ranks):
            ranks = np.arange(len(main))
        nodes = []
        for location in main:
            group = definitions.location_groups.get(location.group)
            at = None if group is None else group.node
            is_node = definitions.node_classes.get(at) == "node" if at is not None else False
            nodes.append(definitions.node_names.get(at, "") if at is not None and is_node else "")
        return Placement(ranks, tuple(nodes))

    def _readable(self, metric: str) -> DeclaredMetric:
        declared = self._metrics[metric]
        if declared.status not in {MetricStatus.DATA, MetricStatus.ABSENT}:
            raise KeyError(metric)
        return declared

    def per_location(self, metric: str) -> FloatArray:
        """Return every exclusive value, [call paths, threads], in SI base units."""
        return self._block(metric, 0, len(self._tree)) * self._scales[metric]

    def _blocks(self, metric: str) -> Iterator[tuple[Int64Array, FloatArray]]:
        """Yield rows of the call tree with their values, [rows x locations]."""
        step = max(1, _BLOCK // self.columns.stored)
        for first in range(0, len(self._tree), step):
            rows = np.arange(first, min(first + step, len(self._tree)))
            yield rows, self._block(metric, first, len(rows))

    def _block(self, metric: str, first: int, count: int) -> FloatArray:
        block = np.zeros((count, len(self._tallies)))
        for column, tally in enumerate(self._tallies):
            if metric in tally.cells:
                paths, values = tally.cells[metric]
                rows = self._rows[paths] - first
                here = (rows >= 0) & (rows < count)
                block[rows[here], column] = values[here]
        return block

    def _declared(self) -> dict[str, DeclaredMetric]:
        declared = {}
        found = {name for tally in self._tallies for name in tally.cells}
        for name, metric in _OWN.items():
            self._scales[name] = 1 / self._definitions.ticks_per_second if name == "time" else 1.0
            status = MetricStatus.DATA if name in found else MetricStatus.ABSENT
            note = "" if name in found else "the trace has no such events"
            declared[name] = DeclaredMetric(metric, status, note)
        for member in _members(self._definitions):
            if member.name in declared:
                self._notices.note("CPM118", f"metric {member.name}", about=member.name)
                continue
            unit, scale = base_unit(member.unit)
            self._scales[member.name] = scale * member.scale
            metric = Metric(member.name, unit, member.description)
            declared[member.name] = DeclaredMetric(metric, *_status(member, found))
        return declared

    def _refuse(self) -> None:
        if any(tally.sampled for tally in self._tallies):
            raise InputError(
                f"{self._path}: the trace has samples of calling contexts, but no calls",
                hint="measure with SCOREP_TRACING_CONVERT_CALLING_CONTEXT_EVENTS=true",
            )
        raise InputError(f"{self._path}: the trace has no calls of regions", hint="repeat the run")

    def _note(self, source: EventSource) -> None:
        for finding in source.findings():
            self._notices.note(finding.code, finding.message, finding.count, finding.message)
        left_out = sum(map(self._definitions.is_accelerator, self._definitions.locations))
        if left_out:
            self._notices.note("CPM110", f"{left_out} locations are not CPU threads", left_out)
        unreadable = [d.metric.name for d in self.metrics if d.status is MetricStatus.UNSUPPORTED]
        if unreadable:
            self._notices.note("CPM107", ", ".join(unreadable[:4]), len(unreadable))
        open_regions = sum(tally.left_open for tally in self._tallies)
        if open_regions:
            self._notices.note("CPM127", f"{open_regions} regions are never left", open_regions)
        outside = sum(tally.outside for tally in self._tallies)
        if outside:
            message = f"{outside} messages and operations are outside all regions"
            self._notices.note("CPM133", message, outside)
        mended = sum(tally.mended for tally in self._tallies)
        if mended:
            self._notices.note(
                "CPM128", f"{mended} calls without return, or returns without call", mended
            )
        paused = sum(tally.paused for tally in self._tallies) * self._scales["time"]
        if paused > 0:
            count = sum(tally.paused > 0 for tally in self._tallies)
            message = f"{paused:.3g} s of {count} locations are excluded"
            self._notices.note("CPM129", message, count)

    def _note_values(self, metric: str, reducer: BlockSink) -> None:
        noticed = reducer.noticed
        if noticed.not_finite:
            message = f"{metric}: {noticed.not_finite} values"
            self._notices.note("CPM117", message, noticed.not_finite, about=metric)
        if noticed.negative:
            where = self._tree.path(noticed.worst_row)
            message = f"{metric}: {noticed.negative} values, the lowest in {where}"
            self._notices.note("CPM105", message, noticed.negative, about=metric)


def _threads(definitions: TraceDefinitions) -> list[Location]:
    """Return the threads of processes; each thread follows the one that started it."""
    threads = [x for x in definitions.locations if definitions.is_thread(x)]
    ranks = definitions.ranks
    return sorted(threads, key=lambda x: (x.group, x.reference not in ranks, x.reference))


def _replayed(
    source: EventSource, locations: Sequence[Location], paths: PathTable
) -> list[ReplayTotals]:
    forks, tallies = Forks(), []
    for location in locations:
        replay = Replay(paths, forks, Counters(source.definitions.metric_classes))
        for batch in source.batches(location):
            replay.add(batch)
        tallies.append(replay.finish())
    return tallies


def _members(definitions: TraceDefinitions) -> list[MetricMember]:
    """Return the metrics of a trace without duplicates."""
    found = (member for used in definitions.metric_classes.values() for member in used)
    return [member for member in dict.fromkeys(found) if member.name]


def _status(member: MetricMember, found: set[str]) -> tuple[MetricStatus, str]:
    if not is_cost(member):
        return (
            MetricStatus.UNSUPPORTED,
            "a level at a point in time, which is not the cost of a call path",
        )
    if member.name not in found:
        return MetricStatus.ABSENT, "not sampled in any call"
    return MetricStatus.DATA, ""
