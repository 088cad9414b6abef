"""Targets that were measured, on the command line."""

from __future__ import annotations

import csv
import json
import re
import shlex

import numpy as np
import pytest

P = (8, 16, 32, 64, 128)


def write(path, seed, at_32):
    """Write a table of three repetitions of a program that is `at_32` times slower at p = 32."""
    random = np.random.default_rng(seed)
    lines = ["callpath,p,rep,time"]
    for p in P:
        slow = at_32 if p == 32 else 1.0
        for rep in range(1, 4):
            for name, value in (("main", 5.0), ("main/f", 0.1 * p * slow)):
                lines.append(f"{name},{p},{rep},{value * random.uniform(0.99, 1.01)}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "app.csv", 5, 1.5)


@pytest.fixture
def before(tmp_path):
    return write(tmp_path / "before.csv", 4, 1.0)


def rows_of(outcome):
    assert outcome.status == 0, outcome.err
    return {row["callpath"]: row for row in csv.DictReader(outcome.out.splitlines())}


def test_a_target_that_was_run_is_ranked_by_what_was_measured(run, table):
    outcome = run("rank", table, "--target", "32")
    assert re.match(r"app ran 9\.8\d s at p = 32 \(mean of 3 runs, ", outcome.out)
    row = rows_of(run("rank", table, "--target", "32", "-f", "csv"))["main/f"]
    assert row["basis"] == "measured"
    assert float(row["value_at_target[s]"]) == pytest.approx(4.8, rel=0.01)
    assert float(row["low[s]"]) < 4.8 < float(row["high[s]"])
    # No model contains the step at p = 32.
    assert float(row["predicted[s]"]) == pytest.approx(3.2, rel=0.2)


def test_models_are_asked_there_too_and_what_comes_next_asks_them(run, table):
    outcome = run("rank", table, "--target", "32", "--predicted")
    assert " at p = 32 (inside the data; 3 runs there: 9.8" in outcome.out.splitlines()[0]
    (line,) = [line for line in outcome.out.splitlines() if line.startswith("next: ")]
    words = shlex.split(line.removeprefix("next: cpmodel "))
    assert "--predicted" in words
    shown = run(*words)
    assert shown.status == 0
    assert "mean of 3 runs" not in shown.out
    row = rows_of(run("rank", table, "--target", "32", "--predicted", "-f", "csv"))["main/f"]
    assert row["basis"] == "predicted"
    assert row["value_at_target[s]"] == row["predicted[s]"]


def test_views_and_pages_lead_with_what_was_measured(run, table):
    assert " at p = 32 (mean of 3 runs, " in run("views", table, "--target", "32").out
    page = run("report", table, "--target", "32").out
    assert "app ran 9.83 s at p = 32 (mean of 3 runs, " in page.replace("\N{NO-BREAK SPACE}", " ")
    asked = run("report", table, "--target", "32", "--predicted").out
    assert "app will run " in asked
    assert "--predicted" in asked  # the command that makes it again


def test_show_has_both_what_was_measured_and_how_far_the_model_is_off(run, table):
    lines = run("show", table, "main/f", "--target", "32").out.splitlines()
    assert lines[1].startswith("at p = 32 (mean of 3 runs): 4.8")
    assert ", error " in lines[2]


def test_exported_rankings_and_profiles_are_measured(run, table):
    outcome = run("export", table, "--what", "ranking", "--target", "32", "-f", "json")
    document = json.loads(outcome.out)
    assert (document["basis"], document["repetitions"]) == ("measured", 3)
    folded = run("export", table, "--target", "32", "-f", "folded").out
    predicted = run("export", table, "--target", "32", "-f", "folded", "--predicted").out
    first, second = (float(text.splitlines()[-1].split()[-1]) for text in (folded, predicted))
    assert first > second


def test_expectations_and_rankings_say_the_same_of_a_measured_target(run, table, tmp_path):
    path = tmp_path / "e.toml"
    path.write_text('schema = 1\n[[expect]]\ncallpath = "main/f"\nvalue = "<= 4 s"\n')
    checked = json.loads(run("check", table, path, "--target", "32", "-f", "json").out)["rows"][0]
    row = rows_of(run("rank", table, "--target", "32", "-f", "csv"))["main/f"]
    assert checked["basis"] == row["basis"]
    assert checked["value"] == pytest.approx(float(row["value_at_target[s]"]))


def test_all_parameters_have_to_be_where_they_were_measured(run, tmp_path):
    random, path = np.random.default_rng(4), tmp_path / "two.csv"
    lines = ["callpath,p,n,rep,time"]
    for p in P:
        for n in (10, 20, 40):
            lines += [f"main,{p},{n},{k},{n * p * random.uniform(0.99, 1.01)}" for k in (1, 2)]
    path.write_text("\n".join(lines) + "\n")
    seen = run("rank", path, "--at", "p=32,n=20")
    assert re.match(r"two ran 6\d\d s at p = 32, n = 20 \(mean of 2 runs, ", seen.out)
    between = run("rank", path, "--at", "p=32,n=30")
    assert re.match(r"two will run 9\d\d s at p = 32, n = 30 \(inside the data; ", between.out)


def test_a_stored_experiment_leads_with_what_was_measured(run, table, tmp_path):
    stored = tmp_path / "app.cpm"
    assert run("fit", table, "-o", stored).status == 0
    direct = run("rank", table, "--target", "32", "-f", "csv").out
    assert run("rank", stored, "--target", "32", "-f", "csv").out == direct


def test_no_file_makes_models_answer(run, table, tmp_path):
    (tmp_path / "cpmodel.toml").write_text("[defaults]\npredicted = true\n")
    run("rank", table, "--target", "32").fails(2, "predicted")


def test_a_difference_at_a_target_that_both_ran_is_that_of_the_runs(run, before, table):
    outcome = run("diff", before, table, "--target", "32")
    text = " ".join(outcome.out.split())
    assert text.startswith("At p = 32 (mean of 3 runs): 8.2")
    assert "1 call path worse in these runs: main/f (+50 %)" in text
    assert "base, new: measured at p = 32; p=32: change there" in text
    row = rows_of(run("diff", before, table, "--target", "32", "-f", "csv"))["main/f"]
    assert (row["basis"], row["verdict_at_target"]) == ("measured", "worse")
    assert float(row["relative_at_target"]) == pytest.approx(0.5, abs=0.03)
    assert float(row["low_at_target"]) < 0.5 < float(row["high_at_target"])
    assert float(row["predicted_new[s]"]) == pytest.approx(3.2, rel=0.2)
    assert row["predicted_verdict"] == "not shown"
    document = json.loads(run("diff", before, table, "--target", "32", "-f", "json").out)
    assert document["basis"] == "measured"
    assert document["base"]["repetitions"] == document["new"]["repetitions"] == 3
    assert document["total"]["at_target"]["relative"] == pytest.approx(0.2, abs=0.03)
    assert document["total"]["predicted"]["verdict"] == "not shown"


def test_models_are_asked_for_a_difference_and_the_runs_stand_beside_it(run, before, table):
    asked = ("diff", before, table, "--target", "32", "--predicted")
    outcome = run(*asked)
    text = " ".join(outcome.out.split())
    assert text.startswith("At p = 32 (predicted; measured 8.2")
    assert "p=32: change predicted there" in text
    (line,) = [line for line in outcome.out.splitlines() if line.startswith("next: ")]
    assert line.endswith("--predicted")
    row = rows_of(run(*asked, "-f", "csv"))["main/f"]
    assert row["basis"] == "predicted"
    assert row["new_at_target[s]"] == row["predicted_new[s]"]


def test_models_of_the_largest_scale_have_a_column_of_another_name(run, before, table):
    outcome = run("diff", before, table, "--target", "128", "--predicted")
    (header,) = [line for line in outcome.out.splitlines() if line.endswith("call path")]
    assert header.split()[:4] == ["base", "new", "p=128", "predicted"]
    measured = run("diff", before, table, "--target", "128").out
    assert measured.count("At p = 128 (mean of 3 runs)") == 1
    assert "At p = 128 (measured):" not in measured


def test_a_limit_is_held_against_the_runs_of_the_target(run, before, table):
    asked = ("diff", before, table, "--fail-on", "worse>5%")
    assert run(*asked).status == 0
    told = run(*asked, "--target", "32")
    assert told.status == 1
    assert "worse: main/f: +50 % at p = 32" in told.err
    assert run(*asked, "--target", "32", "--predicted").status == 0
