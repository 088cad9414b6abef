"""Tasks of an executor of `concurrent.futures`, and their answers in the order of the items."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from functools import partial
from itertools import islice, repeat
from typing import Any, TypeVar

from callpath_modeler.errors import WorkerDiedError

Item = TypeVar("Item")
Result = TypeVar("Result")
Task = list[tuple[int, Item]]
"""Items with their numbers."""
_Answers = list[tuple[bool, Any]]
"""For each item of a task: whether it succeeded, and its result. Empty = all failed."""

_SECONDS_BETWEEN_CHECKS = 5.0
"""Seconds without a finished task after which workers elsewhere are checked."""

_FAILED: tuple[bool, Any] = False, None


def grouped(numbered: Task[Item], sizes: Sequence[float], count: int) -> Iterator[Task[Item]]:
    """Yield groups of items, the largest items first and alone, about `count` in all."""
    order = sorted(numbered, key=lambda pair: -sizes[pair[0]])
    enough = sum(sizes) / count
    group: Task[Item] = []
    size = 0.0
    for pair in order:
        group.append(pair)
        size += sizes[pair[0]]
        if size >= enough:
            yield group
            group, size = [], 0.0
    if group:
        yield group


def shared(
    executor: Executor,
    room: int,
    function: Callable[[Item], Result],
    tasks: Iterator[Task[Item]],
    told: Callable[[int], None],
    named: Callable[[Item], str],
    *,
    in_order: bool,
) -> Iterator[Result]:
    """Yield results in the order of the numbers of the items.

    At most `room` tasks are in work. If tasks come `in_order`, finished ones count too, because
    results that are not yet consumed occupy memory.
    """
    pickled = not isinstance(executor, ThreadPoolExecutor)
    in_work: dict[Future[_Answers], Task[Item]] = {}
    results: dict[int, tuple[bool, Any]] = {}
    turn = done = 0
    told(done)
    try:
        while True:
            room_left = room - len(in_work) - (len(results) if in_order else 0)
            for task in islice(tasks, max(room_left, 0)):
                in_work[_submitted(executor, function, task, pickled=pickled)] = task
            if not in_work:
                return
            for future in _finished(in_work, executor):
                answers = _answers_of(future, in_work, named)
                task = in_work.pop(future)
                for (number, item), answer in zip(task, answers or repeat(_FAILED), strict=False):
                    is_done, result = _unpickled(*answer) if pickled else answer
                    # An item that failed is kept, and is worked on here.
                    results[number] = (True, result) if is_done else (False, item)
                told(done := done + len(task))
            while turn in results:
                is_done, result = results.pop(turn)
                yield result if is_done else function(result)
                turn += 1
    finally:
        for future in in_work:
            future.cancel()


def _finished(in_work: Iterable[Future[_Answers]], executor: Executor) -> set[Future[_Answers]]:
    """Wait for tasks and return the finished ones; workers that cannot finish any are an error."""
    check = getattr(executor, "check_workers", None)
    while True:
        limit = None if check is None else _SECONDS_BETWEEN_CHECKS
        done = wait(in_work, limit, return_when=FIRST_COMPLETED).done
        if check is not None and (not done or any(each.cancelled() for each in done)):
            check()
        if done:
            return done


def _submitted(
    executor: Executor, function: Callable[[Item], Result], task: Task[Item], *, pickled: bool
) -> Future[_Answers]:
    """Return the future of a task. One that cannot be sent counts as failed, so it is done here."""
    items = [item for _, item in task]
    not_sent: Future[_Answers] = Future()
    try:
        if not pickled:
            return executor.submit(_answers, function, items)
        request = pickle.dumps((function, items), protocol=5)
        # The first work starts the processes.
        with _deaf():
            return executor.submit(_answers_to, request)
    except BrokenExecutor as cause:
        not_sent.set_exception(cause)
    except Exception:  # noqa: BLE001 - it cannot be pickled, or the system allows no process
        not_sent.set_result([])
    return not_sent


def _answers(function: Callable[[Item], object], items: Sequence[Item]) -> _Answers:
    """Return whether a function succeeds for each item, and its result; in a worker."""
    found: _Answers = []
    for item in items:
        try:
            found.append((True, function(item)))
        except BaseException:  # noqa: BLE001 - the caller repeats it and reports the error
            found.append((False, None))
    return found


def _answers_to(request: bytes) -> _Answers:
    """Return the answers to a pickled request; each result is pickled by itself.

    So one that cannot be pickled, or read again, does not take others with it.
    """
    try:
        function, items = pickle.loads(request)  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - the caller does the work and reports the error
        return []
    return _answers(partial(_pickled_result, function), items)


def _pickled_result(function: Callable[[Item], object], item: Item) -> bytes:
    return pickle.dumps(function(item), protocol=5)


def _answers_of(
    future: Future[_Answers],
    in_work: Mapping[Future[_Answers], Task[Item]],
    named: Callable[[Item], str],
) -> _Answers:
    """Return the answers of a finished task; raise `WorkerDiedError` if its worker is gone."""
    try:
        answers = future.result()
    except Exception as cause:
        # No function of ours raises in a worker, and an executor does not tell whose worker died.
        lost = [each for each in in_work if each.done()]
        names = dict.fromkeys(named(item) for each in lost for _, item in in_work[each])
        about = _listed([name for name in names if name])
        raise WorkerDiedError(
            f"a worker process ended during its work{about}",
            hint="memory may have run out: try fewer at a time, or -j 1",
        ) from cause
    return answers


def _unpickled(is_done: bool, result: bytes) -> tuple[bool, Any]:
    try:
        return is_done, pickle.loads(result) if is_done else None  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - the caller does the work
        return False, None


def _listed(names: Sequence[str]) -> str:
    """Return ` (a or b or 3 others)`, or nothing."""
    told = [*names[:2], f"{len(names) - 2} others"] if len(names) > 3 else names
    return f" ({' or '.join(told)})" if told else ""


@contextmanager
def _deaf() -> Iterator[None]:
    """Make processes that start within the block ignore Ctrl-C."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
