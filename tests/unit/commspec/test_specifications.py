"""Specifications, unrolled and compared with a second reading of the trace."""

from __future__ import annotations

from functools import cache

import otf2
import pytest

from cells import cells
from communication import recorded, traced
from cpmodel_commspec.checking import differences
from cpmodel_commspec.collectives import NAMES, booked
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.operations import COLLECTIVES, POSTED, Awaited, Half, Kind
from cpmodel_commspec.specification import Loop, walk
from trace_writer import Thread, Trace, random_events, write_trace

TRACES = [
    "third_party/otf2/ping-pong_p2",
    "third_party/otf2/ping-pong-papi_p2",
    "third_party/otf2/stencil4d_p32",
    "scorep/traces/npb_is.trace/p4",
    "scorep/traces/npb_is.trace/p8",
    "scorep/traces/npb_is.trace/p16",
    "scorep/traces/snap.trace/p4",
    "scorep/traces/snap.trace/p9",
    "scorep/traces/snap.trace/p16",
    "scorep/traces/lulesh.trace/p8",
    "scorep/traces/lulesh.trace/p27",
]
WITH_ROOT = ("bcast", "gather", "gatherv", "reduce", "scatter", "scatterv")
SENDS = {Kind.SEND, Kind.ISEND}
MESSAGES = {
    "MpiSend": "receiver",
    "MpiIsend": "receiver",
    "MpiRecv": "sender",
    "MpiIrecv": "sender",
}


class Again:
    """The operations of one rank, read with the package `otf2`.

    Attributes
    ----------
    operations : operations without waits, as lists for the comparison
    ends : number of operations before the end of each posted operation, by its number
    """

    def __init__(self, rank, world):
        self.operations, self.ends = [], {}
        self._rank, self._world, self._open = rank, world, {}

    def add(self, event):
        kind = type(event).__name__
        if kind in MESSAGES:
            self._message(kind, event)
        elif kind == "MpiIrecvRequest":
            self._open[event.request_id] = len(self.operations)
            self.operations.append([])
        elif kind == "MpiIsendComplete":
            self.ends[self._open.pop(event.request_id)] = len(self.operations)
        elif kind == "MpiCollectiveEnd" and event.collective_op.value < len(NAMES):
            members = self._members(event.communicator)
            name = NAMES[event.collective_op.value]
            root = event.root if name in WITH_ROOT else None
            self.operations.append([name, members, root, event.size_sent, event.size_received])

    def _message(self, kind, event):
        members = self._members(event.communicator)
        peer = members[getattr(event, MESSAGES[kind])]
        told = [MESSAGES[kind], members, peer, event.msg_tag, event.msg_length]
        if kind == "MpiIrecv":
            place = self._open.pop(event.request_id)
            self.operations[place] = told
            self.ends[place] = len(self.operations)
            return
        if kind == "MpiIsend":
            self._open[event.request_id] = len(self.operations)
        self.operations.append(told)

    def _members(self, comm):
        if comm.group.group_type == otf2.GroupType.COMM_SELF:
            return (self._rank,)
        return tuple(map(self._world.index, comm.group.members))


def read_again(path):
    with otf2.reader.open(str(path)) as trace:
        world = next(
            list(group.members)
            for group in trace.definitions.groups
            if group.group_type == otf2.GroupType.COMM_LOCATIONS
            and group.paradigm == otf2.Paradigm.MPI
        )
        ranks = [Again(rank, world) for rank in range(len(world))]
        for location, event in trace.events:
            ranks[world.index(location)].add(event)
    return ranks


def unrolled(told, rank):
    """Return the same from a specification."""
    operations, ends, under_way = [], {}, []
    one = told.of_rank(rank)
    for number, values in zip(one.shapes, one.values.tolist(), strict=True):
        peer, tag, size, received, root, source, source_tag = values
        shape = told.shapes[number]
        if shape.kind is Kind.WAIT:
            for place in waited_for(shape, under_way):
                ends[place] = len(operations)
            under_way = [x for x in under_way if x[0] not in ends]
        if shape.kind in {Kind.WAIT, Kind.HANDLE}:
            continue
        if shape.kind in POSTED and shape.is_awaited:
            under_way.append((len(operations), shape.kind))
        groups = told.communicators[shape.comm].groups
        members = next(group for group in groups if rank in group)
        if shape.kind in COLLECTIVES:
            about = len(members), members.index(rank), root, size, received
            moved = booked(shape.name, shape.form, *about)
            told_root = root if "root" in shape.fields else None
            operations.append([shape.name, members, told_root, *moved])
        elif shape.kind is Kind.EXCHANGE:
            if shape.name != Half.RECEIVE:
                operations.append(["receiver", members, peer, tag, size])
            if shape.name != Half.SEND:
                operations.append(["sender", members, source, source_tag, received])
        else:
            direction = "receiver" if shape.kind in SENDS else "sender"
            operations.append([direction, members, peer, tag, size])
    return operations, ends


