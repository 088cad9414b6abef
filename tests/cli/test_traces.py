"""Traces on the command line: the result is that of profiles, also next to other files."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import cube_writer as cw
from trace_writer import Comm, Thread, Trace, write_trace

SCALES = (2, 4, 8, 16, 32)
FUNCTIONS = ("app", "main", "solve", "MPI_Allreduce")
TICKS = 10**6


def costs(p):
    """Exclusive ticks of each call path on each process."""
    solve = 2_000_000 + 1000 * np.arange(p)
    allreduce = np.full(p, 1000 * p + 5000)
    return np.stack([np.full(p, 10), np.full(p, 200_000), solve, allreduce])


def traced(own):
    root, main, solve, allreduce = own.tolist()
    begun = 1000
    entered = begun + root
    solved = entered + main + solve
    reduced = solved + allreduce
    return [
        ("program_begin", begun, "/opt/app", ()),
        ("enter", entered, "main"),
        ("enter", entered + main, "solve"),
        ("leave", solved, "solve"),
        ("enter", solved, "MPI_Allreduce"),
        ("mpi_collective_begin", solved),
        ("mpi_collective_end", reduced, 11, Comm("WORLD"), 2**32 - 1, 8, 8),
        ("leave", reduced, "MPI_Allreduce"),
        ("leave", reduced, "main"),
        ("program_end", reduced, 0),
    ]


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """The same measurements as traces and as profiles."""
    folder = tmp_path_factory.mktemp("series")
    (folder / "traces").mkdir()
    for p in SCALES:
        own = costs(p)
        processes = [[Thread(traced(own[:, rank]))] for rank in range(p)]
        write_trace(folder / "traces" / f"app.p{p}", Trace(processes, resolution=TICKS))
        tree = cw.Tree([-1, 0, 1, 1], list(FUNCTIONS), roles={"app": "artificial"})
        metric = cw.MetricToWrite("time", tree.subtree_sums(own / TICKS), "INCLUSIVE", unit="sec")
        target = folder / "profiles" / f"app.p{p}"
        target.mkdir(parents=True)
        cw.write(target / "profile.cubex", tree, [metric], cw.Machine([1] * p))
    return folder


def ranked(run, *arguments):
    done = run("rank", *arguments, "--target", "1024", "-f", "csv")
    assert done.status == 0, done.err
    return list(csv.DictReader(io.StringIO(done.out)))


def test_traces_rank_like_profiles_of_the_same_runs(run, series):
    traces, profiles = (ranked(run, series / kind) for kind in ("traces", "profiles"))
    assert [row["callpath"] for row in traces] == [row["callpath"] for row in profiles]
    for ours, theirs in zip(traces, profiles, strict=True):
        assert ours["growth"] == theirs["growth"]
        column = "value_at_target[s]"
        assert float(ours[column]) == pytest.approx(float(theirs[column]), rel=1e-6)


def test_a_trace_beside_a_profile_changes_nothing(run, series, tmp_path):
    before = ranked(run, series / "profiles")
    both = tmp_path / "both"
    for p in SCALES:
        for kind in ("traces", "profiles"):
            (both / f"app.p{p}").mkdir(parents=True, exist_ok=True)
            for file in (series / kind / f"app.p{p}").iterdir():
                (both / f"app.p{p}" / file.name).symlink_to(file)
    assert ranked(run, both) == before
    by_traces = ranked(run, both, "--reader", "otf2")
    assert by_traces == ranked(run, series / "traces")


def test_info_says_what_traces_hold(run, series):
    done = run("info", series / "traces", "-f", "json")
    assert done.status == 0, done.err
    told = json.loads(done.out)
    assert "app" in done.out
    assert {"time", "visits", "collectives"} <= {row["name"] for row in told["metrics"]}
    verified = run("info", series / "traces", "--verify")
    assert verified.status == 0, verified.err
    assert "differ" not in verified.out


def test_a_broken_trace_among_good_ones_is_left_out_by_name(run, series, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(series / "traces", copy)
    events = copy / "app.p8" / "traces" / "3.evt"
    events.write_bytes(events.read_bytes()[:40])
    done = run("info", copy)
    assert done.status == 0
    assert "CPM101" in done.err
    assert "traces/3.evt" in done.err
    shutil.rmtree(copy / "app.p8" / "traces")
    run("info", copy / "app.p8").fails(3, "traces/", "copy the trace again")
