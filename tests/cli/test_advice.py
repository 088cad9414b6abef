"""`cpmodel info --advise`: which scale to run next."""

from __future__ import annotations

import json

import pytest


def test_the_scales_to_run_next_are_told_with_what_they_cost(run, stored):
    done = run("info", stored, "--advise", "--target", "1000")
    assert done.status == 0
    lines = done.out.splitlines()
    assert lines[0].startswith("At p = 1000 the total is 325 s (149 … 1 180 s): a band of × 7.96")
    assert lines[3].split()[:2] == ["run", "at"]
    assert [line.split()[0] for line in lines[4:6]] == ["p=216", "p=512"]
    assert lines[-1] == "p = 512 narrows the band at p = 1000 most."


def test_without_a_target_it_is_about_four_times_the_largest_run(run, stored):
    done = run("info", stored, "--advise", "-f", "json")
    told = json.loads(done.out)
    assert told["target"] == 500
    assert told["units"] == {"time": "s"}
    (row,) = told["rows"]
    assert row["scale"] == 216
    assert row["band_ratio_least"] <= row["band_ratio"] <= row["band_ratio_most"]


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        (("--target", "1000"), 2, "--target: info makes no models"),
        (("--advise", "--target", "inf"), 2, "growth alone has no band"),
        (("--advise", "--target", "130"), 4, "no scale between the largest run, p = 125"),
        (("--advise", "--target", "x"), 2, "'x' is not a number"),
    ],
)
def test_what_cannot_be_advised_is_refused(run, stored, words, status, complaint):
    run("info", stored, *words).fails(status, complaint)


def test_a_target_that_is_set_for_all_commands_is_no_matter_of_what_was_read(
    run, stored, monkeypatch
):
    monkeypatch.setenv("CPMODEL_TARGET", "1000")
    assert run("info", stored).status == 0
    assert run("info", stored, "--advise").out.startswith("At p = 1000 ")


def test_what_is_known_exactly_needs_no_run(run, tmp_path):
    table = tmp_path / "visits.csv"
    rows = [f"main,{p},{3 * p}" for p in (2, 4, 8, 16, 32)]
    table.write_text("\n".join(["callpath,p,visits", *rows]) + "\n", "utf-8")
    done = run("info", table, "--advise")
    assert (
        done.out.splitlines()[-1]
        == "The cost at p = 128 is known well enough: no further run is needed."
    )


def test_of_several_parameters_the_others_are_to_be_held(run, tmp_path):
    table = tmp_path / "runs.csv"
    rows = [f"main,{p},{n},{n * p**0.5}" for p in (2, 4, 8, 16, 32) for n in (10, 20, 40)]
    table.write_text("\n".join(["callpath,p,n,time[s]", *rows]) + "\n", "utf-8")
    run("info", table, "--advise").fails(4, "several parameters vary: p, n", "--where n=40")
