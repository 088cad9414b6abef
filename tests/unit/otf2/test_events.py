"""The stream of events for the analysis of communication."""

from __future__ import annotations

import numpy as np
import pytest

from cells import cells
from cpmodel_otf2 import archive
from cpmodel_otf2.definitions import (
    UNDEFINED,
    UNRESOLVED,
    Communicator,
    ProcessGroup,
    Raw,
    TraceDefinitions,
    resolve,
)
from cpmodel_otf2.events import LEAVE, Message, Request, references
from cpmodel_otf2.highlevel import HighLevelArchive
from cpmodel_otf2.reader import opened
from trace_writer import Comm, Thread, Trace, one_rank, random_events, write_trace


@pytest.fixture
def exchange(tmp_path):
    """Four processes; the two odd ones have a communicator in which 3 comes first."""
    odd = Comm("odd")
    sender = [
        ("enter", 5, "MPI_Isend"),
        ("mpi_isend", 6, 1, odd, 42, 256, 9),
        ("leave", 7, "MPI_Isend"),
        ("enter", 8, "MPI_Wait"),
        ("mpi_isend_complete", 9, 9),
        ("leave", 10, "MPI_Wait"),
        ("enter", 11, "MPI_Bcast"),
        ("mpi_collective_begin", 12),
        ("mpi_collective_end", 15, 1, odd, 0, 512, 256),
        ("leave", 15, "MPI_Bcast"),
    ]
    receiver = [
        ("enter", 5, "MPI_Irecv"),
        ("mpi_irecv_request", 6, 4),
        ("leave", 7, "MPI_Irecv"),
        ("enter", 8, "MPI_Wait"),
        ("mpi_irecv", 9, 0, odd, 42, 256, 4),
        ("leave", 10, "MPI_Wait"),
        ("enter", 20, "MPI_Send"),
        ("mpi_send", 21, 0, Comm("alone"), 1, 8),
        ("leave", 22, "MPI_Send"),
    ]
    idle = [("enter", 1, "main"), ("leave", 2, "main")]
    threads = [[Thread(events)] for events in (idle, receiver, idle, sender)]
    named = {"odd": [3, 1], "alone": None}
    return write_trace(tmp_path / "trace", Trace(threads, communicators=named))


def stream(path, rank):
    with opened(path) as source:
        (batch,) = source.batches(source.definitions.locations[rank])
        return source.definitions, batch


def test_partners_are_told_by_their_rank_in_the_world(exchange):
    _, sent = stream(exchange, 3)
    _, received = stream(exchange, 1)
    assert sent.messages.peer.tolist() == [1]
    assert received.messages.peer.tolist() == [3, 1]
    assert sent.collectives.root.tolist() == [3]


def test_messages_know_the_calls_before_them_and_their_place_in_the_trace(exchange):
    definitions, batch = stream(exchange, 1)
    messages = batch.messages
    assert messages.kind.tolist() == [Message.IRECV, Message.SEND]
    assert messages.at.tolist() == [3, 5]
    assert messages.time.tolist() == [9, 21]
    assert messages.tag.tolist() == [42, 1]
    assert messages.bytes.tolist() == [256, 8]
    assert messages.request.tolist() == [4, 0]
    assert messages.position.tolist() == sorted(messages.position.tolist())
    called = references(batch.calls.code)[messages.at - 1]
    assert [definitions.regions[k].name for k in called.tolist()] == ["MPI_Wait", "MPI_Send"]
    assert (batch.calls.code >= LEAVE).tolist() == [False, True] * 3


def test_requests_and_collectives_are_columns(exchange):
    _, batch = stream(exchange, 3)
    assert batch.requests.kind.tolist() == [Request.ISEND_COMPLETE]
    assert batch.requests.request.tolist() == [9]
    collectives = batch.collectives
    assert (collectives.begin.tolist(), collectives.time.tolist()) == ([12], [15])
    assert (collectives.sent.tolist(), collectives.received.tolist()) == ([512], [256])
    assert collectives.operation.tolist() == [1]


