"""`cpmodel show` compares time with calls, bytes and operations."""

from __future__ import annotations

import cube_writer as cw

VERDICT = (
    "Requirements do not grow as the time does, so it is more work in each call, or contention: "
    "requirements explain 0 % of the time at p = 64."
)


def section(out):
    lines = out.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("requirements"))
    return lines[start : lines.index("", start)]


def test_show_says_that_as_many_calls_take_longer(run, series):
    done = run("show", series(), "main/g", "--target", "64")
    assert done.status == 0
    head, time, visits, *verdict = section(done.out)
    assert head.split() == ["requirements", "p=1", "p=16", "change", "growth", "p=64"]
    assert time.split() == ["time", "500", "ms", "8.00", "s", "×", "16", "O(p)", "32.0", "s"]
    assert visits.split() == ["visits", "1.00", "1.00", "×", "1", "O(1)", "1.00"]
    assert " ".join(verdict) == VERDICT


def test_of_functions_that_wait_for_others_the_rest_is_waiting(run, lulesh):
    done = run("show", lulesh, "main/MPI_Init", "--target", "1000")
    assert "it is waiting or slower messages: " in " ".join(section(done.out))


def test_show_names_what_explains_the_time(run, series):
    def more_calls(metrics, p):
        time, visits = metrics
        visits.values[2] = 3 * p
        return [time, visits]

    done = run("show", series(more_calls), "main/g", "--target", "64")
    said = "More work: requirements explain 100 % of the time at p = 64."
    assert section(done.out)[-1] == said


def test_show_of_a_constant_says_that_nothing_became_more(run, series):
    done = run("show", series(), "main/f", "--target", "64")
    assert section(done.out)[-1] == "The time does not grow."


def test_without_counts_there_are_no_requirements(run, series):
    done = run("show", series(lambda metrics, _: metrics[:1]), "main/g", "--target", "64")
    assert done.status == 0
    assert "requirements" not in done.out


def test_what_was_measured_at_the_target_is_held_against_the_runs(run, series):
    done = run("show", series(), "main/g", "--target", "16")
    head, *_ = section(done.out)
    assert head.split() == ["requirements", "p=1", "p=16", "change", "growth"]


def test_a_store_of_all_metrics_tells_the_same(run, series, tmp_path):
    runs, kept = series(), tmp_path / "app.cpm"
    assert run("fit", runs, "-o", kept).status == 0
    asked = ("main/g", "--target", "64")
    assert section(run("show", kept, *asked).out) == section(run("show", runs, *asked).out)


def test_runs_whose_run_time_is_another_metric_are_still_refused(run, series):
    def other_time(metrics, p):
        time, visits = metrics
        name = "time" if p < 4 else "cpu_time"
        return [cw.MetricToWrite(name, time.values, unit="sec"), visits]

    run("show", series(other_time), "main/g", "--target", "64").fails(
        4, "the runs measured the run time with different metrics"
    )
