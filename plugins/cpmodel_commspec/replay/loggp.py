"""Replay of a run on a network with the parameters of LogGP: the clock of each rank.

The simulation of `simulation/simulator.py` matches messages; here every rank has a clock besides.

- A send takes the overhead o. Its data leave when the port of the rank is free; then the port is
  busy for g + (k-1) G, with k bytes. They arrive (k-1) G + L later.
- A message beyond the eager limit, and a synchronous send, first asks the receiver, which answers
  when the receive is posted; each of both takes L.
- A receive is complete when the data have arrived; each takes the overhead o, in the order of
  arrival.
- Collective operations are their messages. Those that make or free a
  communicator are barriers.
- A measured time stretches all parameters of the messages of a collective, so that it takes this
  time if all members begin together.
- The network has no contention: the ports of senders alone limit the rate of messages.

A clock depends on the clocks of partners alone, so that the result does not depend on the order in
which ranks run. Receives from any source are decided last: when no rank can run, the receive whose
message arrives first takes it. All later messages arrive later, because every rank waits for such a
decision. The time is linear in the number of operations.
"""

from __future__ import annotations

import heapq
from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

import msgspec
import numpy as np

from callpath_modeler.arrays import FloatArray, Int64Array
from callpath_modeler.support.input_limits import UNLIMITED, InputLimits, Work
from cpmodel_commspec.collective_messages import Batch, batches, usual
from cpmodel_commspec.collectives import ROOTED, member_size
from cpmodel_commspec.operations import FIELDS, Communicator, Kind, Recorded, Shape
from cpmodel_commspec.replay.platform import PARAMETERS, Platform
from cpmodel_commspec.simulation.simulator import Outcome, RankState, Request, Simulation

_OF_A_ROUND = 500
"""Messages that take the time of a round without messages."""
_MOST_KEPT = 1 << 20
"""Messages of calls whose rounds are kept for the next such call."""


class Call(NamedTuple):
    """A collective call of a group.

    Attributes
    ----------
    name : of the operation
    root : place of the root in the group; 0 without a root
    sizes : bytes of each member, see `collective_messages.batches`
    is_blocking : whether it is a blocking collective, which benchmarks measure
    """

    name: str
    root: int
    sizes: Int64Array
    is_blocking: bool = True

    @property
    def key(self) -> CallKey:
        """The function, members and bytes; bytes are -1 where members differ."""
        size = int(self.sizes[0])
        return (self.name if self.is_blocking else "", len(self.sizes),
                size if (self.sizes == size).all() else -1)  # fmt: skip


CallKey = tuple[str, int, int]
"""A function, the number of its members, and their bytes; "" = not a blocking collective."""


class Stretched(NamedTuple):
    """A measured time, or the time of another way to do the same.

    Attributes
    ----------
    parts : functions that are executed one after the other, with the bytes of each member; empty =
        each member waits for all others
    seconds : until the last member leaves, if all begin together
    """

    parts: tuple[tuple[str, int], ...]
    seconds: float


Measured = Callable[[str, int, int], Stretched | None]
"""From function, members and bytes to the measured time; None = not measured."""


@dataclass(slots=True)
class Spent:
    """What a program spends in equal calls.

    Attributes
    ----------
    calls, other_roots : number of calls of a group, and of those with another root than 0
    seconds : sum over all members, with waiting
    """

    calls: int = 0
    other_roots: int = 0
    seconds: float = 0.0


_Way = tuple[tuple[Call, ...], Platform, float]
"""Calls, the network on which they take a measured time, and a time after the last member."""


