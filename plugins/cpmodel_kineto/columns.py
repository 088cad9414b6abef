"""Events of one trace file as columns: calls of host threads, and activities of devices.

All times are whole nanoseconds. A float of 64 bits keeps them up to 2^43 us, which is 101 days;
later times with a fraction are read from their text.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from callpath_modeler.support.input_limits import InputLimits, Work
from cpmodel_kineto.collectives import Origin, bytes_of, origin_of
from cpmodel_kineto.json_events import Arguments, Block, Event, EventFile

NONE = -1
_EXACT = float(2**43)
"""Times in microseconds below which a float is exact to the nanosecond."""
_LATEST = 9_000_000_000_000_000
"""Largest time in microseconds; nanoseconds fit into 64 bits."""
_BYTES = 110
"""Memory for one event, in bytes."""
_BYTES_OF_NAME = 200
"""Memory for one distinct name, besides its characters."""
_HINT = "record fewer steps, or fewer kinds of events"


class Category(IntEnum):
    """What an event is, from its category.

    Attributes
    ----------
    RANGE : a range that the program or a library annotates
    OPERATOR : an operator of PyTorch, or another call of a thread
    PYTHON : a function of Python
    API : a call of the library of an accelerator
    KERNEL, COPY, SET : activities of a device
    OTHER : an event that is no work, such as the window of the profiler
    """

    RANGE = 0
    OPERATOR = 1
    PYTHON = 2
    API = 3
    KERNEL = 4
    COPY = 5
    SET = 6
    OTHER = 7


_CATEGORIES = {
    "user_annotation": Category.RANGE,
    "cpu_op": Category.OPERATOR,
    "python_function": Category.PYTHON,
    **dict.fromkeys(
        ("cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "mtia_runtime", "xpu_runtime",
         "xpu_driver", "glow_runtime", "privateuse1_runtime", "privateuse1_driver"),
        Category.API,
    ),
    **dict.fromkeys(
        ("kernel", "mtia_ccp_events", "mtia_kernel", "hpu_op", "concurrent_kernel"),
        Category.KERNEL,
    ),
    "gpu_memcpy": Category.COPY,
    "gpu_memset": Category.SET,
    # Ranges of a device and of its counters, and waits on streams, span other events.
    **dict.fromkeys(
        ("gpu_user_annotation", "cuda_sync", "cuda_profiler_range", "collective_comm", "overhead",
         "Trace", "cpu_instant_event", "mtia_insight"),
        Category.OTHER,
    ),
}  # fmt: skip
_OPEN_ENDED = frozenset("BE")
_MOST = 2**62
_JOINED = 1 << 15
"""Number of calls in a block."""


class Calls(Struct):
    """Some calls of host threads, each column [n].

    Attributes
    ----------
    start, duration : in ns
    name, thread : numbers of the name and of the thread
    category : see `Category`
    link : correlation of an API call, external number of another call; -1 = none
    """

    start: Int64Array
    duration: Int64Array
    name: Int32Array
    thread: Int32Array
    category: Int32Array
    link: Int64Array

    def __len__(self) -> int:
        return len(self.start)

    @classmethod
    def joined(cls, blocks: Sequence[Calls]) -> Calls:
        """Return the calls of several blocks."""
        columns = ([getattr(block, name) for block in blocks] for name in cls.__struct_fields__)
        return cls(*map(np.concatenate, columns))


class DeviceEvents(Struct):
    """Activities of devices, each column [n].

    Attributes
    ----------
    start, duration : in ns
    name, thread : numbers of the name and of the pair of device and stream
    category : see `Category`
    correlation, external : numbers that lead to the launch; -1 = none
    copied : bytes; NaN = not known
    stream : number of the stream; -1 = not known
    """

    start: Int64Array
    duration: Int64Array
    name: Int32Array
    thread: Int32Array
    category: Int32Array
    correlation: Int64Array
    external: Int64Array
    copied: FloatArray
    stream: Int64Array

    @classmethod
    def none(cls) -> DeviceEvents:
        """Return columns without activities."""
        return cls(*_joined([], _OF_ACTIVITIES))


class Collectives(Struct):
    """Calls of collective operations, each column [n].

    Attributes
    ----------
    call : number of the call
    origin : which library recorded it, see `collectives.Origin`
    bytes : bytes that the process gives to the operation; NaN = not known
    """

    call: Int64Array
    origin: Int64Array
    bytes: FloatArray


class TraceColumns(Struct):
    """The contents of one file.

    Attributes
    ----------
    names : distinct names
    threads : distinct pairs of process and thread, as the file states them
    thread_names : names of threads, by their number in `threads`
    calls : calls in blocks, in the order of the file; who uses a block may remove it
    ranges : the calls that are annotated ranges
    activities, collectives : the other events; who uses the activities may replace them
    sizes : bytes of copies, by the correlation of their calls, where calls state them
    flows : int64 [k, 3] number, thread and time of the end of each flow from launch to activity
    entries : the entries beside the events, as JSON
    is_kineto : whether PyTorch wrote the file
    damaged, mended, unpaired : numbers of events that are missing, repaired, or without partner
    """

    names: Sequence[str]
    threads: Sequence[tuple[str, str]]
    thread_names: dict[int, str]
    calls: list[Calls]
    ranges: Calls
    activities: DeviceEvents
    collectives: Collectives
    sizes: dict[int, float]
    flows: Int64Array
    entries: dict[str, bytes]
    is_kineto: bool
    damaged: int
    mended: int
    unpaired: int


def read_columns(path: Path) -> TraceColumns:
    """Return the events of a file.

    Raises
    ------
    InputError
        If the file is not a trace, if it ends too early, or if it has no usable event.
    """
    file = EventFile(path)
    gathered = _Gathered(path)
    for block in file.blocks():
        gathered.add(block)
    return gathered.result(file)


K = TypeVar("K", bound=Hashable)


class _Numbers(dict[K, int]):
    """Numbers of keys in order of appearance.

    Parameters
    ----------
    told : called with each new key and its number
    """

    def __init__(self, told: Callable[[K, int], None] | None = None) -> None:
        super().__init__()
        self._told = told

    def __missing__(self, key: K) -> int:
        number = self[key] = len(self)
        if self._told is not None:
            self._told(key, number)
        return number


class _Categories(dict[str, int]):
    """Categories of events; those of an unknown category are calls of a thread."""

    def __missing__(self, key: str) -> int:
        return Category.OPERATOR


class _Gathered:
    """Columns that grow with each block."""

    def __init__(self, path: Path) -> None:
        self._path, self._limits = path, InputLimits.of(path)
        self._names: _Numbers[str] = _Numbers(self._note_name)
        self._threads: _Numbers[tuple[object, object]] = _Numbers()
        self._categories = _Categories(_CATEGORIES)
        self._thread_names: dict[int, str] = {}
        self._origins: dict[int, Origin] = {}
        self._length = self._events = self._calls_until_now = 0
        self._damaged = self._unpaired = 0
        self._is_kineto = False
        self._calls: list[Calls] = []
        self._small: list[Calls] = []
        self._ranges: list[Calls] = []
        self._activities: list[tuple[Int64Array | Int32Array | FloatArray, ...]] = []
        self._collectives: list[tuple[int, int, float]] = []
        self._sizes: dict[int, float] = {}
        self._flows: list[Int64Array] = []
        # Begins and ends, in the order of the file.
        self._edges: list[tuple[int, int, str, int, int]] = []

    def add(self, block: Block) -> None:
        """Add the events of a block."""
        events = [event for event in block.events if event.ph == "X"]
        if len(events) < len(block.events):
            self._add_others(block)
        if events:
            self._add_complete(block, events)
        self._events += len(block.events)
        memory = _BYTES * self._events + _BYTES_OF_NAME * len(self._names) + 4 * self._length
        self._limits.check(Work.MEMORY, memory, _HINT)

    def result(self, file: EventFile) -> TraceColumns:
        """Return the columns; no more blocks can be added."""
        self._add_paired()
        entries = file.entries
        return TraceColumns(
            list(self._names),
            [(_text(pid), _text(tid)) for pid, tid in self._threads],
            self._thread_names,
            self._calls,
            Calls.joined([*self._ranges, _no_calls()]),
            DeviceEvents(*_joined(self._activities, _OF_ACTIVITIES)),
            Collectives(
                np.array([each[0] for each in self._collectives], np.int64),
                np.array([each[1] for each in self._collectives], np.int64),
                np.array([each[2] for each in self._collectives], np.float64),
            ),
            self._sizes,
            np.concatenate([*self._flows, np.empty((0, 3), np.int64)]),
            entries,
            self._is_kineto or "deviceProperties" in entries or "distributedInfo" in entries,
            self._damaged + file.damaged,
            file.mended,
            self._unpaired,
        )

    def _note_name(self, name: str, number: int) -> None:
        self._length += len(name)
        origin = origin_of(name)
        if origin is not None:
            self._origins[number] = origin

    def _add_complete(self, block: Block, events: list[Event]) -> None:
        """Add the events with a beginning and a duration."""
        names, threads, categories = self._names, self._threads, self._categories
        category = np.array([categories[event.cat] for event in events], np.int32)
        start, duration, is_valid = _nanoseconds(block, events)
        self._damaged += int(np.count_nonzero(~is_valid))
        self._is_kineto |= bool((category != Category.OPERATOR).any())
        is_valid &= category != Category.OTHER
        on_device = category >= Category.KERNEL
        for chosen, is_call in ((is_valid & ~on_device, True), (is_valid & on_device, False)):
            at = np.flatnonzero(chosen)
            if not len(at):
                continue
            whole = len(at) == len(events)
            some = events if whole else [events[k] for k in at.tolist()]
            columns = (
                (start, duration, category) if whole else (start[at], duration[at], category[at])
            )
            name = np.array([names[event.name] for event in some], np.int32)
            thread = np.array([threads[event.pid, event.tid] for event in some], np.int32)
            args = [event.args for event in some]
            common = (columns[0], columns[1], name, thread, columns[2])
            if is_call:
                self._add_collectives(name, args)
                self._add_sizes(args)
                self._add_calls(Calls(*common, _links(args, columns[2])))
            else:
                self._activities.append((*common, *_of_device(args)))

    def _add_calls(self, calls: Calls) -> None:
        """Add a block of calls; small blocks are joined."""
        is_range = calls.category == Category.RANGE
        if is_range.any():
            columns = (getattr(calls, name)[is_range] for name in calls.__struct_fields__)
            self._ranges.append(Calls(*columns))
        self._calls_until_now += len(calls)
        self._small.append(calls)
        if sum(map(len, self._small)) > _JOINED:
            self._join()

    def _join(self) -> None:
        if self._small:
            self._calls.append(Calls.joined(self._small))
            self._small = []

    def _add_collectives(self, name: Int32Array, args: list[Arguments | None]) -> None:
        if not self._origins:
            return
        for k, number in enumerate(name.tolist()):
            origin = self._origins.get(number)
            if origin is not None:
                given = bytes_of(args[k])
                self._collectives.append((self._calls_until_now + k, origin, given))

    def _add_sizes(self, args: list[Arguments | None]) -> None:
        """Add the bytes of copies that only their calls state, as those of ROCm do."""
        for each in args:
            if each is not None and each.size is not None:
                size = _number(each.size)
                if size >= 0:
                    self._sizes[_whole(each.correlation)] = size

    def _add_others(self, block: Block) -> None:
        """Add names of threads, flows, and events that begin and end separately."""
        flows = []
        for event in block.events:
            phase = event.ph
            if phase == "f":
                if event.cat == "ac2g" and type(event.id) is int and abs(event.id) < _MOST:
                    thread = self._threads[event.pid, event.tid]
                    flows.append((event.id, thread, _whole_nanoseconds(event.ts)))
            elif phase in _OPEN_ENDED:
                thread = self._threads[event.pid, event.tid]
                self._edges.append(
                    (thread, _whole_nanoseconds(event.ts), phase, self._names[event.name],
                     self._categories[event.cat])
                )  # fmt: skip
            elif phase == "M" and event.name == "thread_name" and event.args is not None:
                thread = self._threads[event.pid, event.tid]
                self._thread_names[thread] = _text(event.args.name)
        if flows:
            self._flows.append(np.array(flows, np.int64))

    def _add_paired(self) -> None:
        """Add calls from events that begin and end separately."""
        open_: dict[int, list[tuple[int, int, int]]] = {}
        found = []
        self._edges.sort(key=lambda edge: edge[:2])
        for thread, time, phase, name, category in self._edges:
            stack = open_.setdefault(thread, [])
            if phase == "B":
                stack.append((time, name, category))
            elif stack:
                begin, begun, kind = stack.pop()
                if kind <= Category.API:
                    found.append((begin, time - begin, begun, thread, kind, NONE))
            else:
                self._unpaired += 1
        self._edges = []
        self._unpaired += sum(map(len, open_.values()))
        if found:
            columns = zip(*found, strict=True)
            self._add_calls(
                Calls(*(np.array(c, t) for c, t in zip(columns, _OF_CALLS, strict=True)))
            )
        self._join()


_OF_CALLS = (np.int64, np.int64, np.int32, np.int32, np.int32, np.int64)
_OF_ACTIVITIES = (*_OF_CALLS[:5], np.int64, np.int64, np.float64, np.int64)


def _no_calls() -> Calls:
    columns: list[Any] = [np.empty(0, kind) for kind in _OF_CALLS]
    return Calls(*columns)


def _joined(blocks: list[tuple[Any, ...]], types: Sequence[type]) -> list[Any]:
    """Return whole columns, and forget the blocks."""
    columns = [list(column) for column in zip(*blocks, strict=True)] or [[] for _ in types]
    blocks.clear()
    found = []
    for column, kind in zip(columns, types, strict=True):
        found.append(np.concatenate([*column, np.empty(0, kind)]))
        column.clear()
    return found


def _nanoseconds(block: Block, events: list[Event]) -> tuple[Int64Array, Int64Array, BoolArray]:
    """Return starts and durations, each [n], and which events have valid ones, [n]."""
    start = np.array([event.ts for event in events])
    duration = np.array([event.dur for event in events])
    valid = (np.abs(start) < _LATEST) & (duration >= 0) & (duration < _LATEST)
    start, duration = np.where(valid, start, 0.0), np.where(valid, duration, 0.0)
    late = np.abs(start) > _EXACT
    if late.any() and (start[late] % 1 != 0).any():
        texts = block.exact_times()
        pairs = [texts[k] for k, event in enumerate(block.events) if event.ph == "X"]
        exact = [_exact(text) if ok else 0 for (text, _), ok in zip(pairs, valid, strict=True)]
        return np.array(exact, np.int64), _rounded(duration), valid
    return _rounded(start), _rounded(duration), valid


def _rounded(microseconds: FloatArray) -> Int64Array:
    # Whole microseconds beyond 2^53 ns would lose digits in a product of floats.
    whole = np.floor(microseconds)
    part = np.rint((microseconds - whole) * 1000)
    return whole.astype(np.int64) * 1000 + part.astype(np.int64)


def _exact(text: str) -> int:
    try:
        return int((Decimal(text) * 1000).to_integral_value())
    except (ArithmeticError, ValueError):
        return 0


def _whole_nanoseconds(microseconds: float) -> int:
    if not -_LATEST < microseconds < _LATEST:
        return 0
    whole = int(microseconds // 1)
    return whole * 1000 + round((microseconds - whole) * 1000)


def _links(args: list[Arguments | None], category: Int32Array) -> Int64Array:
    """Return the correlation of calls of an accelerator, and the external number of others."""
    found: list[object] = [None if each is None else each.external for each in args]
    for k in np.flatnonzero(category == Category.API).tolist():
        each = args[k]
        found[k] = None if each is None else each.correlation
    return _numbers(found)


def _of_device(
    args: list[Arguments | None],
) -> tuple[Int64Array, Int64Array, FloatArray, Int64Array]:
    """Return correlations, external numbers, bytes, and streams of activities."""
    none = Arguments()
    given = [each or none for each in args]
    external = [each.external if each.external is not None else each.external_old for each in given]
    copied = [_number(each.bytes if each.bytes is not None else each.size) for each in given]
    return (
        _numbers([each.correlation for each in given]),
        _numbers(external),
        np.array(copied, np.float64),
        _numbers([each.stream for each in given]),
    )


def _numbers(values: Sequence[object]) -> Int64Array:
    """Return whole numbers; -1 = none."""
    try:
        return np.array([v if type(v) is int else _whole(v) for v in values], np.int64)
    except OverflowError:
        return np.array([v if abs(v) < _MOST else NONE for v in map(_whole, values)], np.int64)


def _whole(value: object) -> int:
    """Return a whole number, also from text; -1 = it is none."""
    if isinstance(value, str) and len(value) < 20 and value.isascii() and value.isdecimal():
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _MOST:
        return int(value)
    return value if type(value) is int else NONE


def _number(value: object) -> float:
    """Return a number of at least zero, also from text; NaN = it is none."""
    whole = _whole(value)
    return float(whole) if 0 <= whole < _MOST else float("nan")


def _text(value: object) -> str:
    return "" if value is None else str(value)
