"""Variants of other versions and tools: padding, times without a unit, tasks as a root."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import cube_writer as cw
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.assemble import ReadOptions
from callpath_modeler.studies.loading import LoadOptions, load
from cells import cells
from cpmodel_scorep import CubexReader

TREE = cw.random_tree(12, seed=3)
MACHINE = cw.Machine([1, 1])
COST = np.random.default_rng(2).random((12, 2))


def times(unit="sec", dtype="DOUBLE", name="time"):
    return [cw.MetricToWrite(name, COST, unit=unit, dtype=dtype)]


def mean_of(path, metric="time"):
    with CubexReader().open(path) as profile:
        return profile.reduce(metric, Reduction.MEAN).total, profile.findings()


@cells("zeros", [1, 512, 20_000])
@cells("packed", [False, True])
def test_zeros_behind_the_definitions_are_padding(tmp_path, zeros, packed):
    *rows, (name, anchor) = cw.members_of(TREE, times(), MACHINE)
    anchor += b"\0" * zeros
    members = [*rows, (name, gzip.compress(anchor) if packed else anchor)]
    path = cw.pack(tmp_path / "profile.cubex", members)
    total, findings = mean_of(path)
    assert total == pytest.approx(COST.sum() / 2)
    assert not findings


def test_zeros_behind_a_cube_3_document_are_padding(tmp_path):
    path = tmp_path / "a.cube"
    path.write_bytes(cw.cube3(TREE, times(), MACHINE) + b"\0" * 700)
    total, findings = mean_of(path)
    assert total == pytest.approx(COST.sum() / 2)
    assert not findings


def test_zeros_within_the_definitions_are_no_padding(tmp_path):
    *rows, (name, anchor) = cw.members_of(TREE, times(), MACHINE)
    path = cw.pack(
        tmp_path / "a.cubex", [*rows, (name, anchor.replace(b"f3<", b"f\x003<") + b"\0")]
    )
    assert [finding.code for finding in mean_of(path)[1]] == ["CPM111"]


@pytest.fixture
def runs_without_unit(tmp_path):
    for p in (1, 2, 4):
        folder = tmp_path / f"app.p{p}"
        folder.mkdir()
        metrics = [cw.MetricToWrite("time", np.full((12, p), 3.0), unit="")]
        cw.write(folder / "profile.cubex", TREE, metrics, cw.Machine([1] * p))
    return tmp_path


def test_times_without_a_unit_are_taken_as_seconds_with_a_finding(runs_without_unit):
    read = load(runs_without_unit)
    assert read.columns["time"].metric.unit == "s"
    assert np.nanmax(read.columns["time"].exclusive) == 3.0
    codes = [finding.code for finding in read.findings]
    assert codes.count("CPM160") == 3


def test_a_given_unit_counts_instead_of_the_assumed_one(runs_without_unit):
    options = LoadOptions(ReadOptions(units={"time": "us"}))
    read = load(runs_without_unit, options)
    assert np.nanmax(read.columns["time"].exclusive) == pytest.approx(3e-6)
    assert read.columns["time"].metric.is_time
    assert "CPM160" not in {finding.code for finding in read.findings}


def test_a_unit_that_the_profile_states_is_not_replaced(tmp_path):
    cw.write(tmp_path / "app.p2.cubex", TREE, times(), MACHINE)
    with pytest.raises(UsageError, match="states the unit"):
        load(tmp_path, LoadOptions(ReadOptions(units={"time": "us"})))


def test_a_unit_of_no_metric_is_refused(tmp_path):
    cw.write(tmp_path / "app.p2.cubex", TREE, times(), MACHINE)
    with pytest.raises(UsageError, match="tmie"):
        load(tmp_path, LoadOptions(ReadOptions(units={"tmie": "us"})))


def test_durations_of_threads_are_not_made_of_their_sums(tmp_path):
    metrics = [*times(), cw.MetricToWrite("waiting", COST, unit="")]
    cw.write(tmp_path / "app.p1.cubex", TREE, metrics, cw.Machine([2]))
    with pytest.raises(UsageError, match="threads"):
        load(tmp_path, LoadOptions(ReadOptions(metrics=None, units={"waiting": "us"})))


@pytest.mark.parametrize(("name", "dtype"), [("visits", "DOUBLE"), ("time", "UINT64")])
def test_only_real_numbers_called_time_are_taken_as_seconds(tmp_path, name, dtype):
    metric = cw.MetricToWrite(name, np.ones((12, 2)), unit="", dtype=dtype)
    path = cw.write(tmp_path / "a.cubex", TREE, [metric], MACHINE)
    with CubexReader().open(path) as profile:
        assert [(d.metric.unit, d.unit_is_assumed) for d in profile.metrics] == [("1", False)]


@pytest.mark.parametrize("dtype", ["", "REAL"])
def test_values_of_cube_3_are_read_whatever_their_type(tmp_path, dtype):
    document = cw.cube3(TREE, times(), MACHINE)
    path = tmp_path / "a.cube"
    path.write_bytes(document.replace(b"<dtype>FLOAT</dtype>", f"<dtype>{dtype}</dtype>".encode()))
    assert mean_of(path)[0] == pytest.approx(COST.sum() / 2)


def test_values_without_a_type_are_double(tmp_path):
    *rows, (name, anchor) = cw.members_of(TREE, times(), MACHINE)
    anchor = anchor.replace(b"<dtype>DOUBLE</dtype>", b"<dtype></dtype>")
    path = cw.pack(tmp_path / "a.cubex", [*rows, (name, anchor)])
    assert mean_of(path)[0] == pytest.approx(COST.sum() / 2)


def tasks(*, stub):
    """Call paths of a program whose tasks are a separate root."""
    return cw.Tree(
        parents=[-1, 0, 1, -1, 3],
        names=["main", "parallel", "task" if stub else "loop", "TASKS", "task"],
        roles={"TASKS": "artificial"},
    )


@pytest.mark.parametrize(("stub", "total"), [(True, 6.0), (False, 15.0)])
def test_a_root_of_tasks_counts_only_if_the_program_does_not_hold_them(tmp_path, stub, total):
    values = np.arange(1.0, 6.0)[:, None]
    metric = cw.MetricToWrite("time", values, unit="sec")
    path = cw.write(tmp_path / "a.cubex", tasks(stub=stub), [metric], cw.Machine([1]))
    found, findings = mean_of(path)
    assert found == total
    assert [finding.code for finding in findings] == (["CPM109"] if stub else [])


def test_the_reported_tasks_as_a_root_are_counted_once(shared_data):
    folder = shared_data / "reports/b19_tasks_as_a_root/omp"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data/reports")
    with CubexReader().open(folder / "app.p32.cubex") as profile:
        found = profile.reduce("time", Reduction.MEAN)
        # The master thread takes the longest, and runs 0.5 s of the tasks.
        assert found.exclusive.sum() == pytest.approx(64 + 1 + 0.5)
        assert found.total == pytest.approx(65.5)
        assert "CPM109" in {finding.code for finding in profile.findings()}
