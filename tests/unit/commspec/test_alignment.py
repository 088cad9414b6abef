"""Alignment: statements that several call sites execute are one line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from communication import recorded, traced
from cpmodel_commspec.checking import differences
from cpmodel_commspec.compression.merging import statements
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.operations import Kind
from cpmodel_commspec.specification import Step, walk


def steps(told, kind):
    nodes = [node for node, _ in walk(told.body) if isinstance(node, Step)]
    return [
        (node, told.shapes[node.shape]) for node in nodes if told.shapes[node.shape].kind is kind
    ]


def test_one_barrier_of_three_branches_is_one_line(recording):
    def program(rank):
        with rank.region(f"branch{rank.rank}"):
            if rank.rank == 0:
                rank.send(1, 8)
            rank.collective("barrier", 0, 0)
            if rank.rank == 1:
                rank.receive(0, 8)

    told = specify(recording(3, program))
    [(node, shape)] = steps(told, Kind.COLLECTIVE)
    assert node.ranks == (0, 1, 2)
    assert shape.functions == ("branch0", "branch1", "branch2")
    assert told.lines == 3


def test_the_root_may_call_from_another_function(recording):
    def program(rank):
        for _ in range(4):
            with rank.region("compute"):
                rank.exchange(rank.rank ^ 1, rank.rank ^ 1, 8)
            with rank.region("norm" if rank.rank else "norm_of_root"):
                rank.collective("allreduce", 32, 32)

    told = specify(recording(4, program))
    assert len(steps(told, Kind.COLLECTIVE)) == 1
    assert told.programs == 1


def test_branches_with_the_same_statements_are_told_once(recording):
    def program(rank):
        right, left = (rank.rank + 1) % rank.ranks, (rank.rank - 1) % rank.ranks
        for _ in range(3):
            with rank.region("instrumented" if rank.rank == 0 else "plain"), rank.region("halo"):
                rank.wait(rank.ireceive(left, 8), rank.isend(right, 8))
                rank.collective("barrier", 0, 0)

    told = specify(recording(5, program))
    assert told.programs == 1
    assert told.lines == 5


def test_master_and_worker_stay_apart(recording):
    def program(rank):
        with rank.region("worker" if rank.rank else "master"):
            for _ in range(3):
                for peer in range(1, rank.ranks) if rank.rank == 0 else [0]:
                    rank.send(peer, 8) if rank.rank else rank.receive(peer, 8)
                    rank.receive(peer, 16) if rank.rank else rank.send(peer, 16)
            rank.collective("barrier", 0, 0)

    told = specify(recording(4, program))
    assert {shape.functions for _, shape in steps(told, Kind.SEND)} == {("master",), ("worker",)}
    assert len(steps(told, Kind.COLLECTIVE)) == 1


def test_a_line_names_the_functions_of_its_own_operations(recording):
    def program(rank):
        for function in ("both", "one" if rank.rank else "other"):
            with rank.region(function):
                rank.collective("allreduce", 8, 8)
        with rank.region("one"):
            rank.collective("bcast", 8 if rank.rank == 0 else 0, 4, root=0)

    functions = [x.functions for _, x in steps(specify(recording(2, program)), Kind.COLLECTIVE)]
    assert functions == [("both",), ("other", "one"), ("one",)]


def test_operations_of_one_call_site_are_left_as_they_are(recording):
    def program(rank):
        rank.collective("barrier", 0, 0)
        rank.collective("allreduce", 16, 16)

    found = recording(2, program)
    assert statements(found).tolist() == list(range(len(found.shapes)))


def test_other_communicators_do_not_align(recording):
    from trace_writer import Comm

    def program(rank):
        name = "low" if rank.rank < 2 else "high"
        with rank.region(name):
            rank.collective("barrier", 0, 0, comm=Comm(name))

    found = recording(4, program, {"low": [0, 1], "high": [2, 3]})
    assert len(set(statements(found).tolist())) == 2


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["barrier", "allreduce"]),
            st.lists(st.integers(0, 2), min_size=3, max_size=3),
        ),
        max_size=12,
    ),
    st.integers(1, 3),
)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_aligned_programs_keep_the_order_of_every_rank(tmp_path_factory, calls, rounds):
    def program(rank):
        for name, functions in calls * rounds:
            with rank.region(f"f{functions[rank.rank]}"):
                rank.collective(name, *((0, 0) if name == "barrier" else (24, 24)))

    found = recorded(traced(tmp_path_factory.mktemp("aligned") / "trace", 3, program))
    told = specify(found)
    assert list(differences(told, found)) == []
    # All ranks call the same collectives, so that all lines are lines of all ranks.
    assert all(node.ranks == (0, 1, 2) for node, _ in walk(told.body))


@pytest.mark.parametrize(
    ("trace", "lines", "calls"),
    [("traces/fig4.3", 4, 1), ("third_party/otf2/stencil4d_p32", 20, 2)],
)
def test_example_traces_are_told_once(trace, lines, calls, shared_data):
    told = specify(recorded(shared_data / trace / "traces.otf2"))
    assert told.lines == lines
    assert len(steps(told, Kind.COLLECTIVE)) == calls


def test_ranks_of_a_cut_trace_align_as_far_as_they_come(recording):
    def program(rank):
        for _ in range(3 if rank.rank else 1):
            with rank.region("a" if rank.rank else "b"):
                rank.collective("barrier", 0, 0)

    found = recording(2, program)
    assert len(np.unique(statements(found))) == 1
    assert list(differences(specify(found), found)) == []
