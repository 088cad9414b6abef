"""Series of several algorithms and inputs: one line for each case, and options that choose one."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import shlex

import pytest

import case_series as cs
import workflow_files as wf
from cells import cells

SIZES = cs.SIZES[:3]
SCALES = cs.SCALES[:5]
TARGET = 128
WRITERS = {
    "names": lambda path, runs: cs.write_folded(path, runs, "{a}-{i}-n{n}-p{p}-r{r}"),
    "folders": lambda path, runs: cs.write_folded(path, runs, "{a}/{i}/n{n}.p{p}.r{r}"),
    "own call paths": lambda path, runs: cs.write_folded(
        path, runs, "{a}/{i}/n{n}.p{p}.r{r}", own_names=True
    ),
    "caliper": lambda path, runs: cs.write_cali(path, runs, "230711-163800_2063087_{x}"),
    "tables": lambda path, runs: cs.write_tables(path, runs, "{a}-{i}-n{n}-p{p}-r{r}"),
    "one table": lambda path, runs: cs.write_tables(path, runs, "all") / "all.csv",
}
KEYS = {"caliper": ("algorithm", "InputType"), "tables": ("algorithm", "input"),
        "one table": ("algorithm", "input")}  # fmt: skip


@pytest.fixture(params=WRITERS)
def series(request, tmp_path):
    """A series of 2 algorithms, 2 inputs, 3 sizes, 5 scales, 2 repetitions; its keys."""
    runs = cs.runs(cs.ALGORITHMS[:2], cs.INPUTS[:2], SIZES, SCALES)
    path = WRITERS[request.param](tmp_path / "runs", runs)
    return path, *KEYS.get(request.param, ("kind", "kind2"))


def rows_of(outcome):
    assert outcome.status == 0, outcome.err
    return list(csv.DictReader(io.StringIO(outcome.out)))


def words(row):
    return frozenset(row["case"].split("/"))


EVERY = {frozenset(pair) for pair in itertools.product(cs.ALGORITHMS[:2], cs.INPUTS[:2])}


def number(row, column):
    return float(next(value for name, value in row.items() if name.partition("[")[0] == column))


def test_without_a_choice_there_is_one_line_for_each_case(run, series):
    path, *_ = series
    text = run("rank", path, "--target", TARGET)
    assert text.status == 0, text.err
    head, *lines = text.out.split("\n\n")[1].splitlines()
    assert head.split()[:3] == ["case", "runs", "p=32"]
    assert [line.split()[1] for line in lines] == ["30"] * 4
    assert {frozenset(line.split()[0].split("/")) for line in lines} == EVERY
    rows = rows_of(run("rank", path, "--target", TARGET, "-f", "csv"))
    assert [row["case"] for row in rows] == [line.split()[0] for line in lines]
    values = [number(row, "value_at_target") for row in rows]
    assert values == sorted(values, reverse=True)
    for row in rows:
        (algorithm,) = words(row) & {*cs.ALGORITHMS}
        (kind,) = words(row) & {*cs.INPUTS}
        truth = cs.RunOfCase(algorithm, kind, SIZES[-1], TARGET, 1).times()
        # A folded stack has samples: milliseconds here.
        scale = 1 if row["metric"] == "time" else 1000
        assert number(row, "value_at_target") == pytest.approx(scale * sum(truth.values()), rel=0.1)
        assert row["callpath"] == "main/exchange"
        assert row["growth"] == "O(p)"


def test_the_line_of_a_case_is_the_ranking_that_the_last_line_proposes(run, series):
    path, *_ = series
    out = run("rank", path, "--target", TARGET).out
    command = out.partition("next: cpmodel ")[2].replace("\\\n", " ")
    alone = json.loads(run(*shlex.split(command), "-f", "json").out)
    first = rows_of(run("rank", path, "--target", TARGET, "-f", "csv"))[0]
    assert number(first, "value_at_target") == alone["total"]["at_target"]
    assert first["callpath"] == alone["rows"][0]["callpath"]
    assert number(first, "share_at_target") == alone["rows"][0]["share_at_target"]


def test_a_case_is_chosen_by_name_word_condition_and_group(run, series):
    path, algorithm, kind = series
    asked = ("rank", path, "--target", TARGET, "-f", "csv")
    every = {words(row): row for row in rows_of(run(*asked))}
    one = rows_of(run(*asked, "--case", "merge/reverse"))
    assert "case" not in one[0]
    assert one == rows_of(run(*asked, "--case", "merge", "--case", "reverse"))
    assert one == rows_of(run(*asked, "--where", f"{algorithm}=merge,{kind}=reverse"))
    assert one == rows_of(run(*asked, "--where", f"{kind}=reverse", "--case", "merge"))
    two = rows_of(run(*asked, "--case", "merge"))
    assert [row["case"] for row in two] == ["random", "reverse"]
    for row in two:
        whole = every[frozenset({"merge", row["case"]})]
        assert {**row, "case": ""} == {**whole, "case": ""}
    grouped = rows_of(run(*asked, "--case", "reverse", "--group-by", algorithm))
    of_merge = [row for row in grouped if row["group"] == "merge"]
    assert of_merge == [{"group": "merge", **row} for row in one]
    both = rows_of(run(*asked, "--group-by", algorithm))
    assert [(row["group"], row["case"]) for row in both][2:] == [
        ("merge", "random"),
        ("merge", "reverse"),
    ]
    by_size = "InputSize" if kind == "InputType" else "n"
    sizes = rows_of(run(*asked, "--case", "merge", "--group-by", by_size))
    assert [int(float(row["group"])) for row in sizes] == [n for n in SIZES for _ in range(2)]


def test_info_has_one_line_for_each_case_without_models(run, series):
    path, *_ = series
    out = run("info", path).out
    head, *lines = out.split("\n\n")[1].splitlines()
    assert head.split() == ["case", "runs", "p=32", "95%", "interval", "share", "call", "path"]
    assert {frozenset(line.split()[0].split("/")) for line in lines} == EVERY
    chosen = run("info", path, "--case", "merge/random").out
    assert "30 runs of 15 points" in chosen
    assert "case" in rows_of(run("info", path, "-f", "csv"))[0]


@cells(
    "command",
    [
        ("views", "--target", "128"),
        ("show", "main/exchange", "--target", "128"),
        ("export", "-f", "csv"),
        ("fit", "-o", "new.cpm"),
        ("excess",),
        ("report", "--target", "128", "-o", "page.html"),
        ("info", "--advise"),
        ("baseline",),
        ("diff", "{path}", "--target", "128"),
    ],
)
def test_other_commands_need_one_case_and_say_how_to_choose_it(run, tmp_path, command):
    path = WRITERS["names"](tmp_path / "runs", cs.few())
    name, *rest = command
    words = [name, path, *(tmp_path / word if word.endswith((".cpm", ".html")) else
                           word.format(path=path) for word in rest)]  # fmt: skip
    refused = run(*words)
    refused.fails(2, "2 cases of 'kind': bitonic, merge; 2 cases of 'kind2': random, reverse")
    option = shlex.split(refused.complaint.partition("choose one with ")[2].partition(",")[0])
    assert option[0] == "--case"
    assert run(*words, *option).status == 0


def test_a_case_that_has_no_model_is_named_and_does_not_refuse_the_others(run, tmp_path):
    runs = cs.runs(("quick", "merge"), ("random",))
    cs.write_folded(tmp_path / "runs", runs, "{a}-n{n}-p{p}-r{r}")
    for path in (tmp_path / "runs").glob("merge-n*-p*-r*"):
        if "-n65536-p2-" not in path.name and "-n65536-p4-" not in path.name:
            path.unlink()
    out = run("rank", tmp_path / "runs", "--target", TARGET)
    assert out.status == 0, out.err
    assert "merge: 2 points of p (2, 4): too few for a model" in " ".join(out.out.split())
    rows = rows_of(run("rank", tmp_path / "runs", "--target", TARGET, "-f", "csv"))
    assert [(row["case"], bool(row["error"])) for row in rows] == [
        ("quick", False),
        ("merge", True),
    ]


def test_options_for_one_ranking_ask_for_a_case(run, tmp_path):
    path = WRITERS["names"](tmp_path / "runs", cs.few())
    refused = run("rank", path, "--target", TARGET, "--verify", path)
    refused.fails(2, "--verify is for one case", "--case bitonic/random")


def test_a_configuration_file_may_choose_the_case(run, tmp_path):
    path = WRITERS["names"](tmp_path / "runs", cs.few())
    config = tmp_path / "config.toml"
    config.write_text('[defaults]\ncase = ["merge", "random"]\n')
    chosen = run("--config", config, "rank", path, "--target", TARGET, "-f", "csv")
    assert rows_of(chosen) == rows_of(
        run("rank", path, "--target", TARGET, "-f", "csv", "--case", "merge/random")
    )


def test_names_of_hostile_cases_reach_no_output(run, tmp_path):
    rows = [f"a\x1b[2J,{p},{9 / p}\nb/c,{p},{7 / p}" for p in SCALES]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["input,p,time", *rows, ""]))
    told = run("rank", path, "--target", TARGET)
    assert "\x1b" not in told.out + told.err
    assert told.status == 0
    assert run("rank", path, "--target", TARGET, "--case", "b/c").status == 0


def test_two_experiments_are_compared_in_one_case_that_one_of_them_may_have_alone(run, tmp_path):
    several = WRITERS["names"](tmp_path / "runs", cs.few())
    alone = WRITERS["names"](tmp_path / "new", cs.runs(("merge",), ("random",), cs.SIZES[:1]))
    asked = ("diff", several, alone, "--target", TARGET)
    run(*asked).fails(2, "2 cases of 'kind'")
    assert "no difference is shown" in run(*asked, "--case", "merge/random").out
    asked = ("diff", alone, alone, "--target", TARGET)
    run(*asked, "--case", "merge/random").fails(2, "no case 'merge/random'", "omit --case")


@pytest.mark.parametrize("form", ["hatchet", "folded", "speedscope"])
def test_no_export_is_a_mean_over_cases(run, tmp_path, form):
    path = WRITERS["names"](tmp_path / "runs", cs.few())
    run("export", path, "-f", form).fails(2, "2 cases of 'kind'")
    run("export", path, "--what", "values", "-f", "csv").fails(2, "2 cases of 'kind'")


def test_programs_of_different_names_are_cases(run, tmp_path):
    cases = [wf.case_of(p, name=name) for name in ("Stream", "Solver") for p in wf.SCALES]
    (tmp_path / "run-report.json").write_text(wf.report(cases))
    rows = rows_of(run("rank", tmp_path, "--target", 64, "-f", "csv"))
    assert {row["case"] for row in rows} == {"Stream", "Solver"}
    run("views", tmp_path, "--target", 64).fails(2, "2 cases of 'program'", "--case Stream")
    out = run("views", tmp_path, "--target", 64, "--case", "Stream").out
    assert "Stream" in out
    assert "Solver" not in out


@pytest.fixture
def one_odd_case(tmp_path):
    """Two cases; some runs of the second one state another parameter."""
    for p in (2, 4, 8, 16):
        for algorithm, name in (("quick", f"p{p}"), ("heap", f"{'n' if 2 < p < 9 else 'p'}{p}")):
            path = tmp_path / "runs" / algorithm / f"app.{name}.folded"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"main;solve {1_000_000 // p}\n")
    return tmp_path / "runs"


def test_a_case_whose_runs_do_not_belong_together_is_left_out_and_named(run, one_odd_case):
    done = run("rank", one_odd_case, "--target", TARGET, "-f", "csv")
    assert [row["case"] for row in rows_of(done)] == ["quick"]
    assert "A profile was not used: case heap. (CPM101)" in done.err
    told = run("info", one_odd_case, "--diagnostics").out
    assert "case heap: " in told
    assert "no parameter 'n' in the name of this run" in told


def test_the_error_of_the_only_case_with_runs_is_the_answer(run, one_odd_case):
    refused = run("rank", one_odd_case, "--target", TARGET, "--case", "heap")
    refused.fails(2, "heap/app.p2.folded: no parameter 'n' in the name of this run")
    strict = run("rank", one_odd_case, "--target", TARGET, "--strict")
    strict.fails(2, "cpmodel: heap: ", "no parameter 'n' in the name of this run")


def test_of_predictions_with_overlapping_bands_no_case_is_the_first(run, tmp_path):
    path = tmp_path / "sorts.csv"
    rows = {"quick": ["1,10", "2,3.4", "4,6.0"], "heap": ["1,14", "2,17.5", "4,4.2"]}
    cases = [f"{name},{row}" for name, of_case in rows.items() for row in of_case]
    path.write_text("\n".join(["algo,p,walltime [min]", *cases]))
    headline = run("rank", path, "--target", "64").out.split("\n\n")[0]
    headline = " ".join(headline.split())
    table = {row["case"]: row for row in rows_of(run("rank", path, "--target", "64", "-f", "csv"))}
    assert max(number(row, "trust") for row in table.values()) <= 1
    low, high = (max(number(row, end) for row in table.values()) for end in ("low", "high"))
    assert min(number(row, "high") for row in table.values()) > low, high
    assert "it is not known which of 2 cases takes longest: " in headline
    assert "heap " in headline
    assert " or " in headline
    assert "the fastest" not in headline


def test_a_case_whose_band_is_apart_is_named_with_its_cost(run, tmp_path):
    path = tmp_path / "sorts.csv"
    costs = {"quick": 1.0, "merge": 1.002, "heap": 9.0}
    rows = [
        f"{name},{p},{cost * (5 + 100 / p) * (1 + 0.002 * repetition)}"
        for name, cost in costs.items()
        for p in (2, 4, 8, 16, 32)
        for repetition in range(3)
    ]
    path.write_text("\n".join(["algo,p,time", *rows]))
    headline = " ".join(run("rank", path, "--target", "64").out.split("\n\n")[0].split())
    assert re.search(r"heap takes longest of 3 cases: \d", headline), headline
    assert "It is not known which is the fastest: quick " in headline
    measured = " ".join(run("rank", path, "--target", "32").out.split("\n\n")[0].split())
    assert "quick is the fastest: " in measured, "measured costs have an order"
