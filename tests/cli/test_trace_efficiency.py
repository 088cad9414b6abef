"""`cpmodel trace efficiency`: serialisation and transfer of traces with known factors."""

from __future__ import annotations

import csv
import io

import pytest

from communication import WORLD, traced

STEP = 1_000_000
"""Ticks of computation, against which single ticks do not count."""


def relay(transfer):
    """Return a program in which two ranks compute one after the other; messages take `transfer`."""

    def program(rank):
        sends = ("mpi_send", 1 - rank.rank, WORLD, 0, 8)
        takes = ("mpi_recv", 1 - rank.rank, WORLD, 0, 8)
        if rank.rank == 0:
            rank.compute(STEP)
            rank.call("MPI_Send", sends)
            rank.call("MPI_Recv", takes, ticks=STEP + 2 * transfer)
        else:
            rank.call("MPI_Recv", takes, ticks=STEP + transfer)
            rank.compute(STEP)
            rank.call("MPI_Send", sends)

    return program


def side_by_side(transfer):
    """Return a program whose ranks compute together, and then exchange in `transfer`."""

    def program(rank):
        rank.compute(STEP * (1 + rank.rank))
        end = ("mpi_collective_end", 8, WORLD, 2**32 - 1, 8, 8)
        ticks = transfer + STEP * (rank.ranks - 1 - rank.rank)
        rank.call("MPI_Allreduce", ("mpi_collective_begin",), end, ticks=ticks)

    return program


def factors(run, *traces):
    told = run("trace", "efficiency", *traces, "-f", "csv")
    assert told.status == 0, told.err
    rows = list(csv.DictReader(io.StringIO(told.out)))
    return [{key.partition("[")[0]: value for key, value in row.items()} for row in rows]


@pytest.mark.parametrize("transfer", [0, STEP // 2])
def test_ranks_that_take_turns_are_serialised(run, tmp_path, transfer):
    (row,) = factors(run, traced(tmp_path / "app.p2", 2, relay(transfer)))
    assert float(row["load_balance"]) == pytest.approx(1, abs=1e-3)
    assert float(row["serialisation_efficiency"]) == pytest.approx(0.5, abs=1e-3)
    whole = 2 * STEP + 2 * transfer
    assert float(row["transfer_efficiency"]) == pytest.approx(2 * STEP / whole, abs=1e-3)
    assert float(row["communication_efficiency"]) == pytest.approx(STEP / whole, abs=1e-3)


def test_transfer_is_what_an_ideal_network_does_not_need(run, tmp_path):
    (row,) = factors(run, traced(tmp_path / "app.p4", 4, side_by_side(STEP)))
    assert float(row["load_balance"]) == pytest.approx(2.5 / 4, abs=1e-3)
    assert float(row["serialisation_efficiency"]) == pytest.approx(1, abs=1e-3)
    assert float(row["transfer_efficiency"]) == pytest.approx(4 / 5, abs=1e-3)
    assert float(row["parallel_efficiency"]) == pytest.approx(0.5, abs=1e-3)


def test_factors_multiply_and_stay_within_their_bounds(run, tmp_path):
    paths = [traced(tmp_path / f"app.p{p}", p, side_by_side(STEP // p)) for p in (2, 4)]
    for row in factors(run, *paths):
        value = {key: float(text) for key, text in row.items() if key.endswith(("ency", "balance"))}
        assert all(0 <= each <= 1 for each in value.values())
        product = value["serialisation_efficiency"] * value["transfer_efficiency"]
        assert value["communication_efficiency"] == pytest.approx(product)
        product *= value["load_balance"]
        assert value["parallel_efficiency"] == pytest.approx(product)


def test_a_specification_is_refused(run, tmp_path):
    path = traced(tmp_path / "app.p2", 2, relay(0))
    assert run("trace", "spec", path, "-o", tmp_path / "app.json").status == 0
    told = run("trace", "efficiency", tmp_path / "app.json")
    told.fails(2, "no measured communication", "give the trace")


def test_what_is_not_there_is_an_error(run, tmp_path):
    run("trace", "efficiency", tmp_path / "nothing").fails(3, "nothing")
