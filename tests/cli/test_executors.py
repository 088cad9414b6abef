"""`--executor`: workers of Dask and of MPI give the same answers to the last bit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import cube_writer as cw
import working
from cpmodel_scorep import stream
from two_stores import check_same_stores

READER = """
import os, signal
from contextlib import contextmanager
from pathlib import Path

from cpmodel_scorep import CubexReader

class Fragile(CubexReader):
    name = "fragile"
    description = "kills the first process that reads"

    @contextmanager
    def open(self, path):
        mark = Path({mark!r})
        if os.getpid() != {here} and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        with super().open(path) as source:
            yield source
"""


@pytest.fixture(scope="module")
def dask():
    """The address of a scheduler with two workers, each a process of its own."""
    distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A directory with one profile of 150 MB, whose metrics have two sections each."""
    tree, processes = cw.random_tree(2300, seed=3), 4000
    cost = np.random.default_rng(3).random((len(tree), processes))
    metrics = [
        cw.MetricToWrite("time", tree.subtree_sums(cost), "INCLUSIVE", unit="sec"),
        cw.MetricToWrite("work", cost, unit="usec"),
    ]
    runs = tmp_path_factory.mktemp("large")
    path = runs / f"app.p{processes}.cubex"
    cw.write(path, tree, metrics, cw.Machine([1] * processes))
    yield runs
    path.unlink()


@pytest.fixture
def made_here(monkeypatch):
    """A list of the parts of profiles that this process reduces."""
    made, whole = [], stream.MetricPass.part
    monkeypatch.setattr(
        stream.MetricPass, "part", lambda *given: made.append(given[1]) or whole(*given)
    )
    return made


def test_threads_divide_one_large_profile(run, large, tmp_path, made_here):
    for jobs in (1, 2):
        words = "fit", large, "--shard", "1/1", "-o", tmp_path / f"{jobs}.cpm", "-j", jobs
        assert run(*words, "--metric", "work").status == 0
    assert (tmp_path / "1.cpm").read_bytes() == (tmp_path / "2.cpm").read_bytes()
    assert len(made_here) == 4


def test_workers_of_dask_divide_one_large_profile(run, large, tmp_path, dask, made_here):
    words = "fit", large, "--shard", "1/1", "--metric", "work", "-o"
    assert run(*words, tmp_path / "here.cpm").status == 0
    done = run(*words, tmp_path / "there.cpm", "--executor", f"dask:{dask}")
    assert done.status == 0, done.err
    assert (tmp_path / "here.cpm").read_bytes() == (tmp_path / "there.cpm").read_bytes()
    assert not made_here


def test_dask_gives_the_same_store(run, samples, tmp_path, dask):
    runs = samples / "stencil"
    assert run("fit", runs, "-o", tmp_path / "here.cpm").status == 0
    done = run("fit", runs, "-o", tmp_path / "there.cpm", "--executor", f"dask:{dask}")
    assert done.status == 0, done.err
    check_same_stores(tmp_path / "here.cpm", tmp_path / "there.cpm")


def test_a_worker_of_dask_that_is_killed_costs_nothing(run, samples, tmp_path, dask):
    reader, mark = tmp_path / "fragile_reader.py", tmp_path / "died"
    reader.write_text(READER.format(mark=str(mark), here=os.getpid()))
    words = "--no-progress", "info", samples / "stencil", "-f", "json"
    there = run(*words, "--reader", reader, "--executor", f"dask:{dask}")
    assert there.status == 0, there.err
    assert mark.exists()
    assert there.out == run(*words, "--reader", reader).out


def test_an_executor_that_is_not_there_is_one_error(run, samples):
    runs = samples / "stencil"
    run("info", runs, "--executor", "slurm").fails(2, "no executor 'slurm'", "mpi or dask:ADDRESS")
    run("info", runs, "--executor", "dask:").fails(2, "no executor 'dask:'")


def test_a_scheduler_that_does_not_answer_is_one_error(run, samples, monkeypatch):
    pytest.importorskip("distributed", reason="the extra [dask] is not installed")
    monkeypatch.setattr("callpath_modeler.support.executors._SECONDS_TO_CONNECT", 0.5)
    done = run("info", samples / "stencil", "--executor", "dask:tcp://127.0.0.1:9")
    done.fails(2, "no scheduler answers at tcp://127.0.0.1:9", "dask worker")


def test_no_file_beside_profiles_names_an_executor(run, samples, tmp_path):
    runs = tmp_path / "stencil"
    shutil.copytree(samples / "stencil", runs)
    config = runs / "cpmodel.toml"
    config.write_text('[defaults]\nexecutor = "slurm"\n')
    done = run("info", runs)
    assert done.status == 0
    assert "cpmodel.toml: executor. " in done.err
    run("--config", config, "info", runs).fails(2, "there is no executor 'slurm'")


def mpi(ranks, *words):
    """Run cpmodel under MPI; return the process, or skip the test."""
    launcher = shutil.which("mpiexec")
    if launcher is None:
        pytest.skip("mpiexec is not installed")
    # Importing it here would make this process a rank, which cannot start others.
    has_mpi = subprocess.run(
        [sys.executable, "-c", "import mpi4py.MPI"], capture_output=True, check=False
    )
    if has_mpi.returncode:
        pytest.skip("mpi4py or its MPI library is not installed")
    return subprocess.run(
        [launcher, *("--oversubscribe", "--allow-run-as-root") * ("open" in _version(launcher)),
         "-n", str(ranks), sys.executable, "-m", "callpath_modeler", "--no-progress",
         *map(str, words), "--executor", "mpi"],
        capture_output=True,
        text=True,
        timeout=working.HUNG,
        check=False,
    )  # fmt: skip


def _version(launcher):
    told = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False)
    return told.stdout.lower()


def test_ranks_of_mpi_give_the_same_store_and_one_answer(run, samples, tmp_path):
    runs = samples / "stencil"
    here = run("fit", runs, "-o", tmp_path / "here.cpm")
    there = mpi(3, "fit", runs, "-o", tmp_path / "there.cpm")
    assert there.returncode == 0, there.stderr
    assert there.stdout.replace("there.cpm", "here.cpm") == here.out
    check_same_stores(tmp_path / "here.cpm", tmp_path / "there.cpm")


def test_ranks_of_mpi_divide_one_large_profile(run, large, tmp_path):
    words = "fit", large, "--shard", "1/1", "--metric", "work", "-o"
    assert run(*words, tmp_path / "here.cpm").status == 0
    there = mpi(3, *words, tmp_path / "there.cpm")
    assert there.returncode == 0, there.stderr
    assert (tmp_path / "here.cpm").read_bytes() == (tmp_path / "there.cpm").read_bytes()


def test_an_error_under_mpi_is_told_once(tmp_path):
    there = mpi(3, "info", tmp_path / "none")
    assert there.returncode == 3
    assert there.stderr.count("none: no such") == 1


def test_one_rank_cannot_share(tmp_path):
    there = mpi(1, "info", tmp_path)
    assert there.returncode == 2
    assert "there is one rank" in there.stderr
