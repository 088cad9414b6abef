"""GPU streams of traces: metrics of their own, in both layouts of location groups."""

from __future__ import annotations

import itertools
import random
import statistics
from collections import defaultdict

import numpy as np
import pytest

from callpath_modeler.errors import DataError, InputError
from callpath_modeler.profile.schema import PROGRAM, Extent, MetricStatus, Reduction
from callpath_modeler.units import counted
from cpmodel_otf2 import TraceReader
from cpmodel_otf2.definitions import Raw, resolve
from cpmodel_otf2.highlevel import HighLevelArchive
from cpmodel_otf2.profile import TraceProfile
from trace_writer import METRICS, WINDOW, Accelerator, Thread, Trace, write_trace

GPU = " on GPU streams"
KERNELS = "KERNELS"
TICKS = 1000


def host(seed, *, program=True):
    """Return the events of a thread: `main` with one call."""
    work = random.Random(seed).randrange(100, 900)
    begin = [("program_begin", 0, "app", ())] if program else []
    end = [("program_end", 1000, 0)] if program else []
    calls = [("enter", 10, "main"), ("enter", 20, "solve"), ("leave", 20 + work, "solve")]
    return [*begin, *calls, ("leave", 990, "main"), *end]


def device(seed):
    """Return the events of a stream, and its ticks, visits and copied bytes by call path."""
    chance, events, now = random.Random(f"gpu {seed}"), [], 5
    found = defaultdict(lambda: [0, 0, 0])
    for _ in range(chance.randrange(3, 9)):
        kernel, ticks, copied = chance.choice("abc"), chance.randrange(1, 90), chance.randrange(999)
        events.append(("rma_put", now, WINDOW, 0, copied, 1))
        found[KERNELS][2] += copied
        events += [("enter", now + 3, f"gpu_{kernel}"), ("leave", now + 3 + ticks, f"gpu_{kernel}")]
        found[f"{KERNELS}/gpu_{kernel}"][0] += ticks
        found[f"{KERNELS}/gpu_{kernel}"][1] += 1
        now += 3 + ticks + chance.randrange(20)
    return events, found


def traces(streams, layout):
    """Return a trace of so many streams for each process.

    Parameters
    ----------
    layout : ``"shared"`` = the streams are in the groups of processes; ``"own"`` = each stream is
        in a group that the process created
    """
    threads = [[Thread(host(p))] for p in range(len(streams))]
    devices = [
        [Thread(device(f"{p}.{k}")[0], "GPU") for k in range(n)] for p, n in enumerate(streams)
    ]
    if layout == "shared":
        processes = [[*one, *other] for one, other in zip(threads, devices, strict=True)]
        return Trace(processes, resolution=TICKS)
    groups = [(p, [stream]) for p, of_process in enumerate(devices) for stream in of_process]
    random.Random(1).shuffle(groups)
    return Trace(threads, resolution=TICKS, accelerators=groups)


def expected(streams, quantity, fold):
    """Return the values of processes with streams, by call path."""
    measured = [[device(f"{p}.{k}")[1] for k in range(n)] for p, n in enumerate(streams) if n]
    paths = {path for of_process in measured for found in of_process for path in found}
    return {
        path: [fold(found[path][quantity] for found in of_process) for of_process in measured]
        for path in paths
    }


def totals(streams, quantity, fold):
    """Return the values of processes with streams in the whole program."""
    return [
        fold(sum(v[quantity] for v in device(f"{p}.{k}")[1].values()) for k in range(n))
        for p, n in enumerate(streams)
        if n
    ]


def values(profile, metric, over=Reduction.SUM):
    reduced, tree = profile.reduce(metric, over), profile.call_tree
    return {tree.path(row): reduced.exclusive[row] for row in range(len(tree))}


def names(profile, status=MetricStatus.DATA):
    return [d.metric.name for d in profile.metrics if d.status is status]


def found(profile):
    return [(finding.code, finding.message) for finding in profile.findings()]


@pytest.fixture(params=["libotf2", "package"])
def replayed(request, tmp_path):
    def replay(trace):
        anchor = write_trace(tmp_path / "trace", trace)
        if request.param == "package":
            return TraceProfile(anchor, HighLevelArchive(anchor))
        with TraceReader().open(anchor) as profile:
            return profile

    return replay


OVER = {
    Reduction.MAX: max,
    Reduction.MIN: min,
    Reduction.SUM: sum,
    Reduction.MEAN: statistics.mean,
    Reduction.MEDIAN: statistics.median,
    Reduction.IMBALANCE: lambda x: max(x) / statistics.mean(x) if any(x) else np.nan,
}


