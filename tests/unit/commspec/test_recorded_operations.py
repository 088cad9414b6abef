"""Operations from the events of ranks."""

from __future__ import annotations

import numpy as np
import pytest

from communication import WORLD, recorded
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.operations import Awaited, Half, Kind, Mode
from cpmodel_commspec.recording.recorder import record
from cpmodel_otf2.highlevel import HighLevelArchive
from trace_writer import Comm, Thread, Trace, write_trace


def shapes_of(traced, rank=0):
    return [traced.shapes[k] for k in traced.ranks[rank].shapes]


def values_of(traced, rank=0):
    return traced.ranks[rank].values.tolist()


def test_a_receive_that_is_posted_has_the_sender_that_was_seen(recording):
    def program(rank):
        if rank.rank == 0:
            request = rank.ireceive(1, 40, tag=3)
            rank.collective("barrier", 0, 0)
            rank.wait(request, call="MPI_Wait")
        else:
            rank.send(0, 40, tag=3)
            rank.collective("barrier", 0, 0)

    traced = recording(2, program)
    kinds = [shape.kind for shape in shapes_of(traced)]
    assert kinds == [Kind.IRECV, Kind.COLLECTIVE, Kind.WAIT]
    assert values_of(traced)[0] == [1, 3, 40, 0, 0, 0, 0]
    assert shapes_of(traced)[2].places == (0,)


def test_one_call_that_waits_for_many_is_one_operation(recording):
    def program(rank):
        peer = 1 - rank.rank
        requests = [rank.ireceive(peer, 1, tag=k) for k in range(3)]
        requests += [rank.isend(peer, 1, tag=k) for k in range(3)]
        rank.wait(*requests[3:])
        rank.wait(*requests[2::-1])

    traced = recording(2, program)
    *_, sends, receives = shapes_of(traced)
    assert (sends.awaited, receives.awaited) == (Awaited.SENDS, Awaited.RECEIVES)


def test_some_of_many_are_told_by_their_places(recording):
    def program(rank):
        requests = [rank.isend(1 - rank.rank, 1) for _ in range(4)]
        rank.wait(requests[1], requests[3])
        rank.wait(requests[2], call="MPI_Wait")
        rank.wait(requests[0], call="MPI_Testany")

    waits = [shape for shape in shapes_of(recording(2, program)) if shape.kind is Kind.WAIT]
    assert [wait.awaited for wait in waits] == [Awaited.CHOSEN, Awaited.CHOSEN, Awaited.SENDS]
    assert [wait.places for wait in waits] == [(1, 3), (1,), ()]


@pytest.mark.parametrize("call", ["MPI_Waitany", "MPI_Testsome", "MPI_Test"])
def test_waits_in_any_order_are_one_wait(recording, call):
    def program(rank):
        for _ in range(3):
            requests = [rank.ireceive(1 - rank.rank, 1, tag=k) for k in range(3)]
            requests += [rank.isend(1 - rank.rank, 1, tag=k) for k in range(3)]
            # The order is accidental, and so is the number that one call completes.
            taken = requests[:3] if rank.rank else requests[2::-1]
            several = 1 + (call in {"MPI_Waitsome", "MPI_Testsome"} and rank.rank)
            for k in range(0, 3, several):
                rank.wait(*taken[k : k + several], call=call, ticks=7)
            rank.wait(*requests[3:])

    found = recording(2, program)
    assert [shape.awaited for shape in shapes_of(found) if shape.call == call] == (
        [Awaited.RECEIVES] * 3
    )
    assert specify(found).lines == 9
    [first, second] = found.ranks
    assert (first.shapes == second.shapes).all()
    # The time in the calls is the sum of theirs.
    number = next(k for k, shape in enumerate(found.shapes) if shape.call == call)
    assert first.calling[first.shapes == number].min() >= 3 * 7e-9


def test_a_wait_for_nothing_is_for_what_the_others_there_are_for(recording):
    def program(rank):
        for step in range(4):
            rank.wait(*([rank.isend(1 - rank.rank, 1)] if step % 2 else []))

    traced = recording(2, program)
    waits = {shape for shape in shapes_of(traced) if shape.kind is Kind.WAIT}
    assert [wait.awaited for wait in waits] == [Awaited.SENDS]


def test_a_send_that_nobody_waits_for_is_marked(recording):
    def program(rank):
        rank.isend(1 - rank.rank, 1)
        rank.wait(rank.isend(1 - rank.rank, 1))

    first, second, wait = shapes_of(recording(2, program))
    assert (first.is_awaited, second.is_awaited) == (False, True)
    assert wait.awaited is Awaited.SENDS


def test_a_request_that_is_used_again_ends_what_it_was(tmp_path):
    events = [
        ("mpi_irecv_request", 2, 5), ("mpi_irecv_request", 3, 5),
        ("mpi_irecv", 4, 1, Comm("WORLD"), 9, 8, 5),
        ("mpi_isend", 5, 1, Comm("WORLD"), 9, 8, 6), ("mpi_isend", 6, 1, Comm("WORLD"), 9, 4, 6),
        ("mpi_isend_complete", 7, 6),
    ]  # fmt: skip
    found = recorded(write_trace(tmp_path / "trace", Trace([[Thread(events)], [Thread([])]])))
    kinds = [(shape.kind, shape.is_awaited) for shape in shapes_of(found)]
    assert kinds == [
        (Kind.IRECV, True), (Kind.WAIT, True), (Kind.ISEND, False), (Kind.ISEND, True),
        (Kind.WAIT, True),
    ]  # fmt: skip
    assert found.left_out == {"receives that were posted and never completed": 1}


