from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

import working
from callpath_modeler.errors import WorkerDiedError
from callpath_modeler.support import parallel
from callpath_modeler.support.parallel import WorkerPool, worth

TESTS = Path(working.__file__).parent


@pytest.fixture
def processes():
    """Two processes of loky, which all tests of a module share."""
    with WorkerPool(2) as pool:
        yield pool


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

    with WorkerPool(2, threads=True) as pool:
        found = list(pool.map(meet, range(8)))
    assert [item for item, _ in found] == list(range(8))
    assert threading.get_ident() not in {thread for _, thread in found}
    assert not parallel_threads()


@pytest.mark.parametrize("threads", [True, False])
def test_items_are_made_only_as_they_are_needed(threads):
    given = count()
    with WorkerPool(2, threads=threads) as pool:
        found = pool.map(working.square, given)
        assert [next(found) for _ in range(3)] == [0, 1, 4]
        found.close()
    assert next(given) < 10


def test_an_error_in_a_thread_is_raised_where_its_result_is_due():
    with WorkerPool(2, threads=True) as pool:
        found = pool.map(lambda item: 1 // (2 - item), range(5))
        assert [next(found), next(found)] == [0, 1]
        with pytest.raises(ZeroDivisionError):
            next(found)


@pytest.mark.parametrize("threads", [True, False])
def test_one_worker_is_the_one_that_asks(threads):
    with WorkerPool(1, threads=threads) as pool:
        found = list(pool.map(lambda item: (item, os.getpid(), threading.get_ident()), "ab"))
    assert found == [(item, os.getpid(), threading.get_ident()) for item in "ab"]


def parallel_threads():
    return [each for each in threading.enumerate() if "ThreadPoolExecutor" in each.name]


def test_results_come_in_the_order_of_items_from_other_processes(processes):
    found = list(processes.map(working.whoever, range(20)))
    assert [number for number, _ in found] == list(range(20))
    assert len({pid for _, pid in found} - {os.getpid()}) == 2
    # The same processes do the next work.
    again = list(processes.map(working.whoever, range(4)))
    assert {pid for _, pid in again} <= {pid for _, pid in found}


def test_the_largest_item_is_begun_first(processes):
    seconds = [0.0, 0.01, 0.3, 0.02, 0.05]
    list(processes.map(working.whoever, range(4)))  # both are there
    begun = list(processes.map(working.started_at, seconds, sizes=seconds))
    assert sorted(begun)[:2] == sorted([begun[2], begun[4]])
    assert begun[0] == max(begun)


def test_small_items_share_a_task_and_large_ones_do_not():
    executor = Counting()
    sizes = [100.0, *[1.0] * 300]
    with WorkerPool(2, executor=executor) as pool:
        found = list(pool.map(working.square, range(301), sizes=sizes))
    assert found == [number**2 for number in range(301)]
    assert executor.submitted < 40
    assert executor.first == 1


@pytest.mark.parametrize("count", [1, 2])
def test_a_map_reports_how_many_items_are_done(count):
    done = []
    with WorkerPool(count) as pool:
        list(pool.map(working.square, range(4), told=done.append))
    assert done == [0, 1, 2, 3, 4]


def test_an_item_that_fails_fails_here_and_in_its_turn(processes):
    results = processes.map(working.refuse_seven, range(20))
    assert [next(results) for _ in range(7)] == list(range(7))
    with pytest.raises(ValueError, match=f"no 7, said {os.getpid()}"):
        next(results)


def test_items_and_functions_that_cannot_be_sent_are_worked_on_here(processes):
    assert list(processes.map(type, [working.OneWay(), 1])) == [working.OneWay, int]
    here = os.getpid()
    assert list(processes.map(lambda _: os.getpid(), range(3))) == [here] * 3


def test_results_that_cannot_be_sent_are_made_here(processes):
    found = [number for number, _ in processes.map(working.one_way, range(3))]
    assert found == [0, 1, 2]


def test_a_worker_that_is_killed_is_an_error_and_nobody_waits():
    with WorkerPool(2) as pool:
        pids = {pid for _, pid in pool.map(working.whoever, range(8))}
        with pytest.raises(WorkerDiedError) as died:
            list(pool.map(working.die_of_three, range(20), named=lambda number: f"no. {number}"))
        # The executor is broken, and says so at once.
        with pytest.raises(WorkerDiedError):
            list(pool.map(working.square, range(4)))
    assert died.value.message.startswith("a worker process ended during its work (no. ")
    assert "-j 1" in died.value.hint
    becomes_true(lambda: all(is_gone(pid) for pid in pids))


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_where_the_system_starts_no_process_this_one_does_the_work():
    with WorkerPool(4, executor=Refusing()) as pool:
        assert list(pool.map(working.square, range(3))) == [0, 1, 4]


def test_any_executor_does_the_work_and_stays_open():
    with ThreadPoolExecutor(3) as executor:
        for _ in range(2):
            with WorkerPool(1, executor=executor) as pool:
                found = list(pool.map(working.whoever, range(6)))
            assert [number for number, _ in found] == list(range(6))
        assert executor.submit(abs, -1).result() == 1


class Counting(Executor):
    """An executor that works at once, and counts tasks."""

    submitted = 0
    first = 0
    _max_workers = 2

    def submit(self, function, /, *words, **named):
        self.submitted += 1
        found = Future()
        found.set_result(function(*words, **named))
        self.first = self.first or len(found.result())
        return found


class Refusing(Executor):
    def submit(self, *_, **__):
        raise BlockingIOError(11, "Resource temporarily unavailable")


def test_few_seconds_are_not_worth_many_processes():
    assert worth(8, 0.01) == 1
    assert worth(1, 1e6) == 1
    assert worth(8, 1e6) == 8
    assert 1 < worth(10**6, 60) < 10**6
    assert worth(0, 1e6) == parallel.processors() >= 1


# The signals would reach the test runner, so this is a program.

FOREVER = """
import signal, sys, working
from callpath_modeler.support.parallel import WorkerPool
signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored
with WorkerPool(2) as pool:
    list(pool.map(working.wait_forever, [sys.argv[1]] * 9))
"""


@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_do_not_outlive_whoever_started_them(tmp_path, signal_):
    child = subprocess.Popen(
        [sys.executable, "-c", FOREVER, tmp_path],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    becomes_true(lambda: len(list(tmp_path.iterdir())) == 2)
    # Like a terminal, the test sends Ctrl-C to all processes.
    (os.killpg if signal_ == signal.SIGINT else os.kill)(child.pid, signal_)
    # Workers share standard error, so this returns only when all of them have ended.
    try:
        _, err = child.communicate(timeout=working.HUNG)
    finally:
        child.kill()
    assert err.count("Traceback") == (signal_ == signal.SIGINT)
