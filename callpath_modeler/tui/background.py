"""Work in threads while what is on the screen stays; of each kind, the latest counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from textual.app import App
from textual.worker import get_current_worker

IsWanted = Callable[[], bool]
"""Tells whether anyone still waits for what a thread does."""


class Background:
    """The threads of an application.

    Parameters
    ----------
    app : the application
    """

    def __init__(self, app: App[None]) -> None:
        self._app = app
        self._waiting: dict[str, list[Callable[[IsWanted], None]]] = {}

    def start(self) -> None:
        """Make the threads, once there is a loop of events."""
        # One thread for targets, one for panes, one for answers: what is no longer wanted soon
        # makes room, and memory that threads keep for themselves does not add up.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max_workers=3))

    def do(self, work: Callable[[IsWanted], None], group: str) -> None:
        """Do something; what was wanted of the same group before no longer is."""
        # A worker is garbage that stays until it is collected; what it works on is large, so it
        # is taken away from it.
        self._waiting.get(group, []).clear()
        waiting = self._waiting[group] = [work]

        def done() -> None:
            worker = get_current_worker()

            def is_wanted() -> bool:
                return self._app.is_running and not worker.is_cancelled

            if waiting and is_wanted():
                waiting.pop()(is_wanted)

        self._app.run_worker(done, group=group, exclusive=True, thread=True)

    def show(self, shown: Callable[..., object], *what: Any) -> None:
        """Have what a thread made shown, and return when it is; not once everything has ended."""
        if self._app.is_running:
            self._app.call_from_thread(shown, *what)