def test_sends_say_how_they_send(recording):
    def program(rank):
        for call in ("MPI_Send", "MPI_Ssend", "MPI_Bsend", "MPI_Rsend"):
            rank.send(1 - rank.rank, 1, call=call)
        rank.exchange(1 - rank.rank, 1 - rank.rank, 1)

    names = [shape.name for shape in shapes_of(recording(2, program))]
    assert names[:4] == [Mode.STANDARD, Mode.SYNCHRONOUS, Mode.BUFFERED, Mode.STANDARD]
    assert names[4:] == [Half.BOTH]


def test_a_call_that_sends_and_receives_is_one_operation(recording):
    def program(rank):
        rank.exchange(1 - rank.rank, 1 - rank.rank, 12, tag=3)
        half = ("mpi_send", 1, WORLD, 4, 5) if rank.rank == 0 else ("mpi_recv", 0, WORLD, 4, 5)
        rank.call("MPI_Sendrecv", half)

    found = recording(2, program)
    assert [(x.kind, x.name, x.call) for x in shapes_of(found)] == [
        (Kind.EXCHANGE, Half.BOTH, "MPI_Sendrecv"),
        (Kind.EXCHANGE, Half.SEND, "MPI_Sendrecv"),
    ]
    assert values_of(found) == [[1, 3, 12, 12, 0, 1, 3], [1, 4, 5, 0, 0, 0, 0]]
    assert values_of(found, 1)[1] == [0, 0, 0, 5, 0, 0, 4]


def test_parts_of_one_split_are_one_communicator(recording):
    named = {"a": [0, 2], "b": [1, 3], "c": [0, 1], "d": [3, 2], "own": None}

    def program(rank):
        for names in ("ab", "cd"):
            name = next(x for x in names if rank.rank in named[x])
            rank.collective("barrier", 0, 0, comm=Comm(name))
        rank.collective("barrier", 0, 0, comm=Comm("own"))

    groups = [one.groups for one in recording(4, program, named).communicators]
    assert groups == [((0, 2), (1, 3)), ((0, 1), (3, 2)), ((0,), (1,), (2,), (3,))]


def test_init_and_finalize_are_no_operations(recording):
    def program(rank):
        rank.handle("MPI_Init")
        rank.handle("MPI_Comm_dup")
        rank.handle("MPI_Finalize", 18)

    assert [shape.name for shape in shapes_of(recording(2, program))] == ["MPI_Comm_dup"]


def test_what_cannot_be_told_is_counted(recording):
    def program(rank):
        rank.call("MPI_Put")
        rank.call("MPI_Win_fence")
        rank.call("MPI_File_write_all")
        rank.call("MPI_Neighbor_alltoall")
        rank.call("MPI_Ialltoall")
        rank.ireceive(0, 1)
        request = rank.ireceive(0, 1)
        rank.call("MPI_Cancel", ("mpi_request_cancelled", request[-1]))

    traced = recording(2, program)
    assert traced.left_out == {
        "one-sided calls": 4,
        "calls of file I/O": 2,
        "neighbourhood collectives": 2,
        "non-blocking collectives that were not recorded": 2,
        "operations that were cancelled": 2,
        "receives that were posted and never completed": 2,
    }
    assert not any(len(one.shapes) for one in traced.ranks)


def test_threads_beside_the_first_are_counted(tmp_path):
    sent = [("enter", 1, "main"), ("mpi_send", 2, 0, Comm("WORLD"), 0, 8), ("leave", 3, "main")]
    trace = Trace([[Thread(sent), Thread(sent)], [Thread(sent)]])
    traced = recorded(write_trace(tmp_path / "trace", trace))
    assert traced.left_out == {"operations of further threads": 1}
    assert [len(one.shapes) for one in traced.ranks] == [1, 1]


def test_messages_on_unknown_communicators_are_counted(tmp_path):
    events = [("mpi_send", 2, 7, Comm("WORLD"), 0, 8), ("mpi_recv", 3, 0, Comm("WORLD"), 0, 8)]
    traced = recorded(write_trace(tmp_path / "trace", Trace([[Thread(events)], [Thread([])]])))
    assert list(traced.left_out.values()) == [1]
    assert values_of(traced) == [[0, 0, 8, 0, 0, 0, 0]]


def test_what_calls_itself_is_named_once(recording):
    def program(rank):
        with rank.region("f"), rank.region("f"), rank.region("g"):
            rank.collective("barrier", 0, 0)

    (shape,) = recording(2, program).shapes
    assert shape.site[-3:] == ("main", "f", "g")


def test_both_ways_of_reading_a_trace_record_the_same(all_kinds):
    slow = record(HighLevelArchive(all_kinds), lambda _done, _total: None)
    fast = recorded(all_kinds)
    assert slow.shapes == fast.shapes
    assert [sorted(one.groups) for one in slow.communicators] == [
        sorted(one.groups) for one in fast.communicators
    ]
    for one, other in zip(slow.ranks, fast.ranks, strict=True):
        np.testing.assert_array_equal(one.shapes, other.shapes)
        np.testing.assert_array_equal(one.values, other.values)
