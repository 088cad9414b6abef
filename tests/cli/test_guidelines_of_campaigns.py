"""The command `cpmodel guidelines` with the output of benchmarks."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import benchmark_output as bench
from benchmark_output import SIZES, P


def table(outcome):
    assert outcome.status == 0, outcome.err
    return list(csv.DictReader(io.StringIO(outcome.out)))


def violated(rows):
    return {row["guideline"] for row in rows if row["guideline_verdict"] == "violated"}


def campaign(folder, law, mpiruns=8, noise=0.02):
    """Write output of ReproMPI for a law of function names as in the file."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    for run in range(mpiruns):
        lines = [f"#@nprocs={P}", "test nrep count runtime_sec"]
        for name, size in law:
            time = law[name, size] * float(np.exp(noise * rng.standard_normal()))
            lines += [f"{name} {k} {size} {time * 1e-6:.12f}" for k in range(3)]
        (folder / f"mpi_bench_r{run}.dat").write_text("\n".join([*lines, ""]))
    return folder


@pytest.mark.parametrize("suite", ["reprompi", "osu", "imb", "skampi"])
def test_all_forms_of_a_flawless_library_have_no_violation(run, tmp_path, suite):
    folder = bench.write(tmp_path, suite, bench.flawless)
    found = table(run("guidelines", folder, "-f", "csv"))
    assert len(found) > 200
    assert violated(found) == set()


@pytest.mark.parametrize("suite", ["reprompi", "osu", "imb", "skampi"])
def test_all_forms_of_a_flawed_library_have_the_planted_violations(run, tmp_path, suite):
    folder = bench.write(tmp_path, suite, bench.planted)
    found = table(run("guidelines", folder, "-f", "csv"))
    assert violated(found) == {"Allreduce <= Reduce + Bcast", "Reduce_scatter <= Allreduce(p*m)"}
    sizes = {
        row["at"] for row in found
        if row["verdict"] == "violated" and row["function"] == "Allreduce"
    }  # fmt: skip
    assert sizes == {f"p={P},size={size}" for size in SIZES}


def test_all_forms_of_a_library_have_the_same_violated_checks(run, tmp_path):
    found = {}
    for suite in ("reprompi", "osu", "imb", "skampi"):
        folder = bench.write(tmp_path, suite, bench.planted)
        found[suite] = {
            (row["guideline"], row["at"])
            for row in table(run("guidelines", folder, "-f", "csv", "-n", "all"))
            if row["verdict"] == "violated"
        }
    assert len(found["reprompi"]) > len(SIZES)
    assert {*map(frozenset, found.values())} == {frozenset(found["reprompi"])}


# Mock-ups and composed sums.

MOCK_UP = {
    **{("MPI_Allreduce", size): 10.0 for size in (8, 64)},
    **{("GL_Allreduce_as_ReduceBcast", size): 6.0 for size in (8, 64)},
    **{("MPI_Reduce", size): 7.0 for size in (8, 64)},
    **{("MPI_Bcast", size): 6.0 for size in (8, 64)},
}


def test_a_measured_mock_up_wins_over_a_sum_and_the_difference_is_shown(run, tmp_path):
    folder = campaign(tmp_path / "c", MOCK_UP)
    rows = [
        row
        for row in table(run("guidelines", folder, "-f", "csv"))
        if row["guideline"] == "Allreduce <= Reduce + Bcast"
    ]
    assert {(row["basis"], row["verdict"]) for row in rows} == {("mock-up", "violated")}
    assert all(float(row["right[s]"]) == pytest.approx(6e-6, rel=0.05) for row in rows)
    assert all(float(row["composed"]) == pytest.approx(13e-6, rel=0.05) for row in rows)
    text = " ".join(run("guidelines", folder).out.split())
    assert "the sum differs from the mock-up by" in text


def test_without_a_mock_up_a_sum_is_labelled(run, tmp_path):
    few = {key: time for key, time in MOCK_UP.items() if not key[0].startswith("GL_")}
    few |= {("MPI_Allreduce", size): 20.0 for size in (8, 64)}
    folder = campaign(tmp_path / "c", few)
    rows = table(run("guidelines", folder, "-f", "csv"))
    told = {row["basis"] for row in rows if row["kind"] == "pattern"}
    assert told == {"composed"}
    text = " ".join(run("guidelines", folder).out.split())
    assert "without a measured mock-up" in text


def test_a_mock_up_without_a_built_in_guideline_is_checked(run, tmp_path):
    law = {("MPI_Bcast", 8): 9.0, ("GL_Bcast_as_Allgatherv", 8): 4.0}
    rows = table(run("guidelines", campaign(tmp_path / "c", law), "-f", "csv"))
    assert {(row["guideline"], row["verdict"]) for row in rows} == {
        ("Bcast <= Allgatherv", "violated")
    }