@pytest.mark.parametrize("layout", ["shared", "own"])
@pytest.mark.parametrize("streams", [(1,), (2, 1, 3), (2, 0, 1)])
def test_values_of_streams_are_those_of_their_events(replayed, layout, streams):
    profile = replayed(traces(streams, layout))
    quantities = (("time", 0, sum), ("visits", 1, sum), ("bytes_put", 2, sum))
    for (name, quantity, fold), over in itertools.product(quantities, OVER):
        scale = 1 / TICKS if name == "time" and over is not Reduction.IMBALANCE else 1
        by_hand = expected(streams, quantity, fold)
        nothing = OVER[over]([0])
        for path, value in values(profile, name + GPU, over).items():
            wanted = OVER[over](by_hand[path]) if path in by_hand else nothing
            assert value == pytest.approx(wanted * scale, nan_ok=True), (name, over, path)
        total = profile.reduce(name + GPU, over).total
        assert total == pytest.approx(OVER[over](totals(streams, quantity, fold)) * scale)
    assert found(profile) == [
        ("CPM110", f"{counted(sum(streams), 'GPU stream')}, whose values are separate metrics")
    ]
    assert [name for name in names(profile) if GPU in name] == names(profile)[-3:]


@pytest.mark.parametrize("layout", ["shared", "own"])
def test_metrics_of_threads_are_those_of_a_trace_without_gpus(tmp_path, replayed, layout):
    streams = (2, 0, 1)
    profile = replayed(traces(streams, layout))
    anchor = write_trace(tmp_path / "plain", traces((0, 0, 0), layout))
    with TraceReader().open(anchor) as plain:
        assert not plain.findings()
        assert plain.extent == profile.extent == Extent(3, 1, 2)
        assert names(plain) == ["time", "visits"]
        on_gpu = [metric + GPU for metric in ("time", "visits", "bytes_put")]
        assert names(profile) == [*names(plain), *on_gpu]
        for metric, over in itertools.product(("time", "visits", "bytes_put"), OVER):
            same = values(plain, metric, over)
            nothing = OVER[over]([0, 0, 0])
            for path, value in values(profile, metric, over).items():
                np.testing.assert_array_equal(value, same.get(path, nothing))
            one, other = profile.reduce(metric, over), plain.reduce(metric, over)
            np.testing.assert_array_equal([one.total, one.run_time], [other.total, other.run_time])


def test_a_metric_of_streams_has_no_run_time_and_no_threads(replayed):
    profile = replayed(traces((2, 1), "own"))
    assert np.isnan(profile.reduce("time" + GPU, Reduction.MAX).run_time)
    assert profile.reduce("time", Reduction.MAX).run_time == 1.0
    with pytest.raises(DataError, match="GPU streams, not of single threads"):
        profile.sums_of_threads("time" + GPU, np.zeros(len(profile.call_tree), np.intp), 1)


def test_kernels_are_below_the_program(replayed):
    tree = replayed(traces((1, 1), "own")).call_tree
    rows = {tree.path(row): row for row in range(len(tree))}
    assert tree.parent[rows[KERNELS]] == rows[PROGRAM] == 0
    assert tree.regions[tree.region[rows[KERNELS]]].role == "artificial"


def test_calls_on_streams_without_a_program_are_below_kernels(replayed):
    kernel = [
        ("enter", 5, "gpu_a"),
        ("enter", 6, "gpu_b"),
        ("leave", 9, "gpu_b"),
        ("leave", 10, "gpu_a"),
    ]
    profile = replayed(
        Trace([[Thread(host(1, program=False)), Thread(kernel, "GPU")]], resolution=1)
    )
    assert {path: time for path, time in values(profile, "time" + GPU).items() if time} == {
        "KERNELS/gpu_a": 2.0,
        "KERNELS/gpu_a/gpu_b": 3.0,
    }
    assert values(profile, "time")["KERNELS/gpu_a"] == 0


def test_a_kernel_and_a_function_of_one_name_are_two_call_paths(replayed):
    kernel = [("enter", 5, "main"), ("leave", 10, "main")]
    profile = replayed(
        Trace([[Thread(host(1, program=False)), Thread(kernel, "GPU")]], resolution=1)
    )
    assert values(profile, "visits")["main"] == 1
    assert values(profile, "visits" + GPU)["main"] == 0
    assert values(profile, "visits" + GPU)["KERNELS/main"] == 1


def test_streams_without_values_change_nothing(replayed):
    idle = [("measurement_on_off", 5, "ON")]
    trace = Trace(
        [[Thread(host(1))], [Thread(host(2))]],
        accelerators=[(0, [Thread([], "GPU")]), (1, [Thread(idle, "GPU")])],
    )
    profile = replayed(trace)
    assert not [name for name in names(profile) if GPU in name]
    assert not profile.findings()
    assert not [path for path in values(profile, "time") if "KERNELS" in path]


def test_kernels_of_no_duration_have_visits_alone(replayed):
    kernel = [("enter", 5, "gpu_a"), ("leave", 5, "gpu_a")]
    profile = replayed(Trace([[Thread(host(1)), Thread(kernel, "GPU")]]))
    assert [name for name in names(profile) if GPU in name] == ["visits" + GPU]


