"""Host calls and GPU activities of the processes of one file, and their values on call paths.

A reader adds all calls of the host first, then the activities of the GPUs. The launch of an
activity is the call of the same process with the same correlation number, and the activity goes
below its call path. Calls and activities are added in blocks, and stored as columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct, field

from callpath_modeler.arrays import (
    BoolArray,
    Int32Array,
    Int64Array,
    IntArray,
    give_back_pages,
)
from callpath_modeler.profile.call_class import CallClass
from callpath_modeler.profile.schema import Region
from cpmodel_gpu.activities import Activities, DeviceWork, Intervals, Kernels, PathValues, nonzero
from cpmodel_gpu.host_calls import ThreadCalls, call_order, nested
from cpmodel_gpu.paths import NOT_RECORDED, WHOLE_PROGRAM, Paths
from cpmodel_gpu.profile import ProcessValues
from cpmodel_gpu.steps import Steps

NO_CORRELATION = -1
"""Correlation number of a call that launches nothing, and of an activity without a launch."""
_LATEST = 1 << 60
"""Largest time in ns, 36 years; sums of two such times do not overflow."""
_SMALL = 1 << 31


class Calls(Struct, frozen=True, eq=False):
    """Some calls of the host, in any order.

    Attributes
    ----------
    process, thread : int64 [n] numbers of the process, and of the thread in the file
    start, end : int64 [n] interval of each call, in ns
    region : int32 [n] number of the region of each call
    correlation : int64 [n] number that the activities of a launch share with it, or
        `NO_CORRELATION`; None = the calls launch nothing
    below : int32 [n] caller outside of ranges, as in `ThreadCalls`; None = the program
    values : int64 [n] further values of each call, by metric
    """

    process: Int64Array
    thread: Int64Array
    start: Int64Array
    end: Int64Array
    region: Int32Array
    correlation: Int64Array | None = None
    below: Int32Array | None = None
    values: Mapping[str, Int64Array] = field(default_factory=dict)


class Launched(Struct, frozen=True, eq=False):
    """Some activities of GPUs, in any order.

    Attributes
    ----------
    process : int64 [n] number of the process of each activity
    correlation : int64 [n] number of its launch
    start, end : int64 [n] its interval, in ns
    region : int32 [n] number of its region
    device, stream : int64 [n] device and stream that ran it
    copied, copy : int64 [n] bytes and direction of copies, as in `Activities`
    """

    process: Int64Array
    correlation: Int64Array
    start: Int64Array
    end: Int64Array
    region: Int32Array
    device: Int64Array
    stream: Int64Array
    copied: Int64Array | None = None
    copy: Int64Array | None = None


class _Thread(Struct, eq=False):
    """Values of one thread: its window in ns, and the values of each metric."""

    number: int
    window: tuple[int, int]
    values: dict[str, PathValues]


class _Process(Struct, eq=False):
    """What is known of one process; launches are sorted by their correlation number."""

    threads: list[_Thread] = field(default_factory=list)
    launches: list[tuple[Int64Array, Int32Array]] = field(default_factory=list)
    waits: list[Intervals] = field(default_factory=list)
    work: DeviceWork = field(default_factory=DeviceWork)


class Timeline:
    """The calls and activities of one file.

    Attributes
    ----------
    invalid : number of calls and activities without a valid interval, which are left out
    crossing : number of calls whose interval crosses the one around it
    unlaunched : number of activities whose launch is not recorded
    selected : selected steps by the number of the process; events outside of them are left out.
        None = all events
    """

    selected: Mapping[int, Steps] | None = None

    def __init__(self, paths: Paths, slack: int = 0) -> None:
        self.invalid = self.crossing = self.unlaunched = 0
        self._paths, self._slack = paths, slack
        self._threads: dict[tuple[int, int], int] = {}
        self._columns: dict[str, list[np.ndarray]] = {}
        self._lengths: list[int] = []
        self._processes: dict[int, _Process] = {}

    def add_calls(self, calls: Calls) -> None:
        """Add calls of the host; `nest` has to follow before activities are added."""
        keep = self._valid(calls.process, calls.start, calls.end)
        number = len(keep)
        none = np.full(number, NO_CORRELATION, np.int32)
        columns: dict[str, np.ndarray | None] = {
            "thread": self._thread_numbers(calls.process[keep], calls.thread[keep]),
            "start": calls.start[keep],
            "end": calls.end[keep],
            "region": calls.region[keep],
            "correlation": none if calls.correlation is None else _small(calls.correlation[keep]),
            "below": None if calls.below is None else calls.below[keep],
            **{f"value {name}": each[keep] for name, each in calls.values.items()},
        }
        for name, column in columns.items():
            if column is None:
                continue
            blocks = self._columns.setdefault(name, [])
            # Earlier blocks may lack a column.
            missing = self._lengths[len(blocks) :]
            blocks += [np.full(count, _absent(name), np.int32) for count in missing]
            blocks.append(column)
        self._lengths.append(number)

    def nest(self) -> None:
        """Find the call paths of all calls, and forget the calls."""
        columns = {}
        for name in [*self._columns]:
            blocks = self._columns.pop(name)
            blocks += [np.full(n, _absent(name), np.int32) for n in self._lengths[len(blocks) :]]
            columns[name] = np.concatenate(blocks)
            del blocks
            give_back_pages(columns.values())
        self._lengths = []
        if not columns:
            return
        keys = [*self._threads]
        if not keys:
            return
        if len(keys) == 1:
            del columns["thread"]
            self._nest_thread(keys[0], columns)
            return
        thread = columns.pop("thread")
        order = np.argsort(thread, kind="stable")
        ends = np.cumsum(np.bincount(thread, minlength=len(keys)))
        for key, rows in zip(keys, np.split(order, ends[:-1]), strict=True):
            self._nest_thread(key, {name: column[rows] for name, column in columns.items()})

    def add_activities(self, launched: Launched) -> None:
        """Add activities, below the call paths of their launches."""
        keep = self._valid(launched.process, launched.start, launched.end)
        process = launched.process[keep]
        for number in np.unique(process).tolist():
            rows = keep[process == number]
            of_process = self._processes.setdefault(number, _Process())
            callers = self._callers(of_process, launched.correlation[rows])
            copied, copy = launched.copied, launched.copy
            block = Activities(
                launched.start[rows],
                launched.end[rows],
                self._paths.callees(callers, launched.region[rows]),
                launched.device[rows],
                launched.stream[rows],
                None if copied is None else copied[rows],
                None if copy is None else copy[rows],
            )
            of_process.work.add(block)

    @property
    def only_process(self) -> int:
        """Number of the only process with calls; -1 = there is none, or more than one."""
        return next(iter(self._processes)) if len(self._processes) == 1 else -1

    def values(self) -> dict[int, ProcessValues]:
        """Return the values of each process by its number; call this once, at the end."""
        found = {}
        for number in sorted(self._processes):
            process = self._processes.pop(number)
            process.launches.clear()
            found[number] = _values(number, process, _kernels(self._paths))
        return found

    def _valid(self, process: Int64Array, start: Int64Array, end: Int64Array) -> IntArray:
        keep = np.flatnonzero((start >= 0) & (end >= start) & (end < _LATEST))
        self.invalid += len(start) - len(keep)
        if self.selected is None:
            return keep
        is_inside = np.zeros(len(keep), np.bool_)
        for number, steps in self.selected.items():
            is_inside |= (process[keep] == number) & steps.within(start[keep])
        return keep[is_inside]

    def _thread_numbers(self, process: Int64Array, thread: Int64Array) -> Int32Array:
        """Return the number of the thread of each call in order of appearance, [n]."""
        changes = (np.diff(process) != 0) | (np.diff(thread) != 0)
        first = np.concatenate(
            (np.zeros(min(1, len(process)), np.intp), np.flatnonzero(changes) + 1)
        )
        keys = zip(process[first].tolist(), thread[first].tolist(), strict=True)
        numbers = [self._threads.setdefault(key, len(self._threads)) for key in keys]
        lengths = np.diff(np.append(first, len(process)))
        return np.repeat(np.array(numbers, np.int32), lengths)

    def _nest_thread(self, key: tuple[int, int], columns: dict[str, np.ndarray]) -> None:
        order = call_order(columns["start"], columns["end"])
        if order is not None:
            for name in columns:
                columns[name] = columns[name][order]
            del order
        # Some tools record one call twice, as a call of its library inside the one of the user.
        correlation, end = columns["correlation"], columns["end"]
        same = (
            (correlation[1:] == correlation[:-1]) & (correlation[1:] >= 0) & (end[1:] <= end[:-1])
        )
        if same.any():
            keep = np.concatenate(([True], ~same))
            for name in columns:
                columns[name] = columns[name][keep]
        del correlation, end, same
        if not len(columns["start"]):
            return
        process = self._processes.setdefault(key[0], _Process())
        process.threads.append(self._nested(key[1], columns, process))

    def _nested(self, number: int, columns: dict[str, np.ndarray], process: _Process) -> _Thread:
        """Return the values of a thread, and keep its launches; its columns are forgotten."""
        start, end = columns.pop("start"), columns.pop("end")
        calls = ThreadCalls(start, end, columns["region"], columns.get("below"))
        found = nested(self._paths, calls, self._slack)
        self.crossing += found.crossing
        values = {"time": nonzero(found.time), "visits": nonzero(found.visits)}
        for name, column in columns.items():
            if name.startswith("value "):
                sums = np.bincount(found.path, column)
                values[name.removeprefix("value ")] = nonzero(sums)
        window = int(start[0]), int(end.max())
        waiting = _waiting(self._paths.regions.all)[columns.pop("region")]
        process.waits.append(Intervals.union(start[waiting], end[waiting]))
        del start, end, calls, waiting
        correlation, path = columns.pop("correlation"), found.path
        launches = correlation >= 0
        if not launches.all():
            correlation, path = correlation[launches], path[launches]
        process.launches.append((correlation, path))
        return _Thread(number, window, values)

    def _callers(self, process: _Process, correlation: Int64Array) -> Int32Array:
        """Return the call path of the launch of each activity, [n]."""
        if len(process.launches) != 1 or not _is_ascending(process.launches[0][0]):
            process.launches = [_sorted_launches(process.launches)]
        numbers, paths = process.launches[0]
        place = np.searchsorted(numbers, correlation)
        place[place == len(numbers)] = 0
        known = numbers[place] == correlation if len(numbers) else np.zeros(len(place), np.bool_)
        lost = int(np.count_nonzero(~known))
        if not lost:
            return paths[place]
        self.unlaunched += lost
        unknown = self._paths.callee(WHOLE_PROGRAM, self._paths.regions.number(NOT_RECORDED))
        found = np.full(len(place), unknown, np.int32)
        found[known] = paths[place[known]]
        return found


def _absent(name: str) -> int:
    return 0 if name.startswith("value ") else NO_CORRELATION


def _small(numbers: Int64Array) -> np.ndarray:
    """Return numbers in 32 bits if they fit, which halves the memory of correlation numbers."""
    fits = not len(numbers) or (numbers.min() >= -_SMALL and numbers.max() < _SMALL)
    return numbers.astype(np.int32) if fits else numbers


def _is_ascending(numbers: Int64Array) -> bool:
    return bool((numbers[1:] >= numbers[:-1]).all())


def _sorted_launches(
    launches: Sequence[tuple[Int64Array, Int32Array]],
) -> tuple[Int64Array, Int32Array]:
    if not launches:
        return np.empty(0, np.int64), np.empty(0, np.int32)
    numbers = np.concatenate([each for each, _ in launches])
    paths = np.concatenate([each for _, each in launches])
    order = np.argsort(numbers, kind="stable")
    return numbers[order], paths[order]


def _waiting(regions: Sequence[Region]) -> BoolArray:
    """Return which regions are calls that return when a device has done its work, [regions]."""
    return np.array([_waits(region) for region in regions], np.bool_)


def _waits(region: Region) -> bool:
    kind = region.call_class
    is_blocking = kind is CallClass.GPU_COPY and "emcpy" in region.name
    return kind is CallClass.GPU_SYNCHRONISATION or (is_blocking and "Async" not in region.name)


def _kernels(paths: Paths) -> Kernels | None:
    """Return what activities of each call path are; None = no kernel communicates."""
    kinds = [region.call_class for region in paths.regions.all]
    number = paths.last_regions()
    communicate = np.array([kind is CallClass.GPU_COMMUNICATION for kind in kinds])[number]
    if not communicate.any():
        return None
    compute = np.array([kind is CallClass.GPU_COMPUTATION for kind in kinds])[number]
    return Kernels(compute, communicate)


def _values(number: int, process: _Process, kernels: Kernels | None) -> ProcessValues:
    """Return the values of a process, whose main thread comes first."""
    windows = [each.window for each in process.threads]
    of_work = process.work.window
    if of_work is not None:
        windows.append(of_work)
    window = min(first for first, _ in windows), max(last for _, last in windows)
    threads = sorted(process.threads, key=lambda each: (not _is_main(number, each), *_width(each)))
    if not threads:
        threads = [_Thread(0, window, {})]
    main = threads[0].values
    path, spent = main.get("time", (np.empty(0, np.intp), np.empty(0)))
    # The main thread is in the program outside of its recorded calls.
    rest = max(0.0, window[1] - window[0] - float(spent.sum()))
    main["time"] = np.append(WHOLE_PROGRAM, path), np.append(rest, spent)
    path, visits = main.get("visits", (np.empty(0, np.intp), np.empty(0)))
    main["visits"] = np.append(WHOLE_PROGRAM, path), np.append(1.0, visits)
    waits = Intervals.union(
        np.concatenate([each.start for each in process.waits] or [np.empty(0, np.int64)]),
        np.concatenate([each.end for each in process.waits] or [np.empty(0, np.int64)]),
    )
    return ProcessValues(
        threads=[each.values for each in threads],
        devices=process.work.values(window, waits, kernels) if of_work is not None else {},
        streams=process.work.streams,
    )


_THREAD_BITS = 0xFFFFFF


def _is_main(process: int, thread: _Thread) -> bool:
    return process & _THREAD_BITS == thread.number & _THREAD_BITS


def _width(thread: _Thread) -> tuple[int, int]:
    first, last = thread.window
    return first - last, thread.number
