"""Times of collective operations: each round of messages on the clocks of all members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from callpath_modeler.arrays import FloatArray, Int64Array
from callpath_modeler.input_limits import UNLIMITED, InputLimits, Work
from cpmodel_commspec.collective_messages import Batch, batches, usual
from cpmodel_commspec.replay.platform import Platform

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
    """

    name: str
    root: int
    sizes: Int64Array


class CollectiveTimes:
    """Times of collective operations on a platform.

    A member leaves the operation as soon as its own part is complete. Members that come late delay
    only those that need their messages. Reductions cost no time besides their messages, because
    LogGP has no parameter for it.

    Parameters
    ----------
    limits : limits of the messages that the program may cause
    """

    def __init__(self, platform: Platform, limits: InputLimits = UNLIMITED) -> None:
        self._platform, self._limits = platform, limits
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
        for one in self._rounds(call):
            self._messages += _OF_A_ROUND + len(one.senders)
            self._limits.check(Work.MESSAGES, self._messages, "write fewer rounds of the loops")
            if one.is_burst:
                self._burst(one, now, port)
            else:
                self._pass(one, now, port)
        return np.roll(now, call.root), np.roll(port, call.root)

    def _pass(self, messages: Batch, now: FloatArray, port: FloatArray) -> None:
        """Advance the clocks by a round in which each sends and receives one message at most."""
        receivers = messages.receivers
        now[messages.senders] += self._platform.overhead
        arrived = self._sent(messages, now[receivers], now, now, port)
        now[receivers] = np.maximum(now[receivers], arrived) + self._platform.overhead

    def _burst(self, messages: Batch, now: FloatArray, port: FloatArray) -> None:
        """Advance the clocks by a round in which all receives are posted before all sends.

        Members then wait for all of them.
        """
        posted, done = now.copy(), now.copy()
        arrived = np.zeros(len(messages.senders))
        for part in _in_turn(messages.senders, np.arange(len(messages.senders))):
            one = Batch(messages.senders[part], messages.receivers[part], messages.bytes[part])
            now[one.senders] += self._platform.overhead
            arrived[part] = self._sent(one, posted[one.receivers], now, done, port)
        np.maximum(now, done, out=now)
        for part in _in_turn(messages.receivers, arrived):
            receivers = messages.receivers[part]
            now[receivers] = np.maximum(now[receivers], arrived[part]) + self._platform.overhead

    def _sent(
        self, messages: Batch, posted: FloatArray, now: FloatArray, done: FloatArray,
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
        network, (senders, _, size, _) = self._platform, messages
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
