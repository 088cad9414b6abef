"""Times of collective operations: each round of messages on the clocks of all members."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import numpy as np

from callpath_modeler.arrays import FloatArray
from cpmodel_commspec.replay.platform import Platform
from cpmodel_commspec.rounds import ALGORITHMS, Call, Round, algorithm

_MOST_KEPT = 1 << 20
"""Messages of calls whose rounds are kept for the next such call."""


class CollectiveTimes:
    """Times of collective operations on a platform.

    A member leaves the operation as soon as its own part is complete. Members that come late delay
    only those that need their messages. Reductions cost no time besides their messages, because
    LogGP has no parameter for it.
    """

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._known: dict[tuple[str, int, int, bytes], tuple[Round, ...]] = {}
        self._kept = 0

    def leave(
        self, name: str, call: Call, entered: FloatArray, port: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return when each member leaves, and when it can send its next message, [processes].

        Parameters
        ----------
        name : of the operation
        entered : seconds at which members enter, [processes]
        port : seconds from which on they can send, [processes]
        """
        now, port = entered.copy(), port.copy()
        for one in self._rounds(name, call):
            self._pass(one, now, port)
        return now, port

    def _pass(self, messages: Round, now: FloatArray, port: FloatArray) -> None:
        """Advance the clocks by one round."""
        network, (senders, receivers, size) = self._platform, messages
        now[senders] += network.overhead
        sent, posted = now[senders], now[receivers]
        begin = np.maximum(sent, port[senders])
        tail = np.maximum(size - 1, 0) * network.gap_per_byte
        port[senders] = begin + network.gap + tail
        is_large = size > network.eager
        if is_large.any():
            asked = np.maximum(sent + network.latency, posted)
            data = np.maximum(begin, asked + network.latency)
            begin = np.where(is_large, data, begin)
            now[senders] = np.where(is_large, data + tail, sent)
        arrived = begin + tail + network.latency
        now[receivers] = np.maximum(now[receivers], arrived) + network.overhead

    def _rounds(self, name: str, call: Call) -> Iterable[Round]:
        key = name, call.processes, call.root, call.sizes.tobytes()
        if key in self._known:
            return self._known[key]
        chosen = self._platform.algorithms.get(name) or algorithm(name, call)
        rounds, found = ALGORITHMS[name][chosen](call), list[Round]()
        for one in rounds:
            found.append(one)
            self._kept += len(one.senders)
            if self._kept > _MOST_KEPT:
                self._kept -= sum(len(x.senders) for x in found)
                return chain(found, rounds)
        self._known[key] = tuple(found)
        return found
