"""Programs on the simulated cluster: call paths, exact counts, and the same bytes each time."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import callpath_modeler as cpm

ROOT = Path(__file__).resolve().parents[2]
# Modules of benchmarks and of tests share names, so the path does not stay.
sys.path.insert(0, str(ROOT / "benchmarks"))
from cluster import simulate as cluster  # noqa: E402
from cluster.platforms import hosts, platform  # noqa: E402
from cluster.profiles import METRICS, read_records, write_cubex  # noqa: E402

sys.path.remove(str(ROOT / "benchmarks"))

needs_simgrid = pytest.mark.skipif(
    shutil.which("smpicc") is None or shutil.which("smpirun") is None,
    reason="SimGrid SMPI (smpicc, smpirun) is not installed",
)
P, STEPS, ITERATIONS = 4, 3, 4
RECORDS = """\
1 0 -1 smpi_simulated_main_ 1 500 0 0 0
1 1 0 solve 2 30 0 0 0
1 2 1 MPI_Isend 2 7 64 0 2
0 0 -1 smpi_simulated_main_ 1 400 0 0 0
0 1 0 write_output 1 9 0 0 0
0 2 0 solve 2 10 0 0 0
"""


def run_of(application):
    return cluster.Run(application, "fat-tree-fast", P, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The profiles of all programs on four ranks."""
    path = tmp_path_factory.mktemp("cluster")
    runs = [run_of(name) for name in cluster.APPLICATIONS]
    assert len([*cluster.simulate_all(runs, path, 1)]) == len(runs)
    return path


def profile(folder, application):
    return folder / f"{application}.fat-tree-fast" / f"{application}.p4.r1" / "profile.cubex"


def loaded(folder, application, locations=cpm.Reduction.SUM):
    read = cpm.ReadOptions(locations=locations, metrics=tuple(METRICS))
    return cpm.load([profile(folder, application)], cpm.LoadOptions(read=read))


def value(experiment, metric, path):
    rows = [k for k in range(len(experiment.tree)) if experiment.tree.path(k).endswith(path)]
    assert len(rows) == 1, path
    return experiment.values(metric)[rows[0], 0]


@needs_simgrid
@pytest.mark.parametrize("name", [*cluster.APPLICATIONS, "measure"])
def test_the_sources_compile_without_warnings(name, tmp_path):
    source = ROOT / "benchmarks" / "cluster" / f"{name}.c"
    command = ["smpicc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-c", source]
    subprocess.run([*command, "-o", tmp_path / "made.o"], check=True)


@needs_simgrid
def test_visits_and_bytes_of_the_stencil_are_exact(folder):
    stencil = loaded(folder, "stencil")
    calls = STEPS * ITERATIONS
    reduction = "main/solve/dot_products/MPI_Allreduce"
    assert value(stencil, "visits", reduction) == P * calls
    assert value(stencil, "bytes_sent", reduction) == P * calls * P * 16
    sent = value(stencil, "bytes_sent", "exchange_halo/MPI_Isend")
    messages = value(stencil, "messages", "exchange_halo/MPI_Isend")
    # Four ranks in a row or in a square have three or four pairs of neighbours.
    assert messages in {2 * 3 * calls, 2 * 4 * calls}
    assert sent == messages * 600000
    assert value(stencil, "bytes_received", "exchange_halo/MPI_Waitall") == sent


@needs_simgrid
@pytest.mark.parametrize("name", cluster.APPLICATIONS)
def test_what_is_sent_from_rank_to_rank_is_received(name, folder):
    experiment = loaded(folder, name)
    paths = [experiment.tree.path(row) for row in range(len(experiment.tree))]

    def total(metric, function):
        rows = [k for k, path in enumerate(paths) if path.endswith("/" + function)]
        return np.nansum(experiment.values(metric)[rows])

    assert total("bytes_sent", "MPI_Isend") == total("bytes_received", "MPI_Waitall")
    assert total("bytes_sent", "MPI_Alltoall") == total("bytes_received", "MPI_Alltoall")


