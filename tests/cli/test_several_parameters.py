"""Runs that differ in more than one parameter, on the command line."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import UsageError

P = (8, 16, 32, 64, 128)
N = (10, 20, 30, 40)


@pytest.fixture
def table(tmp_path):
    """Return a long table of a call path with volume work, and of one with messages."""
    rng = np.random.default_rng(5)
    path = tmp_path / "app.csv"
    lines = ["callpath,p,n,rep,time"]
    for p in P:
        for n in N:
            for rep in range(1, 4):
                for name, value in (("main/work", n**3 / p), ("main/send", 0.1 * n * np.log2(p))):
                    lines.append(f"{name},{p},{n},{rep},{value * rng.uniform(0.99, 1.01)}")
    path.write_text("\n".join(lines) + "\n")
    return path


def ranked(run, *words):
    outcome = run("rank", *words, "-f", "csv")
    assert outcome.status == 0, outcome.err
    return {row["callpath"]: row for row in csv.DictReader(outcome.out.splitlines())}


def test_the_target_names_all_parameters(run, table):
    rows = ranked(run, table, "--at", "p=4096,n=400")
    assert float(rows["main/work"]["value_at_target[s]"]) == pytest.approx(400**3 / 4096, rel=0.02)
    assert float(rows["main/send"]["value_at_target[s]"]) == pytest.approx(480, rel=0.02)
    assert rows["main/send"]["growth"] == "O(log p)"
    assert rows["main/work"]["growth"] == "O(p^-1)"


def test_runs_that_vary_one_parameter_at_a_time_are_told_which_run_is_missing(run, tmp_path, table):
    settings = [(p, 10) for p in P] + [(8, n) for n in N[1:]]
    findings = {}
    for name, more in (("cross", []), ("corner", [(P[-1], N[-1])])):
        path = tmp_path / f"{name}.csv"
        lines = [f"main,{p},{n},{5 * p + 7 * n}" for p, n in settings + more]
        path.write_text("\n".join(["callpath,p,n,time", *lines]) + "\n")
        findings[name] = run("rank", path, "--at", "p=512,n=40").err
    assert "CPM207" in findings["cross"]
    assert "a run at p = 128, n = 40 would tell" in findings["cross"]
    assert "CPM207" not in findings["corner"]
    assert "CPM207" not in run("rank", table, "--at", "p=512,n=40").err


def test_where_one_scale_was_run_at_the_values_held_it_is_one_point(run, tmp_path):
    path = tmp_path / "cross.csv"
    settings = [(p, 10) for p in P] + [(8, n) for n in N[1:]]
    lines = [f"main,{p},{n},{p * n}" for p, n in settings]
    path.write_text("\n".join(["callpath,p,n,time", *lines]) + "\n")
    assert "p = 8 (1 point, 8 runs)" in run("rank", path, "--at", "p=64,n=40").out
    assert "(5 points, 8 runs)" in run("rank", path, "--at", "p=64,n=10").out


def test_the_second_parameter_can_be_the_one_that_grows(run, table):
    rows = ranked(run, table, "--at", "n=400")
    assert float(rows["main/work"]["value_at_target[s]"]) == pytest.approx(400**3 / 128, rel=0.02)
    assert rows["main/work"]["growth"] == "O(n^3)"


def test_a_target_that_names_all_parameters_is_along_the_one_that_was_chosen(run, table):
    words = (table, "--parameter", "n", "--at", "p=64,n=400")
    outcome = run("rank", *words)
    assert outcome.out.startswith("app will run 1.00e+06 s at n = 400, p = 64 (n 10 × ")
    assert "--parameter n" in outcome.out.splitlines()[-1]
    assert ranked(run, *words)["main/work"]["growth"] == "O(n^3)"
    assert "time(n, p=64) = " in run("show", table, "main/work", *words[1:]).out
    assert run("rank", table, "--parameter", "n", "--at", "p=64,n=inf").status == 0
    said = run("diff", table, *words).out
    assert said.startswith("At n = 400, p = 64 (predicted): ")
    refused = run("rank", table, "--parameter", "n", "--at", "p=inf,n=40")
    refused.fails(2, "only n may be infinite")


def test_what_is_not_said_is_held_at_its_largest_value_and_said_so(run, table):
    outcome = run("rank", table, "--target", "4096")
    assert outcome.status == 0
    assert "at p = 4096, n = 40 (p 32 × the largest run; " in outcome.out
    assert "measured at n = 40" in outcome.out
    held = "keeps its largest measured value: target: n = 40, the largest measured. "
    assert held in outcome.err
    said = run("rank", table, "--at", "p=4096,n=40")
    assert said.out == outcome.out.replace("--target 4096", "--at p=4096,n=40")
    assert "CPM206" not in said.err


def test_machines_are_told_what_is_held_and_where_was_measured(run, table):
    outcome = run("rank", table, "--at", "p=4096,n=33", "-f", "json")
    document = json.loads(outcome.out)
    assert document["held"] == {"n": 33}
    assert document["measured_at"] == {"n": 30}
    assert document["parameter"] == "p"
    assert document["points"] == list(P)
    one = run("rank", table, "--where", "n=30", "--at", "p=4096", "-f", "json")
    assert json.loads(one.out)["held"] == {}


def test_one_call_path_is_shown_with_both_formulas(run, table):
    outcome = run("--ascii", "show", table, "main/work", "--at", "p=1024,n=35")
    assert outcome.status == 0
    assert "time(p, n) = " in outcome.out
    assert "p^-1 * n^3" in outcome.out or "p^-1 n^3" in outcome.out
    assert "time(p, n=35) = " in outcome.out
    assert "at p = 1024, n = 35" in outcome.out
    assert ", n = 40\n" in outcome.out


def test_models_are_stored_with_all_parameters(run, table, tmp_path):
    store = tmp_path / "app.cpm"
    assert run("fit", table, "-o", store).status == 0
    for at in ("p=4096,n=400", "n=400,p=64", "p=4096,n=30"):
        assert ranked(run, store, "--at", at) == ranked(run, table, "--at", at)


def test_exported_models_are_formulas_in_all_parameters(run, table):
    outcome = run("export", table, "--what", "models", "-f", "json")
    document = json.loads(outcome.out)
    assert document["parameters"] == ["p", "n"]
    formulas = {row["callpath"]: row["model"] for row in document["rows"]}
    assert "log2(p) * n" in formulas["main/send"]


def test_views_and_excess_work_are_at_the_values_held(run, table):
    outcome = run("views", table, "--at", "p=4096,n=40")
    assert outcome.status == 0
    assert "at p = 4096, n = 40 (p 32 × the largest run; " in outcome.out


def test_excess_work_is_between_scales_at_one_size(run, table):
    largest = run("excess", table)
    assert largest.out.startswith("From p = 8 to 128 at n = 40, ")
    assert "CPM206" in largest.err
    said = run("excess", table, "--at", "n=40")
    assert said.out == largest.out.replace("bottom-up", "bottom-up --at n=40")
    assert "CPM206" not in said.err
    alone = run("excess", table, "--where", "n=40")
    assert said.out.splitlines()[2:-1] == alone.out.splitlines()[2:-1]
    small = run("excess", table, "--at", "n=10", "--pair", "16,64", "-f", "json")
    document = json.loads(small.out)
    assert document["held"] == {"n": 10}
    assert [(pair["base"], pair["scale"]) for pair in document["pairs"]] == [(16, 64)]
    p, q = (1000 / p + np.log2(p) for p in (16, 64))
    strong = 1 - 16 * p / (64 * q)
    assert document["formula"] == "strong"
    assert document["pairs"][0]["excess"] == pytest.approx(strong, abs=0.02)


def test_excess_work_over_sizes_holds_p(run, table):
    outcome = run("excess", table, "--parameter", "n", "--at", "p=64", "-f", "json")
    document = json.loads(outcome.out)
    assert (document["parameter"], document["held"]) == ("n", {"p": 64})
    first, last = (n**3 / 64 + 0.6 * n for n in (10, 40))
    assert document["pairs"][-1]["excess"] == pytest.approx(1 - first / last, abs=0.02)


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        (["--at", "n=35"], "no two scales of p were measured at n = 35", "10, 20, 30, 40"),
        (["--at", "p=35"], "excess work is between scales of p", "--pair"),
        (["--at", "q=35"], "no parameter 'q'", "parameters: p, n"),
        (["--at", "n=20", "--pair", "8,100"], "no run at p = 100, n = 20", "--at p=100,n=20"),
        (["--at", "n"], "malformed", "--at"),
    ],
)
def test_excess_work_is_between_what_was_measured(run, table, words, said, hint):
    run("excess", table, *words).fails(2, said, hint)


def test_where_no_two_scales_are_of_one_size_there_is_no_excess_work(run, tmp_path):
    path = tmp_path / "diagonal.csv"
    settings = [(8, 10), (8, 20), (16, 30), (32, 40)]
    lines = [f"main,{p},{n},1,{1.0 * p * n}" for p, n in settings]
    path.write_text("\n".join(["callpath,p,n,rep,time", *lines]) + "\n")
    run("excess", path).fails(4, "no two scales of p were measured where others are the same")


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--at", "p=4096,q=3"], 2, "no parameter 'q'"),
        (["--at", "p=4096,n=0"], 2, "not positive"),
        (["--at", "p=4096,n=inf"], 2, "only p may be infinite"),
        (["--method", "classic", "--target", "4096"], 4, "--where n=40"),
        (["--where", "n>=30", "--target", "4096"], 4, "2 points of n (30, 40)"),
    ],
)
def test_what_cannot_be_answered_ends_in_one_clear_line(run, table, words, status, said):
    run("rank", table, *words).fails(status, said)


def test_growth_without_end_is_asked_for_one_parameter(run, table):
    outcome = run("rank", table, "--at", "p=inf,n=40")
    assert outcome.out.startswith("As p grows without end, send grows fastest: O(log p).")


def test_a_real_experiment_in_two_parameters_is_ranked(run, shared_data):
    series = shared_data / "third_party" / "caliper" / "lulesh_quartz_weak_p8-125.jsonl"
    outcome = run("rank", series, "--at", "p=343,size=50", "-f", "json")
    document = json.loads(outcome.out)
    assert document["held"] == document["measured_at"] == {"size": 50}
    assert len(document["rows"]) == 55
    total = document["total"]
    assert total["low"] < total["at_target"] < total["high"] < 11 * total["at_target"]


def test_expectations_are_held_at_the_values_named(run, table, tmp_path):
    file = tmp_path / "e.toml"
    file.write_text(
        "schema = 1\ntarget = { p = 4096 }\n"
        "[[expect]]\nname = 'work'\ncallpath = 'main/work'\nvalue = '<= 20 s'\n"
    )
    assert run("check", table, file).status == 0
    assert run("check", table, file, "--at", "p=4096,n=400").status == 1


def test_one_model_predicts_at_named_values(table):
    model = cpm.fit(cpm.load([table]))["main/work"]
    assert repr(model).startswith("time(p, n=40) = ")
    found = model.predict(p=[1024, 1024], n=[100, 200])
    assert found.value == pytest.approx([100**3 / 1024, 200**3 / 1024], rel=0.02)
    assert (found.low <= found.value).all()
    assert model.predict(1024).value == model.predict(p=1024).value
    for named in ({"q": 3}, {"n": 3}, {}):
        with pytest.raises(UsageError) as caught:
            model.predict(**named)
        assert caught.value.hint == "give targets, or values of p, n by name"


def test_values_are_told_in_full_so_that_a_hint_can_be_pasted(run, tmp_path):
    path = tmp_path / "large.csv"
    sizes = (67108864, 134217728, 268435456)
    rows = [f"main,{p},{n},{n / p}" for p in (2, 4, 8, 16, 32) for n in sizes]
    path.write_text("callpath,p,n,time\n" + "\n".join(rows) + "\n")
    assert "n = 268435456, the largest measured" in run("rank", path, "--target", 64).err
    refused = run("rank", path, "--target", 64, "--method", "classic")
    refused.fails(4, "2 parameters vary (p, n)")
    hint = refused.err.partition("--where ")[2].split()[0]
    assert hint == "n=268435456"
    assert run("rank", path, "--target", 64, "--method", "classic", "--where", hint).status == 0
