"""`cpmodel browse --web`: a page on this machine, for the owner of its address."""

from __future__ import annotations

import csv
import html
import http.client
import io
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.analysis.answer_bands import AnswerInputs
from callpath_modeler.cli import browse, web
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.web import PageServer, Response, WebViews
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.profile.view_request import Sort, ViewRequest
from callpath_modeler.studies import loading
from callpath_modeler.studies.study import Study
from cells import cells

INTERRUPTIBLE = """
import signal
from callpath_modeler.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""
"""The command, which ctrl+c ends even if it runs in the background of a shell."""

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


def answers(line, fitted, target, request):
    """Return what a server of the views of a command line answers to queries."""
    ctx = browse.command.make_context("browse", line, obj=Console())
    with ctx:
        study = Study(ctx.params["experiment"])
        services = browse.browser_services(Console(), ctx, study, fitted)
    views = WebViews(ctx, services, answer_at(AnswerInputs(fitted), target), request)

    def answer(query):
        with ctx:
            return views.answer(query)

    return answer


@pytest.fixture(scope="module")
def server(stored):
    """A server of the views of `stored`."""
    fitted = Study(stored).models("time")
    line, request = [str(stored), "--target", "1000"], ViewRequest(least=0.01)
    with PageServer(answers(line, fitted, 1000.0, request), 0) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield served
        served.shutdown()


def page(server, **query):
    """Return status and text of a page."""
    answer, text = asked(server.url, path=f"/{server.token}/?{urlencode(query)}")
    return answer.status, text


def asked(url, method="GET", path=None, **headers):
    """Send a request as it is, and return the answer with its text."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
    connection.putrequest(method, path or place.path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def command_of(text):
    (line,) = re.findall(r"on the command line: <code>(.*?)</code>", text)
    return shlex.split(html.unescape(line))


def test_the_page_has_the_answer_and_the_view_of_the_terminal(server):
    status, text = page(server)
    assert status == 200
    assert "at p = 1000" in text
    assert "LagrangeLeapFrog" in text
    assert "sum check: the lines add up to the sum" in text


@cells(
    "query",
    [
        {},
        {"view": "flat", "target": "500", "sort": "growth"},
        {"view": "bottom-up", "share": "0.1%", "values": "inclusive"},
        {"view": "top-down", "filter": "**/MPI_*", "share": "0"},
        {"metric": "visits", "target": "250"},
    ],
)
def test_the_command_on_the_page_prints_its_lines(server, run, query):
    status, text = page(server, **query)
    assert status == 200
    program, *words = command_of(text)
    assert program == "cpmodel"
    outcome = run(*words, "-f", "csv")
    assert outcome.status == 0, outcome.err
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    tree = text[text.index('id="tree"') : text.index('id="ranking"')]
    lines = re.findall(r'<span class="line">(.*?)</span></(?:li|summary)>', tree)
    assert len(lines) == len(rows)
    leads_inclusive = "values" in query or query.get("view", "top-down") == "top-down"
    lead = "inclusive" if leads_inclusive else "exclusive"
    unit = "1" if query.get("metric") else "s"
    for line, row in zip(lines, rows, strict=True):
        told = re.search(r'<span class="value"><data value="(.*?)">', line)
        want = row.get(f"value_at_target_{lead}[{unit}]") or row[f"value_at_target_{lead}"]
        assert float(told[1]) == pytest.approx(float(want or "nan"), rel=1e-12, nan_ok=True)


def test_the_first_page_has_the_view_of_the_command_line(stored):
    fitted = Study(stored).models("time")
    request = ViewRequest(keep="**/MPI_*", sort=Sort.NAME, kind=ViewKind.FLAT)
    answer = answers([str(stored)], fitted, 500.0, request)
    first, form = answer({}).text, answer({"filter": [""], "sort": ["name"]}).text
    for text in (first, form):
        assert "at p = 500" in text
        assert '<option value="flat" selected>' in text
        assert '<option value="name" selected>' in text
    assert 'name="filter" value="**/MPI_*"' in first
    assert 'name="filter" value=""' in form


@pytest.mark.parametrize(("scales", "target"), [((125,), 125.0), ((8, 125), 125.0)])
def test_one_scale_and_two_scales_have_a_page(lulesh, scales, target):
    condition = f"p>={scales[0]}" if len(scales) == 1 else "p>4"
    made = loading.load([lulesh], loading.LoadOptions(where=condition))
    pairs = [scales] if len(scales) == 2 else []
    fitted = Study(made).measured("time", pairs=pairs)
    line = [str(lulesh), *(["--pair", "8,125"] if pairs else ["--where", condition])]
    answer = answers(line, fitted, target, ViewRequest(least=0.01))
    for query in ({}, {"view": ["bottom-up"], "target": [f"{target:g}"]}):
        found = answer(query)
        assert found.status == 200, found.text[:3000]
        assert "p=125" in found.text
    assert answer({"target": ["1e6"]}).status == 400


def test_what_was_asked_is_in_the_controls_again(server):
    _, text = page(server, metric="visits", target="500", view="flat", filter="**/MPI_*")
    for field in ('<option value="visits" selected>', '<option value="flat" selected>',
                  'name="target" value="500"', 'name="filter" value="**/MPI_*"'):  # fmt: skip
        assert field in text


@cells(
    ("query", "said"),
    [
        ({"target": "many"}, "many"),
        ({"target": "-4"}, "-4"),
        ({"view": "sideways"}, "no view"),
        ({"values": "x"}, "no values"),
        ({"sort": "colour"}, "no order"),
        ({"share": "200%"}, "lines"),
        ({"metric": "nonsense"}, "nonsense"),
        ({"filter": "zzz"}, "no call path matches"),
        ({"filter": "~(" * 50}, 'class="refused"'),
        ({"filter": "\x00\x1b[31m\u202e"}, 'class="refused"'),
    ],
)
def test_a_query_that_makes_no_sense_is_told_and_the_usual_page_stays(server, query, said):
    status, text = page(server, **query)
    assert status == 400
    assert said in text
    assert 'role="alert"' in text
    assert "at p = 1000" in text
    assert "\x1b" not in text
    assert "Traceback" not in text


def test_text_of_a_query_never_becomes_markup(server):
    bad = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
    for name in ("metric", "target", "view", "values", "sort", "share", "filter", bad):
        _, text = page(server, **{name: bad})
        assert "<script>alert" not in text
        assert "<img" not in text


def test_only_the_address_with_the_token_has_a_page(server):
    token = server.token
    assert len(token) >= 43
    for path in ("/", f"/{token}", f"/{token}/x", f"/{token[:-1]}/", f"/{token}x/", f"/{token}/../",
                 "/../etc/passwd", "/%2e%2e/", f"/{token.swapcase()}/"):  # fmt: skip
        answer, text = asked(server.url, path=path)
        assert answer.status == 404, path
        assert token not in text
    assert asked(server.url, path=f"/{token}/?x=" + "y" * 5000)[0].status == 414
    assert (
        asked(server.url, path=f"/{token}/?" + "&".join("a=1" for _ in range(99)))[0].status == 400
    )


@cells("method", ["POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "X<b>"])
def test_only_get_is_answered(server, method):
    answer, text = asked(server.url, method)
    assert answer.status == 501
    assert "<b>" not in text
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_a_page_of_another_site_cannot_ask(server):
    port = server.port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", "localhost:9999"):
        assert asked(server.url, Host=host)[0].status == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example:80", "",
                 "127.0.0.1", f"127.0.0.1:{port}@evil.example:80"):  # fmt: skip
        assert asked(server.url, Host=host)[0].status == 403, host


def test_the_page_loads_nothing_and_is_neither_kept_nor_framed(server):
    answer, text = asked(server.url)
    policy = answer.headers["Content-Security-Policy"]
    for rule in ("default-src 'none'", "form-action 'self'", "base-uri 'none'",
                 "frame-ancestors 'none'", "script-src 'sha256-"):  # fmt: skip
        assert rule in policy
    assert "unsafe-inline'" not in policy.split("script-src")[1]
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Access-Control-Allow-Origin"] is None
    assert "Python" not in str(answer.headers)
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)


def test_the_server_is_only_on_the_loopback_device(server):
    assert server.server_address[0] == "127.0.0.1"


def test_tokens_differ():
    def never(_):
        return Response(200, "", "")

    with PageServer(never, 0) as one, PageServer(never, 0) as other:
        assert one.token != other.token


def test_many_open_connections_do_not_stop_the_server(server):
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
    for one in idle:
        one.close()
    time.sleep(0.5)
    assert page(server)[0] == 200


@contextmanager
def slow_sockets(server, number):
    """Sockets that have sent the beginning of a request, and never end it."""
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(number)]
    try:
        for one in slow:
            # The server may have ended it already.
            with suppress(OSError):
                one.sendall(b"GET / HTTP/1.0\r\nX: ")
        yield slow
    finally:
        for one in slow:
            one.close()


