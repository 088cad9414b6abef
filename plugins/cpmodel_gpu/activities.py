"""Times of the GPU activities of one process: sums, busy and idle time, and exposed time.

Kernels, copies and memory sets run on several streams and devices at once, beside the threads of
their process. So there are four times, and none of them is a part of the run time:

- time on GPU streams: the sum of all activities of a call path
- GPU busy: for each device, the time in which any activity runs on it
- GPU idle: the rest of the window of the process, for each device
- exposed GPU time: the time in which an activity runs alone, while a thread of its process waits
  for the device. Without the activity, the process would end as much earlier
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import (
    BoolArray,
    FloatArray,
    Int16Array,
    Int32Array,
    Int64Array,
    IntArray,
    give_back_pages,
)
from callpath_modeler.profile.schema import COPIED_BYTES

_BLOCK = 1 << 18
"""Number of activities whose intervals are compared together."""

_MOST_DEVICES = 4_096
"""Largest number of separate devices of a process."""

PathValues = tuple[IntArray, FloatArray]
"""Call paths, ascending, and their values, both [k]; other call paths have zero."""


class Copy(IntEnum):
    """Direction of a copy, or another activity.

    Attributes
    ----------
    NONE : a kernel or another activity that copies nothing
    TO_DEVICE, TO_HOST : between the memory of the host and of a device
    WITHIN : inside the memory of a device
    PEER : from one device to another
    OTHER : another copy, such as one from host to host, or one of unknown direction
    SET : memory that is set to a value
    """

    NONE = 0
    TO_DEVICE = 1
    TO_HOST = 2
    WITHIN = 3
    PEER = 4
    OTHER = 5
    SET = 6


BYTES: Mapping[Copy, str] = dict(
    zip(
        (Copy.TO_DEVICE, Copy.TO_HOST, Copy.WITHIN, Copy.PEER, Copy.OTHER, Copy.SET),
        COPIED_BYTES,
        strict=True,
    )
)
"""Metrics of the bytes of copies by direction."""


class Activities(Struct, frozen=True, eq=False):
    """Some activities of one process, in any order.

    Attributes
    ----------
    start, end : int64 [n] interval of each activity, in ns, with ``end >= start``
    path : int32 [n] call path of each activity, below that of its launch
    device, stream : int64 [n] number of the device and of the stream that ran it
    copied : int64 [n] bytes of a copy or memory set; None = the activities copy nothing
    copy : int64 [n] direction of the copy, see `Copy`; None = the activities copy nothing
    """

    start: Int64Array
    end: Int64Array
    path: Int32Array
    device: Int64Array
    stream: Int64Array
    copied: Int64Array | None = None
    copy: Int64Array | None = None


class Intervals(Struct, frozen=True, eq=False):
    """Disjoint intervals, ascending.

    Attributes
    ----------
    start, end : int64 [n], in ns
    """

    start: Int64Array
    end: Int64Array

    @property
    def length(self) -> int:
        """Sum of the lengths, in ns."""
        return int((self.end - self.start).sum())

    @classmethod
    def union(cls, start: Int64Array, end: Int64Array) -> Intervals:
        """Return the union of intervals, [n], in any order.

        A gap follows the k-th interval if the k-th smallest end is before the next start. So starts
        and ends are sorted separately.
        """
        start, end = np.sort(start), np.sort(end)
        gap = start[1:] > end[:-1]
        is_first = np.concatenate(([True], gap))[: len(start)]
        is_last = np.concatenate((gap, [True]))[: len(end)]
        return cls(start[is_first], end[is_last])

    def upto(self, time: Int64Array) -> Int64Array:
        """Return the length of the intervals up to each time, [n]."""
        if not len(self.start):
            return np.zeros(len(time), np.int64)
        length = np.cumsum(self.end - self.start) - (self.end - self.start)
        place = np.searchsorted(self.start, time, side="right") - 1
        inside = np.clip(time - self.start[place], 0, (self.end - self.start)[place])
        return np.where(place < 0, 0, length[place] + inside)


def union_length(start: Int64Array, end: Int64Array) -> int:
    """Return the length of the union of intervals; starts are ascending, and `end` is sorted."""
    end.sort()
    if not len(start):
        return 0
    gaps = 0
    for first in range(1, len(start), _BLOCK):
        following = start[first : first + _BLOCK]
        apart = following - end[first - 1 : first - 1 + len(following)]
        gaps += int(apart[apart > 0].sum())
    return int(end[-1] - start[0]) - gaps


OVERLAP = ("computation", "communication", "overlapped")
"""Keys of the times of devices with kernels that compute, communicate, and do both."""


class Kernels(Struct, frozen=True, eq=False):
    """What the activities of each call path are.

    Attributes
    ----------
    compute, communicate : bool [call paths] kernels of the program, and of libraries that
        communicate; other activities copy
    """

    compute: BoolArray
    communicate: BoolArray

    def overlap(self, start: Int64Array, end: Int64Array, path: Int32Array) -> Int64Array:
        """Return the times in ns of one device in the order of `OVERLAP`.

        Parameters
        ----------
        start, end, path : [n] intervals and call paths of activities, in order of starts
        """
        computes, communicates = self.compute[path], self.communicate[path]
        either = computes | communicates
        lengths = [
            union_length(start[chosen], end[chosen]) for chosen in (computes, communicates, either)
        ]
        return np.array([lengths[0], lengths[1], lengths[0] + lengths[1] - lengths[2]], np.int64)


class DeviceWork:
    """The activities of one process, added in blocks.

    The memory is 22 bytes for each activity, and as much as a block.
    """

    def __init__(self) -> None:
        self._blocks: list[tuple[Int64Array, Int64Array, Int32Array, Int16Array]] = []
        self._devices: dict[int, int] = {}
        self._streams: set[tuple[int, int]] = set()
        self._time, self._visits = np.zeros(0), np.zeros(0)
        self._bytes: dict[Copy, FloatArray] = {}

    @property
    def devices(self) -> int:
        """Number of devices with an activity."""
        return len(self._devices)

    @property
    def streams(self) -> int:
        """Number of streams with an activity."""
        return len(self._streams)

    @property
    def window(self) -> tuple[int, int] | None:
        """First start and last end, in ns; None = there is no activity."""
        if not self._blocks:
            return None
        return (
            min(int(start.min()) for start, *_ in self._blocks),
            max(int(end.max()) for _, end, *_ in self._blocks),
        )

    def add(self, block: Activities) -> None:
        """Add activities."""
        if not len(block.start):
            return
        spent = block.end - block.start
        self._time = _grown(self._time, block.path, spent)
        self._visits = _grown(self._visits, block.path, None)
        if block.copied is not None and block.copy is not None:
            for kind in BYTES:
                at = np.flatnonzero(block.copy == kind)
                if len(at):
                    known = self._bytes.get(kind, np.zeros(0))
                    self._bytes[kind] = _grown(known, block.path[at], block.copied[at])
        device = self._device_numbers(block)
        self._blocks.append((block.start, block.end, block.path.astype(np.int32), device))

    def values(
        self, window: tuple[int, int], waits: Intervals, kernels: Kernels | None = None
    ) -> dict[str, PathValues]:
        """Return the values of each metric on each call path; call this once, at the end.

        Parameters
        ----------
        window : first and last moment of the process, in ns, for its idle devices
        waits : times in which a thread of the process waits for a device
        kernels : what the activities of each call path are; None = not known
        """
        found = {"time": nonzero(self._time), "visits": nonzero(self._visits)}
        found |= {BYTES[kind]: nonzero(each) for kind, each in self._bytes.items()}
        start, end, path, device = self._joined()
        exposed = np.zeros(len(self._time))
        for begin, stop, alone in _alone(start, end):
            waited = waits.upto(stop) - waits.upto(begin)
            exposed = _grown(exposed, path[alone], waited)
        busy = 0
        overlap = np.zeros(3, np.int64)
        for number in range(self.devices):
            at = slice(None) if self.devices == 1 else np.flatnonzero(device == number)
            # The union sorts the ends in place, so it comes last.
            if kernels is not None:
                overlap += kernels.overlap(start[at], end[at], path[at])
            busy += union_length(start[at], end[at])
        whole = np.zeros(1, np.intp)
        idle = max(0, self.devices * (window[1] - window[0]) - busy)
        found["exposed"] = nonzero(exposed)
        found["busy"] = whole, np.array([float(busy)])
        found["idle"] = whole, np.array([float(idle)])
        if kernels is not None:
            for key, length in zip(OVERLAP, overlap.tolist(), strict=True):
                found[key] = whole, np.array([float(length)])
        return found

    def _device_numbers(self, block: Activities) -> Int16Array:
        """Return the number of the device of each activity in order of appearance, [n]."""
        found = np.zeros(len(block.start), np.int16)
        for device in _distinct(block.device):
            number = self._devices.setdefault(device, min(len(self._devices), _MOST_DEVICES))
            rows = np.flatnonzero(block.device == device)
            found[rows] = number
            self._streams.update((device, each) for each in _distinct(block.stream[rows]))
        return found

    def _joined(self) -> tuple[Int64Array, Int64Array, Int32Array, Int16Array]:
        """Return all activities in order of their starts, and forget the blocks."""
        if not self._blocks:
            nothing = np.empty(0, np.int64)
            return nothing, nothing, nothing.astype(np.int32), nothing.astype(np.int16)
        columns = [list(column) for column in zip(*self._blocks, strict=True)]
        self._blocks = []
        found: list[np.ndarray] = []
        order = None
        for column in columns:
            joined = np.concatenate(column)
            column.clear()
            if not found and not (joined[1:] >= joined[:-1]).all():
                order = np.argsort(joined, kind="stable")
            found.append(joined if order is None else joined[order])
            give_back_pages(found)
        return found[0], found[1], found[2], found[3]


def _alone(start: Int64Array, end: Int64Array) -> Iterator[tuple[Int64Array, Int64Array, IntArray]]:
    """Yield the times in which one activity runs alone: their starts, ends, and the activity.

    The sum of the numbers of all running activities changes with every start and end. While one of
    them runs, the sum is its number.

    Parameters
    ----------
    start, end : [n] intervals, in order of starts
    """
    running = np.empty(0, np.intp)
    for first in range(0, len(start), _BLOCK):
        last = min(first + _BLOCK, len(start))
        until = int(start[last]) if last < len(start) else np.iinfo(np.int64).max
        began = np.arange(first, last)
        candidates = np.concatenate((running, began))
        is_over = end[candidates] <= until
        over, still = candidates[is_over], candidates[~is_over]
        times = np.concatenate((end[over], start[began]))
        step = np.concatenate((np.full(len(over), -1), np.ones(len(began), np.intp)))
        number = np.concatenate((-over, began))
        # Ends come before starts at the same time, except the end of an empty interval.
        order = np.argsort(times, kind="stable")
        times = np.append(times[order], until)
        count = len(running) + np.cumsum(step[order])
        identity = int(running.sum()) + np.cumsum(number[order])
        alone = np.flatnonzero((count == 1) & (times[1:] > times[:-1]))
        running = still
        yield times[alone], times[alone + 1], identity[alone]


def _grown(sums: FloatArray, path: Int32Array, values: Int64Array | None) -> FloatArray:
    """Return sums by call path with further values; sums below 2^53 ns = 104 days are exact."""
    found = np.bincount(path, values, minlength=len(sums)).astype(np.float64)
    found[: len(sums)] += sums
    return found


def nonzero(values: FloatArray | Int64Array) -> PathValues:
    """Return the call paths with a value, and their values."""
    at = np.flatnonzero(values)
    return at, values[at].astype(np.float64)


def _distinct(numbers: Int64Array) -> list[int]:
    if (numbers == numbers[0]).all():
        return [int(numbers[0])]
    return [int(each) for each in np.unique(numbers)]
