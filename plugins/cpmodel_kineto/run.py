"""Profile of one run from the trace files of its ranks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from callpath_modeler.diagnostics import Notices
from callpath_modeler.errors import InputError
from callpath_modeler.profile.schema import Metric, Region
from callpath_modeler.readers.base import StepRange
from callpath_modeler.support.input_limits import InputLimits, Work
from callpath_modeler.units import counted
from cpmodel_gpu import timeline
from cpmodel_gpu.activities import Copy, Intervals
from cpmodel_gpu.names import copy_region, kernel_region
from cpmodel_gpu.paths import WHOLE_PROGRAM, Paths
from cpmodel_gpu.profile import GpuProfile, ProcessValues
from cpmodel_gpu.steps import (
    NumberedRange,
    Steps,
    no_selected_step,
    note_steps,
    numbered,
    numbered_ranges,
    step_metadata,
    step_region,
    steps_of,
)
from cpmodel_kineto.columns import NONE, Calls, Category, DeviceEvents, TraceColumns, read_columns
from cpmodel_kineto.training import of_steps, training_parameters

_SLACK = 2
"""Nanoseconds by which rounding may make intervals overlap."""
_BLOCK = 1 << 17
"""Number of activities that are added together."""
_OPTIMIZER = "Optimizer.step#"
"""Beginning of the ranges in which PyTorch calls an optimizer."""
_EXTERNAL = 1 << 40
"""Added to external numbers, which are numbers of operators and not of launches."""
_SENT, _COLLECTIVES = "bytes_sent", "collectives"
_EXTRA = {
    _SENT: (Metric(_SENT, "B", "Bytes given to collective operations"), 1.0),
    _COLLECTIVES: (Metric(_COLLECTIVES, "1", "Collective operations"), 1.0),
}
_WAIT, _WAIT_ROLE = "wait for ", "wait"
_WAITED_FOR = re.compile(r"(?:gloo|mpi|ucc):\w+")
_Column = Callable[[slice], Int64Array]
_MEASURE = "profile with torch.profiler, and export with export_chrome_trace"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PYTHON = re.compile(r"(?P<file>.{1,1000})\((?P<line>\d{1,7})\): (?P<name>.+)", re.DOTALL)
_DIRECTIONS = (
    ("htod", Copy.TO_DEVICE), ("dtoh", Copy.TO_HOST), ("dtod", Copy.WITHIN), ("ptop", Copy.PEER),
    ("peer", Copy.PEER), ("host_to_device", Copy.TO_DEVICE), ("device_to_host", Copy.TO_HOST),
    ("device_to_device", Copy.WITHIN), ("copyhosttodevice", Copy.TO_DEVICE),
    ("copydevicetohost", Copy.TO_HOST), ("copydevicetodevice", Copy.WITHIN),
)  # fmt: skip


class DistributedInfo(Struct):
    """What a file states about its run; None = not stated. Groups are JSON of any form."""

    rank: int | None = None
    world_size: int | None = None
    backend: str = ""
    groups: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"[]"), name="pg_config")


def stated_in(entries: Mapping[str, bytes]) -> DistributedInfo:
    """Return what the entries of a file state about its run."""
    try:
        found = msgspec.json.decode(entries["distributedInfo"], type=DistributedInfo)
    except (KeyError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return DistributedInfo()
    if found.rank is not None and not 0 <= found.rank < 10_000_000:
        found.rank = None
    if found.world_size is not None and not 0 < found.world_size <= 10_000_000:
        found.world_size = None
    return found


class KinetoProfile(GpuProfile):
    """Profile of the ranks of one run.

    Parameters
    ----------
    files : the file of each rank; a rank of -1 is not known
    subject : the file or directory, for messages
    steps : the selected steps; None = all events

    Raises
    ------
    InputError
        If a file is no trace, if two files have the same rank, or if a file has no step that is
        selected.
    """

    def __init__(
        self, files: Sequence[tuple[int, Path]], subject: Path, steps: StepRange | None = None
    ) -> None:
        self._files, self._subject = files, subject
        notices, paths = Notices(str(subject)), Paths()
        self.world_size = 0
        self.steps: list[Steps] = []
        processes: list[ProcessValues] = []
        of_ranks: dict[str, dict[float, None]] = {}
        backend, known = "", dict[int, Path]()
        updates: list[tuple[int, int]] = []
        for rank, path in files:
            columns = read_columns(path)
            stated = stated_in(columns.entries)
            found = _Processes(path, columns, paths, steps, notices)
            own = rank if stated.rank is None else stated.rank
            if own in known and own >= 0:
                raise InputError(
                    f"{path}: rank {own} is in {known[own].name} as well",
                    hint="put the traces of each run into its own directory",
                )
            known[own] = path
            self.world_size = max(self.world_size, stated.world_size or 0)
            backend = backend or stated.backend
            own_parameters = training_parameters(columns.entries, bytes(stated.groups))
            for name, value in own_parameters.items():
                of_ranks.setdefault(name, {})[value] = None
            for process in found.values:
                process.rank = own if len(found.values) == 1 else NONE
            processes += found.values
            self.steps.append(found.steps)
            updates.append((len(found.steps), found.updates))
        self.parameters = {name: next(iter(of)) for name, of in of_ranks.items() if len(of) == 1}
        for name, of in of_ranks.items():
            if len(of) > 1:
                several = ", ".join(f"{value:g}" for value in sorted(of)[:5])
                message = f"{name} differs between ranks ({several}): it is not used"
                notices.note("CPM102", message, len(of))
        is_stated = self.world_size > max(known)
        self.parameters, message = of_steps(self.parameters, updates)
        if message:
            notices.note("CPM102", message)
        self.world_size = max(self.world_size, max(known) + 1, len(processes))
        missing = self.world_size - len(processes)
        if missing:
            least = "" if is_stated else "at least "
            ranks = sorted({*range(self.world_size)} - {each.rank for each in processes})
            names = ", ".join(map(str, ranks[:5])) + (", ..." if len(ranks) > 5 else "")
            message = (
                f"{missing} of {least}{self.world_size} ranks have no file ({names}); "
                f"p = {self.world_size}"
            )
            notices.note("CPM132", message, missing)
        note_steps(notices, self.steps, steps)
        metadata = {"creator": "PyTorch profiler" if columns.is_kineto else "Chrome trace"}
        if backend:
            metadata["backend"] = backend
        metadata |= step_metadata(self.steps)
        size = sum(path.stat().st_size for _, path in files)
        super().__init__(
            paths, processes, notices, InputLimits.of(subject, size), extra=_EXTRA,
            metadata=metadata,
        )  # fmt: skip

    def main_threads(self) -> BoolArray:
        """Return which threads do the work of their process.

        Other threads communicate, or run the backward pass while the main thread waits for them.
        """
        process, _ = self.columns.threads_in_order
        return np.asarray(np.diff(process, prepend=NONE) > 0)

    def with_steps(self, steps: StepRange) -> KinetoProfile:
        """Return the same profile with the selected steps only."""
        return KinetoProfile(self._files, self._subject, steps)


class _Processes:
    """The processes of one file.

    Attributes
    ----------
    values : their values
    steps : the selected steps
    updates : calls of the optimizer in these steps
    """

    def __init__(
        self,
        path: Path,
        columns: TraceColumns,
        paths: Paths,
        selected: StepRange | None,
        notices: Notices,
    ) -> None:
        self._columns, self._paths = columns, paths
        self._region = _regions(columns, paths)
        steps = steps_of(_numbered_ranges(columns))
        self._process, self._thread, self._main = _threads(columns, steps)
        # Statistics over the threads of a process take the square of their number.
        most = int(np.bincount(self._process, minlength=1).max())
        InputLimits.of(path).check(Work.CELLS, most**2, "record fewer threads")
        self._is_selected = selected is not None
        self.steps = steps
        if selected is not None:
            self.steps = steps.take(selected.selects(steps.number))
            if not len(self.steps):
                raise no_selected_step(path, [steps])
        self.updates = _updates(columns, self.steps)
        if not columns.calls and not len(columns.activities.start):
            raise InputError(f"{path}: the trace has no events with a duration", hint=_MEASURE)
        starts = [int(each.start.min()) for each in columns.calls]
        if len(columns.activities.start):
            starts.append(int(columns.activities.start.min()))
        self._origin = min(starts)
        self._timeline = timeline.Timeline(paths, _SLACK)
        correlation = self._correlations(columns.activities)
        waits = self._waits()
        self._add_calls()
        if waits is not None:
            self._timeline.add_calls(waits)
        self._timeline.nest()
        self._add_activities(columns.activities, correlation)
        del correlation
        columns.activities = columns.activities.none()
        found = self._timeline.values()
        self.values = [found[number] for number in sorted(found)]
        for process in self.values:
            # Traces of a series may differ in this, and the one without operations has zero.
            for name in (_SENT, _COLLECTIVES):
                process.threads[0].setdefault(name, (np.empty(0, np.intp), np.empty(0)))
        self._leave_out_visits_of_waits()
        self._note(notices)

    def _add_calls(self) -> None:
        columns, timeline_ = self._columns, self._timeline
        per_call = _per_call(columns)
        caller = self._caller_of_threads()
        offset = 0
        while columns.calls:
            calls = columns.calls.pop(0)
            below = np.full(len(calls), NONE, np.int32)
            inside = self.steps.within(calls.start)
            below[inside & (calls.thread != self.steps.thread)] = caller
            part = slice(offset, offset + len(calls))
            offset += len(calls)
            keep = np.flatnonzero(inside) if self._is_selected else slice(None)
            start = calls.start[keep] - self._origin
            is_api = calls.category == Category.API
            correlation = np.where(is_api, calls.link, self._external(calls))
            timeline_.add_calls(
                timeline.Calls(
                    self._process[calls.thread[keep]],
                    self._thread[calls.thread[keep]],
                    start,
                    start + calls.duration[keep],
                    self._region[calls.name[keep]],
                    correlation[keep],
                    below[keep],
                    {name: column(part)[keep] for name, column in per_call.items()},
                )
            )

    def _waits(self) -> timeline.Calls | None:
        """Return the waits of the main thread for collective operations of other threads.

        The thread waits for an operation if it calls no operator while the operation runs, and
        until after its end. The operations of Gloo and MPI run in threads of their own, and the
        events of other libraries only start them.
        """
        main, names = self._main, self._columns.names
        is_waited_for = np.array([_WAITED_FOR.fullmatch(name) is not None for name in names])
        if main == NONE or not is_waited_for.any():
            return None
        ranges = self._columns.ranges
        at = np.flatnonzero(is_waited_for[ranges.name] & (ranges.thread != main))
        if self._is_selected:
            at = at[self.steps.within(ranges.start[at])]
        at = at[np.argsort(ranges.start[at] + ranges.duration[at], kind="stable")]
        busy, edges = self._busy_times(main)
        end = ranges.start[at] + ranges.duration[at]
        gap = np.searchsorted(busy.end, end, side="left") - 1
        inside = (gap >= 0) & (gap < len(busy.end) - 1)
        gap = np.clip(gap, 0, max(0, len(busy.end) - 2))
        if not inside.any():
            return None
        inside &= end <= busy.start[gap + 1]
        at, end, gap = at[inside], end[inside], gap[inside]
        before = np.where(np.diff(gap, prepend=NONE) == 0, np.roll(end, 1), 0)
        edge = edges[np.maximum(np.searchsorted(edges, end, side="left") - 1, 0)]
        start = np.max([ranges.start[at], busy.end[gap], before, edge], axis=0, initial=0)
        kept = np.flatnonzero(start < end)
        if not len(kept):
            return None
        regions = [
            Region(_WAIT + names[name], role=_WAIT_ROLE) for name in ranges.name[at[kept]].tolist()
        ]
        main_thread = np.full(len(kept), main)
        return timeline.Calls(
            self._process[main_thread],
            self._thread[main_thread],
            start[kept] - self._origin,
            end[kept] - self._origin,
            self._paths.regions.numbers(regions),
        )

    def _busy_times(self, main: int) -> tuple[Intervals, Int64Array]:
        """Return when the main thread calls operators, and when other calls begin and end."""
        starts, ends, edges = [], [], [np.zeros(1, np.int64)]
        for calls in self._columns.calls:
            mine = calls.thread == main
            is_around = (calls.category == Category.RANGE) | (calls.category == Category.PYTHON)
            end = calls.start + calls.duration
            starts.append(calls.start[mine & ~is_around])
            ends.append(end[mine & ~is_around])
            edges += [calls.start[mine & is_around], end[mine & is_around]]
        return (
            Intervals.union(np.concatenate(starts), np.concatenate(ends)),
            np.sort(np.concatenate(edges)),
        )

    def _leave_out_visits_of_waits(self) -> None:
        regions = self._paths.regions.all
        for process in self.values:
            for thread in process.threads:
                path, visits = thread.get("visits", (np.empty(0, np.intp), np.empty(0)))
                last = [self._paths.regions_of(each)[-1:] for each in path.tolist()]
                keep = np.array([not n or regions[n[0]].role != _WAIT_ROLE for n in last], np.bool_)
                thread["visits"] = path[keep], visits[keep]

    def _external(self, calls: Calls) -> Int64Array:
        """Return numbers of operators that may have activities, or none if launches have them."""
        if not self._uses_external:
            return np.full(len(calls), NONE)
        is_number = (calls.link >= 0) & (calls.link < _EXTERNAL)
        return np.where(is_number, calls.link + _EXTERNAL, NONE)

    def _caller_of_threads(self) -> int:
        """Return the call path of steps, which calls what other threads do during a step."""
        steps = self.steps
        caller = WHOLE_PROGRAM
        if not len(steps):
            return caller
        regions = self._paths.regions
        if not self._is_selected:
            for name in self._around(int(steps.start[0]), int(steps.end[0])):
                caller = self._paths.callee(caller, int(self._region[name]))
        return self._paths.callee(caller, regions.number(step_region(steps.name)))

    def _around(self, start: int, end: int) -> list[int]:
        """Return the names of the calls around a step, the outermost first."""
        found = []
        for calls in self._columns.calls:
            is_around = (calls.thread == self.steps.thread) & (calls.start <= start)
            is_around &= calls.start + calls.duration >= end
            for k in np.flatnonzero(is_around).tolist():
                step = numbered(self._columns.names[calls.name[k]])
                if step is None or step[0] != self.steps.name:
                    found.append((int(calls.start[k]), -int(calls.duration[k]), int(calls.name[k])))
        return [name for *_, name in sorted(found)]

    def _correlations(self, activities: DeviceEvents) -> Int64Array:
        """Return the number of the launch of each activity, [n]."""
        found = activities.correlation.copy()
        launches = [c.link[c.category == Category.API] for c in self._columns.calls]
        known = np.unique(np.concatenate([*launches, np.empty(0, np.int64)]))
        unknown = np.flatnonzero(~np.isin(found, known))
        flows = self._columns.flows
        if len(unknown) and len(flows):
            number = {(t, s): n for n, t, s in flows.tolist()}
            keys = zip(activities.thread[unknown].tolist(), activities.start[unknown].tolist(),
                       strict=True)  # fmt: skip
            found[unknown] = [number.get(key, NONE) for key in keys]
            unknown = unknown[~np.isin(found[unknown], known)]
        external = activities.external[unknown]
        is_number = (external >= 0) & (external < _EXTERNAL)
        self._uses_external = bool(is_number.any())
        found[unknown] = np.where(is_number, external + _EXTERNAL, found[unknown])
        return found

    def _add_activities(self, activities: DeviceEvents, correlation: Int64Array) -> None:
        rows = np.arange(len(activities.start))
        if self._is_selected:
            rows = np.flatnonzero(self.steps.within(activities.start))
        process = self._timeline.only_process
        directions, devices, sizes = self._directions(), self._devices(), self._columns.sizes
        for first in range(0, len(rows), _BLOCK):
            keep = rows[first : first + _BLOCK]
            threads = activities.thread[keep]
            start = activities.start[keep] - self._origin
            direction = directions[activities.name[keep]]
            copied = activities.copied[keep]
            for k in np.flatnonzero(np.isnan(copied) & (direction > 0)).tolist() if sizes else ():
                copied[k] = sizes.get(int(correlation[keep[k]]), 0.0)
            stream = np.where(activities.stream[keep] >= 0, activities.stream[keep], threads)
            self._timeline.add_activities(
                timeline.Launched(
                    np.full(len(keep), max(0, process)),
                    correlation[keep],
                    start,
                    start + activities.duration[keep],
                    self._region[activities.name[keep]],
                    devices[threads],
                    stream,
                    np.nan_to_num(copied).astype(np.int64),
                    direction,
                )
            )

    def _devices(self) -> Int64Array:
        """Return the device of each thread, which is the process of its events."""
        numbers: dict[str, int] = {}
        pids = [pid for pid, _ in self._columns.threads]
        return np.array([numbers.setdefault(pid, len(numbers)) for pid in pids], np.int64)

    def _directions(self) -> Int64Array:
        return np.array([_direction(name) for name in self._columns.names], np.int64)

    def _note(self, notices: Notices) -> None:
        columns = self._columns
        if columns.damaged:
            what = counted(columns.damaged, "event")
            notices.note("CPM187", f"{what} cannot be read", columns.damaged)
        if columns.unpaired:
            what = f"{counted(columns.unpaired, 'call')} without return, or returns without call"
            notices.note("CPM128", what, columns.unpaired)


def _threads(columns: TraceColumns, steps: Steps) -> tuple[Int64Array, Int64Array, int]:
    """Return numbers of the process and the thread of each thread; the main one has that of both.

    A trace of PyTorch has one process, whose devices have numbers of processes of their own.
    """
    threads = columns.threads
    busy = np.zeros(len(threads))
    for calls in columns.calls:
        busy += np.bincount(calls.thread, calls.duration, len(threads))
    pids: dict[str, int] = {}
    if not columns.is_kineto:
        for thread in np.flatnonzero(busy).tolist():
            pids.setdefault(threads[thread][0], len(pids))
    main = steps.thread
    process = np.array([pids.get(pid, 0) for pid, _ in threads], np.int64)
    number = np.arange(len(threads)) + max(1, len(pids))
    for k in range(max(1, len(pids))):
        mine = np.flatnonzero(process == k)
        first = max(
            mine.tolist(),
            key=lambda t: (t == steps.thread, threads[t][0] == threads[t][1] != "", busy[t]),
            default=NONE,
        )
        if first != NONE:
            number[first] = k
            main = first if k == 0 else main
    return process, number, main


def _numbered_ranges(columns: TraceColumns) -> Iterator[NumberedRange]:
    """Return the annotated ranges with the number of a step in their names."""
    ranges = columns.ranges
    return numbered_ranges(
        np.zeros(len(ranges.name), np.int64), ranges.thread.astype(np.int64), ranges.start,
        ranges.start + ranges.duration, (columns.names[name] for name in ranges.name.tolist()),
    )  # fmt: skip


def _updates(columns: TraceColumns, steps: Steps) -> int:
    """Return the number of calls of the optimizer in steps; of several ones, the busiest."""
    ranges = columns.ranges
    inside = steps.within(ranges.start) & (ranges.thread == steps.thread)
    calls = np.bincount(ranges.name[inside], minlength=len(columns.names))
    is_update = [name.startswith(_OPTIMIZER) for name in columns.names]
    return int(calls[is_update].max(initial=0))


def _regions(columns: TraceColumns, paths: Paths) -> Int32Array:
    """Return the number of the region of each name, [names]."""
    kinds = np.full(len(columns.names), int(Category.OPERATOR))
    for calls in columns.calls:
        kinds[calls.name] = calls.category
    kinds[columns.activities.name] = columns.activities.category
    is_hip = any(name.startswith("hip") for name in columns.names)
    make = partial(_region, accelerator="hip" if is_hip else "cuda")
    return paths.regions.numbers(map(make, columns.names, kinds.tolist()))


def _region(name: str, kind: int, accelerator: str) -> Region:
    if kind >= Category.KERNEL:
        is_kernel = kind == Category.KERNEL
        direction = Copy(_direction(name)) or Copy.OTHER
        return (kernel_region(name, accelerator) if is_kernel
                else copy_region(direction, accelerator))  # fmt: skip
    name = _ADDRESS.sub("", name)
    if kind == Category.API:
        return Region(name, paradigm=accelerator, role="function")
    if kind == Category.RANGE:
        step = numbered(name)
        if step is not None:
            return step_region(step[0])
        return Region(name, paradigm="user", role="function")
    found = _PYTHON.fullmatch(name) if kind == Category.PYTHON else None
    if found is not None:
        return Region(found["name"], file=found["file"], line=int(found["line"]), role="function")
    return Region(name or "(no name)", role="function")


def _direction(name: str) -> int:
    """Return the direction of a copy, see `Copy`; 0 = no copy."""
    plain = name.lower()
    if plain.startswith("memset"):
        return Copy.SET
    if not plain.startswith("memcpy") and "copy" not in plain:
        return Copy.NONE
    return next((kind for words, kind in _DIRECTIONS if words in plain), Copy.OTHER)


def _per_call(columns: TraceColumns) -> Mapping[str, _Column]:
    """Return functions for the bytes and the number of collective operations of calls."""
    collectives = columns.collectives
    if not len(collectives.call):
        # Columns of zeros would need 16 bytes for each call.
        return {}
    chosen = collectives.origin == collectives.origin.min()
    order = np.argsort(collectives.call[chosen], kind="stable")
    call = collectives.call[chosen][order]
    given = collectives.bytes[chosen][order]

    def column(values: FloatArray, part: slice) -> Int64Array:
        found = np.zeros(part.stop - part.start, np.int64)
        first, last = np.searchsorted(call, (part.start, part.stop))
        found[call[first:last] - part.start] = values[first:last]
        return found

    return {
        _SENT: partial(column, np.nan_to_num(given)),
        _COLLECTIVES: partial(column, np.ones(len(call))),
    }
