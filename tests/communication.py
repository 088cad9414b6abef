"""Traces of communicating programs, written rank by rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from cpmodel_commspec.collectives import NAMES
from cpmodel_commspec.operations import Recorded, Traced
from cpmodel_commspec.recording.recorder import record
from cpmodel_otf2.reader import opened
from trace_writer import Comm, Event, Thread, Trace, write_trace

WORLD = Comm("WORLD")
NO_ROOT = 2**32 - 1


class Rank:
    """The events of one rank: every method is an MPI call as Score-P records it."""

    def __init__(self, rank: int, ranks: int) -> None:
        self.rank, self.ranks = rank, ranks
        self.events: list[Event] = [("program_begin", 1, "/opt/app", ())]
        self._now = 1
        self._requests = 0

    @property
    def now(self) -> int:
        self._now += 1
        return self._now

    def compute(self, ticks: int) -> None:
        """Let time pass outside of MPI, or inside of the open region."""
        self._now += ticks

    @contextmanager
    def region(self, name: str) -> Iterator[None]:
        self.events.append(("enter", self.now, name))
        yield
        self.events.append(("leave", self.now, name))

    def call(self, name: str, *events: tuple[object, ...], ticks: int = 0) -> None:
        """A call with events in it; the events have no time."""
        with self.region(name):
            self.compute(ticks)
            for method, *arguments in events:
                self.events.append((method, self.now, *arguments))

    def send(self, peer, size, tag=0, comm=WORLD, call="MPI_Send"):
        self.call(call, ("mpi_send", peer, comm, tag, size))

    def receive(self, peer, size, tag=0, comm=WORLD, posted=None):
        """Receive; `posted` is the source that the receive names, where the trace tells it."""
        self.call("MPI_Recv", ("mpi_recv", peer, comm, tag, size, *_posted(posted)))

    def exchange(self, to, source, size, tag=0):
        sent = ("mpi_send", to, WORLD, tag, size)
        self.call("MPI_Sendrecv", sent, ("mpi_recv", source, WORLD, tag, size))

    def isend(self, peer, size, tag=0, comm=WORLD, call="MPI_Isend"):
        """Return the request for a later wait."""
        self._requests += 1
        self.call(call, ("mpi_isend", peer, comm, tag, size, self._requests))
        return ("mpi_isend_complete", self._requests)

    def ireceive(self, peer, size, tag=0, comm=WORLD, posted=None):
        self._requests += 1
        self.call("MPI_Irecv", ("mpi_irecv_request", self._requests, *_posted(posted)))
        return ("mpi_irecv", peer, comm, tag, size, self._requests)

    def wait(self, *requests, call="MPI_Waitall", ticks=0):
        self.call(call, *requests, ticks=ticks)

    def collective(self, name, sent, received, root=NO_ROOT, comm=WORLD):
        end = ("mpi_collective_end", NAMES.index(name), comm, root, sent, received)
        self.call(f"MPI_{name.capitalize()}", ("mpi_collective_begin",), end)

    def icollective(self, name, sent, received, root=NO_ROOT, comm=WORLD):
        self._requests += 1
        self.call(f"MPI_I{name}", ("non_blocking_collective_request", self._requests))
        operation = NAMES.index(name)
        return ("non_blocking_collective_complete", operation, comm, root, sent, received,
                self._requests)  # fmt: skip

    def handle(self, call, operation=17, comm=WORLD):
        end = ("mpi_collective_end", operation, comm, NO_ROOT, 0, 0)
        self.call(call, ("mpi_collective_begin",), end)


def _posted(source):
    return () if source is None else ({"posted_source": source},)


def traced(
    folder: Path,
    ranks: int,
    program: Callable[[Rank], None],
    communicators: Mapping[str, Sequence[int] | None] | None = None,
    grids: Sequence[Sequence[tuple[int, bool]]] = (),
) -> Path:
    """Write the trace of a program on a number of ranks, and return its anchor."""
    threads = []
    for number in range(ranks):
        rank = Rank(number, ranks)
        with rank.region("main"):
            program(rank)
        threads.append([Thread([*rank.events, ("program_end", rank.now, 0)])])
    return write_trace(folder, Trace(threads, communicators=communicators or {}, grids=grids))


def recorded(path: Path) -> Traced:
    """Return the operations in a trace."""
    with opened(path) as source:
        return record(source, lambda _done, _total: None)


def untimed(found: Traced) -> Traced:
    """Return the operations in a trace without their times."""
    ranks = tuple(Recorded(one.shapes, one.values) for one in found.ranks)
    return replace(found, ranks=ranks)


HALVES = {"low": [0, 1], "high": [3, 2], "alone": None}
"""Communicators of `everything`; the second half has descending ranks."""


def everything(rank: Rank) -> None:
    """All operations of specifications, on four ranks."""
    me, n = rank.rank, rank.ranks
    right, left = (me + 1) % n, (me - 1) % n
    rank.handle("MPI_Comm_dup")
    with rank.region("messages"):
        for step in range(6):
            requests = [
                rank.ireceive(left, 64 + step, tag=step),
                rank.isend(right, 64 + step, step),
            ]
            rank.wait(*requests)
        rank.exchange(right, left, 100)
        if me == 0:
            for peer in range(1, n):
                rank.receive(peer, 8 * peer, tag=5)
        else:
            rank.send(0, 8 * me, tag=5, call="MPI_Ssend")
        rank.isend(me ^ 1, 10, tag=6, call="MPI_Issend" if me % 2 else "MPI_Ibsend")
        rank.receive(me ^ 1, 10, tag=6)
        rank.send(me ^ 1, 3, tag=7, call="MPI_Bsend")
        first, second = rank.ireceive(me ^ 1, 3, tag=7), rank.isend(right, 1)
        rank.wait(second, call="MPI_Wait")
        rank.wait(first, call="MPI_Wait")
        rank.receive(left, 1)
        rank.wait()
    with rank.region("collectives"):
        _collectives(rank, me, n)
    half = Comm("low" if me < 2 else "high")
    rank.collective("bcast", 2 * 40 if me in {0, 3} else 0, 40, root=0, comm=half)
    if me in {0, 3}:
        rank.send(1, 12, comm=half)
    else:
        rank.receive(0, 12, comm=half)
    rank.collective("allreduce", 8, 8, comm=Comm("alone"))
    rank.handle("MPI_Comm_free", 18, comm=half)


def _collectives(rank: Rank, me: int, n: int) -> None:
    rank.collective("barrier", 0, 0)
    for root in range(n):
        rank.collective("bcast", n * 32 if me == root else 0, 32, root=root)
    rank.collective("gather", 16, n * 16 if me == 1 else 0, root=1)
    rank.collective("scatter", n * 24 if me == 2 else 0, 24, root=2)
    rank.collective("reduce", 8, n * 8 if me == 0 else 0, root=0)
    for name in ("allgather", "alltoall", "allreduce", "reduce_scatter_block"):
        rank.collective(name, n * 20, n * 20)
    rank.collective("allreduce", (n - 1) * 7, (n - 1) * 7)
    rank.collective("reduce", 0 if me == 3 else 11, (n - 1) * 11 if me == 3 else 0, root=3)
    rank.collective("scan", (n - me) * 12, (me + 1) * 12)
    rank.collective("exscan", (n - me - 1) * 12, me * 12)
    total = sum(range(10, 10 + n))
    rank.collective("gatherv", 10 + me, total if me == 0 else 0, root=0)
    rank.collective("scatterv", total if me == 0 else 0, 10 + me, root=0)
    rank.collective("allgatherv", n * (10 + me), total)
    rank.collective("reduce_scatter", total, n * (10 + me))
    for step in range(3):
        rank.collective("alltoallv", 1000 + 8 * me, (1012, 1013 + step, 999, 1024 - step)[me])
    pending = [
        rank.icollective("bcast", n * 5 if me == 0 else 0, 5, root=0),
        rank.icollective("allreduce", n * 6, n * 6),
        rank.icollective("barrier", 0, 0),
    ]
    rank.wait(*pending)


def exchange(rank):
    """The example of the page: exchange with neighbours on a line, and a sum from time to time."""
    for step in range(20):
        requests = []
        # The ranks at the ends of the line have less to compute, and wait longer.
        is_end = rank.rank in {0, rank.ranks - 1}
        rank.compute(1_800_000 if is_end else 2_000_000)
        with rank.region("halo"):
            for peer in (rank.rank - 1, rank.rank + 1):
                if 0 <= peer < rank.ranks:
                    requests += [rank.ireceive(peer, 4096), rank.isend(peer, 4096)]
            rank.wait(*requests, ticks=260_000 if is_end else 60_000)
        if step % 5 == 4:
            rank.compute(400_000)
            rank.collective("allreduce", 8 * rank.ranks, 8 * rank.ranks)


def head_to_head(rank):
    """Two ranks send 2 KiB, and then receive."""
    with rank.region("exchange"):
        rank.send(rank.rank ^ 1, 2048)
        rank.receive(rank.rank ^ 1, 2048)


def uneven(rank):
    """The example of replays: computation is longer on higher ranks, before messages and a sum."""
    for _ in range(50):
        rank.compute(400_000 + 50_000 * rank.rank)
        with rank.region("halo"):
            peers = [peer for peer in (rank.rank - 1, rank.rank + 1) if 0 <= peer < rank.ranks]
            requests = [rank.ireceive(peer, 16384) for peer in peers]
            requests += [rank.isend(peer, 16384) for peer in peers]
            rank.wait(*requests)
        with rank.region("transpose"):
            rank.collective("alltoall", 4096 * rank.ranks, 4096 * rank.ranks)
