"""Replays, compared with a simple stack, and events of real traces besides enter and leave."""

from __future__ import annotations

import math
import tracemalloc
from collections import defaultdict

import pytest

from callpath_modeler.errors import InputError
from callpath_modeler.profile.schema import MetricStatus, Reduction
from cpmodel_otf2 import TraceReader, archive
from trace_writer import (
    CONTEXT,
    METRICS,
    WINDOW,
    Comm,
    Thread,
    Trace,
    one_rank,
    random_events,
    write_trace,
)

METRIC_OF = {"mpi_send": "sent", "mpi_recv": "received"}


@pytest.fixture
def replayed(tmp_path):
    def replay(trace):
        anchor = write_trace(tmp_path / "trace", trace)
        with TraceReader().open(anchor) as profile:
            return profile

    return replay


def values(profile, metric, over=Reduction.SUM):
    reduced = profile.reduce(metric, over)
    tree = profile.call_tree
    paths = [tree.path(row) for row in range(len(tree))]
    return dict(zip(paths, reduced.exclusive.tolist(), strict=True))


def codes(profile):
    return {finding.code: finding.count for finding in profile.findings()}


def by_hand(events):
    """Return exclusive values by (metric, call path), from one event after the other."""
    found = defaultdict(float)
    stack, last, off_since = [], 0, None

    def spend(until):
        if stack and off_since is None:
            found["time", "/".join(stack)] += until - last

    for method, time, *arguments in events:
        spend(time)
        last = time
        path = "/".join(stack)
        if method in {"enter", "program_begin"}:
            stack.append(arguments[0] if method == "enter" else "<program>")
            found["visits", "/".join(stack)] += 1
        elif method in {"leave", "program_end"}:
            stack.pop()
        elif method == "measurement_on_off":
            off_since = time if arguments[0] == "OFF" else None
        elif method == "buffer_flush":
            last = arguments[0]
        elif method in METRIC_OF:
            found[f"bytes_{METRIC_OF[method]}", path] += arguments[3]
            found[f"messages_{METRIC_OF[method]}", path] += 1
        elif method == "mpi_collective_end":
            found["collectives", path] += 1
            found["bytes_sent", path] += arguments[3]
            found["bytes_received", path] += arguments[4]
    return {(m, p.removeprefix("<program>/")): value for (m, p), value in found.items() if value}


@pytest.mark.parametrize("batch", [1, 3, 64, 1 << 16])
@pytest.mark.parametrize("seed", range(3))
def test_any_batch_size_gives_what_a_stack_kept_by_hand_gives(seed, batch, replayed, monkeypatch):
    monkeypatch.setattr(archive, "BATCH_EVENTS", batch)
    ranks = 2
    traced = [random_events(seed, rank, ranks) for rank in range(ranks)]
    profile = replayed(Trace([[Thread(events)] for events in traced], resolution=1))
    expected = defaultdict(float)
    for events in traced:
        for key, value in by_hand(events).items():
            expected[key] += value
    found = {
        (declared.metric.name, path): value
        for declared in profile.metrics
        for path, value in values(profile, declared.metric.name).items()
        if value
    }
    assert found == dict(expected)
    for declared in profile.metrics:
        reduced = profile.reduce(declared.metric.name, Reduction.SUM)
        assert reduced.total == reduced.exclusive.sum()


def test_values_stand_for_the_process_that_they_were_measured_on(replayed):
    traced = [[("enter", 0, "main"), ("leave", 100 * (rank + 1), "main")] for rank in range(4)]
    profile = replayed(Trace([[Thread(events)] for events in traced], resolution=100))
    assert values(profile, "time", Reduction.MAX) == {"main": 4.0}
    assert values(profile, "time", Reduction.MEAN) == {"main": 2.5}
    assert profile.reduce("time", Reduction.MIN).total == 1.0
    assert profile.extent.processes == 4
    assert profile.extent.nodes == 2


def test_regions_open_at_the_end_end_with_the_trace(replayed):
    profile = replayed(
        one_rank(
            ("enter", 0, "main"),
            ("enter", 10, "solve"),
            ("mpi_send", 90, 0, Comm("WORLD"), 0, 8),
            resolution=1,
        )
    )
    assert values(profile, "time") == {"main": 10.0, "main/solve": 80.0}
    assert profile.reduce("time", Reduction.SUM).total == 90.0
    assert codes(profile) == {"CPM127": 2}


def test_measurement_that_stays_off_does_not_count_to_the_end(replayed):
    profile = replayed(
        one_rank(
            ("enter", 0, "main"),
            ("measurement_on_off", 30, "OFF"),
            ("buffer_flush", 40, 70),
            ("leave", 100, "main"),
            resolution=1,
        )
    )
    assert values(profile, "time") == {"main": 30.0}
    assert codes(profile) == {"CPM129": 1}