def test_guidelines_of_the_user_may_name_any_measured_function(run, tmp_path):
    law = {("Send_Recv", 8): 9.0, ("Isend_Irecv", 8): 4.0, ("MPI_Bcast", 8): 1.0}
    folder = campaign(tmp_path / "c", law)
    rows = table(run("guidelines", folder, "--rule", "Send_Recv <= Isend_Irecv", "-f", "csv"))
    assert violated(rows) == {"Send_Recv <= Isend_Irecv"}
    wrong = run("guidelines", folder, "--rule", "Send_Recv <= Isend_Recv")
    wrong.fails(2, "did you mean 'Send_Recv'")


def test_lists_of_pgmpi_are_guidelines(run, tmp_path):
    law = {("MPI_Bcast", 8): 9.0, ("MPI_Bcast_with_MPI_Allgatherv", 8): 4.0}
    path = tmp_path / "guideline_catalog.json"
    path.write_text(json.dumps([{"orig": "MPI_Bcast", "mock": "MPI_Bcast_with_MPI_Allgatherv",
                                 "msizes": [8]}]))  # fmt: skip
    folder = campaign(tmp_path / "c", law)
    rows = table(run("guidelines", folder, "--rule", path, "-f", "csv"))
    assert violated(rows) == {"Bcast <= Allgatherv"}
    path.write_text('[{"orig": "MPI_Bcast", "mock": "MPI_Gather_with_MPI_Reduce"}]')
    run("guidelines", folder, "--rule", path).fails(3, "is not a mock-up of MPI_Bcast")


# Pieces.


def test_a_message_is_compared_with_all_smaller_ones(run, tmp_path):
    law = {("MPI_Bcast", 1024): 10.0, ("MPI_Bcast", 1500): 200.0, ("MPI_Bcast", 2048): 210.0}
    rows = [
        row for row in table(run("guidelines", campaign(tmp_path / "c", law), "-f", "csv"))
        if row["kind"] == "split"
    ]  # fmt: skip
    found = {row["at"]: (row["verdict"], row["other_setting"], row["pieces"]) for row in rows}
    assert found["p=4,size=1500"] == ("violated", "p=4,size=1024", "2.0")
    assert found["p=4,size=2048"] == ("violated", "p=4,size=1024", "2.0")


# Error rates.


def test_error_rate_test_and_control_can_be_chosen(run, tmp_path):
    law = {**MOCK_UP, ("GL_Allreduce_as_ReduceBcast", 8): 9.0}
    folder = campaign(tmp_path / "c", law, mpiruns=5)
    for words in (("--control", "none"), ("--control", "holm"), ("--control", "bh"),
                  ("--test", "rank-sum"), ()):  # fmt: skip
        assert violated(table(run("guidelines", folder, *words, "-f", "csv")))
    strict = run("guidelines", folder, "--test", "rank-sum", "--control", "holm", "-f", "json")
    found = json.loads(strict.out)
    assert (found["test"], found["control"], found["error_rate"]) == ("rank-sum", "holm", 0.05)
    # With five mpiruns, a rank-sum test cannot show anything among so many checks.
    assert found["counts"]["violated"] == 0
    assert "0.0061 or larger" in found["power"]


def test_three_mpiruns_show_nothing_and_the_note_says_so(run, tmp_path):
    folder = campaign(tmp_path / "c", MOCK_UP, mpiruns=3)
    text = " ".join(run("guidelines", folder).out.split())
    assert (
        "With 3 mpiruns, nothing can be shown at an error rate of 5 %: measure at least 4" in text
    )
    assert violated(table(run("guidelines", folder, "-f", "csv"))) == set()


def test_outliers_inside_an_mpirun_can_be_removed(run, tmp_path):
    path = tmp_path / "r0.dat"
    times = [1e-6, 1.1e-6, 1.2e-6, 1.2e-6, 1.3e-6, 1.4e-6, 1.4e-6, 9e-5, 9.1e-5]
    rows = [f"MPI_{name} {k} 8 {time}" for name in ("Reduce", "Allreduce")
            for k, time in enumerate(times)]  # fmt: skip
    path.write_text("\n".join(["#@nprocs=4", "test nrep count runtime_sec", *rows, ""]))
    values = {}
    for choice in ("keep", "tukey"):
        (row,) = table(run("guidelines", path, "--outliers", choice, "-f", "csv"))
        values[choice] = float(row["left[s]"])
    assert values["keep"] == pytest.approx(1.3e-6)
    assert values["tukey"] == pytest.approx(1.2e-6)


# The published code.


