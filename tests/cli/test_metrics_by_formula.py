"""Metrics by formula: `--define`, configuration files, stores, shards and histories."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import cube_writer as cw
from callpath_modeler import LoadOptions, Study
from callpath_modeler.history import history_store
from configured import write
from two_stores import check_same_stores

RATIO = ("--define", "per_visit = time / visits")


@pytest.fixture
def runs(series):
    """Runs in which f is called p times, and all else once."""

    def often(metrics, p):
        visits = np.array([[1.0], [1.0 * p], [1.0]]) * np.ones((1, p))
        return [metrics[0], cw.MetricToWrite("visits", visits, dtype="UINT64")]

    return series(often)


def rows(done):
    assert done.status == 0, done.err
    return list(csv.DictReader(io.StringIO(done.out)))


def test_a_view_shows_the_ratio_of_sums(run, runs):
    shown = rows(run("views", runs, *RATIO, "-m", "per_visit", "--target", 64, "-f", "csv"))
    main, f, g = sorted(shown, key=lambda row: row["path"])
    # main takes 1 s, f 2 s in p visits, and g p/2 s in one visit.
    assert float(main["value_at_largest_inclusive[s]"]) == pytest.approx((3 + 8) / (2 + 16))
    predicted = float(main["value_at_target_inclusive[s]"])
    assert predicted == pytest.approx((3 + 32) / (2 + 64), rel=1e-4)
    assert float(f["value_at_target_exclusive[s]"]) == pytest.approx(2 / 64, rel=1e-4)
    assert float(g["value_at_target_exclusive[s]"]) == pytest.approx(32, rel=1e-4)
    for column in ("excess_inclusive", "share_at_target_inclusive", "growth_inclusive"):
        assert not main[column]
    assert float(main["low_inclusive[s]"]) <= predicted


def test_a_linear_metric_is_like_a_measured_one(run, runs):
    twice = ("--define", "twice = 2 * time", "-m", "twice")
    of_both = [rows(run("rank", runs, "--target", 64, "-f", "csv", *more)) for more in ((), twice)]
    for one, other in zip(*of_both, strict=True):
        assert one["callpath"] == other["callpath"]
        value, expected = (float(row["value_at_target[s]"]) for row in (other, one))
        assert value == pytest.approx(2 * expected)
        assert float(other["excess_inclusive"]) == pytest.approx(float(one["excess_inclusive"]))


def test_the_run_time_stays_the_default(run, runs):
    done = json.loads(run("rank", runs, *RATIO, "--target", 64, "-f", "json").out)
    assert done["metric"] == "time"
    asked = (*RATIO, "-m", "per_visit", "--target", 64)
    done = json.loads(run("rank", runs, *asked, "-f", "json").out)
    assert done["metric"] == "per_visit"
    assert done["definitions"] == {"per_visit": "time / visits"}


def test_a_file_beside_the_runs_defines_metrics(run, runs):
    texts = '["a = time / visits", "b = no / a"]'
    path = write(runs / "cpmodel.toml", f"[defaults]\ndefine = {texts}\n")
    shown = run("info", runs)
    assert "= time / visits, does not add up" in shown.out
    assert "\nb " not in shown.out  # it does not apply to these runs
    assert rows(run("rank", runs, "-m", "a", "--target", 64, "-f", "csv"))
    # The list of the command line replaces that of the file.
    run("rank", runs, "-m", "a", "--target", 64, *RATIO).fails(2, "no metric 'a'")
    write(path, '[defaults]\ndefine = ["time = visits"]\n')
    run("rank", runs, "--target", 64).fails(2, "cpmodel.toml", "'time' is a measured metric")


def test_verdicts_name_the_definitions_of_an_untrusted_file(run, runs, tmp_path):
    write(runs / "cpmodel.toml", '[defaults]\ndefine = ["a = time / visits"]\n')
    limits = write(
        tmp_path / "limits.toml",
        'schema = 1\n[[expect]]\ncallpath = "main/f"\nmetric = "a"\nvalue = "<= 1 s"\n',
    )
    done = run("check", runs, limits, "--target", 64)
    assert done.status == 0, done.err
    assert 'define "a = time / visits"' in done.out


def test_shards_keep_definitions(run, runs, tmp_path):
    asked = (*RATIO, "-m", "per_visit")
    files = [tmp_path / f"{k}.shard" for k in (1, 2)]
    for k, file in enumerate(files, start=1):
        assert run("fit", runs, *asked, "--shard", f"{k}/2", "-o", file).status == 0
    assert run("merge", *files, "-o", tmp_path / "merged.cpm").status == 0
    assert run("fit", runs, *asked, "-o", tmp_path / "one.cpm").status == 0
    check_same_stores(tmp_path / "merged.cpm", tmp_path / "one.cpm")
    run("fit", runs, "-m", "time", "--shard", "2/2", "-o", files[1], "--force")
    run("merge", *files, "-o", tmp_path / "more.cpm").fails(4, "--define")


def test_a_store_makes_ratios_again_after_call_paths_are_folded(run, runs, tmp_path):
    stored = tmp_path / "app.cpm"
    assert run("fit", runs, *RATIO, "-o", stored).status == 0
    asked = ("-m", "per_visit", "--hide", "**/f", "--what", "values", "-f", "csv")
    of_both = [
        rows(run("export", source, *asked, *more)) for source, more in ((runs, RATIO), (stored, ()))
    ]
    assert of_both[0] == of_both[1]
    largest = [float(row["value[s]"]) for row in of_both[0] if row["p"] == "16.0"]
    assert largest == pytest.approx([3 / 17, 8])
    run("rank", stored, "--target", 64, "--define", "per_visit = visits / time").fails(
        2, "was defined as 'time / visits' before"
    )


def test_a_history_compares_records_of_one_formula_only(run, runs, tmp_path):
    path = tmp_path / "h.db"
    ratio = "time / visits"
    for commit, formula in (("a", ratio), ("b", ratio), ("c", f"{ratio} / 2")):
        asked = ("--define", f"x = {formula}", "-m", "x", "--commit", commit)
        done = run("watch", "add", path, runs, *asked)
        assert done.status == 0, done.err
    series = [each.series for each in history_store.read(path)]
    assert series[0] == series[1] != series[2]


def test_single_processes_have_no_defined_metric(run, runs):
    run("show", runs, "main/f", *RATIO, "-m", "per_visit", "--per-process").fails(
        2, "per_visit is defined by a formula", "-m time"
    )


def test_a_study_in_memory_defines_metrics(runs):
    experiment = Study(runs).reading(metrics=None).experiment()
    study = Study(experiment, LoadOptions(define="per_visit = time / visits"))
    assert study.ranking(target=64, metric="per_visit").value[1] == pytest.approx(2 / 64, rel=1e-3)
    assert study.experiment().values("per_visit", inclusive=True)[0, -1] == pytest.approx(11 / 18)


def test_a_report_has_the_call_tree_of_a_ratio(run, runs, tmp_path):
    page = tmp_path / "page.html"
    done = run("report", runs, *RATIO, "-m", "per_visit", "--target", 64, "-o", page)
    assert done.status == 0, done.err
    assert "the lines add up to the total of time" in page.read_text(encoding="utf-8")
