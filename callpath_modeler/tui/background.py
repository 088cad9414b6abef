"""Work in threads while the screen stays; of each group, only the latest work counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any

from textual.app import App
from textual.worker import Worker, get_current_worker

from callpath_modeler.errors import CallpathModelerError

IsWanted = Callable[[], bool]
"""Returns whether the result of a thread is still needed."""


class Background:
    """The threads of an application.

    Parameters
    ----------
    app : the application
    complain : shows an error that ends some work
    """

    def __init__(self, app: App[None], complain: Callable[[CallpathModelerError], None]) -> None:
        self._app = app
        self._complain = complain
        self._waiting: dict[str, list[Callable[[IsWanted], None]]] = {}
        self._threads = _Threads()

    def start(self) -> None:
        """Start the threads."""
        # One thread each for targets, panes and answers: cancelled work soon ends, and few threads
        # keep little memory for themselves.
        self._threads.start(3)

    def end(self) -> None:
        """Let idle threads end, without waiting for busy ones."""
        self._threads.end()

    def do(self, work: Callable[[IsWanted], None], group: str) -> None:
        """Start some work; earlier work of the same group is cancelled."""
        # Textual's workers stay in memory until garbage collection, so they must not hold the data.
        self._waiting.get(group, []).clear()
        waiting = self._waiting[group] = [work]

        async def done() -> None:
            worker = get_current_worker()

            def is_wanted() -> bool:
                return self._app.is_running and not worker.is_cancelled

            def begin() -> None:
                if not (waiting and is_wanted()):
                    return
                try:
                    waiting.pop()(is_wanted)
                except CallpathModelerError as error:
                    self.show(self._complain, error)

            await asyncio.wrap_future(self._threads.submit(begin))

        _: Worker[None] = self._app.run_worker(done, group=group, exclusive=True)

    def show(self, shown: Callable[..., object], *what: Any) -> None:
        """Show the result of a thread and return when it is shown; do nothing after the end."""
        if self._app.is_running:
            self._app.call_from_thread(shown, *what)


class _Threads:
    """Threads that do not delay the end of the program, unlike those of `concurrent.futures`.

    A user who quits while a large experiment is read wants to leave at once.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Future[None], Callable[[], None]] | None] = SimpleQueue()
        self._threads: list[Thread] = []

    def start(self, count: int) -> None:
        self._threads = [Thread(target=self._serve, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        for _ in self._threads:
            self._queue.put(None)

    def submit(self, work: Callable[[], None]) -> Future[None]:
        future: Future[None] = Future()
        self._queue.put((future, work))
        return future

    def _serve(self) -> None:
        while (given := self._queue.get()) is not None:
            future, work = given
            if future.set_running_or_notify_cancel():
                try:
                    work()
                except BaseException as error:  # noqa: BLE001 - the waiting caller gets it
                    future.set_exception(error)
                else:
                    future.set_result(None)
            del given, future, work  # the next item may come much later