def test_violations_of_the_published_code_are_printed_with_their_counts(run, tmp_path):
    folder = campaign(tmp_path / "c", MOCK_UP, mpiruns=5)
    rows = table(run("guidelines", folder, "--compat", "pgmpi", "-f", "csv"))
    columns = ["start", "end", "func", "name", "significance", "descr"]
    assert [*rows[0]][:6] == columns
    assert {(row["start"], row["func"], row["significance"]) for row in rows} == {
        ("8", "MPI_Allreduce<Reduce+Bcast", "**"),
        ("64", "MPI_Allreduce<Reduce+Bcast", "**"),
    }
    found = json.loads(run("guidelines", folder, "--compat", "pgmpi", "-f", "json").out)
    assert found["counts"] == {"/4": {"monotony": "0/9", "split": "0/9", "pattern": "1/15"}}
    text = run("guidelines", folder, "--compat", "pgmpi").out
    assert "monotony 0/9, split 0/9, pattern 1/15" in text
    assert run("guidelines", folder, "--compat", "pgmpi", "--fail-on", "violated").status == 1


def test_the_published_code_needs_mpiruns(run, samples):
    run("guidelines", samples / "lulesh", "--compat", "pgmpi").fails(2, "needs the output of a")


# Data quality and errors.


def test_a_verdict_needs_all_files(run, tmp_path):
    folder = campaign(tmp_path / "c", {("MPI_Reduce", 8): 1.0, ("MPI_Allreduce", 8): 2.0})
    assert run("guidelines", folder, "--fail-on", "violated").status == 0
    (folder / "mpi_bench_r9.dat").write_text("#@nprocs=4\ntest nrep count runtime_sec\nMPI_Bcast 0")
    done = run("guidelines", folder, "--fail-on", "violated")
    assert done.status == 3
    assert "1 profile could not be used, so the verdict rests on the other runs" in done.err
    assert run("guidelines", folder).status == 0
    run("guidelines", folder, "--strict").fails(3, "line 3")


def test_a_table_without_processes_has_those_of_the_option(run, tmp_path):
    path = tmp_path / "nop.csv"
    path.write_text("call,size,repetition,latency_us\nMPI_Gather,8,1,4\nMPI_Allgather,8,1,3\n")
    done = run("guidelines", path, "--processes", "4")
    assert done.status == 0, done.err
    assert "+33 %" in done.out
    run("guidelines", path).fails(3, "the number of processes is not stated")


def test_a_number_of_processes_of_zero_is_an_error(run, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("call,p,size,repetition,latency_us\nMPI_Bcast,0,8,1,2\n")
    run("guidelines", path).fails(3, "line 2: number of processes '0'")
    path.write_text("call,p,size,repetition,latency_us,note_us\nMPI_Bcast,0,8,1,2,3\n")
    run("guidelines", path, "-m", "latency").fails(4, "p = 0 is not a number of processes")


def test_control_characters_of_names_do_not_reach_the_terminal(run, tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{lib}/MPI_{name},4,8,{k},{time}" for k in range(5) for lib in ("\x1b[31mA",)
            for name, time in (("Reduce", 9 + k), ("Allreduce", 1 + k))]  # fmt: skip
    path.write_text("\n".join(["call,p,size,repetition,latency_us", *rows, ""]))
    for words in ((), ("-f", "csv"), ("--compat", "pgmpi")):
        done = run("guidelines", path, *words)
        assert done.status == 0, done.err
        assert "\x1b[31m" not in done.out + done.err


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--error-rate", "0%"), 2, "not between 0 and 100 %"),
        (("--error-rate", "much"), 2, "--error-rate"),
        (("--test", "ks", "--control", "permutation"), 2, "does not apply to --test ks"),
        (("--processes", "0"), 2, "--processes"),
    ],
)
def test_impossible_options_are_one_line_with_a_hint(run, tmp_path, words, status, said):
    folder = campaign(tmp_path / "c", MOCK_UP)
    run("guidelines", folder, *words).fails(status, said)


def test_some_runs_can_be_selected(run, tmp_path):
    folder = campaign(tmp_path / "c", MOCK_UP)
    rows = table(run("guidelines", folder, "--where", "size=8", "-f", "csv"))
    assert {row["at"] for row in rows} == {"p=4,size=8"}


def test_numbers_of_repetitions_are_printed(run, tmp_path):
    lines = [f"MPI_Bcast {k} 8 {1e-6 * (1 + 0.01 * (k % 3)):.12f}" for k in range(100)]
    path = tmp_path / "r0.dat"
    path.write_text("\n".join(["#@nprocs=4", "test nrep count runtime_sec", *lines, ""]))
    (row,) = table(run("guidelines", path, "--nrep", "rse=0.01,cov_mean=0.01/20", "-f", "csv"))
    assert [*row][:3] == ["function", "size", "nrep"]
    assert (row["function"], row["size"], row["nrep"], row["met"]) == (
        "MPI_Bcast", "8", "25", "true",
    )  # fmt: skip
    assert run("guidelines", path, "--nrep", "rse=0.01").out.startswith("1 cell: at most 10")
    run("guidelines", path, "--nrep", "rse").fails(2, "--nrep 'rse' is malformed")
    run("guidelines", path, "--nrep", "rse=0.1", "--nrep-batches", "x").fails(2, "--nrep-batches")
