"""Receives from any source: marks, inference from several runs, and resolution."""

from __future__ import annotations

import random

import pytest

from callpath_modeler.errors import DataError, UsageError
from communication import recorded, traced, untimed
from cpmodel_commspec.checking import differences
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.simulation.deadlocks import deadlock, explain, mismatches, require_safe
from cpmodel_commspec.simulation.simulator import Sends
from cpmodel_commspec.simulation.wildcards import inferred, marked, marked_as, resolved
from cpmodel_commspec.specification import walk


def gather(seed, posted=None):
    """Return a program: rank 0 takes messages as they come, which is another order in every run."""

    def program(rank):
        order = random.Random(seed)
        for _ in range(5):
            peers = list(range(1, rank.ranks))
            order.shuffle(peers)
            with rank.region("collect"):
                if rank.rank:
                    rank.send(0, 10 * rank.rank)
                for peer in peers if rank.rank == 0 else ():
                    rank.receive(peer, 10 * peer, posted=posted)
            rank.collective("barrier", 0, 0)

    return program


def sources(traced, rank=0):
    one = traced.ranks[rank]
    return [
        peer
        for shape, peer in zip(one.shapes.tolist(), one.values[:, 0].tolist(), strict=True)
        if traced.shapes[shape].has_any_source
    ]


def is_any(traced):
    return any(shape.is_any for shape in traced.shapes)


@pytest.fixture
def runs(tmp_path):
    """Record two runs of one program."""
    return [recorded(traced(tmp_path / f"run{k}", 5, gather(k))) for k in (1, 2)]


def test_the_attribute_of_the_trace_marks_receives(recording):
    assert is_any(recording(5, gather(1, "ANY")))


def test_posted_receives_are_marked_too(recording):
    def program(rank):
        peer = 1 - rank.rank
        requests = [rank.ireceive(peer, 8, posted="ANY"), rank.ireceive(peer, 8)]
        rank.send(peer, 8)
        rank.send(peer, 8)
        rank.wait(*requests)

    found = recording(2, program)
    marks = [found.shapes[shape].is_any for shape in found.ranks[0].shapes[:2]]
    assert marks == [True, False]


@pytest.mark.parametrize(
    "pattern", ["collect", "main/collect", "**/MPI_Recv", "main/collect/MPI_Recv", "col*"]
)
def test_call_paths_mark_receives(runs, pattern):
    found = marked(runs[0], [pattern])
    assert [shape.is_any for shape in found.shapes if shape.kind == "receive"] == [True]


def test_call_paths_without_receives_are_refused(runs):
    with pytest.raises(UsageError, match="collct") as raised:
        marked(runs[0], ["collct"])
    assert "did you mean 'collect'?" in raised.value.hint


def test_another_order_of_sources_marks_receives(runs):
    assert is_any(inferred(runs[0], runs[1:]))
    assert not is_any(inferred(runs[0], runs[:1]))


def test_runs_of_other_programs_are_refused(runs, tmp_path):
    def barrier(rank):
        rank.collective("barrier", 0, 0)

    for name, ranks, program in (("four", 4, gather(1)), ("none", 5, barrier)):
        other = recorded(traced(tmp_path / name, ranks, program))
        with pytest.raises(DataError, match="other receives"):
            inferred(runs[0], [other])


def test_runs_with_other_messages_are_refused(runs, tmp_path):
    def longer(rank):
        gather(1)(rank)
        with rank.region("collect"):
            rank.receive(1, 7) if rank.rank == 0 else None
            rank.send(0, 7) if rank.rank == 1 else None

    with pytest.raises(DataError, match="other messages"):
        inferred(runs[0], [recorded(traced(tmp_path / "longer", 5, longer))])


def test_all_runs_of_a_program_have_one_specification(runs):
    first, second = (specify(resolved(marked(run, ["collect"])).traced) for run in runs)
    assert first.body == second.body
    assert first.shapes == second.shapes


def test_wildcards_keep_loops(runs):
    recorded_order = specify(runs[0])
    told = specify(resolved(marked(runs[0], ["collect"])).traced)
    assert told.lines <= 5
    assert recorded_order.lines > 3 * told.lines
    assert told.from_any_source == 20


def test_resolved_messages_are_those_of_the_trace(runs):
    found = resolved(marked(runs[0], ["collect"])).traced
    told = specify(found)
    assert list(mismatches(told)) == []
    assert list(differences(told, found)) == []
    assert sorted(sources(found)) == sorted([1, 2, 3, 4] * 5)
    assert require_safe(told) is None


def test_a_specification_marks_another_run(runs):
    told = specify(resolved(marked(runs[0], ["collect"])).traced)
    other = resolved(marked_as(runs[1], told.shapes)).traced
    assert list(differences(told, other)) == []
    assert list(differences(told, runs[1])) != []


