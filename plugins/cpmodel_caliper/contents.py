"""Contents of a Caliper file, independent of its format: records with call paths."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct

from callpath_modeler.errors import MalformedError
from callpath_modeler.profile.calltree import NO_LINE, ROOT
from callpath_modeler.units import whole_of

MAGIC = "__rec="
"""Beginning of every line of a `.cali` file."""
RANK = "mpi.rank"
THREADS = ("omp.thread.id", "pthread.id", "thread.id")
"""Attributes with the thread of a record."""
WAITS = "omp.sync"
"""Attribute of the construct in which a thread waits, such as ``barrier``."""
REGIONS = ("path", "region", "function", "annotation", "loop", "mpi.function")
"""Attributes whose values are nested regions."""
FUNCTIONS = "source.function#callpath.address"
"""Attribute of the functions on the call stack, in sampled profiles."""
FRAMES = "sourceloc#callpath.address"
"""Attribute of the source lines of the addresses on the call stack."""
SAMPLES = "sourceloc#cali.sampler.pc"
"""Attribute of the source lines of the samples."""
_PLACE = re.compile(r"(.+):([0-9]{1,9})", re.DOTALL)
CHANNELS = ("spot.channel", "channel")
LABELS = frozenset({RANK, *THREADS, WAITS, *CHANNELS})
"""Attributes with the process, thread, waiting or channel of a record."""
_SERIES = "timeseries"
"""Channel that repeats the profile by slices of time."""


_MOST_RANKS = 1 << 31
_MOST_THREADS = 1 << 64
_MOST_COPIED = 1_000_000
"""Maximum number of call path names that records repeat below other call paths. A few bytes
of a file can request a whole tree.
"""


class SourcePlace(Struct, frozen=True):
    """A source file and a line from 1; `NO_LINE` = not known."""

    file: str = ""
    line: int = NO_LINE

    @classmethod
    def of(cls, text: str) -> SourcePlace:
        """Return the place of a text ``file:line``; line 0 is not known, as Caliper writes it."""
        found = _PLACE.fullmatch(text)
        if found is None or not int(found[2]):
            return UNKNOWN_PLACE
        return cls(found[1], int(found[2]))


UNKNOWN_PLACE = SourcePlace()


class Quantity(Struct, frozen=True):
    """Description of a measured attribute.

    Attributes
    ----------
    unit : as written, or ""
    alias : name in reports, or ""
    """

    unit: str = ""
    alias: str = ""


@dataclass(slots=True)
class RecordColumn:
    """Values of one attribute, and the numbers of their records."""

    records: list[int]
    values: list[float]

    def add(self, record: int, value: float) -> None:
        """Add the value of a record."""
        self.records.append(record)
        self.values.append(value)


def region_name(text: str) -> str:
    """Return the name of a region, without blanks around it."""
    return text.strip() or "(unnamed)"


class Contents:
    """Records that are collected while a file is read.

    Attributes
    ----------
    callers, names : call paths as nodes of a tree; callers come first
    sites : line of the call in the source of the caller, of each node; `NO_LINE` = not known
    files : source file by name of a function
    places : source line by record, if it is known
    node : call path of each record; `ROOT` = outside all regions
    rank : MPI rank of each record; None = unknown
    thread : number of the thread by record, if it is known
    wait : construct in which the thread waits, by record
    columns : values by attribute
    quantities : descriptions of attributes
    globals : metadata of the run
    is_cut : whether the end of the file may be missing; a complete `.cali` file ends with its
        metadata
    """

    def __init__(self) -> None:
        self.callers: list[int] = []
        self.names: list[str] = []
        self.sites: list[int] = []
        self.files: dict[str, str] = {}
        self.places: dict[int, SourcePlace] = {}
        self.node: list[int] = []
        self.rank: list[int | None] = []
        self.thread: dict[int, int] = {}
        self.wait: dict[int, str] = {}
        self.columns: dict[str, RecordColumn] = {}
        self.quantities: dict[str, Quantity] = {}
        self.globals: dict[str, str] = {}
        self.is_cut = False
        self._below: dict[tuple[int, int], int] = {}
        self._number_of: dict[tuple[int, str, int], int] = {}

    def path(self, caller: int, name: str, site: int = NO_LINE) -> int:
        """Return the node of `name` below the node `caller`, called in the line `site`."""
        found = self._number_of.setdefault((caller, name, site), len(self.names))
        if found == len(self.names):
            self.callers.append(caller)
            self.names.append(region_name(name))
            self.sites.append(site)
        return found

    def path_below(self, caller: int, below: int) -> int:
        """Return the node of the path `below`, moved below the node `caller`."""
        rest = []
        while below != ROOT and (caller, below) not in self._below:
            rest.append(below)
            below = self.callers[below]
        node = caller if below == ROOT else self._below[caller, below]
        for below in reversed(rest):
            node = self._below[caller, below] = self.path(
                node, self.names[below], self.sites[below]
            )
        if len(self._below) > _MOST_COPIED:
            raise MalformedError(f"more than {_MOST_COPIED:,} copies of call paths")
        return node

    def move_waits(self) -> None:
        """Give waiting in OpenMP a call path of its own, below the region that waits."""
        for record, construct in self.wait.items():
            self.node[record] = self.path(self.node[record], f"!$omp {construct}")
        self.wait.clear()

    def place(self, record: int, place: SourcePlace) -> None:
        """Set the source line of a record, unless it is not known."""
        if place.line != NO_LINE:
            self.places[record] = place

    def column(self, name: str) -> RecordColumn:
        """Return the column for the values of an attribute."""
        return self.columns.setdefault(name, RecordColumn([], []))

    def begin(self, node: int, labels: Mapping[str, str]) -> int | None:
        """Begin a record and return its number; None if the record is excluded.

        Parameters
        ----------
        node : call path, or `ROOT`
        labels : rank, thread, waiting and channel of the record

        Raises
        ------
        ValueError
            If the rank or the thread is not a number, or out of range.
        """
        rank = None
        if labels:
            if any(labels.get(channel) == _SERIES for channel in CHANNELS):
                return None
            rank = _number(RANK, labels[RANK], _MOST_RANKS) if RANK in labels else None
            thread = next((name for name in THREADS if name in labels), None)
            if thread is not None:
                self.thread[len(self.node)] = _number(thread, labels[thread], _MOST_THREADS)
            if WAITS in labels:
                self.wait[len(self.node)] = labels[WAITS]
        self.node.append(node)
        self.rank.append(rank)
        return len(self.node) - 1

    def begin_all(self, nodes: Sequence[int], ranks: Sequence[int]) -> range:
        """Begin a record for each node, with its rank if known, and return the record numbers.

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
        number = whole_of(text)
    except ValueError:
        raise ValueError(f"{name} is not a number") from None
    if not 0 <= number < limit:
        raise ValueError(f"{name} is out of range")
    return number
