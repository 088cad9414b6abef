"""Measured GPU programs: right values, sums that SQL counts, and predictions of kept scales."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from contextlib import closing

import msgspec
import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.profile.schema import Reduction
from cpmodel_gpu import ExtraProfReader, NsightReader

GPU = "time on GPU streams"
PREFIX = "CUPTI_ACTIVITY_KIND_"
SCALES = (1, 2, 4, 8, 16)
KERNELS = (48.000028, 114.684175, 230.271811, 443.786919, 895.646803)
BUSY = (35.219149, 70.408759, 139.225054, 271.782028, 537.893996)
ADDED = {10: 5472, 100: 8128, 1000: 39008, 10000: 342818}
FILLED = {10: 11808, 100: 12256, 1000: 23872, 10000: 140609}


def database(shared_data, scale: int):
    return shared_data / f"gpu/nsight/concurrent_example/concurrent.s{scale}/profile{scale}.sqlite"


def sampled(shared_data, scale: int):
    return shared_data / f"gpu/nsight/sampled_callchains/ex-gpu.s{scale}/ex-gpu.s{scale}.sqlite"


def files(shared_data):
    return [
        *(database(shared_data, scale) for scale in SCALES),
        *(sampled(shared_data, scale) for scale in ADDED),
    ]


def rows(path, query: str) -> list[tuple]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        return connection.execute(query).fetchall()


def sums_by_role(profile, metric: str) -> dict[str, float]:
    """Return the sum of a metric over the call paths of each role."""
    found: dict[str, float] = defaultdict(float)
    exclusive = profile.reduce(metric, Reduction.MAX).exclusive
    for row, value in enumerate(exclusive.tolist()):
        region = profile.call_tree.regions[profile.call_tree.region[row]]
        found[region.role or region.paradigm] += value
    return found


@pytest.mark.parametrize(
    ("scale", "kernels", "busy"), list(zip(SCALES, KERNELS, BUSY, strict=True))
)
def test_kernels_and_busy_devices_have_the_known_times(shared_data, scale, kernels, busy):
    with NsightReader().open(database(shared_data, scale)) as profile:
        assert sums_by_role(profile, GPU)["kernel"] * 1e3 == pytest.approx(kernels, abs=1e-9)
        assert sums_by_role(profile, "visits on GPU streams")["kernel"] == 12
        assert profile.reduce("GPU busy", Reduction.MAX).total * 1e3 == pytest.approx(
            busy, abs=1e-9
        )
        assert sums_by_role(profile, "visits")["cuda"] == 184
        assert sums_by_role(profile, "visits")["user"] == 76
        assert (profile.extent.processes, profile.extent.threads) == (1, 1)


def test_kernels_of_a_program_without_ranges_have_the_known_times(shared_data):
    for name, times in (("vector_add", ADDED), ("init_array", FILLED)):
        for scale, expected in times.items():
            with NsightReader().open(sampled(shared_data, scale)) as profile:
                tree, found = profile.call_tree, profile.reduce(GPU, Reduction.MAX).exclusive
                (row,) = [k for k in np.flatnonzero(found) if tree.name(int(k)) == name]
                assert round(found[row] * 1e9) == expected, (name, scale)


def test_kernels_copies_and_calls_are_those_that_sql_counts(shared_data):
    for path in files(shared_data):
        with NsightReader().open(path) as profile:
            times = sums_by_role(profile, GPU)
            visits = sums_by_role(profile, "visits on GPU streams")
            calls = sums_by_role(profile, "visits")["cuda"]
            tables = {name for (name,) in rows(path, "SELECT name FROM sqlite_master")}
            activities = {"kernel": ("KERNEL",), "gpu copy": ("MEMCPY", "MEMSET")}
            for role, kinds in activities.items():
                counted = [
                    rows(path, f"SELECT count(*), sum(end - start) FROM {PREFIX}{kind}")  # noqa: S608
                    for kind in kinds
                    if PREFIX + kind in tables
                ]
                assert visits[role] == sum(number for ((number, _),) in counted), path
                assert round(times[role] * 1e9) == sum(time for ((_, time),) in counted), path
            query = "SELECT count(DISTINCT correlationId) FROM CUPTI_ACTIVITY_KIND_RUNTIME"
            assert calls == rows(path, query)[0][0], path
            for kind, metric in ((1, "bytes_host_to_device"), (2, "bytes_device_to_host")):
                if "CUPTI_ACTIVITY_KIND_MEMCPY" in tables:
                    query = f"SELECT sum(bytes) FROM {PREFIX}MEMCPY WHERE copyKind = {kind}"  # noqa: S608
                    total = profile.reduce(metric, Reduction.MAX).total
                    assert total == rows(path, query)[0][0], path


@pytest.mark.parametrize("scale", SCALES)
def test_call_paths_and_inclusive_times_equal_those_that_another_tool_resolved(shared_data, scale):
    # Rows without a correlation number are ranges, less the ranges inside them. A range around
    # others is also less its calls of CUDA.
    path = database(shared_data, scale)
    resolved = rows(path, "SELECT correlationId, callpath, duration FROM EXTRAP_RESOLVED_CALLPATHS")
    expected: dict[str, int] = defaultdict(int)
    calls: dict[str, int] = defaultdict(int)
    ranges = [name for correlation, name, _ in resolved if correlation is None]
    around = {name.rpartition("->")[0] for name in ranges}
    for correlation, name, duration in resolved:
        if duration is None:
            continue
        names = name.split("->")
        calls["/".join(names)] += 1
        is_part = correlation is not None and "->".join(names[:-1]) not in around
        for k in range(1 if is_part else len(names)):
            expected["/".join(names[: len(names) - k])] += duration
    with NsightReader().open(path) as profile:
        tree = profile.call_tree
        inclusive = tree.inclusive(profile.reduce("time", Reduction.MAX).exclusive)
        visits = profile.reduce("visits", Reduction.MAX).exclusive
        ours = {tree.path(k): k for k in range(len(tree)) if visits[k] and tree.parent[k] >= 0}
        # The other tool leaves out calls outside of all ranges.
        outside = {name for name in ours if not name.startswith("main")}
        assert outside == {"cuCtxSynchronize", "cuModuleUnload"}
        assert ours.keys() - outside == expected.keys()
        for name, row in ours.items():
            if name in expected:
                assert round(inclusive[row] * 1e9) == expected[name], name
                assert visits[row] == calls[name], name
    if scale == 4:
        assert expected["main/test_max_par/init_data"] == 421515197
        assert expected["main/test_max_par/init_data/cudaStreamCreate_v3020"] == 205521013
        assert expected["main/process/phase3/cudaEventSynchronize_v3020"] == 109294481


def test_call_chains_equal_those_that_another_tool_resolved(shared_data):
    for scale in ADDED:
        path = sampled(shared_data, scale)
        expected: dict[str, int] = defaultdict(int)
        query = "SELECT callpath, duration FROM EXTRAP_RESOLVED_CALLPATHS WHERE duration > 0"
        for name, duration in rows(path, query):
            # The other tool adds the call below the function of the same name.
            caller, call = name.rsplit("->", 1)
            assert caller.endswith(call)
            expected[caller.replace("->", "/")] += duration
        with NsightReader().open(path) as profile:
            tree, time = profile.call_tree, profile.reduce("time", Reduction.MAX).exclusive
            ours = {tree.path(k): round(time[k] * 1e9) for k in range(1, len(tree)) if time[k]}
            assert ours == expected


def ranking_at(folder, paths, metric: str, target: float, ignore=()) -> cpm.Ranking:
    """Return the ranking at a target from the runs at smaller scales."""
    for path in paths:
        (folder / path.parent.name).symlink_to(path.parent)
    options = cpm.LoadOptions(cpm.ReadOptions(metrics=(metric,)), ignore=ignore)
    study = cpm.Study(str(folder), options)
    return study.ranking(target=target, metric=metric)


@pytest.mark.parametrize(
    ("metric", "ignore", "measured"),
    [(GPU, ("copy*", "memory set"), KERNELS[-1]), ("GPU busy", (), BUSY[-1])],
)
def test_small_scales_predict_the_kernels_and_the_busy_time_of_the_largest(
    shared_data, tmp_path, metric, ignore, measured
):
    paths = [database(shared_data, scale) for scale in SCALES[:-1]]
    total = ranking_at(tmp_path, paths, metric, 16, ignore).sum_of_all
    assert total.low[0] * 1e3 <= measured <= total.high[0] * 1e3
    assert total.value[0] * 1e3 == pytest.approx(measured, rel=0.07)


def test_small_scales_predict_the_kernel_at_the_largest(shared_data, tmp_path):
    paths = [sampled(shared_data, scale) for scale in (10, 100, 1000)]
    ranking = ranking_at(tmp_path, paths, GPU, 10000)
    tree = ranking.tree
    (row,) = [k for k in range(len(tree)) if tree.name(k) == "vector_add" and ranking.value[k] > 0]
    assert ranking.low[row] * 1e9 <= ADDED[10000] <= ranking.high[row] * 1e9
    assert ranking.value[row] * 1e9 == pytest.approx(ADDED[10000], rel=0.15)


def nodes(raw, below=()):
    """Yield the nodes of a tree of Extra-Prof, with the types of the nodes above."""
    for each in raw[1]:
        yield each, below
        yield from nodes(each, (*below, each[2]))


def test_trees_of_extra_prof_conserve_their_sums(shared_data):
    found = sorted((shared_data / "gpu/extra_prof").glob("*/*/profile.extra-prof.msgpack"))
    assert len(found) == 9
    for path in found:
        magic, _, root, *_ = msgspec.msgpack.decode(path.read_bytes())
        assert magic == "EXTRA PROF"
        total = dict.fromkeys((2, 3, 4), 0.0)
        copied = calls = 0.0
        for node, above in nodes(root):
            if node[3] & 2 or 7 in above:
                continue
            if node[2] in total:
                total[node[2]] += float(np.sum(node[4]))
                copied += float(np.sum(node[6])) if node[2] == 3 else 0.0
            else:
                calls += float(np.sum(node[5]))
        with ExtraProfReader().open(path) as profile:
            times = sums_by_role(profile, GPU)
            assert round(times["kernel"] * 1e9) == total[2], path
            assert round(times["gpu copy"] * 1e9) == total[3] + total[4], path
            both = ("bytes_host_to_device", "bytes_device_to_host")
            assert sum(profile.reduce(each, Reduction.SUM).total for each in both) == copied, path
            assert profile.reduce("visits", Reduction.SUM).total == calls, path


def test_a_tree_has_its_energy_in_joules(shared_data):
    path = shared_data / "gpu/extra_prof/test_with_energy/example.s2/profile.extra-prof.msgpack"
    root = msgspec.msgpack.decode(path.read_bytes())[2]
    (main,) = [node for node, above in nodes(root) if node[0] == "main" and not above]
    with ExtraProfReader().open(path) as profile:
        reduced = profile.reduce("energy_cpu", Reduction.MAX)
        tree = profile.call_tree
        (row,) = tree.rows_of("main")
        whole = tree.inclusive(reduced.exclusive)[row]
        assert whole == pytest.approx(main[8][0][0] * 1e-6, rel=1e-9)
        assert whole == pytest.approx(1634.563626)
