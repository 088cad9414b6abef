"""Events of a trace as batches of typed columns, one location at a time.

All analyses of traces use `EventSource` and `Batch`. `replay` makes a profile of the calls.
Messages and collectives are for the analysis of communication.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np

from callpath_modeler.arrays import Int64Array, UInt64Array
from callpath_modeler.diagnostics import Finding
from cpmodel_otf2.definitions import UNDEFINED, UNRESOLVED, Location, TraceDefinitions

LEAVE = 1 << 32
"""Flag for the end of a region. It is added to the reference of the region."""

BATCH_EVENTS = 1 << 16
"""Number of events in a batch. So memory does not depend on the length of a trace."""


class Message(IntEnum):
    """Kind of a message event."""

    SEND = 0
    ISEND = 1
    RECV = 2
    IRECV = 3


class Request(IntEnum):
    """Event of the request of a non-blocking operation."""

    ISEND_COMPLETE = 0
    IRECV_POSTED = 1
    TESTED = 2
    CANCELLED = 3
    COLLECTIVE_POSTED = 4


class Switch(IntEnum):
    """Event of the threads of a process."""

    TEAM_BEGIN = 0
    TEAM_END = 1
    CREATE = 2
    BEGIN = 3
    END = 4


@dataclass(frozen=True, slots=True)
class Calls:
    """Entered and left regions, in order.

    Attributes
    ----------
    time : int64 [n], ticks
    code : int64 [n], reference of the region, plus `LEAVE` at its end
    """

    time: Int64Array
    code: Int64Array


@dataclass(frozen=True, slots=True)
class Messages:
    """Sent and received messages, in order of `position`.

    Attributes
    ----------
    kind : int64 [n], see `Message`
    at : int64 [n], number of earlier calls in the batch
    position : int64 [n], number of the event in its location
    time : int64 [n], ticks
    peer : int64 [n], world rank of the partner, or `UNRESOLVED`
    comm, tag : int64 [n], reference of the communicator, and tag
    bytes : int64 [n], size of the message
    request : int64 [n], number of the request; 0 = blocking operation
    any_source : int64 [n], 1 = blocking receive from any source, if the trace records it
    """

    kind: Int64Array
    at: Int64Array
    position: Int64Array
    time: Int64Array
    peer: Int64Array
    comm: Int64Array
    tag: Int64Array
    bytes: Int64Array
    request: Int64Array
    any_source: Int64Array


@dataclass(frozen=True, slots=True)
class Collectives:
    """Collective operations, in order of `position`.

    Attributes
    ----------
    begin : int64 [n], ticks; equals the end if the trace has no begin
    at, position, time, comm, request : as for messages; `time` is the end
    operation : int64 [n], as in the format
    root : int64 [n], world rank, or `UNRESOLVED`
    sent, received : int64 [n], bytes
    """

    begin: Int64Array
    at: Int64Array
    position: Int64Array
    time: Int64Array
    operation: Int64Array
    comm: Int64Array
    root: Int64Array
    sent: Int64Array
    received: Int64Array
    request: Int64Array


@dataclass(frozen=True, slots=True)
class Requests:
    """Posted, tested, completed and cancelled requests; `kind` is a `Request`.

    `any_source` is 1 for a posted receive from any source, as far as the trace says so.
    """

    kind: Int64Array
    at: Int64Array
    position: Int64Array
    time: Int64Array
    request: Int64Array
    any_source: Int64Array


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of metrics during the run; each of `values` [n x members] has 64 raw bits."""

    at: Int64Array
    time: Int64Array
    values: UInt64Array


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive events of one location.

    Attributes
    ----------
    calls, messages, collectives, requests : as in their types
    samples : by reference of the metric class
    pauses : int64 [n x 2], time and mode of switching the measurement (1 = on, 2 = off)
    flushes : int64 [n x 2], begin and end of writing the trace to a file
    switches : [n] of (`Switch`, number of earlier calls, reference of the team, number of the
        thread)
    accesses : int64 [n x 3], number of earlier calls, and bytes put and got by remote memory access
    sampled : number of sampled calling contexts, which are not calls
    program : command of the program that began, or ""
    """

    calls: Calls
    messages: Messages
    collectives: Collectives
    requests: Requests
    samples: dict[int, Samples]
    pauses: Int64Array
    flushes: Int64Array
    switches: Sequence[tuple[int, int, int, int]]
    accesses: Int64Array
    sampled: int
    program: str


class EventSource(Protocol):
    """A trace that can be read as a stream."""

    @property
    def definitions(self) -> TraceDefinitions:
        """Return the definitions of the trace."""
        ...

    @property
    def creator(self) -> str:
        """Return the program that wrote the trace."""
        ...

    def batches(self, location: Location) -> Iterator[Batch]:
        """Yield the events of a location in order.

        Raises
        ------
        InputError
            If the events cannot be read.
        """
        ...

    def findings(self) -> Sequence[Finding]:
        """Return the findings about the trace."""
        ...


class Recorder:
    """Collector of the events of one location, which returns them as batches.

    Rows are flat in lists of integers: this is the fastest way from a callback to an array.

    Attributes
    ----------
    members : number of values of a metric class, by its reference
    """

    def __init__(self, definitions: TraceDefinitions, location: Location) -> None:
        self._definitions = definitions
        self._location = location
        self._partners: dict[int, Int64Array] = {}
        self._open_collective = -1
        self.calls: list[int] = []
        self.messages: list[int] = []
        self.collectives: list[int] = []
        self.requests: list[int] = []
        self.members = {k: len(used) for k, used in definitions.metric_classes.items()}
        self.samples: dict[int, list[int]] = {reference: [] for reference in self.members}
        self.pauses: list[int] = []
        self.flushes: list[int] = []
        self.switches: list[tuple[int, int, int, int]] = []
        self.accesses: list[int] = []
        self.sampled = 0
        self.program = ""

    def begin_collective(self, time: int) -> None:
        """Record the begin of a collective operation."""
        self._open_collective = time

    def end_collective(self, *row: int) -> None:
        """Record a collective operation; `row` is a row of `Collectives` from `at` on."""
        begin = self._open_collective if self._open_collective >= 0 else row[2]
        self._open_collective = -1
        self.collectives += (begin, *row)

    def take(self) -> Batch:
        """Return the events since the last call."""
        time, code = _columns(self.calls, 2)
        kind, at, position, when, peer, comm, tag, size, request, wild = _columns(self.messages, 10)
        messages = Messages(
            kind, at, position, when, self._world(peer, comm), comm, tag, size, request, wild
        )
        begin, c_at, c_position, end, operation, c_comm, root, sent, got, c_request = _columns(
            self.collectives, 10
        )
        collectives = Collectives(
            begin, c_at, c_position, end, operation, c_comm, self._world(root, c_comm), sent, got,
            c_request,
        )  # fmt: skip
        batch = Batch(
            Calls(time, code),
            messages,
            collectives,
            Requests(*_columns(self.requests, 6)),
            self._samples(),
            _columns(self.pauses, 2).T,
            _columns(self.flushes, 2).T,
            tuple(self.switches),
            _columns(self.accesses, 3).T,
            self.sampled,
            self.program,
        )
        # The callbacks keep references to these lists, so they are emptied instead of replaced.
        flat = (self.calls, self.messages, self.collectives, self.requests, self.pauses)
        for rows in (*flat, self.flushes, self.accesses, *self.samples.values()):
            rows.clear()
        self.switches.clear()
        self.sampled, self.program = 0, ""
        return batch

    def _samples(self) -> dict[int, Samples]:
        taken = {}
        for reference, rows in self.samples.items():
            if rows:
                table = np.array(rows, np.uint64).reshape(-1, self.members[reference] + 2)
                at, time = table[:, :2].T.astype(np.int64)
                taken[reference] = Samples(at, time, table[:, 2:])
        return taken

    def _world(self, rank: Int64Array, comm: Int64Array) -> Int64Array:
        """Return the world ranks of partners, [n], from their ranks in the communicator."""
        world = np.full(len(rank), UNRESOLVED, np.int64)
        for reference in np.unique(comm).tolist():
            if reference not in self._partners:
                own = self._location.reference
                self._partners[reference] = self._definitions.world_ranks(reference, own)
            partners = self._partners[reference]
            known = np.flatnonzero((comm == reference) & (rank < len(partners)) & (rank >= 0))
            world[known] = partners[rank[known]]
        return world


def _columns(rows: list[int], width: int) -> Int64Array:
    """Return flat rows as columns, [width x n]; unsigned values keep their bits."""
    table = np.array(rows, np.uint64).view(np.int64).reshape(-1, width)
    return np.ascontiguousarray(table.T)


def references(code: Int64Array) -> Int64Array:
    """Return the regions of calls, [n]."""
    return code & UNDEFINED
