"""The steps of all stages are linear in the number of events."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from communication import recorded, traced
from cpmodel_commspec.checking import differences, volumes
from cpmodel_commspec.compression.merging import statements
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.operations import Recorded
from cpmodel_commspec.replay.loggp import replay
from cpmodel_commspec.replay.platform import PRESETS
from cpmodel_commspec.simulation.deadlocks import deadlock, mismatches
from cpmodel_commspec.simulation.wildcards import resolved


def halo(rank):
    """One round: neighbours exchange, and sum in branches of their own."""
    requests = []
    for peer in (rank.rank - 1, rank.rank + 1):
        if 0 <= peer < rank.ranks:
            requests += [rank.ireceive(peer, 64, posted="ANY"), rank.isend(peer, 64)]
    rank.wait(*requests)
    with rank.region("root" if rank.rank == 0 else "others"):
        rank.collective("allreduce", 8 * rank.ranks, 8 * rank.ranks)


def longer(found, times):
    """Return a run of so many times the rounds."""
    ranks = []
    for one in found.ranks:
        values = np.tile(one.values, (times, 1))
        seconds = [np.tile(column, times) for column in (one.computing, one.calling)]
        # Rounds differ, so that all histograms have many bins.
        seconds[0] *= np.random.default_rng(1).exponential(size=len(values))
        ranks.append(Recorded(np.tile(one.shapes, times), values, *seconds))
    return replace(found, ranks=tuple(ranks))


def whole(found):
    statements(found)
    again = resolved(found).traced
    told = specify(again)
    assert list(differences(told, again)) == []
    assert list(mismatches(told)) == []
    assert deadlock(told) is None
    volumes(again.shapes, again.communicators, again.ranks)
    return told


@pytest.fixture(scope="module")
def round_(tmp_path_factory):
    return recorded(traced(tmp_path_factory.mktemp("time") / "trace", 4, halo))


def calls_of(work):
    """Return how many functions of Python and C a call of `work` calls: steps, not seconds."""
    count = 0

    def note(frame, event, argument):  # noqa: ARG001 - of a profiler
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_steps_are_linear_in_events(round_):
    def steps(times):
        found = longer(round_, times)
        return calls_of(lambda: whole(found))

    assert whole(longer(round_, 100)).lines <= 9
    assert steps(1600) <= 1.2 * 4 * steps(400)


def test_steps_of_a_replay_are_linear_in_operations(round_):
    def steps(times):
        found = longer(round_, times)
        network = PRESETS["infiniband"]
        return calls_of(lambda: replay(found.shapes, found.communicators, found.ranks, network))

    assert steps(1000) <= 1.2 * 4 * steps(250)
