"""Programs for any number of processes, as traces: what extrapolation has to find."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

from communication import NO_ROOT, WORLD, Rank, recorded, traced
from cpmodel_commspec.operations import Traced
from cpmodel_commspec.scalable.extrapolation import ScalableSpecification, extrapolate
from trace_writer import Comm

Program = Callable[[Rank], None]


def even_grid(processes: int, dimensions: int) -> tuple[int, ...]:
    """Return the most even grid with falling sizes, found by trying all of them."""
    found = [()]
    for _ in range(dimensions - 1):
        found = [
            (*x, n)
            for x in found
            for n in range(1, processes + 1)
            if processes % (prod(x) * n) == 0
        ]
    full = [tuple(sorted((*x, processes // prod(x)), reverse=True)) for x in found]
    return min(full)


def _each(
    name: str, rank: Rank, size: int, comm: Comm = WORLD, members: int = 0, root: int = NO_ROOT,
    is_root: bool = False,
) -> None:  # fmt: skip
    n = members or rank.ranks
    if name in {"bcast", "scatter"}:
        rank.collective(name, n * size if is_root else 0, size, root=root, comm=comm)
    elif name in {"reduce", "gather"}:
        rank.collective(name, size, n * size if is_root else 0, root=root, comm=comm)
    else:
        rank.collective(name, n * size, n * size, comm=comm)


def ring(rank: Rank) -> None:
    """Periodic ring with messages of one size."""
    p, me = rank.ranks, rank.rank
    for _ in range(5):
        with rank.region("ring"):
            requests = [rank.ireceive((me - 1) % p, 1024), rank.isend((me + 1) % p, 1024)]
            rank.wait(*requests)


def line(rank: Rank) -> None:
    """Line without ends that meet, whose messages shrink."""
    p, me = rank.ranks, rank.rank
    for _ in range(3):
        with rank.region("halo"):
            requests = []
            for peer in (me - 1, me + 1):
                if 0 <= peer < p:
                    requests += [rank.ireceive(peer, 46080 // p), rank.isend(peer, 46080 // p)]
            rank.wait(*requests)
        _each("allreduce", rank, 8)


def _stencil(rank: Rank, dimensions: int, *, is_periodic: bool, has_tags: bool) -> None:
    """Halo exchange in all dimensions, that which ranks count up last first."""
    sizes = even_grid(rank.ranks, dimensions)[::-1]
    place, rest = [], rank.rank
    for size in sizes:
        place.append(rest % size)
        rest //= size
    faces = [prod(48 // n for j, n in enumerate(sizes) if j != k) * 8 for k in range(dimensions)]
    for _ in range(4):
        with rank.region("exchange"):
            neighbours = []
            for k in reversed(range(dimensions)):
                for side in (-1, 1):
                    at = place[k] + side
                    if is_periodic or 0 <= at < sizes[k]:
                        there = [*place[:k], at % sizes[k], *place[k + 1 :]]
                        peer = sum(x * prod(sizes[:j]) for j, x in enumerate(there))
                        neighbours.append((peer, faces[k], 2 * k + (side > 0)))
            requests = [
                rank.ireceive(peer, size, tag=(tag ^ 1) * has_tags)
                for peer, size, tag in neighbours
            ]
            if not has_tags and is_periodic:
                # The message from the right is that to the left.
                pairs = zip(neighbours[1::2], neighbours[::2], strict=True)
                neighbours = [one for pair in pairs for one in pair]
            requests += [
                rank.isend(peer, size, tag=tag * has_tags) for peer, size, tag in neighbours
            ]
            rank.wait(*requests)
    _each("allreduce", rank, 8)


def stencil2(rank: Rank) -> None:
    """Two dimensions, not periodic."""
    _stencil(rank, 2, is_periodic=False, has_tags=True)


def torus2(rank: Rank) -> None:
    """Two dimensions, periodic."""
    _stencil(rank, 2, is_periodic=True, has_tags=True)


def torus2_one_tag(rank: Rank) -> None:
    """Two dimensions, periodic, with one tag for all messages."""
    _stencil(rank, 2, is_periodic=True, has_tags=False)


def stencil2_one_tag(rank: Rank) -> None:
    """Two dimensions, not periodic, with one tag for all messages."""
    _stencil(rank, 2, is_periodic=False, has_tags=False)


def stencil3(rank: Rank) -> None:
    """Three dimensions, not periodic."""
    _stencil(rank, 3, is_periodic=False, has_tags=True)


def torus3(rank: Rank) -> None:
    """Three dimensions, periodic."""
    _stencil(rank, 3, is_periodic=True, has_tags=True)


def transposes(rank: Rank) -> None:
    """The calls of a Fourier transform: all-to-all of sizes / p^2, and sums."""
    p, root = rank.ranks, rank.rank == 0
    with rank.region("setup"):
        _each("bcast", rank, 12, root=0, is_root=root)
        _each("bcast", rank, 4, root=0, is_root=root)
    for _ in range(6):
        with rank.region("fft"):
            _each("alltoall", rank, 2**18 // p // p * 16)
        _each("reduce", rank, 32, root=0, is_root=root)
    _each("barrier", rank, 0)


def rows_and_columns(processes: int) -> dict[str, Sequence[int]]:
    """Return the communicators of `subcommunicators`."""
    y, x = even_grid(processes, 2)
    rows = {f"row {k}": range(k * x, k * x + x) for k in range(y)}
    return {**rows, **{f"column {k}": range(k, processes, x) for k in range(x)}}


def subcommunicators(rank: Rank) -> None:
    """Rows and columns of a grid, with a root that moves and a shift in the row."""
    y, x = even_grid(rank.ranks, 2)
    row, column = divmod(rank.rank, x)
    for step in range(10):
        with rank.region("rows"):
            _each("alltoall", rank, 4096, Comm(f"row {row}"), x)
            right, left = (column + 1) % x, (column - 1) % x
            sent = ("mpi_send", right, Comm(f"row {row}"), 3, 4096)
            rank.call("MPI_Sendrecv", sent, ("mpi_recv", left, Comm(f"row {row}"), 3, 4096))
        with rank.region("columns"):
            root = step % y
            _each("bcast", rank, 4096, Comm(f"column {column}"), y, root, row == root)


def butterfly(rank: Rank) -> None:
    """Exchange with partners at all powers of two."""
    for _ in range(3):
        with rank.region("dot"):
            step = 0
            while 1 << step < rank.ranks:
                peer = rank.rank ^ (1 << step)
                request = rank.ireceive(peer, 8, tag=60 + step)
                rank.send(peer, 8, tag=60 + step)
                rank.wait(request, call="MPI_Wait")
                step += 1
        _each("barrier", rank, 0)


def dissemination(rank: Rank) -> None:
    """Exchange at all powers of two on a ring, with one tag."""
    p, me = rank.ranks, rank.rank
    for _ in range(3):
        step = 1
        with rank.region("barrier"):
            while step < p:
                sent = ("mpi_send", (me + step) % p, WORLD, 1, 4)
                rank.call("MPI_Sendrecv", sent, ("mpi_recv", (me - step) % p, WORLD, 1, 4))
                step *= 2


def tree(rank: Rank) -> None:
    """Reduction along a binomial tree."""
    for _ in range(4):
        with rank.region("tree"):
            step = 1
            while step < rank.ranks:
                if rank.rank & step:
                    rank.send(rank.rank - step, 64)
                    break
                if rank.rank + step < rank.ranks:
                    rank.receive(rank.rank + step, 64)
                step *= 2


def gather_by_messages(rank: Rank) -> None:
    """Every rank sends to rank 0, which takes the messages in order."""
    with rank.region("collect"):
        if rank.rank == 0:
            for peer in range(1, rank.ranks):
                rank.receive(peer, 100)
        else:
            rank.send(0, 100)


def pairs_by_rounds(rank: Rank) -> None:
    """All-to-all by messages: in round k with the ranks k ahead and k behind."""
    p, me = rank.ranks, rank.rank
    with rank.region("all"):
        for k in range(1, p):
            sent = ("mpi_send", (me + k) % p, WORLD, 5, 46080 // p)
            rank.call("MPI_Sendrecv", sent, ("mpi_recv", (me - k) % p, WORLD, 5, 46080 // p))


def opposite(rank: Rank) -> None:
    """Exchange with the rank half of the ranks ahead."""
    peer = (rank.rank + rank.ranks // 2) % rank.ranks
    for _ in range(3):
        with rank.region("opposite"):
            sent = ("mpi_send", peer, WORLD, 5, 256)
            rank.call("MPI_Sendrecv", sent, ("mpi_recv", peer, WORLD, 5, 256))


def gather_and_scatter(rank: Rank) -> None:
    """Rank 0 takes a message of each rank, and sends uneven blocks, with one tag."""
    p, me = rank.ranks, rank.rank
    for _ in range(3):
        with rank.region("root"):
            for peer in range(1, p) if me == 0 else (0,):
                if me == 0:
                    rank.receive(peer, 128)
                else:
                    rank.send(peer, 128)
            for peer in range(1, p) if me == 0 else ():
                rank.send(peer, 8 * _block(1003, p, peer))
            if me:
                rank.receive(0, 8 * _block(1003, p, me))


def _block(total: int, places: int, place: int) -> int:
    return total // places + (place < total % places)


def all_to_all_by_messages(rank: Rank) -> None:
    """Non-blocking messages with all ranks ahead and behind."""
    p, me = rank.ranks, rank.rank
    for _ in range(3):
        with rank.region("all"):
            received = [rank.ireceive((me - k) % p, 96) for k in range(1, p)]
            sent = [rank.isend((me + k) % p, 96) for k in range(1, p)]
            rank.wait(*received, *sent)


def triangle(rank: Rank) -> None:
    """Every rank sends to all after it, with sizes that shrink."""
    p, me = rank.ranks, rank.rank
    with rank.region("triangle"):
        for source in range(me):
            rank.receive(source, 8 * (p - source), tag=source)
        for peer in range(me + 1, p):
            rank.send(peer, 8 * (p - me), tag=me)


def broadcast_tree(rank: Rank) -> None:
    """Broadcast along a binomial tree."""
    p, me = rank.ranks, rank.rank
    for _ in range(4):
        with rank.region("tree"):
            step = 1
            while step < p and not me & step:
                step *= 2
            if me:
                rank.receive(me - step, 256)
            while step > 1:
                step //= 2
                if me + step < p:
                    rank.send(me + step, 256)


def odd_even(rank: Rank) -> None:
    """Exchange with one neighbour after the other, a tag for each round."""
    p, me = rank.ranks, rank.rank
    with rank.region("sort"):
        for k in range(p):
            peer = me + 1 if (me + k) % 2 == 0 else me - 1
            if 0 <= peer < p:
                sent = ("mpi_send", peer, WORLD, k, 400)
                rank.call("MPI_Sendrecv", sent, ("mpi_recv", peer, WORLD, k, 400))


def blocks_in_a_ring(rank: Rank) -> None:
    """Ring with messages of uneven blocks."""
    p, me = rank.ranks, rank.rank
    for _ in range(3):
        with rank.region("ring"):
            after, before = (me + 1) % p, (me - 1) % p
            sent = ("mpi_send", after, WORLD, 0, 8 * _block(1003, p, me))
            taken = ("mpi_recv", before, WORLD, 0, 8 * _block(1003, p, before))
            rank.call("MPI_Sendrecv", sent, taken)


def ring_of_blocks(rank: Rank) -> None:
    """Ring all-gather of uneven blocks."""
    p, me = rank.ranks, rank.rank
    with rank.region("ring"):
        for step in range(p - 1):
            sent, taken = (8 * _block(1003, p, (me - step - k) % p) for k in (0, 1))
            about = ("mpi_send", (me + 1) % p, WORLD, 0, sent)
            rank.call("MPI_Sendrecv", about, ("mpi_recv", (me - 1) % p, WORLD, 0, taken))


def rows_by_rounds(rank: Rank) -> None:
    """All ranks of a row of the grid, one after the other."""
    x = even_grid(rank.ranks, 2)[1]
    column, begin = rank.rank % x, rank.rank // x * x
    for _ in range(3):
        with rank.region("rows"):
            for step in range(1, x):
                peers = (begin + (column + k) % x for k in (step, -step))
                rank.exchange(*peers, 7680 // x)


def heap(rank: Rank) -> None:
    """Broadcast along a binary tree."""
    p, me = rank.ranks, rank.rank
    for _ in range(4):
        with rank.region("heap"):
            if me:
                rank.receive((me - 1) // 2, 40)
            for child in (2 * me + 1, 2 * me + 2):
                if child < p:
                    rank.send(child, 40)


def halves(rank: Rank) -> None:
    """Recursive halving: partners and sizes half as far and as large in each round."""
    step, size = rank.ranks // 2, 16384
    with rank.region("halves"):
        while step:
            rank.exchange(rank.rank ^ step, rank.rank ^ step, size)
            step, size = step // 2, size // 2


def middle_and_roots(rank: Rank) -> None:
    """Root in the middle, rounds by the square root, and pairs by exclusive or."""
    p, me = rank.ranks, rank.rank
    with rank.region("middle"):
        if me == p // 2:
            rank.send(0, 24)
        if me == 0:
            rank.receive(p // 2, 24)
    rounds = 1
    while rounds * rounds < p:
        rounds += 1
    for _ in range(rounds):
        _each("allreduce", rank, 24)
    with rank.region("pairs"):
        for k in range(1, p):
            rank.exchange(me ^ k, me ^ k, 32)


@dataclass(frozen=True)
class Pattern:
    """A program, its communicators, and the numbers of processes at which it is tested."""

    program: Program
    targets: tuple[int, ...] = (9, 32)
    communicators: Callable[[int], Mapping[str, Sequence[int] | None]] = lambda _: {}
    traces: tuple[int, ...] = (4, 8, 16)


PATTERNS = {
    one.program.__name__: one
    for one in (
        Pattern(ring),
        Pattern(line),
        Pattern(stencil2),
        Pattern(stencil2_one_tag),
        Pattern(torus2),
        Pattern(torus2_one_tag),
        Pattern(stencil3, (16, 32), traces=(8, 12, 24, 27)),
        Pattern(torus3, (16, 32), traces=(8, 12, 24, 27)),
        Pattern(transposes, (12, 32), traces=(4, 8, 9, 16)),
        Pattern(subcommunicators, communicators=rows_and_columns),
        Pattern(butterfly, (32,)),
        Pattern(dissemination, (32,)),
        Pattern(tree, (12, 32)),
        Pattern(gather_and_scatter),
        Pattern(all_to_all_by_messages),
        Pattern(triangle),
        Pattern(broadcast_tree, (12, 32)),
        Pattern(odd_even, (12, 32)),
        Pattern(blocks_in_a_ring),
        Pattern(ring_of_blocks),
        Pattern(rows_by_rounds, (12, 64), traces=(4, 8, 16, 32)),
        Pattern(heap),
        Pattern(halves, (32,)),
        Pattern(middle_and_roots, (64,), traces=(4, 8, 16, 32)),
        Pattern(gather_by_messages),
        Pattern(pairs_by_rounds),
        Pattern(opposite, (10, 32)),
    )
}


def recorded_at(folder: Path, pattern: Pattern, processes: int) -> Traced:
    """Return the operations of a pattern, from a trace that is written into `folder`."""
    communicators = pattern.communicators(processes)
    return recorded(traced(folder / str(processes), processes, pattern.program, communicators))


@cache
def extrapolated(name: str) -> ScalableSpecification:
    """Return the program of a pattern for any number of processes, from its traces."""
    with TemporaryDirectory() as folder:
        pattern = PATTERNS[name]
        traces = [recorded_at(Path(folder), pattern, p) for p in pattern.traces]
    return extrapolate(traces).told
