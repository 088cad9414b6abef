"""Simulation of a run, operation by operation: who sends to whom, and who waits for whom.

Matching follows the rules of MPI. A receive takes the oldest message of its source, communicator
and tag. A receive from any source takes the oldest message that has arrived, so the simulation also
resolves wildcards. Each rank runs until it waits, and continues after its last request is complete.
The simulation has no recursion, and its time is linear in the number of operations.

The simulation is one order of events of many. A run without wildcards has the same outcome in every
order. With wildcards, an outcome without a deadlock does not exclude a deadlock in another order.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Protocol, TypeVar

import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.operations import MESSAGES, Awaited, Communicator, Kind, Mode, Recorded, Shape


class Sends(Enum):
    """The time at which a standard send is complete."""

    EAGER = "eager"
    """At once: the MPI library buffers the message."""

    RENDEZVOUS = "rendezvous"
    """With its receive: the MPI library does not buffer the message."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """A rank that waits at the end of the simulation.

    Attributes
    ----------
    operation : the index of the operation among those of the rank
    waits_for : the ranks without which it cannot continue; () for a receive from any source
    """

    rank: int
    operation: int
    waits_for: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a simulated run.

    Attributes
    ----------
    blocked : the ranks that did not reach the end, in order
    sources : receives from any source of each rank: operation, source, bytes [n x 3]
    """

    blocked: tuple[Blocked, ...]
    sources: tuple[Int64Array, ...]


_EAGER = {Sends.EAGER: sys.maxsize, Sends.RENDEZVOUS: -1}
"""Bytes of the largest standard send that is complete at once."""


class _Action(IntEnum):
    START = 0
    """Start an operation, which a later wait completes."""
    CALL = 1
    """Start an operation and wait for it."""
    FORGET = 2
    """Start an operation without a wait."""
    WAIT = 3


class Request:
    """An operation that was started.

    Attributes
    ----------
    rank, number : its rank, and its index among the operations of the rank
    kind, peer, size : of a message; `peer` is -1 for any source
    is_awaited : whether its rank waits for it now
    shape, values : of a collective operation, its shape and its numbers

    In simulations with clocks, requests also have times in seconds:

    called : when its rank called the operation, or posted the receive
    announced, begin : when the receiver learns of a message, and when its data can leave
    ready, done : when the partner was ready, and when the operation is complete
    is_received : whether it is a receive
    """

    __slots__ = ("announced", "begin", "called", "done", "is_awaited", "is_done", "is_received",
                 "kind", "number", "peer", "rank", "ready", "shape", "size", "values")  # fmt: skip

    called: float
    announced: float
    begin: float
    ready: float
    done: float
    is_received: bool
    shape: int
    values: Sequence[int]

    def __init__(self, rank: int, number: int, kind: Kind, peer: int, size: int) -> None:
        self.rank, self.number, self.kind, self.peer, self.size = rank, number, kind, peer, size
        self.is_done = self.is_awaited = False


_BLOCK = 1024
"""Operations of a rank that are lists at a time: lists take much more memory than arrays."""


@dataclass(slots=True)
class RankState:
    """The state of a rank: the next operation, started requests, and those it waits for."""

    recorded: Recorded
    at: int = 0
    begin: int = 0
    shapes: list[int] = field(default_factory=list)
    values: list[list[int]] = field(default_factory=list)
    started: list[Request] = field(default_factory=list)
    awaited: list[Request] = field(default_factory=list)
    pending: int = 0

    def next(self) -> tuple[int, list[int]] | None:
        """Return the shape and the numbers of the next operation; None at the end."""
        if self.at - self.begin == len(self.shapes):
            self.begin, end = self.at, self.at + _BLOCK
            self.shapes = self.recorded.shapes[self.at : end].tolist()
            self.values = self.recorded.values[self.at : end].tolist()
            if not self.shapes:
                return None
        place = self.at - self.begin
        self.at += 1
        return self.shapes[place], self.values[place]


def simulate(
    shapes: Sequence[Shape],
    communicators: Sequence[Communicator],
    ranks: Sequence[Recorded],
    sends: Sends,
) -> Outcome:
    """Return the outcome of a run.

    Collective operations wait for all members, as MPI permits.

    Parameters
    ----------
    shapes, communicators : the definitions that operations refer to
    ranks : the operations of each rank
    """
    return Simulation(shapes, communicators, ranks, _EAGER[sends]).run()


