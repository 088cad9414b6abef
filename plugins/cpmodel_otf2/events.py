"""The event stream of a trace: batches of typed columns, one location at a time.

Whatever analyses traces stands on `EventSource` and `Batch`; calls become a profile in `replay`,
messages and collectives are there for the analysis of communication.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.diagnostics import Finding
from cpmodel_otf2.definitions import UNDEFINED, UNRESOLVED, Location, TraceDefinitions

Column = NDArray[np.int64]

LEAVE = 1 << 32
"""Marks a call as the end of a region, beside the reference of the region."""

BATCH_EVENTS = 1 << 16
"""Events in a batch, so that memory does not depend on the length of a trace."""


class Message(IntEnum):
    """What became of a message."""

    SEND = 0
    ISEND = 1
    RECV = 2
    IRECV = 3


class Request(IntEnum):
    """What happened to a request of a non-blocking operation."""

    ISEND_COMPLETE = 0
    IRECV_POSTED = 1
    TESTED = 2
    CANCELLED = 3
    COLLECTIVE_POSTED = 4


class Switch(IntEnum):
    """What happened to the threads of a process."""

    TEAM_BEGIN = 0
    TEAM_END = 1
    CREATE = 2
    BEGIN = 3
    END = 4


@dataclass(frozen=True, slots=True)
class Calls:
    """Regions entered and left, in order.

    Attributes
    ----------
    time : int64 [n], ticks
    code : int64 [n], reference of the region, plus `LEAVE` if it was left
    """

    time: Column
    code: Column


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages sent and received, in order of `position`.

    Attributes
    ----------
    kind : int64 [n], see `Message`
    at : int64 [n], number of calls of the batch that came before
    position : int64 [n], number of the event in its location
    time : int64 [n], ticks
    peer : int64 [n], world rank of the partner, or `UNRESOLVED`
    comm, tag : int64 [n], reference of the communicator, and tag
    bytes : int64 [n]
    request : int64 [n], number of the request; zero for blocking operations
    """

    kind: Column
    at: Column
    position: Column
    time: Column
    peer: Column
    comm: Column
    tag: Column
    bytes: Column
    request: Column


@dataclass(frozen=True, slots=True)
class Collectives:
    """Collective operations, in order of `position`.

    Attributes
    ----------
    begin : int64 [n], ticks; the end where the trace does not tell
    at, position, time, comm, request : as for messages; `time` is that of the end
    operation : int64 [n], as in the format
    root : int64 [n], world rank, or `UNRESOLVED`
    sent, received : int64 [n], bytes
    """

    begin: Column
    at: Column
    position: Column
    time: Column
    operation: Column
    comm: Column
    root: Column
    sent: Column
    received: Column
    request: Column


@dataclass(frozen=True, slots=True)
class Requests:
    """Posted, tested, completed and cancelled requests; `kind` is a `Request`."""

    kind: Column
    at: Column
    position: Column
    time: Column
    request: Column


@dataclass(frozen=True, slots=True)
class Samples:
    """Metrics read while the program ran; `values` [n x members] are 64 raw bits each."""

    at: Column
    time: Column
    values: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of one location that follow each other.

    Attributes
    ----------
    calls, messages, collectives, requests : see there
    samples : by reference of the metric class
    pauses : int64 [n x 2], when measurement was switched (1 on, 2 off) and how
    flushes : int64 [n x 2], begin and end of writing the trace itself
    switches : [n] of (`Switch`, calls before, reference of the team, number of the thread)
    accesses : int64 [n x 3], calls before, bytes put, bytes got by remote memory access
    sampled : number of sampled calling contexts, which have no place among calls
    program : the program that began, as it was called, or ""
    """

    calls: Calls
    messages: Messages
    collectives: Collectives
    requests: Requests
    samples: dict[int, Samples]
    pauses: Column
    flushes: Column
    switches: Sequence[tuple[int, int, int, int]]
    accesses: Column
    sampled: int
    program: str


class EventSource(Protocol):
    """A trace that can be read as a stream."""

    @property
    def definitions(self) -> TraceDefinitions:
        """What the trace defines."""
        ...

    @property
    def creator(self) -> str:
        """The program that wrote the trace."""
        ...

    def batches(self, location: Location) -> Iterator[Batch]:
        """Yield the events of a location in order.

        Raises
        ------
        InputError
            If they cannot be read.
        """
        ...

    def findings(self) -> Sequence[Finding]:
        """Return what was noticed while reading."""
        ...


class Recorder:
    """Gathers the events of one location; what is gathered is taken out as a batch.

    Rows lie flat in lists of integers: of all ways from a callback to an array that is the
    fastest.

    Attributes
    ----------
    members : number of values of a metric class, by its reference
    """

    def __init__(self, definitions: TraceDefinitions, location: Location) -> None:
        self._definitions = definitions
        self._location = location
        self._partners: dict[int, Column] = {}
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
        """Note when a collective operation began."""
        self._open_collective = time

    def end_collective(self, *row: int) -> None:
        """Note a collective operation; `row` is a row of `Collectives` from `at` on."""
        begin = self._open_collective if self._open_collective >= 0 else row[2]
        self._open_collective = -1
        self.collectives += (begin, *row)

    def take(self) -> Batch:
        """Return what was gathered since the last call."""
        time, code = _columns(self.calls, 2)
        kind, at, position, when, peer, comm, tag, size, request = _columns(self.messages, 9)
        messages = Messages(
            kind, at, position, when, self._world(peer, comm), comm, tag, size, request
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
            Requests(*_columns(self.requests, 5)),
            self._samples(),
            _columns(self.pauses, 2).T,
            _columns(self.flushes, 2).T,
            tuple(self.switches),
            _columns(self.accesses, 3).T,
            self.sampled,
            self.program,
        )
        # The callbacks hold on to these very lists.
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

    def _world(self, rank: Column, comm: Column) -> Column:
        """Return the world ranks of partners given by rank in their communicator, [n]."""
        world = np.full(len(rank), UNRESOLVED, np.int64)
        for reference in np.unique(comm).tolist():
            if reference not in self._partners:
                own = self._location.reference
                self._partners[reference] = self._definitions.world_ranks(reference, own)
            partners = self._partners[reference]
            known = np.flatnonzero((comm == reference) & (rank < len(partners)) & (rank >= 0))
            world[known] = partners[rank[known]]
        return world


def _columns(rows: list[int], width: int) -> Column:
    """Return flat rows as columns, [width x n]; unsigned values keep their bits."""
    table = np.array(rows, np.uint64).view(np.int64).reshape(-1, width)
    return np.ascontiguousarray(table.T)


def references(code: Column) -> Column:
    """Return the regions of calls, [n]."""
    return code & UNDEFINED
