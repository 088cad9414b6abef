"""Deadlocks of programs: lines, call paths, ranks and the cycle."""

from __future__ import annotations

import pytest

from callpath_modeler.errors import DataError
from communication import Rank, head_to_head, recorded
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.simulation.deadlocks import deadlock, require_safe
from cpmodel_commspec.simulation.simulator import Sends


def late(rank: Rank) -> None:
    """A barrier, and then two sends that wait for each other."""
    rank.collective("barrier", 0, 0)
    head_to_head(rank)


def test_the_lines_the_ranks_and_the_cycle_are_named(recording):
    found = deadlock(specify(recording(2, late)))
    assert found.sends is Sends.RENDEZVOUS
    assert found.is_cycle
    assert [(x.rank, x.line, x.sites, x.waits_for) for x in found.waits] == [
        (0, 2, ("main/exchange",), 1),
        (1, 2, ("main/exchange",), 0),
    ]
    assert str(found) == (
        "the program can hang if sends wait for their receives: "
        "rank 0 in line 2 (send of 2048 bytes to rank 1 of main/exchange) waits for rank 1, "
        "rank 1 in line 2 (send of 2048 bytes to rank 0 of main/exchange) waits for rank 0"
    )


def test_lines_are_those_of_the_text(recording):
    def program(rank):
        for _ in range(3):
            late(rank)

    # The loop is line 1, and the barrier line 2.
    found = deadlock(specify(recording(2, program)))
    assert [wait.line for wait in found.waits] == [3, 3]


def test_long_cycles_are_shortened(recording):
    def ring(rank):
        rank.send((rank.rank + 1) % rank.ranks, 8)
        rank.receive((rank.rank - 1) % rank.ranks, 8)

    found = deadlock(specify(recording(9, ring)))
    assert [wait.rank for wait in found.waits] == list(range(9))
    assert "and so on for 5 more ranks" in str(found)


def test_a_collective_is_part_of_a_cycle(recording):
    def program(rank):
        if rank.rank == 0:
            rank.send(1, 8)
        rank.collective("allreduce", 16, 16)
        if rank.rank == 1:
            rank.receive(0, 8)

    found = deadlock(specify(recording(2, program)))
    assert [(x.rank, x.call, x.waits_for) for x in found.waits] == [
        (0, "send of 8 bytes to rank 1", 1),
        (1, "allreduce", 0),
    ]


def test_programs_that_post_receives_first_are_safe(recording):
    def program(rank):
        request = rank.ireceive(1 - rank.rank, 8)
        rank.send(1 - rank.rank, 8)
        rank.wait(request)

    assert require_safe(specify(recording(2, program))) is None


def test_unsafe_programs_need_permission(recording):
    told = specify(recording(2, late))
    with pytest.raises(DataError, match="the program can hang"):
        require_safe(told)
    assert require_safe(told, allow_unsafe=True) == deadlock(told)


def test_measured_traces_are_safe(shared_data):
    for name in ("npb_is.trace/p4", "snap.trace/p4", "lulesh.trace/p8"):
        told = specify(recorded(shared_data / "scorep/traces" / name / "traces.otf2"))
        assert deadlock(told) is None, name


def test_messages_that_nobody_receives_make_no_program(recording):
    def program(rank: Rank) -> None:
        rank.send((rank.rank + 1) % rank.ranks, 8)

    told = specify(recording(4, program))
    with pytest.raises(DataError, match="4 messages are sent and 0 received"):
        require_safe(told, allow_unsafe=True)


def test_collectives_that_lack_members_make_no_program(recording):
    def program(rank: Rank) -> None:
        if rank.rank:
            rank.collective("barrier", 0, 0)

    with pytest.raises(DataError, match="do not all make the same collective calls"):
        require_safe(specify(recording(3, program)))
