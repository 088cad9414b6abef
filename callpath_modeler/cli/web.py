"""`cpmodel browse --web`: the views on a page for a browser on this machine.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import click

from callpath_modeler.cli.console import Console
from callpath_modeler.cli.report import provenance_of
from callpath_modeler.cli.view_options import parse_share
from callpath_modeler.errors import CallpathModelerError, OutputError, UsageError, did_you_mean

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer
    from callpath_modeler.fitted import Fitted
    from callpath_modeler.profile.view_request import ViewRequest
    from callpath_modeler.report.page.document import PageQuery
    from callpath_modeler.report.page.markup import PageContent
    from callpath_modeler.tui.services import BrowserServices


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


_CARDS = 10
"""Number of call paths with charts on a page."""


class WebViews:
    """The pages of an experiment.

    Parameters
    ----------
    ctx : context of the command
    services : models, targets and commands
    forecast : the first predictions
    request : the first view
    """

    def __init__(
        self,
        ctx: click.Context,
        services: BrowserServices,
        forecast: Answer,
        request: ViewRequest,
    ) -> None:
        self._ctx = ctx
        self._services = services
        self._first = forecast
        self._request = request
        self._shown = forecast
        self._data: tuple[tuple[Fitted, float, bool], str] | None = None

    def answer(self, query: Mapping[str, Sequence[str]]) -> Response:
        """Return the page for a query; a query that makes no sense is told on the usual page."""
        from callpath_modeler.report.page.document import PageQuery

        # An empty field of the form is an empty filter, but no query is the command line's view.
        asked = PageQuery.of(query) if query else PageQuery(filter=self._request.keep)
        try:
            return Response(200, self._page(asked), _policy())
        except CallpathModelerError as error:
            hint = f" ({error.hint})" if error.hint else ""
            refused = f"{error.message}{hint}"
            return Response(400, self._page(PageQuery(), asked, refused), _policy())

    def _page(self, query: PageQuery, typed: PageQuery | None = None, refused: str = "") -> str:
        """Return the page of a query.

        Parameters
        ----------
        query : the query
        typed : texts that the controls show again, because they were refused
        refused : the reason
        """
        from callpath_modeler.analysis.answer import By, rank
        from callpath_modeler.profile.tree_views import ViewKind
        from callpath_modeler.profile.view_request import Sort
        from callpath_modeler.report.page.document import controls, served_page
        from callpath_modeler.report.page.markup import PageContent
        from callpath_modeler.studies.pipeline import explain_all
        from callpath_modeler.studies.question import findings_at
        from callpath_modeler.units import parameter_value

        made = self._forecast(query)
        fitted, target = made.fitted, made.target
        request = self._view(query, made)
        by = By.LOSS if made.is_comparison else By.VALUE
        ranking = rank(
            fitted,
            target,
            by,
            inclusive=request.leads_inclusive and fitted.metric.additive,
            predicted=made.inputs.predicted,
        )
        content = PageContent(
            ranking=ranking,
            forecast=made,
            causes=explain_all(ranking, ranking.order[:_CARDS].tolist()),
            check=None,
            findings=findings_at(fitted, target),
            making=provenance_of(self._ctx, self._ctx.params["experiment"], fitted),
            top=_CARDS,
        )
        filled = typed or _filled(query, fitted, parameter_value(target), request)
        form = controls(
            filled,
            metrics=fitted.experiment.readable,
            views=list(map(str, ViewKind)),
            sorts=[str(sort) for sort in Sort if sort in made.sorts],
            parameter=fitted.parameter,
            command=self._services.command(request, made.inputs, target),
            refused=refused,
        )
        return served_page(content, request, form, self._data_of(content))

    def _data_of(self, content: PageContent) -> str:
        """Return the data of the page; those of the last answer are kept for its other views."""
        from callpath_modeler.report.page.document import data_of

        ranking = content.ranking
        key = ranking.fitted, ranking.target, ranking.inclusive
        if self._data is None or self._data[0] != key:
            self._data = key, data_of(content)
        return self._data[1]

    def _forecast(self, query: PageQuery) -> Answer:
        """Return the predictions for a query; the last ones are kept."""
        from callpath_modeler.analysis.answer import answer_at
        from callpath_modeler.analysis.answer_bands import AnswerInputs

        first, shown = self._first, self._shown
        inputs = next((one.inputs for one in (shown, first)
                       if one.fitted.metric.name == query.metric), None)  # fmt: skip
        if not query.metric:
            inputs = first.inputs
        if inputs is None:
            models = self._services.models_of(query.metric, self._services.pair)
            inputs = AnswerInputs(models, predicted=first.inputs.predicted)
        target = first.target
        if query.target:
            target = self._services.target_of(query.target, inputs.fitted)
        for one in (shown, first):
            if one.inputs is inputs and one.target == target:
                return one
        self._shown = answer_at(inputs, target)
        return self._shown

    def _view(self, query: PageQuery, made: Answer) -> ViewRequest:
        """Return the view of a query."""
        from dataclasses import replace

        from callpath_modeler.profile.tree_views import ViewKind
        from callpath_modeler.profile.view_request import Sort
        from callpath_modeler.report.page.document import VALUES
        from callpath_modeler.report.page.trees import page_request

        request = self._request
        if query.view:
            kind = ViewKind(_chosen("view", query.view, list(map(str, ViewKind))))
            if kind is not request.kind:
                request = replace(request, kind=kind, zoom="", opened=(), closed=())
        if query.values:
            leads = _chosen("values", query.values, [name for name in VALUES if name])
            request = replace(request, inclusive=leads == "inclusive")
        order = request.sort if request.sort in made.sorts else made.usual_sort
        if query.sort:
            order = Sort(_chosen("order", query.sort, list(map(str, made.sorts))))
        least = request.least
        if query.share:
            least = parse_share(query.share, "lines")
        return page_request(replace(request, keep=query.filter, sort=order, least=least))


def _chosen(what: str, text: str, choices: Sequence[str]) -> str:
    if text not in choices:
        hint = did_you_mean(text, choices) or f"one of {', '.join(choices)}"
        raise UsageError(f"no {what} {text!r}", hint=hint)
    return text


def _filled(query: PageQuery, fitted: Fitted, target: str, request: ViewRequest) -> PageQuery:
    """Return the texts of the controls for the view that is shown."""
    from dataclasses import replace

    return replace(
        query,
        metric=fitted.metric.name,
        target=query.target or target,
        view=str(request.kind),
        sort=str(request.sort),
        share=query.share or ("1%" if request.least else "0"),
    )


def _policy() -> str:
    from callpath_modeler.report.page.document import page_script, policy

    return policy(page_script())


def serve(console: Console, views: WebViews, port: int) -> None:
    """Serve pages until Ctrl+C.

    Raises
    ------
    OutputError
        If the port cannot be used.
    """
    try:
        server = PageServer(views.answer, port)
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
