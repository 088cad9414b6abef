"""`cpmodel trace replay --collectives`: measured times, and the cost of violated guidelines."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import benchmark_output
from benchmark_output import planted
from communication import traced

MPIRUNS = 8


def summing(rank):
    """Sum 256 bytes and transpose 700 bytes, each after a computation that all begin together."""
    for _ in range(10):
        rank.compute(10_000)
        rank.collective("allreduce", 256 * rank.ranks, 256 * rank.ranks)
        rank.compute(10_000)
        rank.collective("alltoall", 700 * rank.ranks, 700 * rank.ranks)
    rank.collective("barrier", 0, 0)


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    return traced(tmp_path_factory.mktemp("sums") / "app.p4", 4, summing)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return benchmark_output.write(tmp_path_factory.mktemp("bench"), "reprompi", planted, MPIRUNS)


def answer(run, *arguments):
    done = run("trace", "replay", *arguments, "-f", "json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    return found["platforms"][0]["seconds"], found["collectives"]


def test_calls_take_their_measured_times(run, sums, bench):
    alone, none = answer(run, sums)
    seconds, found = answer(run, sums, "--collectives", bench)
    assert none is None
    assert found["seconds_without"] == pytest.approx(alone)
    law = 10 * (20 + planted("Allreduce", 256) + planted("Alltoall", 700)) * 1e-6
    assert seconds == pytest.approx(law, rel=0.06)
    assert not 0.9 < seconds / alone < 1.1
    assert found["low"] < seconds < found["high"]
    assert (found["calls"], found["measured_calls"], found["judged_calls"]) == (21, 20, 20)
    assert found["modelled"] == [
        {"function": "barrier", "processes": 4, "reason": "not measured", "calls": 1}
    ]


def test_a_violated_guideline_costs_the_difference_to_its_other_side(run, bench, tmp_path):
    def once(rank):
        rank.compute(10_000)
        rank.collective("allreduce", 256 * rank.ranks, 256 * rank.ranks)

    _, found = answer(run, traced(tmp_path / "app.p4", 4, once), "--collectives", bench)
    (saving,) = found["savings"]
    assert (saving["function"], saving["calls"]) == ("allreduce", 1)
    assert saving["guidelines"] == ["Allreduce <= Reduce + Bcast"]
    law = (1 - 1 / 1.4) * planted("Allreduce", 256) * 1e-6
    assert saving["seconds"] == pytest.approx(law, rel=0.1)
    assert saving["low"] < law < saving["high"]


def test_text_says_what_is_from_where(run, sums, bench):
    text = " ".join(run("trace", "replay", sums, "--collectives", bench).out.split())
    assert "times of collectives are measured for 20 of 21 calls" in text
    assert "modelled: 1 call of barrier at p = 4: not measured" in text
    assert f"({MPIRUNS} mpiruns), messages from infiniband" in text
    assert "in 10 calls of allreduce: Allreduce ≤ Reduce + Bcast" in text


def test_no_violated_guideline_costs_nothing(run, sums, tmp_path):
    good = benchmark_output.write(tmp_path, "reprompi", benchmark_output.flawless, MPIRUNS)
    text = " ".join(run("trace", "replay", sums, "--collectives", good).out.split())
    assert (
        "violated guidelines cost 0 s: no guideline is violated at the sizes this program uses. "
        "20 of 21 calls were judged. At typical noise" in text
    )


def test_a_campaign_of_other_scales_leaves_all_times_as_modelled(run, bench, tmp_path):
    other = traced(tmp_path / "app.p3", 3, summing)
    done = run("trace", "replay", other, "--collectives", bench)
    text = " ".join(done.out.split())
    assert "measured for 0 of 21 calls" in text
    assert "10 calls of allreduce at p = 3: measured at p = 4 only" in text
    assert "no guideline was judged" in text
    assert answer(run, other, "--collectives", bench)[0] == answer(run, other)[0]


def test_other_roots_are_told(run, bench, tmp_path):
    def rooted(rank):
        for root in range(4):
            sent = 64 * rank.ranks if rank.rank == root else 0
            rank.collective("bcast", sent, 64, root=root)

    found = answer(run, traced(tmp_path / "app.p4", 4, rooted), "--collectives", bench)[1]
    assert (found["measured_calls"], found["other_roots"]) == (4, 3)


def test_what_is_no_campaign_is_refused(run, sums, bench, tmp_path):
    replay = ("trace", "replay", sums, "--collectives")
    run(*replay, tmp_path / "none").fails(3, "no such file or directory")
    noise = tmp_path / "noise.dat"
    noise.write_bytes(bytes(range(256)) * 9)
    run(*replay, noise).fails(3, "not the output of a known benchmark", "ReproMPI")
    run(*replay, bench, "--smpi").fails(2, "--smpi", "without")
    run(*replay, bench, "--another-platform", "loggopsim").fails(2, "--another-platform", "without")


FAT_TREE = """\
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="node-" suffix="" radical="0-15" speed="2Gf" bw="12.5GBps" lat="1.2us"/>
</platform>
"""


@pytest.mark.skipif(
    shutil.which("smpirun") is None, reason="needs SimGrid (smpicc, smpirun) for the truth"
)
def test_simulated_runs_take_what_measured_times_predict(run, tmp_path):
    platform = tmp_path / "p.xml"
    platform.write_text(FAT_TREE)
    ranks, size, rounds = 16, 4096, 20

    def of(name, rounds, ticks):
        def program(rank):
            for k in range(rounds):
                rank.compute(ticks * (10 + (7 * rank.rank + 3 * k) % 5))
                rank.collective(name, size * rank.ranks, size * rank.ranks)

        return traced(tmp_path / f"{name}{rounds}.p{ranks}", ranks, program)

    def truth(source):
        done = run("trace", "replay", source, "--smpi", "--platform", platform, "-f", "json")
        assert done.status == 0, done.err
        return json.loads(done.out)["rows"][0]["seconds"]

    rng = np.random.default_rng(3)
    lines = ["call,p,size,repetition,latency_us"]
    for name in ("allgather", "alltoall"):
        single = 1e6 * truth(of(name, 1, 0))
        lines += [
            f"MPI_{name.capitalize()},{ranks},{size},{k},{single * (1 + 0.01 * rng.normal())}"
            for k in range(1, 7)
        ]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(lines))
    app = of("allgather", rounds, 20_000)
    real, replaced = truth(app), truth(of("alltoall", rounds, 20_000))
    seconds, found = answer(run, app, "--collectives", table)
    assert seconds == pytest.approx(real, rel=0.03)
    assert abs(found["seconds_without"] / real - 1) > 0.03
    assert found["savings"][0]["seconds"] == pytest.approx(real - replaced, rel=0.1)
