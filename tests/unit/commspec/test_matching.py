"""Matching of sent and received messages, by size and in order."""

from __future__ import annotations

import pytest

from communication import Rank
from cpmodel_commspec.matching import mismatches
from cpmodel_commspec.specify import specify


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