@needs_simgrid
@pytest.mark.parametrize("name", cluster.APPLICATIONS)
def test_call_paths_add_up_to_the_time_of_each_rank(name, folder):
    experiment = loaded(folder, name, cpm.Reduction.MEAN)
    mean = np.nansum(experiment.values("time"))
    slowest = experiment.columns["time"].run_time[0]
    # All ranks start at once, and leave the barrier of MPI_Finalize together.
    assert mean == pytest.approx(slowest, rel=1e-3)
    assert 0.01 < mean < 0.3


@needs_simgrid
def test_regions_have_the_paradigms_and_roles_of_score_p(folder):
    tree = loaded(folder, "stencil").tree
    of_names = {region.name: region for region in tree.regions}
    assert of_names["main"].paradigm == "compiler"
    assert of_names["MPI_Allreduce"].paradigm == "mpi"
    assert of_names["MPI_Allreduce"].role == "all2all"


@needs_simgrid
def test_a_run_writes_the_same_bytes_again(folder, tmp_path):
    [*cluster.simulate_all([run_of("particles")], tmp_path, 1)]
    assert profile(tmp_path, "particles").read_bytes() == profile(folder, "particles").read_bytes()


@needs_simgrid
def test_a_sample_profile_is_written_again_bit_for_bit(samples, tmp_path):
    if "3.32" not in cluster.version():
        pytest.skip("the sample profiles are from SimGrid 3.32")
    application, _, where = cluster.SAMPLE.partition(".")
    run = cluster.Run(application, where, 8, 1)
    [*cluster.simulate_all([run], tmp_path, 1)]
    made = tmp_path / run.series / run.name / "profile.cubex"
    kept = samples / application / run.name / "profile.cubex"
    assert made.read_bytes() == kept.read_bytes()


@needs_simgrid
def test_another_repetition_has_other_noise(folder, tmp_path):
    again = cluster.Run("stencil", "fat-tree-fast", P, 2)
    [*cluster.simulate_all([again], tmp_path, 1)]
    (made,) = tmp_path.rglob("profile.cubex")
    assert made.read_bytes() != profile(folder, "stencil").read_bytes()


@needs_simgrid
def test_a_profile_that_is_there_is_not_made_again(folder):
    assert [*cluster.simulate_all([run_of("stencil")], folder, 1)] == []


@needs_simgrid
def test_no_path_of_the_machine_stands_in_a_profile(folder):
    for name in cluster.APPLICATIONS:
        content = profile(folder, name).read_bytes()
        assert str(ROOT).encode() not in content
        assert b"/tmp" not in content


def test_without_simgrid_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(cluster.shutil, "which", lambda _: None)
    with pytest.raises(cluster.AbsentError, match="smpicc is not there: install SimGrid"):
        [*cluster.simulate_all([run_of("stencil")], tmp_path, 1)]


def test_records_of_all_ranks_become_one_profile(tmp_path):
    records, made = tmp_path / "records", tmp_path / "profile.cubex"
    records.write_text(RECORDS)
    write_cubex(made, read_records(records, 2, "app"), "a test")
    experiment = cpm.load([made], cpm.LoadOptions(cpm.ReadOptions(metrics=tuple(METRICS))))
    assert experiment.name == "app"
    paths = [experiment.tree.path(row) for row in range(len(experiment.tree))]
    assert [path.rpartition("main")[2] for path in paths[1:]] == [
        *("", "/write_output", "/solve", "/solve/MPI_Isend"),
    ]
    assert value(experiment, "time", "main") == pytest.approx(450e-9)
    assert value(experiment, "time", "main/solve") == pytest.approx(20e-9)
    assert value(experiment, "bytes_sent", "MPI_Isend") == 32


def test_missing_ranks_are_an_error(tmp_path):
    (tmp_path / "records").write_text(RECORDS)
    with pytest.raises(ValueError, match="lacks ranks"):
        read_records(tmp_path / "records", 3, "app")


def test_a_run_has_nodes_of_its_own_and_the_same_ones_each_time():
    nodes = hosts(100, "a seed").split()
    assert len(set(nodes)) == 100
    assert hosts(100, "a seed").split() == nodes != hosts(100, "another").split()
    assert platform("torus", "slow", "a") == platform("torus", "slow", "a")
    assert platform("torus", "slow", "a") != platform("torus", "slow", "b")
