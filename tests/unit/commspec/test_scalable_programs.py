"""C programs for any number of processes, run and counted."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from test_programs import AS_ANYBODY, calls_of, compile_c, counting, run_processes

from cells import cells
from communication import recorded, traced
from cpmodel_commspec.scalable.expansion import expanded, scale_at
from cpmodel_commspec.scalable.extrapolation import extrapolate
from cpmodel_commspec.scalable.source import scalable_source
from patterns import PATTERNS, extrapolated

__all__ = ["counting"]

SIZES = {
    "stencil2": (6, 9),
    "stencil3": (16,),
    "torus3": (16,),
    "butterfly": (2, 16),
    "transposes": (12,),
    "broadcast_tree": (12,),
    "odd_even": (6,),
    "tree": (12,),
    "dissemination": (16,),
    "halves": (16,),
    "middle_and_roots": (16,),
    "opposite": (6,),
}
"""Numbers of processes for each pattern; those that were not traced tell the most."""


def compiled(told, counting, folder):
    source, binary = folder / "program.c", folder / "program"
    source.write_text(scalable_source(told))
    compile_c(source, counting / "counting.o", "-o", binary)
    return binary


@cells("name", PATTERNS)
def test_one_program_makes_the_calls_of_the_specification_at_any_number_of_processes(
    name, counting, tmp_path
):
    told = extrapolated(name)
    binary = compiled(told, counting, tmp_path)
    for processes in SIZES.get(name, (9,)):
        there = expanded(told, scale_at(told, processes))
        _, calls = run_processes([binary], tmp_path, processes)
        for rank in range(processes):
            assert calls[rank] == calls_of(there, rank), (processes, rank)


@pytest.mark.parametrize("name", ["ring", "stencil", "ft", "cg", "subcomm", "lu"])
def test_programs_of_measured_traces_make_the_calls_of_the_largest(
    name, shared_data, counting, tmp_path
):
    found = [recorded(shared_data / "traces" / f"{name}.{p}" / "traces.otf2") for p in (4, 8, 16)]
    told = extrapolate(found).told
    totals, calls = run_processes([compiled(told, counting, tmp_path)], tmp_path, 16)
    there = expanded(told, scale_at(told, 16))
    if name == "lu":
        # Messages from any source come in another order each time.
        assert sum(row[0] for row in totals) == 1728
        assert sum(row[1] for row in totals) == sum(row[3] for row in totals) == 1032192
        return
    for rank in range(16):
        assert calls[rank] == calls_of(there, rank), rank


def test_a_program_takes_the_grid_from_its_arguments(counting, tmp_path):
    told = extrapolated("stencil2")
    binary = compiled(told, counting, tmp_path)
    for sizes in ((2, 6), (6, 2), (12, 1)):
        there = expanded(told, scale_at(told, 12, sizes))
        grid = ",".join(map(str, sizes))
        _, calls = run_processes([binary, "--grid", grid], tmp_path, 12)
        assert calls == [calls_of(there, rank) for rank in range(12)]
    for grid in ("5,2", "4", "4,3,1", "x", "4,3x", "-4,-3", "99999999999999999999,1"):
        with pytest.raises(AssertionError, match="give the grid of all 12 processes: --grid X,Y"):
            run_processes([binary, f"--grid={grid}"], tmp_path, 12)


def test_a_program_names_the_line_that_a_number_of_processes_does_not_permit(counting, tmp_path):
    binary = compiled(extrapolated("butterfly"), counting, tmp_path)
    with pytest.raises(AssertionError, match=r"6 processes .*line 2: a size is no power of two"):
        run_processes([binary], tmp_path, 6)


@pytest.mark.usefixtures("counting")
def test_a_program_computes_as_long_as_the_models_predict(tmp_path):
    def program(rank):
        for _ in range(3):
            rank._now += 16_000_000 // rank.ranks
            rank.collective("allreduce", 8 * rank.ranks, 8 * rank.ranks)

    traces = [recorded(traced(tmp_path / str(p), p, program)) for p in (4, 8, 16)]
    found = extrapolate(traces)
    source, binary = tmp_path / "program.c", tmp_path / "program"
    source.write_text(scalable_source(found.told, found.times))
    compile_c(source, "-o", binary)
    for options, factor in (((), 1), (("--scale-compute", "0.5"), 0.5)):
        done = subprocess.run(
            [shutil.which("mpirun"), "-n", "2", binary, *options],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **AS_ANYBODY, "TMPDIR": "/tmp"},  # noqa: S108
        )
        rows = [line.split() for line in done.stdout.splitlines()]
        [(_, call, predicted, computed, *_)] = [row for row in rows if row[0] == "2"]
        assert call == "MPI_Allreduce"
        assert float(predicted) == pytest.approx(3 * 16e-3 / 2, rel=0.01)
        assert float(computed) >= 0.99 * factor * float(predicted)
