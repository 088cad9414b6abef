"""Bottlenecks of GPU programs and training runs, as findings of `rank` and `why`."""

from __future__ import annotations

import json

import pytest

import kineto_writer as kw
from cells import cells

P = (1, 2, 4)
KINDS = ("CPM190", "CPM191", "CPM192", "CPM193")


def series(path, *, launch=10, kernel=80, waiting=0, data=0, late=0):
    """Write a training run at each p, with steps of at least 1000 us; all times are in us.

    The last rank computes `late` longer, and the others wait.
    """
    for p in P:
        for rank in range(p):
            trace = kw.TraceToWrite(distributedInfo={"rank": rank, "world_size": p})
            for step in range(3):
                at = start = 2000.0 * step
                number = 100 * step
                if data:
                    trace.event("user_annotation", "data", at + 1, data)
                    at += data + 2
                for k in range(4):
                    number += 1
                    at += launch + 1
                    trace.event("cuda_runtime", "cudaLaunchKernel", at - launch, launch,
                                correlation=number)  # fmt: skip
                    trace.event("kernel", "void mm<4>(int)", at + 2 + 90 * k, kernel, 7, 0,
                                correlation=number, device=0, stream=7)  # fmt: skip
                work = 800 + (late if p > 1 and rank == p - 1 else 0)
                trace.event("cpu_op", "aten::mm", at, work)
                at += work
                if waiting:
                    trace.event("user_annotation", "nccl:all_reduce", at + 1, waiting)
                    at += waiting + 2
                trace.event("user_annotation", f"ProfilerStep#{step}", start, at - start + 1)
            trace.write(path / f"run.p{p}" / f"rank-{rank}.json")
    return path


def bottlenecks(run, *asked):
    outcome = run(*asked, "-f", "json")
    assert outcome.status == 0, outcome.err
    found = json.loads(outcome.out)["findings"]
    return {each["code"]: each["message"] for each in found if each["code"] in KINDS}


def test_a_balanced_run_with_long_kernels_has_no_bottleneck(run, tmp_path):
    assert bottlenecks(run, "rank", series(tmp_path / "runs"), "--target", "8") == {}


def test_launches_that_take_longer_than_their_kernels_are_named(run, tmp_path):
    runs = series(tmp_path / "runs", launch=120, kernel=5)
    (code, text), *others = bottlenecks(run, "rank", runs, "--target", "8").items()
    assert (code, others) == ("CPM190", [])
    # Three steps have four launches each.
    assert "launches take 1.44 ms" in text
    assert "their kernels 60.0 µs of the GPU" in text
    assert "most for mm<4> below ProfilerStep/cudaLaunchKernel" in text
    assert text.endswith("p = 4")
    (row,) = (
        each
        for each in json.loads(run("rank", runs, "--target", "8", "-f", "json").out)["rows"]
        if each["callpath"] == "ProfilerStep/cudaLaunchKernel"
    )
    assert row["value_at_largest"] == pytest.approx(1.44e-3)


@cells(
    ("options", "code", "part"),
    [
        ({"waiting": 400}, "CPM191", "spends 1.20 ms"),
        ({"data": 300}, "CPM192", "data loading takes 900 µs"),
        ({"late": 500}, "CPM193", "in ProfilerStep/aten::mm, which is 1.12 ms"),
    ],
)
def test_each_bottleneck_has_its_time_and_share(run, tmp_path, options, code, part):
    runs = series(tmp_path / code, **options)
    found = bottlenecks(run, "rank", runs, "--target", "8")
    assert set(found) == {code}
    assert part in found[code]
    assert "% of the run time" in found[code]


def test_why_names_them_too(run, tmp_path):
    runs = series(tmp_path / "runs", waiting=400)
    found = bottlenecks(run, "why", runs, "ProfilerStep/nccl:all_reduce")
    assert set(found) == {"CPM191"}


def test_other_programs_have_no_such_findings(run, samples):
    assert bottlenecks(run, "rank", samples / "stencil", "--target", "1024") == {}
