"""Profiles from PyTorch traces: nesting, steps, launches, collectives, ranks, and their limits."""

from __future__ import annotations

import json

import numpy as np
import pytest

import kineto_writer as kw
from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.base import Match, StepRange
from cells import cells
from cpmodel_kineto import KinetoReader
from cpmodel_kineto.collectives import bytes_of
from cpmodel_kineto.json_events import Arguments

READER = KinetoReader()


def opened(path):
    with READER.open_runs(path) as (run,):
        return run.source, run.parameters


def of_events(path, events, **entries):
    path.write_text(json.dumps({**entries, "traceEvents": events}))
    return opened(path)[0]


def values(profile, metric, reduction=Reduction.SUM):
    tree = profile.call_tree
    exclusive = profile.reduce(metric, reduction).exclusive
    return {tree.path(row): value for row, value in enumerate(exclusive.tolist()) if value}


def event(name, ts, dur, tid=1, cat="cpu_op", pid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
            "args": args}  # fmt: skip


def test_rounded_and_equal_intervals_nest(tmp_path):
    events = [
        event("inner", 10.001, 4.001),
        event("outer", 10, 4.001),
        event("same", 20, 2),
        event("longer", 20, 5),
        event("next", 14.001, 1),
    ]
    found = values(of_events(tmp_path / "a.json", events), "visits")
    assert {"outer/inner", "longer/same", "next"} <= set(found)


def test_begins_and_ends_are_calls(tmp_path):
    edges = [
        ("B", "f", 1),
        ("B", "g", 3),
        ("E", "", 4),
        ("E", "f", 9),
        ("E", "f", 10),
        ("B", "h", 11),
    ]
    events = [{"ph": p, "name": n, "pid": 1, "tid": 1, "ts": t} for p, n, t in edges]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(events))
    profile, _ = opened(path)
    assert values(profile, "time") == pytest.approx({"f": 7e-6, "f/g": 1e-6})
    (finding,) = [each for each in profile.findings() if each.code == "CPM128"]
    assert finding.count == 2


def test_late_times_with_a_fraction_are_exact(tmp_path):
    # Floats of this size are multiples of 0.25 us.
    base = 1682725898236567
    text = ", ".join(
        f'{{"ph": "X", "name": "f{k}", "pid": 1, "tid": 1, "ts": {base}.{k}00, "dur": 0.100}}'
        for k in range(5)
    )
    path = tmp_path / "a.json"
    path.write_text(f"[{text}]")
    found = values(opened(path)[0], "time")
    assert {name: value for name, value in found.items() if name != "<program>"} == pytest.approx(
        {f"f{k}": 1e-7 for k in range(5)}
    )


def test_selected_steps_have_their_events_only(tmp_path):
    path = kw.training(0, 1, steps=6).write(tmp_path / "trace.json")
    whole, _ = opened(path)
    assert whole.metadata["steps"] == "6"
    for text, count in (("3-", 6), ("4-6", 3), ("8", 1), ("-4", 2)):
        some = whole.with_steps(StepRange.of(text))
        assert some.metadata["steps"] == str(count)
        for metric in ("visits", "visits on GPU streams", "bytes_sent"):
            mine, all_of = values(some, metric), values(whole, metric)
            mine.pop("<program>", None)
            all_of.pop("<program>", None)
            assert mine == {name: value * count / 6 for name, value in all_of.items()}, metric
        (finding,) = [each for each in some.findings() if each.code == "CPM189"]
        assert finding.count == count
    with pytest.raises(InputError) as error:
        whole.with_steps(StepRange.of("20-"))
    assert error.value.hint == "the trace has steps 3 to 8"


@cells("text", ["", "-", "a", "5-3", "1-2-3", "-1-"])
def test_a_text_that_is_no_range_of_steps_is_refused(text):
    with pytest.raises(UsageError, match="--steps"):
        StepRange.of(text)


def test_slow_first_steps_are_named(tmp_path):
    events = [
        event(f"ProfilerStep#{k}", 1000 * k, 900 if k < 2 else 300 + k, cat="user_annotation")
        for k in range(8)
    ]
    (finding,) = [
        each for each in of_events(tmp_path / "a.json", events).findings() if each.code == "CPM188"
    ]
    assert finding.count == 2
    assert "ProfilerStep 0, 1 takes" in finding.message
    assert "--steps 2-" in finding.message


def test_a_wait_ends_with_its_collective_operation(tmp_path):
    def waits(start, duration, operator):
        events = [
            event("ProfilerStep#1", 0, 100, cat="user_annotation"),
            event("aten::mm", 10, 10),
            event("gloo:all_reduce", start, duration, tid=2, cat="user_annotation"),
            event("aten::div", *operator),
        ]
        found = values(of_events(tmp_path / "a.json", events), "time")
        return found.get("ProfilerStep/wait for gloo:all_reduce", 0.0)

    assert waits(15, 45, (60, 10)) == pytest.approx(40e-6)
    assert waits(30, 20, (60, 10)) == pytest.approx(20e-6)
    # The main thread computes at the end of the operation, so it does not wait for it.
    assert waits(15, 50, (60, 10)) == 0
    # Nothing follows the operation.
    assert waits(75, 10, (60, 10)) == 0


