"""Loops in sequences, which unroll to the original sequence."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from cpmodel_commspec.compression.loops import Loop, compress, unroll


def test_a_sequence_that_repeats_nothing_stays():
    assert compress([3, 1, 2]) == (3, 1, 2)
    assert compress([]) == ()


def test_loops_nest():
    inner = [7, 8, 8, 8]
    assert compress((inner * 4 + [9]) * 5) == (Loop(5, (Loop(4, (7, Loop(3, (8,)))), 9)),)


def test_what_comes_before_and_after_a_loop_stays_outside():
    assert compress([1, 2, 3, 2, 3, 2, 3, 4]) == (1, Loop(3, (2, 3)), 4)


def test_a_long_period_is_found():
    period = list(range(5000))
    assert compress(period * 3) == (Loop(3, tuple(period)),)


def test_a_period_in_which_one_element_is_frequent_is_found():
    period = [x for k in range(1, 300) for x in (0, k)]
    nodes = compress(period * 10)
    assert unroll(nodes) == period * 10
    assert len(nodes) <= len(period) + 1


@given(st.lists(st.tuples(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.integers(1, 6))))
def test_loops_unroll_to_the_sequence(parts):
    sequence = [x for body, count in parts for x in body * count]
    assert unroll(compress(sequence)) == sequence


def test_the_same_sequence_has_the_same_loops():
    rng = random.Random(1)
    sequence = [rng.randrange(3) for _ in range(2000)]
    assert compress(sequence) == compress(list(sequence))


def nested_loops(depth):
    return [1] if depth == 0 else [*nested_loops(depth - 1) * 2, depth + 1]


def test_deeply_nested_loops_are_short():
    sequence = nested_loops(12)
    nodes = compress(sequence)
    assert unroll(nodes) == sequence
    assert len(nodes) == 2
