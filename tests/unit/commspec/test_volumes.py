"""Calls and bytes of every MPI function, counted a second time event by event."""

from __future__ import annotations

from collections import defaultdict

import otf2
import pytest

from communication import recorded
from cpmodel_commspec.checking import Volume, unequal, volumes
from cpmodel_commspec.compression.specify import specify

SENT = {"MpiSend", "MpiIsend"}
RECEIVED = {"MpiRecv", "MpiIrecv"}


def counted(path):
    """Return calls and bytes by function; receives that are posted belong to MPI_Irecv."""
    found = defaultdict(Volume)
    with otf2.reader.open(str(path)) as trace:
        stacks = defaultdict(list)
        for location, event in trace.events:
            kind, stack = type(event).__name__, stacks[location]
            if kind == "Enter":
                stack.append(event.region.name)
            elif kind == "Leave":
                stack.pop()
            elif kind in SENT | RECEIVED:
                name = "MPI_Irecv" if kind == "MpiIrecv" else stack[-1]
                found[name].sent += event.msg_length * (kind in SENT)
                found[name].received += event.msg_length * (kind in RECEIVED)
                found[name].calls += 1
            elif kind == "MpiCollectiveEnd" and event.collective_op.value < 17:
                found[stack[-1]].sent += event.size_sent
                found[stack[-1]].received += event.size_received
                found[stack[-1]].calls += 1
    return found


@pytest.mark.parametrize(
    "trace", ["traces/cg.8", "traces/stencil.8", "traces/ft.8", "scorep/traces/npb_is.trace/p8"]
)
def test_volumes_are_those_of_the_events(trace, shared_data):
    path = shared_data / trace / "traces.otf2"
    found = recorded(path)
    told = volumes(found.shapes, found.communicators, found.ranks)
    expected = counted(path)
    assert {name: told[name] for name in expected} == expected
    assert {name for name in told if name not in expected} <= {"MPI_Wait", "MPI_Waitall"}


def test_an_exchange_is_one_call(recording):
    found = recording(2, lambda rank: rank.exchange(1 - rank.rank, 1 - rank.rank, 12))
    told = volumes(found.shapes, found.communicators, found.ranks)
    assert told == {"MPI_Sendrecv": Volume(2, 24, 24)}


def test_specifications_have_the_volumes_of_their_trace(all_kinds):
    found = recorded(all_kinds)
    told = specify(found)
    ranks = [told.of_rank(rank) for rank in range(told.processes)]
    ours = volumes(told.shapes, told.communicators, ranks)
    theirs = volumes(found.shapes, found.communicators, found.ranks)
    assert list(unequal(ours, theirs)) == []
    theirs["MPI_Send"].received += 1
    assert len(list(unequal(ours, theirs))) == 1