def figure_6(rank):
    """Rank 1 receives from any rank, which was rank 2, and then from rank 0."""
    if rank.rank == 1:
        rank.receive(2, 8, posted="ANY")
        rank.receive(0, 8)
    else:
        rank.send(1, 8)


def test_a_potential_deadlock_keeps_the_recorded_order(recording):
    found = resolved(recording(3, figure_6))
    assert sources(found.traced, 1) == [2]
    told = specify(found.traced)
    assert deadlock(told) is None
    about = explain(told, found.deadlock, found.sends, is_order=True)
    assert [(wait.rank, wait.waits_for) for wait in about.waits] == [(1, 0)]
    assert not about.is_cycle
    assert (
        "rank 1 in line 2 (receive from rank 0 of main) waits for rank 0, which has ended"
        in str(about)
    )


def test_deadlocks_that_no_order_causes_are_those_of_the_program(recording):
    def program(rank):
        peer = 1 - rank.rank
        rank.send(peer, 8)
        rank.receive(peer, 8, posted="ANY")

    found = resolved(recording(2, program))
    assert found.deadlock is None
    assert deadlock(specify(found.traced)).sends is Sends.RENDEZVOUS


def test_partners_of_a_rank_that_answers_the_source_take_turns(recording):
    order = [3, 1, 2, 2, 3, 1, 1, 3, 2]

    def program(rank):
        if rank.rank == 0:
            for peer in order:
                rank.receive(peer, 8, posted="ANY")
                rank.send(peer, 16)
        else:
            for _ in range(3):
                rank.send(0, 8)
                rank.receive(0, 16)

    found = resolved(recording(4, program))
    assert found.answering == (0,)
    assert (found.deadlock, found.no_turns) == (None, "")
    assert sources(found.traced) == [1, 2, 3] * 3


def test_answers_come_after_the_wait(recording):
    order = [3, 1, 2, 2, 3, 1, 1, 3, 2]

    def program(rank):
        if rank.rank == 0:
            for peer in order:
                rank.wait(rank.ireceive(peer, 8, posted="ANY"), call="MPI_Waitany")
                rank.send(peer, 16)
        else:
            for _ in range(3):
                rank.send(0, 8)
                rank.receive(0, 16)

    assert resolved(recording(4, program)).answering == (0,)


def test_messages_before_the_wait_are_no_answers(recording):
    def program(rank):
        for _ in range(4):
            requests = []
            for peer in (rank.rank - 1, rank.rank + 1):
                if 0 <= peer < rank.ranks:
                    requests += [rank.ireceive(peer, 8, posted="ANY"), rank.isend(peer, 8)]
            rank.wait(*requests)

    found = resolved(recording(4, program))
    assert found.answering == ()
    assert found.deadlock is None


@pytest.mark.parametrize("ranks", [4, 8, 16, 32])
def test_the_wavefront_is_as_short_at_every_number_of_ranks(ranks, shared_data):
    found = resolved(recorded(shared_data / f"traces/lu.{ranks}/traces.otf2"))
    told = specify(found.traced)
    assert told.lines <= 33
    assert (found.deadlock, found.answering, deadlock(told)) == (None, (), None)


def test_two_runs_of_the_wavefront_are_one_program(shared_data):
    first, second = (
        specify(resolved(untimed(recorded(shared_data / "traces" / name / "traces.otf2"))).traced)
        for name in ("lu.8", "lu.8.run2")
    )
    assert first == second


def test_two_runs_of_the_wavefront_show_its_wildcards(shared_data):
    first, second = (
        unmarked(recorded(shared_data / "traces" / name / "traces.otf2"))
        for name in ("lu.8", "lu.8.run2")
    )
    told = specify(resolved(inferred(first, [second])).traced)
    assert told.lines <= 33
    functions = {
        told.shapes[node.shape].functions
        for node, _ in walk(told.body)
        if hasattr(node, "shape") and told.shapes[node.shape].is_any
    }
    assert functions == {("exchange_3",)}


def unmarked(traced):
    """Return a trace as Score-P writes it, without the attribute."""
    from dataclasses import replace

    import msgspec

    shapes = tuple(msgspec.structs.replace(shape, is_any=False) for shape in traced.shapes)
    return replace(traced, shapes=shapes)


def test_the_example_of_a_deadlock_is_found(shared_data):
    found = resolved(recorded(shared_data / "traces/fig6.3/traces.otf2"))
    told = specify(found.traced)
    about = explain(told, found.deadlock, found.sends, is_order=True)
    assert [(wait.rank, wait.sites, wait.waits_for) for wait in about.waits] == [(1, ("main",), 0)]
