"""The command `cpmodel guidelines tune`."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from cells import cells
from rule_readers import (
    Row,
    at_in_open_mpi_4,
    at_in_open_mpi_6,
    at_in_pgmpitunelib,
    open_mpi_4,
    open_mpi_6,
    pgmpitunelib,
)
from tuned_library import NAMES, SIZES, campaign, flawless, slow_allreduce, with_the_rule

ALLREDUCE, RSB, BCAST = 2, 13, 7


def slow_gather(name, size, p):
    """Return a library in which only Gather is slow, for which Open MPI has no such algorithm."""
    return flawless(name, size, p) * (4 if name == "MPI_Gather" else 1)


@pytest.fixture
def before(tmp_path):
    return campaign(tmp_path / "before", slow_allreduce)


def rows(outcome, status=0):
    assert outcome.status == status, outcome.err
    return list(csv.DictReader(io.StringIO(outcome.out)))


def test_the_table_names_the_faster_way_and_the_gain(run, before):
    found = rows(run("guidelines", "tune", before, "-f", "csv"))
    best = {(row["function"], row["size"]): row for row in found if row["is_best"] == "true"}
    assert {*best} == {("Allreduce", "256.0"), ("Allreduce", "1024.0")}
    for row in best.values():
        assert row["way"] == "Reduce + Bcast"
        assert float(row["low"]) < 0.5 < float(row["high"])
        saved = float(row["before[s]"]) - float(row["after[s]"])
        assert float(row["saved[s]"]) == pytest.approx(saved)
        assert float(row["gain"]) == pytest.approx(0.5, abs=0.05)
        assert row["openmpi_algorithm"] == "2"
        assert row["pgmpitunelib_mock_up"] == "allreduce_as_reduce_bcast"
    told = run("guidelines", "tune", before)
    assert "2 of 42 measured places are faster in another way." in told.out
    assert "256 … 1,024  2 nonoverlapping  mock-up" in told.out or "256 … 1024" in told.out


def test_a_flawless_library_has_no_gain_and_no_file(run, tmp_path):
    folder = campaign(tmp_path / "flawless", flawless)
    assert (
        "No way is shown to be faster at any of 42 measured places."
        in run("guidelines", "tune", folder).out
    )
    for form, name in (("openmpi", "r.conf"), ("openmpi6", "r.json"), ("pgmpitunelib", "dir")):
        path = tmp_path / name
        run("guidelines", "tune", folder, "-f", form, "-o", path).fails(
            4, "no rule, so nothing is written: no gain is shown"
        )
        assert not path.exists()


def test_a_gain_without_an_algorithm_is_not_written_for_open_mpi(run, tmp_path):
    folder = campaign(tmp_path / "gather", slow_gather)
    run("guidelines", "tune", folder, "-f", "openmpi").fails(
        4, "Gather <= Allgather", "no algorithm of Open MPI does this"
    )
    path = tmp_path / "dir"
    assert run("guidelines", "tune", folder, "-f", "pgmpitunelib", "-o", path).status == 0
    files = [each.relative_to(path) for each in path.rglob("*.prf")]
    assert [str(each) for each in files] == ["p4/gather.prf"]
    found = pgmpitunelib((path / "p4/gather.prf").read_text())
    assert found[:2] == ("MPI_Gather", 4)
    assert at_in_pgmpitunelib(found, 4, 64) == "gather_as_allgather"
    assert at_in_pgmpitunelib(found, 4, 16385) is None


def test_rules_hold_where_a_gain_was_shown_and_nowhere_else(run, before, tmp_path):
    text = tmp_path / "rules.conf"
    assert run("guidelines", "tune", before, "-f", "openmpi", "-o", text).status == 0
    old = open_mpi_4(text.read_text())
    told = run("guidelines", "tune", before, "-f", "openmpi6")
    new = open_mpi_6(told.out)
    assert {*old} == {ALLREDUCE}
    assert {*new} == {"allreduce"}
    for p in (2, 3, 4, 5, 8):
        for size in (0, 16, 64, 128, 129, 256, 1024, 2048, 2049, 4096, 10**9):
            row = Row(2, 4, 0) if p == 4 and 129 <= size <= 2048 else None
            assert at_in_open_mpi_4(old, ALLREDUCE, p, size) == row
            assert at_in_open_mpi_6(new, "allreduce", p, size) == row


def test_files_are_replaced_only_by_force(run, before, tmp_path):
    path = tmp_path / "rules.conf"
    path.write_text("mine")
    run("guidelines", "tune", before, "-f", "openmpi", "-o", path).fails(6, "exists")
    assert path.read_text() == "mine"
    told = run("guidelines", "tune", before, "-f", "openmpi", "-o", path, "--force")
    assert told.status == 0
    assert open_mpi_4(path.read_text())
    folder = tmp_path / "profiles"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    told = run("guidelines", "tune", before, "-f", "pgmpitunelib", "-o", folder, "--force")
    told.fails(6, "in the way")
    assert (folder / "thesis.txt").read_text() == "mine"
    run("guidelines", "tune", before, "-f", "pgmpitunelib").fails(2, "several files")


def test_small_gains_do_not_enter(run, before):
    assert rows(run("guidelines", "tune", before, "-f", "csv", "--min-gain", "60%")) == []
    told = run("guidelines", "tune", before, "--min-gain", "60%")
    assert "gain less than --min-gain" in told.out
    assert rows(run("guidelines", "tune", before, "-f", "csv", "--tolerance", "150%")) == []


def test_between_two_numbers_of_processes_both_have_to_gain(run, tmp_path):
    folder = campaign(tmp_path / "several", slow_allreduce, ps=(4, 8))
    old = open_mpi_4(run("guidelines", "tune", folder, "-f", "openmpi").out)
    got = [at_in_open_mpi_4(old, ALLREDUCE, p, 256) is not None for p in (2, 4, 6, 8, 9)]
    assert got == [False, True, True, True, False]


def test_blocks_are_counted_for_all_processes(run, tmp_path):
    def slow(name, size, p):
        whole = flawless("MPI_Reduce", p * size) + flawless("MPI_Scatter", size)
        is_slow = name == "MPI_Reduce_scatter_block" and size in (256, 1024)
        return 2 * whole if is_slow else flawless(name, size, p)

    folder = campaign(tmp_path / "blocks", slow)
    old = open_mpi_4(run("guidelines", "tune", folder, "-f", "openmpi").out)
    assert {*old} == {RSB}
    got = [size for size in (4 * 128, 4 * 129, 4 * 2048, 4 * 2049)
           if at_in_open_mpi_4(old, RSB, 4, size)]  # fmt: skip
    assert got == [4 * 129, 4 * 2048]


def table_of(path, library):
    """Write a table with the name of a library, as another program could."""
    rng = np.random.default_rng(2)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["library", "call", "p", "size", "mpirun", "latency_us"])
        for run in range(8):
            for name in NAMES:
                for size in SIZES:
                    time = slow_allreduce(name, size, 4) * float(np.exp(0.02 * rng.normal()))
                    writer.writerow([library, name, 4, size, run, time])
    return path


@cells("library", ["a # 7", "x\x1b[31m 9 9", "µ \u202e 3", "b" * 300, "0x10 5"])
def test_hostile_names_of_libraries_stay_in_comments(run, tmp_path, library):
    path = table_of(tmp_path / "bench.csv", library)
    old = open_mpi_4(run("guidelines", "tune", path, "-f", "openmpi").out)
    assert at_in_open_mpi_4(old, ALLREDUCE, 4, 256) == Row(2, 4, 0)
    folder = tmp_path / "profiles"
    assert run("guidelines", "tune", path, "-f", "pgmpitunelib", "-o", folder).status == 0
    found = pgmpitunelib((folder / "p4/allreduce.prf").read_text("ascii"))
    assert at_in_pgmpitunelib(found, 4, 256) == "allreduce_as_reduce_bcast"
    told = run("guidelines", "tune", path)
    assert "\x1b[31m" not in told.out


def test_sizes_that_a_library_does_not_have_are_left_out(run, tmp_path):
    """Open MPI keeps sizes as ``long``, and PGMPITuneLib as positive ``int``."""
    p, sizes = 10**6, (0, 8, 2**31, 2**53)
    path = tmp_path / "bench.csv"
    rng = np.random.default_rng(3)
    lines = ["call,p,size,mpirun,latency_us"]
    for run_number in range(8):
        for size in sizes:
            for name, time in (("Allgather", 90), ("Gather", 5), ("Bcast", 4), ("Alltoall", 9)):
                noisy = time * float(np.exp(0.02 * rng.normal()))
                lines.append(f"{name},{p},{size},{run_number},{noisy}")
    path.write_text("\n".join([*lines, ""]))
    rule = ("--rule", "Allgather <= Gather + Bcast")
    told = run("guidelines", "tune", path, *rule, "-f", "openmpi")
    assert told.status == 0, told.err
    old = open_mpi_4(told.out)
    new = open_mpi_6(run("guidelines", "tune", path, *rule, "-f", "openmpi6").out)
    for size, has_rule in ((0, True), (8 * p, True), (p * 2**31, True), (2**62, False)):
        assert (at_in_open_mpi_4(old, 0, p, size) is not None) == has_rule
        assert (at_in_open_mpi_6(new, "allgather", p, size) is not None) == has_rule
    folder = tmp_path / "profiles"
    assert run("guidelines", "tune", path, "-f", "pgmpitunelib", "-o", folder).status == 0
    found = pgmpitunelib((folder / f"p{p}/allgather.prf").read_text())
    assert found[2] == [(8, 8, "allgather_as_alltoall")]
    notes = {row["size"]: row["pgmpitunelib_note"]
             for row in rows(run("guidelines", "tune", path, "-f", "csv"))}  # fmt: skip
    assert "no such size" in notes["2147483648.0"]


# Measured algorithms.


def sweep(tmp_path, number, law):
    return campaign(tmp_path / f"a{number}", law, names=("MPI_Bcast", "MPI_Gather"), seed=number)


def slow_bcast(name, size, p):
    """Return a library in which Bcast takes three times as long as it could."""
    return (3 if name == "MPI_Bcast" else 1) * flawless(name, size, p)


def small(name, size, p):
    return flawless(name, size, p) * (1 if size < 1000 else 2.6)


def large(name, size, p):
    return flawless(name, size, p) * (2 if size < 1000 else 1)


def test_the_best_measured_algorithm_is_chosen_at_each_size(run, tmp_path):
    folder = campaign(tmp_path / "before", slow_bcast)
    sources = (f"ompi={folder}", f"ompi:bcast=6={sweep(tmp_path, 6, small)}",
               f"ompi:bcast=3/8192/2={sweep(tmp_path, 3, large)}")  # fmt: skip
    old = open_mpi_4(run("guidelines", "tune", *sources, "-f", "openmpi").out)
    assert {*old} == {BCAST}
    got = {size: at_in_open_mpi_4(old, BCAST, 4, size) for size in (15, 16, 512, 513, 16384, 16385)}
    assert got == {15: None, 16: Row(6, 4, 0), 512: Row(6, 4, 0), 513: Row(3, 2, 8192),
                   16384: Row(3, 2, 8192), 16385: None}  # fmt: skip
    found = rows(run("guidelines", "tune", *sources, "-f", "csv"))
    ways = {row["way"] for row in found if row["is_best"] == "true" and row["function"] == "Bcast"}
    assert ways == {
        "algorithm 6 (binomial)",
        "algorithm 3 (pipeline, segments of 8192 bytes, fan-out 2)",
    }
    assert {row["basis"] for row in found if row["way"].startswith("algorithm")} == {"algorithm"}


def half(name, size, p):
    return flawless(name, size, p) / 2


def test_a_rule_for_all_sizes_needs_a_gain_at_all_of_them(run, tmp_path):
    """Open MPI cannot select an algorithm of Gather by the size."""

    def slow(name, size, p):
        is_slow = name == "MPI_Gather" and size < 1000
        return flawless(name, size, p) * (3 if is_slow else 0.5 if name == "MPI_Gather" else 1)

    folder = campaign(tmp_path / "before", slow)
    sources = f"ompi={folder}", f"ompi:gather=2={sweep(tmp_path, 2, half)}"
    run("guidelines", "tune", *sources, "-f", "openmpi").fails(4, "not all of them gain")
    everywhere = campaign(tmp_path / "every", slow_gather)
    sources = f"ompi={everywhere}", f"ompi:gather=2={tmp_path / 'a2'}"
    old = open_mpi_4(run("guidelines", "tune", *sources, "-f", "openmpi").out)
    assert at_in_open_mpi_4(old, 9, 4, 0) == Row(2, 4, 0)
    assert at_in_open_mpi_4(old, 9, 4, 10**9) == Row(2, 4, 0)
    assert at_in_open_mpi_4(old, 9, 5, 16) is None


@pytest.mark.parametrize(
    ("source", "status", "words"),
    [
        ("ompi:bcast=0={}", 2, "algorithm 0"),
        ("ompi:ibcast=1={}", 2, "no rules for 'ibcast'"),
        ("ompi:bcast=1={}/nothing", 3, "no such file or directory"),
        ("mpich:bcast=1={}", 4, "only algorithm 1 was measured"),
        ("ompi:alltoall=1={}", 4, "Alltoall"),
    ],
)
def test_sweeps_that_make_no_sense_are_refused(run, before, source, status, words):
    told = run("guidelines", "tune", f"ompi={before}", source.format(before))
    told.fails(status, words)


def test_sweeps_alone_are_refused(run, before):
    run("guidelines", "tune", f"ompi:bcast=1={before}").fails(2, "library's own choice")


def test_rules_are_for_one_library(run, before, tmp_path):
    other = campaign(tmp_path / "other", flawless)
    sources = f"A={before}", f"B={other}"
    run("guidelines", "tune", *sources, "-f", "openmpi").fails(2, "2 libraries", "A, B")
    run("guidelines", "tune", *sources, "-f", "openmpi", "--library", "C").fails(2, "'C'")
    told = run("guidelines", "tune", *sources, "-f", "openmpi", "--library", "A")
    assert {*open_mpi_4(told.out)} == {ALLREDUCE}
    run("guidelines", "tune", *sources, "-f", "openmpi", "--library", "B").fails(4, "no rule")


# Promises.


def outcomes(found):
    return [(row["function"], row["size"], row["outcome"]) for row in found]


def test_a_promise_is_kept(run, before, tmp_path):
    after = campaign(tmp_path / "after", with_the_rule, seed=9)
    found = rows(run("guidelines", "tune", before, "--verify", after, "-f", "csv"))
    assert outcomes(found) == [("Allreduce", "256.0", "kept"), ("Allreduce", "1024.0", "kept")]
    for row in found:
        assert 0.4 < float(row["low"]) < float(row["measured"]) < float(row["high"]) < 0.6
        assert float(row["measured"]) == pytest.approx(float(row["promised"]), abs=0.05)
    told = run("guidelines", "tune", before, "--verify", after)
    assert "2 promises: 2 kept. None of 42 compared places is slower with the rules." in told.out
    document = json.loads(run("guidelines", "tune", before, "--verify", after, "-f", "json").out)
    assert document["violated"] == []
    assert document["compared"] == 42


def test_a_gain_that_does_not_come_is_a_broken_promise(run, before, tmp_path):
    after = campaign(tmp_path / "after", slow_allreduce, seed=9)
    found = rows(run("guidelines", "tune", before, "--verify", after, "-f", "csv"), 1)
    assert {row["outcome"] for row in found} == {"broken"}
    told = run("guidelines", "tune", before, "--verify", after)
    assert told.status == 1
    assert "Allreduce ≤ Reduce + Bcast" in told.out or "Allreduce <= Reduce + Bcast" in told.out


def test_a_gain_that_is_smaller_than_promised_is_a_broken_promise(run, before, tmp_path):
    def partly(name, size, p):
        return slow_allreduce(name, size, p) * (0.75 if name == "MPI_Allreduce" else 1)

    after = campaign(tmp_path / "after", partly, seed=9)
    found = rows(run("guidelines", "tune", before, "--verify", after, "-f", "csv"), 1)
    assert {row["outcome"] for row in found} == {"broken"}


def test_what_became_slower_fails(run, before, tmp_path):
    def tuned(name, size, p):
        return with_the_rule(name, size, p) * (1.5 if (name, size) == ("MPI_Bcast", 4096) else 1)

    after = campaign(tmp_path / "after", tuned, seed=9)
    found = rows(run("guidelines", "tune", before, "--verify", after, "-f", "csv"), 1)
    assert outcomes(found)[-1] == ("Bcast", "4096.0", "slower")
    assert float(found[-1]["measured"]) == pytest.approx(-0.5, abs=0.1)
    assert [row["outcome"] for row in found[:-1]] == ["kept", "kept"]


def test_few_mpiruns_decide_nothing(run, before, tmp_path):
    after = campaign(tmp_path / "after", flawless, mpiruns=1, seed=9)
    found = rows(run("guidelines", "tune", before, "--verify", after, "-f", "csv"))
    assert {row["outcome"] for row in found} == {"not decided"}


def test_a_place_that_was_not_measured_again_is_named(run, before, tmp_path):
    after = campaign(tmp_path / "after", flawless, names=("MPI_Bcast", "MPI_Reduce"))
    found = rows(run("guidelines", "tune", before, "--verify", after, "-f", "csv"))
    assert {row["outcome"] for row in found} == {"not measured"}
    nothing = tmp_path / "nothing.txt"
    nothing.write_text("hello")
    run("guidelines", "tune", before, "--verify", nothing).fails(3, "not the output")


def test_the_promise_of_an_algorithm_is_its_own_time(run, tmp_path):
    folder = campaign(tmp_path / "before", slow_bcast)
    sources = f"ompi={folder}", f"ompi:bcast=6={sweep(tmp_path, 6, half)}"
    after = campaign(tmp_path / "after", flawless, seed=9)
    found = rows(run("guidelines", "tune", *sources, "--verify", after, "-f", "csv"), 1)
    assert {row["outcome"] for row in found if row["function"] == "Bcast"} == {"broken"}
    kept = campaign(tmp_path / "kept", lambda n, s, p: half(n, s, p) if n == "MPI_Bcast"
                    else flawless(n, s, p), seed=9)  # fmt: skip
    found = rows(run("guidelines", "tune", *sources, "--verify", kept, "-f", "csv"))
    assert {row["outcome"] for row in found if row["function"] == "Bcast"} == {"kept"}


def test_without_rules_there_is_nothing_to_verify(run, tmp_path):
    folder = campaign(tmp_path / "flawless", flawless)
    run("guidelines", "tune", folder, "--verify", folder).fails(4, "nothing to verify")


def test_a_file_that_could_not_be_used_leaves_the_promise_open(run, before, tmp_path):
    def tuned(name, size, p):
        is_tuned = name == "MPI_Allreduce" and size in (256, 1024)
        return flawless(name, size, p) * (1 if not is_tuned else 0.9)

    after = campaign(tmp_path / "after", tuned, seed=9)
    (after / "p4_r99.dat").write_text("test nrep count runtime_sec\nMPI_Bcast 0 x 1\n")
    told = run("guidelines", "tune", before, "--verify", after)
    assert "2 kept" in told.out
    assert told.status == 3


def test_rules_and_verification_exclude_each_other(run, before):
    run("guidelines", "tune", before, "--verify", before, "-f", "openmpi").fails(2, "exclude")


def test_measured_campaigns_have_rules_that_open_mpi_reads(run, shared_data):
    folder = shared_data / "mpi_guidelines" / "openmpi414_quiet_p4" / "raw_data"
    other = shared_data / "mpi_guidelines" / "openmpi414_quiet_p2" / "raw_data"
    old = open_mpi_4(run("guidelines", "tune", folder, other, "-f", "openmpi").out)
    # Reduce_scatter_block takes ten times as long as Reduce and Scatter, at its longest message.
    assert at_in_open_mpi_4(old, RSB, 4, 4 * 102400) == Row(1, 4, 0)
    assert at_in_open_mpi_4(old, RSB, 2, 2 * 102400) == Row(1, 4, 0)
    assert at_in_open_mpi_4(old, RSB, 4, 4 * 32768) is None


@cells("source", ["none", "Open MPI=none"])
def test_a_campaign_that_does_not_exist_is_named(run, tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    done = run("guidelines", "tune", source)
    assert done.status == 3
    assert f"{source}: no such file or directory" in done.err
