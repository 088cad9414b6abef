"""`cpmodel check`: output, formats, and exit status."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from callpath_modeler import store
from callpath_modeler.readers.assemble import ReadOptions
from callpath_modeler.studies.loading import LoadOptions, load
from callpath_modeler.studies.pipeline import fit

EXPECTATIONS = """\
schema = 1
target = { p = 1000 }

[[expect]]
name = "the whole run"
value = "<= 1 h"

[[expect]]
name = "start-up does not grow"
callpath = "main/MPI_Init"
growth = "<= O(log p)"
control = "kernels, in words: 100 % constant"

[[expect]]
name = "kernels, in words: 100 % constant"
callpath = "**/Calc{Kinematics,Q,Pressure}ForElems"
metric = "visits"
growth = "O(1)"

[[expect]]
callpath = "**/MPI_Allreduce"
value = "<= 60 s"

[[expect]]
name = "waiting"
callpath = "main/**/CommSBN/**"
at_least = 0
growth = "<= O(1)"

[[expect]]
name = "reduction"
callpath = "**/MPI_Allreduce"
value = "<= 2 s"
xfail = "issue 812"
"""


@pytest.fixture
def expectations(tmp_path):
    path = tmp_path / "expectations.toml"
    path.write_text(EXPECTATIONS)
    return path


@pytest.fixture(scope="module")
def stored(lulesh, tmp_path_factory):
    """The sample profiles with two metrics and the models of one."""
    read = load([lulesh], LoadOptions(ReadOptions(metrics=("time", "visits"))))
    path = tmp_path_factory.mktemp("stored") / "lulesh.cpm"
    store.write([fit(read, "time")], path)
    return path


@pytest.fixture
def series_and_file(series, tmp_path):
    def series_and_file(*lines):
        path = tmp_path / "expectations.toml"
        path.write_text("\n".join(["schema = 1", "target = { p = 64 }", *lines]))
        return series(), path

    return series_and_file


def test_each_expectation_has_a_line_and_a_failure_leaves_with_status_one(
    run, lulesh, expectations
):
    outcome = run("check", lulesh, expectations, "--all")
    assert outcome.status == 1
    lines = outcome.out.splitlines()
    words = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert words[:-1] == ["PASS", "FAIL", "PASS", "UNSURE", "PASS", "XFAIL"]
    assert lines[-1].startswith("1 failed, 1 unsure, 3 passed, 1 failed as expected")
    assert "p = 1000, 95 % confidence" in lines[-1]
    assert f"{expectations}:8" in outcome.out
    assert "it is not the machine" in outcome.out
    assert "issue 812" in outcome.out


def test_only_expectations_that_do_not_pass_have_a_line(run, lulesh, expectations):
    lines = run("check", lulesh, expectations).out.splitlines()
    words = [line.split()[0] for line in lines if not line.startswith(" ")]
    # The one that passes here names no call path, which may be a mistake.
    assert words[:-1] == ["FAIL", "UNSURE", "PASS", "XFAIL"]
    assert lines[-1].startswith("1 failed, 1 unsure, 3 passed, 1 failed as expected")


def test_kept_expectations_leave_with_status_zero(run, series_and_file):
    runs, path = series_and_file("[[expect]]", "value = '<= 100 s'")
    outcome = run("check", runs, path, "--all")
    assert outcome.status == 0
    assert outcome.out.startswith("PASS")
    assert outcome.out.count("\n") == 2


@pytest.fixture
def damaged_run(tmp_path):
    """Add a profile that is cut off to a directory of runs."""

    def damaged_run(runs):
        every = tmp_path / "runs"
        every.mkdir()
        (every / runs.name).symlink_to(runs)
        damaged = every / "app.p64.r9"
        damaged.mkdir()
        (damaged / "profile.cubex").write_bytes(b"cut off")
        return every

    return damaged_run


def test_expectations_that_hold_without_a_damaged_profile_leave_with_status_three(
    run, lulesh, damaged_run, tmp_path
):
    path = tmp_path / "expectations.toml"
    path.write_text("schema = 1\n[[expect]]\nvalue = '<= 100 h'\n")
    runs = damaged_run(lulesh)
    outcome = run("check", runs, path, "--target", 1000, "--all")
    assert outcome.status == 3
    assert outcome.out.startswith("PASS")
    last, hint = outcome.err.splitlines()[-2:]
    assert last == (
        "cpmodel: 1 profile could not be used, so the verdict rests on the other runs: "
        f"{runs}/app.p64.r9/profile.cubex"
    )
    assert hint == "  hint: measure the run again, or name only the profiles to check"


def test_a_broken_expectation_leaves_with_status_one_beside_a_damaged_profile(
    run, lulesh, damaged_run, tmp_path
):
    path = tmp_path / "expectations.toml"
    path.write_text("schema = 1\n[[expect]]\nvalue = '<= 1 ms'\n")
    assert run("check", damaged_run(lulesh), path, "--target", 1000).status == 1


@pytest.mark.parametrize(("limits", "status"), [(("--fail-on", "worse>5%"), 3), ((), 0)])
def test_a_difference_needs_all_runs_only_for_limits(run, lulesh, damaged_run, limits, status):
    outcome = run("diff", lulesh, damaged_run(lulesh), *limits)
    assert outcome.status == status
    assert "no difference is shown" in outcome.out


def test_unsure_is_a_failure_only_where_the_file_says_so(run, stored, tmp_path):
    path = tmp_path / "expectations.toml"
    text = "schema = 1\n[[expect]]\ncallpath = '**/MPI_Allreduce'\nvalue = '<= 60 s'\n"
    for word, status in [("pass", 0), ("warn", 0), ("fail", 1)]:
        path.write_text(f"{text}unsure = '{word}'\n")
        assert run("check", stored, path, "--target", 1000).status == status


def test_the_command_line_overrides_target_and_metric(run, series_and_file):
    runs, path = series_and_file("[[expect]]", "callpath = 'main/g'", "value = '<= 100 s'")
    assert run("check", runs, path, "--target", 1000).status == 1
    assert run("check", runs, path, "--at", "p=64").status == 0
    run("check", runs, path, "-m", "visits").fails(3, "expectations.toml:5: ", "visits is")


def test_a_bad_file_is_refused_before_any_run_is_read(run, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text("schema = 1\n[[expect]]\ngrowht = 'O(1)'\n")
    run("check", tmp_path / "no such runs", path).fails(3, f"{path}:3: ", "did you mean 'growth'")
    run("check", tmp_path, tmp_path / "none.toml").fails(3, "none.toml", "cpmodel baseline")


def test_metrics_are_read_that_expectations_name_and_no_others_are_needed(run, series_and_file):
    lines = ["[[expect]]", "metric = 'visits'", "growth = 'O(1)'"]
    runs, path = series_and_file(*lines)
    assert run("check", runs, path).status == 0
    path.write_text(path.read_text().replace("visits", "vists"))
    run("check", runs, path).fails(3, f"{path}:4: ", "did you mean 'visits'")


def test_a_target_of_a_parameter_that_the_runs_lack_is_refused_with_its_line(run, stored, tmp_path):
    path = tmp_path / "expected.toml"
    path.write_text("schema = 1\ntarget = { q = 64 }\n[[expect]]\nvalue = '<= 1 s'\n")
    run("check", stored, path).fails(3, f"{path}:2: ", "no parameter 'q'", "varying: p")
    path.write_text("schema = 1\n[[expect]]\nvalue = '<= 1 s'\ntarget = { q = 64 }\n")
    run("check", stored, path).fails(3, f"{path}:4: ", "no parameter 'q'")
    asked = run("check", stored, path, "--at", "z=64")
    assert asked.status == 2
    assert f"{path}:" not in asked.err


def test_inclusive_is_said_in_the_file(run, series_and_file):
    runs, path = series_and_file("[[expect]]", "value = '<= 100 s'")
    run("check", runs, path, "-i").fails(2, "--inclusive")


def test_json_tells_all_in_numbers(run, lulesh, expectations):
    outcome = run("check", lulesh, expectations, "-f", "json")
    assert outcome.status == 1
    told = json.loads(outcome.out)
    assert told["schema"] == 1
    assert told["passed"] is False
    assert told["counts"] == {"pass": 3, "fail": 1, "unsure": 1, "xfail": 1}
    assert told["file"] == str(expectations)
    rows = {row["name"]: row for row in told["rows"]}
    failed = rows["start-up does not grow"]
    assert (failed["status"], failed["failed"], failed["line"]) == ("fail", True, 8)
    assert failed["worst"].endswith("/MPI_Init")
    assert failed["beyond_probability"] >= 0.95
    whole = rows["the whole run"]
    assert whole["low"] < whole["value"] < whole["high"] < 3600
    assert (whole["unit"], whole["target"]) == ("s", 1000)


def test_github_marks_the_lines_of_the_file(run, stored, expectations):
    outcome = run("check", stored, expectations, "-f", "github")
    assert outcome.status == 1
    lines = outcome.out.splitlines()
    assert [line.split(" ")[0] for line in lines[:-1]] == ["::error", "::warning", "::notice"]
    assert lines[0].startswith(f"::error file={expectations},line=8,title=FAIL start-up does not")
    assert "kernels, in words%3A" not in lines[0].partition("title=")[2].partition("::")[0]
    assert "100 %25 constant" in lines[0]
    assert "%0A" in lines[0]


def test_junit_has_a_case_per_expectation_and_the_attributes_that_servers_read(
    run, stored, expectations, tmp_path
):
    path = tmp_path / "out.xml"
    assert run("check", stored, expectations, "--junit", path).status == 1
    root = ET.parse(path).getroot()  # noqa: S314 - our own file
    suite = root.find("testsuite")
    for element in (root, suite):
        counts = {name: element.get(name) for name in ("tests", "failures", "errors", "skipped")}
        assert counts == {"tests": "6", "failures": "1", "errors": "0", "skipped": "2"}
        assert element.get("time") == "0.000"
    cases = suite.findall("testcase")
    assert len({case.get("name") for case in cases}) == 6
    assert all(case.get("classname") and case.get("time") == "0.000" for case in cases)
    [failure] = suite.iter("failure")
    assert failure.get("message").startswith("FAIL: ")
    assert failure.get("type")
    assert f"{expectations}:8" in failure.text
    assert [e.get("message").split(":")[0] for e in suite.iter("skipped")] == ["UNSURE", "XFAIL"]


def test_files_that_exist_are_not_replaced_without_force(run, stored, expectations, tmp_path):
    path = tmp_path / "out.xml"
    path.write_text("mine")
    run("check", stored, expectations, "--junit", path).fails(6, "out.xml", "--force")
    assert path.read_text() == "mine"
    assert run("check", stored, expectations, "--junit", path, "--force").status == 1
    assert path.read_text().startswith("<?xml")


def test_colour_is_never_alone_and_ascii_is_ascii(run, stored, expectations):
    coloured = run("--color", "always", "check", stored, expectations)
    assert "\x1b" in coloured.out
    assert "FAIL" in coloured.out
    plain = run("--ascii", "check", stored, expectations)
    assert plain.out.isascii()
    assert "FAIL" in plain.out


def test_one_expectation_of_several_metrics_needs_no_names(run, lulesh, tmp_path):
    path = tmp_path / "expectations.toml"
    expected = ('callpath = "**/MPI_Wait"', 'growth = "<= O(p^3)"')
    blocks = [("[[expect]]", *expected, f'metric = "{name}"') for name in ("time", "visits")]
    path.write_text("\n".join(["schema = 1", *(line for block in blocks for line in block)]))
    outcome = run("check", lulesh, path, "-f", "json")
    assert [row["name"] for row in json.loads(outcome.out)["rows"]] == [
        "**/MPI_Wait, time: growth <= O(p^3)",
        "**/MPI_Wait, visits: growth <= O(p^3)",
    ]


def test_a_missing_file_is_not_told_as_missing_runs_alone(run, lulesh):
    run("check", lulesh).fails(2, "cpmodel check [OPTIONS] EXP... FILE.toml")
