"""Partners as functions of the rank."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cells import cells
from cpmodel_commspec.expressions import Partner, Relation, choose, grids, is_series


def chosen(pairs, processes):
    rank, peer = np.array(pairs).T
    partner = choose(rank, peer, processes)
    numbers = partner.number(rank, peer)
    np.testing.assert_array_equal(partner.peer(rank, numbers), peer)
    return partner, sorted(set(numbers.tolist()))


def test_neighbours_on_a_line_are_at_a_distance():
    pairs = [(r, r + 1) for r in range(7)] + [(r, r - 1) for r in range(1, 8)]
    assert chosen(pairs, 8) == (Partner(Relation.DISTANCE), [-1, 1])


def test_neighbours_on_a_ring_are_on_a_torus():
    assert chosen([(r, (r + 1) % 7) for r in range(7)], 7) == (
        Partner(Relation.TORUS, (7,)),
        [1],
    )


def test_partners_of_a_butterfly_are_one_bit_away():
    pairs = [(r, r ^ bit) for r in range(64) for bit in (1, 2, 4, 8, 16, 32)]
    partner, numbers = chosen(pairs, 64)
    assert partner == Partner(Relation.TORUS, (2,) * 6)
    assert numbers == [1, 2, 4, 8, 16, 32]


def test_neighbours_on_a_torus_are_found_with_its_sizes():
    pairs = []
    for r in range(60):
        x, y, z = r % 3, r // 3 % 4, r // 12
        pairs += [(r, (x + 1) % 3 + 3 * y + 12 * z), (r, x + 3 * ((y + 3) % 4) + 12 * z)]
        pairs.append((r, x + 3 * y + 12 * ((z + 1) % 5)))
    partner, numbers = chosen(pairs, 60)
    assert partner == Partner(Relation.TORUS, (3, 4, 5))
    assert len(numbers) == 3


def test_all_that_talk_to_one_have_one_partner():
    assert chosen([(r, 0) for r in range(1, 9)], 9) == (Partner(Relation.RANK), [0])


@cells("processes", [1, 2, 7, 12, 64, 97])
def test_grids_have_room_for_all_processes(processes):
    found = list(grids(processes))
    assert all(np.prod(sizes) == processes and min(sizes) > 1 for sizes in found)
    assert len(set(found)) == len(found)


@given(st.integers(1, 40).flatmap(lambda p: st.tuples(st.just(p), st.sets(
    st.tuples(st.integers(0, p - 1), st.integers(0, p - 1)), min_size=1))))  # fmt: skip
def test_numbers_tell_the_partner(drawn):
    processes, pairs = drawn
    chosen(sorted(pairs), processes)


def test_partners_one_after_the_other_are_a_series():
    assert is_series([np.arange(1, 9)])
    assert is_series([np.tile(np.arange(1, 9), 3)])
    assert not is_series([np.array([1, 2, 4, 8, 16])])
    assert not is_series([np.array([1, 2])])
