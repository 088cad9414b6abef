"""The functions of generated programs; a program has only the functions that it calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from callpath_modeler.arrays import Int64Array

PROMPT = frozenset({"MPI_Waitsome", "MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome"})
"""Calls that complete what is complete when they begin."""

WAITS = {name.lower(): name for name in ("MPI_Wait", "MPI_Waitall", "MPI_Waitany", *sorted(PROMPT))}
SENDS = {name.lower(): name for name in ("MPI_Send", "MPI_Ssend", "MPI_Bsend")}
STARTED_SENDS = {name.lower(): name for name in ("MPI_Isend", "MPI_Issend", "MPI_Ibsend")}
"""Functions that programs call by their own names, by the name in small letters."""


def _is_sum(parts: Int64Array, whole: Int64Array) -> bool:
    return bool((parts.sum(axis=0) == whole).all())


UNEQUAL: Mapping[str, Callable[[Int64Array, Int64Array], bool]] = {
    "alltoallv": lambda sent, got: _is_sum(sent, got.sum(axis=0)),
    "alltoallw": lambda sent, got: _is_sum(sent, got.sum(axis=0)),
    "gatherv": lambda sent, got: _is_sum(sent, got.max(axis=0)),
    "scatterv": lambda sent, got: _is_sum(got, sent.max(axis=0)),
    "allgatherv": lambda sent, got: _is_sum(sent, len(sent) * got),
    "reduce_scatter": lambda sent, got: _is_sum(got, len(sent) * sent),
}
"""Test of bytes sent and received [members x ...]: one call can move them. By its name."""


def sizes_fit(name: str, sent: Int64Array, received: Int64Array) -> bool:
    """Tell whether one call can move the bytes sent and received [members x ...]."""
    return name in UNEQUAL and UNEQUAL[name](sent, received)


class Functions(ABC):
    """The functions of a program, in the order of their first call.

    Parameters
    ----------
    source : the functions, each after a line of the mark, its name, a colon and what it needs
    mark : the beginning of such lines
    end : of a statement
    """

    def __init__(self, source: str, mark: str, end: str) -> None:
        self._end, self._mark = end, mark
        self._parts: dict[str, tuple[Collection[str], str]] = {}
        self.read(source)
        self._used: dict[str, None] = {}

    def read(self, source: str) -> None:
        """Take in the functions of a source."""
        for part in source.split(self._mark)[1:]:
            head, _, text = part.partition("\n")
            name, _, needs = head.partition(":")
            self._parts[name.strip()] = tuple(needs.split()), text

    def call(self, name: str, *arguments: str) -> str:
        """Return a call as a statement."""
        self.use(name)
        return f"{name}({', '.join(arguments)}){self._end}"

    @abstractmethod
    def array(self, numbers: Sequence[int]) -> str:
        """Return numbers as an argument."""

    @abstractmethod
    def collective(self, name: str, *arguments: str, is_in_place: bool, is_started: bool) -> str:
        """Return the call of a collective operation that moves equal sizes on all ranks."""

    @abstractmethod
    def wait(self, function: str, kind: str, places: Sequence[int]) -> str:
        """Return the call of a function of `WAITS`.

        Parameters
        ----------
        kind : the operations, ``SEND``, ``RECEIVE`` or ``-1`` for all; "" for those at `places`
        """

    @abstractmethod
    def send(self, function: str, *arguments: str, is_awaited: bool = True) -> str:
        """Return the call of a function of `SENDS` or `STARTED_SENDS`."""

    def add(self, name: str, text: str, needs: Collection[str] = ()) -> None:
        """Add a function that has no part in the source."""
        self._parts.setdefault(name, (needs, text))

    def use(self, name: str) -> None:
        """Note that the program uses a function, and the functions that it needs."""
        for needed in self._parts[name][0]:
            self.use(needed)
        self._used.setdefault(name)

    def uses(self, name: str) -> bool:
        """Tell whether the program uses a function."""
        return name in self._used

    def text(self, name: str) -> str:
        """Return one function."""
        return self._parts[name][1]

    def used(self) -> Iterator[str]:
        """Yield the functions of the program; a function comes after those that it needs."""
        for name in self._used:
            yield self.text(name)
