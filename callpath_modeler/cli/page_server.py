"""A server of one page on this machine, for the owner of a random token.

It listens on the loopback device only. Other users of a login node can reach this device as well,
so the address contains a token that cannot be guessed. Connections without it are limited in time
and number, see `waiting_connections`.
"""

from __future__ import annotations

import hmac
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import parse_qs, urlsplit

from callpath_modeler.cli.waiting_connections import SECONDS, WaitingConnections

Connection = socket.socket

LOOPBACK = "127.0.0.1"
_LONGEST = 4_000
"""Largest number of characters of a request's path and query."""
_MOST_FIELDS = 20
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


@dataclass(frozen=True, slots=True)
class Response:
    """An answer to a request.

    Attributes
    ----------
    status : HTTP status
    text : an HTML document
    policy : its content security policy
    """

    status: int
    text: str
    policy: str


class PageServer(ThreadingHTTPServer):
    """A server of one page.

    Parameters
    ----------
    answer : returns the page for a parsed query; it is called by one thread at a time
    port : port to listen on; 0 = any free port

    Raises
    ------
    OSError
        If the port is in use.
    """

    daemon_threads = True
    allow_reuse_address = False
    request_queue_size = 128

    def __init__(
        self, answer: Callable[[Mapping[str, Sequence[str]]], Response], port: int
    ) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.token = secrets.token_urlsafe(32)
        self.answer = answer
        self.lock = Lock()
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
        try:
            query = parse_qs(address.query, max_num_fields=_MOST_FIELDS, errors="replace")
        except ValueError:
            self._refuse(400, "too many fields")
            return
        with self.server.lock:
            answer = self.server.answer(query)
        rules = "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        self._send(answer.status, answer.text, f"{answer.policy}; {rules}")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that is no GET, or malformed, without quoting it."""
        del message, explain
        self._refuse(code, "only GET" if code == 501 else "refused")

    def _refuse(self, status: int, text: str) -> None:
        self._send(status, f"<!DOCTYPE html><title>{text}</title><p>{text}", "default-src 'none'")

    def _send(self, status: int, text: str, policy: str) -> None:
        content = text.encode("utf-8", "replace")
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
