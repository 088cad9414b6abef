"""Schedules in GOAL and time-independent traces: the messages are those of the trace."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter

import pytest

import goal_schedules
from callpath_modeler.errors import DataError
from communication import HALVES, Rank, everything, exchange, recorded, traced
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.generators.goal import Goal
from cpmodel_commspec.generators.interface import Options
from cpmodel_commspec.generators.time_independent import TimeIndependent
from cpmodel_commspec.operations import Kind
from cpmodel_commspec.simulation.wildcards import resolved
from trace_writer import Comm

TRACES = [
    "fig4.3", "lu.8.run2",
    *[f"{name}.{p}" for name in ("ring", "stencil", "ft", "cg", "lu", "subcomm", "master")
      for p in (4, 8, 16)],
]  # fmt: skip


def sent_in(found):
    """Return how many messages of each sender, receiver and size a trace has."""
    counts = Counter()
    for rank, one in enumerate(found.ranks):
        for number, values in zip(one.shapes.tolist(), one.values.tolist(), strict=True):
            for end in found.shapes[number].ends:
                if end.is_sent:
                    peer, _, size = (values[column] for column in end.columns)
                    counts[rank, peer, max(size, 1)] += 1
    return counts


def largest_tag(found):
    return max(
        (
            int(one.values[one.shapes == number, end.columns[1]].max(initial=0))
            for number, shape in enumerate(found.shapes)
            for end in shape.ends
            for one in found.ranks
        ),
        default=0,
    )


def check_goal(found):
    """Compare a schedule with the trace, and return the operations of each rank."""
    told = specify(found)
    ranks = goal_schedules.read(Goal().write(told, Options()))
    sizes = goal_schedules.messages(ranks)
    goal_schedules.run(ranks)
    ours = Counter()
    for (sender, receiver, tag), each in sizes.items():
        for size in each:
            ours[sender, receiver, size] += tag <= largest_tag(found)
    if len({shape.comm for shape in found.shapes if shape.ends}) == 1:
        assert +ours == sent_in(found)
    for rank, operations in enumerate(ranks):
        seconds = told.computing_of_rank(rank).sum() + told.ending_of_rank(rank)
        computed = sum(one.size for one in operations.values() if one.verb == "calc")
        assert computed == pytest.approx(seconds * 1e9, abs=len(operations))
    return ranks


@pytest.mark.parametrize("trace", TRACES)
def test_schedules_of_measured_traces_have_their_messages(trace, shared_data):
    check_goal(resolved(recorded(shared_data / "traces" / trace / "traces.otf2")).traced)


@pytest.mark.parametrize("ranks", [1, 2, 5, 6, 9])
def test_schedules_of_the_example_have_its_messages(recording, ranks):
    check_goal(recording(ranks, exchange))


def test_a_schedule_of_all_kinds_can_be_read(all_kinds):
    told = specify(recorded(all_kinds))
    text = Goal().write(told, Options())
    ranks = goal_schedules.read(text)
    goal_schedules.messages(ranks)
    for name in ("allreduce", "alltoallv", "bcast", "MPI_Comm_dup", "scan"):
        assert f"// {name} is messages by the algorithm " in text


def test_an_operation_waits_for_those_before_it_but_not_for_started_ones(recording):
    def program(rank: Rank) -> None:
        if rank.rank == 0:
            rank.wait(rank.isend(1, 10, tag=1), rank.isend(1, 20, tag=2))
            rank.send(1, 30, tag=3)
        else:
            for k in (1, 2, 3):
                rank.receive(0, 10 * k, tag=k)

    sending, receiving = check_goal(recording(2, program))
    first, second, third = (label for label, one in sending.items() if one.verb == "send")
    assert first not in behind(sending, second)
    assert {first, second} <= behind(sending, third)
    first, second, third = (label for label, one in receiving.items() if one.verb == "recv")
    assert first in behind(receiving, second)
    assert second in behind(receiving, third)


def behind(operations, label):
    """Return the labels that an operation requires, at any distance."""
    found, more = set(), [label]
    while more:
        new = set(operations[more.pop()].after) - found
        found |= new
        more += new
    return found


def test_messages_of_different_communicators_have_different_tags(tmp_path):
    def program(rank: Rank) -> None:
        first, second = ("one", "two") if rank.rank else ("two", "one")
        for comm in (first, second):
            peer, size = 1 - rank.rank, 8 if comm == "one" else 16
            if rank.rank:
                rank.wait(rank.ireceive(peer, size, comm=Comm(comm)))
            else:
                rank.isend(peer, size, comm=Comm(comm))

    found = recorded(traced(tmp_path / "t", 2, program, {"one": [0, 1], "two": [0, 1]}))
    ranks = goal_schedules.read(Goal().write(specify(found), Options()))
    assert sorted(goal_schedules.messages(ranks).values()) == [[8], [16]]


PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-31" speed="1Gf" bw="1GBps" lat="1us"
           loopback_bw="10GBps" loopback_lat="0.1us"/>
</platform>
"""


