"""Parallel `map` over threads, processes, or any executor of `concurrent.futures`.

Threads are for functions that release the interpreter lock, such as the compiled library. Processes
are those of loky: new interpreters, which need no guard in the script that starts them. They import
nothing from the working directory. Work whose functions they lack is done by this process. An
executor of the caller may work on other machines; see `callpath_modeler.support.executors`.
Workers ignore Ctrl-C: this process handles it and ends them.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import islice, repeat
from types import TracebackType
from typing import Any, TypeVar

from loky import ProcessPoolExecutor
from loky.backend import resource_tracker, spawn
from loky.backend.context import LokyContext
from loky.backend.process import LokyProcess

from callpath_modeler.errors import WorkerDiedError
from callpath_modeler.support.program_path import program_path, safe_environment, safe_variables

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
    """Return the answers to a pickled request; each result is pickled separately.

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


PROCESS_COSTS, _THREAD_COSTS = 0.7, 0.01
"""Seconds to start a process, which mostly imports, and a thread."""

_TASKS_PER_WORKER = 16
"""A task holds several small items, so that a worker gets at most about so many tasks."""

_ORPHAN_CHECK = 1.0
"""Seconds after which a worker whose parent is gone ends."""


def processors() -> int:
    """Return the number of processors that this process may use; on a node, those of the job."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worth(jobs: int, seconds: float, *, threads: bool = False) -> int:
    """Return how many of `jobs` processes or threads pay for work of `seconds`; 1 = this process.

    0 jobs stand for the number of processors.
    """
    cost = _THREAD_COSTS if threads else PROCESS_COSTS
    return max(1, min(jobs or processors(), int(seconds / cost)))


class WorkerPool(AbstractContextManager["WorkerPool"]):
    """Workers that share the work of `map`; they start with the first work.

    A context manager: its own workers have ended when it is left. An executor of the caller stays.

    Attributes
    ----------
    count : number of workers
    """

    def __init__(
        self, count: int, *, threads: bool = False, executor: Executor | None = None
    ) -> None:
        """Use up to `count` workers; below two, the calling thread does the work.

        Parameters
        ----------
        count : number of workers
        threads : workers are threads of this process
        executor : does the work instead, whatever `count` is, which then only limits how far ahead
            of the results items are taken
        """
        self._given, self.count = executor, count
        if executor is not None:
            from callpath_modeler.support.executors import workers_of

            self.count = max(count, workers_of(executor))
        self._threads = threads
        self._own = ExitStack()
        self._started: Executor | None = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the own workers, even during work."""
        self._started = None
        self._own.close()

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        /,
        *,
        sizes: Sequence[float] | None = None,
        told: Callable[[int], None] = lambda _: None,
        named: Callable[[Item], str] = lambda _: "",
    ) -> Iterator[Result]:
        """Yield the result of `function` for each item, in order.

        An item that fails in a worker is repeated in this thread when it is its turn. So errors are
        the same as without workers, and come in the same order.

        Parameters
        ----------
        function : function; for processes it is pickled, as are items and results
        items : generated when a worker is free, or all at once if `sizes` are given
        sizes : sizes of the items; the largest are started first, and small ones share a task
        told : called with the number of finished items
        named : returns the name of an item for an error

        Raises
        ------
        WorkerDiedError
            If a worker ends before it has answered.
        """
        if self._given is None and self.count < 2:
            told(0)
            for done, item in enumerate(items, start=1):
                result = function(item)
                told(done)
                yield result
            return

        numbered = enumerate(items)
        tasks: Iterator[Task[Item]]
        if sizes is None:
            tasks = ([each] for each in numbered)
        else:
            tasks = grouped(list(numbered), sizes, _TASKS_PER_WORKER * self.count)
        # Results that are not yet consumed occupy memory.
        yield from shared(
            *(self._executor(), 2 * self.count, function, tasks, told, named),
            in_order=sizes is None,
        )

    def _executor(self) -> Executor:
        """Return the executor; the own one is made with the first work."""
        if self._given is not None:
            return self._given
        if self._started is None:
            self._started = self._own.enter_context(
                _threads(self.count) if self._threads else _processes(self.count)
            )
        return self._started


@contextmanager
def _threads(count: int) -> Iterator[Executor]:

    executor = ThreadPoolExecutor(count)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def _processes(count: int) -> Iterator[Executor]:

    executor = safe_executor(
        count,
        initializer=_end_as_orphan,
        initargs=(os.getpid(),),
        env={"OPENBLAS_NUM_THREADS": "1"},
    )
    try:
        yield executor
    finally:
        executor.shutdown(kill_workers=True)


def _end_as_orphan(parent: int) -> None:
    """Make this process end soon after its parent is gone; in a worker."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_ORPHAN_CHECK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


_START = threading.Lock()


class SafeProcess(LokyProcess):  # type: ignore[misc] # loky has no types
    """A worker with the search path of `program_path`, from its first import on."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - the name of multiprocessing
        prepared = spawn.get_preparation_data

        def safely_prepared(*given: Any, **named: Any) -> dict[str, Any]:
            return {**prepared(*given, **named), "sys_path": program_path()}

        # The worker gets its search path before it imports anything that it was sent. A tracker of
        # resources that has died is started again here.
        with _START, safe_environment():
            spawn.get_preparation_data = safely_prepared
            try:
                return LokyProcess._Popen(process_obj)  # noqa: SLF001 - the name of multiprocessing
            finally:
                spawn.get_preparation_data = prepared


class _SafeContext(LokyContext):  # type: ignore[misc] # loky has no types
    Process = SafeProcess


def safe_executor(count: int, **options: Any) -> ProcessPoolExecutor:
    """Return an executor of `count` processes that import nothing from the working directory.

    Parameters
    ----------
    count : number of processes
    options : other arguments of the executor of loky; `env` holds further variables
    """
    variables = {**safe_variables(), **options.pop("env", {})}
    with safe_environment():
        # The tracker of resources is a process as well, and lives as long as this one.
        resource_tracker.ensure_running()
        return ProcessPoolExecutor(count, context=_SafeContext(), env=variables, **options)
