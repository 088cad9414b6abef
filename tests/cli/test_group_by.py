"""`rank --group-by NAME`: one ranking per value of an entry of the metadata or a parameter."""

from __future__ import annotations

import csv
import io
import json

import pytest

SCALES = (4, 8, 16, 32, 64)
TITLES = "callpath,p,InputType,time"


@pytest.fixture
def series(tmp_path):
    """Write runs with inputs of two kinds: one takes O(p), the other O(1)."""

    def write(kinds=("Random", "Sorted"), name="runs.csv", titles=TITLES, lacking=()):
        rows = [
            f"main,{p},{kind},{p if kind == kinds[0] else 7 + k}.00{r}"
            for p in SCALES
            for k, kind in enumerate(kinds)
            for r in (1, 2)
        ]
        (tmp_path / name).write_text("\n".join([titles, *rows, *lacking]) + "\n")
        return tmp_path / name

    return write


def rows_of(outcome):
    assert outcome.status == 0, outcome.err
    return list(csv.DictReader(io.StringIO(outcome.out)))


@pytest.mark.parametrize("name", ["InputType", "inputtype"])
def test_each_value_has_a_ranking_of_its_own(run, series, name):
    told = run("rank", series(), "--target", 256, "--group-by", name)
    assert told.status == 0
    random, sorted_ = told.out.split(f"{name} = Sorted (10 runs)")
    assert random.startswith(f"{name} = Random (10 runs)")
    assert "256 s" in random
    assert "O(p)" in random
    assert "O(1)" in sorted_
    assert f"--where {name}=Random" in random
    assert "CPM143" not in told.err


def test_a_ranking_of_a_group_is_that_of_its_condition(run, series):
    path = series()
    grouped = rows_of(run("rank", path, "--target", 256, "--group-by", "InputType", "-f", "csv"))
    for row in grouped:
        (alone,) = rows_of(
            run("rank", path, "--target", 256, "--where", f"InputType={row['group']}", "-f", "csv")
        )
        assert {"group": row["group"], **alone} == row
    assert [row["group"] for row in grouped] == ["Random", "Sorted"]


def test_json_says_what_holds_of_each_group(run, series):
    told = run("rank", series(), "--target", 256, "--group-by", "InputType", "-f", "json")
    document = json.loads(told.out)
    assert document["group_by"] == "InputType"
    assert [each["group"] for each in document["groups"]] == ["Random", "Sorted"]
    assert [each["total"]["at_target"] > 100 for each in document["groups"]] == [True, False]
    assert [row["group"] for row in document["rows"]] == ["Random", "Sorted"]


def test_numbers_are_ascending_and_a_parameter_is_a_group(run, series):
    path = series(kinds=("100", "20", "3"), titles="callpath,p,n,time")
    rows = rows_of(run("rank", path, "--target", 256, "--group-by", "n", "-f", "csv"))
    assert [row["group"] for row in rows] == ["3", "20", "100"]
    assert [row["growth"] for row in rows] == ["O(1)", "O(1)", "O(p)"]


def test_a_stored_experiment_is_grouped_as_well(run, series, tmp_path):
    path = series(kinds=("100", "20", "3"), titles="callpath,p,n,time")
    assert run("fit", path, "-o", tmp_path / "runs.cpm").status == 0
    told = run("rank", tmp_path / "runs.cpm", "--target", 256, "--group-by", "n", "-f", "csv")
    assert [row["growth"] for row in rows_of(told)] == ["O(1)", "O(1)", "O(p)"]


def test_conditions_select_before_groups_are_made(run, series):
    told = run("rank", series(("a", "b", "c")), "--target", 256, "--group-by", "InputType",
               "--where", "InputType!=b,p>=8", "-f", "csv")  # fmt: skip
    assert [row["group"] for row in rows_of(told)] == ["a", "c"]


def test_programs_of_one_directory_are_groups(run, tmp_path):
    import workflow_files as wf

    cases = [wf.case_of(p, name=name) for name in ("Stream", "Solver") for p in wf.SCALES]
    (tmp_path / "run-report.json").write_text(wf.report(cases))
    told = run("rank", tmp_path, "--target", 64, "--group-by", "program", "-f", "csv")
    assert [row["callpath"] for row in rows_of(told)] == ["Solver", "Stream"]


def test_what_tells_no_groups_is_refused(run, series):
    path = series()
    asked = ("rank", path, "--target", 256, "--group-by")
    run(*asked, "Input").fails(2, "no parameter 'Input' in --group-by", "InputType")
    run(*asked, "p").fails(4, "all runs are at one scale")
    many = series(tuple(f"k{k}" for k in range(60)), name="many.csv")
    run("rank", many, "--target", 256, "--group-by", "InputType").fails(2, "60 values")
    few = series(name="few.csv", lacking=["main,4,,3"])
    asked = ("rank", few, "--target", 256, "--group-by", "InputType")
    run(*asked).fails(4, "1 of 21 runs have no 'InputType'", "InputType=?*")
    assert run(*asked, "--where", "InputType=?*").status == 0


def test_hostile_values_reach_no_output(run, series):
    told = run("rank", series(("a\x1b[2J", "b,c")), "--target", 256, "--group-by", "InputType")
    assert "\x1b" not in told.out + told.err


def test_excess_does_not_offer_group_by(run, series):
    assert run("excess", series(), "--group-by", "InputType").status == 2


def test_markdown_has_the_columns_of_the_terminal_for_all_groups(run, series):
    words = ("rank", series(), "--target", 256, "--group-by", "InputType", "-f", "markdown")
    titles, _, *rows = run(*words).out.splitlines()
    assert titles.startswith("| InputType | # | p=64 | p=256 |")
    assert titles.endswith("| call path |")
    assert [row.split(" | ")[0] for row in rows] == ["| Random"] * 2 + ["| Sorted"] * 2
    every = run(*words, "--columns", "all").out.splitlines()[0]
    assert every.startswith("| group | rank | callpath | id |")
