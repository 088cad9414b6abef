"""Profile of host calls and GPU activities of all processes of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct, field

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.diagnostics import Finding, Notices
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import (
    DeclaredMetric,
    Extent,
    Metric,
    MetricStatus,
    Placement,
    Reduction,
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
from callpath_modeler.support.input_limits import InputLimits, Work
from cpmodel_gpu.activities import BYTES, PathValues
from cpmodel_gpu.paths import Paths

_BLOCK = 1 << 21
"""Number of values that are reduced together."""
_NANOSECOND = 1e-9

TIME = Metric("time", "s", "Time of the host")
VISITS = Metric("visits", "1", "Number of calls of the host")
_OF_THREADS = {"time": TIME, "visits": VISITS}
_OF_DEVICES: Mapping[str, Metric] = {
    "time": Metric("time", "s", "Sum of all GPU activities").on_gpu_streams(),
    "visits": Metric("visits", "1", "Number of GPU activities").on_gpu_streams(),
    "exposed": Metric("exposed GPU time", "s", "GPU activities that run alone while threads wait"),
    "busy": Metric("GPU busy", "s", "Time in which a device works, sum over devices"),
    "computation": Metric("GPU computation", "s", "Time in which a device computes"),
    "communication": Metric("GPU communication", "s", "Time in which a device communicates"),
    "overlapped": Metric(
        "overlapped GPU communication", "s", "Time in which a device communicates and computes"
    ),
    "idle": Metric("GPU idle", "s", "Time in which a device does nothing, sum over devices"),
    **{
        name: Metric(name, "B", f"Bytes: {name.removeprefix('bytes_').replace('_', ' ')}")
        for name in BYTES.values()
    },
}
"""Metrics of devices by the key of their values."""


class ProcessValues(Struct, eq=False):
    """The values of one process.

    Times are in ns.

    Attributes
    ----------
    rank : rank of the process; -1 = not known
    node : name of the compute node, or ""
    threads : values of each thread on each call path, by metric; ``"time"`` and ``"visits"`` for
        every thread. The first thread is the main one
    devices : values of all devices of the process on each call path, by the keys of `DeviceWork`
    streams : number of streams of all devices
    """

    rank: int = -1
    node: str = ""
    threads: list[dict[str, PathValues]] = field(default_factory=list)
    devices: dict[str, PathValues] = field(default_factory=dict)
    streams: int = 0


class GpuProfile:
    """Profile of a run, from the values of its processes.

    Parameters
    ----------
    paths : call paths of all processes
    processes : at least one process, each with at least one thread
    extra : further metrics of threads by the key of their values, and the factor to SI base units
    metadata : creator, program and command line, if they are known
    notices : findings of reading the file
    limits : limits of the file
    nodes : number of compute nodes; 0 = not known

    Raises
    ------
    InputError
        If the call paths have more names than the limits allow.
    """

    def __init__(
        self,
        paths: Paths,
        processes: Sequence[ProcessValues],
        notices: Notices,
        limits: InputLimits,
        *,
        extra: Mapping[str, tuple[Metric, float]] | None = None,
        metadata: Mapping[str, str] | None = None,
        nodes: int = 0,
    ) -> None:
        names = int(paths.depths().sum())
        limits.check(Work.NAMES, names, "record fewer nested ranges")
        self._processes = list(processes)
        self._notices = notices
        self._tree, self._row = paths.tree()
        owner = [k for k, each in enumerate(self._processes) for _ in each.threads]
        self.columns = Columns.of(np.array(owner, np.intp))
        self._devices = Columns.of(np.arange(len(self._processes)))
        self._extra = dict(extra or {})
        self.metadata = dict(metadata or {})
        self._nodes = nodes or len({each.node for each in processes if each.node})
        self._cells = self._stored()
        note_streams(notices, sum(each.streams for each in self._processes))

    @property
    def call_tree(self) -> CallTree:
        """Return the call paths; the activities of a launch are below it."""
        return self._tree

    @property
    def metrics(self) -> Sequence[DeclaredMetric]:
        """Return the metrics of threads, of their sums, and of GPU streams and devices."""
        return tuple(declared for declared, *_ in self._cells.values())

    @property
    def extent(self) -> Extent:
        """Return the number of processes, threads and nodes; streams are not among them."""
        return Extent(self.columns.processes, self.columns.threads, self._nodes)

    def findings(self) -> Sequence[Finding]:
        """Return the findings about the profile."""
        return self._notices.findings()

    def placement(self) -> Placement:
        """Return ranks and compute nodes of the processes."""
        ranks = np.array([each.rank for each in self._processes], np.intp)
        return Placement.stated(ranks, tuple(each.node for each in self._processes))

    def reduce(self, metric: str, over_locations: Reduction) -> Reduced:
        """Return one exclusive value per call path.

        Raises
        ------
        KeyError
            If the metric does not exist.
        """
        declared, cells, scale = self._cells[metric]
        columns = self._columns_of(declared.metric)
        if declared.metric.can_be_run_time:
            columns = self._with_longest
        reducer = Reducer(len(self._tree), columns, fold_of(declared), over_locations)
        for rows, block in self._blocks(cells):
            reducer.add_to_total(block)
            reducer.add(rows, block)
        return result_of(reducer, declared, self._notices, self._tree, scale)

    def sums_of_threads(self, metric: str, group: IntArray, groups: int) -> ThreadSums:
        """Return sums of exclusive values over groups of call paths, for each thread.

        Raises
        ------
        KeyError
            If the metric does not exist.
        DataError
            If the metric has values of GPU streams or devices.
        """
        declared, cells, scale = self._cells[metric]
        if declared.metric.is_on_gpu_streams:
            raise no_threads(metric)
        sums = GroupSums(self.columns, group, groups)
        for rows, block in self._blocks(cells):
            sums.add(rows, block)
        note_invalid(self._notices, metric, sums.noticed, self._tree)
        return sums.result(scale)

    @cached_property
    def _with_longest(self) -> Columns:
        """The threads of each process, with the longest one."""
        return with_longest_threads(self.columns, self, self.metrics, len(self._tree))

    def _columns_of(self, metric: Metric) -> Columns:
        return self._devices if metric.is_on_gpu_streams else self.columns

    def _blocks(self, cells: Sequence[PathValues]) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield rows of the call tree with their values, [rows, locations]."""
        step = max(1, _BLOCK // len(cells))
        of_location = [(self._row[path], values) for path, values in cells]
        for first in range(0, len(self._tree), step):
            rows = np.arange(first, min(first + step, len(self._tree)))
            block = np.zeros((len(rows), len(cells)))
            for column, (row, values) in enumerate(of_location):
                here = (row >= first) & (row <= rows[-1])
                block[row[here] - first, column] = values[here]
            yield rows, block

    def _stored(self) -> dict[str, tuple[DeclaredMetric, list[PathValues], float]]:
        """Return metrics by name, with the values of each location and their factor."""
        found: dict[str, tuple[DeclaredMetric, list[PathValues], float]] = {}
        threads = [thread for process in self._processes for thread in process.threads]
        devices = [process.devices for process in self._processes]
        own = {key: (metric, _factor(metric)) for key, metric in _OF_THREADS.items()}
        for key, (metric, factor) in {**own, **self._extra}.items():
            # Tables of sums have no times of threads.
            if not any(key in each for each in threads):
                continue
            found[metric.name] = _stored(metric, [_values(each, key) for each in threads], factor)
        if self.columns.threads > 1 and TIME.name in found:
            declared, cells, factor = found[TIME.name]
            sums = declared.of_all_threads()
            found[sums.metric.name] = sums, cells, factor
        for key, metric in _OF_DEVICES.items():
            if any(key in each for each in devices):
                cells = [_values(each, key) for each in devices]
                found[metric.name] = _stored(metric, cells, _factor(metric))
        return found


def _factor(metric: Metric) -> float:
    return _NANOSECOND if metric.is_time else 1.0


def _values(of_location: Mapping[str, PathValues], key: str) -> PathValues:
    return of_location.get(key, (np.empty(0, np.intp), np.empty(0, np.int64)))


def _stored(
    metric: Metric, cells: list[PathValues], factor: float
) -> tuple[DeclaredMetric, list[PathValues], float]:
    is_zero = not any(len(path) for path, _ in cells)
    status = MetricStatus.ABSENT if is_zero else MetricStatus.DATA
    note = "all values are zero" if is_zero else ""
    return DeclaredMetric(metric, status, note), cells, factor
