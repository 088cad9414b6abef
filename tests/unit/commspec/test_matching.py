"""Matching of sent and received messages, by size and in order."""

from __future__ import annotations

import pytest

from communication import NO_ROOT, Rank
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.simulation.matching import mismatches
from trace_writer import Comm


def pair(sent, received):
    """Return the operations of two ranks: (tag, size) of messages from the first to the second."""

    def program(rank: Rank) -> None:
        for tag, size in sent if rank.rank == 0 else received:
            (rank.send if rank.rank == 0 else rank.receive)(1 - rank.rank, size, tag=tag)

    return program


@pytest.mark.parametrize("messages", [[(0, 8), (0, 16)], [(0, 8), (1, 8), (0, 8)]])
def test_messages_that_arrive_as_they_were_sent_match(recording, messages):
    assert list(mismatches(specify(recording(2, pair(messages, messages))))) == []


def test_messages_of_different_tags_may_be_received_in_another_order(recording):
    told = specify(recording(2, pair([(0, 8), (1, 16)], [(1, 16), (0, 8)])))
    assert list(mismatches(told)) == []


@pytest.mark.parametrize(
    ("sent", "received", "counts"),
    [
        # Messages of one tag keep their order, so sizes have to be in that order too.
        ([(0, 8), (0, 16)], [(0, 16), (0, 8)], (2, 2, 0)),
        ([(0, 8)], [(0, 16)], (1, 1, 2)),
        ([(0, 8)], [(1, 8)], (1, 1, 2)),
        ([(0, 8), (0, 8)], [(0, 8)], (2, 1, 0)),
        ([(0, 8)], [(0, 8), (0, 16)], (1, 2, 1)),
    ],
)
def test_messages_that_do_not_match_are_counted(recording, sent, received, counts):
    [told] = mismatches(specify(recording(2, pair(sent, received))))
    assert told == (
        f"{counts[0]} messages are sent and {counts[1]} received; of other ranks, tags or sizes "
        f"are {counts[2]} of them"
    )


def together(*calls, comm="WORLD"):
    """Return what ranks do: (operation, root) of the collective calls of each."""

    def program(rank: Rank) -> None:
        # Messages beside them match, and are no calls of all.
        (rank.receive if rank.rank else rank.send)(1 - rank.rank, 8) if rank.rank < 2 else None
        for name, root in calls[rank.rank]:
            rank.collective(name, 8, 8, root=root, comm=Comm(comm))

    return program


BARRIER, BCAST, REDUCE = ("barrier", NO_ROOT), ("bcast", 0), ("reduce", 0)


@pytest.mark.parametrize(
    "calls", [[BARRIER], [BARRIER, BCAST, REDUCE], [BCAST, BCAST, ("bcast", 1)]]
)
def test_ranks_that_make_the_same_calls_match(recording, calls):
    assert list(mismatches(specify(recording(3, together(calls, calls, calls))))) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([BARRIER], []),
        ([BARRIER, BCAST], [BARRIER]),
        ([BARRIER, BCAST], [BCAST, BARRIER]),
        ([BCAST, REDUCE], [REDUCE, BCAST]),
        ([BCAST], [REDUCE]),
        ([BCAST], [("bcast", 1)]),
    ],
)
def test_ranks_that_make_other_calls_are_told(recording, one, other):
    told = mismatches(specify(recording(3, together(one, one, other))))
    assert list(told) == ["ranks 0 to 2 do not all make the same collective calls on WORLD"]


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ([BARRIER], []),
        ([BARRIER, BARRIER], ["ranks 0 to 1 do not all make the same collective calls on low"]),
    ],
)
def test_calls_on_another_communicator_are_those_of_its_members(recording, second, told):
    program = together([BARRIER], second, [], [], comm="low")
    made = recording(4, program, {"low": [0, 1], "high": [2, 3]})
    assert list(mismatches(specify(made))) == told


def test_calls_are_compared_where_no_message_is_sent(recording):
    def program(rank: Rank) -> None:
        if rank.rank:
            rank.collective("barrier", 0, 0)

    assert list(mismatches(specify(recording(2, program)))) == [
        "ranks 0 to 1 do not all make the same collective calls on WORLD"
    ]
