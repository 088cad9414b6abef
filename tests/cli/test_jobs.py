"""`-j`: output with several processes is the same as with one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

import working
from callpath_modeler.support import parallel
from two_stores import check_same_stores

READER = """
import os, signal, time
from contextlib import contextmanager
from pathlib import Path

class Odd:
    api_version = 1
    name = "odd"
    description = "d"
    suffixes = (".odd",)

    def match(self, path):
        return 2 if path.suffix == ".odd" else 0

    @contextmanager
    def open(self, path):
        what = path.read_text()
        if what == "dies" and os.getpid() != {here}:
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "waits":
            Path(f"{{path}}.{{os.getpid()}}").touch()
            time.sleep(1_000_000)
        raise ZeroDivisionError(what)
        yield
"""


HEARS = """
import signal
from callpath_modeler.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored
main()
"""


@pytest.fixture
def odd(tmp_path):
    """Write a reader, and profiles whose content controls the reader."""

    def odd(*contents):
        (tmp_path / "runs").mkdir()
        for p, what in enumerate(contents, start=1):
            (tmp_path / "runs" / f"app.p{p}.odd").write_text(what)
        reader = tmp_path / "odd_reader.py"
        reader.write_text(READER.format(here=os.getpid()))
        return tmp_path / "runs", "--reader", reader

    return odd


@pytest.fixture
def eager(monkeypatch):
    """Start processes and threads also for the smallest work, and count them."""
    started = []

    def noted(start):
        return lambda count: started.append(count) or start(count)

    for name in "_threads", "_processes":
        monkeypatch.setattr(parallel, name, noted(getattr(parallel, name)))
    for name in "PROCESS_COSTS", "_THREAD_COSTS":
        monkeypatch.setattr(parallel, name, 1e-6)
    return started


def test_a_ranking_is_the_same_to_the_last_digit_and_so_is_all_talk(run, lulesh, tmp_path, eager):
    runs = tmp_path / "runs"
    shutil.copytree(lulesh, runs)
    profiles = sorted(runs.rglob("*.cubex"))
    for damaged in profiles[3], profiles[7]:
        damaged.write_bytes(damaged.read_bytes()[:5000])
    words = "--no-progress", "rank", runs, "--target", "4096"
    one, two = run(*words, "-f", "json"), run(*words, "-f", "json", "-j", "2")
    assert eager == [2, 2]  # two to read, two to model
    assert one.status == two.status == 0
    assert one.out == two.out
    assert one.err == two.err
    assert one.err.count("CPM101") == 2


def test_what_is_kept_is_the_same_to_the_last_bit(run, lulesh, tmp_path, eager):
    for jobs in "1", "2":
        eager.clear()
        assert run("fit", lulesh, "-m", "time", "-o", tmp_path / f"{jobs}.cpm", "-j", jobs).out
    assert eager == [2, 2]
    check_same_stores(tmp_path / "1.cpm", tmp_path / "2.cpm")


def test_every_metric_that_is_checked_is_modelled_by_all(run, lulesh, tmp_path, eager):
    expectations = tmp_path / "expectations.toml"
    text = "schema = 1\ntarget = { p = 4096 }\n"
    for name in "time", "visits":
        text += f'[[expect]]\nname = "{name}"\nmetric = "{name}"\n'
        text += 'callpath = "main"\ngrowth = "<= O(p^3)"\n'
    expectations.write_text(text)
    one, two = [run("--no-progress", "check", lulesh, expectations, "-j", jobs) for jobs in "12"]
    assert eager == [2, 2, 2]  # two to read, two for each metric
    assert (one.status, one.out, one.err) == (two.status, two.out, two.err)
    assert one.status == 0, one.out


@pytest.mark.usefixtures("eager")
def test_a_reader_that_fails_is_blamed_as_ever(run, odd):
    words = "-v", "--no-progress", "info", *odd("here", "there", "everywhere")
    one, two = run(*words), run(*words, "-j", "2")
    assert one.status == two.status == 5
    assert "app.p1.odd: reader 'odd' failed: ZeroDivisionError: here (odd_reader.py:" in two.err
    assert "Traceback" in two.err
    assert one.err == two.err


def test_a_process_that_is_killed_is_one_clear_line(run, odd, eager):
    done = run("info", *odd("dies", "dies"), "-j", "2")
    done.fails(7, "a worker process ended during its work (", ".odd", "memory", "-j 1")
    assert eager == [2]


def test_small_work_starts_no_process(run, lulesh, monkeypatch):
    for name in "_threads", "_processes":
        monkeypatch.setattr(parallel, name, lambda _: pytest.fail("it was started"))
    assert run("rank", lulesh, "--target", "4096", "-j", "64").status == 0


def test_how_many_may_come_from_the_surroundings(run, lulesh, monkeypatch, eager):
    monkeypatch.setenv("CPMODEL_JOBS", "2")
    assert run("info", lulesh).status == 0
    assert eager == [2]


@pytest.mark.parametrize("nonsense", ["-1", "many", "2.5", ""])
def test_nonsense_is_a_usage_error(run, lulesh, nonsense):
    run("info", lulesh, "-j", nonsense).fails(2, "--jobs")


def test_an_answer_names_no_jobs(run, lulesh):
    done = run("rank", lulesh, "--target", "4096", "-j", "1")
    assert "next: cpmodel show" in done.out
    assert "--jobs" not in done.out


def test_ctrl_c_ends_all_at_once_without_a_word(odd, tmp_path):
    words = "info", *map(str, odd(*["waits"] * 500)), "-j", "2"
    child = subprocess.Popen(
        [sys.executable, "-c", HEARS, *words],
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    end = time.monotonic() + working.HUNG
    while len(list((tmp_path / "runs").glob("*.odd.*"))) < 2:
        assert time.monotonic() < end
        time.sleep(0.02)
    os.killpg(child.pid, signal.SIGINT)
    # Workers share standard error, so this returns only when all of them have ended.
    try:
        _, err = child.communicate(timeout=working.HUNG)
    finally:
        child.kill()
    assert (child.returncode, err.strip()) == (130, b"")
