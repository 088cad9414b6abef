"""Reported tables in two parameters, with some sizes at small scales only."""

from __future__ import annotations

import json

import pytest

AT_256, AT_4096 = "p=256,n=8e5", "p=4096,n=8e5"
STEP = "b16_step_beyond_the_runs_at_the_held_value"
OTHERS = "b20_what_other_values_show_is_ignored"
# The README of each case states its laws.
CASES = [
    (f"{STEP}/grid.csv", AT_4096, "main", 1.8),
    (f"{OTHERS}/bend.csv", AT_256, "main", 11.8),
    (f"{OTHERS}/bend.csv", AT_4096, "main", 203.8),
    (f"{OTHERS}/full_grid.csv", AT_4096, "main", 203.8),
    (f"{OTHERS}/bend_times_n.csv", AT_4096, "main", 1630.0),
]


@pytest.mark.parametrize(("file", "at", "callpath", "truth"), CASES)
def test_a_reported_grid_is_predicted_by_what_its_other_sizes_show(
    run, shared_data, file, at, callpath, truth
):
    outcome = run("rank", shared_data / "reports" / file, "--at", at, "-f", "json")
    assert outcome.status == 0, outcome.err
    assert "RuntimeWarning" not in outcome.err
    (row,) = (row for row in json.loads(outcome.out)["rows"] if row["callpath"] == callpath)
    assert row["low"] <= truth <= row["high"]
    assert row["predicted"] == pytest.approx(truth, rel=0.1)
    assert row["high"] / row["low"] < 2.5


@pytest.mark.parametrize("name", ["d_prod", "e_first", "h_zero"])
def test_every_relative_of_the_step_has_a_finite_band(run, shared_data, name):
    outcome = run(
        "rank", shared_data / "reports" / STEP / f"{name}.csv", "--at", AT_4096, "-f", "json"
    )
    assert outcome.status == 0, outcome.err
    for row in json.loads(outcome.out)["rows"]:
        assert row["high"] / row["low"] < 10


def test_the_largest_run_is_that_of_all_sizes(run, shared_data):
    near = run("rank", shared_data / "reports" / OTHERS / "bend.csv", "--at", AT_256)
    assert "no single run is as large in every parameter" in near.out
    assert "no run has p >= 256 and n >= 800000" in near.err
    assert "CPM205" not in near.err
    far = run("rank", shared_data / "reports" / OTHERS / "bend.csv", "--at", AT_4096)
    assert "p 16 × the largest run" in far.out
    assert "p = 4096 is 16 times the largest run" in far.err


def test_growth_of_a_sum_is_that_which_other_sizes_show(run, shared_data, tmp_path):
    file = tmp_path / "expectations.toml"
    file.write_text(
        'schema = 1\ntarget = { p = 4096, n = 8e5 }\n[[expect]]\ngrowth = "O(1)"\n'
        '[[expect]]\ngrowth = "O(p)"\n'
    )
    table = shared_data / "reports" / OTHERS / "bend_times_n.csv"
    outcome = run("check", table, file, "-f", "json")
    verdicts = [row["verdict"] for row in json.loads(outcome.out)["rows"]]
    assert verdicts[0] == "broken"
    assert verdicts[1] in ("holds", "unsure")