def test_batches_follow_each_other_without_a_gap(tmp_path, monkeypatch):
    events = random_events(seed=3)
    anchor = write_trace(tmp_path / "trace", Trace([[Thread(events)]]))
    _, whole = stream(anchor, 0)
    monkeypatch.setattr(archive, "BATCH_EVENTS", 7)
    with opened(anchor) as source:
        batches = list(source.batches(source.definitions.locations[0]))
    assert len(batches) > len(events) // 7 - 1
    for column in ("time", "code"):
        parts = [getattr(batch.calls, column) for batch in batches]
        np.testing.assert_array_equal(np.concatenate(parts), getattr(whole.calls, column))
    positions = np.concatenate([batch.messages.position for batch in batches])
    np.testing.assert_array_equal(positions, whole.messages.position)


def test_both_ways_of_reading_give_one_stream(exchange):
    slow = HighLevelArchive(exchange)
    with opened(exchange) as fast:
        for location, other in zip(
            fast.definitions.locations, slow.definitions.locations, strict=True
        ):
            assert location == other
            (ours,), (theirs,) = fast.batches(location), slow.batches(other)
            for name in ("calls", "messages", "collectives", "requests"):
                one, two = getattr(ours, name), getattr(theirs, name)
                for column in one.__slots__:
                    np.testing.assert_array_equal(getattr(one, column), getattr(two, column))


@cells(
    ("posted", "is_any"), [("ANY", 1), ("MPI_ANY_SOURCE", 1), ("3", 0), (-1, 1), (3, 0), (None, 0)]
)
def test_receives_from_any_source_are_told_by_an_attribute(tmp_path, posted, is_any):
    about = () if posted is None else ({"posted_source": posted, "other": "ANY"},)
    events = [
        ("mpi_recv", 1, 0, Comm("WORLD"), 0, 8, *about),
        ("mpi_irecv_request", 2, 1, *about),
        ("mpi_recv", 3, 0, Comm("WORLD"), 0, 8, {"other": "ANY"}),
    ]
    path = write_trace(tmp_path / "trace", one_rank(*events))
    slow = HighLevelArchive(path)
    with opened(path) as fast:
        for source in (fast, slow):
            [batch] = source.batches(source.definitions.locations[0])
            assert batch.messages.any_source.tolist() == [is_any, 0]
            assert batch.requests.any_source.tolist() == [is_any]


def test_cartesian_topologies_are_sizes_and_periods(tmp_path):
    trace = Trace([[Thread([])] for _ in range(6)], grids=[[(2, False), (3, True)], [(6, True)]])
    path = write_trace(tmp_path / "trace", trace)
    with opened(path) as fast:
        for source in (fast, HighLevelArchive(path)):
            assert source.definitions.grids == ((2, -3), (-6,))
            assert source.definitions.grid_within(6) == (2, -3)
            assert source.definitions.grid_within(4) == (4,)


def test_between_two_groups_partners_are_those_of_the_other_one():
    definitions = TraceDefinitions(
        1, {}, (), {}, {}, {},
        {
            0: ProcessGroup(4, 4, (10, 11, 12)),
            1: ProcessGroup(5, 4, (0,)),
            2: ProcessGroup(5, 4, (1, 2)),
        },
        {7: Communicator("", 1, 2)},
        {},
    )  # fmt: skip
    assert definitions.world_ranks(7, 10).tolist() == [1, 2]
    assert definitions.world_ranks(7, 12).tolist() == [0]
    assert definitions.world_ranks(99, 10).tolist() == []


def test_members_that_the_world_does_not_have_are_unresolved():
    definitions = TraceDefinitions(
        1, {}, (), {}, {}, {},
        {0: ProcessGroup(4, 4, (10,)), 1: ProcessGroup(5, 4, (0, 5, UNDEFINED))},
        {7: Communicator("", 1)},
        {},
    )  # fmt: skip
    assert definitions.world_ranks(7, 10).tolist() == [0, UNRESOLVED, UNRESOLVED]


@pytest.mark.parametrize("raw", [Raw(), Raw(clock=(10, 0, 0)), Raw(clock=(0, 0, 0))])
def test_definitions_without_a_clock_or_locations_are_none(raw):
    with pytest.raises(ValueError, match="defined"):
        resolve(raw)