def test_a_return_ends_the_calls_within_its_region_too(replayed):
    profile = replayed(
        one_rank(
            ("leave", 0, "before the trace"),
            ("enter", 0, "main"),
            ("enter", 10, "loop"),
            ("mpi_send", 15, 0, Comm("WORLD"), 0, 8),
            ("leave", 20, "main"),
            ("mpi_send", 25, 0, Comm("WORLD"), 0, 100),
            ("leave", 40, "main"),
            resolution=1,
        )
    )
    assert values(profile, "time") == {"main": 10.0, "main/loop": 10.0}
    assert values(profile, "bytes_sent") == {"main": 0.0, "main/loop": 8.0}
    assert codes(profile) == {"CPM128": 3, "CPM133": 1}


def test_a_return_whose_region_is_not_open_is_left_out(replayed):
    profile = replayed(
        one_rank(
            ("enter", 0, "main"),
            ("leave", 1, "solve"),
            ("enter", 2, "a;b"),
            ("mpi_send", 2, 0, Comm("WORLD"), 0, 8),
            ("leave", 3, "a;b"),
            ("leave", 10, "main"),
            resolution=1,
        )
    )
    assert values(profile, "time") == {"main": 9.0, "main/a;b": 1.0}
    assert values(profile, "visits") == {"main": 1.0, "main/a;b": 1.0}
    assert values(profile, "bytes_sent") == {"main": 0.0, "main/a;b": 8.0}
    assert profile.reduce("time", Reduction.SUM).total == 10.0
    assert codes(profile) == {"CPM128": 1}


def test_a_call_without_return_ends_with_its_caller(replayed):
    profile = replayed(
        one_rank(
            ("enter", 0, "main"),
            ("enter", 1, "solve"),
            ("enter", 2, "solve"),
            ("enter", 3, "f"),
            ("leave", 6, "solve"),
            ("enter", 7, "g"),
            ("leave", 8, "g"),
            ("leave", 10, "main"),
            ("enter", 11, "end"),
            ("leave", 12, "end"),
            resolution=1,
        )
    )
    assert values(profile, "time") == {
        "main": 1.0,
        "main/solve": 4.0,
        "main/solve/solve": 1.0,
        "main/solve/solve/f": 3.0,
        "main/solve/g": 1.0,
        "end": 1.0,
    }
    assert codes(profile) == {"CPM128": 2}


def test_many_returns_without_call_take_linear_time(replayed):
    deep = [("enter", k, f"f{k}") for k in range(300)]
    stray = [("leave", 300 + k, "nobody") for k in range(20_000)]
    profile = replayed(one_rank(*deep, *stray, resolution=1))
    assert codes(profile)["CPM128"] == 20_000


def test_the_reported_return_without_call_is_left_out(shared_data):
    folder = shared_data / "reports/b13_otf2_return_without_call/trace.p4"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data/reports")
    with TraceReader().open(folder / "traces.otf2") as profile:
        found = profile.reduce("time", Reduction.MEAN)
        tree = profile.call_tree
        assert {tree.path(row): found.exclusive[row] for row in range(len(tree))} == {
            "main": pytest.approx(9.0),
            "main/a;b": pytest.approx(1.0),
        }
        assert found.total == pytest.approx(10.0)


def test_memory_does_not_grow_with_the_length_of_a_trace(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "BATCH_EVENTS", 1000)
    peaks = []
    for length in (1, 1, 10):  # the first time, modules are imported
        once = [("enter", 0, "main"), ("leave", 0, "main")]
        events = [(kind, k, name) for k in range(2000 * length) for kind, _, name in once]
        anchor = write_trace(tmp_path / str(len(peaks)), one_rank(*events))
        tracemalloc.start()
        with TraceReader().open(anchor) as profile:
            assert profile.reduce("visits", Reduction.SUM).total == 2000 * length
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.2 * peaks[1]


def test_a_chain_of_fifty_thousand_calls_is_replayed(replayed):
    deep = 50_000
    down = [("enter", k, f"f{k % 5}") for k in range(deep)]
    up = [("leave", 2 * deep - k, f"f{k % 5}") for k in reversed(range(deep))]
    profile = replayed(one_rank(*down, *up, resolution=1))
    assert len(profile.call_tree) == deep
    assert profile.reduce("visits", Reduction.SUM).total == deep
    assert profile.reduce("time", Reduction.SUM).exclusive.sum() == 2 * deep


def test_counters_belong_to_the_call_path_they_advanced_in(replayed):
    def sample(time, *numbers):
        return ("metric", time, METRICS, [*numbers])

    profile = replayed(
        one_rank(
            sample(0, 1000, 0.5, 7),
            ("enter", 0, "main"),
            sample(10, 1010, 1.0, 9),
            ("enter", 10, "solve"),
            sample(20, 1510, 3.0, 2),
            ("leave", 20, "solve"),
            sample(30, 1511, 3.25, 1),
            ("leave", 30, "main"),
            metrics={
                "CYCLES": ("#", "ACCUMULATED_START", "UINT64", 0),
                "ru_utime": ("s", "ACCUMULATED_START", "DOUBLE", -3),
                "heap": ("B", "ABSOLUTE_POINT", "UINT64", 0),
            },
        )
    )
    assert values(profile, "CYCLES") == {"main": 11.0, "main/solve": 500.0}
    assert values(profile, "ru_utime") == pytest.approx({"main": 0.00075, "main/solve": 0.002})
    status = {d.metric.name: d.status for d in profile.metrics}
    assert status["heap"] is MetricStatus.UNSUPPORTED
    assert codes(profile) == {"CPM107": 1}
    with pytest.raises(KeyError):
        profile.reduce("heap", Reduction.SUM)


