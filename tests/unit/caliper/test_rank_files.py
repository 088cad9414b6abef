"""Runs with a file for each process."""

from __future__ import annotations

import numpy as np
import pytest

from caliper_writer import Writer
from callpath_modeler.errors import InputError
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.base import opened_runs
from callpath_modeler.studies import loading
from cpmodel_caliper import CaliperReader

TIME = "sum#time.duration"


def write(path, rank, size, seconds, job="17", region="solve"):
    writer = Writer()
    writer.record(["main"], {"mpi.rank": rank, TIME: 1.0})
    writer.record(["main", region], {"mpi.rank": rank, TIME: seconds})
    writer.globals({"mpi.world.size": size, "jobid": job, "cali.caliper.version": "2.10.0"})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(writer.lines) + "\n")
    return path


@pytest.fixture
def runs(tmp_path):
    """Three runs; process r of p takes (r + 1) / p seconds."""
    for p in (2, 4, 8):
        for rank in range(p):
            name = f"{rank * 7919 % 10007:x}q.cali"
            write(tmp_path / f"app.p{p}" / name, rank, p, (rank + 1) / p, job=str(p))
    return tmp_path


@pytest.mark.parametrize("form", ["folder", "folders", "files"])
def test_the_files_of_a_run_are_one_run(runs, form):
    sources = {
        "folder": [runs],
        "folders": sorted(runs.iterdir()),
        "files": sorted(runs.glob("*/*.cali")),
    }[form]
    experiment = loading.load(sources)
    assert [run.parameters["p"] for run in experiment.runs] == [2, 4, 8]
    paths = [experiment.tree.path(row) for row in range(len(experiment.tree))]
    solve = experiment.values("time")[paths.index("main/solve")]
    assert solve.tolist() == pytest.approx([(p + 1) / (2 * p) for p in (2, 4, 8)])
    assert not experiment.findings


def test_the_slowest_process_is_known(runs):
    with opened_runs(CaliperReader(), runs / "app.p4") as (run,):
        slowest = run.source.reduce("time", Reduction.MAX).exclusive
    assert np.nanmax(slowest) == 1


def test_other_processes_may_have_other_call_paths(tmp_path):
    write(tmp_path / "a.p2" / "0.cali", 0, 2, 3.0)
    write(tmp_path / "a.p2" / "1.cali", 1, 2, 1.0, region="wait")
    experiment = loading.load([tmp_path / "a.p2"])
    paths = [experiment.tree.path(row) for row in range(len(experiment.tree))]
    values = dict(zip(paths, experiment.values("time")[:, 0].tolist(), strict=True))
    assert values == {"<program>": 0.0, "main": 1.0, "main/solve": 1.5, "main/wait": 0.5}


def test_a_missing_process_is_a_finding(runs):
    min((runs / "app.p4").iterdir()).unlink()
    codes = [finding.code for finding in loading.load([runs]).findings]
    assert "CPM132" in codes


def test_a_process_that_is_there_twice_is_refused(tmp_path):
    for name, rank in (("a", 0), ("b", 1), ("c", 1)):
        write(tmp_path / "app.p4" / f"{name}.cali", rank, 4, 1.0)
    with pytest.raises(InputError, match=r"c\.cali: process 1 is in b\.cali as well"):
        loading.load([tmp_path])


def test_a_file_of_another_run_is_refused(tmp_path):
    for name, rank, job in (("a", 0, "1"), ("b", 1, "1"), ("c", 2, "2")):
        write(tmp_path / "app.p4" / f"{name}.cali", rank, 4, 1.0, job=job)
    with pytest.raises(InputError, match=r"c\.cali: not a process of the run of a\.cali"):
        loading.load([tmp_path])


def test_runs_of_one_process_each_stay_runs(tmp_path):
    for size in (1, 1, 1):
        write(tmp_path / f"app.p{size}.r{len([*tmp_path.iterdir()])}.cali", 0, size, 1.0)
    assert len(loading.load([tmp_path]).runs) == 3