class Simulation:
    """A run in progress; simulations with clocks override how messages and collectives complete.

    Parameters
    ----------
    shapes, communicators : the definitions that operations refer to
    ranks : the operations of each rank
    eager : bytes of the largest standard send that is complete without its receive
    """

    def __init__(
        self,
        shapes: Sequence[Shape],
        communicators: Sequence[Communicator],
        ranks: Sequence[Recorded],
        eager: int,
    ) -> None:
        self._shapes, self._communicators = shapes, communicators
        self._actions = [_action(shape) for shape in shapes]
        self._ends = [[(end.is_sent, *end.columns) for end in shape.ends] for shape in shapes]
        self._prompt = [_prompt(shape, eager) for shape in shapes]
        self._has_wildcards = any(shape.is_any for shape in shapes)
        self._ranks = [self._state(number, one) for number, one in enumerate(ranks)]
        self._groups = [
            {rank: k for k, group in enumerate(one.groups) for rank in group}
            for one in communicators
        ]
        self._runnable = deque(range(len(ranks)))
        # Unmatched sends and receives by (communicator, source, destination, tag).
        self._sent: dict[tuple[int, int, int, int], deque[Request]] = {}
        self._posted: dict[tuple[int, int, int, int], deque[tuple[int, Request]]] = {}
        self._arrivals: dict[tuple[int, int, int], deque[Request]] = {}
        self._posts = 0
        self._calls: dict[tuple[int, int, int], list[Request]] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        self._sources = [array("q") for _ in ranks]

    def run(self) -> Outcome:
        """Run all ranks to the end, or as far as they come."""
        while True:
            while self._runnable:
                self._advance(self._runnable.popleft())
            if not self._decide():
                break
        blocked = tuple(
            Blocked(number, rank.at - 1, self._missing(rank))
            for number, rank in enumerate(self._ranks)
            if rank.pending
        )
        sources = (np.array(rows, np.int64).reshape(-1, 3) for rows in self._sources)
        return Outcome(blocked, tuple(sources))

    def _state(self, _number: int, recorded: Recorded) -> RankState:
        """Return the state of a rank at its beginning."""
        return RankState(recorded)

    def _decide(self) -> bool:
        """Decide what was left open while ranks could run; return whether any can run now."""
        return False

    def _advance(self, number: int) -> None:
        rank, actions = self._ranks[number], self._actions
        while (operation := rank.next()) is not None:
            shape, values = operation
            action = actions[shape]
            if action is _Action.WAIT:
                done, rank.started = completed(rank.started, self._shapes[shape])
                self._wait(rank, done)
            else:
                requests = self._start(number, rank.at - 1, shape, values)
                if action is _Action.CALL:
                    self._wait(rank, requests)
                elif action is _Action.START:
                    rank.started += requests
            if rank.pending:
                return

    def _wait(self, rank: RankState, requests: list[Request]) -> None:
        rank.awaited = [request for request in requests if not request.is_done]
        rank.pending = len(rank.awaited)
        for request in rank.awaited:
            request.is_awaited = True

    def _start(self, rank: int, number: int, shape: int, values: Sequence[int]) -> list[Request]:
        about = self._shapes[shape]
        if not self._ends[shape]:
            request = Request(rank, number, about.kind, -1, 0)
            request.shape, request.values = shape, values
            self._join(request, about.comm)
            return [request]
        requests = []
        for is_sent, peer, tag, size in self._ends[shape]:
            partner = -1 if about.is_any and not is_sent else values[peer]
            request = Request(rank, number, about.kind, partner, values[size])
            if is_sent:
                request.is_done = request.size <= self._prompt[shape]
                self._send(request, about.comm, values[tag])
            else:
                self._receive(request, about.comm, values[tag])
            requests.append(request)
        return requests

    def _send(self, send: Request, comm: int, tag: int) -> None:
        key = comm, send.rank, send.peer, tag
        posted = self._posted.get(key)
        if self._has_wildcards:
            wild = self._posted.get((comm, -1, send.peer, tag))
            if wild and not (posted and posted[0][0] < wild[0][0]):
                posted = wild
        if posted:
            self._match(send, posted.popleft()[1])
            return
        self._sent.setdefault(key, deque()).append(send)
        if self._has_wildcards:
            self._arrivals.setdefault((comm, send.peer, tag), deque()).append(send)

    def _receive(self, receive: Request, comm: int, tag: int) -> None:
        if receive.peer < 0:
            arrived = self._arrivals.get((comm, receive.rank, tag))
            # A message that a receive from its source took is still listed among the arrivals.
            while arrived:
                send = arrived.popleft()
                waiting = self._sent[comm, send.rank, receive.rank, tag]
                if waiting and waiting[0] is send:
                    waiting.popleft()
                    self._match(send, receive)
                    return
        else:
            waiting = self._sent.get((comm, receive.peer, receive.rank, tag), deque())
            if waiting:
                self._match(waiting.popleft(), receive)
                return
        self._posts += 1
        key = comm, receive.peer, receive.rank, tag
        self._posted.setdefault(key, deque()).append((self._posts, receive))

    def _match(self, send: Request, receive: Request) -> None:
        if receive.peer < 0:
            self._sources[receive.rank].extend((receive.number, send.rank, send.size))
        self._complete(send)
        self._complete(receive)

    def _join(self, request: Request, comm: int) -> None:
        """Take part in the next collective operation of a communicator."""
        place = comm, request.rank
        number = self._numbers[place] = self._numbers.get(place, -1) + 1
        group = self._groups[comm][request.rank]
        arrived = self._calls.setdefault((comm, group, number), [])
        arrived.append(request)
        if len(arrived) == len(self._communicators[comm].groups[group]):
            del self._calls[comm, group, number]
            self._finish(arrived, comm, group)

    def _finish(self, arrived: Sequence[Request], _comm: int, _group: int) -> None:
        """Complete a collective operation that all members of a group have called."""
        for one in arrived:
            self._complete(one)

    def _complete(self, request: Request) -> None:
        if request.is_done:
            return
        request.is_done = True
        if request.is_awaited:
            rank = self._ranks[request.rank]
            rank.pending -= 1
            if not rank.pending:
                self._runnable.append(request.rank)

    def _missing(self, rank: RankState) -> tuple[int, ...]:
        """Return the ranks that a blocked rank waits for."""
        missing: dict[int, None] = {}
        for request in rank.awaited:
            if request.is_done:
                continue
            if request.kind in MESSAGES:
                if request.peer >= 0:
                    missing.setdefault(request.peer)
                continue
            for (comm, group, _), arrived in self._calls.items():
                if request in arrived:
                    there = {one.rank for one in arrived}
                    members = self._communicators[comm].groups[group]
                    missing.update(dict.fromkeys(x for x in members if x not in there))
        return tuple(missing)


