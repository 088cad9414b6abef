from __future__ import annotations

import gzip
import random
import struct

import numpy as np
import pytest

import tau_writer as tw
from callpath_modeler.errors import InputError
from callpath_modeler.profile.balance import Activity, activities_of, activity_of
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.base import Match
from cells import cells
from cpmodel_tau import TauReader

CUT = [
    ("main", 1, 10.0, 100.0, "TAU_USER"),
    ("a", 1, 20.0, 90.0, "TAU_USER"),
    ("b", 2, 70.0, 70.0, "TAU_USER"),
    ("main => a", 1, 20.0, 90.0, "TAU_CALLPATH"),
    ("a => b", 2, 70.0, 70.0, "TAU_CALLPATH"),
]


def read(path, metric="time", how=Reduction.MEAN):
    with TauReader().open(path) as profile:
        reduced = profile.reduce(metric, how)
        tree = profile.call_tree
        values = {tree.path(row): reduced.exclusive[row] for row in range(len(tree))}
        return values, reduced.total, [found.code for found in profile.findings()]


def test_a_cut_call_path_is_attached_to_its_only_caller(tmp_path):
    values, total, codes = read(tw.write(tmp_path, {(0, 0, 0): CUT}))
    assert values == pytest.approx({"main": 1e-5, "main/a": 2e-5, "main/a/b": 7e-5})
    assert total == pytest.approx(1e-4)
    assert "CPM151" not in codes


def test_cut_call_paths_with_two_callers_keep_their_cost(tmp_path):
    timers = [
        ("main", 1, 10.0, 100.0, "TAU_USER"),
        ("a", 2, 20.0, 90.0, "TAU_USER"),
        ("c", 1, 0.0, 40.0, "TAU_USER"),
        ("b", 2, 70.0, 70.0, "TAU_USER"),
        ("main => a", 1, 10.0, 50.0, "TAU_CALLPATH"),
        ("main => c", 1, 0.0, 40.0, "TAU_CALLPATH"),
        ("c => a", 1, 10.0, 40.0, "TAU_CALLPATH"),
        ("a => b", 2, 70.0, 70.0, "TAU_CALLPATH"),
    ]
    values, total, codes = read(tw.write(tmp_path, {(0, 0, 0): timers}))
    assert values["a/b"] == pytest.approx(7e-5)
    assert sum(values.values()) == pytest.approx(total) == pytest.approx(1e-4)
    assert "CPM151" in codes


def test_samples_do_not_count_again(tmp_path):
    timers = [
        ("main", 1, 100.0, 100.0, "TAU_USER"),
        ("[SAMPLE] f {f.c} {3}", 9, 90.0, 90.0, "TAU_SAMPLE"),
        ("main => [CONTEXT] main", 9, 0.0, 90.0, "TAU_SAMPLE_CONTEXT"),
    ]
    values, _, codes = read(tw.write(tmp_path, {(0, 0, 0): timers}))
    assert values == pytest.approx({"main": 1e-4})
    assert "CPM152" in codes


def test_of_times_the_slowest_thread_counts_and_calls_are_added(tmp_path):
    threads = {(0, 0, t): [("main", 1, 10.0 * (t + 1), 10.0 * (t + 1), "U")] for t in range(3)}
    path = tw.write(tmp_path, threads)
    assert read(path)[0] == pytest.approx({"main": 3e-5})
    assert read(path, "visits")[0] == {"main": 3}


def test_a_missing_process_is_named(tmp_path):
    timers = [("main", 1, 10.0, 10.0, "U")]
    path = tw.write(tmp_path, {(0, 0, 0): timers, (2, 0, 0): timers})
    assert "CPM132" in read(path)[2]


def test_only_the_directory_of_the_time_stands_for_the_run(tmp_path):
    for metric in ("TIME", "PAPI_L1_DCM"):
        tw.write(tmp_path / f"MULTI__{metric}", {(0, 0, 0): CUT}, metric)
    match = TauReader().match
    assert match(tmp_path) is match(tmp_path / "MULTI__TIME") is Match.CONTENT
    assert match(tmp_path / "MULTI__PAPI_L1_DCM") is Match.NO