class CollectiveTimes:
    """Times of collective operations on a platform.

    A member leaves the operation as soon as its own part is complete. Members that come late delay
    only those that need their messages. Reductions cost no time besides their messages, because
    LogGP has no parameter for it.

    Parameters
    ----------
    limits : limits of the messages that the program may cause
    measured : measured times; None = none
    """

    def __init__(
        self,
        platform: Platform,
        limits: InputLimits = UNLIMITED,
        measured: Measured | None = None,
    ) -> None:
        self._platform, self._limits, self._measured = platform, limits, measured
        self._ways: dict[CallKey, _Way | None] = {}
        self.spent: dict[CallKey, Spent] = defaultdict(Spent)
        self._messages = 0
        self._known: dict[tuple[str, int, bytes], tuple[Batch, ...]] = {}
        self._kept = 0

    def leave(
        self, call: Call, entered: FloatArray, port: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return when each member leaves, and when it can send its next message, [members].

        Parameters
        ----------
        call : of all members
        entered : seconds at which members enter, [members]
        port : seconds from which on they can send, [members]
        """
        now, port = np.roll(entered, -call.root), np.roll(port, -call.root)
        way = None if self._measured is None else self._way(call, self._measured)
        calls, network, added = way or ((call,), self._platform, 0.0)
        self._advance(calls, network, now, port)
        if added:
            now[:] = now.max() + added
        if self._measured is not None:
            spent = self.spent[call.key]
            spent.calls += 1
            spent.other_roots += call.root > 0
            spent.seconds += float(now.sum() - entered.sum())
        return np.roll(now, call.root), np.roll(port, call.root)

    def _way(self, call: Call, measured: Measured) -> _Way | None:
        """Return the calls that take the measured time of a call; None = not measured."""
        key = name, n, size = call.key
        if key not in self._ways:
            found = measured(name, n, size) if name and size >= 0 else None
            self._ways[key] = None if found is None else self._stretched(found, n)
        return self._ways[key]

    def _stretched(self, found: Stretched, n: int) -> _Way:
        """Return calls on a network on which they take a time if all members begin together."""
        calls = tuple(Call(name, 0, np.full(n, size, np.int64)) for name, size in found.parts)
        now, network = np.zeros(n), self._platform
        self._advance(calls, network, now, np.zeros(n))
        if not now.any():
            return (), network, found.seconds
        # All times of LogGP are sums of its parameters, and the larger one of such sums.
        factor = found.seconds / float(now.max())
        stretched = {name: factor * getattr(network, name) for name in PARAMETERS}
        return calls, replace(network, **stretched), 0.0

    def _advance(
        self, calls: Sequence[Call], network: Platform, now: FloatArray, port: FloatArray
    ) -> None:
        """Advance the clocks by calls, one after the other; the root is the first member."""
        for one in chain.from_iterable(map(self._rounds, calls)):
            self._messages += _OF_A_ROUND + len(one.senders)
            self._limits.check(Work.MESSAGES, self._messages, "write fewer rounds of the loops")
            if one.is_burst:
                self._burst(one, network, now, port)
            else:
                self._pass(one, network, now, port)

    @staticmethod
    def _pass(messages: Batch, network: Platform, now: FloatArray, port: FloatArray) -> None:
        """Advance the clocks by a round in which each sends and receives one message at most."""
        receivers = messages.receivers
        now[messages.senders] += network.overhead
        arrived = _sent(messages, network, now[receivers], now, now, port)
        now[receivers] = np.maximum(now[receivers], arrived) + network.overhead

    @staticmethod
    def _burst(messages: Batch, network: Platform, now: FloatArray, port: FloatArray) -> None:
        """Advance the clocks by a round in which all receives are posted before all sends.

        Members then wait for all of them.
        """
        posted, done = now.copy(), now.copy()
        arrived = np.zeros(len(messages.senders))
        for part in _in_turn(messages.senders, np.arange(len(messages.senders))):
            one = Batch(messages.senders[part], messages.receivers[part], messages.bytes[part])
            now[one.senders] += network.overhead
            arrived[part] = _sent(one, network, posted[one.receivers], now, done, port)
        np.maximum(now, done, out=now)
        for part in _in_turn(messages.receivers, arrived):
            receivers = messages.receivers[part]
            now[receivers] = np.maximum(now[receivers], arrived[part]) + network.overhead

    def _rounds(self, call: Call) -> Iterable[Batch]:
        sizes = np.roll(call.sizes, -call.root)
        key = call.name, len(sizes), sizes.tobytes()
        if key in self._known:
            return self._known[key]
        n = len(sizes)
        chosen = self._platform.algorithms.get(call.name) or usual(call.name, n, sizes)
        rounds, found = batches(call.name, chosen, n, sizes), list[Batch]()
        for one in rounds:
            found.append(one)
            self._kept += len(one.senders)
            if self._kept > _MOST_KEPT:
                self._kept -= sum(len(x.senders) for x in found)
                return chain(found, rounds)
        self._known[key] = tuple(found)
        return found


def _sent(
    messages: Batch, network: Platform, posted: FloatArray, now: FloatArray, done: FloatArray,
    port: FloatArray,
) -> FloatArray:  # fmt: skip
    """Send a message of each sender, and return when the messages arrive, [messages].

    Parameters
    ----------
    posted : when the receive of each message is posted, [messages]
    now : clocks of all members
    done : to advance to the time at which large messages have left, of all members
    port : to advance to the time at which members can send again, of all members
    """
    senders, _, size, _ = messages
    sent = now[senders]
    begin = np.maximum(sent, port[senders])
    tail = np.maximum(size - 1, 0) * network.gap_per_byte
    port[senders] = begin + network.gap + tail
    is_large = size > network.eager
    if is_large.any():
        data = np.maximum(begin, np.maximum(sent + network.latency, posted) + network.latency)
        begin = np.where(is_large, data, begin)
        done[senders] = np.maximum(done[senders], np.where(is_large, data + tail, sent))
    return begin + tail + network.latency


def _in_turn(places: Int64Array, by: FloatArray | Int64Array) -> Iterator[Int64Array]:
    """Yield the messages that are the first of their places, then the second, and so on.

    Parameters
    ----------
    places : of each message
    by : the order of the messages of a place
    """
    order = np.lexsort((by, places))
    ordered = places[order]
    begins = np.flatnonzero(np.diff(ordered, prepend=-1))
    turn = np.arange(len(places)) - np.repeat(begins, np.diff(begins, append=len(places)))
    by_turn = np.argsort(turn, kind="stable")
    yield from np.split(order[by_turn], np.cumsum(np.bincount(turn))[:-1])


_BYTES, _RECEIVED, _ROOT = (FIELDS.index(name) for name in ("bytes", "received", "root"))


@dataclass(frozen=True, slots=True)
class Replayed:
    """The times of a replayed run.

    Attributes
    ----------
    outcome : ranks that did not reach the end, and the sources of receives from any source
    ends : float64 [ranks], seconds at which each rank ends
    computing : float64 [n] for each rank, seconds of computation before each operation
    last : float64 [ranks], seconds of computation after the last operation
    calling : float64 [n] for each rank, seconds in the call of each operation
    waiting : float64 [n] for each rank, the part of `calling` before the partner was ready
    collectives : calls of collectives by function, members and bytes; empty without measured times
    """

    outcome: Outcome
    ends: FloatArray
    computing: tuple[FloatArray, ...]
    last: FloatArray
    calling: tuple[FloatArray, ...]
    waiting: tuple[FloatArray, ...]
    collectives: Mapping[CallKey, Spent]

    @property
    def seconds(self) -> float:
        """The run time: that of the rank that ends last."""
        return float(self.ends.max(initial=0.0))


def replay(
    shapes: Sequence[Shape],
    communicators: Sequence[Communicator],
    ranks: Sequence[Recorded],
    platform: Platform,
    *,
    by_arrival: bool = True,
    limits: InputLimits = UNLIMITED,
    measured: Measured | None = None,
) -> Replayed:
    """Return the times of a run.

    Parameters
    ----------
    shapes, communicators : the definitions that operations refer to
    ranks : the operations of each rank, with the seconds of computation before each of them
    by_arrival : False = receives from any source take the message of the source that they name
    limits : limits of the messages that the program may cause
    measured : measured times of collectives; None = none
    """
    if not by_arrival:
        shapes = [msgspec.structs.replace(shape, is_any=False) for shape in shapes]
    times = CollectiveTimes(platform, limits, measured)
    return _Replay(shapes, communicators, ranks, platform, times).replayed()


_BLOCK = 1024


@dataclass(slots=True)
class _Clock(RankState):
    """The state of a rank with its clock.

    Attributes
    ----------
    now : seconds of its clock
    port : seconds from which on it can send
    entered : seconds at which it began the current operation
    completing : the requests that the current operation completes
    """

    overhead: float = 0.0
    now: float = 0.0
    port: float = 0.0
    entered: float = 0.0
    completing: Sequence[Request] = ()
    computing: list[float] = field(default_factory=list)
    calling: array[float] = field(default_factory=lambda: array("d"))
    waiting: array[float] = field(default_factory=lambda: array("d"))
    is_over: bool = False

    def next(self) -> tuple[int, list[int]] | None:
        """Return the next operation, after the computation before it; None at the end."""
        at = self.at
        if at > len(self.calling):
            self._leave()
        operation = RankState.next(self)
        if operation is None:
            if not self.is_over:
                self.is_over = True
                self.now += self.recorded.last
            return None
        begin = at - self.begin
        if not begin:
            self.computing = self.recorded.computing[at : at + _BLOCK].tolist()
        if self.computing:
            self.now += self.computing[begin]
        self.entered, self.completing = self.now, ()
        return operation

    def _leave(self) -> None:
        """End the current operation: its requests are complete."""
        now, ready, arrived = self.now, self.entered, []
        for request in self.completing:
            if request.is_received:
                arrived.append(request.done)
            elif request.done > now:
                now = request.done
            ready = max(ready, request.ready)
        if len(arrived) > 1:
            arrived.sort()
        for time in arrived:
            now = (max(now, time)) + self.overhead
        self.calling.append(now - self.entered)
        self.waiting.append(min(ready, now) - self.entered)
        self.now = now


class _Channel:
    """Messages to a rank with one tag on one communicator, where any receive is from any source.

    Attributes
    ----------
    expected : posted receives from each source that no receive from any source precedes
    later : the first receive from any source, and all that were posted after it
    sent : messages of each source that no receive took
    heads : the first message of each source by the time of arrival, a heap; some were taken since
    """

    __slots__ = ("expected", "heads", "later", "sent")

    def __init__(self) -> None:
        self.expected: dict[int, deque[Request]] = {}
        self.later: deque[Request] = deque()
        self.sent: dict[int, deque[Request]] = {}
        self.heads: list[tuple[float, int, int]] = []

    def add(self, send: Request) -> bool:
        """Add a message; return whether it is the first of its source."""
        waiting = self.sent.setdefault(send.rank, deque())
        waiting.append(send)
        if len(waiting) == 1:
            heapq.heappush(self.heads, (send.announced, send.rank, send.number))
        return len(waiting) == 1

    def take(self, source: int) -> Request:
        """Take the first message of a source."""
        waiting = self.sent[source]
        send = waiting.popleft()
        if waiting:
            following = waiting[0]
            heapq.heappush(self.heads, (following.announced, source, following.number))
        return send

    def first(self) -> Request | None:
        """Return the message that arrives first, or None."""
        while self.heads:
            _, source, number = self.heads[0]
            waiting = self.sent[source]
            if waiting and waiting[0].number == number:
                return waiting[0]
            heapq.heappop(self.heads)
        return None


class _Replay(Simulation):
    def __init__(
        self,
        shapes: Sequence[Shape],
        communicators: Sequence[Communicator],
        ranks: Sequence[Recorded],
        platform: Platform,
        times: CollectiveTimes,
    ) -> None:
        self._clocks: list[_Clock] = []
        self._platform, self._times = platform, times
        super().__init__(shapes, communicators, ranks, platform.eager)
        self._recorded = ranks
        self._open = {shape.comm for shape in shapes if shape.is_any}
        self._channels: dict[tuple[int, int, int], _Channel] = {}
        self._choices: list[tuple[float, float, int, int, int]] = []
        self._places: dict[tuple[int, int], dict[int, int]] = {}

    def replayed(self) -> Replayed:
        """Run all ranks to the end, and return their times."""
        outcome = self.run()
        computing = tuple(
            one.computing if len(one.computing) else np.zeros(len(one.shapes))
            for one in self._recorded
        )
        return Replayed(
            outcome,
            np.array([clock.now for clock in self._clocks]),
            computing,
            np.array([one.last for one in self._recorded]),
            tuple(np.array(clock.calling) for clock in self._clocks),
            tuple(np.array(clock.waiting) for clock in self._clocks),
            self._times.spent,
        )

    def _state(self, _number: int, recorded: Recorded) -> RankState:
        clock = _Clock(recorded, overhead=self._platform.overhead)
        self._clocks.append(clock)
        return clock

    def _wait(self, rank: RankState, requests: list[Request]) -> None:
        assert isinstance(rank, _Clock)
        rank.completing = requests
        super()._wait(rank, requests)

    def _send(self, send: Request, comm: int, tag: int) -> None:
        clock, network = self._clocks[send.rank], self._platform
        clock.now = send.done = now = clock.now + network.overhead
        begin = max(now, clock.port)
        clock.port = begin + network.gap + max(send.size - 1, 0) * network.gap_per_byte
        send.called, send.ready, send.begin, send.is_received = clock.entered, 0.0, begin, False
        send.announced = (now if self._asks(send) else begin) + network.latency
        if comm not in self._open:
            super()._send(send, comm, tag)
            return
        channel, key = self._channel(comm, send.peer, tag)
        expected = channel.expected.get(send.rank)
        if expected:
            self._match(send, expected.popleft())
        elif channel.add(send):
            self._offer(channel, key)

    def _receive(self, receive: Request, comm: int, tag: int) -> None:
        receive.called, receive.is_received = self._clocks[receive.rank].now, True
        if comm not in self._open:
            super()._receive(receive, comm, tag)
            return
        channel, key = self._channel(comm, receive.rank, tag)
        if channel.later:
            channel.later.append(receive)
        else:
            self._post(channel, receive, key)

    def _asks(self, send: Request) -> bool:
        """Tell whether a message waits for its receive."""
        return not send.is_done or send.size > self._platform.eager

    def _match(self, send: Request, receive: Request) -> None:
        latency = self._platform.latency
        tail = max(send.size - 1, 0) * self._platform.gap_per_byte
        begin = send.begin
        if self._asks(send):
            begin = max(begin, max(send.announced, receive.called) + latency)
            if not send.is_done:
                send.done, send.ready = begin + tail, receive.called
        receive.done = max(begin + tail + latency, receive.called)
        receive.ready = send.called
        super()._match(send, receive)

    def _channel(self, comm: int, rank: int, tag: int) -> tuple[_Channel, tuple[int, int, int]]:
        key = comm, rank, tag
        found = self._channels.get(key)
        if found is None:
            found = self._channels[key] = _Channel()
        return found, key

    def _post(self, channel: _Channel, receive: Request, key: tuple[int, int, int]) -> None:
        """Post a receive that no receive from any source precedes."""
        if receive.peer < 0:
            channel.later.append(receive)
            self._offer(channel, key)
        elif channel.sent.get(receive.peer):
            self._match(channel.take(receive.peer), receive)
        else:
            channel.expected.setdefault(receive.peer, deque()).append(receive)

    def _offer(self, channel: _Channel, key: tuple[int, int, int]) -> None:
        """Note the first message that the next receive from any source can take."""
        first = channel.first()
        if channel.later and first is not None:
            time = max(channel.later[0].called, first.announced)
            heapq.heappush(self._choices, (time, first.announced, *key))

    def _decide(self) -> bool:
        """Match receives from any source, the earliest first, until a rank can run."""
        while self._choices and not self._runnable:
            time, announced, *key = heapq.heappop(self._choices)
            place = key[0], key[1], key[2]
            channel = self._channels[place]
            first = channel.first()
            if not channel.later or first is None:
                continue
            receive = channel.later[0]
            if (time, announced) != (max(receive.called, first.announced), first.announced):
                continue  # the receive of this choice has its message
            channel.later.popleft()
            self._match(channel.take(first.rank), receive)
            following = channel.later
            channel.later = deque()
            while following and not channel.later:
                self._post(channel, following.popleft(), place)
            channel.later.extend(following)
        return bool(self._runnable)

    def _join(self, request: Request, comm: int) -> None:
        request.called, request.is_received = self._clocks[request.rank].now, False
        super()._join(request, comm)

    def _size(self, one: Request, name: str, n: int) -> int:
        """Return the bytes of a member of a collective operation."""
        if name == "barrier":
            return 0
        form = self._shapes[one.shape].form
        return member_size(name, form, one.values[_BYTES], one.values[_RECEIVED], n)

    def _finish(self, arrived: Sequence[Request], comm: int, group: int) -> None:
        """Complete a collective operation: each member leaves at a time of its own."""
        places = self._places.get((comm, group))
        if places is None:
            members = self._communicators[comm].groups[group]
            places = self._places[comm, group] = {rank: k for k, rank in enumerate(members)}
        ordered = sorted(arrived, key=lambda one: places[one.rank])
        first = self._shapes[ordered[0].shape]
        name = "barrier" if first.kind is Kind.HANDLE else first.name
        n, is_started = len(ordered), first.kind is Kind.ICOLLECTIVE
        entered = np.array([one.called for one in ordered])
        port = np.array([self._clocks[one.rank].port for one in ordered])
        sizes = [self._size(one, name, n) for one in ordered]
        root = ordered[0].values[_ROOT] if name in ROOTED else 0
        is_blocking = first.kind is Kind.COLLECTIVE
        call = Call(name, root % n, np.array(sizes, np.int64), is_blocking)
        left, port = self._times.leave(call, entered, port)
        ready = max(one.called for one in ordered)
        for one, done, free in zip(ordered, left.tolist(), port.tolist(), strict=True):
            one.done, one.ready = done, ready
            if not is_started:
                self._clocks[one.rank].port = free
        super()._finish(arrived, comm, group)
