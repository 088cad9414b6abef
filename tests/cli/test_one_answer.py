"""One series has one growth, one run time and one band, whichever command shows them."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from callpath_modeler.history import predictions as prediction_store

EXPECTATIONS = """\
schema = 1
[[expect]]
name = "run time"
value = "<= 1000000 s"
[[expect]]
name = "growth of the run time"
growth = "<= O(p^9)"
[[expect]]
name = "value"
callpath = "main/MPI_Init"
value = "<= 1000000 s"
[[expect]]
name = "growth"
callpath = "main/MPI_Init"
growth = "<= O(p^9)"
[[expect]]
name = "inclusive growth"
callpath = "main/*"
inclusive = true
growth = "<= O(p^9)"
[[expect]]
name = "inclusive growth of one"
callpath = "main/MPI_Init"
inclusive = true
growth = "<= O(p^9)"
"""
NAME = "int main(int, char**)/MPI_Init"


@pytest.fixture
def asked(run):
    """Return a function that returns the JSON of a command."""

    def asked(*words):
        done = run(*words, "-f", "json")
        assert done.status == 0, done.err
        return json.loads(done.out)

    return asked


def row_of(table):
    return next(row for row in table["rows"] if row["callpath"] == NAME)


def ends(row, value="value"):
    return [row[value], row["low"], row["high"]]


@pytest.mark.parametrize("target", ["125", "1000"])
def test_a_check_has_the_numbers_of_the_ranking(asked, lulesh, tmp_path, target):
    file = tmp_path / "expected.toml"
    file.write_text(EXPECTATIONS)
    ranking = asked("rank", lulesh, "--target", target)
    first, run_time = row_of(ranking), ranking["run_time"]
    checked = {row["name"]: row for row in asked("check", lulesh, file, "--target", target)["rows"]}
    assert ends(checked["run time"]) == pytest.approx(ends(run_time, "at_target"), rel=1e-12)
    assert ends(checked["value"]) == pytest.approx(ends(first, "value_at_target"), rel=1e-12)
    for name in ("growth", "inclusive growth of one"):
        assert checked[name]["growth"] == first["growth"]
    assert "run time " in checked["run time"]["message"]
    grows = checked["growth of the run time"]
    # The run time grows no more slowly than its largest part, although its own model does.
    assert run_time["model"].endswith(" * p")
    assert grows["growth"] == first["growth"] == "O(p^(3/2))"
    assert grows["message"].startswith("run time O(")


def test_a_baseline_has_the_growth_and_the_run_time_of_the_ranking(run, asked, lulesh):
    ranking = asked("rank", lulesh, "--target", "125")
    text = run("baseline", lulesh).out
    whole, first = (text.split("[[expect]]")[number] for number in (1, 2))
    assert f"today {ranking['run_time']['at_target']:.1f} s" in whole
    assert f"today {row_of(ranking)['growth']}," in whole
    assert f"today {row_of(ranking)['growth']}," in first


def test_a_comparison_has_the_growth_and_the_run_times_of_the_ranking(run, asked, lulesh):
    for target in ("125", "1000"):
        ranking = asked("rank", lulesh, "--target", target)
        compared = asked("diff", lulesh, lulesh, "--target", target)
        whole = compared["total"]["at_target"]
        assert compared["total"]["is_run_time"]
        assert whole["base"] == pytest.approx(ranking["run_time"]["at_target"], rel=1e-12)
        assert whole["new"] == whole["base"]
        assert row_of(compared)["growth_base"] == row_of(ranking)["growth"]
    text = run("diff", lulesh, lulesh, "--target", "125").out
    assert "run time 22.6 s before, 22.6 s now" in text
    assert re.search(r"^ *22\.6 s +22\.6 s .*run time *$", text, re.MULTILINE)
    assert "add up to 20.6 s before and 20.6 s now" in text


def test_a_comparison_without_run_times_is_of_the_sums(asked, lulesh):
    found = asked("diff", lulesh, lulesh, "-m", "visits")
    assert not found["total"]["is_run_time"]
    costs = [row["base_at_scale"] for row in found["rows"]]
    assert found["total"]["at_scale"]["base"] == pytest.approx(np.nansum(costs))


def test_the_description_has_the_growth_and_the_run_time_of_the_ranking(run, asked, lulesh):
    ranking = asked("rank", lulesh, "--target", "125")
    text = run("show", lulesh, "main/MPI_Init", "--target", "125").out
    assert row_of(ranking)["growth"] in text
    assert f"ran {ranking['run_time']['at_target']:.1f} s" in text


def test_a_history_keeps_the_run_time_and_the_bands_of_the_ranking(run, asked, lulesh, tmp_path):
    ranking, history = asked("rank", lulesh, "--target", "1000"), tmp_path / "history.db"
    done = run("watch", "add", history, lulesh, "--commit", "a", "--target", "1000")
    assert done.status == 0, done.err
    (record,) = prediction_store.predictions(history)
    assert record.is_run_time
    assert record.total == pytest.approx(ends(ranking["run_time"], "at_target"), rel=1e-12)
    place = next(k for k, name in enumerate(record.callpaths) if name.endswith("MPI_Init"))
    first = row_of(ranking)
    assert record.bands[place] == pytest.approx(ends(first, "value_at_target"), rel=1e-12)
    assert record.models[place].count("p^(3/2)") == first["growth"].count("p^(3/2)") == 1


GROWTHS = "schema = 1\n[[expect]]\ncallpath = '**/MPI_Allreduce'\ngrowth = '<= O(log p)'\n"


@pytest.mark.parametrize(
    ("expected", "locations", "target"),
    [
        ("O(log p)", "mean", 125.0),
        ("growths.toml", "sum", 500.0),
        ("runs", "mean", 500.0),
        ("runs", "sum", 125.0),
    ],
)
def test_excess_work_beyond_an_expectation_is_one_number(
    asked, lulesh, tmp_path, expected, locations, target
):
    (tmp_path / "growths.toml").write_text(GROWTHS)
    named = {"growths.toml": tmp_path / "growths.toml", "runs": lulesh}.get(expected, expected)
    options = ("--expect", named, "--locations", locations)
    ranking = asked("rank", lulesh, "--target", target, *options)
    excess = ranking["excess"]
    rows = [row["excess_exclusive"] for row in ranking["rows"]]
    assert np.nansum(np.array(rows, float)) + excess["imbalance"] == pytest.approx(
        excess["program"], abs=1e-9
    )
    assert asked("views", lulesh, "--target", target, *options)["excess"] == excess
    how = ("--pair", f"{ranking['base']},{target}") if target == 125 else ("--target", target)
    last = asked("excess", lulesh, *how, *options)["pairs"][-1]
    assert [last["excess"], last["imbalance"]] == pytest.approx(
        [excess["program"], excess["imbalance"]], abs=1e-9
    )
    if expected == "runs":  # the runs cost exactly what they are expected to cost
        assert excess["program"] == pytest.approx(0, abs=1e-9)
