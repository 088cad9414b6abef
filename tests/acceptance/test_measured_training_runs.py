"""Measured training runs: known values, and sums that an independent count of events gives."""

from __future__ import annotations

import gzip
import json
from collections import Counter

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.step_time import step_time
from callpath_modeler.profile.schema import Reduction
from cpmodel_kineto import KinetoReader

API = {"cuda_runtime", "cuda_driver", "mtia_runtime"}
HOST = {"cpu_op", "user_annotation", "python_function", *API}
KERNELS = {"kernel", "mtia_ccp_events"}
COPIES = {"gpu_memcpy", "gpu_memset"}
MEAN_STEPS = {
    "p1": (23.3, 34.0, 36.5),
    "p2": (69.8, 43.8, 54.6),
    "p4": (79.9, 63.7, 64.7),
    "p6": (139, 126, 85.8),
}
CALLS_IN_A_STEP = {"ProfilerStep": 1, "gloo:all_reduce": 2, "gloo:all_gather": 1,
                   "c10d::allreduce_": 2, "c10d::allgather_": 1}  # fmt: skip
FLOATS = 265482 + 263168


def events_of(path):
    opened = gzip.open if path.name.endswith(".gz") else open
    with opened(path, "rb") as file:
        found = json.load(file)
    return [each for each in found["traceEvents"] if each["ph"] == "X"]


def profile_of(path):
    with KinetoReader().open_runs(path) as (run,):
        return run.source, run.parameters


def by_role(profile, metric):
    found = Counter()
    exclusive = profile.reduce(metric, Reduction.SUM).exclusive
    regions = profile.call_tree.regions
    for row, region in enumerate(profile.call_tree.region.tolist()):
        found[regions[region].role] += exclusive[row]
    return found


def inclusive(profile, metric, name, reduction=Reduction.SUM):
    tree = profile.call_tree
    values = tree.inclusive(profile.reduce(metric, reduction).exclusive)
    return {tree.path(row): values[row] for row in range(len(tree)) if tree.name(row) == name}


def traces(shared_data):
    found = sorted((shared_data / "gpu/kineto").rglob("*.json*"))
    assert len(found) == 20
    return found


def test_calls_and_activities_conserve_their_sums(shared_data):
    for path in traces(shared_data):
        profile, _ = profile_of(path)
        events = events_of(path)
        calls = Counter(each.get("cat") for each in events)
        host = profile.reduce("visits", Reduction.SUM).total
        # The program itself has one visit.
        assert host == 1 + sum(calls[kind] for kind in HOST), path
        of_api = [
            each for each in events if each.get("cat") in HOST - {"cpu_op", "user_annotation"}
        ]
        exclusive = profile.reduce("visits", Reduction.SUM).exclusive
        regions = profile.call_tree.regions
        is_api = np.array([r.paradigm in {"cuda", "hip"} and r.role == "function" for r in regions])
        assert exclusive[is_api[profile.call_tree.region]].sum() == len(of_api), path
        names = {each.metric.name for each in profile.metrics}
        if not any(calls[kind] for kind in KERNELS | COPIES):
            assert "time on GPU streams" not in names
            continue
        visits = by_role(profile, "visits on GPU streams")
        times = by_role(profile, "time on GPU streams")
        for role, kinds in (("kernel", KERNELS), ("gpu copy", COPIES)):
            own = [each for each in events if each.get("cat") in kinds]
            assert visits[role] == len(own), path
            spent = sum(each["dur"] for each in own) * 1e-6
            assert times[role] == pytest.approx(spent, rel=1e-9, abs=1e-9), path
        copied = sum(profile.reduce(n, Reduction.SUM).total for n in names if n.startswith("bytes_")
                     and n != "bytes_sent")  # fmt: skip
        stated = sum(e["args"].get("bytes", 0) for e in events if e.get("cat") in COPIES)
        if "amd_trace" in str(path):
            stated = 2560 * 2
        assert copied == stated, path


