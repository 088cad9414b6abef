"""Connections to a page server that have not shown its token yet.

Anybody on the machine can open connections. A connection has a few seconds to send its whole
request, and there is a limited number of places. If all places are taken, the peer with most of
them loses its oldest one. A peer is a user of this machine, so other users cannot keep the owner
out, however many connections they open and however slowly they send.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

PLACES = 16
"""Number of connections that may wait for their request at the same time."""
SECONDS = 5.0
"""Time for a whole request: the head, and a body if there is one."""

_LOOPBACK = "0100007F"
_TABLE = Path("/proc/net/tcp")
_LINE = re.compile(
    rf"\n *\d+: {_LOOPBACK}:([0-9A-F]{{4}}) {_LOOPBACK}:([0-9A-F]{{4}})(?: \S+){{4}} +(\d+)"
)


@dataclass(slots=True, eq=False)
class _Waiting:
    connection: socket.socket
    port: int
    end: float
    peer: int | None = None


@dataclass(slots=True)
class WaitingConnections:
    """The connections of one server without a complete request with the token.

    Attributes
    ----------
    port : port of the server
    """

    port: int
    _waiting: dict[int, _Waiting] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, connection: socket.socket, port: int) -> None:
        """Add a connection from a port; if there is no place, another connection ends."""
        with self._lock:
            made = _Waiting(connection, port, time.monotonic() + SECONDS)
            self._waiting[id(connection)] = made
            if len(self._waiting) > PLACES:
                self._end(self._chosen())

    def remove(self, connection: socket.socket) -> None:
        """Remove a connection that has shown the token, or has ended."""
        with self._lock:
            self._waiting.pop(id(connection), None)

    def end_late_ones(self) -> None:
        """End the connections whose time for a request is over."""
        now = time.monotonic()
        with self._lock:
            for each in [each for each in self._waiting.values() if each.end <= now]:
                self._end(each)

    def _end(self, waiting: _Waiting) -> None:
        """End a connection; the thread that reads from it notices."""
        self._waiting.pop(id(waiting.connection), None)
        with contextlib.suppress(OSError):
            waiting.connection.shutdown(socket.SHUT_RDWR)

    def _chosen(self) -> _Waiting:
        """Return the oldest connection of the peer with most connections, the owner last."""
        if any(each.peer is None for each in self._waiting.values()):
            users = users_of_connections(self.port)
            for each in self._waiting.values():
                if each.peer is None:
                    each.peer = users.get(each.port)
        count = Counter(each.peer for each in self._waiting.values())
        own = os.getuid() if hasattr(os, "getuid") else None
        peer = max(count, key=lambda peer: (count[peer], peer != own))
        return next(each for each in self._waiting.values() if each.peer == peer)


def users_of_connections(port: int) -> dict[int, int]:
    """Return the users who connect to a port of the loopback device, by the port they connect from.

    It is empty where the system does not list connections.
    """
    try:
        table = _TABLE.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return {}
    found = _LINE.findall(table)
    return {int(own, 16): int(user) for own, other, user in found if int(other, 16) == port}
