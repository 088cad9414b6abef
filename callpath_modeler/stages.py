"""Stages of a command: reading, uniting, modelling, findings and writing, for whoever shows them.

A stage tells its progress and its seconds to a listener. Without one, it tells nobody. So a library
function needs no parameter for a display, and writes nothing itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar, cast

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")


class MapOfRows(Protocol):
    """A map over parts of rows, whose results have the order of the parts."""

    def __call__(
        self, function: Callable[[_Part], _Result], parts: Iterable[_Part], /
    ) -> Iterable[_Result]:
        """Return the result of `function` for each part."""
        ...


class Listener(Protocol):
    """Whoever shows stages."""

    def progress(self, stage: str, *, noted: bool = True) -> Callable[[int, int], None]:
        """Return a function of the number of finished parts and of all parts of a stage.

        Without `noted`, nothing is left of it at the end.
        """
        ...

    def ended(self, stage: str, seconds: float) -> None:
        """Show that a stage took some seconds."""
        ...


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def listen(listener: Listener | None) -> None:
    """Make all later stages of this context tell `listener`; None = nobody."""
    _listener.set(listener)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Tell the listener how many seconds the block takes, if it succeeds."""
    begin = time.perf_counter()
    yield
    if (listener := _listener.get()) is not None:
        listener.ended(name, time.perf_counter() - begin)


def counted_map(name: str, each: MapOfRows, total: int) -> MapOfRows:
    """Return `each`, a map over parts of rows, which also tells how many of `total` rows are done.

    Parts are still made on demand, and results have their order.
    """
    listener = _listener.get()
    if listener is None:
        return each
    report = listener.progress(name, noted=False)

    def counting(
        function: Callable[[_Part], _Result], parts: Iterable[_Part], /
    ) -> Iterator[_Result]:
        sizes: list[int] = []

        def noted() -> Iterator[_Part]:
            for part in parts:
                sizes.append(len(cast(Sized, part)))
                yield part

        done = 0
        report(done, total)
        for k, result in enumerate(each(function, noted())):
            done += sizes[k]
            report(min(done, total), total)
            yield result
        if done < total:
            report(total, total)

    return counting
