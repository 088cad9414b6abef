"""Profile of a replayed trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePath

import numpy as np

from callpath_modeler.arrays import FloatArray, Int64Array, IntArray
from callpath_modeler.diagnostics import Finding, Notices
from callpath_modeler.errors import InputError
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import (
    DeclaredMetric,
    Extent,
    Metric,
    MetricStatus,
    Placement,
    Reduction,
    base_unit,
)
from callpath_modeler.readers.base import Reduced, ThreadSums
from callpath_modeler.readers.reductions import Columns, Reducer
from callpath_modeler.readers.threads import (
    GroupSums,
    fold_of,
    no_threads,
    note_invalid,
    note_streams,
    result_of,
    with_longest_threads,
)
from cpmodel_otf2.definitions import (
    KERNELS_REGION,
    PROGRAM_REGION,
    UNRESOLVED,
    Location,
    MetricMember,
    TraceDefinitions,
)
from cpmodel_otf2.events import EventSource
from cpmodel_otf2.paths import OUTSIDE, PathTable
from cpmodel_otf2.replay import Counters, Forks, Replay, ReplayTotals, is_cost

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


@dataclass(frozen=True, slots=True)
class _Replayed:
    """Values of the threads of processes, or of their GPU streams.

    Attributes
    ----------
    columns : process of each location
    totals : [locations] what each location spent
    """

    columns: Columns
    totals: Sequence[ReplayTotals]

    def block(self, metric: str, row: Int64Array, first: int, count: int) -> FloatArray:
        """Return the values of `count` rows of the call tree, [count, locations].

        Parameters
        ----------
        row : [ids] row of each call path
        first : first row
        """
        block = np.zeros((count, len(self.totals)))
        for column, of_location in enumerate(self.totals):
            if metric in of_location.cells:
                paths, values = of_location.cells[metric]
                rows = row[paths] - first
                here = (rows >= 0) & (rows < count)
                block[rows[here], column] = values[here]
        return block

    @property
    def names(self) -> set[str]:
        """Names of the metrics with a value other than zero."""
        return {
            name for each in self.totals for name, (paths, _) in each.cells.items() if len(paths)
        }


@dataclass(frozen=True, slots=True)
class _StoredMetric:
    """A metric and its values.

    Attributes
    ----------
    declared : metric as users see it
    name : name in the values of the replay
    scale : factor to SI base units
    replayed : values of the locations
    """

    declared: DeclaredMetric
    name: str
    scale: float
    replayed: _Replayed


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
        self._paths = PathTable()
        self._threads = _replayed(
            source, self._paths, {x: x.group for x in self._locations}, on_gpu=False
        )
        if len(self._paths) == 1:
            self._refuse()
        owned = {x: k for x, k in self._definitions.process_of_streams.items() if k != UNRESOLVED}
        self._streams = _replayed(source, self._paths, owned, on_gpu=True) if owned else None
        self._tree, self._rows = self._paths.tree(source.definitions.regions)
        self._metrics = self._stored()
        self._note(source)

    @property
    def columns(self) -> Columns:
        """Return the threads of each process."""
        return self._threads.columns

    @property
    def call_tree(self) -> CallTree:
        """Return the call paths of all locations, in order of appearance."""
        return self._tree

    @property
    def metrics(self) -> Sequence[DeclaredMetric]:
        """Return the metrics of the replay, the metrics in the trace, and those of GPU streams."""
        return tuple(stored.declared for stored in self._metrics.values())

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
        program = next((each.program for each in self._threads.totals if each.program), "")
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
        stored = self._readable(metric)
        declared, locations = stored.declared, stored.replayed
        is_longest = declared.metric.can_be_run_time
        columns = self._with_longest if is_longest else locations.columns
        reducer = Reducer(len(self._tree), columns, fold_of(declared), over_locations)
        for rows, block in self._blocks(stored):
            reducer.mark_missing(block)
            reducer.add(rows, block)
        totals = np.array([[each.totals.get(stored.name, 0.0) for each in locations.totals]])
        reducer.add_to_total(totals)
        note_invalid(self._notices, metric, reducer.noticed, self._tree)
        return result_of(reducer, declared, self._notices, self._tree, stored.scale)

    def sums_of_threads(self, metric: str, group: IntArray, groups: int) -> ThreadSums:
        """Return sums of exclusive values over groups of call paths, for each thread.

        Raises
        ------
        KeyError
            If the metric does not exist, or call paths cannot have a cost in it.
        DataError
            If the metric has values of GPU streams.
        """
        stored = self._readable(metric)
        if stored.declared.metric.is_on_gpu_streams:
            raise no_threads(metric)
        sums = GroupSums(self.columns, group, groups)
        for rows, block in self._blocks(stored):
            sums.mark_missing(block)
            sums.add(rows, block)
        note_invalid(self._notices, metric, sums.noticed, self._tree)
        return sums.result(stored.scale)

    def placement(self) -> Placement:
        """Return MPI ranks and compute nodes of the processes."""
        definitions = self._definitions
        process, column = self.columns.threads_in_order
        first = np.flatnonzero(np.diff(process, prepend=-1))
        main = [self._locations[k] for k in column[first].tolist()]
        ranks = np.array([definitions.ranks.get(x.reference, -1) for x in main], np.intp)
        nodes = []
        for location in main:
            group = definitions.location_groups.get(location.group)
            at = None if group is None else group.node
            is_node = definitions.node_classes.get(at) == "node" if at is not None else False
            nodes.append(definitions.node_names.get(at, "") if at is not None and is_node else "")
        return Placement.stated(ranks, tuple(nodes))

    @cached_property
    def _with_longest(self) -> Columns:
        """The threads of each process, with the longest one."""
        return with_longest_threads(self.columns, self, self.metrics, len(self._tree))

    def _readable(self, metric: str) -> _StoredMetric:
        stored = self._metrics[metric]
        if not stored.declared.status.is_readable:
            raise KeyError(metric)
        return stored

    def per_location(self, metric: str) -> FloatArray:
        """Return every exclusive value, [call paths, locations], in SI base units."""
        stored = self._metrics[metric]
        return stored.scale * stored.replayed.block(stored.name, self._rows, 0, len(self._tree))

    def _blocks(self, stored: _StoredMetric) -> Iterator[tuple[Int64Array, FloatArray]]:
        """Yield rows of the call tree with their values, [rows x locations]."""
        locations = stored.replayed
        step = max(1, _BLOCK // locations.columns.stored)
        for first in range(0, len(self._tree), step):
            rows = np.arange(first, min(first + step, len(self._tree)))
            yield rows, locations.block(stored.name, self._rows, first, len(rows))

    def _stored(self) -> dict[str, _StoredMetric]:
        """Return the metrics of threads, of their sums, and of GPU streams, by name."""
        found, streams = self._of_threads(), self._streams
        if self.columns.threads > 1:
            declared = found["time"].declared.of_all_threads()
            found[declared.metric.name] = replace(found["time"], declared=declared)
        if streams is None:
            return found
        used = streams.names
        of_threads = [each for each in found.values() if not each.declared.metric.is_of_all_threads]
        for stored in [each for each in of_threads if each.name in used]:
            declared = stored.declared.on_gpu_streams()
            name = declared.metric.name
            if name in found:
                self._notices.note("CPM118", f"metric {name}", about=name)
            elif stored.declared.status.is_readable:
                found[name] = replace(stored, declared=declared, replayed=streams)
        return found

    def _of_threads(self) -> dict[str, _StoredMetric]:
        stored: dict[str, _StoredMetric] = {}
        found = {name for each in self._threads.totals for name in each.cells}

        def add(declared: DeclaredMetric, scale: float) -> None:
            name = declared.metric.name
            stored[name] = _StoredMetric(declared, name, scale, self._threads)

        for name, metric in _OWN.items():
            status = MetricStatus.DATA if name in found else MetricStatus.ABSENT
            note = "" if name in found else "the trace has no such events"
            scale = 1 / self._definitions.ticks_per_second if name == "time" else 1.0
            add(DeclaredMetric(metric, status, note), scale)
        for member in _members(self._definitions):
            if member.name in stored:
                self._notices.note("CPM118", f"metric {member.name}", about=member.name)
                continue
            unit, scale = base_unit(member.unit)
            metric = Metric(member.name, unit, member.description)
            add(DeclaredMetric(metric, *_status(member, found)), scale * member.scale)
        return stored

    def _refuse(self) -> None:
        if any(each.sampled for each in self._threads.totals):
            raise InputError(
                f"{self._path}: the trace has samples of calling contexts, but no calls",
                hint="measure with SCOREP_TRACING_CONVERT_CALLING_CONTEXT_EVENTS=true",
            )
        raise InputError(f"{self._path}: the trace has no calls of regions", hint="repeat the run")

    def _note(self, source: EventSource) -> None:
        for finding in source.findings():
            self._notices.note(finding.code, finding.message, finding.count, finding.message)
        self._note_locations()
        unreadable = [d.metric.name for d in self.metrics if d.status is MetricStatus.UNSUPPORTED]
        if unreadable:
            self._notices.note("CPM107", ", ".join(unreadable[:4]), len(unreadable))
        replayed = [*self._threads.totals, *(self._streams.totals if self._streams else ())]
        open_regions = sum(each.left_open for each in replayed)
        if open_regions:
            self._notices.note("CPM127", f"{open_regions} regions are never left", open_regions)
        outside = sum(each.outside for each in replayed)
        if outside:
            message = f"{outside} messages and operations are outside all regions"
            self._notices.note("CPM133", message, outside)
        mended = sum(each.mended for each in replayed)
        if mended:
            self._notices.note(
                "CPM128", f"{mended} calls without return, or returns without call", mended
            )
        paused = sum(each.paused for each in replayed) * self._metrics["time"].scale
        if paused > 0:
            count = sum(each.paused > 0 for each in replayed)
            message = f"{paused:.3g} s of {count} locations are excluded"
            self._notices.note("CPM129", message, count)

    def _note_locations(self) -> None:
        processes = self._definitions.process_of_streams.values()
        unowned = sum(process == UNRESOLVED for process in processes)
        has_metrics = any(declared.metric.is_on_gpu_streams for declared in self.metrics)
        note_streams(
            self._notices,
            len(processes) - unowned if has_metrics else 0,
            unowned=unowned,
            others=sum(map(self._definitions.is_unknown, self._definitions.locations)),
        )


def _threads(definitions: TraceDefinitions) -> list[Location]:
    """Return the threads of processes; each thread follows the one that started it."""
    threads = [x for x in definitions.locations if definitions.is_thread(x)]
    ranks = definitions.ranks
    return sorted(threads, key=lambda x: (x.group, x.reference not in ranks, x.reference))


def _replayed(
    source: EventSource, paths: PathTable, processes: Mapping[Location, int], *, on_gpu: bool
) -> _Replayed:
    """Replay some locations, and add their call paths.

    Parameters
    ----------
    processes : location group of the process of each location
    on_gpu : True if the locations are GPU streams. As in profiles of Score-P, their calls are below
        KERNELS, which is below the program. It also holds the data transfers between kernels
    """
    forks, totals = Forks(), []
    programs = np.flatnonzero((paths.region == PROGRAM_REGION) & (paths.depth == 1))
    program = int(programs[0]) if len(programs) else OUTSIDE
    for location in processes:
        replay = Replay(paths, forks, Counters(source.definitions.metric_classes))
        for batch in source.batches(location):
            if on_gpu and (len(batch.calls.time) or len(batch.accesses)):
                replay.start_below(paths.callee(program, KERNELS_REGION))
            replay.add(batch)
        totals.append(replay.finish())
    return _Replayed(Columns.of(np.array([*processes.values()])), totals)


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
