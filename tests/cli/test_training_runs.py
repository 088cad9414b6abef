"""Training runs on the command line: time of a step, samples per second, and selected steps."""

from __future__ import annotations

import json

import pytest

import kineto_writer as kw

SCALES = (1, 2, 4, 8)
FOUR = dict.fromkeys(SCALES, 4)


def series(folder, steps=FOUR, name="train.p{p}.b16"):
    for p in SCALES:
        for rank in range(p):
            trace = kw.training(rank, p, steps[p])
            trace.write(folder / name.format(p=p) / f"rank-{rank}.pt.trace.json.gz")
    return folder


def answer(run, *words):
    found = run("rank", *words, "--target", 16, "-f", "json")
    assert found.status == 0, found.err
    return json.loads(found.out)


def test_an_answer_has_the_time_of_a_step_and_samples_per_second(run, tmp_path):
    step = answer(run, series(tmp_path))["step"]
    assert step["steps"] == 4
    assert step["at_target"] == pytest.approx(900e-6, rel=1e-3)
    assert step["batch"] == 16
    assert step["samples_per_second"] == pytest.approx(16 * 16 / 900e-6, rel=1e-3)
    assert step["seconds_per_sample"] == pytest.approx(900e-6 / 16, rel=1e-3)
    shown = " ".join(run("rank", tmp_path, "--target", 16).out.split())
    assert "One step takes 900 µs (4 steps in a run" in shown
    assert "samples/s" in shown


def test_without_a_batch_there_are_no_samples(run, tmp_path):
    step = answer(run, series(tmp_path, name="train.p{p}"))["step"]
    assert step["samples_per_second"] is None
    assert step["at_target"] == pytest.approx(900e-6, rel=1e-3)


def test_selected_steps_are_the_only_ones(run, tmp_path):
    found = answer(run, series(tmp_path), "--steps", "5-")
    assert found["step"]["steps"] == 2
    assert found["step"]["at_target"] == pytest.approx(900e-6, rel=1e-3)
    assert {each["code"] for each in found["findings"]} >= {"CPM189"}
    run("rank", tmp_path, "--steps", "50-").fails(3, "has no selected step", "steps 3 to 6")
    run("rank", tmp_path, "--steps", "x").fails(2, "not a range of steps", "--steps 3-")


def test_runs_with_different_numbers_of_steps_have_no_time_of_a_step(run, tmp_path):
    folder = series(tmp_path, dict(zip(SCALES, (4, 4, 5, 4), strict=True)))
    assert "step" not in answer(run, folder)
    shown = " ".join(run("rank", folder, "--target", 16).out.split())
    assert "Runs have different numbers of steps (4, 5)" in shown
    assert answer(run, folder, "--steps", "3-6")["step"]["steps"] == 4