@pytest.fixture
def patient(monkeypatch):
    """Let slow requests stay for the whole test, however slow the machine is."""
    monkeypatch.setattr(web, "SECONDS", 600.0)


def test_the_owner_gets_the_page_while_slow_sockets_hold_all_places(server, patient):  # noqa: ARG001
    with slow_sockets(server, 3 * web.PLACES):
        assert [page(server)[0] for _ in range(3)] == [200, 200, 200]
        assert len(server.waiting) <= web.PLACES


def test_connections_of_other_users_end_before_those_of_the_owner(server, patient, monkeypatch):  # noqa: ARG001
    mine = socket.create_connection(("127.0.0.1", server.port))
    with mine:
        port, own = mine.getsockname()[1], os.getuid()
        users = Users({port: own})
        monkeypatch.setattr(web, "users_of_connections", lambda _: users)
        with slow_sockets(server, 5 * web.PLACES):
            page(server)
            mine.sendall(f"GET /{server.token}/ HTTP/1.0\r\nHost: localhost:1\r\n\r\n".encode())
            assert mine.recv(12) == b"HTTP/1.0 200"


class Users(dict):
    """Users by port; all other ports are those of another user."""

    def get(self, port):
        return super().get(port, os.getuid() + 1)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the system lists no connections")
def test_the_system_says_which_user_connects(server):
    with slow_sockets(server, 2) as slow:
        users = web.users_of_connections(server.port)
        assert {users[one.getsockname()[1]] for one in slow} == {os.getuid()}


