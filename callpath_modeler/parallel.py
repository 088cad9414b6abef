"""Parallel `map` over processes or threads.

Threads are for functions that release the interpreter lock, such as the compiled library. For other
functions, a worker is a copy of this process if a copy is safe, else a new interpreter. It has one
item at a time, which it receives and returns on a socket. It exits when the other end is closed.
Workers ignore Ctrl-C: this process handles it and ends them.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from callpath_modeler.errors import WorkerDiedError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]

_COPY_COSTS, _FRESH_COSTS = 0.05, 0.7
"""Seconds to start a worker, as a copy or as a new interpreter, which mostly imports."""
_THREAD_COSTS = 0.01

_FRESH = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from callpath_modeler.parallel import serve_as_told
serve_as_told()
"""


def processors() -> int:
    """Return the number of processors that this process may use; on a node, those of the job."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worth(jobs: int, seconds: float, *, threads: bool = False) -> int:
    """Return how many of `jobs` processes or threads pay for work of `seconds`; 1 = this process.

    0 jobs stand for the number of processors.
    """
    if threads:
        cost = _THREAD_COSTS
    elif os.name != "posix":
        return 1
    else:
        cost = _COPY_COSTS if _is_alone() else _FRESH_COSTS
    return max(1, min(jobs or processors(), int(seconds / cost)))


class Threads(AbstractContextManager["Threads"]):
    """Threads that share the work of `map`.

    They are for functions that release the interpreter lock most of the time. Then nothing has to
    be copied, and starting threads costs almost nothing.
    """

    def __init__(self, count: int) -> None:
        """Use up to `count` threads; below two, the calling thread does the work."""
        self._count = count

    def __exit__(self, *_: object) -> None:
        """Do nothing; the method exists because `Workers` has one."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]:
        """Yield the result of `function` for each item, in order; items are generated on demand."""
        if self._count < 2:
            yield from map(function, items)
            return
        from concurrent.futures import Future, ThreadPoolExecutor

        ahead: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(self._count) as pool:
            try:
                for item in items:
                    ahead.append(pool.submit(function, item))
                    # Results that are not yet consumed occupy memory.
                    if len(ahead) > 2 * self._count:
                        yield ahead.popleft().result()
                while ahead:
                    yield ahead.popleft().result()
            finally:
                for left in ahead:
                    left.cancel()


