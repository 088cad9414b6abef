"""Commands with numbers in names and columns that are not parameters."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def reports(shared_data):
    return shared_data / "reports"


def test_a_column_of_job_ids_is_no_parameter(reports, run):
    folder = reports / "b15_table_identifier_column_becomes_a_parameter"
    asked = [
        run("rank", folder / name, "--target", "256", "-f", "json")
        for name in ("jobid2.csv", "jobid2_ok.csv")
    ]
    with_ids, without = (json.loads(one.out)["rows"] for one in asked)
    assert with_ids == without
    assert "CPM141" in run("rank", folder / "jobid2.csv", "--target", "256").err


def test_a_column_that_is_not_used_is_named(run, tmp_path):
    lines = ["callpath,p,batch,time"]
    numbers = iter(range(7000, 7100, 7))
    lines += [f"main,{p},{next(numbers)},{p}" for p in (2, 4, 8, 16) for _ in (1, 2)]
    (tmp_path / "runs.csv").write_text("\n".join([*lines, ""]))
    told = run("info", tmp_path / "runs.csv")
    assert "CPM141" in told.err
    assert "batch" in told.err


def test_sizes_in_names_that_differ_in_every_run_are_asked_about(run, tmp_path):
    sizes = iter([100, 230, 450, 900, 1800, 3700])
    for p in (2, 4, 8):
        for _ in (1, 2):
            name = f"app.p{p}.cells{next(sizes)}.csv"
            (tmp_path / name).write_text(f"callpath,time\nmain,{p}\n")
    run("rank", tmp_path, "--target", "64").fails(2, "cells", "--param cells=name")
    asked = run("rank", tmp_path, "--target", "64", "--param", "cells=none")
    assert asked.status == 0, asked.err


def test_a_column_is_brought_back_by_its_name(run, tmp_path):
    rows = [f"main,{p},{1000 + 7 * (3 * k + r)},{p + r}"
            for k, p in enumerate((4, 8, 16, 32, 64)) for r in range(3)]  # fmt: skip
    (tmp_path / "jobs.csv").write_text("\n".join(["callpath,p,jobid,time", *rows]) + "\n")
    told = run("info", tmp_path / "jobs.csv", "--param", "jobid")
    assert told.status == 0
    assert "jobid      1000" in told.out
    assert "CPM141" not in told.err
    run("info", tmp_path / "jobs.csv", "--param", "").fails(2, "malformed")
    run("info", tmp_path / "jobs.csv", "--param", "jobid=").fails(2, "malformed")