def test_a_batch_may_end_within_a_kernel(replayed, monkeypatch):
    from cpmodel_otf2 import archive, highlevel

    monkeypatch.setattr(archive, "BATCH_EVENTS", 3)
    monkeypatch.setattr(highlevel, "BATCH_EVENTS", 3)
    kernels = [
        *(("measurement_on_off", 1, "ON") for _ in range(4)),
        *(("enter", 5 + k, f"gpu_{k}") for k in range(5)),
        *(("leave", 20 + k, f"gpu_{4 - k}") for k in range(5)),
    ]
    profile = replayed(Trace([[Thread(host(1)), Thread(kernels, "GPU")]], resolution=1))
    path = KERNELS + "".join(f"/gpu_{k}" for k in range(5))
    assert values(profile, "time" + GPU)[path] == 11
    assert profile.reduce("time" + GPU, Reduction.SUM).total == 19
    assert [code for code, _ in found(profile)] == ["CPM110"]


@pytest.mark.parametrize("creators", [(None, None), (None, Accelerator(0))])
def test_streams_of_an_unknown_process_are_excluded(replayed, creators):
    kernel = Thread([("enter", 5, "gpu_a"), ("leave", 9, "gpu_a")], "GPU")
    processes = [[Thread(host(p))] for p in range(2)]
    groups = [(creator, [kernel]) for creator in creators]
    profile = replayed(Trace(processes, accelerators=groups))
    assert not [name for name in names(profile) if GPU in name]
    message = "the process of 2 GPU streams is unknown, so values are excluded"
    assert found(profile) == [("CPM110", message)]
    assert not [path for path in values(profile, "time") if "gpu_a" in path]


def test_some_streams_may_be_of_an_unknown_process(replayed):
    kernel = Thread([("enter", 5, "gpu_a"), ("leave", 9, "gpu_a")], "GPU")
    processes = [[Thread(host(p))] for p in range(2)]
    trace = Trace(processes, accelerators=[(1, [kernel]), (None, [kernel])], resolution=1)
    profile = replayed(trace)
    assert profile.reduce("time" + GPU, Reduction.SUM).total == 4
    assert [message for _, message in found(profile)] == [
        "1 GPU stream, whose values are separate metrics",
        "the process of 1 GPU stream is unknown, so values are excluded",
    ]


def test_the_streams_of_a_run_of_one_process_are_its_own(replayed):
    kernel = Thread([("enter", 5, "gpu_a"), ("leave", 9, "gpu_a")], "GPU")
    profile = replayed(Trace([[Thread(host(1))]], accelerators=[(None, [kernel])], resolution=1))
    assert profile.reduce("time" + GPU, Reduction.SUM).total == 4


def test_groups_that_created_each_other_have_no_process():
    raw = Raw(clock=(1, 0, 1), strings={0: ""})
    raw.location_groups = {
        0: (0, 1, 0, 0),
        1: (0, 1, 0, 7),
        2: (0, 2, 0, 3),
        3: (0, 2, 0, 2),
        4: (0, 2, 0, 4),
        5: (0, 2, 0, 99),
        6: (0, 2, 0, 1),
    }
    raw.locations = {k: (0, 2 if k > 1 else 1, 0, k) for k in raw.location_groups}
    # The group of this stream is not defined.
    raw.locations[9] = (0, 2, 0, 50)
    process = resolve(raw).process_of_streams
    assert {location.reference: group for location, group in process.items()} == {
        **dict.fromkeys((2, 3, 4, 5, 9), -1),
        6: 1,
    }


def test_a_trace_with_calls_on_streams_alone_is_refused(replayed):
    kernel = [("enter", 5, "gpu_a"), ("leave", 9, "gpu_a")]
    with pytest.raises(InputError, match="no calls of regions"):
        replayed(Trace([[Thread([]), Thread(kernel, "GPU")]]))


def test_counters_of_streams_are_metrics_of_streams(replayed):
    events = [
        ("metric", 5, METRICS, (7,)),
        ("enter", 5, "gpu_a"),
        ("metric", 9, METRICS, (19,)),
        ("leave", 9, "gpu_a"),
    ]
    trace = Trace(
        [[Thread(host(1)), Thread(events, "GPU")]],
        metrics={"flops": ("#", "ACCUMULATED_START", "UINT64", 0)},
    )
    profile = replayed(trace)
    assert names(profile, MetricStatus.ABSENT).count("flops") == 1
    assert values(profile, "flops" + GPU)[f"{KERNELS}/gpu_a"] == 12
    assert values(profile, "flops")[f"{KERNELS}/gpu_a"] == 0


def test_both_ways_of_reading_agree_on_streams(tmp_path):
    anchor = write_trace(tmp_path / "trace", traces((2, 0, 1), "own"))
    agreements = {each.metric: each for each in TraceReader().verify(anchor)}
    assert agreements["time" + GPU].compared > 0
    assert not any(each.differing for each in agreements.values())
