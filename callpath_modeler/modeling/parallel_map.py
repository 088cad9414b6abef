"""Rows are modelled some at a time: whoever fits says what goes through the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


class MapLike(Protocol):
    """The builtin `map`, or what works on several parts at a time."""

    def __call__(
        self, function: Callable[[Part], Result], parts: Iterable[Part], /
    ) -> Iterable[Result]:
        """Return what `function` makes of each part, in the order of the parts.

        Parameters
        ----------
        function : tells nothing of one part to another, and may be in several at a time; it and its
            results can be pickled
        parts : are made when they are asked for
        """
        ...
