"""Call paths and exclusive times of the calls of one host thread, from their intervals.

A call is below another one if its interval is inside the other's. Most calls call nothing, so that
Python visits only those around others; numpy finds the callers of the rest.

Intervals of one thread may cross, such as ranges of two libraries. Then the one that begins later
is below the earlier one until this one ends, and continues below the caller of the earlier one. So
each moment belongs to one call path, and the times of a thread add up to the time that its calls
cover.
"""

from __future__ import annotations

from array import array
from itertools import pairwise

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, Int32Array, Int64Array, IntArray
from cpmodel_gpu.paths import WHOLE_PROGRAM, Paths

_BLOCK = 1 << 17
"""Number of calls that are compared together."""
_MOST_CROSSING = 8
"""Largest number of open calls with crossing intervals.

Each end of such a call makes new call paths of the calls inside it. A call that crosses in a deeper
stack ends with its caller.
"""


class ThreadCalls(Struct, frozen=True, eq=False):
    """The calls of one host thread.

    Attributes
    ----------
    start, end : int64 [n] interval of each call, in ns, with ``end >= start``
    region : int32 [n] number of the region of each call
    below : int32 [n] call path that calls each call if no interval is around it, such as a recorded
        call chain; -1 = the program. None = the program calls all of them
    """

    start: Int64Array
    end: Int64Array
    region: Int32Array
    below: Int32Array | None = None


class NestedCalls(Struct, frozen=True, eq=False):
    """The calls of one host thread on their call paths.

    Attributes
    ----------
    path : int32 [n] call path of each call, in the order of the calls
    time : int64 [call paths] exclusive time of each call path, in ns; 0 for the program
    visits : int64 [call paths] number of calls
    crossing : number of calls whose interval crosses the one around it
    """

    path: Int32Array
    time: Int64Array
    visits: Int64Array
    crossing: int


def nested(paths: Paths, calls: ThreadCalls, slack: int = 0) -> NestedCalls:
    """Return call paths, exclusive times and visits of the calls of one thread.

    Parameters
    ----------
    paths : call paths of the profile; new ones are added
    calls : the calls, in any order
    slack : largest time in ns by which intervals may overlap because times are rounded. A call that
        ends so much after its caller ends with it; calls that overlap so little follow each other
    """
    order = call_order(calls.start, calls.end)
    start, end, region, below = _sorted(calls, order)
    outer = _outer_calls(start, end, slack)
    stack = _Stack(paths, slack)
    rows = np.flatnonzero(outer)
    path = np.empty(len(start), np.int32)
    for first in range(0, len(rows), _BLOCK):
        row = rows[first : first + _BLOCK]
        path[row] = stack.add(
            start[row], end[row], region[row], None if below is None else below[row]
        )
    stack.close_all()
    states = stack.states()
    time = states.sums(len(paths))
    for first in range(0, len(start), _BLOCK):
        part = slice(first, first + _BLOCK)
        inner = np.flatnonzero(~outer[part]) + first
        callers, spent = states.callers(start[inner], end[inner])
        time = _added(time, callers, -spent, len(paths))
        if below is not None:
            chains = below[inner]
            callers = np.where((callers == WHOLE_PROGRAM) & (chains >= 0), chains, callers)
        path[inner] = paths.callees(callers, region[inner])
        time = _added(time, path[inner], spent, len(paths))
    time[WHOLE_PROGRAM] = 0
    visits = np.zeros(len(paths), np.int64)
    for first in range(0, len(path), _BLOCK):
        visits += np.bincount(path[first : first + _BLOCK], minlength=len(paths))
    if order is not None:
        unsorted = np.empty_like(path)
        unsorted[order] = path
        path = unsorted
    return NestedCalls(path, time, visits, stack.crossing)


def call_order(start: Int64Array, end: Int64Array) -> IntArray | None:
    """Return the order by start, outer calls first; None = the calls are in this order."""
    for first in range(0, len(start), _BLOCK):
        part = slice(first, first + _BLOCK + 1)
        later = np.diff(start[part])
        if not ((later > 0) | ((later == 0) & (np.diff(end[part]) <= 0))).all():
            break
    else:
        return None
    order = np.argsort(start, kind="stable")
    # Few calls start together, and only those need their ends.
    ties = [
        np.flatnonzero(np.diff(start[order[first : first + _BLOCK + 1]]) == 0) + first
        for first in range(0, len(start), _BLOCK)
    ]
    tied = np.concatenate(ties)
    together = np.union1d(tied, tied + 1)
    rows = order[together]
    order[together] = rows[np.lexsort((-end[rows], start[rows]))]
    return order


def _sorted(
    calls: ThreadCalls, order: IntArray | None
) -> tuple[Int64Array, Int64Array, Int32Array, Int32Array | None]:
    if order is None:
        return calls.start, calls.end, calls.region, calls.below
    below = None if calls.below is None else calls.below[order]
    return calls.start[order], calls.end[order], calls.region[order], below