def test_profiles_without_steps_refuse_the_option(run, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("p,callpath,time\n1,f,1\n2,f,2\n")
    run("rank", path, "--steps", "3-").fails(2, "have no steps", "omit --steps")


def test_a_store_cannot_select_steps(run, tmp_path):
    store = tmp_path / "train.cpm"
    assert run("fit", series(tmp_path / "runs"), "-o", store).status == 0
    run("rank", store, "--steps", "3-").fails(2, "--steps is for reading profiles", "cpmodel fit")


def test_helper_threads_are_no_workers(run, tmp_path):
    found = run("efficiency", series(tmp_path), "-f", "json")
    assert found.status == 0, found.err
    assert "OpenMP" not in run("efficiency", tmp_path).out


def test_processes_of_a_call_path_are_shown(run, tmp_path):
    found = run("show", series(tmp_path), "**/backward", "--per-process", "--steps", "3-4")
    assert found.status == 0, found.err


def stated_series(folder, entries, grown=(), groups=(), name="train.p{p}"):
    """Write runs whose traces state parameters, some of which grow with p."""
    for p in SCALES:
        for rank in range(p):
            trace = kw.training(rank, p, 4)
            trace.entries |= entries | {entry: value * p for entry, value in grown}
            trace.entries["distributedInfo"]["pg_config"] = [*groups]
            trace.write(folder / name.format(p=p) / f"rank-{rank}.pt.trace.json.gz")
    return folder


@pytest.mark.parametrize(
    ("entries", "grown", "samples"),
    [
        ({"batch_size": 16}, [], 16 * 16),
        ({"per_device_train_batch_size": "16"}, [], 16 * 16),
        ({"global_batch_size": 64}, [], 64),
        ({}, [("global_batch_size", 16)], 16 * 16),
        ({"batch_size": 16}, [("global_batch_size", 16)], 16 * 16),
    ],
)
def test_a_trace_states_samples(run, tmp_path, entries, grown, samples):
    step = answer(run, stated_series(tmp_path, entries, grown))["step"]
    assert step["samples_per_second"] == pytest.approx(samples / 900e-6, rel=1e-3)


def test_groups_of_processes_share_a_replica(run, tmp_path):
    groups = [
        {"pg_desc": "default_pg", "pg_size": 8, "ranks": [0, 1]},
        {"pg_desc": "mesh_tp", "pg_size": 2},
        {"pg_desc": "PIPELINE_MODEL_PARALLEL_GROUP", "pg_size": 2},
        {"pg_desc": "mesh_dp_tp", "pg_size": 4},
    ]
    folder = stated_series(tmp_path, {"batch_size": 16, "num_layers": 12}, groups=groups)
    found = answer(run, folder)
    assert found["step"]["samples_per_second"] == pytest.approx(16 * 4 / 900e-6, rel=1e-3)
    assert found["step"]["seconds_per_sample"] == pytest.approx(4 * 900e-6 / 16, rel=1e-3)


@pytest.mark.parametrize(
    "entries",
    [
        {"batch_size": "many"}, {"batch_size": -4}, {"batch_size": 1e300}, {"batch_size": [16]},
        {"batch_size": None},
    ],
)  # fmt: skip
def test_a_text_is_no_number_of_samples(run, tmp_path, entries):
    step = answer(run, stated_series(tmp_path, entries, groups=[7, "x"]))["step"]
    assert step["samples_per_second"] is None


def test_gpus_have_factors_of_their_own(run, tmp_path):
    for p in SCALES:
        for rank in range(p):
            trace = kw.training(rank, p, 4)
            for step in range(4):
                at = 1000.0 + 1000 * step
                # The last 20 of 100 us are beside the kernel from 150 to 230.
                trace.event("cuda_runtime", "cudaLaunchKernel", at + 20, 5, correlation=900 + step)
                trace.event("kernel", "ncclDevKernel_AllReduce_Sum_f32", at + 70, 100, 9, 0,
                            correlation=900 + step, device=0, stream=9)  # fmt: skip
            trace.write(tmp_path / f"train.p{p}" / f"rank-{rank}.pt.trace.json.gz")
    found = run("efficiency", tmp_path, "--target", 16, "-f", "json")
    assert found.status == 0, found.err
    program = {(row["scale"], row["factor"]): row for row in json.loads(found.out)["rows"]
               if row["whole_program"] and row["scheme"] == "multiplicative"}  # fmt: skip
    # Busy: 70 to 230 and the copy from 300 to 320, in the 3900 us of the process.
    for p in (8, 16):
        assert program[p, "gpu_utilisation"]["value"] == pytest.approx(4 * 180 / 3900, rel=1e-3)
        assert program[p, "gpu_overlap"]["value"] == pytest.approx(0.2, rel=1e-3)
    shown = run("efficiency", tmp_path, "--target", 16).out
    assert "GPU utilisation" in shown
    assert "overlap of GPU communication" in shown


def test_programs_without_gpus_have_no_such_factors(run, samples):
    assert "GPU" not in run("efficiency", samples / "stencil").out


@pytest.mark.parametrize(
    ("entries", "grown", "name"),
    [
        # The gradients of several batches make a step, or a loop calls each of them a step.
        ({"local_batch_size": 16}, [("global_batch_size", 64)], "train.p{p}"),
        ({"local_batch_size": 16, "global_batch_size": 1024}, [], "train.p{p}"),
        # The name of the run and its traces disagree.
        ({"batch_size": 16}, [], "train.p{p}.b64"),
        # The size of these groups at the target is not known.
        ({"batch_size": 16}, [("tp_size", 1)], "train.p{p}"),
    ],
)
def test_samples_are_not_known_where_parameters_disagree(run, tmp_path, entries, grown, name):
    step = answer(run, stated_series(tmp_path, entries, grown, name=name))["step"]
    assert step["samples_per_second"] is None
    assert step["at_target"] == pytest.approx(900e-6, rel=1e-3)


@pytest.mark.parametrize(
    ("every", "entries", "samples"),
    [
        # Each step calls the optimizer, so it has 2 batches.
        (1, {"batch_size": 16}, 2 * 16 * 16),
        (1, {"batch_size": 16, "global_batch_size": 64}, None),
        (1, {"global_batch_size": 64}, 64),
        # Each second step calls the optimizer, so a step has one batch.
        (2, {"batch_size": 16}, 16 * 16),
        (2, {"batch_size": 16, "global_batch_size": 64}, 16 * 16),
        (2, {"global_batch_size": 64}, None),
        # No call is recorded.
        (9, {"batch_size": 16}, None),
    ],
)
def test_samples_count_the_batches_of_accumulated_gradients(run, tmp_path, every, entries, samples):
    for p in SCALES:
        for rank in range(p):
            trace = kw.training(rank, p, 4)
            trace.entries |= entries | {"gradient_accumulation_steps": 2}
            for step in range(every - 1, 4, every):
                trace.event("user_annotation", "Optimizer.step#SGD.step", 1860 + 1000 * step, 30)
            trace.write(tmp_path / f"train.p{p}" / f"rank-{rank}.pt.trace.json.gz")
    found = answer(run, tmp_path)
    known = None if samples is None else pytest.approx(samples / 900e-6, rel=1e-3)
    assert found["step"]["samples_per_second"] == known
    said = [each["message"] for each in found["findings"] if each["code"] == "CPM102"]
    assert bool(said) == (every == 9)


def test_ranks_that_state_different_sizes_state_none(run, tmp_path):
    for p in SCALES:
        for rank in range(2 * p):
            trace = kw.training(rank, 2 * p, 4)
            trace.entries["batch_size"] = 16 + 8 * (rank % 2)
            trace.write(tmp_path / f"train.p{2 * p}" / f"rank-{rank}.pt.trace.json.gz")
    found = answer(run, tmp_path)
    assert found["step"]["samples_per_second"] is None
    (said,) = {each["message"] for each in found["findings"] if each["code"] == "CPM102"}
    assert said == "batch differs between ranks (16, 24): it is not used"


@pytest.mark.parametrize(
    "groups",
    [
        [{"pg_desc": "mesh_tp", "pg_size": 2}, 7, {"pg_desc": 3}],
        [{"pg_desc": "mesh_tp", "pg_size": "2"}],
        [{"pg_desc": "mesh_tp", "ranks": [0, 1]}],
        [{"pg_desc": "mesh_sp", "pg_size": 2}],
    ],
)
def test_groups_are_found_in_other_forms_and_beside_damaged_ones(run, tmp_path, groups):
    step = answer(run, stated_series(tmp_path, {"batch_size": 16}, groups=groups))["step"]
    assert step["samples_per_second"] == pytest.approx(16 * 8 / 900e-6, rel=1e-3)


def test_runs_without_a_group_have_groups_of_one_process(run, tmp_path):
    stated_series(tmp_path, {}, [("tp_size", 1)])
    found = run("rank", tmp_path, "--parameter", "tp", "--target", 16)
    assert found.status == 0, found.err
    assert "tp = 1 … 8 (4 points" in found.out


def test_runs_without_collective_operations_have_none_of_them(run, tmp_path):
    for p in SCALES:
        for rank in range(p):
            trace = kw.training(rank, p, 4)
            if p == 1:
                trace.events = [each for each in trace.events if "reduce" not in each["name"]]
            trace.write(tmp_path / f"train.p{p}" / f"rank-{rank}.pt.trace.json.gz")
    found = run("rank", tmp_path, "--metric", "collectives", "--target", 16)
    assert found.status == 0, found.err
    assert "p = 1 … 8 (4 points" in found.out


def test_a_batch_in_some_traces_only_is_not_used(run, tmp_path):
    folder = stated_series(tmp_path, {"batch_size": 16})
    for rank in range(2):
        path = folder / "train.p2" / f"rank-{rank}.pt.trace.json.gz"
        kw.training(rank, 2, 4).write(path)
    found = answer(run, folder)
    assert found["step"]["samples_per_second"] is None
    said = [each["message"] for each in found["findings"] if each["code"] == "CPM102"]
    assert said == ["batch is not in 1 profile: it is not used"]
