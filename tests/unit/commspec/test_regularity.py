"""Statements that do not repeat."""

from __future__ import annotations

import random

import pytest

from callpath_modeler.errors import DataError
from communication import exchange, recorded
from cpmodel_commspec.compression.merging import irregular_text
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.simulation.wildcards import resolved


def master(rounds):
    """Return a program: workers get work in an accidental order."""

    def program(rank):
        order = random.Random(5)
        peers = [peer for peer in range(1, rank.ranks) for _ in range(rounds)]
        order.shuffle(peers)
        for peer in peers if rank.rank == 0 else [0] * rounds:
            with rank.region("farm"):
                if rank.rank:
                    rank.send(0, 64)
                rank.receive(peer, 64 if rank.rank == 0 else 512)
                if rank.rank == 0:
                    rank.send(peer, 512)

    return program


def test_masters_are_irregular(recording):
    told = specify(recording(5, master(60)))
    calls = {(one.call, one.ranks) for one in told.irregular}
    assert calls == {("MPI_Recv", (0,)), ("MPI_Send", (0,))}
    assert f"{told.irregular[0].lines} lines for main/farm/MPI_" in irregular_text(told.irregular)


def test_loops_are_regular(recording):
    assert specify(recording(6, exchange)).irregular == ()


def test_many_partners_are_regular(recording):
    def program(rank):
        for _ in range(3):
            for peer in (3, 1, 7, 2, 9, 4, 8, 5, 6, 10, 19, 11, 13, 12, 18, 14, 17, 16, 15):
                rank.send(peer, 8) if rank.rank == 0 else None
                rank.receive(0, 8) if rank.rank == peer else None

    assert specify(recording(20, program)).irregular == ()


def test_more_lines_than_allowed_are_refused(recording):
    found = recording(5, master(60))
    lines = specify(found).lines
    assert specify(found, lines).lines == lines
    with pytest.raises(DataError, match=f"{lines} lines, more than {lines - 1}") as raised:
        specify(found, lines - 1)
    assert f"--max-lines {lines}" in raised.value.hint
    assert "farm" in str(raised.value)


def test_the_example_of_a_master_is_regular(shared_data):
    told = specify(resolved(recorded(shared_data / "traces/master.32/traces.otf2")).traced)
    assert (told.irregular, told.lines) == ((), 7)


@pytest.mark.parametrize("trace", ["lulesh.trace/p27", "snap.trace/p16", "npb_is.trace/p16"])
def test_measured_traces_are_regular(trace, shared_data):
    assert specify(recorded(shared_data / "scorep/traces" / trace / "traces.otf2")).irregular == ()
