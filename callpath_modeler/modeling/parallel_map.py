"""Type of the map over parts of the rows; the caller of a fit provides it.

See docs/explanation/architecture.md, 'Processes and threads'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


class MapLike(Protocol):
    """The builtin `map`, or a map that works on several parts at a time."""

    def __call__(
        self, function: Callable[[Part], Result], parts: Iterable[Part], /
    ) -> Iterable[Result]:
        """Return the result of `function` for each part, in the order of the parts.

        Parameters
        ----------
        function : keeps no state between parts, and may run in several at a time; it and its
            results can be pickled
        parts : parts that are made on demand
        """
        ...
