"""`cpmodel excess` on the command line."""

from __future__ import annotations

import csv
import io
import json

import pytest

from cells import cells


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_sums_over_processes_are_said_to_be_brought_back_to_one(run, lulesh):
    told = run("excess", lulesh, "--locations", "sum", "--pair", "8,125")
    assert "time, sum over processes / p · weak" in told.out
    assert "share of the time at p = 125" in told.out


def test_a_scale_that_is_missing_because_its_run_is_broken_is_named(run, series):
    folder = series()
    for profile in folder.glob("*/profile.cubex"):
        if not profile.parent.name.startswith("app.p1."):
            profile.write_bytes(profile.read_bytes()[:1000])
    told = run("excess", folder)
    told.fails(4, "all runs are at one scale")
    assert told.err.startswith("A profile was not used: ")


def test_a_stored_experiment_needs_no_profiles(run, stored, lulesh):
    assert run("excess", stored, "-f", "csv").out == run("excess", lulesh, "-f", "csv").out


def test_all_views_lose_the_same(run, stored):
    totals = set()
    for view in ("top-down", "bottom-up", "flat"):
        asked = ("excess", stored, "--pair", "8,125", "--view", view, "-f", "json")
        document = json.loads(run(*asked).out)
        top = [r for r in document["rows"] if r["depth"] == 0]
        if view == "top-down":
            totals.add(round(sum(r["excess_inclusive"] for r in top), 9))
        else:
            totals.add(round(sum(r["excess_exclusive"] for r in top), 9))
        (pair,) = document["pairs"]
        totals.add(round(pair["excess"] - pair["imbalance"], 9))
    assert len(totals) == 1


def test_hidden_call_paths_are_counted_and_nothing_is_lost(run, stored):
    few = json.loads(run("excess", stored, "--min-share", "10%", "-f", "json").out)
    everything = json.loads(run("excess", stored, "-f", "json").out)
    assert few["hidden_callpaths"] > 50
    assert everything["hidden_callpaths"] == 0
    assert few["sum_check"]["total"] == everything["sum_check"]["total"]
    assert few["sum_check"]["holds"]


def test_columns_and_levels_can_be_chosen(run, stored):
    told = run("excess", stored, "--base", "27", "--view", "flat", "--group", "file,region",
               "-n", "2", "-f", "csv", "--columns", "path,scale,excess_exclusive")  # fmt: skip
    table = rows(told.out)
    assert list(table[0]) == ["path", "scale", "excess_exclusive"]
    assert {row["scale"] for row in table} == {"64.0", "125.0"}
    assert any(row["path"] == "MPI/MPI_Waitall" for row in table)


def test_the_answer_goes_to_a_file_once(run, stored, tmp_path):
    assert run("excess", stored, "-o", tmp_path / "lost.json").status == 0
    run("excess", stored, "-o", tmp_path / "lost.json").fails(6, "lost.json")


def test_scaling_can_be_told(run, series):
    weak = run("excess", series(), "--scaling", "weak", "-f", "csv", "--pair", "1,16")
    table = {row["path"]: row for row in rows(weak.out)}
    # main 1 - 2 - 0.5 p beneath, inclusive time of main: time at p = 16 is 11.
    assert float(table["main"]["excess_inclusive"]) == pytest.approx(7.5 / 11)


@cells(
    ("words", "status", "message"),
    [
        (("--pair", "1,3"), 2, "no run at p = 3"),
        (("--pair", "1"), 2, "--pair '1' is malformed"),
        (("--pair", "1,x"), 2, "'x' is not a number"),
        (("--pair", "1,8", "--base", "1"), 2, "--pair and --base exclude each other"),
        (("--base", "125"), 2, "no scale is larger than the base"),
        (("-m", "nonsense"), 2, "no metric 'nonsense'"),
        (("-i", "-e"), 2, "exclude each other"),
        (("--group", "file"), 2, "--group is for the flat view"),
        (("--view", "flat", "--group", "fil"), 2, "no such level"),
        (("--min-share", "2"), 2, "is not a share"),
        (("--columns", "path"), 2, "--columns does not apply to text tables"),
        (("-f", "csv", "--columns", "nonsense"), 2, "no column 'nonsense'"),
        (("--where", "p=8"), 4, "all runs are at one scale: nothing to compare"),
        (("--where", "p>=200"), 4, "no run is left"),
        (("--parameter", "n"), 2, "no parameter 'n'"),
    ],
)
def test_what_cannot_be_answered_ends_in_one_clear_line(run, stored, words, status, message):
    run("excess", stored, *words).fails(status, message)


def test_metrics_that_do_not_add_up_are_refused(run, lulesh):
    run("excess", lulesh, "-m", "max_time").fails(2, "max_time does not add up")


@pytest.mark.parametrize("how", [None, "min"])
def test_losses_are_those_of_the_ranking_at_a_scale_that_was_repeated(run, lulesh, tmp_path, how):
    kept, chosen = tmp_path / "kept.cpm", ("--aggregate", how) if how else ()
    run("fit", lulesh, "-m", "time", "-o", kept, *chosen)
    asked = [(lulesh, *chosen), (kept,), (kept, *chosen)]
    found = set()
    for source, *words in asked:
        lost = json.loads(run("excess", source, *words, "--pair", "1,125", "-f", "json").out)
        ranked = json.loads(run("rank", source, *words, "--target", "125", "-f", "json").out)
        assert lost["centre"] == ranked["fit"]["centre"]
        assert how in (None, lost["centre"])
        ours = {row["path"]: row["excess_exclusive"] for row in lost["rows"]}
        theirs = {row["callpath"]: row["excess_exclusive"] for row in ranked["rows"]}
        shared = [path for path, value in theirs.items() if value is not None]
        assert [ours[path] for path in shared] == [theirs[path] for path in shared]
        found.add(lost["pairs"][0]["total_at_scale"])
    assert len(found) == 1


def test_call_paths_that_fill_the_run_time_leave_no_imbalance_to_lose(run, stored):
    """The sums of rows and of the run differed in a last digit, which was shown as "<1 %"."""
    ranking = json.loads(run("rank", stored, "--target", "1000", "-f", "json").out)
    assert ranking["imbalance"]["at_target"] == 0
    assert ranking["excess"]["imbalance"] == 0
