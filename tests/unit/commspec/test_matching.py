"""Matching of sent and received messages, by size and in order."""

from __future__ import annotations

import pytest

from communication import NO_ROOT, WORLD, Rank
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.simulation.deadlocks import mismatches
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


BOTH = Comm("both")


def messages_of(sent, received):
    """Return what two ranks do: (communicator, tag, size) of messages from the first one."""

    def program(rank: Rank) -> None:
        for comm, tag, size in received if rank.rank else sent:
            (rank.receive if rank.rank else rank.send)(1 - rank.rank, size, tag=tag, comm=comm)

    return program


def test_a_message_is_received_on_the_communicator_on_which_it_is_sent(recording):
    program = messages_of([(WORLD, 0, 8), (BOTH, 0, 8)], [(WORLD, 0, 8), (WORLD, 0, 8)])
    [told] = mismatches(specify(recording(2, program, {"both": [0, 1]})))
    assert told.startswith("2 messages are sent and 2 received")


def test_messages_of_different_communicators_may_be_received_in_another_order(recording):
    program = messages_of([(WORLD, 0, 8), (BOTH, 0, 16)], [(BOTH, 0, 16), (WORLD, 0, 8)])
    assert list(mismatches(specify(recording(2, program, {"both": [0, 1]})))) == []


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_messages_of_two_senders_or_to_two_receivers_are_kept_apart(recording, order):
    def program(rank: Rank) -> None:
        for peer in order:
            if rank.rank < 2:
                rank.send(2 + peer, 8 * (1 + peer))
            else:
                rank.receive(peer, 8 * (rank.rank - 1))

    assert list(mismatches(specify(recording(4, program)))) == []


@pytest.mark.parametrize(("second", "count"), [(16, 0), (24, 2)])
def test_messages_of_calls_of_different_kinds_keep_their_order(recording, second, count):
    """A send, half of an exchange, and a send, of one tag."""

    def program(rank: Rank) -> None:
        if rank.rank == 0:
            rank.send(1, 8)
            rank.exchange(1, 1, 16)
            rank.send(1, 24)
        else:
            rank.send(0, 16)
            rank.receive(0, 8)
            rank.receive(0, second)
            rank.receive(0, 24 if second == 16 else 16)

    assert len(list(mismatches(specify(recording(2, program))))) == (count > 0)


@pytest.mark.parametrize(("sizes", "count"), [((8, 16, 24), 0), ((8, 24, 16), 1)])
def test_messages_are_received_in_the_order_of_calls_of_different_kinds(recording, sizes, count):
    """A receive, the received half of an exchange, and a receive, of one tag."""

    def program(rank: Rank) -> None:
        if rank.rank == 0:
            for size in sizes:
                rank.send(1, size)
            rank.receive(1, 16)
        else:
            rank.receive(0, 8)
            rank.exchange(0, 0, 16)
            rank.receive(0, 24)

    assert len(list(mismatches(specify(recording(2, program))))) == count


def test_a_message_of_the_right_size_from_another_rank_does_not_match(recording):
    def program(rank: Rank) -> None:
        if rank.rank < 2:
            rank.send(2 + rank.rank, 8)
        else:
            rank.receive(3 - rank.rank, 8)

    [told] = mismatches(specify(recording(4, program)))
    assert told.startswith("2 messages are sent and 2 received")
    assert told.endswith("are 4 of them")


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


@pytest.mark.parametrize("other", [1, 3])
def test_each_group_of_a_communicator_is_compared(recording, other):
    """Rows of a grid are groups of one communicator; a fault may be in the last one."""

    def program(rank: Rank) -> None:
        row = Comm(f"row {rank.rank // 2}")
        rank.collective("barrier", 0, 0, comm=row)
        if rank.rank == other:
            rank.collective("barrier", 0, 0, comm=row)

    told = specify(recording(4, program, {"row 0": [0, 1], "row 1": [2, 3]}))
    assert [len(each.groups) for each in told.communicators if each.name == "row 0"] == [2]
    group = "0 to 1" if other == 1 else "2 to 3"
    assert list(mismatches(told)) == [
        f"ranks {group} do not all make the same collective calls on row 0"
    ]
