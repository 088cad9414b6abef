"""`cpmodel efficiency` on the command line."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import configured
from efficient_runs import NAMES, message_passing, write_run, write_series


@pytest.fixture
def growing(tmp_path):
    """Weak scaling with load balance 0.8, and communication that grows with p."""
    return write_series(
        tmp_path / "runs", (4, 8, 16, 32, 64), lambda _: 8.0, 0.8, lambda p: 1 / (1 + 0.02 * p)
    )


@pytest.fixture
def single(tmp_path):
    return write_run(tmp_path, "app.p4", [1] * 4, message_passing([8, 4, 4, 4], 10))


@pytest.fixture
def hybrid(tmp_path):
    time = np.zeros((len(NAMES), 4))
    time[2, [0, 2]] = 2
    time[4] = 10, 6, 8, 8
    time[5] = 2, 6, 0, 0
    time[3, [0, 2]] = 6, 10
    return write_run(tmp_path, "app.p2", [2, 2], time)


def factors(text):
    """Return the last value of each factor, as a text without its unit."""
    lines = [line.split(None, 2) for line in text.splitlines() if " %" in line]
    return {line[2].strip(): line[0] for line in lines if len(line) == 3}


def test_one_profile_is_told(run, single):
    told = run("efficiency", single)
    assert told.status == 0
    assert told.out.startswith(
        "app: parallel efficiency 50.0 % at p = 4; the lowest factor is load balance, 62.5 %"
    )
    assert "computation scalability" not in told.out
    assert "main/solve" in told.out


def test_every_scale_and_the_target_have_a_column(run, growing):
    told = run("efficiency", growing, "--scaling", "weak", "--target", "256")
    assert told.status == 0, told.err
    assert "predicted at p = 256" in told.out.splitlines()[0]
    header = next(line for line in told.out.splitlines() if line.endswith("factor")).split()
    assert header == ["p=4", "p=8", "p=16", "p=32", "p=64", "p=256", "band", "factor"]
    assert (
        "weak scaling (as told): computation scalability compares the mean per thread" in told.out
    )


def test_strong_scaling_is_told_with_its_reason(run, tmp_path):
    folder = write_series(tmp_path, (4, 8, 16), lambda p: 80 / p, 0.8, lambda _: 0.9)
    told = run("efficiency", folder)
    assert "strong scaling (computation per process goes as p^-1.00)" in told.out
    assert "compares the sum over all threads with p = 4" in told.out
    assert f"next: cpmodel efficiency {folder} --target 64" in told.out


def test_hybrid_programs_have_factors_of_processes_and_threads(run, hybrid):
    value = factors(run("efficiency", hybrid).out)
    assert value["MPI efficiency"] == "60.0"
    assert value["OpenMP efficiency"] == "75.0"
    assert value["serial regions"] == "91.7"
    assert value["parallel regions"] == "81.8"
    additive = run("efficiency", hybrid, "--scheme", "additive").out
    assert "additive scheme" in additive
    assert factors(additive)["serial regions"] == "95.0"


@pytest.mark.parametrize("form", ["csv", "json"])
def test_programs_get_all_factors_of_both_schemes(run, growing, form):
    told = run("efficiency", growing, "--scaling", "weak", "--target", "256", "-f", form)
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(told.out)))
    else:
        document = json.loads(told.out)
        rows = document["rows"]
        assert (document["scaling"], document["reference"]) == ("weak", 4)
        parts = document["scales"][-1]["seconds_per_thread"]
        assert parts["imbalance"] == pytest.approx(2)
        assert parts["communication"] == pytest.approx(10 * 0.02 * 64)
    assert {row["scheme"] for row in rows} == {"multiplicative", "additive"}
    (one,) = [
        row
        for row in rows
        if (row["callpath"], row["scheme"], row["factor"]) == (
            "<program>", "multiplicative", "load_balance")
        and float(row["scale"]) == 256
    ]  # fmt: skip
    assert float(one["value"]) == pytest.approx(0.8, rel=0.01)
    assert float(one["low"]) <= float(one["value"]) <= float(one["high"]) <= 1
    assert int(one["runs"]) == 0


def test_a_pipe_gets_whole_lines_of_ascii(spawn, single):
    told = spawn("--ascii", "efficiency", single)
    assert told.status == 0, told.err
    assert told.out.isascii()
    assert "communication efficiency" in told.out


def test_subtrees_are_selected_by_a_pattern(run, single):
    told = run("efficiency", single, "--select", "**/MPI_*", "-f", "csv")
    assert {row["callpath"] for row in csv.DictReader(io.StringIO(told.out))} == {
        "<program>",
        "main/solve/MPI_Allreduce",
    }
    run("efficiency", single, "--select", "nothing").fails(2, "no call path matches")


def test_hidden_call_paths_are_not_listed(run, single):
    assert "main/solve" in run("efficiency", single).out
    assert "main/solve" not in run("efficiency", single, "--hide", "**/solve").out


def test_a_store_is_refused_with_the_remedy(run, stored):
    run("efficiency", stored).fails(2, "no values of single processes", "give the profiles")


def test_a_table_of_means_is_refused_with_the_reason(run, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("p,callpath,time\n4,main,1\n8,main,2\n")
    told = run("efficiency", path)
    told.fails(4, "no values of single threads", "Score-P")


def test_values_of_other_parameters_are_checked(run, growing):
    run("efficiency", growing, "--at", "n=3").fails(2, "no parameter 'n'")


def test_a_time_must_be_a_time(run, single):
    run("efficiency", single, "-m", "nothing").fails(2, "no metric 'nothing'")


def test_a_target_of_a_configuration_file_does_not_stop_a_single_run(
    run, single, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "me"))
    configured.trust(single.parent)
    (single.parent / "cpmodel.toml").write_text("[defaults]\ntarget = 1024\n")
    told = run("efficiency", single)
    assert told.status == 0, told.err
    assert "predicted" not in told.out


def test_trees_of_several_processors_read_the_same(run, growing):
    one, two = (run("efficiency", growing, "-f", "csv", "-j", jobs).out for jobs in ("1", "2"))
    assert one == two


@pytest.mark.parametrize("damage", [b"", b"x" * 100])
def test_damaged_profiles_are_refused_in_one_line(run, single, damage):
    single.write_bytes(damage)
    told = run("efficiency", single)
    assert told.status != 0
    assert "Traceback" not in told.err
