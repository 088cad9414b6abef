"""Programs in coNCePTuaL: their events are those of the trace."""

from __future__ import annotations

import pytest

from callpath_modeler.errors import DataError
from communication import Rank, exchange, recorded
from conceptual import Run, UnknownError
from cpmodel_commspec.collectives import Form
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.generators.conceptual import conceptual_source
from cpmodel_commspec.operations import Kind
from cpmodel_commspec.simulation.simulator import completed
from cpmodel_commspec.simulation.wildcards import resolved


def events_of(found, rank):
    """Return the events that statements of the language should have for a rank of a trace."""
    events, pending, started = [], 0, []
    one = found.ranks[rank]
    for number, values in zip(one.shapes.tolist(), one.values.tolist(), strict=True):
        shape = found.shapes[number]
        peer, tag, size, received, root, source, source_tag = values
        if shape.kind is Kind.EXCHANGE:
            taken = "receive", source, received, source_tag, False
            events += [("send", peer, size, tag, True), taken]
            pending += bool(started)
            events += [("await",)] * (not started)
        elif shape.ends:
            is_started = shape.kind in {Kind.ISEND, Kind.IRECV}
            started += [shape] * is_started
            pending += is_started
            verb = "send" if shape.ends[0].is_sent else "receive"
            events.append((verb, peer, size, tag, is_started))
        elif shape.kind is Kind.WAIT:
            _, started = completed(started, shape)
            if not started:
                events.append(("await",))
                pending = 0
        else:
            group = next(x for x in found.communicators[shape.comm].groups if rank in x)
            events += together(shape, group, size, received, root, found)
    return [*events, ("await",)] if pending else events


def together(shape, group, size, received, root, found):  # noqa: ARG001
    members, n = tuple(sorted(group)), len(group)
    assert shape.form is Form.EACH
    reduced = size if size % 4 == 0 else size + 4 - size % 4
    if shape.kind is Kind.HANDLE or shape.name == "barrier":
        return [("synchronize", members)]
    return {
        "bcast": [("multicast", (group[root],), members, size)],
        "scatter": [("multicast", (group[root],), members, size)],
        "alltoall": [("multicast", members, members, size)],
        "reduce": [("reduce", members, reduced, group[root])],
        "gather": [("reduce", members, reduced, group[root])],
        "allreduce": [("reduce", members, reduced, None)],
        "scan": [("reduce", members, reduced, None)],
        "allgather": [
            ("reduce", members, reduced, group[0]),
            ("multicast", (group[0],), members, n * size),
        ],
        "reduce_scatter_block": [("reduce", members, reduced, to) for to in group],
    }[shape.name]


def check(found):
    """Compare the program of a trace with the trace, and return the program."""
    found = resolved(found).traced
    told = specify(found)
    program = conceptual_source(told)
    run = Run(program, told.processes)
    computed = whole = operations = 0
    for rank in range(told.processes):
        computed += sum(event[1] for event in run.events[rank] if event[0] == "compute")
        events = [event for event in run.events[rank] if event[0] != "compute"]
        assert events == events_of(found, rank), rank
        seconds = told.computing_of_rank(rank)
        whole += seconds.sum() + told.ending_of_rank(rank)
        operations += len(seconds) + 1
    # Each line is rounded to microseconds.
    assert computed == pytest.approx(whole * 1e6, abs=0.5 * operations + 1)
    return program


TRACES = [
    *[f"scorep/traces/{name}" for name in ("lulesh.trace/p8", "snap.trace/p4", "snap.trace/p9")],
    *[f"traces/{name}" for name in ("fig4.3", "fig6.3", "lu.8.run2")],
    *[f"traces/{name}.{p}" for name in ("ring", "stencil", "ft", "cg", "lu", "subcomm", "master")
      for p in (4, 8, 16)],
]  # fmt: skip


@pytest.mark.parametrize("trace", TRACES)
def test_programs_of_measured_traces_have_their_events(trace, shared_data):
    check(recorded(shared_data / trace / "traces.otf2"))


