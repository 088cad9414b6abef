"""Arguments of C programs: sizes times a factor, and messages in place of collectives."""

from __future__ import annotations

from fractions import Fraction

import pytest
from test_programs import c_command, counting, run_processes

from communication import recorded, traced
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.generators.c_program import c_source
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


def run(told, counting, folder, *arguments):
    """Return totals and calls of each rank."""
    folder.mkdir()
    command = [*c_command(c_source(told), counting, folder), *arguments]
    return run_processes(command, folder, told.processes)


def messages(calls):
    """Return the messages of each rank, in the order of their numbers."""
    return [sorted(line for line in one if line.count(" ") > 1) for one in calls]


@pytest.mark.parametrize("ranks", [4, 5])
@pytest.mark.parametrize("chosen", [_AT_ONCE, _ROUND_BY_ROUND, _ROUND_THE_RING])
def test_lowered_programs_send_the_messages_of_lowered_specifications(
    tmp_path, counting, chosen, ranks
):
    told = specification(tmp_path, collectives, ranks)
    arguments = [x for name in chosen for x in ("--lower", f"{name}={chosen[name]}")]
    _, ours = run(told, counting, tmp_path / "program", *arguments)
    _, theirs = run(lowered(told, chosen), counting, tmp_path / "specification")
    assert messages(ours) == messages(theirs)


def test_all_to_all_can_be_messages_to_all_others(tmp_path, counting):
    ranks = 4
    told = specification(tmp_path, collectives, ranks)
    _, calls = run(told, counting, tmp_path / "program", "--lower", "alltoall=p2p")
    sends = [line for one in calls for line in one if line.startswith("MPI_Isend")]
    assert len(sends) == ranks * (ranks - 1)
    assert not any(line.startswith("MPI_Alltoall") for one in calls for line in one)


@pytest.mark.parametrize("factor", ["0.1", "2.5", "100"])
def test_scaled_programs_move_the_bytes_of_scaled_specifications(tmp_path, counting, factor):
    told = specification(tmp_path, unequal, 4)
    ours = run(told, counting, tmp_path / "program", "--scale-bytes", factor)
    theirs = run(with_bytes(told, Fraction(factor)), counting, tmp_path / "specification")
    assert ours == theirs


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--scale-bytes", "1e9"), "2 GiB"),
        (("--scale-bytes", "nan"), "--scale-bytes needs"),
        (("--scale-bytes", "-1"), "--scale-bytes needs"),
        (("--lower", "alltoall=magic"), "alltoall=p2p"),
        (("--lower",), "--lower needs"),
    ],
)
def test_bad_arguments_end_the_program(tmp_path, counting, arguments, words):
    told = specification(tmp_path, collectives, 4)
    binary, *_ = c_command(c_source(told), counting, tmp_path)
    with pytest.raises(AssertionError, match=words):
        run_processes([binary, *arguments], tmp_path, 4)


def test_programs_without_sizes_or_collectives_lack_these_arguments(tmp_path):
    told = specification(tmp_path, lambda rank: rank.handle("MPI_Comm_dup"), 2)
    source = c_source(told)
    assert "--scale-bytes" not in source
    assert "--lower" not in source
