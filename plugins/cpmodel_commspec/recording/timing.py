"""Calls around events, and seconds outside and inside MPI between operations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, Int64Array
from callpath_modeler.printable import printable, shortened
from cpmodel_otf2.definitions import TraceDefinitions
from cpmodel_otf2.events import Batch
from cpmodel_otf2.paths import OUTSIDE, PathTable
from cpmodel_otf2.replay import Pauses, Replay

CLOCK = "times of a clock that goes back, or that jumps by more than a year"
"""Intervals that count as zero; the sum of such times would decide the run time."""

_YEAR = 366 * 86400
_INIT = re.compile(r"MPI_Init(_thread)?$", re.IGNORECASE)
_FINALIZE = re.compile(r"MPI_Finalize$", re.IGNORECASE)


class MpiPaths:
    """The call paths within MPI functions.

    A call path is within an MPI function if any of its regions is one, so a function that MPI calls
    back is within MPI.
    """

    INIT, FINALIZE, OTHER = 1, 2, 3

    def __init__(self, paths: PathTable, definitions: TraceDefinitions) -> None:
        self._paths = paths
        self._kind = {
            reference: self.INIT
            if _INIT.match(region.name)
            else self.FINALIZE
            if _FINALIZE.match(region.name)
            else self.OTHER
            for reference, region in definitions.regions.items()
            if region.paradigm == "mpi"
        }
        self._known = np.zeros(0, np.int64)

    def of(self, path: Int64Array) -> Int64Array:
        """Return the kind of the outermost MPI function of each call path, [n]; 0 = none."""
        if len(self._known) < len(self._paths):
            self._extend()
        return self._known[path]

    def _extend(self) -> None:
        known = self._known.tolist()
        # Callers precede callees.
        begin = len(known)
        parents, regions = self._paths.parent[begin:], self._paths.region[begin:]
        for parent, region in zip(parents.tolist(), regions.tolist(), strict=True):
            above = known[parent] if parent >= 0 else 0
            known.append(above or self._kind.get(region, 0))
        self._known = np.array(known, np.int64)


@dataclass(frozen=True, slots=True)
class Times:
    """The times of one rank.

    Attributes
    ----------
    computing : float64 [n], seconds outside MPI before each operation, since the one before
    calling : float64 [n], seconds in the call of each operation; a call of several operations
        counts for the first of them
    last : seconds outside MPI after the last operation
    total : seconds from the end of MPI_Init to the begin of MPI_Finalize, calls of no operation
        included
    """

    computing: FloatArray
    calling: FloatArray
    last: float
    total: float


class RankTimes:
    """The times of one rank, gathered batch by batch.

    The time before the end of MPI_Init and after the begin of MPI_Finalize does not count. If they
    are missing, the first and the last call are the limits. Time in which the trace was written or
    measurement was off does not count.

    Attributes
    ----------
    mended : number of intervals that count as zero, see `CLOCK`
    """

    def __init__(self, mpi: MpiPaths, definitions: TraceDefinitions) -> None:
        self._mpi, self._per_second = mpi, definitions.ticks_per_second
        self._longest = min(_YEAR * self._per_second, 2**62)
        self._pauses = Pauses()
        self._time: int | None = None
        self._is_over = False
        self._before = 0.0
        self._total = 0.0
        self._calls = 0
        self._is_inside = False
        self._computing: list[FloatArray] = []
        self._call_of: list[Int64Array] = []
        self._in_calls: list[tuple[int, FloatArray]] = []
        self.mended = 0

    def add(self, batch: Batch, replay: Replay, at: Sequence[int]) -> None:
        """Take in a batch, and the operations that begin in it.

        Parameters
        ----------
        replay : has taken in the batch
        at : number of calls of the batch before each operation, in order
        """
        self._pauses.add(batch)
        spent = self._intervals(batch)
        kind = self._mpi.of(replay.paths_at(np.arange(len(spent) + 1)))
        state = kind[:-1]
        spent = self._limited(spent, state)
        is_inside = state > 0
        outside = np.concatenate(([0.0], np.cumsum(np.where(is_inside, 0.0, spent))))
        number = self._numbered(kind > 0)
        first = int(number[0])
        calls = np.bincount(number[:-1][is_inside] - first, spent[is_inside])
        self._in_calls.append((first, calls.astype(np.float64)))
        self._total += float(spent.sum())
        place = np.array(at, np.int64)
        ends = outside[place]
        computing = np.diff(ends, prepend=0.0)
        if len(ends):
            computing[0] += self._before
            self._before = 0.0
        self._before += float(outside[-1] - (ends[-1] if len(ends) else 0.0))
        self._computing.append(computing)
        self._call_of.append(np.where(kind[place] > 0, number[place], -1))
        if len(batch.calls.time):
            self._time = int(batch.calls.time[-1])
            self._pauses.forget(self._time)

    def finish(self) -> Times:
        """Return the times of all operations."""
        ticks = np.zeros(self._calls + 1)
        for begin, calls in self._in_calls:
            ticks[begin : begin + len(calls)] += calls
        call_of = np.concatenate([np.empty(0, np.int64), *self._call_of])
        is_first = np.diff(call_of, prepend=-1) != 0
        calling = np.where(is_first & (call_of >= 0), ticks[call_of], 0.0)
        computing = np.concatenate([np.empty(0), *self._computing])
        # Sums of ticks are exact below 2^53, and those of seconds are not.
        one = float(self._per_second)
        return Times(computing / one, calling / one, self._before / one, self._total / one)

    def _intervals(self, batch: Batch) -> FloatArray:
        """Return the ticks before each call of a batch, since the call before it, [n]."""
        times = batch.calls.time
        if not len(times):
            return np.empty(0)
        start = int(times[0]) if self._time is None else self._time
        ticks = np.diff(self._pauses.without(np.concatenate(([start], times))))
        is_wrong = (ticks < 0) | (ticks > self._longest)
        self.mended += int(np.count_nonzero(is_wrong))
        return np.where(is_wrong, 0, ticks).astype(np.float64)

    def _limited(self, spent: FloatArray, state: Int64Array) -> FloatArray:
        """Return the ticks before each call, zero outside the limits."""
        spent = spent.copy()
        if self._is_over:
            spent[:] = 0.0
            return spent
        init = np.flatnonzero(state == MpiPaths.INIT)
        if len(init):
            spent[: init[-1] + 1] = 0.0
            self._before = self._total = 0.0
        end = np.flatnonzero(state == MpiPaths.FINALIZE)
        if len(end):
            spent[end[0] :] = 0.0
            self._is_over = True
        return spent

    def _numbered(self, is_inside: BoolArray) -> Int64Array:
        """Return the number of the latest outermost MPI call at each place, [n + 1]."""
        begins = is_inside & ~np.concatenate(([self._is_inside], is_inside[:-1]))
        number = self._calls + np.cumsum(begins)
        self._calls, self._is_inside = int(number[-1]), bool(is_inside[-1])
        return number


COLLECTIVE = 100
"""The kind of a row that is neither a `Message` nor, from `REQUEST` on, a `Request`."""

REQUEST = 10
WAIT = 99
"""The kind of a row at the beginning of a call that waits."""

_LONGEST = 60
"""Characters of the name of an MPI function."""

_LEFT_OUT = {
    "one-sided calls": r"MPI_(R?(put|get|accumulate|get_accumulate)|fetch_and_op|"
    r"compare_and_swap|win_\w+)$",
    "calls of file I/O": r"MPI_File_\w+$",
    "neighbourhood collectives": r"MPI_I?neighbor_\w+$",
}
NOT_RECORDED = "non-blocking collectives that were not recorded"
_NON_BLOCKING = (
    r"MPI_I(barrier|bcast|gatherv?|scatterv?|allgatherv?|alltoall[vw]?|allreduce|reduce|"
    r"reduce_scatter(_block)?|scan|exscan)$"
)


class CallNames:
    """The MPI function and its caller, by call path."""

    def __init__(self, paths: PathTable, definitions: TraceDefinitions) -> None:
        self._paths, self._regions = paths, definitions.regions
        self._known: dict[int, tuple[int, str]] = {OUTSIDE: (OUTSIDE, "")}

    def of(self, path: int) -> tuple[int, str]:
        """Return the call path that calls MPI, and the MPI function; "" for other functions."""
        if path not in self._known:
            region = self._regions.get(int(self._paths.region[path]))
            is_mpi = region is not None and region.paradigm == "mpi"
            caller = int(self._paths.parent[path]) if is_mpi else path
            # Names in traces may be anything.
            call = printable(shortened(region.name, _LONGEST)) if region and is_mpi else ""
            self._known[path] = caller, call
        return self._known[path]

    def site(self, path: int) -> tuple[str, ...]:
        """Return the functions of a call path; recursive functions are in it once."""
        chain = [self._regions.get(region) for region in self._paths.regions_of(path)]
        return tuple(name for name, _ in groupby(x.name for x in chain if x is not None))


class Watch:
    """Counter of calls that communicate without an event."""

    def __init__(self, definitions: TraceDefinitions) -> None:
        self._regions = {
            what: np.array(
                [
                    k
                    for k, x in definitions.regions.items()
                    if re.match(pattern, x.name, re.IGNORECASE)
                ],
                np.int64,
            )
            for what, pattern in {**_LEFT_OUT, NOT_RECORDED: _NON_BLOCKING}.items()
        }

    def count(self, batch: Batch, counts: Counter[str]) -> None:
        """Add the calls of a batch to the counts of each kind."""
        for what, regions in self._regions.items():
            if len(regions):
                counts[what] += int(np.isin(batch.calls.code, regions).sum())


def waits(definitions: TraceDefinitions) -> Int64Array:
    """Return the references of functions that wait until operations are complete."""
    regions = definitions.regions.items()
    return np.array(
        [k for k, x in regions if re.match(r"MPI_wait(all)?$", x.name, re.IGNORECASE)], np.int64
    )


def rows(batch: Batch, replay: Replay, passed: int, waiting: Int64Array) -> list[list[int]]:
    """Return messages, collective operations, requests and calls that wait, in order.

    Parameters
    ----------
    replay : has taken in the batch
    passed : number of calls before the batch
    waiting : see `waits`

    Returns
    -------
    kind, calls before, call path, peer or operation, communicator, tag or root, bytes (sent),
    bytes received, request, whether a receive is posted for any source
    """
    messages, collectives, requests = batch.messages, batch.collectives, batch.requests
    none = np.zeros(len(messages.at), np.int64)
    entered = np.flatnonzero(np.isin(batch.calls.code, waiting)) + 1
    nothing = np.zeros(len(entered), np.int64)
    parts = [
        _table(messages.position, messages.kind, messages.at, messages.peer, messages.comm,
               messages.tag, messages.bytes, none, messages.request, messages.any_source),
        _table(collectives.position, np.full(len(collectives.at), COLLECTIVE), collectives.at,
               collectives.operation, collectives.comm, collectives.root, collectives.sent,
               collectives.received, collectives.request,
               np.zeros(len(collectives.at), np.int64)),
        _table(requests.position, requests.kind + REQUEST, requests.at,
               *[np.zeros(len(requests.at), np.int64)] * 5, requests.request,
               requests.any_source),
        _table(nothing, nothing + WAIT, entered, *[nothing] * 7),
    ]  # fmt: skip
    table = np.concatenate(parts)
    table = table[np.lexsort((table[:, 0], table[:, 2]))]
    # The position has done its work, and its column is that of the path.
    what, at = table[:, 1].copy(), table[:, 2]
    table[:, 0], table[:, 1], table[:, 2] = what, at + passed, replay.paths_at(at)
    found: list[list[int]] = table.tolist()
    return found


def events_of(batch: Batch) -> int:
    """Return how many events of calls and communication a batch has."""
    columns = (batch.calls.time, batch.messages.at, batch.collectives.at, batch.requests.at)
    return sum(map(len, columns))


def _table(*columns: Int64Array) -> Int64Array:
    return np.stack(columns, axis=1) if len(columns[0]) else np.empty((0, len(columns)), np.int64)
