"""Replay on a LogGP network, beside times that were computed by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cells import cells
from cpmodel_commspec.operations import Communicator, Half, Kind, Mode, Recorded, Shape
from cpmodel_commspec.replay.loggp import replay
from cpmodel_commspec.replay.platform import PRESETS, Platform

NETWORK = Platform("by hand", latency=5, overhead=1, gap=2, gap_per_byte=0.1, eager=100)
SHAPES = {
    "send": Shape(Kind.SEND, Mode.STANDARD, 0),
    "ssend": Shape(Kind.SEND, Mode.SYNCHRONOUS, 0),
    "bsend": Shape(Kind.SEND, Mode.BUFFERED, 0),
    "isend": Shape(Kind.ISEND, Mode.STANDARD, 0),
    "recv": Shape(Kind.RECV, "", 0),
    "irecv": Shape(Kind.IRECV, "", 0),
    "any": Shape(Kind.RECV, "", 0, is_any=True),
    "iany": Shape(Kind.IRECV, "", 0, is_any=True),
    "exchange": Shape(Kind.EXCHANGE, Half.BOTH, 0),
    "wait": Shape(Kind.WAIT),
    "barrier": Shape(Kind.COLLECTIVE, "barrier", 0),
    "ibarrier": Shape(Kind.ICOLLECTIVE, "barrier", 0),
    "bcast": Shape(Kind.COLLECTIVE, "bcast", 0),
    "reduce": Shape(Kind.COLLECTIVE, "reduce", 0),
    "gather": Shape(Kind.COLLECTIVE, "gather", 0),
    "alltoall": Shape(Kind.COLLECTIVE, "alltoall", 0),
    "dup": Shape(Kind.HANDLE, "MPI_Comm_dup", 0),
}
NAMES = list(SHAPES)


def rank(*operations, last=0.0):
    """Return a rank: (seconds before, name, partner or root, bytes)."""
    rows = [(seconds, name, *numbers, *(0, 11)[len(numbers) :]) for seconds, name, *numbers in
            operations]  # fmt: skip
    values = np.array([[p, 0, b, b, p, p, 0] for _, _, p, b in rows], np.int64).reshape(-1, 7)
    shapes = np.array([NAMES.index(row[1]) for row in rows], np.int64)
    computing = np.array([float(row[0]) for row in rows])
    return Recorded(shapes, values, computing, last=last)


def run(*ranks, network=NETWORK):
    world = Communicator("WORLD", (tuple(range(len(ranks))),))
    found = replay(list(SHAPES.values()), (world,), ranks, network)
    assert found.outcome.blocked == ()
    return found


def ends(*ranks, **options):
    return run(*ranks, **options).ends.tolist()


def test_a_message_takes_both_overheads_its_bytes_and_the_latency():
    # o + 10 G + L + o = 1 + 1 + 5 + 1
    found = run(rank((0, "send", 1)), rank((0, "recv", 0)))
    assert found.ends.tolist() == [1, 8]
    assert [list(x) for x in found.calling] == [[1], [8]]


def test_an_answer_takes_as_long_as_the_message():
    ping = rank((0, "send", 1), (0, "recv", 1))
    pong = rank((0, "recv", 0), (0, "send", 0))
    assert ends(ping, pong) == [16, 9]


def test_a_message_of_no_or_one_byte_has_no_gap_per_byte():
    for size in (0, 1):
        assert ends(rank((0, "send", 1, size)), rank((0, "recv", 0, size))) == [1, 7]


def test_messages_leave_one_after_the_other():
    # The second one leaves at 1 + 2 + 1 = 4 though its call ends at 2, and arrives at 4 + 1 + 5.
    found = ends(rank((0, "send", 1), (0, "send", 1)), rank((0, "recv", 0), (0, "recv", 0)))
    assert found == [2, 11]


def test_a_late_sender_is_waited_for():
    found = run(rank((50, "send", 1)), rank((0, "recv", 0)))
    assert found.ends.tolist() == [51, 58]
    assert [list(x) for x in found.waiting] == [[0], [50]]


def test_a_late_receive_takes_only_its_overhead():
    found = run(rank((0, "send", 1)), rank((50, "recv", 0)))
    assert found.ends.tolist() == [1, 51]
    assert found.waiting[1].tolist() == [0]


def test_a_large_message_waits_for_its_receive():
    # The answer arrives at 50 + 5; 200 G = 20; then L and o.
    found = run(rank((0, "send", 1, 201)), rank((50, "recv", 0, 201)))
    assert found.ends.tolist() == [75, 81]
    assert found.waiting[0].tolist() == [50]


def test_a_large_message_whose_receive_waits_asks_first():
    # o + L to ask, L to answer, 20, L, o.
    assert ends(rank((0, "send", 1, 201)), rank((0, "recv", 0, 201))) == [31, 37]


def test_a_synchronous_send_waits_and_a_buffered_one_does_not():
    assert ends(rank((0, "ssend", 1)), rank((50, "recv", 0)))[0] == 56
    assert ends(rank((0, "bsend", 1, 201)), rank((50, "recv", 0, 201))) == [1, 81]


def test_a_pipeline_of_ranks_adds_up():
    middle = [rank((3, "recv", k - 1), (3, "send", k + 1)) for k in (1, 2)]
    found = ends(rank((3, "send", 1)), *middle, rank((3, "recv", 2)))
    # Each hop is 8, and each of the two in the middle computes 3 after it received.
    assert found == [4, 3 + 8 + 3 + 1, 3 + 2 * (8 + 3) + 1, 3 + 3 * 8 + 2 * 3]


def test_computation_hides_messages_that_were_started():
    def one(peer):
        return rank((0, "irecv", peer), (0, "isend", peer), (20, "wait"))

    found = run(one(1), one(0))
    assert found.ends.tolist() == [22, 22]
    assert found.waiting[0].tolist() == [0, 0, 0]
    busy = ends(*(rank((0, "irecv", 1 - k), (0, "isend", 1 - k), (0, "wait")) for k in (0, 1)))
    assert busy == [8, 8]


def test_receives_of_one_wait_take_their_overheads_in_the_order_of_arrival():
    # Messages arrive at 7, and at 30 + 7; the first is taken when it is there.
    root = rank((0, "irecv", 2), (0, "irecv", 1), (0, "wait"))
    assert ends(root, rank((0, "send", 0)), rank((30, "send", 0)))[0] == 38
    together = ends(root, rank((0, "send", 0)), rank((0, "send", 0)))
    assert together[0] == 9


def test_exchanges_send_before_they_receive():
    assert ends(rank((0, "exchange", 1)), rank((4, "exchange", 0))) == [12, 8 + 0]


def test_a_barrier_among_unequal_ranks_ends_after_the_last():
    found = run(rank((0, "barrier")), rank((50, "barrier")))
    # Messages of no bytes: the last one sends at 51, and has the other's message since long.
    assert found.ends.tolist() == [57, 52]
    assert [list(x) for x in found.waiting] == [[50], [0]]


def test_a_barrier_of_four_has_two_rounds():
    assert ends(*[rank((0, "barrier"))] * 4) == [14] * 4
    assert ends(*[rank((0, "dup"))] * 4) == [14] * 4


def test_a_barrier_that_was_started_goes_on_behind_computation():
    one = rank((0, "ibarrier"), (100, "wait"))
    assert ends(one, one, one, one) == [100] * 4


def test_a_broadcast_does_not_wait_for_late_leaves():
    found = ends(rank((0, "bcast", 0)), rank((90, "bcast", 0)))
    assert found == [1, 91]


def test_a_reduction_does_not_keep_its_leaves():
    assert ends(rank((90, "reduce", 0)), rank((0, "reduce", 0))) == [91, 1]


def test_the_root_need_not_be_the_first():
    assert ends(*[rank((0, "bcast", 1))] * 2) == [8, 1]
    third = ends(*[rank((0, "bcast", 2))] * 3)
    # The root sends to its right, which is 0, and then to 1.
    assert third == [8, 11, 2]


def test_all_to_all_goes_at_once_or_pair_by_pair():
    # All send at 1, 4 and 7, because the port is busy for g + 10 G. Messages arrive 6 later.
    assert ends(*[rank((0, "alltoall", 0, 11))] * 4) == [14] * 4
    # Each of three rounds takes o + 10 G + L + o; the port is free again by then.
    pairwise = replace(NETWORK, algorithms={"alltoall": "pairwise"})
    assert ends(*[rank((0, "alltoall", 0, 11))] * 4, network=pairwise) == [24] * 4


def test_the_algorithm_of_a_platform_counts():
    linear = replace(NETWORK, algorithms={"bcast": "p2p"})
    ranks = [rank((0, "bcast", 0))] * 4
    # The root sends at 1, 4 and 7; the first two calls end before.
    assert ends(*ranks, network=linear) == [3, 8, 11, 14]
    gathered = replace(NETWORK, algorithms={"gather": "p2p"})
    assert ends(*[rank((0, "gather", 0))] * 4, network=gathered) == [10, 1, 1, 1]


def test_computation_after_the_last_operation_counts():
    assert ends(rank((0, "barrier"), last=7.0)) == [7]


def test_receives_from_any_source_take_the_first_message_to_arrive():
    root = rank((0, "any"), (0, "any"))
    found = run(root, rank((30, "send", 0)), rank((10, "send", 0)))
    assert found.outcome.sources[0].tolist() == [[0, 2, 11], [1, 1, 11]]
    assert found.ends[0] == 38


@pytest.mark.parametrize("late", [1, 2, 3])
def test_a_message_that_is_sent_later_on_a_rank_that_runs_first_is_not_taken(late):
    senders = [rank((90 if k == late else 10 * k, "send", 0)) for k in (1, 2, 3)]
    found = run(rank((0, "any"), (0, "any"), (0, "any")), *senders)
    order = found.outcome.sources[0][:, 1].tolist()
    assert order[-1] == late
    assert order[:2] == sorted(order[:2])


def test_a_receive_that_was_posted_before_one_from_any_source_comes_first():
    root = rank((0, "irecv", 1), (0, "iany"), (0, "wait"))
    found = run(root, rank((0, "send", 0, 1), (0, "send", 0, 2)), rank((90, "send", 0), last=0))
    assert found.outcome.sources[0].tolist() == [[1, 1, 2]]


def test_a_receive_after_one_from_any_source_waits_for_its_choice():
    root = rank((0, "iany"), (0, "irecv", 1), (0, "wait"))
    found = run(root, rank((20, "send", 0, 1), (0, "send", 0, 2)), rank((50, "send", 0)))
    assert found.outcome.sources[0].tolist() == [[0, 1, 1]]
    first = run(root, rank((50, "send", 0)), rank((20, "send", 0)))
    assert first.outcome.sources[0].tolist() == [[0, 2, 11]]


def test_many_receives_from_any_source_are_in_the_order_of_arrival():
    count = 40
    root = rank(*[(0, "any")] * count)
    times = [(37 * k) % count * 20 for k in range(count)]
    found = run(root, *[rank((seconds, "send", 0)) for seconds in times])
    assert found.outcome.sources[0][:, 1].tolist() == [
        1 + k for k in sorted(range(count), key=times.__getitem__)
    ]


def test_ranks_that_wait_for_each_other_are_blocked():
    world = Communicator("WORLD", ((0, 1),))
    ranks = [rank((0, "send", 1 - k, 201), (0, "recv", 1 - k, 201)) for k in (0, 1)]
    found = replay(list(SHAPES.values()), (world,), ranks, NETWORK)
    assert [one.rank for one in found.outcome.blocked] == [0, 1]
    small = [rank((0, "send", 1 - k, 99), (0, "recv", 1 - k, 99)) for k in (0, 1)]
    assert ends(*small)[0] > 0


def programs(random, count=4, steps=60):
    """Return a run without receives from any source, of random operations."""
    operations = [[] for _ in range(count)]
    for _ in range(steps):
        kind = random.choice(["message", "halo", "collective", "large"])
        seconds = random.uniform(0, 20, count)
        a, b = (int(x) for x in random.choice(count, 2, replace=False))
        if kind in {"message", "large"}:
            size = int(random.integers(1, 90)) if kind == "message" else 500
            operations[a].append((seconds[a], "send", b, size))
            operations[b].append((seconds[b], "recv", a, size))
        elif kind == "halo":
            for k in range(count):
                for peer in ((k + 1) % count, (k - 1) % count):
                    operations[k] += [(0, "irecv", peer, 40), (0, "isend", peer, 40)]
                operations[k].append((seconds[k], "wait"))
        else:
            name = random.choice(["barrier", "bcast", "reduce", "alltoall", "gather"])
            root = a if name in {"bcast", "reduce", "gather"} else 0
            for k in range(count):
                operations[k].append((seconds[k], name, root, 300))
    return [rank(*one) for one in operations]


@cells("seed", range(12))
def test_a_slower_platform_or_more_computation_is_never_faster(seed):
    random = np.random.default_rng(seed)
    ranks = programs(random)
    base = run(*ranks).ends
    for field in ("latency", "overhead", "gap", "gap_per_byte"):
        slower = replace(NETWORK, **{field: 1.5 * getattr(NETWORK, field)})
        assert (run(*ranks, network=slower).ends >= base - 1e-9).all(), field
    one = int(random.integers(len(ranks)))
    more = ranks[one].computing.copy()
    more[random.integers(len(more))] += 30
    changed = [*ranks[:one], replace(ranks[one], computing=more), *ranks[one + 1 :]]
    assert (run(*changed).ends >= base - 1e-9).all()


@pytest.mark.parametrize("seed", range(4))
def test_times_add_up_and_are_the_same_each_time(seed):
    ranks = programs(np.random.default_rng(seed))
    found, again = run(*ranks), run(*ranks)
    for k, end in enumerate(found.ends):
        assert found.computing[k].sum() + found.calling[k].sum() == pytest.approx(end)
        assert (found.waiting[k] >= 0).all()
        assert (found.waiting[k] <= found.calling[k] + 1e-12).all()
    assert (found.ends == again.ends).all()


def test_presets_have_sources():
    assert all(one.source for one in PRESETS.values())
