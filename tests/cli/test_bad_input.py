"""User errors: each ends with one line, one hint and an exit status."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import cube_writer as cw
from cells import cells

RANK = ("--target", "64")


@cells(
    ("make", "words"),
    [
        (lambda path: path.write_text("hello\n"), "not a Cube profile"),
        (lambda path: path.write_bytes(b""), "empty file"),
        (lambda path: path.write_bytes(os.urandom(4096)), "not a Cube profile"),
        (lambda path: path.mkdir(), "no profiles in this directory"),
        (lambda path: path.symlink_to("nowhere"), "no such file"),
        (os.mkfifo, "neither a file nor a directory"),
        (lambda path: path.parent, "no such file"),
    ],
)
def test_what_is_no_profile_is_an_input_error(run, tmp_path, make, words):
    path = tmp_path / "odd name.cubex"
    make(path)
    run("rank", path, *RANK).fails(3, str(path), words)


@pytest.mark.parametrize("keep", [100, 512, 5_000, -20_000])
def test_a_truncated_archive_is_an_input_error(run, lulesh, tmp_path, keep):
    whole = (lulesh / "lulesh.p8.r1" / "profile.cubex").read_bytes()
    (tmp_path / "cut.cubex").write_bytes(whole[:keep])
    run("rank", tmp_path / "cut.cubex", *RANK).fails(3, "cut.cubex")


def test_good_profiles_beside_bad_ones_are_used_and_the_bad_ones_are_named(run, series):
    runs = series()
    good = run("rank", runs, *RANK, "-f", "csv")
    whole = (runs / "app.p8.r1" / "profile.cubex").read_bytes()
    bad = {"text": b"hello", "empty": b"", "cut": whole[: len(whole) // 2]}
    for name, content in bad.items():
        (runs / f"app.p32.{name}").mkdir()
        (runs / f"app.p32.{name}" / "profile.cubex").write_bytes(content)
    outcome = run("rank", runs, *RANK, "-f", "csv")
    assert outcome.status == 0
    assert outcome.out == good.out
    for name in bad:
        line = next(x for x in outcome.err.splitlines() if f"app.p32.{name}/" in x)
        assert line.endswith(" (CPM101)")
        assert line.count(f"app.p32.{name}/") == 1
    run("rank", runs, *RANK, "--strict").fails(3, "app.p32.")


@pytest.mark.parametrize(("method", "least"), [("mixture", 3), ("classic", 4)])
def test_each_method_says_how_many_scales_it_needs(run, series, method, least):
    runs = series()
    for path in sorted(runs.glob("app.p*"), key=lambda path: len(path.name))[least - 1 :]:
        shutil.rmtree(path)
    outcome = run("rank", runs, *RANK, "--method", method)
    outcome.fails(4, f"{least - 1} points of p", f"measure at {least} scales at least")


def test_a_run_left_out_is_named_where_the_rest_is_at_one_scale(run, series):
    runs = series()
    for path in sorted(runs.glob("app.p*"))[1:]:
        (path / "profile.cubex").write_bytes(b"cut")
    outcome = run("rank", runs, *RANK)
    outcome.fails(4, "all runs are at one scale", "excluded, the first is", "profile.cubex")


def test_a_column_left_out_is_named_where_the_rest_is_at_one_scale(run, tmp_path):
    table = tmp_path / "sizes.csv"
    table.write_text("callpath,size,time\nmain,small,1\nmain,medium,2\nmain,large,3\n")
    run("rank", table, *RANK).fails(4, "all runs are at one scale", "1 excluded", "sizes.csv: size")


@pytest.mark.parametrize("sources", [["no*.cubex"], ["nowhere"], ["empty"], ["runs.toml"]])
def test_sources_without_profiles_are_an_input_error(run, tmp_path, monkeypatch, sources):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "runs.toml").write_text("schema = 1\nrun = []\n")
    run("rank", *sources, *RANK).fails(3)


def test_profiles_of_one_scale_are_a_data_error(run, lulesh):
    run("rank", *sorted(lulesh.glob("lulesh.p8.*")), *RANK).fails(4, "one scale")


def test_too_few_scales_are_a_data_error(run, lulesh):
    run("rank", *sorted(lulesh.glob("lulesh.p?.*")), *RANK).fails(4, "too few")


def test_profiles_of_different_programs_are_a_usage_error(run, series, tmp_path):
    # Single letters tell no cases apart.
    series().rename(tmp_path / "a")
    series(names=("other", "x", "y")).rename(tmp_path / "b")
    run("rank", tmp_path / "a", tmp_path / "b", *RANK).fails(2, "2 programs")


def test_one_of_several_programs_is_chosen_by_its_name(run, series, lulesh):
    both = (series(), lulesh / "lulesh.p8.r1")
    run("rank", *both, *RANK).fails(2, "2 programs", "lulesh2.0 in 1 run")
    outcome = run("rank", *both, *RANK, "--where", "program!=lulesh2.0")
    assert outcome.status == 0


def test_two_metrics_of_one_name_are_a_finding(run, series):
    def twice(metrics, p):
        return [*metrics, cw.MetricToWrite("time", np.full((3, p), 9.0), unit="sec")]

    outcome = run("rank", series(twice), *RANK, "-f", "csv")
    assert outcome.status == 0
    assert "CPM118" in outcome.err


@pytest.mark.parametrize(
    ("value", "code"), [(np.nan, "CPM117"), (np.inf, "CPM117"), (-5.0, "CPM105")]
)
def test_values_that_cannot_be_are_a_finding(run, series, value, code):
    def spoil(metrics, p):
        if p == 8:
            metrics[0].values[2, 0] = value
        return metrics

    outcome = run("rank", series(spoil), *RANK, "-f", "csv")
    assert outcome.status == 0
    assert code in outcome.err
    assert "nan" not in outcome.out
    assert len(outcome.out.splitlines()) == 4


def test_a_counter_that_ran_below_zero_is_a_finding(run, series):
    def underrun(metrics, p):
        counts = np.full((3, p), 7, np.uint64)
        counts[1, 0] = 2**64 - 1
        return [metrics[0], cw.MetricToWrite("visits", counts, dtype="UINT64")]

    outcome = run("rank", series(underrun), *RANK, "-m", "visits", "-f", "csv")
    assert outcome.status == 0
    assert "CPM104" in outcome.err
    assert "e+19" not in outcome.out


def test_a_name_that_disagrees_with_the_profile_is_a_finding(run, series):
    runs = series()
    (runs / "app.p16.r1").rename(runs / "app.p99.r1")
    outcome = run("info", runs)
    assert outcome.status == 0
    assert "CPM102" in outcome.err
    assert "app.p99.r1" in outcome.err


def test_a_file_that_may_not_be_read_is_named(run, series):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    runs = series()
    (runs / "app.p16.r1" / "profile.cubex").chmod(0)
    outcome = run("rank", runs, *RANK)
    assert outcome.status == 0
    assert "app.p16.r1" in outcome.err


@pytest.mark.parametrize("name", ["with space", "ünï", "-dash", "a'b\"c", "p{8}", "[x]", "100%"])
def test_odd_names_of_directories_are_no_trouble(run, series, tmp_path, name):
    shutil.move(series(), tmp_path / name)
    outcome = run("info", tmp_path / name)
    assert outcome.status == 0
    assert "5 runs of 5 points" in outcome.out


def test_a_link_and_the_profile_it_leads_to_count_once(run, series):
    runs = series()
    (runs / "app.p16.again").symlink_to(runs / "app.p16.r1")
    (runs / "app.p16.copy").mkdir()
    (runs / "app.p16.copy" / "profile.cubex").symlink_to(runs / "app.p16.r1" / "profile.cubex")
    outcome = run("info", runs, "-f", "csv")
    assert len(outcome.out.splitlines()) == 6
    assert "CPM122" in outcome.err


@cells(
    ("arguments", "words"),
    [
        (["--target", "0"], "not positive"),
        (["--target", "-5"], "not positive"),
        (["--target", "nan"], "not positive"),
        (["--target", "-inf"], "not positive"),
        (["--target", "abc"], "'abc' is not a number"),
        (["--target", ""], "is not a number"),
        (["--target", "1e300"], "out of bounds"),
        (["--target", "1e400"], "out of bounds"),
        (["--target", "1e-300"], "out of bounds"),
        (["--target", "64", "--at", "p=64"], "give the same value"),
        (["--target", "64", "--at", "n=9"], "give all values with --at p=64,n=9"),
        (["--at", "p=64,n=3"], "no parameter 'n'"),
        (["--at", "p=64,p=3"], "malformed"),
        (["--at", "p=64,"], "malformed"),
        (["--at", "p=64,n=inf"], "only p may be infinite"),
        (["--at", "64"], "malformed"),
        (["--at", "q=64"], "no parameter 'q'"),
        ([*RANK, "--where", "nonsense"], "malformed"),
        ([*RANK, "--where", "p>8,"], "malformed"),
        ([*RANK, "--where", "p>many"], "not a number"),
        ([*RANK, "--where", "q=8"], "no parameter 'q'"),
        ([*RANK, "--top", "0"], "--top"),
        ([*RANK, "--columns", "nope", "-f", "csv"], "no column 'nope'"),
        ([*RANK, "--columns", "", "-f", "csv"], "no column ''"),
        ([*RANK, "--columns", "rank"], "--columns"),
        ([*RANK, "--confidence", "2"], "--confidence"),
        ([*RANK, "--confidence", "0"], "--confidence"),
        ([*RANK, "--confidence", "nan"], "--confidence"),
        ([*RANK, "--method", "classic", "--folds", "99"], "--folds 99"),
        ([*RANK, "--folds", "2"], "--method classic"),
        ([*RANK, "--terms", "5"], "--method classic"),
        ([*RANK, "--method", "classic", "--aggregate", "midrange"], "--aggregate midrange"),
        (
            [*RANK, "--method", "classic", "--aggregate", "first-quartile"],
            "--aggregate first-quartile",
        ),
        ([*RANK, "--folds", "1"], "--folds"),
        ([*RANK, "-n", "few"], "'few' is not a valid number of rows, nor 'all'"),
        ([*RANK, "--exponents", "abc"], "'abc'"),
        ([*RANK, "--logs", "x"], "'x' is not a power of the logarithm"),
        ([*RANK, "--logs"], "hint: cpmodel rank --help"),
        ([*RANK, "--parameter", "n"], "no parameter 'n'"),
        ([*RANK, "-i", "-e"], "exclude each other"),
        ([*RANK, "--select", "~["], "malformed"),
        ([*RANK, "--select", ""], "empty"),
        ([*RANK, "--select", "@zzzzzzz"], "no call path matches"),
        ([*RANK, "--by", "size"], "--by"),
        ([*RANK, "-m", "tmie"], "did you mean 'time'"),
        ([*RANK, "--locations", "sum"], "--locations"),
        ([*RANK, "--param", "p=name"], "--param"),
        ([*RANK, "--reader", "scorep"], "--reader"),
        ([*RANK, "--name", "{p}"], "--name"),
        ([*RANK, "-o", "x.docx"], "'.docx'"),
        ([*RANK, "--trget", "3"], "--target"),
    ],
)
def test_options_that_make_no_sense_are_a_usage_error(run, stored, arguments, words):
    run("rank", stored, *arguments).fails(2, words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--param", "=name"], "malformed"),
        (["--param", "p=ranks"], "'ranks'"),
        (["--param", "q=name"], "no parameter 'q'"),
        (["--name", "{p"], "malformed"),
        (["--name", "xyz{p}"], "matches no run"),
        (["--reader", "nope"], "'nope'"),
        (["-m", "tiem"], "did you mean 'time'"),
    ],
)
def test_options_of_reading_that_make_no_sense_are_a_usage_error(run, series, arguments, words):
    run("rank", series(), *RANK, *arguments).fails(2, words)


def test_conditions_that_leave_no_run_are_a_data_error(run, stored):
    run("rank", stored, *RANK, "--where", "p>1e9").fails(4, "no run is left")
    run("rank", stored, *RANK, "--where", "p<27").fails(4, "too few")


@cells(
    ("arguments", "words"),
    [
        (["rnak"], "did you mean 'rank'"),
        (["frobnicate"], "rank"),
        (["rank"], "EXP"),
        (["show"], "Missing argument 'EXP...'"),
        (["show", "runs"], "Missing argument 'CALLPATH'"),
        (["check", "runs"], "Missing argument 'FILE.toml'"),
        (["--nope"], "--nope"),
    ],
)
def test_commands_that_are_none_are_a_usage_error(run, arguments, words):
    run(*arguments).fails(2, words)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("MPI_Wait", "call paths"),
        ("MPI_Alreduce", "MPI_Allreduce"),
        ("main/nothing/here", "no call path matches"),
        ("@0000000", "no call path matches"),
    ],
)
def test_a_call_path_that_is_none_or_many_is_a_usage_error(run, stored, path, words):
    run("show", stored, path).fails(2, words)


def test_a_store_stands_alone_and_holds_no_profiles(run, stored, lulesh):
    run("rank", stored, lulesh, *RANK).fails(2, "stands alone")
    run("info", stored, lulesh, "--verify").fails(2, "no profiles")
    run("info", stored, "--write-manifest").fails(2, "no profiles")


def test_a_store_is_verified_by_its_checksums(run, stored, tmp_path):
    copy = tmp_path / "copy.cpm"
    shutil.copytree(stored, copy)
    assert " files  as written by " in run("info", copy, "--verify").out
    values = copy / "values-0.npy"
    damaged = bytearray(values.read_bytes())
    damaged[-1] ^= 1
    values.write_bytes(damaged)
    run("info", copy, "--verify").fails(3, "values-0.npy: differs from its checksum")
    run("rank", copy, *RANK).fails(3, "values-0.npy: differs from its checksum")


@pytest.mark.parametrize("damage", ["half the files", "no header", "a short array", "a file"])
def test_a_broken_store_is_an_input_error(run, stored, tmp_path, damage):
    path = tmp_path / "broken.cpm"
    if damage == "a file":
        path.write_text("x")
    else:
        shutil.copytree(stored, path)
    if damage == "half the files":
        for file in sorted(path.iterdir())[1::2]:
            file.unlink()
    elif damage == "no header":
        (path / "header.json").unlink()
    elif damage == "a short array":
        array = path / "values-0.npy"
        array.write_bytes(array.read_bytes()[:-8])
    run("rank", path, *RANK).fails(3, "broken.cpm")


def test_output_that_cannot_be_written_is_an_output_error(run, stored, tmp_path):
    (tmp_path / "old.csv").write_text("old")
    rank = ("rank", stored, *RANK, "-o")
    run(*rank, tmp_path / "no" / "x.csv").fails(6, "No such file")
    run(*rank, tmp_path / "old.csv").fails(6, "exists")
    run(*rank, tmp_path, "-f", "csv").fails(6, "in the way")
    run(*rank, "/dev/full", "-f", "csv").fails(6, "the disk is full")
    assert (tmp_path / "old.csv").read_text() == "old"
    run("fit", stored, "-o", tmp_path / "no" / "x.cpm").fails(6, "No such file")
    run("fit", stored, "-o", stored).fails(6, "-o is an input")
    run("fit", stored, "-o", tmp_path, "--force").fails(6, "in the way")


def test_a_failure_inside_the_program_is_a_bug_with_its_own_status(run, stored, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("inner")

    monkeypatch.setattr("callpath_modeler.studies.study.Study.ranking", broken)
    run("rank", stored, *RANK).fails(70, "bug", "inner", "-v")
    loud = run("-v", "rank", stored, *RANK)
    assert loud.status == 70
    assert "Traceback" in loud.err


def test_an_interrupt_has_its_own_status(run, stored, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("callpath_modeler.studies.study.Study.ranking", interrupted)
    assert run("rank", stored, *RANK).status == 130


def test_a_directory_that_may_not_be_read_is_said(run, series, monkeypatch):
    # Root may read everything, so the test simulates the answer of the system.
    closed = series() / "app.p16.r1"
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != closed and access(path, mode))
    run("rank", closed, *RANK).fails(3, f"{closed}: no permission to read", "check its permissions")


def test_an_expectation_file_that_may_not_be_read_is_said(run, stored, tmp_path, monkeypatch):
    closed = tmp_path / "expected.toml"
    closed.write_text("schema = 1\n")
    access, read = os.access, Path.read_bytes

    def refuse(path):
        if path == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(os, "access", lambda path, mode: path != closed and access(path, mode))
    monkeypatch.setattr(Path, "read_bytes", refuse)
    run("check", stored, closed).fails(3, f"{closed}: Permission denied", "check its permissions")


def test_a_permission_denied_anywhere_else_is_no_bug(run, stored, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied", "/secret/profile.cubex")

    monkeypatch.setattr("callpath_modeler.studies.study.Study.ranking", denied)
    run("rank", stored, *RANK).fails(3, "/secret/profile.cubex")


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_format_as_an_option_is_told_how_to_ask_for_it(run, stored, form):
    run("rank", stored, *RANK, f"--{form}").fails(2, f"hint: cpmodel rank ... -f {form}")