class Workers:
    """Processes that share the work of `map`; they start with the first work.

    A context manager: the processes have ended when it is left.
    """

    def __init__(self, count: int) -> None:
        """Use up to `count` processes; below two, this process does the work."""
        self._count = count
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the workers, even during work."""
        while self._workers:
            self._workers.pop().end()

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        sizes: Sequence[float] | None = None,
        told: Callable[[int], None] = lambda _: None,
        named: Callable[[Item], str] = lambda _: "",
    ) -> Iterator[Result]:
        """Yield the result of `function` for each item, in order; finish one map before the next.

        An item that fails in a worker is repeated in this process when it is its turn. So errors
        are the same as without workers, and come in the same order.

        Parameters
        ----------
        function : function; it is pickled, as are items and results
        items : generated when a worker is free, or all at once if `sizes` are given
        sizes : sizes of the items; the largest are started first
        told : called with the number of finished items
        named : returns the name of an item for an error

        Raises
        ------
        WorkerDiedError
            If a worker ends before it has answered.
        """
        while len(self._workers) < self._count > 1 and self._start(function):
            pass
        if self._workers:
            queue: Iterator[tuple[int, Item]] = enumerate(items)
            if sizes is not None:
                queue = iter(sorted(queue, key=lambda pair: -sizes[pair[0]]))
            yield from _shared(self._workers, function, queue, told, named)
            return
        told(0)
        for done, item in enumerate(items, start=1):
            result = function(item)
            told(done)
            yield result

    def _start(self, function: Callable[[Any], Any]) -> bool:
        """Start a worker for a function; return whether the system allows it."""
        from multiprocessing.connection import Pipe

        try:
            ours, theirs = Pipe()
        except OSError:
            return False
        try:
            with _deaf():
                if _is_alone():
                    others = [ours, *(worker.channel for worker in self._workers)]
                    self._workers.append(_Worker(_copied(theirs, others, function), ours, function))
                else:
                    self._workers.append(_Worker(_fresh(theirs), ours))
        except OSError:
            ours.close()
            return False
        finally:
            theirs.close()
        return True


@dataclass(slots=True)
class _Worker:
    pid: int
    channel: Connection
    knows: Callable[[Any], Any] | None = None

    def ask(self, function: Callable[[Item], object], item: Item) -> None:
        """Send an item, and the function unless the worker already has it."""
        new = None if self.knows is function else function
        self.channel.send_bytes(pickle.dumps((new, item), protocol=5))
        self.knows = function

    def answer(self) -> tuple[bool, Any]:
        """Return whether the worker succeeded, and its result."""
        received = self.channel.recv_bytes()
        try:
            done, result = pickle.loads(received)  # noqa: S301 - our own
        except Exception:  # noqa: BLE001 - a broken result is computed again
            return False, None
        return done, result

    def end(self) -> int:
        """End the worker if it runs; return its exit code, negative for a signal."""
        if self.channel.closed:
            return 0
        self.channel.close()
        # Other code of this process may have waited for the child already.
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return 0


def _shared(
    workers: Sequence[_Worker],
    function: Callable[[Item], Result],
    queue: Iterator[tuple[int, Item]],
    told: Callable[[int], None],
    named: Callable[[Item], str],
) -> Iterator[Result]:
    """Yield results in the order of the numbers of the items."""
    from multiprocessing.connection import wait

    idle = list(workers)
    busy: dict[object, tuple[_Worker, int, Item]] = {}
    answers: dict[int, tuple[bool, Any]] = {}
    turn = done = 0
    told(done)
    while True:
        while idle and (asked := next(queue, None)):
            worker, (number, item) = idle.pop(), asked
            with _alive(worker, item, named):
                worker.ask(function, item)
            busy[worker.channel] = worker, number, item
        if turn in answers:
            is_done, result = answers.pop(turn)
            # An item that failed is kept, and is computed here.
            yield result if is_done else function(result)
            turn += 1
        elif not busy:
            return
        else:
            for channel in wait([worker.channel for worker, _, _ in busy.values()]):
                worker, number, item = busy.pop(channel)
                with _alive(worker, item, named):
                    is_done, result = worker.answer()
                answers[number] = (True, result) if is_done else (False, item)
                idle.append(worker)
                told(done := done + 1)


@contextmanager
def _alive(worker: _Worker, item: Item, named: Callable[[Item], str]) -> Iterator[None]:
    """Raise `WorkerDiedError` if a worker ends within the block."""
    try:
        yield
    except (EOFError, OSError) as cause:
        code = worker.end()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"
        about = f"{name}: " if (name := named(item)) else ""
        raise WorkerDiedError(
            f"{about}a worker process ended with {how}",
            hint="memory may have run out: try fewer at a time, or -j 1",
        ) from cause


@contextmanager
def _deaf() -> Iterator[None]:
    """Make processes that start within the block ignore Ctrl-C."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_alone() -> bool:
    """Return whether this process may be copied: a copy would lose further threads.

    On macOS it is never copied, because the system's libraries do not support it.
    """
    tasks = Path("/proc/self/task")
    return sys.platform == "linux" and tasks.is_dir() and len(list(tasks.iterdir())) == 1


def _copied(
    channel: Connection, others: Iterable[Connection], function: Callable[[Any], Any]
) -> int:
    """Return the process id of a copy of this process that serves `channel`."""
    pid = os.fork()
    if pid:
        return pid
    try:
        # A channel stays open as long as any process has its other end.
        for other in others:
            other.close()
        _serve(channel, function)
    finally:
        os._exit(1)


def _fresh(channel: Connection) -> int:
    """Return the process id of a new interpreter that serves `channel` on its standard input."""
    # Unlike `multiprocessing`, this does not run a script without `if __name__ == "__main__"`.
    words = [sys.executable, "-P", "-c", _FRESH, json.dumps([str(folder) for folder in sys.path])]
    streams = [(os.POSIX_SPAWN_DUP2, channel.fileno(), 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return os.posix_spawn(sys.executable, words, alone, file_actions=streams)


def serve_as_told() -> None:
    """Serve the channel on standard input."""
    from multiprocessing.connection import Connection

    channel = Connection(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _serve(channel)


def _serve(channel: Connection, function: Callable[[Any], Any] | None = None) -> None:
    """Answer requests until the other end is closed."""
    requests: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_hear, args=(channel, requests), daemon=True).start()
    while True:
        try:
            new, item = pickle.loads(requests.get())  # noqa: S301 - our own
            function = new or function
            assert function is not None
            answer = pickle.dumps((True, function(item)), protocol=5)
        except BaseException:  # noqa: BLE001 - the caller repeats it and reports the error
            answer = pickle.dumps((False, None))
        with suppress(OSError):
            channel.send_bytes(answer)


def _hear(channel: Connection, requests: SimpleQueue[bytes]) -> None:
    """Receive requests, and exit when the other end is closed."""
    try:
        while True:
            requests.put(channel.recv_bytes())
    finally:
        os._exit(0)