def test_a_request_of_one_byte_a_second_ends_at_its_limit(server, monkeypatch):
    monkeypatch.setattr(web, "SECONDS", 1.5)
    with slow_sockets(server, 1) as (one,):
        sent = 0
        with suppress(OSError):
            for _ in range(60):
                one.settimeout(1.0)
                with suppress(TimeoutError):
                    if not one.recv(1):
                        break
                one.sendall(b"a")
                sent += 1
        assert 0 < sent < 30
    # Each byte is sent well within the time in which the next one has to arrive.
    assert web._Handler.timeout > web.SECONDS


@pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")
def test_a_browser_shows_the_page_and_its_script_runs(server, tmp_path):
    words = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}",
             "--virtual-time-budget=60000", "--enable-logging=stderr", "--dump-dom",
             f"{server.url}?view=bottom-up"]  # fmt: skip
    done = subprocess.run(words, capture_output=True, check=True, timeout=120, text=True)
    assert "function, then its callers" in done.stdout
    assert 'data-ready="yes"' in done.stdout  # the script has read its data
    assert "Refused to" not in done.stderr
    assert "Content Security Policy" not in done.stderr


def test_the_command_prints_the_address_and_ends_with_ctrl_c(stored, clean, monkeypatch):  # noqa: ARG001
    monkeypatch.setenv("SSH_CONNECTION", "1 2 3 4")
    words = [sys.executable, "-c", INTERRUPTIBLE, "browse", str(stored), "--web"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as here:
        try:
            url = here.stdout.readline().strip()
            assert asked(url)[0].status == 200
            here.send_signal(signal.SIGINT)
            out, err = here.communicate(timeout=60)
        finally:
            here.kill()
    assert here.returncode == 0, err
    port = urlsplit(url).port
    assert not out
    assert f"ssh -L {port}:127.0.0.1:{port} " in err
    assert "Traceback" not in err
    assert urlsplit(url).path not in err


def test_a_port_in_use_and_a_port_without_a_page_are_one_clear_error(run, stored, server):
    run("browse", stored, "--port", "8080").fails(2, "--port is for the page of --web")
    run("browse", stored, "--web", "--port", server.port).fails(6, f"port {server.port}: ")


def test_a_ratio_has_views_of_sums(samples):
    runs, definition = samples / "stencil", "per_visit = time / visits"
    fitted = Study(runs, loading.LoadOptions(define=definition)).models("per_visit")
    line = [str(runs), "--define", definition, "--target", "1024"]
    answer = answers(line, fitted, 1024.0, ViewRequest(least=0.01))
    for query in ({}, {"view": ["flat"], "target": ["2048"]}):
        found = answer(query)
        assert found.status == 200, found.text[:3000]
        assert "the lines add up to the total of time" in found.text
        assert '<option value="per_visit" selected>' in found.text
