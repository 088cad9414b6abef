"""Programs in C that compute for the time of the trace: under MPI, and under SimGrid's SMPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from communication import recorded, traced, untimed
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.generators.c_program import c_source
from cpmodel_commspec.specification import Step, walk

AS_ANYBODY = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_btl": "self,vader",
    # Names of sockets have to be short.
    "TMPDIR": "/tmp",  # noqa: S108
}
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<cluster id="c" prefix="node-" suffix="" radical="0-3" speed="1Gf" bw="1000GBps" lat="1ns"/>
</platform>
"""
SMPI = (
    "--cfg=smpi/host-speed:1Gf", "--cfg=smpi/simulate-computation:no", "--cfg=smpi/wtime:0",
    "--cfg=network/model:CM02", "--log=root.thresh:error",
)  # fmt: skip
TABLE = re.compile(r"(?:(\d+) )?(\S.*?) +" + r" +".join([r"(\d+\.\d+)"] * 4))
RUN_TIME = re.compile(r"run time: (\S+) s of the trace, (\S+) s of the program")


class Machine:
    """A way to compile and run C programs."""

    def __init__(self, folder, compiler, runner):
        self._folder, self._compiler, self._runner = folder, compiler, runner

    def compiled(self, program):
        source, binary = self._folder / "program.c", self._folder / "program"
        source.write_text(program)
        done = subprocess.run(
            [self._compiler, *("-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O1"),
             str(source), "-o", str(binary)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return binary

    def run(self, program, ranks, *arguments):
        return subprocess.run(
            [*self._runner, "-np", str(ranks), str(self.compiled(program)), *arguments],
            capture_output=True, text=True, check=False, timeout=120,
            env={**os.environ, **AS_ANYBODY},
        )  # fmt: skip

    def times(self, program, ranks, *arguments):
        """Return the rows of the table, by line or words, and the run times."""
        done = self.run(program, ranks, *arguments)
        assert done.returncode == 0, done.stderr
        rows = {}
        for text in done.stdout.splitlines():
            found = TABLE.fullmatch(text.strip())
            if found:
                line, call, *seconds = found.groups()
                rows[int(line) if line else call] = (call, *map(float, seconds))
        return rows, tuple(map(float, RUN_TIME.search(done.stdout).groups()))


@pytest.fixture
def mpi(tmp_path):
    if shutil.which("mpicc") is None or shutil.which("mpirun") is None:
        pytest.skip("needs mpicc and mpirun, such as those of openmpi-bin and libopenmpi-dev")
    return Machine(tmp_path, shutil.which("mpicc"), [shutil.which("mpirun")])


@pytest.fixture
def smpi(tmp_path):
    """A simulated cluster with a network that takes no time."""
    if shutil.which("smpicc") is None or shutil.which("smpirun") is None:
        pytest.skip("needs smpicc and smpirun of SimGrid, such as those of libsimgrid-dev")
    platform, hosts = tmp_path / "cluster.xml", tmp_path / "hosts"
    platform.write_text(PLATFORM)
    hosts.write_text("".join(f"node-{k}\n" for k in range(4)))
    runner = [shutil.which("smpirun"), "-platform", platform, "-hostfile", hosts, *SMPI]
    return Machine(tmp_path, shutil.which("smpicc"), list(map(str, runner)))


def rounds(rank):
    """Rounds of random length, with a setup before the loop and a slow first round of each loop."""
    random = np.random.default_rng(rank.rank)
    rank.compute(3_000_000)
    rank.collective("bcast", 8 * rank.ranks if rank.rank == 0 else 0, 8, root=0)
    for _ in range(3):
        rank.compute(4_000_000)
        for _ in range(20):
            rank.compute(int(1e6 * random.exponential()) + 500_000 * (rank.rank == 2))
            rank.collective("barrier", 0, 0)
        rank.collective("allreduce", 8 * rank.ranks, 8 * rank.ranks)
    rank.compute(2_000_000)


def test_a_program_computes_and_prints_the_times(mpi, tmp_path):
    found = recorded(traced(tmp_path / "trace", 2, rounds))
    told = specify(found)
    rows, (of_trace, of_program) = mpi.times(c_source(told), 2)
    steps = {line: x for line, (x, _) in enumerate(walk(told.body), 1) if isinstance(x, Step)}
    assert [rows[line][0] for line in steps] == ["MPI_Bcast", "MPI_Barrier", "MPI_Allreduce"]
    assert set(rows) == {*steps, "after the last line", "all lines"}
    for line, step in steps.items():
        _, computed, computes, called, _ = rows[line]
        assert computed == pytest.approx(step.computing.total / 2, abs=1e-6)
        assert called == pytest.approx(step.calling / 2, abs=1e-6)
        assert computes >= 0.98 * computed
    assert rows["after the last line"][1] == pytest.approx(2e-3, rel=0.01)
    assert of_trace == pytest.approx(found.seconds, abs=1e-6)
    # The machine may be busy, so there is no upper limit.
    assert of_program >= 0.98 * max(told.computing_of_rank(rank).sum() for rank in (0, 1))


def test_simulated_programs_compute_exactly_as_long(smpi, tmp_path):
    told = specify(recorded(traced(tmp_path / "trace", 4, rounds)))
    rows, (_, seconds) = smpi.times(c_source(told), 4)
    for _, of_trace, of_program, _, _ in rows.values():
        assert of_program == pytest.approx(of_trace, abs=4e-6)
    computing = np.stack([told.computing_of_rank(rank) for rank in range(4)])
    ending = max(told.ending_of_rank(rank) for rank in range(4))
    # All ranks wait for the slowest one in each operation.
    assert seconds == pytest.approx(computing.max(axis=0).sum() + ending, rel=1e-4)
    assert seconds > 1.2 * computing.sum(axis=1).max()


@pytest.mark.parametrize("factor", [0, 0.5, 3])
def test_computation_is_scaled(smpi, tmp_path, factor):
    told = specify(recorded(traced(tmp_path / "trace", 4, rounds)))
    rows, _ = smpi.times(c_source(told), 4, "--scale-compute", str(factor))
    for _, of_trace, of_program, _, _ in rows.values():
        assert of_program == pytest.approx(factor * of_trace, abs=4e-6)


def short(rank):
    for _ in range(5000):
        rank.compute(300)
        rank.wait(rank.isend(rank.rank, 8), rank.ireceive(rank.rank, 8))


def test_short_computations_do_not_add_up_to_an_error(smpi, tmp_path):
    told = specify(recorded(traced(tmp_path / "trace", 1, short)))
    rows, _ = smpi.times(c_source(told), 1)
    _, of_trace, of_program, _, _ = rows["all lines"]
    assert of_trace == pytest.approx(5000 * 306e-9, rel=0.1)
    assert of_program == pytest.approx(of_trace, abs=4e-6)


def test_ranks_with_common_rounds_have_them_together(smpi, tmp_path):
    def program(rank):
        random = np.random.default_rng(1)
        for _ in range(50):
            rank.compute(int(1e6 * random.exponential()) + 100 * rank.rank)
            rank.collective("barrier", 0, 0)

    told = specify(recorded(traced(tmp_path / "trace", 4, program)))
    computing = np.stack([told.computing_of_rank(rank) for rank in range(4)])
    _, (_, seconds) = smpi.times(c_source(told), 4)
    assert seconds == pytest.approx(computing.max(axis=0).sum(), rel=1e-3)
    assert seconds == pytest.approx(computing[0].sum(), rel=0.1)


@pytest.mark.parametrize(
    "arguments",
    [["--scale-compute"], *(["--scale-compute", x] for x in ("-1", "nan", "2x", "", "1e99")),
     ["--scale-compute", "1", "--fast"], ["2"]],
)  # fmt: skip
def test_wrong_arguments_end_all_ranks(mpi, tmp_path, arguments):
    program = c_source(specify(recorded(traced(tmp_path / "trace", 3, rounds))))
    done = mpi.run(program, 3, *arguments)
    assert done.returncode == 2
    words = "the only option is --scale-compute, from 0 to 1e9"
    assert done.stderr.splitlines()[0] == words
    assert done.stdout == "" or "run time" not in done.stdout


def test_means_keep_the_difference_of_ranks_and_not_that_of_rounds(smpi, tmp_path):
    def program(rank):
        for k in range(40):
            rank.compute(1_000_000 + 400_000 * ((k + rank.rank) % 2) + 500_000 * (rank.rank == 2))
            rank.collective("barrier", 0, 0)

    told = specify(recorded(traced(tmp_path / "trace", 4, program)))
    program = c_source(told, "mean")
    assert "rank == 2 ? " in program
    rows, (_, seconds) = smpi.times(program, 4)
    for _, of_trace, of_program, _, _ in rows.values():
        assert of_program == pytest.approx(of_trace, abs=4e-6)
    assert rows["all lines"][1] == pytest.approx(40 * (1.2e-3 + 0.5e-3 / 4), rel=1e-3)
    assert seconds == pytest.approx(40 * 1.7e-3, rel=1e-3)


def test_programs_of_all_kinds_can_be_simulated(smpi, all_kinds):
    smpi.compiled(c_source(specify(recorded(all_kinds))))


def test_without_times_a_program_says_that_it_does_not_compute(mpi, all_kinds):
    program = c_source(specify(untimed(recorded(all_kinds))))
    assert " * It does not compute, because the specification has no times.\n" in program
    assert "LINE" not in program
    mpi.compiled(program)


def test_rows_of_ranks_out_of_order(smpi, tmp_path):
    """Shares whose ranks do not follow each other, in a statement of some ranks."""

    def program(rank):
        if rank.rank != 1:
            for _ in range(4):
                rank.compute(1_000_000 if rank.rank == 2 else 5_000_000)
                rank.wait(rank.isend(rank.rank, 8), rank.ireceive(rank.rank, 8))

    told = specify(recorded(traced(tmp_path / "trace", 4, program)))
    first = next(x for x, _ in walk(told.body) if isinstance(x, Step))
    assert sorted(share.ranks for share in first.computing.usual) == [(0, 3), (2,)]
    rows, (_, seconds) = smpi.times(c_source(told), 4)
    assert rows["all lines"][1] == pytest.approx((4 + 20 + 20) * 1e-3 / 4, rel=1e-3)
    assert rows["all lines"][2] == pytest.approx((4 + 20 + 20) * 1e-3 / 4, rel=1e-3)
    assert seconds == pytest.approx(20e-3, rel=1e-3)
