"""`cpmodel browse --web`: a page on this machine, for the owner of its address."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from callpath_modeler.cli import web
from callpath_modeler.cli.web import PageServer
from callpath_modeler.report.page import notebook
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


@pytest.fixture(scope="module")
def server(stored):
    """A server of the page of `stored`."""
    with PageServer(page_of(stored), 0) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield served
        served.shutdown()


def page_of(stored):
    """Return the page of stored models at p = 1000."""
    ranking = Study(stored).ranking(target=1000.0)
    return notebook.page_of(ranking, 900).text


def page(server):
    """Return status and text of the page."""
    answer, text = asked(server.url)
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


def served(run, words):
    """Return the page that `browse --web` serves for a command line."""
    texts = []

    def serve(_console, text, _port):
        texts.append(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(web, "serve", serve)
        outcome = run("browse", *words, "--web")
    assert outcome.status == 0, outcome.err
    (text,) = texts
    return text


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--target", "500", "-m", "visits"],
        ["--where", "p>=125"],
        ["--pair", "8,125"],
    ],
)
def test_the_page_is_that_of_a_report(samples, run, words):
    line = [samples / "lulesh", *words]
    outcome = run("report", *line)
    assert outcome.status == 0, outcome.err
    assert served(run, line) == outcome.out


def test_the_page_of_two_experiments_is_that_of_a_difference(samples, run, tmp_path):
    base, new = samples / "lulesh", samples / "stencil"
    run("fit", base, "--where", "p<100", "-o", tmp_path / "base.cpm")
    run("diff", tmp_path / "base.cpm", base, "--target", "500", "-o", tmp_path / "page.html")
    line = [base, "--compare", tmp_path / "base.cpm", "--target", "500"]
    assert served(run, line) == (tmp_path / "page.html").read_text(encoding="utf-8")
    run("browse", new, "--compare", base, "--web").fails(4, "no call path in common")


@cells(
    "words",
    [
        ["--view", "flat"],
        ["--filter", "**/MPI_*"],
        ["--sort", "growth"],
        ["--reverse"],
        ["--zoom", "main"],
        ["--min-share", "2%"],
        ["--source-path", "a=b"],
    ],
)
def test_options_of_views_are_refused(stored, run, words):
    run("browse", stored, "--web", *words).fails(2, f"{words[0]} is for the terminal")


def test_only_the_address_with_the_token_has_a_page(server):
    token = server.token
    assert len(token) >= 43
    for path in ("/", f"/{token}", f"/{token}/x", f"/{token[:-1]}/", f"/{token}x/", f"/{token}/../",
                 "/../etc/passwd", "/%2e%2e/", f"/{token.swapcase()}/"):  # fmt: skip
        answer, text = asked(server.url, path=path)
        assert answer.status == 404, path
        assert token not in text
    assert asked(server.url, path=f"/{token}/?x=" + "y" * 5000)[0].status == 414
    assert asked(server.url, path=f"/{token}/?x=<script>")[1] == page(server)[1]


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
    for rule in ("default-src 'none'", "form-action 'none'", "base-uri 'none'",
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
    with PageServer("", 0) as one, PageServer("", 0) as other:
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
             server.url]  # fmt: skip
    done = subprocess.run(words, capture_output=True, check=True, timeout=120, text=True)
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