def replay(told, folder):
    """Replay traces with SimGrid, and return the simulated seconds."""
    if shutil.which("smpirun") is None:
        pytest.skip("needs smpirun, such as that of libsimgrid-dev")
    for name, text in TimeIndependent().write(told, Options()).items():
        (folder / name).write_text(text)
    (folder / "platform.xml").write_text(PLATFORM)
    (folder / "hosts").write_text("".join(f"n{k}\n" for k in range(32)))
    done = subprocess.run(
        [shutil.which("smpirun"), "-np", str(told.processes), "-platform", "platform.xml",
         "-hostfile", "hosts", "-replay", "index"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "TMPDIR": "/tmp"},  # noqa: S108
        timeout=120,
    )  # fmt: skip
    words = done.stdout + done.stderr
    assert done.returncode == 0, words
    assert "WARN" not in words, words
    assert "Simulation time " in words, words
    return float(words.split("Simulation time ")[1].split()[0])


@pytest.mark.parametrize(
    "trace", ["ring.4", "ring.16", "stencil.8", "ft.8", "cg.8", "lu.8", "subcomm.8", "fig4.3"]
)
def test_simgrid_replays_measured_traces(trace, shared_data, tmp_path):
    told = specify(resolved(recorded(shared_data / "traces" / trace / "traces.otf2")).traced)
    computed = max(
        told.computing_of_rank(rank).sum() + told.ending_of_rank(rank)
        for rank in range(told.processes)
    )
    assert replay(told, tmp_path) >= computed * 0.999


@pytest.mark.parametrize("ranks", [1, 2, 6])
def test_simgrid_replays_the_example(recording, tmp_path, ranks):
    replay(specify(recording(ranks, exchange)), tmp_path)


def test_simgrid_replays_requests_that_only_their_order_tells_apart(recording, tmp_path):
    def program(rank: Rank) -> None:
        peer = rank.rank ^ 1
        for _ in range(3):
            many = [rank.ireceive(peer, 100_000) for _ in range(4)]
            many += [rank.isend(peer, 100_000) for _ in range(4)]
            rank.isend(peer, 100_000)
            for one in reversed(many):
                rank.wait(one, call="MPI_Wait")
            rank.receive(peer, 100_000)

    told = specify(recording(2, program))
    files = TimeIndependent().write(told, Options())
    for name in ("rank-0.txt", "rank-1.txt"):
        lines = [line for line in files[name].splitlines() if "wait" in line]
        assert len(lines) == 27
    under_way = Counter()
    for line in files["rank-0.txt"].splitlines():
        words = line.split()
        if words[1:2] in (["isend"], ["irecv"]):
            under_way[words[1], words[2], words[3]] += 1
            assert under_way[words[1], words[2], words[3]] == 1
        elif words[1:2] == ["wait"]:
            verb, peer = ("isend", words[3]) if words[2] == "0" else ("irecv", words[2])
            under_way[verb, peer, words[4]] -= 1
    assert not +under_way
    replay(told, tmp_path)


def test_simgrid_replays_all_collectives(tmp_path, recording):
    def program(rank: Rank) -> None:
        n, me = rank.ranks, rank.rank
        rank.handle("MPI_Comm_dup")
        rank.send(me, 0)
        rank.receive(me, 0)
        rank.exchange((me + 1) % n, (me - 1) % n, 0)
        rank.collective("barrier", 0, 0)
        rank.collective("bcast", n * 32 * (me == 1), 32, root=1)
        rank.collective("gather", 16, n * 16 * (me == 1), root=1)
        rank.collective("scatter", n * 24 * (me == 2), 24, root=2)
        rank.collective("reduce", 8, n * 8 * (me == 0), root=0)
        for name in ("allgather", "alltoall", "allreduce", "reduce_scatter_block"):
            rank.collective(name, n * 20, n * 20)
        rank.collective("scan", (n - me) * 12, (me + 1) * 12)
        rank.collective("alltoallv", 1000 + 8 * me, (1000, 1016, 1008, 1024)[me])

    told = specify(recording(4, program))
    words = TimeIndependent().write(told, Options())["rank-2.txt"]
    assert "# alltoallv is messages by the algorithm pairwise." in words
    assert "\n2 bcast 32 1\n" in words
    replay(told, tmp_path)


def test_non_blocking_collectives_have_no_time_independent_traces(recording):
    def program(rank: Rank) -> None:
        rank.wait(rank.icollective("barrier", 0, 0))

    found = recording(2, program)
    assert found.shapes[0].kind is Kind.ICOLLECTIVE
    with pytest.raises(DataError, match="no non-blocking barrier"):
        TimeIndependent().write(specify(found), Options())


def test_collectives_without_messages_are_refused(tmp_path):
    def program(rank: Rank) -> None:
        rank.collective("scan", 17 + rank.rank, 23)

    found = recorded(traced(tmp_path / "t", 3, program))
    with pytest.raises(DataError, match="no messages stand for scan in main"):
        Goal().write(specify(found), Options())


def test_all_kinds_are_replayed_or_refused(tmp_path):
    path = traced(tmp_path / "t", 4, everything, HALVES)
    with pytest.raises(DataError, match="no non-blocking"):
        TimeIndependent().write(specify(recorded(path)), Options())