@pytest.mark.parametrize("scale", MEAN_STEPS)
@pytest.mark.parametrize("repetition", [1, 2, 3])
def test_steps_and_collectives_have_the_known_values(shared_data, scale, repetition):
    path = shared_data / f"gpu/pytorch_ddp/ddp.{scale}.r{repetition}"
    profile, parameters = profile_of(path)
    p = int(scale[1:])
    assert parameters == {"p": p}
    assert profile.extent.processes == p
    calls = dict.fromkeys(CALLS_IN_A_STEP, 0.0)
    visits = profile.reduce("visits", Reduction.SUM).exclusive
    for row, count in enumerate(visits.tolist()):
        if profile.call_tree.name(row) in calls:
            calls[profile.call_tree.name(row)] += count
    assert calls == {name: 6 * p * count for name, count in CALLS_IN_A_STEP.items()}
    (sent,) = inclusive(profile, "bytes_sent", "gloo:all_reduce").values()
    assert sent == 6 * p * 4 * FLOATS
    first = profile_of(path / "rank-0.pt.trace.json.gz")[0]
    (spent,) = inclusive(first, "time", "ProfilerStep").values()
    mean = MEAN_STEPS[scale][repetition - 1]
    assert spent / 6 * 1e3 == pytest.approx(mean, rel=0.005)
    # Waits are inside the time of steps, so they change no sum.
    waited = inclusive(first, "time", "wait for gloo:all_reduce")
    assert all(0 < value < spent for value in waited.values())


def test_missing_ranks_are_named_and_do_not_change_the_scale(shared_data):
    folder = shared_data / "gpu/kineto/trace_filter"
    profile, parameters = profile_of(folder)
    assert parameters == {"p": 128}
    assert profile.extent.processes == 2
    (finding,) = [each for each in profile.findings() if each.code == "CPM132"]
    assert finding.message == "126 of 128 ranks have no file (2, 3, 4, 5, 6, ...); p = 128"


OF_HTA = {
    # Times in us: busy, computation, communication, and the overlap of communication in percent.
    # HolisticTraceAnalysis 0.5 with include_last_profiler_step=True.
    "df_index_resolver/df_index_resolver.json.gz": (1000613, 620516, 357343, 0.0),
    "trace_filter/sampled_rank-0.json.gz": (547656, 210320, 396199, 14.95),
    "trace_filter/sampled_rank-1.json.gz": (580050, 271973, 379053, 19.93),
    # It counts waits on streams as work of the device: 0.3 % here, 9 % of 56 us in another file.
    "critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz": (66327, 10637, 0, 0),
    "critical_path/simple_add/benchmark_result_493459_1694039959_trace.json.gz": (
        49963,
        10676,
        0,
        0,
    ),
    "mtia_inference_trace/mtia_inference_rank_0.json.gz": (424040, None, 0, 0),
}


@pytest.mark.parametrize("name", OF_HTA)
def test_breakdowns_of_devices_equal_those_of_hta(shared_data, name):
    profile, _ = profile_of(shared_data / "gpu/kineto" / name)
    busy, computation, communication, overlap = OF_HTA[name]

    def total(metric):
        return profile.reduce(metric, Reduction.SUM).total * 1e6

    assert total("GPU busy") == pytest.approx(busy, rel=0.005)
    if communication:
        assert total("GPU computation") == pytest.approx(computation, rel=1e-6)
        assert total("GPU communication") == pytest.approx(communication, rel=1e-6)
        overlapped = 100 * total("overlapped GPU communication") / communication
        assert overlapped == pytest.approx(overlap, abs=0.005)
    elif computation:
        spent = by_role(profile, "time on GPU streams")["kernel"] * 1e6
        assert spent == pytest.approx(computation, rel=0.01)


def one_step(shared_data, scales, target):
    runs = [*(shared_data / "gpu/pytorch_ddp").glob("ddp.p*")]
    chosen = sorted(each for each in runs if int(each.name.split(".")[1][1:]) in scales)
    experiment = cpm.load(chosen, cpm.LoadOptions(cpm.ReadOptions(scaling="weak")))
    return step_time(cpm.rank(cpm.fit(experiment), target))


def test_three_scales_predict_the_next_and_four_scales_the_one_after(shared_data):
    predicted = one_step(shared_data, {1, 2, 4}, 6)
    assert predicted.low < np.mean(MEAN_STEPS["p6"]) * 1e-3 < predicted.high
    later = one_step(shared_data, {1, 2, 4, 6}, 8)
    assert later.steps == 6
    assert 0.04 < later.low < later.value < later.high < 0.5
    assert later.value > np.mean(MEAN_STEPS["p4"]) * 1e-3
