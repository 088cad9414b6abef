from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from itertools import count
from pathlib import Path

import pytest

import working
from callpath_modeler import parallel
from callpath_modeler.errors import WorkerDiedError
from callpath_modeler.parallel import Threads, Workers, worth

TESTS = Path(working.__file__).parent


@pytest.fixture
def fresh(monkeypatch):
    """Workers are fresh interpreters, also if the tests have several threads."""
    monkeypatch.setattr(parallel, "_is_alone", lambda: False)


@pytest.fixture
def started(monkeypatch):
    """The process ids of started workers."""
    pids = []
    start = Workers._start

    def noted(self, function):
        done = start(self, function)
        pids.extend(worker.pid for worker in self._workers if worker.pid not in pids)
        return done

    monkeypatch.setattr(Workers, "_start", noted)
    return pids


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def becomes_true(asked):
    end = time.monotonic() + working.HUNG
    while not asked():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_threads_share_items_and_answer_in_order():
    met = threading.Barrier(2, timeout=working.HUNG)

    def meet(item):
        met.wait()
        return item, threading.get_ident()

    found = list(Threads(2).map(meet, range(8)))
    assert [item for item, _ in found] == list(range(8))
    assert threading.get_ident() not in {thread for _, thread in found}


def test_threads_make_items_only_as_they_are_needed():
    given = count()
    found = Threads(2).map(working.square, given)
    assert next(found) == 0
    found.close()
    assert next(given) < 8


def test_an_error_in_a_thread_is_raised_where_its_result_is_due():
    found = Threads(2).map(lambda item: 1 // (2 - item), range(5))
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(found)
    assert len(parallel_threads()) == 0


def test_one_thread_is_the_one_that_asks():
    ask = threading.get_ident()
    assert list(Threads(1).map(lambda _: threading.get_ident(), "ab")) == [ask, ask]


def parallel_threads():
    return [each for each in threading.enumerate() if "ThreadPoolExecutor" in each.name]


def test_one_process_works_by_itself_and_starts_none(started):
    with Workers(1) as workers:
        assert list(workers.map(working.square, range(5))) == [0, 1, 4, 9, 16]
    assert not started


@pytest.mark.usefixtures("fresh")
def test_results_come_in_the_order_of_items_from_other_processes(started):
    with Workers(2) as workers:
        found = list(workers.map(working.whoever, range(20)))
        assert not any(is_gone(pid) for pid in started)
    assert [number for number, _ in found] == list(range(20))
    assert {pid for _, pid in found} == set(started)
    assert len(started) == 2
    assert all(is_gone(pid) for pid in started)


@pytest.mark.usefixtures("fresh")
def test_the_largest_item_is_begun_first():
    seconds = [0.0, 0.01, 0.3, 0.02, 0.05]
    with Workers(2) as workers:
        list(workers.map(working.square, range(2)))  # both are there
        begun = list(workers.map(working.started_at, seconds, sizes=seconds))
    assert sorted(begun)[:2] == sorted([begun[2], begun[4]])
    assert begun[0] == max(begun)


@pytest.mark.usefixtures("fresh")
def test_items_are_made_when_a_worker_is_free():
    with Workers(2) as workers:
        endless = workers.map(working.square, count())
        assert [next(endless) for _ in range(5)] == [0, 1, 4, 9, 16]


@pytest.mark.usefixtures("fresh")
def test_a_map_reports_how_many_items_are_done():
    for workers in (Workers(1), Workers(2)):
        done = []
        with workers:
            list(workers.map(working.square, range(4), told=done.append))
        assert done == [0, 1, 2, 3, 4]


@pytest.mark.usefixtures("fresh")
def test_an_item_that_fails_fails_here_and_in_its_turn():
    with Workers(2) as workers:
        results = workers.map(working.refuse_seven, range(20))
        assert [next(results) for _ in range(7)] == list(range(7))
        with pytest.raises(ValueError, match=f"no 7, said {os.getpid()}"):
            next(results)


@pytest.mark.usefixtures("fresh")
def test_what_a_worker_cannot_be_told_is_done_here():
    with Workers(2) as workers:
        found = list(workers.map(type, [working.OneWay(), 1]))
    assert found == [working.OneWay, int]


@pytest.mark.usefixtures("fresh")
def test_what_does_not_arrive_is_made_here():
    with Workers(2) as workers:
        found = [number for number, _ in workers.map(working.one_way, range(3))]
    assert found == [0, 1, 2]


@pytest.mark.usefixtures("fresh")
def test_a_worker_that_is_killed_is_an_error_and_nobody_waits(started):
    with Workers(2) as workers, pytest.raises(WorkerDiedError) as died:
        list(workers.map(working.die_of_three, range(20), named=lambda number: f"number {number}"))
    assert died.value.message == "number 3: a worker process ended with signal SIGKILL"
    assert "-j 1" in died.value.hint
    assert all(is_gone(pid) for pid in started)


def test_where_the_system_starts_no_process_this_one_does_the_work(monkeypatch, started):
    def refuse(*_):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(parallel, "_fresh", refuse)
    monkeypatch.setattr(parallel, "_copied", refuse)
    with Workers(4) as workers:
        assert list(workers.map(working.square, range(3))) == [0, 1, 4]
    assert not started


def test_few_seconds_are_not_worth_many_processes():
    assert worth(8, 0.01) == 1
    assert worth(1, 1e6) == 1
    assert worth(8, 1e6) == 8
    assert 1 < worth(10**6, 60) < 10**6
    assert worth(0, 1e6) == parallel.processors() >= 1


# A process with threads cannot be copied, and a test runner may have some: these are programs.

COPIES = """
import working
from callpath_modeler import parallel
assert parallel._is_alone()
with parallel.Workers(2) as workers:
    found = list(workers.map(lambda number: working.whoever(number), range(20)))
    assert list(workers.map(working.square, range(3))) == [0, 1, 4]
    pids = {worker.pid for worker in workers._workers}
assert {pid for _, pid in found} == pids, found
print([number for number, _ in found] == list(range(20)))
"""

FOREVER = """
import signal, sys, working
from callpath_modeler import parallel
signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored
if sys.argv[2] == "fresh":
    parallel._is_alone = lambda: False
with parallel.Workers(2) as workers:
    list(workers.map(working.wait_forever, [sys.argv[1]] * 9))
"""


def program(text, *words):
    return subprocess.Popen(
        [sys.executable, "-c", text, *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")
def test_a_process_without_threads_is_copied():
    out, err = program(COPIES).communicate(timeout=working.HUNG)
    assert (out, err) == ("True\n", "")


@pytest.mark.parametrize("how", ["copied", "fresh"])
@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_do_not_outlive_whoever_started_them(tmp_path, how, signal_):
    child = program(FOREVER, tmp_path, how)
    becomes_true(lambda: len(list(tmp_path.iterdir())) == 2)
    # Like a terminal, the test sends Ctrl-C to all processes.
    (os.killpg if signal_ == signal.SIGINT else os.kill)(child.pid, signal_)
    # Workers share standard error, so this returns only when all of them have ended.
    try:
        _, err = child.communicate(timeout=working.HUNG)
    finally:
        child.kill()
    assert err.count("Traceback") == (signal_ == signal.SIGINT)
