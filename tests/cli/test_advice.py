"""`cpmodel info --advise`: which scale to run next."""

from __future__ import annotations

import json

import numpy as np
import pytest


def test_the_scales_to_run_next_are_told_with_what_they_cost(run, stored):
    done = run("info", stored, "--advise", "--target", "1000")
    assert done.status == 0
    lines = done.out.splitlines()
    total = "the sum of all call paths is 256 s (98.9 … 1 800 s)"
    assert lines[0].startswith(f"At p = 1000 {total}: a band of × 18.2")
    assert lines[3].split()[:2] == ["run", "at"]
    assert [line.split()[0] for line in lines[4:6]] == ["p=216", "p=512"]
    assert lines[-1] == (
        "p = 512 narrows the band at p = 1000 most. p = 216 narrows it most per core-hour."
    )


def test_without_a_target_it_is_about_four_times_the_largest_run(run, stored):
    done = run("info", stored, "--advise", "-f", "json")
    told = json.loads(done.out)
    assert told["target"] == 500
    assert told["units"] == {"time": "s"}
    (row,) = told["rows"]
    assert row["scale"] == 216
    assert row["core_hours"] == pytest.approx(3 * 216 * row["time"] / 3600)
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
    run, tmp_path, monkeypatch
):
    table = exact_visits(tmp_path / "visits.csv")
    monkeypatch.setenv("CPMODEL_TARGET", "1000")
    assert run("info", table).status == 0
    assert run("info", table, "--advise").out.startswith("At p = 1000 ")


def exact_visits(path):
    rows = [f"main,{p},{3 * p}" for p in (2, 4, 8, 16, 32)]
    path.write_text("\n".join(["callpath,p,visits", *rows]) + "\n", "utf-8")
    return path


def test_what_is_known_exactly_needs_no_run(run, tmp_path):
    table = exact_visits(tmp_path / "visits.csv")
    done = run("info", table, "--advise")
    assert (
        done.out.splitlines()[-1]
        == "The cost at p = 128 is known well enough: no further run is needed."
    )
    assert [line.split()[-2:] for line in done.out.splitlines()[4:5]] == [["-", "-"]]


def two_parameters(path, noise=0.1):
    rng = np.random.default_rng(7)
    rows = [
        f"main/{name},{p},{n},{value * (1 + noise * rng.standard_normal())}"
        for p in (2, 4, 8, 16, 32)
        for n in (10, 20, 40)
        for _ in range(3)
        for name, value in (("a", 3 + 0.1 * n * np.log2(p)), ("b", n))
    ]
    path.write_text("\n".join(["callpath,p,n,time[s]", *rows]) + "\n", "utf-8")
    return path


def test_in_several_parameters_settings_are_proposed(run, tmp_path):
    table = two_parameters(tmp_path / "runs.csv")
    told = json.loads(run("info", table, "--advise", "--at", "p=512,n=80", "-f", "json").out)
    settings = [(row["scale"], row["n"]) for row in told["rows"]]
    assert set(settings) == {(64, 40), (128, 40), (64, 80), (32, 80), (64, 10), (256, 40)}
    assert told["at"] == {"p": 512, "n": 80}
    costs = [row["core_hours"] for row in told["rows"]]
    assert costs == sorted(costs)
    for row in told["rows"]:
        assert row["core_hours"] == pytest.approx(3 * row["scale"] * row["time"] / 3600)
        assert row["band_ratio_least"] <= row["band_ratio"] <= row["band_ratio_most"]
        gain = 1 - np.log(row["band_ratio"]) / np.log(told["band_ratio"])
        assert row["gain"] == pytest.approx(gain)
        assert row["gain_per_core_hour"] == pytest.approx(gain / row["core_hours"])