def test_counters_that_run_backwards_or_overflow_are_said(replayed):
    profile = replayed(
        one_rank(
            ("metric", 0, METRICS, [50, 1.0]),
            ("enter", 0, "main"),
            ("metric", 10, METRICS, [20, float("inf")]),
            ("leave", 10, "main"),
            metrics={
                "CYCLES": ("#", "ACCUMULATED_START", "UINT64", 0),
                "energy": ("J", "ACCUMULATED_START", "DOUBLE", 0),
            },
        )
    )
    assert values(profile, "CYCLES") == {"main": 0.0}
    assert math.isnan(values(profile, "energy")["main"])
    assert codes(profile) == {"CPM105": 1, "CPM117": 1}


def test_threads_of_a_team_hang_below_the_call_that_started_them(replayed):
    team = Comm("team")
    master = [
        ("enter", 0, "main"),
        ("enter", 10, "!$omp parallel"),
        ("thread_team_begin", 10, team),
        ("enter", 20, "work"),
        ("leave", 50, "work"),
        ("thread_team_end", 60, team),
        ("leave", 60, "!$omp parallel"),
        ("enter", 70, "other"),
        ("thread_team_begin", 70, team),
        ("thread_team_end", 90, team),
        ("leave", 90, "other"),
        ("leave", 100, "main"),
    ]
    worker = [
        ("thread_team_begin", 12, team),
        ("enter", 12, "!$omp parallel"),
        ("enter", 20, "work"),
        ("leave", 40, "work"),
        ("leave", 55, "!$omp parallel"),
        ("thread_team_end", 55, team),
        ("thread_team_begin", 72, team),
        ("enter", 75, "work"),
        ("leave", 85, "work"),
        ("thread_team_end", 85, team),
    ]
    trace = Trace([[Thread(master), Thread(worker)]], resolution=1, communicators={"team": [0]})
    profile = replayed(trace)
    assert values(profile, "visits") == {
        "main": 1.0,
        "main/!$omp parallel": 2.0,
        "main/!$omp parallel/work": 2.0,
        "main/other": 1.0,
        "main/other/work": 1.0,
    }
    # Times of a process are those of its longest thread, so they add up to its elapsed time.
    assert values(profile, "time") == {
        "main": 30.0,
        "main/!$omp parallel": 20.0,
        "main/!$omp parallel/work": 30.0,
        "main/other": 20.0,
        "main/other/work": 0.0,
    }
    assert profile.extent.threads == 2


def test_a_created_thread_hangs_below_the_call_that_created_it(replayed):
    threads = Comm("threads")
    creator = [
        ("enter", 0, "main"),
        ("enter", 10, "pthread_create"),
        ("thread_create", 11, threads, 5),
        ("leave", 12, "pthread_create"),
        ("leave", 100, "main"),
    ]
    created = [
        ("thread_begin", 15, threads, 5),
        ("enter", 15, "start"),
        ("leave", 90, "start"),
        ("thread_end", 90, threads, 5),
    ]
    trace = Trace([[Thread(creator), Thread(created)]], communicators={"threads": [0]})
    assert "main/pthread_create/start" in values(replayed(trace), "visits")


def test_remote_memory_access_is_counted(replayed):
    profile = replayed(
        one_rank(
            ("enter", 0, "main"),
            ("rma_put", 1, WINDOW, 0, 64, 1),
            ("rma_get", 2, WINDOW, 0, 16, 2),
            ("leave", 3, "main"),
        )
    )
    assert values(profile, "bytes_put") == {"main": 64.0}
    assert values(profile, "bytes_get") == {"main": 16.0}


def test_a_trace_of_samples_is_refused_with_what_to_do(replayed):
    with pytest.raises(InputError, match="samples of calling contexts") as caught:
        replayed(one_rank(("calling_context_enter", 10, CONTEXT, 1)))
    assert "SCOREP_TRACING_CONVERT_CALLING_CONTEXT_EVENTS" in caught.value.hint


def test_messages_outside_any_region_are_not_counted_and_said(replayed):
    message = ("mpi_send", 5, 0, Comm("WORLD"), 0, 8)
    profile = replayed(one_rank(message, ("enter", 5, "main"), message, ("leave", 9, "main")))
    reduced = profile.reduce("bytes_sent", Reduction.SUM)
    assert reduced.total == reduced.exclusive.sum() == 8
    assert codes(profile) == {"CPM133": 1}


def test_events_that_the_writer_did_not_count_are_read(replayed):
    profile = replayed(one_rank(("enter", 0, "main"), ("leave", 9, "main"), counted=False))
    assert values(profile, "visits") == {"main": 1.0}
    assert not profile.findings()


def test_a_trace_without_calls_is_refused(replayed):
    with pytest.raises(InputError, match="the trace has no calls of regions"):
        replayed(one_rank(("mpi_send", 10, 0, Comm("WORLD"), 0, 8)))
