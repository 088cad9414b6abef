"""Operations of a rank, in order: a shape and a few numbers each."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import msgspec
import numpy as np

from callpath_modeler.arrays import FloatArray, Int64Array
from cpmodel_commspec.collectives import ROOTED, Form


class Kind(StrEnum):
    """The kind of an operation."""

    SEND = "send"
    ISEND = "isend"
    RECV = "receive"
    IRECV = "ireceive"
    EXCHANGE = "exchange"
    """A send and a receive in one call, as of MPI_Sendrecv; one of them may be missing."""
    WAIT = "wait"
    COLLECTIVE = "collective"
    ICOLLECTIVE = "icollective"
    HANDLE = "handle"
    """All processes of a communicator make or free a communicator."""


class Mode(StrEnum):
    """The mode of a send."""

    STANDARD = "standard"
    SYNCHRONOUS = "synchronous"
    BUFFERED = "buffered"


class Half(StrEnum):
    """The messages of an exchange: a call with MPI_PROC_NULL lacks one of them."""

    BOTH = "both"
    SEND = "send"
    RECEIVE = "receive"


class Awaited(StrEnum):
    """The pending operations that a wait completes."""

    SENDS = "all sends"
    RECEIVES = "all receives"
    ALL = "all"
    CHOSEN = "chosen"
    """Some, by their places among the pending operations, the oldest first."""


class Turn(StrEnum):
    """The role of a message whose partners take turns."""

    NONE = ""
    SOURCE = "source"
    """A receive from any source."""
    ANSWER = "answer"
    """A further message with that source."""


FIELDS = ("peer", "tag", "bytes", "received", "root", "source", "source_tag")
"""The numbers that operations have, in the order of the columns of `Recorded.values`.

The received message of an exchange has `source`, `source_tag` and `received`.
"""


class End(NamedTuple):
    """One message of an operation: its direction, and the fields of its numbers."""

    is_sent: bool
    peer: str
    tag: str
    bytes: str

    @property
    def columns(self) -> tuple[int, int, int]:
        """The columns of partner, tag and bytes."""
        peer, tag, size = (FIELDS.index(name) for name in (self.peer, self.tag, self.bytes))
        return peer, tag, size


_SENT = End(True, "peer", "tag", "bytes")
_RECEIVED = End(False, "peer", "tag", "bytes")
_TAKEN = End(False, "source", "source_tag", "received")
_EXCHANGED = {Half.BOTH: (_SENT, _TAKEN), Half.SEND: (_SENT,), Half.RECEIVE: (_TAKEN,)}
MESSAGES = frozenset({Kind.SEND, Kind.ISEND, Kind.RECV, Kind.IRECV, Kind.EXCHANGE})
COLLECTIVES = frozenset({Kind.COLLECTIVE, Kind.ICOLLECTIVE})
TOGETHER = frozenset({*COLLECTIVES, Kind.HANDLE})
"""Operations of all members of a communicator."""
POSTED = frozenset({Kind.ISEND, Kind.IRECV, Kind.ICOLLECTIVE})


ANY_ORDER = frozenset({"mpi_waitany", "mpi_waitsome", "mpi_test", "mpi_testany", "mpi_testsome"})
"""Calls that complete whatever is complete; those that follow each other are one wait."""


class Shape(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The common part of operations that differ only in numbers.

    Attributes
    ----------
    name : mode of a send, half of an exchange, collective operation, or the function that handles
        communicators
    comm : number of the communicator; -1 for waiting
    form : the meaning of the bytes of a collective operation
    awaited, places : the pending operations that a wait completes, and the chosen places
    is_awaited : False for a send or collective without a wait
    is_any : whether a receive was posted for any source, and takes what arrives
    call : the MPI function; "" if the trace does not have it
    grid : sizes of a Cartesian communicator that the call makes, below zero for periodic dimensions
    site : the functions from the root to the one that makes the call
    others : further call sites of the same statement
    turn : the role of a message of a rank whose partners take turns
    """

    kind: Kind
    name: str = ""
    comm: int = -1
    form: Form = Form.EACH
    awaited: Awaited = Awaited.ALL
    places: tuple[int, ...] = ()
    is_awaited: bool = True
    is_any: bool = False
    call: str = ""
    grid: tuple[int, ...] = ()
    site: tuple[str, ...] = ()
    others: tuple[tuple[str, ...], ...] = ()
    turn: Turn = Turn.NONE

    @property
    def ends(self) -> tuple[End, ...]:
        """The messages of the operation."""
        if self.kind is Kind.EXCHANGE:
            return _EXCHANGED[Half(self.name)]
        if self.kind not in MESSAGES:
            return ()
        return (_SENT if self.kind in {Kind.SEND, Kind.ISEND} else _RECEIVED,)

    @property
    def has_any_source(self) -> bool:
        """Whether it is a receive from any source."""
        return self.is_any or self.turn is Turn.SOURCE

    @property
    def is_any_order(self) -> bool:
        """Whether it waits in any order."""
        return self.call.lower() in ANY_ORDER

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that make the call, each once."""
        return tuple(dict.fromkeys(site[-1] for site in (self.site, *self.others) if site))

    @property
    def fields(self) -> tuple[str, ...]:
        """The numbers that such operations have."""
        if self.kind in MESSAGES:
            return tuple(field for end in self.ends for field in end[1:])
        if self.kind not in COLLECTIVES:
            return ()
        if self.form is Form.EACH and self.name == "barrier":
            return ()
        sizes = ("bytes", "received") if self.form is Form.TOTAL else ("bytes",)
        return (*sizes, "root") if self.name in ROOTED else sizes


class Communicator(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A division of ranks into groups that communicate within themselves.

    Attributes
    ----------
    name : as the trace calls it, or made up; unique
    groups : world ranks, in the order of their ranks in the group; a rank is in one at most
    """

    name: str
    groups: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """The operations of one rank, in order.

    Attributes
    ----------
    shapes : int64 [n], numbers of shapes
    values : int64 [n x `FIELDS`]; peers and sources are world ranks, roots ranks in the
        communicator; zero where the shape has no such number
    computing : float64 [n], seconds outside MPI before each operation, since the one before; [0]
        if times are not known
    calling : float64 [n], seconds in the call of each operation, or [0]
    last : seconds outside MPI after the last operation
    seconds : from the end of MPI_Init to the begin of MPI_Finalize
    """

    shapes: Int64Array
    values: Int64Array
    computing: FloatArray = field(default_factory=lambda: np.empty(0))
    calling: FloatArray = field(default_factory=lambda: np.empty(0))
    last: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Traced:
    """The communication of a run.

    Attributes
    ----------
    program : as it was called, or ""
    events : number of events in the trace
    shapes, communicators : the definitions that operations of all ranks refer to
    ranks : the operations of each rank
    left_out : number of excluded calls, by kind
    """

    program: str
    events: int
    shapes: tuple[Shape, ...]
    communicators: tuple[Communicator, ...]
    ranks: tuple[Recorded, ...]
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """The run time: that of the rank that takes longest, between MPI_Init and MPI_Finalize."""
        return max((one.seconds for one in self.ranks), default=0.0)

    @property
    def processes(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    def counts(self) -> Int64Array:
        """Return how many operations each rank has, [processes]."""
        return np.array([len(one.shapes) for one in self.ranks], np.int64)

    def of_rank(self, rank: int) -> Recorded:
        """Return the operations of one rank, in order."""
        return self.ranks[rank]
