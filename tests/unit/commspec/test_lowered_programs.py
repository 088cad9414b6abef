"""C programs of changed specifications: other sizes, and messages in place of collectives."""

from __future__ import annotations

from fractions import Fraction

import pytest
from test_programs import c_command, calls_of, counting, run_processes

from cells import cells
from communication import recorded, traced
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.generators.c_program import c_source
from cpmodel_commspec.operations import Traced
from cpmodel_commspec.what_if import lowered, with_bytes

__all__ = ["counting"]

_COLLECTIVES = ("bcast", "reduce", "gather", "scatter", "allgather", "alltoall", "allreduce",
                "scan", "reduce_scatter_block")  # fmt: skip
_AT_ONCE = {name: "p2p" for name in _COLLECTIVES if name != "scan"} | {"scan": "line"}
_ROUND_BY_ROUND = {
    "barrier": "dissemination", "bcast": "binomial", "reduce": "binomial", "allgather": "ring",
    "alltoall": "pairwise", "allreduce": "recursive-doubling", "reduce_scatter_block": "pairwise",
}  # fmt: skip
_ROUND_THE_RING = {"barrier": "tree", "allreduce": "ring"}


def collectives(rank):
    """Each collective on all ranks, with a root in the middle."""
    n, me, root, size = rank.ranks, rank.rank, rank.ranks // 2, 50
    rank.collective("barrier", 0, 0)
    for name in ("bcast", "scatter"):
        rank.collective(name, n * size if me == root else 0, size, root=root)
    for name in ("gather", "reduce"):
        rank.collective(name, size, n * size if me == root else 0, root=root)
    for name in ("allgather", "alltoall", "allreduce", "reduce_scatter_block"):
        rank.collective(name, n * size, n * size)
    rank.collective("scan", (n - me) * size, (me + 1) * size)


def unequal(rank):
    """Messages and collectives whose sizes differ."""
    n, me = rank.ranks, rank.rank
    sizes = [11 + 7 * k for k in range(n)]
    rank.wait(rank.ireceive((me - 1) % n, 17), rank.isend((me + 1) % n, 17))
    rank.collective("alltoallv", sizes[me], sizes[(me + 1) % n])
    rank.collective("gatherv", sizes[me], sum(sizes) if me == 0 else 0, root=0)
    rank.collective("scatterv", sum(sizes) if me == 0 else 0, sizes[me], root=0)
    rank.collective("allgatherv", n * sizes[me], sum(sizes))
    rank.collective("reduce_scatter", sum(sizes), n * sizes[me])
    rank.collective("allreduce", 13 * n, 13 * n)


def specification(folder, program, ranks):
    return specify(recorded(traced(folder / "trace", ranks, program)))


def run(told, counting, folder):
    """Return the calls of each rank: those of the program, and those of the specification."""
    ranks = tuple(told.of_rank(rank) for rank in range(told.processes))
    there = Traced("", 0, told.shapes, told.communicators, ranks, {})
    _, calls = run_processes(c_command(c_source(told), counting, folder), folder, told.processes)
    return calls, [calls_of(there, rank) for rank in range(told.processes)]


@cells("ranks", [4, 5])
@cells("chosen", [_AT_ONCE, _ROUND_BY_ROUND, _ROUND_THE_RING])
def test_lowered_programs_send_the_messages_of_their_specification(
    tmp_path, counting, chosen, ranks
):
    told = lowered(specification(tmp_path, collectives, ranks), chosen)
    calls, expected = run(told, counting, tmp_path)
    assert calls == expected
    names = {line.split()[0].lower() for one in calls for line in one}
    assert names.isdisjoint(f"mpi_{name}" for name in chosen)


@pytest.mark.parametrize("factor", ["0.1", "100"])
def test_scaled_programs_move_the_bytes_of_their_specification(tmp_path, counting, factor):
    told = with_bytes(specification(tmp_path, unequal, 4), Fraction(factor))
    calls, expected = run(told, counting, tmp_path)
    assert calls == expected
