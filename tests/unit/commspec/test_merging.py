"""Merging of programs of many ranks, in the order of each rank."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cpmodel_commspec.compression.loops import Loop, compress, unroll
from cpmodel_commspec.compression.merging import Line, Merger


def merged(*sequences):
    programs = [compress(sequence) for sequence in sequences]
    return Merger().merge(programs, [[(0,)] * len(sequence) for sequence in sequences])


def part(nodes, who):
    """Return the program of one rank."""
    return [
        node.token if isinstance(node, Line) else Loop(node.count, tuple(part(node.body, who)))
        for node in nodes
        if who in node.who
    ]


def lines(nodes):
    return sum(1 if isinstance(node, Line) else 1 + lines(node.body) for node in nodes)


def test_what_all_do_stands_once():
    nodes = merged([1, 2, 3], [1, 3], [2, 3])
    assert [node.token for node in nodes] == [1, 2, 3]
    assert [sorted(node.who) for node in nodes] == [[0, 1], [0, 2], [0, 1, 2]]


def test_bodies_of_loops_are_shared():
    nodes = merged([1, 2, 3] * 5, [1, 3] * 5, [2, 3] * 5)
    assert lines(nodes) == 4


def test_loops_of_other_counts_stay_apart():
    nodes = merged([1, 2] * 5, [1, 2] * 6)
    assert [node.count for node in nodes] in ([5, 6], [6, 5])


def test_equal_numbers_decide_what_is_shared():
    programs = [(1, 1), (1,)]
    first, second = Merger().merge(programs, [[(5,), (7,)], [(7,)]])
    assert (sorted(first.who), sorted(second.who)) == ([0], [0, 1])


def test_no_programs_are_no_program():
    assert Merger().merge([], []) == ()


@given(st.lists(st.lists(st.integers(0, 4), max_size=25), min_size=1, max_size=5))
def test_every_program_is_part_of_the_merged_one(sequences):
    nodes = merged(*sequences)
    for who, sequence in enumerate(sequences):
        assert unroll(part(nodes, who)) == sequence
