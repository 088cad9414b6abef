"""`cpmodel refine`: the table, the filter, its options, and errors."""

from __future__ import annotations

import csv
import io
import json
import unicodedata

import numpy as np
import pytest

from score_p_filters import excluded, rules

TARGET = ("--target", "1000")


@pytest.fixture
def frequent(series):
    """A series whose function g is small and frequent, and f is irregular and costly."""
    odd = {1: 20.0, 2: 90.0, 4: 15.0, 8: 140.0, 16: 30.0}

    def change(metrics, p):
        time, visits = metrics
        time.values = np.array([[50.0], [odd[p]], [0.1]]) * np.ones((1, p))
        visits.values = np.array([[1.0], [1.0], [1e6]]) * np.ones((1, p))
        visits.values[2, 0] = 2e6
        return [time, visits]

    def frequent(*names) -> object:
        return series(change, names=names or ("main", "f", "g"))

    return frequent


def test_a_filter_and_a_table_are_written(run, frequent, tmp_path):
    path = tmp_path / "scorep.filter"
    done = run("refine", frequent(), "--target", 64, "-o", path)
    assert done.status == 0, done.err
    made = rules(path.read_text())
    assert excluded(made, "g", "g -n 3")
    assert not excluded(made, "f", "f -n 3")
    assert "Instrument more finely: 1 call path" in done.out
    assert "Filter: 1 function with 100 % of the visits" in done.out
    assert "scorep --instrument-filter=" in done.out


def test_without_a_file_the_command_for_the_filter_is_shown(run, frequent):
    done = run("refine", frequent())
    assert done.status == 0
    assert done.out.splitlines()[-1].startswith("next: cpmodel refine ")
    assert "-o scorep.filter" in done.out


def test_the_overhead_is_visits_times_the_cost_of_a_visit(run, frequent):
    found = json.loads(run("refine", frequent(), "--visit-cost", "0.5us", "-f", "json").out)
    assert found["visit_cost"] == [5e-7, 5e-7]
    assert found["visits"]["before"] == pytest.approx(1e6 * 17 / 16 + 2)
    assert found["visits"]["after"] == pytest.approx(2)
    assert found["visits_at_most"] == pytest.approx({"before": 2e6 + 2, "after": 2})
    assert found["run_time"] == pytest.approx(80.1)
    text = run("refine", frequent_of(found), "--visit-cost", "0.5us").out
    assert "531 ms" in text
    assert "1.00 s" in text


def frequent_of(found):
    return found["inputs"][0]["path"].rpartition("/app.")[0]


def test_a_table_of_csv_has_a_row_for_each_function_and_call_path(run, frequent, tmp_path):
    path = tmp_path / "scorep.filter"
    out = run("refine", frequent(), "-f", "csv", "-o", path).out
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["action"], row["name"]) for row in rows] == [
        ("instrument", "main/f"), ("filter", "g"),
    ]  # fmt: skip
    assert rows[1]["linker_name"] == "g -n 3"
    assert float(rows[1]["time_per_visit[s]"]) == pytest.approx(0.1 / (1e6 * 17 / 16))
    assert path.read_text().startswith("# cpmodel refine: ")


def test_an_expectation_keeps_its_function(run, frequent, tmp_path):
    expected = tmp_path / "e.toml"
    expected.write_text('schema = 1\n[[expect]]\ncallpath = "main/g"\ngrowth = "O(1)"\n')
    out = run("refine", frequent(), "--expect", expected).out
    assert "alone in an expectation" in out
    assert "No function can be filtered" in out


def test_a_file_is_replaced_only_by_force(run, frequent, tmp_path):
    path = tmp_path / "scorep.filter"
    path.write_text("mine")
    runs = frequent()
    run("refine", runs, "-o", path).fails(6, "exists")
    assert path.read_text() == "mine"
    assert run("refine", runs, "-o", path, "--force").status == 0


@pytest.mark.parametrize(
    "cost", ["", "1", "1 B", "2us,1us", "1us,2us,3us", "0s", "-1us", "x" * 999]
)
def test_a_cost_that_is_no_range_of_times_is_refused(run, frequent, cost):
    run("refine", frequent(), "--visit-cost", cost).fails(2, "is no range of times")


def test_infinity_and_other_metrics_are_refused(run, frequent):
    runs = frequent()
    run("refine", runs, "--target", "inf").fails(2, "infinity", "--target")
    run("refine", runs, "-m", "visits").fails(2, "visits is no time", "-m")


def test_a_table_has_no_functions_of_a_compiler(run, tmp_path):
    table = tmp_path / "runs.csv"
    rows = [f"main,{p},10,1\nmain/f,{p},0.01,1000000" for p in (2, 4, 8, 16, 32)]
    table.write_text("\n".join(["callpath,p,time [s],visits", *rows, ""]))
    out = run("refine", table).out
    assert "No function was instrumented by a compiler" in out


def test_profiles_without_visits_are_refused(run, series):
    runs = series(lambda metrics, _: metrics[:1])
    run("refine", runs).fails(4, "no visits")


def test_hostile_names_do_not_leave_the_filter(run, series, tmp_path):
    hostile = 'g\nSCOREP_REGION_NAMES_END "\x1b]0;x\x07 <b>&'

    def change(metrics, p):
        metrics[0].values = np.array([[50.0], [40.0], [0.1]]) * np.ones((1, p))
        metrics[1].values = np.array([[1.0], [1.0], [1e6]]) * np.ones((1, p))
        return metrics

    runs = series(change, names=("main", "f", hostile))
    path = tmp_path / "scorep.filter"
    done = run("refine", runs, "-o", path)
    assert done.status == 0, done.err
    for text in (done.out, done.err, path.read_text()):
        assert {s for s in text if unicodedata.category(s) in {"Cc", "Cf"}} <= {"\n"}
    rules(path.read_text())


def test_ascii_output_has_no_other_characters(run, lulesh):
    assert run("--ascii", "refine", lulesh, *TARGET).out.isascii()


def test_a_store_with_visits_gives_the_same_filter(run, lulesh, tmp_path):
    store = tmp_path / "lulesh.cpm"
    assert run("fit", lulesh, "-o", store).status == 0
    one, other = tmp_path / "one", tmp_path / "other"
    assert run("refine", lulesh, *TARGET, "-o", one).status == 0
    assert run("refine", store, *TARGET, "-o", other).status == 0
    assert one.read_bytes() == other.read_bytes()
