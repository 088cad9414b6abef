"""What a Caliper file holds, whichever way it is written: records along call paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from callpath_modeler.profile.calltree import ROOT

RANK = "mpi.rank"
THREADS = ("omp.thread.id", "pthread.id", "thread.id")
"""Attributes that tell the thread of a record."""
REGIONS = ("path", "region", "function", "annotation", "loop", "mpi.function")
"""Attributes whose values are regions, one within the other."""
FUNCTIONS = "source.function#callpath.address"
"""The attribute of the functions on the call stack, which samples have."""
CHANNELS = ("spot.channel", "channel")
LABELS = frozenset({RANK, *THREADS, *CHANNELS})
"""Attributes that tell where a record was measured."""
_SERIES = "timeseries"
"""The channel of this name repeats the profile, one slice of time after the other."""


_MOST_RANKS = 1 << 31
_MOST_THREADS = 1 << 64
_MOST_COPIED = 1_000_000
"""Names of call paths that records may repeat below other ones: a few bytes each ask for all."""


class MalformedError(Exception):
    """Content that is no Caliper profile; says where."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a file says of a measured attribute beside its name.

    Attributes
    ----------
    unit : as written, or ""
    alias : what reports call it, or ""
    """

    unit: str = ""
    alias: str = ""


@dataclass(slots=True)
class RecordColumn:
    """Values of one attribute: at which records, and the values."""

    records: list[int]
    values: list[float]

    def add(self, record: int, value: float) -> None:
        """Add the value of a record."""
        self.records.append(record)
        self.values.append(value)


class Contents:
    """Records, gathered while a file is read.

    Attributes
    ----------
    callers, names : the call paths as nodes of a tree; callers come first
    node : per record the call path, or `ROOT` for what happened in no region
    rank : per record the MPI rank, or None where the file does not tell
    thread : by record the number of the thread; only where the file tells
    columns : values by attribute
    quantities : what is said of attributes
    globals : what is said of the run
    is_cut : whether the end of the file may be missing: a `.cali` file ends with its metadata
    """

    def __init__(self) -> None:
        self.callers: list[int] = []
        self.names: list[str] = []
        self.node: list[int] = []
        self.rank: list[int | None] = []
        self.thread: dict[int, int] = {}
        self.columns: dict[str, RecordColumn] = {}
        self.quantities: dict[str, Quantity] = {}
        self.globals: dict[str, str] = {}
        self.is_cut = False
        self._below: dict[tuple[int, int], int] = {}
        self._number_of: dict[tuple[int, str], int] = {}

    def path(self, caller: int, name: str) -> int:
        """Return the node of `name` called by the node `caller`."""
        found = self._number_of.setdefault((caller, name), len(self.names))
        if found == len(self.names):
            self.callers.append(caller)
            self.names.append(name.strip() or "(unnamed)")
        return found

    def path_below(self, caller: int, below: int) -> int:
        """Return the node of the path `below`, called by the node `caller`."""
        rest = []
        while below != ROOT and (caller, below) not in self._below:
            rest.append(below)
            below = self.callers[below]
        node = caller if below == ROOT else self._below[caller, below]
        for below in reversed(rest):
            node = self._below[caller, below] = self.path(node, self.names[below])
        if len(self._below) > _MOST_COPIED:
            raise MalformedError(f"more than {_MOST_COPIED:,} call paths below other ones")
        return node

    def column(self, name: str) -> RecordColumn:
        """Return the values of an attribute, to be filled."""
        return self.columns.setdefault(name, RecordColumn([], []))

    def begin(self, node: int, labels: Mapping[str, str]) -> int | None:
        """Begin a record and return its number, or None if it does not count.

        Parameters
        ----------
        node : its call path, or `ROOT`
        labels : what else is said of where it was measured: rank, channel

        Raises
        ------
        ValueError
            If the rank or the thread is no number, or out of range.
        """
        rank = None
        if labels:
            if any(labels.get(channel) == _SERIES for channel in CHANNELS):
                return None
            rank = _number(RANK, labels[RANK], _MOST_RANKS) if RANK in labels else None
            thread = next((name for name in THREADS if name in labels), None)
            if thread is not None:
                self.thread[len(self.node)] = _number(thread, labels[thread], _MOST_THREADS)
        self.node.append(node)
        self.rank.append(rank)
        return len(self.node) - 1

    def begin_all(self, nodes: Sequence[int], ranks: Sequence[int]) -> range:
        """Begin a record for each node, on its rank if there are ranks; return their numbers.

        Raises
        ------
        ValueError
            If a rank is out of range.
        """
        if ranks and not 0 <= min(ranks) <= max(ranks) < _MOST_RANKS:
            raise ValueError(f"{RANK} is out of range")
        first = len(self.node)
        self.node += nodes
        self.rank.extend(ranks or [None] * len(nodes))
        return range(first, len(self.node))


def _number(name: str, text: str, limit: int) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{name} is no number") from None
    if not 0 <= number < limit:
        raise ValueError(f"{name} is out of range")
    return number