@pytest.mark.parametrize("ranks", [4, 8, 16])
def test_ft_has_few_statements(ranks, shared_data):
    program = check(recorded(shared_data / f"traces/ft.{ranks}/traces.otf2"))
    assert "COMPUTE FOR" in program
    assert Run(program, ranks).statements <= 22


@pytest.mark.parametrize("ranks", [1, 2, 5, 6, 9])
def test_the_example_has_its_events(recording, ranks):
    check(recording(ranks, exchange))


def test_collectives_that_the_language_lacks_are_replaced_with_a_comment(recording):
    def program(rank: Rank) -> None:
        n, me = rank.ranks, rank.rank
        rank.collective("gather", 16, n * 16 * (me == 1), root=1)
        rank.collective("scatter", n * 24 * (me == 2), 24, root=2)
        rank.collective("allgather", n * 20, n * 20)
        rank.collective("reduce_scatter_block", n * 10, n * 10)
        rank.collective("scan", (n - me) * 12, (me + 1) * 12)
        rank.handle("MPI_Comm_dup")

    words = check(recording(5, program))
    for line in (
        "# MPI_Gather is a REDUCE here",
        "# MPI_Scatter is a MULTICAST here",
        "# MPI_Allgather is a REDUCE and a MULTICAST here",
        "# MPI_Reduce_scatter_block is a REDUCE to each task here",
        "# MPI_Scan is a REDUCE to all tasks here",
        "# MPI_Comm_dup is SYNCHRONIZE here",
        "# sizes are rounded up to whole integers of 4 bytes",
    ):
        assert line in words


def test_different_sizes_become_the_average(recording):
    def program(rank: Rank) -> None:
        n, me = rank.ranks, rank.rank
        total = sum(range(10, 10 + n))
        rank.collective("gatherv", 10 + me, total * (me == 0), root=0)
        rank.collective("scatterv", total * (me == 3), 10 + me, root=3)
        rank.collective("allgatherv", n * (10 + me), total)
        rank.collective("reduce_scatter", total, n * (10 + me))
        rank.collective("alltoallv", 100 + 8 * me, (100, 116, 108, 124)[me])

    told = specify(recording(4, program))
    everybody = (0, 1, 2, 3)
    words = conceptual_source(told)
    average = 12  # 11.5, and whole integers
    assert Run(words, 4).events[0] == [
        ("reduce", everybody, average, 0),
        ("multicast", (3,), everybody, average),
        ("reduce", everybody, average, 0),
        ("multicast", (0,), everybody, 4 * average),
        *[("reduce", everybody, average, to) for to in everybody],
        ("multicast", everybody, everybody, 28),
    ]
    assert words.count("of the average size") == 5


def test_pairs_that_are_started_together_are_one_statement(recording):
    def program(rank: Rank) -> None:
        left, right = (rank.rank - 1) % rank.ranks, (rank.rank + 1) % rank.ranks
        rank.wait(rank.ireceive(left, 8), rank.isend(right, 8))

    words = check(recording(5, program))
    assert "UNSUSPECTING" not in words
    assert "ASYNCHRONOUSLY SEND A 8 BYTE MESSAGE TO TASK (t + 1) MOD num_tasks" in words


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ([0, 3, 6, 9], "3 DIVIDES t"),
        ([1, 4, 7, 10], "t MOD 3 = 1"),
        (range(0, 11, 2), "t IS EVEN"),
        (range(1, 11, 2), "t IS ODD"),
        (range(4, 11), "t >= 4"),
        ([2, 3, 4], "t >= 2 /\\ t <= 4"),
        ([1, 5, 6], "t IS IN {1, 5, 6}"),
        ([0, 1, 3, 4, 5, 6, 7, 8, 9, 10], "t <> 2"),
    ],
)
def test_sets_of_tasks_are_predicates(recording, ranks, words):
    def program(rank: Rank) -> None:
        for k in ranks:
            if rank.rank == k:
                rank.exchange(k, k, 8)

    told = specify(recording(11, program))
    assert f"TASKS t SUCH THAT {words} " in conceptual_source(told)
    events = Run(conceptual_source(told), 11).events
    assert [k for k, own in enumerate(events) if own] == list(ranks)


