"""Caliper series of other projects on the command line, without options."""

from __future__ import annotations

import json

import pytest


def test_json_is_recognised_among_other_tables(run, tmp_path):
    for p in (2, 4, 8, 16):
        rows = [[0.5 * p, rank, 0] for rank in range(p)] + [[2.5, rank, 1] for rank in range(p)]
        described = [{"is_value": True, "attribute.unit": "sec"}, {"is_value": True}]
        document = {
            "data": rows,
            "columns": ["time", "mpi.rank", "path"],
            "column_metadata": [*described, {"is_value": False}],
            "nodes": [{"label": "main"}, {"label": "f", "parent": 0}],
            "mpi.world.size": str(p),
        }
        (tmp_path / f"app.n{p}.json").write_text(json.dumps(document, indent=1))
    info = run("info", tmp_path, "-f", "json")
    assert info.status == 0, info.err
    rows = json.loads(info.out)["rows"]
    assert [row["reader"] for row in rows] == ["caliper"] * 4
    assert [row["processes"] for row in rows] == [2, 4, 8, 16]


@pytest.fixture
def caliper(shared_data):
    return shared_data / "third_party" / "caliper"


def test_a_series_is_recognised_and_ranked_without_being_told(run, caliper):
    info = run("info", caliper / "lulesh_opal_weak", "-f", "json")
    read = json.loads(info.out)
    assert info.status == 0
    assert read["locations"] == "mean"
    assert read["parameters"] == [
        {"name": "p", "values": [27, 64, 125, 216, 343], "from": "processes"}
    ]
    assert read["constants"] == {"size": 30}
    assert [metric["name"] for metric in read["metrics"]] == ["time"]
    assert read["findings"] == []
    ranked = run("rank", caliper / "lulesh_opal_weak", "--target", "4096")
    assert ranked.status == 0
    assert "time, exclusive, mean over processes" in ranked.out


def test_threads_that_differ_between_scales_are_said(run, caliper):
    source = caliper / "lulesh_quartz_weak"
    ranked = run("rank", source, "--target", "343", "--where", "size=30")
    assert ranked.status == 0
    assert "at p = 343 (" in ranked.out
    assert "CPM131" in ranked.err
    assert "2 at p = 27 64 125; 5 at p = 8" in ranked.err


def test_a_maximum_over_processes_cannot_be_had_from_sums(run, caliper):
    run("info", caliper / "lulesh_opal_weak", "--locations", "max").fails(
        4, "holds no max over processes", "--locations mean or sum"
    )


def test_a_damaged_profile_among_others_is_left_out_by_name(run, caliper, tmp_path):
    for path in (caliper / "lulesh_opal_weak").iterdir():
        content = path.read_bytes()
        (tmp_path / path.name).write_bytes(content[:5000] if ".p64." in path.name else content)
    info = run("info", tmp_path)
    assert info.status == 0
    assert "4 runs of 4 points" in info.out
    assert "CPM101" in info.err
    assert "lulesh.p64.size30.r1.cali: line " in info.err


def test_runs_of_two_machines_are_not_one_series_without_a_word(run, caliper):
    runs = [caliper / f"lulesh_{name}_weak" for name in ("opal", "quartz")]
    told = run("info", *runs, "--where", "size=30", "--diagnostics")
    assert told.status == 0
    text = " ".join(told.out.split())
    assert "cluster: quartz in 100 runs (first " in text
    assert "; opal in 5 runs (first " in text
