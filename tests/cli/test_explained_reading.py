"""`info --explain` shows every decision about a source, and a `cpmodel.toml` that states it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest

import working
from case_series import few, write_tables

ROWS = [(1, 100.0), (2, 51.0), (4, 26.3), (8, 14.1), (16, 8.2)]


def joined(separator, head=("ranks", "Wall time", "note", "trial")):
    lines = [separator.join(head)]
    lines += [
        separator.join((str(p), str(round(t * f, 3)), f"n{p}{k}", str(k)))
        for p, t in ROWS
        for k, f in ((1, 1.0), (2, 1.01))
    ]
    return "\n".join(lines) + "\n"


def in_bars():
    head, *lines = joined(" | ").splitlines()
    rows = [f"| {line} |" for line in (head, "---|---|---|---", *lines)]
    return "\n".join(rows).replace("| ---|---|---|--- |", "|---|---|---|---|") + "\n"


def as_json():
    head, *lines = joined(",").splitlines()
    titles = head.split(",")
    rows = [dict(zip(titles, line.split(","), strict=True)) for line in lines]
    return json.dumps([{**r, "ranks": int(r["ranks"]), "Wall time": float(r["Wall time"]),
                        "trial": int(r["trial"])} for r in rows])  # fmt: skip


FORMS = {
    "runs.csv": (joined(","), "commas"),
    "runs.tsv": (joined("\t"), "tabs"),
    "semicolons.csv": (joined(";"), "semicolons"),
    "runs.txt": (joined("   "), "runs of spaces"),
    "runs.md": (in_bars(), "bars, as in Markdown"),
    "runs.json": (as_json(), "JSON"),
}


def explained(run, *sources):
    return json.loads(run("info", *sources, "--explain", "-f", "json").out)


def roles(answer):
    return {row["column"]: row["used_as"] for row in answer["rows"]}


def answers(run, path, *options):
    found = run("rank", path, "--target", "64", "-f", "json", *options)
    return json.loads(found.out)["rows"]


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_table_is_explained(write, run, name):
    text, separator = FORMS[name]
    path = write(text, name)
    answer = explained(run, path)
    assert answer["layout"]["separator"] == separator
    assert roles(answer) == {
        "ranks": "scale: p",
        "Wall time": "default metric",
        "note": "metadata",
        "trial": "number of the repetition",
    }
    properties = {row["name"]: row["read_as"] for row in answer["properties"]}
    assert properties == {
        "cases": "none",
        "repetitions": "2 of each scale",
        "unit of Wall time": "s",
        "scaling": "strong",
    }
    shown = run("info", path, "--explain").out
    assert f"separator  {separator}" in shown
    assert "because" in shown
    assert 'time_column = "Wall time"' in shown


@pytest.mark.parametrize("name", FORMS)
def test_the_printed_configuration_states_the_same_and_nothing_is_inferred(write, run, name):
    path = write(FORMS[name][0], name)
    before = answers(run, path)
    text = explained(run, path)["cpmodel_toml"]
    (path.parent / "cpmodel.toml").write_text(text)
    assert answers(run, path) == before
    again = explained(run, path)
    assert again["cpmodel_toml"] == text
    reasons = {row["column"]: row["because"] for row in again["rows"]}
    assert reasons["Wall time"] == "--time says so"
    assert reasons["trial"] == "--repetition says so"


def test_the_lines_that_are_printed_are_a_configuration(write, run):
    path = write(joined(","))
    before = answers(run, path)
    lines = run("info", path, "--explain").out.splitlines()
    first = lines.index("# as cpmodel.toml beside the data:")
    (path.parent / "cpmodel.toml").write_text("\n".join(lines[first:]) + "\n")
    assert answers(run, path) == before


def test_standard_input_is_explained():
    done = subprocess.run(
        [sys.executable, "-m", "callpath_modeler", "info", "-", "--explain"],
        input=joined(";").encode(),
        capture_output=True,
        timeout=working.HUNG,
        check=False,
        env={**os.environ},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().startswith("table -\n")
    assert "semicolons" in done.stdout.decode()


def test_decimal_commas_units_rows_and_assumed_units_are_told(write, run):
    text = "cores;total;GB\n;;GB\n1;100,5;1\n2;51,25;1\n4;26,75;1\n8;14,5;1\n"
    answer = explained(run, write(text))
    assert answer["layout"]["numbers"] == "decimal commas in total"
    assert answer["layout"]["units"] == "line 2"
    (unit,) = (row for row in answer["properties"] if row["name"].startswith("unit of"))
    assert (unit["read_as"], unit["change_with"]) == ("s", "--unit time_total=ms")
    assert 'unit = ["time_total=s"]' in answer["cpmodel_toml"]


def test_numbers_in_names_are_explained_and_stated(tmp_path, run):
    folder = tmp_path / "runs"
    folder.mkdir()
    for p, t in ROWS:
        for rep in (1, 2):
            path = folder / f"app.p{p}.n30.job{7000 + 13 * p * rep}.r{rep}.folded"
            path.write_text(f"main;solve {round(t * 1e6 * (1 + rep / 100))}\nmain 1000\n")
    answer = explained(run, folder)
    understood = {row["name"]: row["understood_as"] for row in answer["numbers"]}
    assert understood["r"] == "numbers the repetitions"
    (repetitions,) = (row for row in answer["properties"] if row["name"] == "repetitions")
    assert repetitions["read_as"] == "2 of each scale"
    assert "r in file names" in repetitions["because"]
    before = answers(run, folder)
    (folder / "cpmodel.toml").write_text(answer["cpmodel_toml"])
    assert 'p = { from = "name" }' in answer["cpmodel_toml"]
    assert answers(run, folder) == before


def test_cases_of_a_folder_are_explained(tmp_path, run):
    write_tables(tmp_path, few(), "{a}-{i}-p{p}-r{r}")
    answer = explained(run, tmp_path)
    (cases,) = (row for row in answer["properties"] if row["name"] == "cases")
    assert cases["read_as"] == "4"
    assert cases["because"].startswith("words tell runs of one scale apart: ")
    option = shlex.split(cases["change_with"])
    assert run("rank", tmp_path, "--target", "64", *option).status == 0
    assert roles(answer)