def test_waits_for_some_operations_are_told(recording):
    def program(rank: Rank) -> None:
        peer = rank.rank ^ 1
        first, second = rank.ireceive(peer, 8), rank.isend(peer, 8)
        rank.wait(second, call="MPI_Wait")
        rank.wait(first, call="MPI_Wait")

    words = check(recording(4, program))
    assert "# waits for some operations; the next AWAIT completes them" in words


def test_ranks_that_wait_for_all_operations_do_so_where_others_do_not(recording):
    def program(rank: Rank) -> None:
        peer = rank.rank ^ 1
        more = [rank.ireceive(peer, 8, tag=1)] if rank.rank >= 2 else []
        first = rank.ireceive(peer, 8)
        for tag in range(1 + len(more)):
            rank.send(peer, 8, tag=tag)
        rank.wait(first, call="MPI_Waitany")
        rank.collective("barrier", 0, 0)
        if more:
            rank.wait(*more, call="MPI_Wait")

    check(recording(4, program))


def test_a_loop_of_waits_is_one_await(recording):
    def program(rank: Rank) -> None:
        for _ in range(3):
            peers = [peer for peer in range(rank.ranks) if peer != rank.rank]
            many = [rank.ireceive(peer, 8) for peer in peers]
            many += [rank.isend(peer, 8) for peer in peers]
            for one in many:
                rank.wait(one, call="MPI_Wait")
            rank.collective("barrier", 0, 0)

    words = check(recording(5, program))
    assert words.count("AWAIT COMPLETION") == 1


def test_an_exchange_does_not_wait_for_what_was_started_before(recording):
    def program(rank: Rank) -> None:
        peer = rank.rank ^ 1
        first = rank.ireceive(peer, 16, tag=1)
        rank.exchange(peer, peer, 8)
        second = rank.isend(peer, 16, tag=1)
        rank.wait(first, second)
        rank.exchange(peer, peer, 8)

    words = check(recording(4, program))
    assert words.count("# started operations before; the next AWAIT completes them") == 1


def test_messages_that_only_communicators_tell_apart_are_refused(recording):
    from trace_writer import Comm

    def program(rank: Rank) -> None:
        for comm in ("one", "two"):
            (rank.receive if rank.rank else rank.send)(1 - rank.rank, 8, comm=Comm(comm))

    told = specify(recording(2, program, {"one": [0, 1], "two": [0, 1]}))
    with pytest.raises(DataError, match="two communicators have the same ranks and tags"):
        conceptual_source(told)


def test_non_blocking_collectives_are_refused(recording):
    def program(rank: Rank) -> None:
        rank.wait(rank.icollective("barrier", 0, 0))

    with pytest.raises(DataError, match="has no non-blocking barrier"):
        conceptual_source(specify(recording(2, program)))


def test_long_tables_are_refused(recording):
    def program(rank: Rank) -> None:
        for step in range(150):
            (rank.receive if rank.rank else rank.send)(1 - rank.rank, (step * step * 7919) % 10007)

    with pytest.raises(DataError, match="has no tables"):
        conceptual_source(specify(recording(2, program)))


def test_the_recogniser_refuses_what_is_not_in_the_language():
    for text in (
        "ALL TASKS SEND A 8 BYTE MESSAGE TO TASK 12.5",
        "FOR 3 REPETITIONS { ALL TASKS SYNCHRONIZE. }",
        "FOR 3 REPETITIONS { ALL TASKS SYNCHRONIZE THEN }",
        "ALL TASKS t SEND A 8 BYTE MESSAGE TO TASK t + 1",
        "ALL TASKS SHOUT",
        'Assert that "x" with num_tasks = 5.',
    ):
        with pytest.raises((UnknownError, KeyError)):
            Run(text, 4)
