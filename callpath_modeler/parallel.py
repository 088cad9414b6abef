"""Parallel `map` over threads, processes, or any executor of `concurrent.futures`.

Threads are for functions that release the interpreter lock, such as the compiled library. Processes
are those of loky: new interpreters, which need no guard in the script that starts them. They import
nothing from the working directory. Work whose functions they lack is done by this process. An
executor of the caller may work on other machines; see `callpath_modeler.executors`. Workers ignore
Ctrl-C: this process handles it and ends them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from callpath_modeler.executors import workers_of

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from callpath_modeler.shared_work import Task

Item = TypeVar("Item")
Result = TypeVar("Result")

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
        self._given = executor
        self.count = max(count, workers_of(executor)) if executor else count
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
        # Few commands share work, and this takes a few milliseconds of each.
        from callpath_modeler.shared_work import grouped, shared

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
    from concurrent.futures import ThreadPoolExecutor

    executor = ThreadPoolExecutor(count)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def _processes(count: int) -> Iterator[Executor]:
    from callpath_modeler.worker_processes import safe_executor

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
