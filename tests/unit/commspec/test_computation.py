"""Computation: seconds between calls of a trace, histograms of lines, seconds of each round."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cells import cells
from communication import WORLD, recorded, traced
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.computation import Histogram, find, permuted
from cpmodel_commspec.recording.recorder import record
from cpmodel_commspec.recording.timing import CLOCK
from cpmodel_commspec.simulation.wildcards import resolved
from cpmodel_commspec.specification import Step, walk
from cpmodel_otf2.reader import opened
from trace_writer import Thread, Trace, write_trace

TICK = 1e-9


def times(tmp_path, ranks, program):
    return recorded(traced(tmp_path / "trace", ranks, program))


def test_time_between_calls_is_computation(tmp_path):
    def program(rank):
        rank.compute(100)
        rank.collective("barrier", 0, 0)
        rank.compute(1000 * (1 + rank.rank))
        rank.collective("barrier", 0, 0)
        rank.compute(7)

    found = times(tmp_path, 2, program)
    for rank, one in enumerate(found.ranks):
        # Each event is one tick after the one before, and a call has two events in it.
        assert one.computing == pytest.approx([102 * TICK, (1001 + 1000 * rank) * TICK])
        assert one.calling == pytest.approx([3 * TICK, 3 * TICK])
        assert one.last == pytest.approx(9 * TICK)
        assert one.seconds == pytest.approx(one.computing.sum() + one.calling.sum() + one.last)
    assert found.seconds == found.ranks[1].seconds


def test_calls_of_no_operation_are_no_computation(tmp_path):
    def program(rank):
        with rank.region("MPI_Comm_rank"):
            rank.compute(500)
        rank.compute(20)
        rank.call("MPI_Win_fence")
        with rank.region("callback"):
            rank.compute(3)
        rank.collective("barrier", 0, 0)

    one = times(tmp_path, 1, program).ranks[0]
    # What is between the calls counts: 6 events outside of them, 20 and 3 ticks.
    assert one.computing == pytest.approx([29 * TICK])
    assert one.seconds > 500 * TICK


def test_functions_that_mpi_calls_are_no_computation(tmp_path):
    def program(rank):
        with rank.region("MPI_Allreduce"), rank.region("operator"):
            rank.compute(900)
            with rank.region("MPI_Type_size"):
                rank.compute(40)
        rank.collective("barrier", 0, 0)

    one = times(tmp_path, 1, program).ranks[0]
    assert one.computing.sum() < 10 * TICK


def test_time_counts_from_the_end_of_init_to_the_begin_of_finalize(tmp_path):
    def program(rank):
        rank.compute(10_000)
        with rank.region("MPI_Init"):
            rank.compute(20_000)
        rank.compute(30)
        rank.collective("barrier", 0, 0)
        rank.compute(40)
        with rank.region("MPI_Finalize"):
            rank.compute(50_000)
        rank.compute(60_000)

    one = times(tmp_path, 1, program).ranks[0]
    assert one.computing == pytest.approx([31 * TICK])
    assert one.last == pytest.approx(41 * TICK)
    assert one.seconds == pytest.approx((31 + 41 + 3) * TICK)


def test_computation_before_what_is_left_out_belongs_to_what_follows(tmp_path):
    def program(rank):
        rank.compute(100)
        rank.ireceive(0, 8)
        rank.compute(200)
        rank.collective("barrier", 0, 0)

    one = times(tmp_path, 1, program).ranks[0]
    assert len(one.shapes) == 1
    assert one.computing == pytest.approx([303 * TICK])


def test_a_call_of_many_operations_takes_its_time_once(tmp_path):
    def program(rank):
        send = ("mpi_isend", 0, WORLD, 1, 8)
        rank.call("MPI_Startall", (*send, 1), (*send, 2), (*send, 3))
        rank.compute(5)

    one = times(tmp_path, 1, program).ranks[0]
    assert one.calling.tolist() == pytest.approx([4 * TICK, 0, 0])
    assert one.computing[1:].tolist() == [0, 0]


def test_times_do_not_depend_on_batches(tmp_path, monkeypatch):
    def program(rank):
        with rank.region("MPI_Init"):
            rank.compute(3)
        for k in range(30):
            rank.compute(7 * k)
            with rank.region("work"):
                rank.compute(k)
            rank.collective("barrier", 0, 0)
            rank.wait(rank.isend(rank.rank, 8), rank.ireceive(rank.rank, 8))
        with rank.region("MPI_Finalize"):
            rank.compute(9)

    path = traced(tmp_path / "trace", 2, program)
    whole = recorded(path)
    for events in (1, 2, 3, 7, 50):
        monkeypatch.setattr("cpmodel_otf2.archive.BATCH_EVENTS", events)
        parts = recorded(path)
        for one, other in zip(whole.ranks, parts.ranks, strict=True):
            np.testing.assert_array_equal(one.computing, other.computing)
            np.testing.assert_array_equal(one.calling, other.calling)
            assert (one.last, one.seconds) == (other.last, other.seconds)


def test_time_without_measurement_is_no_computation(tmp_path):
    events = [
        ("enter", 10, "main"), ("enter", 20, "MPI_Barrier"),
        ("mpi_collective_begin", 21), ("mpi_collective_end", 22, 0, WORLD, 2**32 - 1, 0, 0),
        ("leave", 30, "MPI_Barrier"), ("measurement_on_off", 40, "OFF"),
        ("measurement_on_off", 940, "ON"), ("buffer_flush", 950, 1950),
        ("enter", 2000, "MPI_Barrier"), ("mpi_collective_begin", 2001),
        ("mpi_collective_end", 2002, 0, WORLD, 2**32 - 1, 0, 0),
        ("leave", 2010, "MPI_Barrier"), ("leave", 2020, "main"),
    ]  # fmt: skip
    one = recorded(write_trace(tmp_path / "trace", Trace([[Thread(events)]]))).ranks[0]
    assert one.computing == pytest.approx([10 * TICK, (10 + 10 + 50) * TICK])
    assert one.seconds == pytest.approx((10 + 10 + 70 + 10 + 10) * TICK)


def test_a_jump_of_the_clock_is_no_computation(tmp_path):
    def program(rank):
        rank.compute(100)
        rank.collective("barrier", 0, 0)
        rank.compute(2 * 366 * 86400 * 10**9)
        rank.collective("barrier", 0, 0)

    found = times(tmp_path, 1, program)
    assert found.ranks[0].computing == pytest.approx([102 * TICK, 0])
    assert found.left_out == {CLOCK: 1}


class Hostile:
    """A trace whose clock goes back within the calls, and jumps by nearly 2^64 ticks."""

    WHEN = (5, 2, 2**63 - 1, -(2**63) + 9, -1, 0, 2**62, 3, -2, 4)

    def __init__(self, source, resolution):
        self._source = source
        self.definitions = replace(source.definitions, ticks_per_second=resolution)

    def batches(self, location):
        for batch in self._source.batches(location):
            when = np.resize(np.array(self.WHEN), len(batch.calls.time))
            yield replace(batch, calls=replace(batch.calls, time=when))


@pytest.mark.parametrize("resolution", [1, 10**9, 2**63, 2**64 - 1])
def test_a_clock_that_jumps_gives_no_impossible_time(tmp_path, resolution):
    def program(rank):
        for _ in range(7):
            rank.collective("barrier", 0, 0)

    with opened(traced(tmp_path / "trace", 1, program)) as source:
        found = record(Hostile(source, resolution), lambda _done, _total: None)
    one = found.ranks[0]
    assert len(one.shapes) == 7
    for seconds in (one.computing, one.calling, np.array([one.last, one.seconds])):
        assert np.isfinite(seconds).all()
        assert (seconds >= 0).all()
        assert (seconds <= 20 * 366 * 86400).all()
    assert found.left_out[CLOCK] > 0
    told = specify(found)
    assert told.seconds == one.seconds
    assert np.isfinite(told.computing_of_rank(0)).all()


def steps(told):
    return [node for node, _ in walk(told.body) if isinstance(node, Step)]


def test_the_first_round_of_a_loop_is_apart(tmp_path):
    def program(rank):
        for _ in range(4):
            rank.compute(50_000)
            for _ in range(10):
                rank.compute(2000)
                rank.isend(rank.rank, 8)
            rank.compute(70)
            rank.collective("barrier", 0, 0)

    found = times(tmp_path, 2, program)
    told = specify(found)
    send = steps(told)[0].computing
    assert [share.seconds.count for share in send.first] == [2 * 4]
    assert [share.seconds.count for share in send.usual] == [2 * 4 * 9]
    assert send.usual[0].seconds.mean == pytest.approx(2001 * TICK)
    assert send.first[0].seconds.least >= 52_000 * TICK
    for rank, one in enumerate(found.ranks):
        assert told.computing_of_rank(rank) == pytest.approx(one.computing, rel=0.05)


@cells("ranks", [1, 2, 5])
@cells("seed", range(4))
def test_no_second_of_a_trace_is_lost(tmp_path, ranks, seed):
    def program(rank):
        random = np.random.default_rng([seed, rank.rank])
        for _ in range(3):
            for _ in range(7):
                rank.compute(int(random.exponential(10.0 ** random.integers(2, 7))))
                rank.wait(rank.isend(rank.rank, 8), rank.ireceive(rank.rank, 8))
            with rank.region("MPI_Comm_rank"):
                rank.compute(1000)
            if rank.rank % 2:
                rank.compute(int(random.exponential(1e6)))
                rank.wait(rank.isend(rank.rank, 9), rank.ireceive(rank.rank, 9))
            rank.collective("barrier", 0, 0)
        rank.compute(int(random.exponential(1e6)))

    found = times(tmp_path, ranks, program)
    told = specify(found)
    total = sum(one.computing.sum() + one.last for one in found.ranks)
    drawn = sum(told.computing_of_rank(k).sum() + told.ending_of_rank(k) for k in range(ranks))
    assert told.computing == pytest.approx(total, rel=1e-7)
    assert drawn == pytest.approx(total, rel=1e-7)
    calls = sum(one.calling.sum() for one in found.ranks)
    assert sum(step.calling for step in steps(told)) == pytest.approx(calls, rel=1e-7)


def test_ranks_of_other_computation_are_apart(tmp_path):
    def program(rank):
        for _ in range(20):
            rank.compute(1000 if rank.rank % 2 else 3000)
            rank.collective("barrier", 0, 0)

    found = times(tmp_path, 6, program)
    told = specify(found)
    shares = steps(told)[0].computing.usual
    assert [share.ranks for share in shares] == [(0, 2, 4), (1, 3, 5)]
    for rank, one in enumerate(found.ranks):
        assert told.computing_of_rank(rank).sum() == pytest.approx(one.computing.sum())


def test_noise_is_one_share_with_few_bins():
    rng = np.random.default_rng(1)
    seconds = rng.exponential(1.0, (64, 1000))
    told = find(seconds, range(64), 1000, 2, 1000.0)
    assert len(told.usual) <= 2
    assert told.numbers <= 30
    assert told.total == pytest.approx(seconds.sum())
    drawn = np.stack([told.of_rank(rank) for rank in range(64)])
    # The largest of all ranks decides how long a round takes.
    assert drawn.max(axis=0).mean() == pytest.approx(seconds.max(axis=0).mean(), rel=0.05)
    assert np.corrcoef(drawn[0], drawn[1])[0, 1] < 0.2


def test_rounds_that_are_long_on_all_ranks_stay_so():
    rng = np.random.default_rng(1)
    seconds = rng.exponential(1.0, (1, 1000)) + rng.uniform(0, 0.01, (8, 1000))
    told = find(seconds, range(8), 1000, 2, 1000.0)
    assert told.usual[0].is_common
    drawn = np.stack([told.of_rank(rank) for rank in range(8)])
    assert drawn.sum() == pytest.approx(seconds.sum())
    assert drawn.max(axis=0).mean() == pytest.approx(seconds.max(axis=0).mean(), rel=0.05)


@given(
    st.integers(1, 5), st.integers(1, 4), st.integers(1, 6),
    st.lists(st.floats(0, 1e6), min_size=1, max_size=9), st.floats(0, 1e6),
)  # fmt: skip
def test_no_second_is_lost(ranks, outer, inner, some, noticed):
    seconds = np.resize(np.array(some), (ranks, outer * inner))
    members = [3 * k for k in range(ranks)]
    told = find(seconds, members, inner, 4, noticed)
    drawn = [told.of_rank(rank) for rank in members]
    assert all(len(one) == outer * inner for one in drawn)
    assert np.sum(drawn) == pytest.approx(seconds.sum(), rel=1e-7, abs=1e-9)
    assert told.total == pytest.approx(seconds.sum(), rel=1e-7, abs=1e-9)


@given(st.integers(1, 3000), st.integers(0, 2**40))
def test_permutations_have_every_place_once(count, key):
    places = permuted(np.arange(count, dtype=np.uint64), count, key)
    assert np.array_equal(np.sort(places), np.arange(count))


def test_histograms_halve_and_join():
    told = Histogram.of(np.arange(8.0))
    assert told.counts == (4, 2, 1, 1)
    assert told.means == (1.5, 4.5, 6.0, 7.0)
    assert (told.least, told.most, told.total) == (0.0, 7.0, 28.0)
    assert Histogram.of(np.full(100, 2.5)).counts == (100,)


@pytest.mark.parametrize("name", ["ring.8", "stencil.16", "ft.8", "lu.8", "subcomm.8", "cg.8"])
def test_specifications_have_the_computation_of_their_traces(shared_data, name):
    found = resolved(recorded(shared_data / "traces" / name / "traces.otf2")).traced
    told = specify(found)
    total = sum(one.computing.sum() + one.last for one in found.ranks)
    ours = sum(told.computing_of_rank(rank).sum() + told.ending_of_rank(rank) for rank in range(
        told.processes
    ))  # fmt: skip
    assert ours == pytest.approx(total, rel=1e-6)
    assert sum(step.computing.total for step in steps(told)) + told.ending.total == pytest.approx(
        total, rel=1e-6
    )
    for rank, one in enumerate(found.ranks):
        mine = told.computing_of_rank(rank).sum() + told.ending_of_rank(rank)
        assert mine == pytest.approx(one.computing.sum() + one.last, rel=0.15)
        assert one.seconds >= one.computing.sum() + one.last + one.calling.sum() - 1e-9
