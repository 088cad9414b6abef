"""Collective operations as messages: who holds what after them."""

from __future__ import annotations

import pytest

from cells import cells
from cpmodel_commspec.collective_messages import ALGORITHMS, rounds, shares, unequal_rounds

CASES = [(name, algorithm) for name, known in ALGORITHMS.items() for algorithm in known]


def spread(found, members, owned):
    """Return what each member knows after the rounds if every message tells all."""
    known = {rank: set(owned(rank)) for rank in members}
    for one in found:
        before = {rank: frozenset(parts) for rank, parts in known.items()}
        for message in one:
            assert message.sender != message.receiver
            known[message.receiver] |= before[message.sender]
    return known


@cells("n", [1, 2, 3, 4, 5, 7, 8, 12, 16])
@cells(("name", "algorithm"), CASES)
def test_everybody_gets_what_the_operation_gives(name, algorithm, n):
    members = list(range(10, 10 + n))
    root = n // 2
    found = rounds(name, members, 6, root, algorithm)
    known = spread(found, members, lambda rank: [rank])
    everything = set(members)
    if name in {"bcast", "scatter", "scatterv"}:
        assert all(members[root] in parts for parts in known.values())
    elif name in {"reduce", "gather", "gatherv"}:
        assert known[members[root]] == everything
    elif name in {"scan", "exscan"}:
        assert all(known[rank] == set(members[: k + 1]) for k, rank in enumerate(members))
    else:
        assert all(parts == everything for parts in known.values())


@cells("n", [2, 3, 4, 8, 13])
def test_bytes_are_those_of_the_algorithm(n):
    members = range(n)

    def total(name, algorithm=None, size=10):
        return sum(
            message.bytes for one in rounds(name, members, size, 0, algorithm) for message in one
        )

    assert total("bcast") == total("bcast", "p2p") == 10 * (n - 1)
    assert total("gather", "p2p") == 10 * (n - 1)
    assert total("alltoall") == total("alltoall", "p2p") == 10 * n * (n - 1)
    assert total("allgather") == 10 * n * (n - 1)
    assert total("allreduce", "ring", 10 * n) == 2 * 10 * n * (n - 1)
    assert total("barrier", size=0) == 0
    assert len(rounds("barrier", members)) == (n - 1).bit_length()


def test_each_member_has_its_part_of_a_binomial_scatter():
    parts = {0: 8, **dict.fromkeys(range(1, 8), 0)}
    for one in rounds("scatter", range(8), 1):
        for message in one:
            parts[message.sender] -= message.bytes
            parts[message.receiver] += message.bytes
    assert parts == dict.fromkeys(range(8), 1)


@pytest.mark.parametrize(
    ("sent", "received"),
    [([3, 5, 0], [1, 1, 6]), ([0, 0], [0, 0]), ([7], [7]), ([10**9, 1, 17], [17, 10**9, 1])],
)
def test_shares_add_up(sent, received):
    found = shares(sent, received)
    assert [sum(row) for row in found] == sent
    assert [sum(column) for column in zip(*found, strict=True)] == received


def test_different_sizes_go_to_their_ranks():
    assert unequal_rounds("gatherv", [4, 5, 6], [1, 2, 3], [0, 6, 0], 1) == [((4, 5, 1), (6, 5, 3))]
    assert unequal_rounds("scatterv", [4, 5, 6], [0, 6, 0], [1, 2, 3], 1) == [
        ((5, 4, 1), (5, 6, 3))
    ]
    found = unequal_rounds("allgatherv", [4, 5], [6, 8], [7, 7])
    assert found == [((4, 5, 3), (5, 4, 4))]
    total = [[0] * 3 for _ in range(3)]
    for one in unequal_rounds("alltoallv", [0, 1, 2], [30, 60, 0], [30, 30, 30]):
        for message in one:
            total[message.sender][message.receiver] += message.bytes
    assert total == [[0, 10, 10], [20, 0, 20], [0, 0, 0]]