def _outer_calls(start: Int64Array, end: Int64Array, slack: int) -> BoolArray:
    """Return which calls are around others, or end after a call around them, [n]."""
    outer = np.zeros(len(start), np.bool_)
    for first in range(0, len(start), _BLOCK):
        part = slice(first, first + _BLOCK)
        following = start[first + 1 : first + _BLOCK + 1]
        outer[part][: len(following)] = end[part][: len(following)] - slack > following
    edges = np.concatenate((start[outer], end[outer], [np.iinfo(np.int64).max]))
    edges.sort()
    crossing = np.zeros(len(start), np.bool_)
    for first in range(0, len(start), _BLOCK):
        part = slice(first, first + _BLOCK)
        following = edges[np.searchsorted(edges[:-1], start[part], side="right")]
        crossing[part] = following < end[part] - slack
    return outer | crossing


class _States(Struct, frozen=True, eq=False):
    """The innermost open call of a thread over time, of those around others.

    Attributes
    ----------
    time : int64 [k + 1] times at which it changes, and the end of all times
    path : int32 [k + 1] the program, and the call path after each change
    """

    time: Int64Array
    path: Int32Array

    def sums(self, paths: int) -> Int64Array:
        """Return the time of each call path between two changes, [paths]."""
        found = np.zeros(paths, np.int64)
        path, time = self.path[1:-1], self.time[:-1]
        for first in range(0, len(path), _BLOCK):
            spent = np.diff(time[first : first + _BLOCK + 1])
            found = _added(found, path[first : first + _BLOCK], spent, paths)
        return found

    def callers(self, start: Int64Array, end: Int64Array) -> tuple[Int32Array, Int64Array]:
        """Return the call path around each interval, and its length up to the next change."""
        state = np.searchsorted(self.time[:-1], start, side="right")
        return self.path[state], np.minimum(end, self.time[state]) - start


class _Stack:
    """The open calls of a thread, of those around others.

    Attributes
    ----------
    crossing : number of calls that cross the one around them
    """

    def __init__(self, paths: Paths, slack: int) -> None:
        self.crossing = 0
        self._paths, self._slack = paths, slack
        self._ends: list[int] = []
        self._regions: list[int] = []
        self._open: list[int] = []
        # True while an open call ends after the one around it.
        self._crosses = False
        # An integer of Python takes 32 bytes more than one in an array.
        self._times, self._current = array("q"), array("i", [WHOLE_PROGRAM])

    def add(
        self, start: Int64Array, end: Int64Array, region: Int32Array, below: Int32Array | None
    ) -> Int32Array:
        """Add calls in order of their start, outer ones first; return their call paths."""
        chains = np.full(len(start), -1) if below is None else below
        found = []
        ends, paths = self._ends, self._open
        for begin, stop, name, chain in zip(
            start.tolist(), end.tolist(), region.tolist(), chains.tolist(), strict=True
        ):
            if ends and (self._crosses or ends[-1] - self._slack <= begin):
                self._close_until(begin)
            last = stop
            if ends and stop > ends[-1]:
                last = self._crossing_end(stop)
            caller = paths[-1] if paths else max(chain, WHOLE_PROGRAM)
            path = self._paths.callee(caller, name)
            ends.append(last)
            self._regions.append(name)
            paths.append(path)
            found.append(path)
            self._times.append(begin)
            self._current.append(path)
        return np.array(found, np.int32)

    def close_all(self) -> None:
        """End all open calls."""
        self._close_until(np.iinfo(np.int64).max)

    def states(self) -> _States:
        """Return the innermost open calls over time."""
        self._times.append(np.iinfo(np.int64).max)
        return _States(np.frombuffer(self._times, np.int64), np.frombuffer(self._current, np.int32))

    def _crossing_end(self, end: int) -> int:
        """Return the end of a call that ends after the one around it."""
        around = self._ends[-1]
        if end - around <= self._slack:
            return around
        self.crossing += 1
        if len(self._ends) > _MOST_CROSSING:
            return around
        self._crosses = True
        return end

    def _close_until(self, time: int) -> None:
        ends, paths = self._ends, self._open
        while ends:
            first = min(ends) if self._crosses else ends[-1]
            if first - self._slack > time:
                break
            place = len(ends) - 1
            while ends[place] != first:
                place -= 1
            at = min(first, time)
            caller = paths[place - 1] if place else WHOLE_PROGRAM
            del ends[place], self._regions[place], paths[place]
            for k in range(place, len(ends)):
                caller = paths[k] = self._paths.callee(caller, self._regions[k])
            if self._crosses:
                self._crosses = any(b > a for a, b in pairwise(ends))
            self._times.append(at)
            self._current.append(caller)


def _sums(path: Int32Array, time: Int64Array, paths: int) -> Int64Array:
    """Return the sum of times on each call path; sums below 2^53 ns = 104 days are exact."""
    return np.rint(np.bincount(path, time, minlength=paths)).astype(np.int64)


def _added(sums: Int64Array, path: Int32Array, time: Int64Array, paths: int) -> Int64Array:
    """Return sums with further times, for the call paths known by now."""
    found = _sums(path, time, paths)
    found[: len(sums)] += sums
    return found
