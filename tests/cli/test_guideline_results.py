"""Matrices, JUnit XML and comparisons of `cpmodel guidelines`."""

from __future__ import annotations

import csv
import io
import json
from xml.etree import ElementTree as ET

import pytest

import benchmark_output as bench
from benchmark_output import SIZES, P

EVIL = "<img src=x>&\x1b[31m\u202eevil"


def table_file(path, libraries=("Open MPI",), processes=(4,), slow=1.4, mpiruns=8):
    """Write a table in which Allreduce is slower than Reduce and Bcast by a factor."""
    rows = ["library,call,p,size,mpirun,latency_us"]
    for library in libraries:
        for p in processes:
            for size in (8, 1024):
                for run in range(mpiruns):
                    jitter = 1 + 0.01 * ((7 * run + size) % 5)
                    times = {"Reduce": 4.0, "Bcast": 5.0, "Allreduce": 9.0 * slow}
                    rows += [
                        f'"{library}",MPI_{name},{p},{size},{run},{time * jitter * (p / 4):.6f}'
                        for name, time in times.items()
                    ]
    path.write_text("\n".join([*rows, ""]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return bench.write(tmp_path_factory.mktemp("planted"), "reprompi", bench.planted)


@pytest.fixture(scope="module")
def flawless(tmp_path_factory):
    return bench.write(tmp_path_factory.mktemp("flawless"), "reprompi", bench.flawless)


def cases(path):
    suites = ET.parse(path).getroot()  # noqa: S314 - made by this test
    found = {}
    for case in suites.iter("testcase"):
        (result,) = case
        found[case.get("name")] = (case.get("classname"), result.tag, result)
    return suites, found


# Tables.


@pytest.mark.parametrize(
    ("title", "options", "sizes"),
    [("size", [], [8, 64]), ("bytes", [], [8, 64]), ("laenge", ["--size", "laenge"], [8, 64])],
)
def test_a_table_without_p_is_read_if_an_option_states_it(run, tmp_path, title, options, sizes):
    path = tmp_path / "medians.csv"
    rows = [
        f"{call},{size},{time},{0.99 * time},{1.01 * time}\n"
        for size in sizes
        for call, time in (("MPI_Gather", 4.0), ("MPI_Allgather", 3.0), ("MPI_Reduce", 3.5))
    ]
    path.write_text(f"call,{title},median,low,high\n{''.join(rows)}")
    table = [path, "-m", "median", "--interval", "low,high", "-f", "csv", *options]
    told = run("guidelines", *table, "--processes", 8).out
    found = {(row["guideline"], row["at"]) for row in csv.DictReader(io.StringIO(told))}
    # At p = 8, the larger message of Reduce is that of Gather from all processes.
    assert ("Gather <= Reduce(p*m)", f"p=8,{title}=8") in found
    assert ("Gather <= Allgather", f"p=8,{title}=64") in found


# Matrices.


def test_the_matrix_in_a_pipe_is_one_block_with_all_marks(run, planted):
    rows = run("guidelines", planted, "--matrix").out.splitlines()
    (row,) = [row for row in rows if row.endswith("Allreduce ≤ Reduce + Bcast")]
    assert row.split()[: len(SIZES)] == ["***"] * len(SIZES)
    assert run("--ascii", "guidelines", planted, "--matrix").out.isascii()


def test_the_matrix_as_csv_and_json_has_a_row_per_guideline(run, planted):
    rows = [*csv.DictReader(io.StringIO(run("guidelines", planted, "--matrix", "-f", "csv").out))]
    (row,) = [row for row in rows if row["guideline"] == "Allreduce <= Reduce + Bcast"]
    assert row["verdict"] == "violated"
    assert [row[f"size={size}"] for size in SIZES] == ["***"] * len(SIZES)
    told = json.loads(run("guidelines", planted, "--matrix", "-f", "json").out)
    (matrix,) = told["matrices"]
    assert matrix["at"] == {"p": P}
    assert matrix["counts"]["pattern"]["violated"] == 2
    (nested,) = [
        each for each in matrix["guidelines"]
        if each["guideline"] == "Allreduce <= Reduce + Bcast"
    ]  # fmt: skip
    assert {each["verdict"] for each in nested["cells"]} == {"violated"}
    assert all(1.3 < each["low"] < each["factor"] < each["high"] < 1.5 for each in nested["cells"])
    assert len(told["rows"]) == len(rows) == len(matrix["guidelines"])


def test_each_library_and_number_of_processes_has_its_matrix(run, tmp_path):
    path = table_file(tmp_path / "t.csv", ("Open MPI", "MPICH"), (4, 8))
    found = json.loads(run("guidelines", path, "--matrix", "-f", "json").out)["matrices"]
    assert [(each["group"], each["at"]["p"]) for each in found] == [
        ("MPICH", 4), ("MPICH", 8), ("Open MPI", 4), ("Open MPI", 8),
    ]  # fmt: skip
    text = run("guidelines", path, "--matrix").out
    counts = [line.split()[1:4] for line in text.splitlines() if line.endswith("MPICH, p = 4")]
    assert counts == [["0/2", "0/2", "1/2"]]
    assert "guideline, at any size" in text


def test_the_page_is_one_file_without_script_and_with_escaped_names(run, tmp_path):
    path = table_file(tmp_path / "t.csv", (EVIL,))
    page = tmp_path / "page.html"
    assert run("guidelines", path, "--matrix", "-o", page).status == 0
    text = page.read_text(encoding="utf-8")
    assert "<img" not in text
    assert "&lt;img src=x&gt;&amp;" in text
    assert "<script" not in text
    assert "\x1b" not in text
    assert 'class="v h4"' in text
    assert "http" not in text.partition("</head>")[2]
    run("guidelines", path, "--matrix", "-o", page).fails(6, "exists")
    run("guidelines", path, "-f", "html").fails(2, "-f html is the format of a matrix")


def test_options_that_do_not_go_together_are_refused(run, planted, tmp_path):
    html = ("guidelines", planted, "--matrix", "-f", "html")
    run(*html, "--nrep", "rse=0.01").fails(2, "--nrep has no verdicts for --matrix")
    run(*html, "--columns", "group").fails(2, "--columns does not apply to pages")
    path = tmp_path / "r.xml"
    run("guidelines", planted, "--nrep", "rse=0.01", "--junit", path).fails(2, "--nrep")
    assert not path.exists()
    run("info", planted, "-o", tmp_path / "p.html").fails(2, "suffix")


def test_names_with_control_characters_do_not_reach_the_terminal(run, tmp_path):
    path = table_file(tmp_path / "t.csv", (EVIL,))
    for form in ("table", "csv", "json", "html"):
        out = run("guidelines", path, "--matrix", "-f", form).out
        assert "\x1b" not in out
        assert "evil" in out
        if form != "html":
            assert "\u202e" not in out


def test_the_published_test_has_a_matrix_with_its_stars(run, shared_data, tmp_path):
    home = shared_data / "mpi_guidelines" / "openmpi414_quiet_p4"
    with (home / "results" / "violations_pgmpi_R.csv").open() as file:
        known = [*csv.DictReader(file, delimiter=";")]
    options = ("guidelines", home / "raw_data", "--compat", "pgmpi", "--matrix")
    rows = [*csv.DictReader(io.StringIO(run(*options, "-f", "csv").out))]
    stars = sorted(value for row in rows for name, value in row.items()
                   if name.startswith("size=") and set(value) == {"*"})  # fmt: skip
    assert stars == sorted(row["significance"] for row in known)
    assert len(rows) == 33
    assert "monotony 3/9, split 3/9, pattern 7/15" in run(*options).out
    assert run(*options, "-o", tmp_path / "p.html").status == 0
    assert (tmp_path / "p.html").read_text().count('class="v h') == len(known)
    assert run(*options, "--fail-on", "violated").status == 1


def test_predicted_cells_have_a_band_and_a_probability(run, tmp_path):
    path = table_file(tmp_path / "t.csv", processes=(4, 8, 16, 32, 64))
    options = ("guidelines", path, "--matrix", "--target", "1024")
    *_, ahead = json.loads(run(*options, "-f", "json").out)["matrices"]
    assert ahead["predicted"]
    assert ahead["at"] == {"p": 1024}
    (row,) = [
        each for each in ahead["guidelines"]
        if each["guideline"] == "Allreduce <= Reduce + Bcast"
    ]  # fmt: skip
    assert row["verdict"] == "violated"
    for each in row["cells"]:
        assert each["probability"] > 0.95
        assert 1.3 < each["low"] <= each["factor"] <= each["high"] < 1.5
        assert each["basis"] == "predicted"
    text = run(*options).out
    assert "p = 1024, predicted" in text
    assert "predicted violation" in text
    page = run(*options, "-f", "html").out
    assert "probability of a violation 96 %" in page


# JUnit.


def test_junit_has_one_case_per_guideline_and_group(run, planted, tmp_path):
    path = tmp_path / "result.xml"
    outcome = run("guidelines", planted, "--junit", path, "--fail-on", "violated")
    assert outcome.status == 1
    suites, found = cases(path)
    assert suites.get("name") == "cpmodel guidelines"
    assert suites.get("failures") == "2"
    assert int(suites.get("tests")) == len(found)
    _, tag, failure = found["Allreduce <= Reduce + Bcast"]
    assert tag == "failure"
    assert failure.get("message").startswith("Allreduce is slower than Reduce + Bcast: +")
    assert failure.text.count("violated") == len(SIZES)
    assert found["Bcast <= Scatter(m/p) + Allgather(m/p)"][1] in {"system-out", "skipped"}


def test_junit_of_the_published_test_and_of_hostile_names(run, tmp_path, shared_data):
    path = tmp_path / "result.xml"
    run("guidelines", table_file(tmp_path / "t.csv", (EVIL,)), "--junit", path)
    _, found = cases(path)
    assert {name for name, _, _ in found.values()} == {r"<img src=x>&\x1b[31m\u202eevil"}
    home = shared_data / "mpi_guidelines" / "openmpi414_quiet_p4" / "raw_data"
    run("guidelines", home, "--compat", "pgmpi", "--junit", path).fails(6, "exists")
    assert run("guidelines", home, "--compat", "pgmpi", "--junit", path, "--force").status == 0
    suites, found = cases(path)
    assert (suites.get("tests"), suites.get("failures")) == ("33", "13")


def test_a_predicted_violation_fails_in_junit_if_it_fails_the_command(run, tmp_path):
    path, out = table_file(tmp_path / "t.csv", processes=(4, 8, 16, 32, 64)), tmp_path / "r.xml"
    options = ("guidelines", path, "--target", "1024", "--junit", out, "--force")
    run(*options)
    message = cases(out)[1]["Allreduce <= Reduce + Bcast"][2].get("message")
    assert "predicted" not in message
    assert run(*options, "--fail-on", "predicted").status == 1
    message = cases(out)[1]["Allreduce <= Reduce + Bcast"][2].get("message")
    assert "is predicted to be slower than Reduce + Bcast" in message


# Comparisons of campaigns.


def changed(tmp_path, before=1.0, after=1.4, name="Open MPI", other="Open MPI"):
    """Write tables in which Allreduce takes these factors of its allowed time."""
    return (
        table_file(tmp_path / "before.csv", (name,), slow=0.8 * before),
        table_file(tmp_path / "after.csv", (other,), slow=0.8 * after),
    )


def test_a_new_violation_is_told_and_fails_the_command(run, tmp_path):
    before, after = changed(tmp_path, 1.0, 1.6)
    outcome = run("guidelines", "diff", before, after, "--fail-on", "new")
    assert outcome.status == 1
    assert outcome.out.startswith("1 guideline is newly violated. The worst is Open MPI: Allreduce")
    (row,) = [line for line in outcome.out.splitlines() if line.startswith("new ")]
    assert row.split()[:5] == ["new", "-20", "%", "+28", "%"]
    assert "+60 %" in row
    assert row.endswith("Allreduce ≤ Reduce + Bcast")
    assert "1 function is slower" in outcome.out
    back = run("guidelines", "diff", after, before, "--fail-on", "worse")
    assert back.status == 0
    assert "1 mended" in back.out
    assert "No function is shown to be slower, 1 faster." in " ".join(back.out.split())


def test_a_slower_function_fails_on_worse_alone(run, tmp_path):
    before, after = changed(tmp_path, 1.0, 1.15)
    assert run("guidelines", "diff", before, after, "--fail-on", "new").status == 0
    assert run("guidelines", "diff", before, after, "--fail-on", "worse").status == 1
    assert run("guidelines", "diff", before, after).status == 0


def test_changes_as_csv_and_json_have_a_row_per_check(run, tmp_path):
    before, after = changed(tmp_path, 1.0, 1.6)
    options = ("guidelines", "diff", before, after)
    rows = [*csv.DictReader(io.StringIO(run(*options, "-f", "csv").out))]
    told = json.loads(run(*options, "-f", "json").out)
    assert len(rows) == len(told["rows"])
    chosen = [row for row in told["rows"] if row["guideline"] == "Allreduce <= Reduce + Bcast"]
    assert [row["at"] for row in chosen] == ["p=4,size=8", "p=4,size=1024"]
    for row in chosen:
        assert (row["change"], row["before_verdict"], row["after_verdict"]) == (
            "new", "holds", "violated",
        )  # fmt: skip
        assert row["time_ratio_low"] < 1.6 < row["time_ratio_high"]
        assert row["time_is"] == row["factor_is"] == "larger"
        assert row["time_ratio_rate"] <= 0.05
    assert told["counts"]["new"] == 1
    assert told["tested"]
    (function,) = [each for each in told["functions"] if each["function"] == "Allreduce"]
    assert (function["settings"], function["slower"], function["faster"]) == (2, 2, 0)
    assert function["mean_time_ratio"] == pytest.approx(1.6, rel=1e-3)


def test_libraries_are_matched_by_name(run, tmp_path):
    before, after = changed(tmp_path, name="Open MPI 4", other="Open MPI 5")
    run("guidelines", "diff", before, after).fails(4, "no library in common", "NAME=BEFORE")
    both = table_file(tmp_path / "both.csv", ("Open MPI 4", "MPICH"), (4, 8))
    out = " ".join(run("guidelines", "diff", before, both).out.split())
    assert "Only after, not compared: MPICH, p = 8, size = 1024, p = 8, size = 8" in out


def test_names_on_the_command_line_match_folders(run, tmp_path):
    folders = [
        bench.write(tmp_path / name, "reprompi", law)
        for name, law in (("old", bench.flawless), ("new", bench.planted))
    ]
    named = [f"MPI={folder}" for folder in folders]
    outcome = run("guidelines", "diff", *named, "--fail-on", "new", "-f", "json")
    assert outcome.status == 1
    told = json.loads(outcome.out)
    new = {row["guideline"] for row in told["rows"] if row["guideline_change"] == "new"}
    assert new == {"Allreduce <= Reduce + Bcast", "Reduce_scatter <= Allreduce(p*m)"}
    same = run("guidelines", "diff", named[0], named[0], "--fail-on", "worse")
    assert same.status == 0


@pytest.mark.parametrize("width", [40, 80])
def test_changes_fit_a_terminal(run, tmp_path, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    out = run("guidelines", "diff", *changed(tmp_path, name=EVIL, other=EVIL)).out
    assert max(map(len, out.splitlines())) <= width
    assert "\x1b" not in out
    assert "new" in out
    assert run("--ascii", "guidelines", "diff", *changed(tmp_path)).out.isascii()


def test_junit_of_a_comparison_fails_for_new_violations_alone(run, tmp_path):
    path = tmp_path / "r.xml"
    before, after = changed(tmp_path, 1.0, 1.6)
    options = ("--junit", path, "--force")
    run("guidelines", "diff", before, after, *options)
    suites, found = cases(path)
    assert (suites.get("name"), suites.get("failures")) == ("cpmodel guidelines diff", "1")
    _, tag, failure = found["Allreduce <= Reduce + Bcast"]
    assert tag == "failure"
    assert failure.get("message") == "Allreduce <= Reduce + Bcast is newly violated"
    assert failure.text.splitlines()[0] == (
        "p=4,size=8: before -20 % (holds), after +28 % (violated)"
    )
    run("guidelines", "diff", before, after, *options, "--fail-on", "worse")
    assert cases(path)[1]["time of Allreduce"][1] == "failure"
    run("guidelines", "diff", after, after, *options)
    assert cases(path)[1]["Allreduce <= Reduce + Bcast"][1] == "skipped"


def test_a_comparison_needs_two_campaigns(run, tmp_path):
    before, after = changed(tmp_path)
    run("guidelines", "diff", before).fails(2, "diff compares two campaigns, not 1")
    run("guidelines", "diff", before, after, after).fails(2, "diff compares two campaigns, not 3")
    run("guidelines", "diff", before, tmp_path / "none").fails(3)


@pytest.mark.parametrize("mpiruns", [1, 3])
def test_too_few_mpiruns_cannot_pass_a_comparison_of_times(run, tmp_path, mpiruns):
    path = table_file(tmp_path / "few.csv", processes=(4, 8, 16, 32, 64), mpiruns=mpiruns)
    run("guidelines", "diff", path, path, "--fail-on", "worse").fails(4, "too few mpiruns")
    outcome = run("guidelines", "diff", path, path, "--fail-on", "new")
    assert outcome.status == 0
    assert "Changes of times are not tested: there are too few mpiruns." in " ".join(
        outcome.out.split()
    )


def test_real_campaigns_of_an_idle_and_of_a_noisy_machine(run, shared_data):
    home = shared_data / "mpi_guidelines"
    folders = [home / name / "raw_data" for name in ("openmpi414_p4", "openmpi414_quiet_p4")]
    told = json.loads(run("guidelines", "diff", *folders, "-f", "json").out)
    assert told["counts"]["still violated"] == 4
    assert told["counts"]["new"] == 0
    faster = {each["function"] for each in told["functions"] if each["faster"]}
    slower = {each["function"] for each in told["functions"] if each["slower"]}
    assert slower == set()
    assert "Reduce_scatter_block" in faster
