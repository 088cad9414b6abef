"""Simulation of runs: matching, waits, collectives and wildcards."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from cpmodel_commspec.operations import Awaited, Communicator, Half, Kind, Mode, Recorded, Shape
from cpmodel_commspec.simulation.simulator import Sends, simulate

COMMUNICATORS = (Communicator("WORLD", ((0, 1, 2),)), Communicator("halves", ((0, 1), (2,))))
SHAPES = {
    "send": Shape(Kind.SEND, Mode.STANDARD, 0),
    "ssend": Shape(Kind.SEND, Mode.SYNCHRONOUS, 0),
    "bsend": Shape(Kind.SEND, Mode.BUFFERED, 0),
    "isend": Shape(Kind.ISEND, Mode.STANDARD, 0),
    "forget": Shape(Kind.ISEND, Mode.STANDARD, 0, is_awaited=False),
    "half send": Shape(Kind.SEND, Mode.STANDARD, 1),
    "half recv": Shape(Kind.RECV, "", 1),
    "exchange": Shape(Kind.EXCHANGE, Half.BOTH, 0),
    "send half": Shape(Kind.EXCHANGE, Half.SEND, 0),
    "receive half": Shape(Kind.EXCHANGE, Half.RECEIVE, 0),
    "any half": Shape(Kind.EXCHANGE, Half.BOTH, 0, is_any=True),
    "recv": Shape(Kind.RECV, "", 0),
    "any": Shape(Kind.RECV, "", 0, is_any=True),
    "irecv": Shape(Kind.IRECV, "", 0),
    "iany": Shape(Kind.IRECV, "", 0, is_any=True),
    "wait": Shape(Kind.WAIT),
    "wait first": Shape(Kind.WAIT, awaited=Awaited.CHOSEN, places=(0,)),
    "wait sends": Shape(Kind.WAIT, awaited=Awaited.SENDS),
    "barrier": Shape(Kind.COLLECTIVE, "barrier", 0),
    "half barrier": Shape(Kind.COLLECTIVE, "barrier", 1),
    "ibarrier": Shape(Kind.ICOLLECTIVE, "barrier", 0),
}
NAMES = list(SHAPES)


def rank(*operations):
    """Return the operations of a rank: (name, peer, tag, bytes), the end with defaults.

    Exchanges receive what they send, from the same rank.
    """
    rows = [(name, *numbers, *(0, 0, 8)[len(numbers) :]) for name, *numbers in operations]
    values = np.array([[p, t, b, b, 0, p, t] for _, p, t, b in rows], np.int64).reshape(-1, 7)
    return Recorded(np.array([NAMES.index(row[0]) for row in rows], np.int64), values)


def outcome(*ranks, sends=Sends.RENDEZVOUS):
    return simulate(list(SHAPES.values()), COMMUNICATORS, ranks, sends)


def sources(found):
    """Return source and bytes by rank and operation."""
    return {
        (rank, operation): (source, size)
        for rank, rows in enumerate(found.sources)
        for operation, source, size in rows.tolist()
    }


def blocked(*ranks, sends=Sends.RENDEZVOUS):
    return {x.rank: (x.operation, x.waits_for) for x in outcome(*ranks, sends=sends).blocked}


HEAD_TO_HEAD = [rank(("send", 1), ("recv", 1)), rank(("send", 0), ("recv", 0)), rank()]


def test_two_ranks_that_send_first_wait_for_each_other():
    assert blocked(*HEAD_TO_HEAD) == {0: (0, (1,)), 1: (0, (0,))}


def test_eager_sends_do_not_wait():
    assert blocked(*HEAD_TO_HEAD, sends=Sends.EAGER) == {}


@pytest.mark.parametrize("first", ["bsend", "forget", "isend"])
def test_sends_that_do_not_block_let_the_receive_come(first):
    one, two = rank((first, 1), ("recv", 1)), rank((first, 0), ("recv", 0))
    assert blocked(one, two, rank()) == {}


def test_exchanges_send_and_receive_at_once():
    assert blocked(rank(("exchange", 1)), rank(("exchange", 0)), rank()) == {}
    assert blocked(rank(("exchange", 1)), rank(("recv", 0), ("send", 0)), rank()) == {}
    assert blocked(rank(("send half", 1)), rank(("receive half", 0)), rank()) == {}
    assert set(blocked(rank(("exchange", 1)), rank(("receive half", 0)), rank())) == {0}


def test_exchanges_receive_from_any_source():
    found = outcome(rank(("any half", 1, 0, 5)), rank(("exchange", 0, 0, 7)), rank())
    assert (found.blocked, sources(found)) == ((), {(0, 0): (1, 7)})


def test_synchronous_sends_wait_even_where_others_are_eager():
    one, two = rank(("ssend", 1), ("recv", 1)), rank(("ssend", 0), ("recv", 0))
    assert set(blocked(one, two, rank(), sends=Sends.EAGER)) == {0, 1}


def test_a_ring_of_three_is_one_cycle():
    ring = [rank(("send", (k + 1) % 3), ("recv", (k - 1) % 3)) for k in range(3)]
    assert blocked(*ring) == {0: (0, (1,)), 1: (0, (2,)), 2: (0, (0,))}


def test_messages_match_by_tag_and_communicator():
    one = rank(("isend", 1, 5), ("half send", 1, 5), ("wait",))
    two = rank(("half recv", 0, 5), ("recv", 0, 5))
    assert blocked(one, two, rank()) == {}
    assert set(blocked(one, rank(("recv", 0, 4), ("recv", 0, 5)), rank())) == {0, 1}


def test_collectives_wait_for_all_members():
    found = blocked(rank(("barrier",)), rank(("half barrier",), ("barrier",)), rank(("barrier",)))
    assert found == {0: (0, (1,)), 1: (0, (0,)), 2: (0, (1,))}


def test_communicators_of_a_split_do_not_wait_for_each_other():
    pair = rank(("half barrier",))
    assert blocked(pair, pair, rank()) == {}


def test_collectives_that_do_not_block_are_complete_at_their_wait():
    def one(peer):
        return rank(("ibarrier",), ("send" if peer else "recv", peer), ("wait",))

    assert blocked(one(1), one(0), rank(("ibarrier",), ("wait",))) == {}


def test_a_wait_names_the_ranks_that_are_missing():
    one = rank(("irecv", 1), ("irecv", 2), ("irecv", 2, 7), ("wait",))
    assert blocked(one, rank(("send", 0)), rank(("send", 0)))[0] == (3, (2,))


def test_waits_complete_the_operations_that_they_name():
    one = rank(("irecv", 1), ("isend", 1), ("wait sends",), ("wait first",), ("wait",))
    two = rank(("recv", 0), ("send", 0))
    assert blocked(one, two, rank()) == {}


def test_a_receive_from_any_source_takes_the_first_message():
    one = rank(("any",), ("any",), ("recv", 2, 1))
    found = outcome(one, rank(("send", 0, 0, 11)), rank(("send", 0, 0, 22), ("send", 0, 1)))
    assert found.blocked == ()
    assert sources(found) == {(0, 0): (1, 11), (0, 1): (2, 22)}


def test_receives_from_any_source_do_not_overtake():
    one = rank(("iany",), ("irecv", 1), ("wait",))
    found = outcome(one, rank(("send", 0, 0, 1), ("send", 0, 0, 2)), rank())
    assert sources(found) == {(0, 0): (1, 1)}
    two = rank(("irecv", 1), ("iany",), ("wait",))
    found = outcome(two, rank(("send", 0, 0, 1), ("send", 0, 0, 2)), rank())
    assert sources(found) == {(0, 1): (1, 2)}


def test_a_message_that_was_received_is_not_matched_again():
    one = rank(("barrier",), ("recv", 1), ("any",))
    two = rank(("bsend", 0, 0, 1), ("barrier",))
    three = rank(("barrier",), ("send", 0, 0, 3))
    found = outcome(one, two, three)
    assert (found.blocked, sources(found)) == ((), {(0, 2): (2, 3)})


def test_the_wrong_choice_of_a_source_can_block():
    # The example of figure 6: rank 1 receives from any rank, and then from rank 0.
    ranks = [rank(("send", 1)), rank(("any",), ("recv", 0)), rank(("send", 1))]
    assert blocked(*ranks) == {1: (1, (0,)), 2: (0, (1,))}


@pytest.mark.parametrize("sends", list(Sends))
def test_long_chains_need_no_recursion(sends):
    count = 5 * sys.getrecursionlimit()
    one = rank(*[("send", 1), ("recv", 1)] * count)
    assert blocked(one, rank(*[("recv", 0), ("send", 0)] * count), rank(), sends=sends) == {}