class Started(Protocol):
    """An operation that was started, and that a wait completes."""

    @property
    def kind(self) -> Kind:
        """The kind of the operation."""
        ...


_S = TypeVar("_S", bound=Started)


def completed(started: Sequence[_S], shape: Shape) -> tuple[list[_S], list[_S]]:
    """Return the started operations that a wait completes, and those that it leaves."""
    if shape.awaited is Awaited.ALL:
        return list(started), []
    if shape.awaited is Awaited.CHOSEN:
        chosen = set(shape.places)
        taken = [started[k] for k in shape.places if k < len(started)]
        return taken, [one for k, one in enumerate(started) if k not in chosen]
    kind = Kind.ISEND if shape.awaited is Awaited.SENDS else Kind.IRECV
    return [x for x in started if x.kind is kind], [x for x in started if x.kind is not kind]


def _action(shape: Shape) -> _Action:
    if shape.kind is Kind.WAIT:
        return _Action.WAIT
    if shape.kind in {Kind.ISEND, Kind.IRECV, Kind.ICOLLECTIVE}:
        return _Action.START if shape.is_awaited else _Action.FORGET
    return _Action.CALL


def _prompt(shape: Shape, eager: int) -> int:
    """Return the bytes of the largest send that is complete without its receive."""
    if shape.name == Mode.SYNCHRONOUS:
        return -1
    return sys.maxsize if shape.name == Mode.BUFFERED else eager