def waited_for(shape, under_way):
    if shape.awaited is Awaited.CHOSEN:
        return [under_way[place][0] for place in shape.places]
    kinds = {Awaited.SENDS: {Kind.ISEND}, Awaited.RECEIVES: {Kind.IRECV}}.get(shape.awaited, POSTED)
    return [number for number, kind in under_way if kind in kinds]


@cache
def specified(path):
    return specify(recorded(path))


@pytest.mark.parametrize("trace", TRACES)
def test_measured_traces_come_back_operation_by_operation(trace, shared_data):
    path = shared_data / trace / "traces.otf2"
    told = specified(path)
    for rank, again in enumerate(read_again(path)):
        operations, ends = unrolled(told, rank)
        assert operations == again.operations
        assert ends == again.ends


def test_the_program_of_all_kinds_comes_back(all_kinds):
    found = recorded(all_kinds)
    assert list(differences(specify(found), found)) == []


@cells("seed", range(8))
def test_random_traces_come_back(seed, tmp_path):
    threads = [[Thread(random_events(seed, rank, 3, 300))] for rank in range(3)]
    path = write_trace(tmp_path / "trace", Trace(threads))
    told = specify(recorded(path))
    for rank, again in enumerate(read_again(path)):
        assert unrolled(told, rank)[0] == again.operations


def test_specifications_do_not_grow_with_the_number_of_ranks(shared_data):
    def lines(name):
        return specified(shared_data / "scorep/traces" / name / "traces.otf2").lines

    assert lines("snap.trace/p16") <= 1.1 * lines("snap.trace/p4")
    assert lines("snap.trace/p16") == lines("snap.trace/p9")
    assert lines("npb_is.trace/p16") == lines("npb_is.trace/p4")


def halo(rank):
    """Neighbours on a ring of rows exchange many times."""
    right, left = (rank.rank + 1) % rank.ranks, (rank.rank - 1) % rank.ranks
    for step in range(20):
        requests = [rank.ireceive(left, 100, tag=step), rank.isend(right, 100, tag=step)]
        rank.wait(*requests)
        if step % 5 == 4:
            rank.collective("allreduce", 8 * rank.ranks, 8 * rank.ranks)


@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_a_ring_is_two_loops_for_any_number_of_ranks(ranks, recording):
    told = specify(recording(ranks, halo))
    assert told.programs == 1
    assert told.tabulated == 0
    loops = [node.count for node, _ in walk(told.body) if isinstance(node, Loop)]
    assert loops == [4, 5]
    assert told.lines == 6


def test_all_that_send_to_one_are_one_line(recording):
    def program(rank):
        if rank.rank:
            rank.send(0, 8, tag=rank.rank)
        else:
            for peer in range(1, rank.ranks):
                rank.receive(peer, 8, tag=peer)

    told = specify(recording(9, program))
    assert told.lines == 3
    assert told.tabulated == 0


def test_neighbours_that_the_first_and_last_lack_are_conditions(recording):
    def program(rank):
        for _ in range(3):
            if rank.rank:
                rank.receive(rank.rank - 1, 4)
            if rank.rank < rank.ranks - 1:
                rank.send(rank.rank + 1, 4)

    told = specify(recording(6, program))
    assert told.lines == 3
    assert {node.ranks for node, _ in walk(told.body)} == {
        tuple(range(6)), tuple(range(1, 6)), tuple(range(5))
    }  # fmt: skip


def test_long_programs_that_do_not_align_stay_as_they_are(tmp_path):
    def program(rank):
        for step in range(700):
            with rank.region(f"f{(step * step * (rank.rank + 3)) % 101}"):
                rank.collective("barrier", 0, 0)

    found = recorded(traced(tmp_path / "trace", 2, program))
    assert list(differences(specify(found), found)) == []


def test_the_same_trace_has_the_same_specification(all_kinds):
    assert specify(recorded(all_kinds)) == specify(recorded(all_kinds))


def test_other_programs_differ_where_they_do(recording, tmp_path):
    def other(rank):
        everything_else = [rank.ireceive(0, 1)] if rank.rank else []
        for _ in range(2):
            rank.collective("barrier", 0, 0)
        if everything_else:
            rank.wait(*everything_else)
        else:
            rank.send(1, 1)

    def one(rank):
        rank.collective("barrier", 0, 0)

    found = recorded(traced(tmp_path / "other", 2, other))
    told = specify(recording(2, one))
    assert list(differences(told, found)) == [
        "rank 0: 1 operations in the specification, 3 in the trace",
        "rank 1: 1 operations in the specification, 4 in the trace",
    ]
