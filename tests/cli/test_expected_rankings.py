"""`rank --expect`: verdicts of expectations in tables, CSV, JSON and graphs."""

from __future__ import annotations

import csv
import io
import json

import networkx as nx
import pytest

EXPECTATIONS = """\
schema = 1
target = { p = 1000 }

[[expect]]
name = "waits are short"
callpath = "**/MPI_Wait*"
value = "<= 500 ms"

[[expect]]
name = "kernels do not grow"
callpath = "**/Calc{Kinematics,Q,Pressure}ForElems"
metric = "visits"
growth = "O(1)"

[[expect]]
name = "start-up"
callpath = "main/MPI_Init"
growth = "<= O(log p)"
xfail = "a known bug"

[[expect]]
name = "start-up is not everything"
callpath = "main/MPI_Init"
value = "<= 1e6 s"

[[expect]]
name = "the whole run"
value = "<= 50 s"
"""


@pytest.fixture(scope="module")
def lulesh(samples):
    return samples / "lulesh"


@pytest.fixture
def expectations(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text(EXPECTATIONS)
    return path


def rows(text):
    return {row["callpath"]: row for row in csv.DictReader(io.StringIO(text))}


def test_the_table_has_a_word_beside_each_call_path_that_an_expectation_names(
    run, lulesh, expectations
):
    done = run("rank", lulesh, "--target", 1000, "--expect", expectations)
    assert done.status == 0, done.err  # `check` has a status for verdicts
    lines = done.out.splitlines()
    head = next(k for k, line in enumerate(lines) if line.lstrip().startswith("#"))
    assert " check " in lines[head]
    at = lines[head].index("check")
    words = {line.split()[-1]: line[at : at + 6].strip() for line in lines[head + 1 :] if line}
    assert words["main/MPI_Init"] == "XFAIL"
    assert words["main/LagrangeLeapFrog/LagrangeNodal/CalcForceForNodes/MPI_Waitall"] == "FAIL"
    assert words["main/TimeIncrement/MPI_Allreduce"] == ""
    assert words["total"] == "FAIL"
    assert "expectations: 2 failed, 2 passed, 1 failed as expected" in done.out
    assert f"cpmodel check {lulesh} {expectations} --target 1000" in done.out


def test_the_column_stays_where_others_go(run, lulesh, expectations, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = run("rank", lulesh, "--target", 1000, "--expect", expectations, "-n", 3).out
    assert any(" check " in line for line in out.splitlines())


def test_csv_and_json_have_the_verdict_and_the_expectation_that_it_comes_from(
    run, lulesh, expectations
):
    asked = ("rank", lulesh, "--target", 1000, "--expect", expectations, "-f")
    found = rows(run(*asked, "csv").out)
    init = found["int main(int, char**)/MPI_Init"]
    assert (init["verdict"], init["expectation"]) == ("xfail", "start-up")
    kernel = next(row for path, row in found.items() if path.endswith("CalcPressureForElems(...)")
                  or "CalcPressureForElems" in path.rpartition("/")[2])  # fmt: skip
    assert (kernel["verdict"], kernel["expectation"]) == ("pass", "kernels do not grow")
    assert found["int main(int, char**)/void TimeIncrement(Domain&)/MPI_Allreduce"]["verdict"] == ""
    header = json.loads(run(*asked, "json").out)["expectations"]
    assert header["program"] == "fail"
    assert header["passed"] is False
    assert header["counts"] == {"pass": 2, "fail": 2, "xfail": 1}


def test_verdicts_of_call_paths_are_those_that_check_counts(run, lulesh, expectations):
    found = rows(
        run("rank", lulesh, "--target", 1000, "--expect", expectations, "-f", "csv").out
    ).values()
    told = json.loads(run("check", lulesh, expectations, "-f", "json").out)["rows"]
    waits = next(row for row in told if row["name"] == "waits are short")
    by_name = [row["verdict"] for row in found if row["expectation"] == "waits are short"]
    assert by_name.count("fail") == waits["broken"]
    assert by_name.count("unsure") == waits["unsure"]
    assert len(by_name) == waits["callpaths"]


def test_without_the_option_there_are_no_such_columns(run, lulesh):
    head = run("rank", lulesh, "--target", 1000, "-f", "csv").out.splitlines()[0]
    assert "verdict" not in head
    assert "expectations" not in json.loads(run("rank", lulesh, "--target", 1000, "-f", "json").out)


@pytest.mark.parametrize("form", ["graphml", "dot"])
def test_graphs_carry_verdicts(run, lulesh, expectations, form, tmp_path):
    path = tmp_path / f"g.{form}"
    done = run("export", lulesh, "--target", 1000, "--expect", expectations, "-o", path)
    assert done.status == 0, done.err
    if form == "dot":
        assert 'verdict="fail", expectation="waits are short"' in path.read_text()
        return
    nodes = nx.read_graphml(path).nodes
    init = next(data for _, data in nodes(data=True) if data["callpath"].endswith("/MPI_Init"))
    assert (init["verdict"], init["expectation"], init["rank"]) == ("xfail", "start-up", 1)
    free = next(data for _, data in nodes(data=True) if data["callpath"].endswith("/MPI_Allreduce"))
    assert "verdict" not in free


def test_an_exported_ranking_has_the_columns(run, lulesh, expectations):
    done = run("export", lulesh, "--target", 1000, "--expect", expectations, "--what", "ranking",
               "-f", "csv")  # fmt: skip
    assert rows(done.out)["int main(int, char**)/MPI_Init"]["verdict"] == "xfail"


def test_models_have_no_verdicts(run, lulesh, expectations):
    run("export", lulesh, "--expect", expectations, "-f", "csv").fails(2, "--expect")


def test_a_file_that_is_not_understood_is_refused_before_anything_is_read(run, tmp_path):
    path = tmp_path / "e.toml"
    path.write_text("schema = 1\n[[expect]]\ngrowht = 3\n")
    run("rank", tmp_path / "nothing", "--target", 8, "--expect", path).fails(3, "e.toml:3")


def test_at_infinity_the_file_says_where_values_are_judged(run, lulesh, expectations):
    done = run("rank", lulesh, "--target", "inf", "--expect", expectations)
    assert done.status == 0, done.err
    assert "expectations: 2 failed" in done.out


def test_a_configured_file_is_for_what_has_verdicts(run, lulesh, expectations, monkeypatch):
    monkeypatch.setenv("CPMODEL_EXPECT", str(expectations))
    assert run("export", lulesh, "-f", "csv").status == 0
    head = run("rank", lulesh, "--target", 1000, "-f", "csv").out.splitlines()[0]
    assert head.endswith("verdict,expectation")
