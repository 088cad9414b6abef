"""Time on GPU streams on the command line: modelled and ranked like any time, never a run time."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import cube_writer as cw
from trace_writer import Comm, Thread, Trace, write_trace

SCALES = (2, 4, 8, 16)
TICKS = 10**6
STREAMS = 2
ON_GPU = "time on GPU streams"
NAMES = ["app", "main", "MPI_Allreduce", "KERNELS", "gpu_stencil", "gpu_exchange"]
TREE = cw.Tree([-1, 0, 1, 0, 3, 3], NAMES, roles={"app": "artificial", "KERNELS": "artificial"})


def of_host(p):
    """Exclusive ticks of a thread in the program, main and MPI_Allreduce."""
    return 1000, 2_000_000, 5000 * p


def of_stream(p, rank, stream):
    """Exclusive ticks of a stream in the stencil and the exchange; the second stream is slower."""
    return 1_000_000 + 50_000 * stream, (20_000 + 100 * rank) * p // (1 + stream)


def on_gpu(p):
    """Return the mean over processes of the sum of their streams, by kernel, in seconds."""
    summed = [
        [sum(pair) for pair in zip(*(of_stream(p, r, s) for s in range(STREAMS)), strict=True)]
        for r in range(p)
    ]
    return dict(zip(NAMES[4:], np.mean(summed, axis=0) / TICKS, strict=True))


def profile(folder, p, creators, *, gpus=STREAMS, unit="sec"):
    machine = cw.Machine([1] * p, gpus=gpus, creators=creators)
    own = np.zeros((len(TREE), machine.locations))
    visits = np.zeros_like(own)
    for rank, (column,) in enumerate(machine.columns()):
        own[:3, column], visits[:3, column] = of_host(p), 1
        for stream in range(gpus):
            place = machine.stream_columns()[rank][stream]
            own[4:, place], visits[4:, place] = of_stream(p, rank, stream), 1
    time = cw.MetricToWrite("time", TREE.subtree_sums(own / TICKS), "INCLUSIVE", unit=unit)
    folder.mkdir(parents=True)
    counts = cw.MetricToWrite("visits", visits, dtype="UINT64")
    cw.write(folder / "profile.cubex", TREE, [time, counts], machine)


def traced(p):
    program, main, allreduce = of_host(p)
    reduced = program + main + allreduce
    return [
        ("program_begin", 0, "/opt/app", ()),
        ("enter", program, "main"),
        ("enter", program + main, "MPI_Allreduce"),
        ("mpi_collective_begin", program + main),
        ("mpi_collective_end", reduced, 11, Comm("WORLD"), 2**32 - 1, 8, 8),
        ("leave", reduced, "MPI_Allreduce"),
        ("leave", reduced, "main"),
        ("program_end", reduced, 0),
    ]


def kernels(*ticks):
    now = 500
    for name, each in zip(NAMES[4:], ticks, strict=True):
        yield "enter", now, name
        yield "leave", now + each, name
        now += each + 300


def trace(folder, p, *, gpus=STREAMS):
    groups = [
        (rank, [Thread([*kernels(*of_stream(p, rank, stream))], "GPU")])
        for rank in range(p)
        for stream in range(gpus)
    ]
    host = [[Thread(traced(p))] for _ in range(p)]
    write_trace(folder, Trace(host, resolution=TICKS, accelerators=groups))


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """The same runs as profiles of Score-P 7 and 8 and as traces, with and without GPUs."""
    folder = tmp_path_factory.mktemp("series")
    for name in ("traces", "traces-alone"):
        (folder / name).mkdir()
    for p in SCALES:
        name, ranks = f"app.p{p}", [f"MPI Rank {rank}" for rank in range(p)]
        profile(folder / "score-p-7" / name, p, None)
        profile(folder / "score-p-8" / name, p, ranks)
        profile(folder / "profiles-alone" / name, p, None, gpus=0)
        trace(folder / "traces" / name, p)
        trace(folder / "traces-alone" / name, p, gpus=0)
    return folder


RUNS = pytest.mark.parametrize(
    ("runs", "alone"),
    [
        ("score-p-7", "profiles-alone"),
        ("score-p-8", "profiles-alone"),
        ("traces", "traces-alone"),
    ],
)


def read(run, command, *words):
    found = run(command, *words, "-f", "json")
    assert found.status == 0, found.err
    return json.loads(found.out)


@RUNS
def test_kernels_are_ranked_by_their_time(run, series, runs, alone):  # noqa: ARG001
    found = read(run, "rank", series / runs, "-m", ON_GPU, "--target", 64)
    first, second, *others = found["rows"]
    assert [first["callpath"], second["callpath"]] == [f"KERNELS/{name}" for name in NAMES[:3:-1]]
    assert first["value_at_largest"] == pytest.approx(on_gpu(16)["gpu_exchange"])
    assert first["value_at_target"] == pytest.approx(on_gpu(64)["gpu_exchange"], rel=0.2)
    assert first["growth"].startswith("O(p")
    assert second["value_at_target"] == pytest.approx(on_gpu(64)["gpu_stencil"])
    assert second["growth"] == "O(1)"
    assert [each["value_at_target"] for each in others] == [0.0] * 4
    assert found["run_time"] is None
    assert found["fastest"] is None
    streams = [each["count"] for each in found["findings"] if each["code"] == "CPM110"]
    assert sum(streams) == STREAMS * sum(SCALES)


@RUNS
@pytest.mark.parametrize("inclusive", [False, True])
def test_values_of_all_runs_are_the_measured_ones(run, series, runs, alone, inclusive):  # noqa: ARG001
    words = "--what", "values", "-m", ON_GPU, *(["-i"] * inclusive)
    found = run("export", series / runs, *words, "-f", "csv")
    rows = list(csv.DictReader(io.StringIO(found.out)))
    assert len(rows) == len(SCALES) * len(TREE)
    for row in rows:
        of_kernels = on_gpu(int(float(row["p"])))
        name = row["callpath"].rpartition("/")[2]
        above = sum(of_kernels.values()) if inclusive and name in {"<program>", "KERNELS"} else 0
        value = row["value_inclusive[s]" if inclusive else "value[s]"]
        assert float(value) == pytest.approx(of_kernels.get(name, above)), row


@RUNS
def test_a_gpu_is_no_part_of_the_run_time(run, series, runs, alone):
    found, same = (read(run, "rank", series / each, "--target", 64) for each in (runs, alone))
    for name in ("metric", "total", "run_time", "fastest", "scaling", "unmodelled", "fit"):
        assert found[name] == same[name], name
    assert found["metric"] == "time"
    by_path = {row["callpath"]: row for row in found["rows"]}
    without_places = {"rank": None, "id": None}
    for row in same["rows"]:
        if "KERNELS" not in row["callpath"]:
            assert by_path[row["callpath"]] | without_places == row | without_places
    kernels = [row for path, row in by_path.items() if "KERNELS" in path]
    assert len(kernels) == 3
    assert not any(row["value_at_target"] for row in kernels)
    one, other = (read(run, "efficiency", series / each) for each in (runs, alone))
    assert one["scales"] == other["scales"]
    assert one["verdict"] == other["verdict"]


@RUNS
def test_commands_show_kernels_and_their_time(run, series, runs, alone):  # noqa: ARG001
    metrics = [each["name"] for each in read(run, "info", series / runs)["metrics"]]
    assert metrics[0] == "time"
    assert metrics[-2:] == [ON_GPU, "visits on GPU streams"]
    chosen = "-m", ON_GPU, "--target", 64
    shown = run("show", series / runs, "gpu_exchange", *chosen)
    assert shown.status == 0, shown.err
    assert "called by KERNELS" in shown.out
    assert f"app: {ON_GPU} = " in shown.out
    assert "will run" not in shown.out
    viewed = run("views", series / runs, *chosen)
    assert "The hot path leads to KERNELS/gpu_exchange" in " ".join(viewed.out.split())
    lost = run("excess", series / runs, "-m", ON_GPU)
    assert f"of {ON_GPU} is excess" in " ".join(lost.out.split())
    assert "of the time is lost" not in lost.out


@RUNS
def test_sums_over_processes_need_not_add_up_to_the_slower_stream(run, series, runs, alone):  # noqa: ARG001
    words = "-m", ON_GPU, "--target", 64, "--locations", "sum"
    found = read(run, "rank", series / runs, *words)
    # One stream is slower in one kernel, and the other stream in the other kernel.
    assert found["rows"][0]["value_at_largest"] == pytest.approx(16 * on_gpu(16)["gpu_exchange"])
    assert "CPM114" not in {finding["code"] for finding in found["findings"]}


@RUNS
def test_what_needs_threads_refuses_time_on_gpus(run, series, runs, alone):  # noqa: ARG001
    folder, chosen = series / runs, ("-m", ON_GPU)
    run("efficiency", folder, *chosen).fails(4, "no time of threads", "-m time")
    run("refine", folder, *chosen, "--target", 64).fails(2, "no time of threads", "-m")
    run("rank", folder, *chosen, "--target", 64, "--ranks", "rank == 0").fails(
        4, "values of GPU streams", "time, visits"
    )


def test_a_given_unit_is_that_of_gpu_streams_as_well(run, tmp_path):
    for p in SCALES:
        profile(tmp_path / f"app.p{p}", p, None, unit="")
    words = (tmp_path, "--unit", "time=ms", "--target", 64)
    for metric, name, seconds in (
        (ON_GPU, "KERNELS/gpu_exchange", on_gpu(16)["gpu_exchange"]),
        ("time", "main", of_host(16)[1] / TICKS),
    ):
        found = read(run, "rank", *words, "-m", metric)
        by_path = {row["callpath"]: row["value_at_largest"] for row in found["rows"]}
        assert by_path[name] == pytest.approx(1e-3 * seconds)
        assert "CPM160" not in {finding["code"] for finding in found["findings"]}


def test_some_runs_may_have_no_gpus(run, tmp_path):
    for p in (1, *SCALES):
        profile(tmp_path / f"app.p{p}", p, None, gpus=STREAMS if p > 1 else 0)
    found = read(run, "rank", tmp_path, "-m", ON_GPU, "--target", 64)
    assert found["rows"][0]["callpath"] == "KERNELS/gpu_exchange"
    assert found["rows"][0]["value_at_largest"] == pytest.approx(on_gpu(16)["gpu_exchange"])
    missing = {f["message"] for f in found["findings"] if f["code"] == "CPM119"}
    assert missing == {f"no metric {ON_GPU}", "no metric visits on GPU streams"}


def test_all_values_on_gpus_may_be_zero(run, tmp_path, series):
    for p in SCALES:
        machine = cw.Machine([1] * p, gpus=STREAMS)
        own = np.zeros((len(TREE), machine.locations))
        own[:3, np.ravel(machine.columns())] = np.array([of_host(p)]).T
        metric = cw.MetricToWrite("time", TREE.subtree_sums(own / TICKS), "INCLUSIVE", unit="sec")
        (tmp_path / f"app.p{p}").mkdir()
        counts = cw.MetricToWrite("visits", (own > 0) * 1.0, dtype="UINT64")
        cw.write(tmp_path / f"app.p{p}" / "profile.cubex", TREE, [metric, counts], machine)
    found, same = (
        read(run, "rank", each, "--target", 64) for each in (tmp_path, series / "profiles-alone")
    )
    assert [each["name"] for each in read(run, "info", tmp_path)["metrics"]] == ["time", "visits"]
    assert found["findings"] == same["findings"]
    assert found["rows"] == same["rows"]
