"""`cpmodel why` and the column `why` of rankings."""

from __future__ import annotations

import json
import re

import pytest


@pytest.fixture
def more_calls(series):
    def change(metrics, p):
        time, visits = metrics
        visits.values[2] = 3 * p
        return [time, visits]

    return series(change)


def test_why_names_the_cause_with_its_law_and_shares(run, more_calls):
    done = run("why", more_calls, "main/g", "--target", "64")
    assert done.status == 0
    first, second, *rest = done.out.splitlines()
    assert first.startswith("main/g   @")
    assert second == "why: more work"
    text = "\n".join(rest)
    agree = "requirements and time agree"
    for part in (
        "hypotheses: in proportion to requirements (",
        "visits",
        agree,
        "100 %",
        "95 % band",
    ):
        assert part in text


def test_why_in_json_has_every_number(run, more_calls):
    done = run("why", more_calls, "main/g", "--target", "64", "-f", "json")
    told = json.loads(done.out)
    assert (told["callpath"], told["class"], told["why"]) == ("main/g", "computation", "more work")
    assert told["agrees"] is True
    assert told["explained"]["low"] <= told["explained"]["value"] <= told["explained"]["high"]
    assert told["time"] == pytest.approx(32, rel=0.1)
    assert sum(told["probability"].values()) == pytest.approx(1)
    assert [row["metric"] for row in told["rows"]] == ["time", "visits"]


def test_calls_that_take_longer_are_not_explained(run, series):
    assert "why: unexplained" in run("why", series(), "main/g", "--target", "64").out


def test_a_ranking_has_a_column_of_causes(run, more_calls):
    done = run("rank", more_calls, "--target", "64", "-f", "csv", "--columns", "callpath,why")
    assert "main/g,more work" in done.out
    assert "main/f,-" in done.out
    assert " why " in run("rank", more_calls, "--target", "64", "--wide").out


def test_no_column_of_causes_where_nothing_is_known(run, series):
    done = run("rank", series(lambda metrics, _: metrics[:1]), "--target", "64", "--wide")
    assert " why " not in done.out


def test_a_graph_has_causes(run, more_calls):
    done = run("export", more_calls, "-f", "graphml", "--target", "64")
    assert "more work" in done.out


def test_other_metrics_have_no_causes(run, series):
    run("why", series(), "main/g", "-m", "visits").fails(4, "no cause is known")


def test_an_unknown_call_path_is_an_error(run, series):
    run("why", series(), "nowhere").fails(2, "nowhere")


def test_the_pipelined_receive_of_snap_waits(run, shared_data):
    sources = shared_data / "scorep" / "snap.weak"
    done = run("why", sources, "**/precv_d_3d/MPI_Recv", "--target", "256")
    assert "why: waits\n" in done.out


def test_work_on_the_root_of_a_sorting_program_is_found(run, shared_data):
    # One process sorts all numbers, while the others wait for their parts.
    sources = shared_data / "third_party" / "caliper" / "sort" / "team16_bitonic_random"
    asked = ("--where", "n=268435456", "--target", "4096")
    done = run("rank", sources, *asked, "-f", "csv", "--columns", "callpath,why")
    assert "main/comp/comp_large,imbalance" in done.out
    assert "main/comm/comm_large/mpi_scatter,waits for comp_large" in done.out
    told = run("why", sources, "main/comp/comp_large", *asked).out
    assert "it is as if one process did all of it" in " ".join(told.split())


def sent(folder, time):
    """Write a table of a call that sends ten megabytes to each process, counted with 32 bits."""
    points = (64, 128, 256, 512, 1024)
    rows = [f"main/MPI_Send,{p},{time(p)},{10_000_000 * p % 2**32}" for p in points]
    table = folder / "sent.csv"
    table.write_text("\n".join(["callpath,p,time[s],bytes_sent", *rows]) + "\n")
    return table


@pytest.fixture
def wrapped(tmp_path):
    return sent(tmp_path, lambda p: 0.01 * p)


@pytest.mark.parametrize("form", ["table", "json"])
def test_a_wrapped_counter_tells_no_cause(run, wrapped, form):
    done = run("why", wrapped, "main/MPI_Send", "--target", "8192", "-f", form)
    done.fails(4, "bytes_sent falls from p = 512 on")


def test_a_wrapped_counter_is_a_finding(run, wrapped):
    told = run("rank", wrapped, "-m", "bytes_sent", "--target", "8192", "-f", "json")
    (found,) = (each for each in json.loads(told.out)["findings"] if each["code"] == "CPM215")
    assert found["message"] == "1 call path of bytes_sent, from p = 512 on"


def test_show_says_that_a_counter_is_wrapped(run, wrapped):
    shown = " ".join(run("show", wrapped, "main/MPI_Send", "--target", "8192").out.split())
    assert "bytes_sent falls from p = 512 on" in shown
    assert "So the cause is unknown." in shown


def test_a_time_that_does_not_grow_needs_no_cause_however_its_counter_is_wrapped(run, tmp_path):
    table = sent(tmp_path, lambda _: 2)
    shown = run("show", table, "main/MPI_Send", "--target", "8192").out
    assert "The time does not grow." in shown
    ranked = run("rank", table, "--target", "8192", "-f", "csv", "--columns", "callpath,why").out
    assert "main/MPI_Send,-" in ranked


def test_an_unlikely_hypothesis_is_called_one_possibility(run, samples):
    done = run("why", samples / "stencil", "**/MPI_Allreduce")
    assert done.status == 0, done.err
    (line,) = [each for each in done.out.splitlines() if each.startswith("most probable of")]
    assert re.search(r"waits \([1-4]\d %\)\. None is likely", line)


def test_algorithms_that_are_unlikely_are_told_under_a_condition(run, shared_data):
    """The answer said "cannot tell which" above the only algorithm, with 100 %."""
    told = run("why", shared_data / "scorep/npb_ft.strong", "ft/MPI_Init", "--target", "256").out
    assert "why: waits" in told
    assert "algorithm, if requirements are the cause" in told
    assert "cannot tell which" not in told