def test_the_older_packed_format_is_read(tmp_path):
    path = tmp_path / "run.ppk"
    path.write_bytes(tw.packed({(0, 0, 0): {"TIME": CUT}}, version=1))
    assert read(path)[1] == pytest.approx(1e-4)


@pytest.mark.parametrize(
    "content",
    [
        "PPK".encode("utf-16-be") + struct.pack(">iiii", 1, 1, 0, 2**31 - 1),
        "PPK".encode("utf-16-be") + struct.pack(">iii", 1, 1, 2**31 - 1) + bytes(1 << 20),
        "PPK".encode("utf-16-be") + struct.pack(">ii", 9, 9),
        "PPK".encode("utf-16-be") + struct.pack(">iii", 1, 1, -1),
    ],
)
def test_false_lengths_of_packed_profiles_are_refused(tmp_path, content):
    path = tmp_path / "run.ppk"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(InputError):
        read(path)


def test_a_packed_profile_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    content = gzip.decompress(tw.packed({(0, 0, 0): {"TIME": CUT}}, version=1))
    path, ignored, size = tmp_path / "run.ppk", struct.pack(">i", 3) + b"abc", 17 * 2**20
    filled = struct.pack(">i", size) + bytes(size)
    path.write_bytes(gzip.compress(content.replace(ignored, filled, 1), 1))
    with pytest.raises(InputError, match="unpacks to more than 16 MiB") as caught:
        read(path)
    assert "CPMODEL_UNPACK_LIMIT" in caught.value.hint
    monkeypatch.setenv("CPMODEL_UNPACK_LIMIT", str(18 * 2**20))
    assert read(path)[1] == pytest.approx(1e-4)


def test_damaged_packed_profiles_are_read_or_refused(tmp_path):
    content = gzip.decompress(tw.packed({(0, 0, 0): {"TIME": CUT}}))
    rng, outcomes = random.Random(1), []
    path = tmp_path / "run.ppk"
    for _ in range(300):
        damaged = bytearray(content)
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(gzip.compress(bytes(damaged[: rng.randrange(len(damaged) // 2, 2000)])))
        try:
            values = read(path, "visits")[0]
        except InputError:
            outcomes.append("refused")
        else:
            outcomes.append("read")
            assert not np.isinf(list(values.values())).any()
    assert outcomes.count("read") > 20
    assert outcomes.count("refused") > 20


def test_a_worker_outside_of_all_timers_is_idle(tmp_path):
    root = ".TAU application"
    first = {root: (1, 1.0), f"{root} => main": (1, 5.0), f"{root} => main => loop": (1, 4.0)}
    worker = {root: (1, 7.0), f"{root} => loop": (1, 3.0)}
    threads = {(0, 0, 0): tw.call_paths(first), (0, 0, 1): tw.call_paths(worker)}
    path = tw.write(tmp_path, threads)
    values, total, _ = read(path, "time of all threads")
    assert values == pytest.approx(
        {"<program>": 1e-6, "main": 5e-6, "main/loop": 4e-6, "loop": 3e-6, "<idle thread>": 7e-6}
    )
    assert total == pytest.approx(20e-6)
    assert read(path)[0]["<program>"] == pytest.approx(1e-6)
    with TauReader().open(path) as profile:
        tree = profile.call_tree
        activities = dict(zip(tree.paths(range(len(tree))), activities_of(tree), strict=True))
    assert activities["<idle thread>"] == Activity.THREADING


@cells(
    ("name", "waits"),
    [
        ("OpenMP_Implicit_Barrier", True),
        ("OpenMP_Sync_Region_Barrier_Implicit parallel", True),
        ("OpenMP_Thread_Type_ompt_thread_worker", True),
        ("OpenMP_Idle", True),
        ("OpenMP_Work_Loop solve", False),
        ("OpenMP_Implicit_Task solve", False),
    ],
)
def test_openmp_timers_wait_or_work(tmp_path, name, waits):
    path = tw.write(tmp_path, {(0, 0, 0): tw.call_paths({"main": (1, 1.0), name: (1, 1.0)})})
    with TauReader().open(path) as profile:
        (region,) = [each for each in profile.call_tree.regions if each.name == name]
        assert (activity_of(region) is Activity.THREADING) == waits