def test_activities_without_correlation_are_found_by_flows_and_operators(tmp_path):
    events = [
        event("launch", 0, 5, cat="mtia_runtime", correlation=7),
        event("pe_exe", 10, 5, tid=9, pid=17, cat="mtia_ccp_events"),
        {"ph": "f", "id": 7, "pid": 17, "tid": 9, "ts": 10, "cat": "ac2g", "name": "ac2g"},
        event("aten::op", 20, 5, **{"External id": 3}),
        event("kernel", 30, 5, tid=9, pid=17, cat="kernel", **{"External id": 3}),
        event("lost", 40, 5, tid=9, pid=17, cat="kernel", correlation=99),
    ]
    profile = of_events(tmp_path / "a.json", events)
    assert values(profile, "visits on GPU streams") == {
        "launch/pe_exe": 1, "aten::op/kernel": 1, "(launch not recorded)/lost": 1
    }  # fmt: skip
    assert profile.extent.processes == 1


def test_only_the_innermost_layer_of_a_collective_has_bytes(tmp_path):
    shape = {"Input Dims": [[1000]], "Input type": ["float"]}
    events = [
        event("c10d::allreduce_", 0, 50, **shape),
        event("record_param_comms", 10, 30, **{"In msg nelems": 1000, "dtype": "Float"}),
        event("nccl:all_reduce", 20, 10, cat="user_annotation", **shape),
    ]
    path = "c10d::allreduce_/record_param_comms"
    assert values(of_events(tmp_path / "a.json", events), "bytes_sent") == {
        f"{path}/nccl:all_reduce": 4000
    }
    assert values(of_events(tmp_path / "b.json", events[:2]), "bytes_sent") == {path: 4000}
    assert values(of_events(tmp_path / "c.json", events[:1]), "bytes_sent") == {
        "c10d::allreduce_": 4000
    }


def test_bytes_of_damaged_arguments_are_not_known():
    for args in (
        None,
        Arguments(),
        Arguments(elements_in=10, dtype="unknown"),
        Arguments(elements_in=10**30, dtype="Float"),
        Arguments(dims=b'[["a"]]', types=b'["float"]'),
        Arguments(dims=b"[[1000000000, 1000000000, 1000000000]]", types=b'["float"]'),
        Arguments(dims=b"[[1]]", types=b"{}"),
        Arguments(dims=b"[" * 5000, types=b"[]"),
    ):
        assert np.isnan(bytes_of(args))


def test_two_files_of_one_rank_are_refused(tmp_path):
    folder = tmp_path / "run"
    for rank, stated in ((0, 0), (1, 1), (2, 1)):
        kw.training(stated, 3).write(folder / f"rank-{rank}.json")
    assert READER.match(folder) is Match.CONTENT
    with pytest.raises(InputError, match=r"rank 1 is in rank-1.json as well"):
        opened(folder)


def test_missing_ranks_are_named_and_do_not_change_p(tmp_path):
    for rank in (0, 3):
        kw.training(rank, 8).write(tmp_path / "run" / f"rank-{rank}.json")
    profile, parameters = opened(tmp_path / "run")
    assert parameters == {"p": 8}
    (finding,) = [each for each in profile.findings() if each.code == "CPM132"]
    assert finding.message == "6 of 8 ranks have no file (1, 2, 4, 5, 6, ...); p = 8"


def test_ranks_come_from_names_if_traces_do_not_state_them(tmp_path):
    for rank in range(2):
        trace = kw.training(rank)
        del trace.entries["distributedInfo"]
        trace.write(tmp_path / "run" / f"worker_rank{rank}.pt.trace.json")
    assert READER.match(tmp_path / "run") is Match.CONTENT
    profile, parameters = opened(tmp_path / "run")
    assert parameters == {"p": 2}
    assert profile.placement().ranks.tolist() == [0, 1]


def test_runs_side_by_side_are_no_ranks(tmp_path):
    for name in ("a.p2.json", "a.p4.json"):
        kw.training(0, 1).write(tmp_path / name)
    assert READER.match(tmp_path) is Match.NO
    assert READER.match(tmp_path / "a.p2.json") is Match.CONTENT


def test_processes_of_a_chrome_trace_are_those_with_calls(tmp_path):
    events = [event("f", 0, 5, pid=k, tid=k, cat="") for k in (3, 4)]
    profile = of_events(tmp_path / "a.json", events)
    assert profile.extent.processes == 2
    assert values(profile, "time", Reduction.MEAN)["f"] == pytest.approx(5e-6)


def test_a_trace_without_calls_is_refused(tmp_path):
    for events in ([], [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "x"}}]):
        with pytest.raises(InputError, match="no events with a duration"):
            of_events(tmp_path / "a.json", events)


def test_addresses_in_names_do_not_tell_runs_apart(tmp_path):
    name = "<built-in method run of X object at 0x7f00aa>"
    events = [event(name, 0, 5, cat="python_function"),
              event("train.py(12): step", 10, 5, cat="python_function")]  # fmt: skip
    profile = of_events(tmp_path / "a.json", events)
    assert set(values(profile, "visits")) >= {"<built-in method run of X object>", "step"}
    (region,) = [each for each in profile.call_tree.regions if each.name == "step"]
    assert (region.file, region.line) == ("train.py", 12)


def test_more_threads_than_a_file_may_have_are_refused(tmp_path):
    events = [event("f", k, 1, tid=k) for k in range(3000)]
    with pytest.raises(InputError, match="too many") as error:
        of_events(tmp_path / "a.json", events, deviceProperties=[])
    assert "record fewer threads" in error.value.hint
