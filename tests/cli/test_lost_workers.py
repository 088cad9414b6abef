"""Workers of Dask that cannot work: each is one line that names the culprit, and soon."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import working
from two_stores import check_same_stores

pytest.importorskip("distributed", reason="the extra [dask] is not installed")

SLOW = """
import time
from contextlib import contextmanager
from cpmodel_scorep import CubexReader

class Slow(CubexReader):
    name = "slow"
    description = "takes a second for a profile"

    @contextmanager
    def open(self, path):
        time.sleep(1.0)
        with super().open(path) as source:
            yield source
"""
OTHER_BUILD = """
from functools import cache

@cache
def build_identity():
    return "0.0.9 (commit 01234567), sources 00000000"
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def process(*words, cwd, **environment):
    """Run a module of Python in a folder; end it afterwards."""
    started = subprocess.Popen(
        [sys.executable, "-m", *map(str, words)],
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler: its process and its address."""
    port = free_port()
    words = (
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        port,
        "--no-dashboard",
    )
    with process(*words, cwd=tmp_path) as started:
        end = time.monotonic() + working.HUNG
        while not listens(port):
            assert time.monotonic() < end
            time.sleep(0.1)
        yield started, f"tcp://127.0.0.1:{port}"


def worker(address, cwd, **environment):
    words = "distributed.cli.dask_worker", address, "--nthreads", 1, "--no-nanny", "--no-dashboard"
    return process(*words, cwd=cwd, **environment)


@pytest.fixture
def runs(samples, tmp_path):
    return shutil.copytree(samples / "stencil", tmp_path / "runs")


def test_a_text_that_is_no_address_is_refused_at_once(spawn, runs):
    for text in ("nonsense", "tcp://", "node:x", "node:99999", "a b:1", "http://node:1"):
        done = spawn("info", runs, "--executor", f"dask:{text}")
        done.fails(2, f"{text!r} is no address of a scheduler", "dask:tcp://node17:8786")
        assert len(done.err.splitlines()) == 2


def test_a_program_that_is_no_scheduler_is_one_error(spawn, runs):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        done = spawn("info", runs, "--executor", f"dask:{address}")
    done.fails(2, f"no scheduler answers at {address}")
    assert len(done.err.splitlines()) == 2


def test_a_scheduler_without_workers_is_one_error(run, runs, scheduler, monkeypatch):
    monkeypatch.setattr("callpath_modeler.support.executors._SECONDS_TO_FIRST_WORKER", 0.5)
    _, address = scheduler
    done = run("info", runs, "--executor", f"dask:{address}")
    done.fails(2, f"the scheduler at {address} has no worker")


def test_relative_paths_reach_workers_in_other_folders(run, runs, tmp_path, scheduler, monkeypatch):
    _, address = scheduler
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.py").write_text(SLOW.replace("time.sleep(1.0)", "pass"))
    (tmp_path / "elsewhere").mkdir()
    (runs / "broken.p1.cubex").write_bytes(b"no profile")
    words = "fit", "runs", "--reader", "slow.py", "-o"
    here = run(*words, "here.cpm")
    with worker(address, tmp_path / "elsewhere"):
        there = run(*words, "there.cpm", "--executor", f"dask:{address}")
    assert (here.status, there.status) == (0, 0), there.err
    assert there.out.replace("there.cpm", "here.cpm") == here.out
    progress = [line for line in there.err.splitlines() if not line.startswith("read ")]
    assert progress == here.err.splitlines()
    check_same_stores(tmp_path / "here.cpm", tmp_path / "there.cpm")


@pytest.mark.parametrize("kind", ["old", "other", "none"])
def test_a_worker_of_another_build_is_refused_before_the_first_task(
    spawn, runs, tmp_path, scheduler, kind
):
    _, address = scheduler
    package = tmp_path / "other" / "callpath_modeler"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    if kind == "other":
        (package / "support").mkdir()
        (package / "support" / "__init__.py").touch()
        (package / "support" / "atomic.py").write_text(OTHER_BUILD)
    if kind == "none":
        (package / "__init__.py").write_text("raise ImportError")
    with worker(address, "/", PYTHONPATH=str(package.parent)):
        done = spawn("info", runs, "--executor", f"dask:{address}")
    done.fails(2, "worker at tcp://127.0.0.1:", "this command has callpath-modeler")
    assert len(done.err.splitlines()) == 2
    if kind == "other":
        assert "has callpath-modeler 0.0.9 (commit 01234567), sources 00000000" in done.err


def test_a_worker_that_does_not_see_the_profiles_is_named(run, runs, scheduler):
    _, address = scheduler
    # The worker asks in its own process, so the path is hidden from it by a name of this one.
    hidden = Path(f"/proc/self/fd/{os.open(runs, os.O_RDONLY)}")
    with worker(address, "/"):
        done = run("info", hidden, "--executor", f"dask:{address}")
    done.fails(3, "worker at tcp://127.0.0.1:", f"does not see {hidden}", "where all nodes see")


def test_a_scheduler_that_is_lost_during_work_is_one_error(spawn, runs, tmp_path, scheduler):
    started, address = scheduler
    reader = tmp_path / "slow.py"
    reader.write_text(SLOW)
    with worker(address, "/"):
        killer = threading.Timer(6.0, started.send_signal, [signal.SIGKILL])
        killer.start()
        done = spawn(
            *("--no-progress", "info", runs, "--reader", reader, "--executor", f"dask:{address}")
        )
        killer.join()
    done.fails(7, f"the scheduler at {address} does not answer any more")
    assert len(done.err.splitlines()) == 2


def test_workers_that_are_all_lost_during_work_are_one_error(
    run, runs, tmp_path, scheduler, monkeypatch
):
    monkeypatch.setattr("callpath_modeler.support.executors._SECONDS_WITHOUT_WORKER", 1.0)
    monkeypatch.setattr("callpath_modeler.support.parallel._SECONDS_BETWEEN_CHECKS", 0.5)
    _, address = scheduler
    reader = tmp_path / "slow.py"
    reader.write_text(SLOW)
    with worker(address, "/") as started:
        killer = threading.Timer(6.0, started.kill)
        killer.start()
        done = run("info", runs, "--reader", reader, "--executor", f"dask:{address}")
        killer.join()
    done.fails(7, f"the scheduler at {address} has had no worker")
