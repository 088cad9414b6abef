"""`cpmodel browse --web`: the page of `cpmodel report` for a browser on this machine.

Anybody on the machine can open connections. A connection has a few seconds to send its whole
request, and there is a limited number of places. If all places are taken, the peer with most of
them loses its oldest one. A peer is a user of this machine, so other users cannot keep the owner
out, however many connections they open and however slowly they send.

It listens on the loopback device only. Other users of a login node can reach this device as well,
so the address contains a token that cannot be guessed. Connections without it are limited in time
and number.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import re
import secrets
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from urllib.parse import urlsplit

from callpath_modeler.cli.console import Console
from callpath_modeler.errors import OutputError

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


Connection = socket.socket

LOOPBACK = "127.0.0.1"
_LONGEST = 4_000
"""Largest number of characters of a request's path and query."""
_SECONDS_TO_READ = 30.0
"""Time in which a browser has to take the page."""
_HOSTS = frozenset({LOOPBACK, "localhost"})
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class PageServer(ThreadingHTTPServer):
    """A server of one page.

    Parameters
    ----------
    text : the page, an HTML document
    port : port to listen on; 0 = any free port

    Raises
    ------
    OSError
        If the port is in use.
    """

    daemon_threads = True
    allow_reuse_address = False
    request_queue_size = 128

    def __init__(self, text: str, port: int) -> None:
        from callpath_modeler.report.page.document import page_script, policy

        super().__init__((LOOPBACK, port), _Handler)
        self.token = secrets.token_urlsafe(32)
        self.content = text.encode("utf-8", "replace")
        self.policy = policy(page_script())
        self.waiting = WaitingConnections(self.port)

    @property
    def port(self) -> int:
        """The port."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{LOOPBACK}:{self.port}/{self.token}/"

    def process_request(self, request: Connection, client_address: tuple[str, int]) -> None:  # type: ignore[override]
        """Answer in a thread; another connection ends if there are too many."""
        self.waiting.add(request, client_address[1])
        super().process_request(request, client_address)

    def process_request_thread(self, request: Connection, client_address: tuple[str, int]) -> None:  # type: ignore[override]
        """Answer."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.waiting.remove(request)

    def service_actions(self) -> None:
        """End connections that have not sent their request in time."""
        self.waiting.end_late_ones()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore broken connections: the terminal belongs to the user."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = SECONDS
    server_version = "cpmodel"
    sys_version = ""

    def do_GET(self) -> None:
        host = self.headers.get_all("Host") or [""]
        if len(host) != 1 or host[0].rpartition(":")[0] not in _HOSTS:
            # A page of another site that resolves to this machine sends its own name.
            self._refuse(403, "wrong host")
            return
        if len(self.path) > _LONGEST:
            self._refuse(414, "too long")
            return
        address = urlsplit(self.path)
        if not hmac.compare_digest(address.path.encode(), f"/{self.server.token}/".encode()):
            self._refuse(404, "not found")
            return
        self.server.waiting.remove(self.connection)
        self.connection.settimeout(_SECONDS_TO_READ)
        rules = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        self._send(200, self.server.content, f"{self.server.policy}; {rules}")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that is no GET, or malformed, without quoting it."""
        del message, explain
        self._refuse(code, "only GET" if code == 501 else "refused")

    def _refuse(self, status: int, text: str) -> None:
        content = f"<!DOCTYPE html><title>{text}</title><p>{text}".encode()
        self._send(status, content, "default-src 'none'")

    def _send(self, status: int, content: bytes, policy: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", policy)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Write nothing: the address contains the token."""


def serve(console: Console, text: str, port: int) -> None:
    """Serve a page until Ctrl+C.

    Parameters
    ----------
    text : the page, an HTML document
    port : port to listen on; 0 = any free port

    Raises
    ------
    OutputError
        If the port cannot be used.
    """
    try:
        server = PageServer(text, port)
    except OSError as cause:
        what = f"port {port}: {cause.strerror or cause}"
        raise OutputError(what, hint="omit --port for a free one") from cause
    with server:
        console.result(f"{server.url}\n")
        told = "Open this address in a browser on this machine. Ctrl+C ends the server."
        console.note(told, asked=True)
        if os.environ.get("SSH_CONNECTION"):
            forward = f"{server.port}:{LOOPBACK}:{server.port}"
            console.note(
                f"From your own machine, run this first: ssh -L {forward} {socket.gethostname()}",
                asked=True,
            )
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            console.note("the server has ended")
