"""Databases of Nsight Systems: forms of events, processes, and hostile contents."""

from __future__ import annotations

import numpy as np
import pytest

import nsight_writer as nw
from callpath_modeler.errors import InputError
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.base import StepRange
from cells import cells
from cpmodel_gpu import NsightReader

GPU = "time on GPU streams"


def values(path, metric: str, how: Reduction = Reduction.MAX) -> dict[str, float]:
    """Return the values other than zero of a metric, in ns or bytes, by call path."""
    with NsightReader().open(path) as profile:
        found = profile.reduce(metric, how).exclusive
        factor = 1e9 if metric.endswith("time") or "time on" in metric or "busy" in metric else 1.0
        return {
            profile.call_tree.path(row): round(found[row] * factor) for row in np.flatnonzero(found)
        }


def findings(path) -> list[tuple[str, str]]:
    """Return codes and messages of the findings, without those about streams."""
    with NsightReader().open(path) as profile:
        return [(f.code, f.message) for f in profile.findings() if f.code != "CPM110"]


def test_an_activity_is_below_the_launch_of_its_own_process(tmp_path):
    report = nw.Report()
    for pid, caller in ((100, "a"), (200, "b")):
        report.range(caller, 0, 100, pid)
        report.call("cudaLaunchKernel", 10, 20, 5, pid)
        report.kernel("k(int)", 20, 20 + pid, 5, pid)
    path = report.write(tmp_path / "node.sqlite")
    assert values(path, GPU) == {"a/cudaLaunchKernel/k": 100, "b/cudaLaunchKernel/k": 200}
    with NsightReader().open(path) as profile:
        assert profile.extent.processes == 2
        assert profile.extent.threads == 1
    assert values(path, GPU, Reduction.SUM) == values(path, GPU)


def test_streams_and_devices_are_no_processes_and_no_threads(tmp_path):
    report = nw.Report()
    report.range("main", 0, 1000)
    for stream in range(8):
        report.call("cudaLaunchKernel", 10 * stream, 10 * stream + 5, stream + 1)
        report.kernel("k(int)", 100, 200, stream + 1, stream=stream, device=stream % 2)
    path = report.write(tmp_path / "a.sqlite")
    with NsightReader().open(path) as profile:
        assert (profile.extent.processes, profile.extent.threads) == (1, 1)
    assert values(path, GPU) == {"main/cudaLaunchKernel/k": 800}
    assert values(path, "GPU busy") == {"<program>": 200}


def test_kernels_of_one_template_have_their_full_arguments_of_templates(tmp_path):
    report = nw.Report()
    for number, name in enumerate(("void f<int>(int*)", "void f<float>(float*)"), start=1):
        report.call("cudaLaunchKernel", 10 * number, 10 * number + 5, number)
        report.kernel(name, 100 * number, 100 * number + 7, number)
    path = report.write(tmp_path / "a.sqlite")
    assert set(values(path, GPU)) == {"cudaLaunchKernel/f<int>", "cudaLaunchKernel/f<float>"}


@cells(
    ("end", "message"),
    [
        (None, "1 event without a valid start and end, left out"),
        (5, "1 event without a valid start and end, left out"),
        ("late", "1 event with a text in place of a number"),
        (b"\x00", "1 event with a text in place of a number"),
        (1 << 62, "1 event without a valid start and end, left out"),
    ],
)
def test_an_activity_without_a_valid_end_is_left_out(tmp_path_factory, end, message):
    report = nw.small()
    report.kernel("broken(int)", 500, end, 3)
    path = report.write(tmp_path_factory.mktemp("a") / "a.sqlite")
    assert not any("broken" in name for name in values(path, GPU))
    assert ("CPM186", message) in findings(path)


def test_ranges_of_a_stack_make_call_paths_and_other_ranges_do_not(tmp_path):
    report = nw.small()
    report.range("whole", 50, 900, kind=nw.START_END)
    path = report.write(tmp_path / "a.sqlite")
    assert not any("whole" in name for name in values(path, "time"))
    message = "1 event between any two moments, which is no call, left out"
    assert ("CPM186", message) in findings(path)


def test_a_text_in_a_range_counts_once(tmp_path):
    report = nw.small()
    report.range("odd", 100, "late")
    path = report.write(tmp_path / "a.sqlite")
    assert ("CPM186", "1 event with a text in place of a number") in findings(path)


def test_ranges_that_cross_are_told_and_add_up(tmp_path):
    report = nw.Report()
    report.range("a", 0, 100)
    report.range("b", 50, 150)
    path = report.write(tmp_path / "a.sqlite")
    assert values(path, "time") == {"a": 50, "a/b": 50, "b": 50}
    assert findings(path) == [("CPM186", "1 event whose interval crosses the one of the caller")]


def test_a_call_that_is_recorded_twice_counts_once(tmp_path):
    report = nw.Report()
    report.call("cudaMalloc", 0, 100, 5, kind=67)
    report.call("cudaMalloc_v3020", 1, 99, 5)
    path = report.write(tmp_path / "a.sqlite")
    assert values(path, "time") == {"cudaMalloc": 100}
    assert values(path, "visits") == {"<program>": 1, "cudaMalloc": 1}


@pytest.mark.parametrize("shift", [0, 1])
def test_call_chains_are_above_calls_outside_of_ranges(tmp_path, shift):
    report = nw.Report()
    for chain, call in enumerate(("cudaMalloc", "cudaLaunchKernel")):
        for depth, (symbol, unresolved) in enumerate(
            [("0x7f", 1), (call, None), ("work", None), ("main", None)]
        ):
            report.add("CUDA_CALLCHAINS", id=chain + shift, symbol=report.text(symbol), module=1,
                       unresolved=unresolved, stackDepth=depth)  # fmt: skip
        report.call(call, 100 * chain, 100 * chain + 50, chain + 1, chain=chain)
    report.kernel("k()", 200, 210, 2)
    path = report.write(tmp_path / "a.sqlite")
    assert values(path, "time") == {
        "<program>": 110, "main/work/cudaMalloc": 50, "main/work/cudaLaunchKernel": 50,
    }  # fmt: skip
    assert values(path, GPU) == {"main/work/cudaLaunchKernel/k": 10}


def test_messages_of_mpi_have_their_bytes_and_their_class(tmp_path):
    report = nw.Report()
    report.range("main", 0, 1000)
    thread = nw.global_tid(100, 100)
    for name, start, size in (("MPI_Send", 10, 100), ("MPI_Recv", 30, 70), ("MPI_Isend", 50, 5)):
        report.add("MPI_P2P_EVENTS", start=start, end=start + 10, globalTid=thread,
                   textId=report.text(name), size=size)  # fmt: skip
    report.add("MPI_COLLECTIVES_EVENTS", start=80, end=95, globalTid=thread,
               textId=report.text("MPI_Allgather"), size=8, recvSize=64)  # fmt: skip
    report.add("MPI_RANKS", globalPid=nw.global_pid(100), rank=3)
    path = report.write(tmp_path / "a.sqlite")
    assert values(path, "bytes_sent") == {
        "main/MPI_Send": 100, "main/MPI_Isend": 5, "main/MPI_Allgather": 8,
    }  # fmt: skip
    assert values(path, "bytes_received") == {"main/MPI_Recv": 70, "main/MPI_Allgather": 64}
    with NsightReader().open(path) as profile:
        assert profile.placement().ranks.tolist() == [3]
        (row,) = profile.call_tree.rows_of("main/MPI_Allgather")
        region = profile.call_tree.regions[profile.call_tree.region[row]]
        assert region.call_class.is_collective


@pytest.mark.parametrize(("node", "expected"), [(None, {"CUDA graph": 40}), (6, {"k": 30})])
def test_a_graph_is_an_activity_unless_its_kernels_are_recorded(tmp_path, node, expected):
    report = nw.Report()
    report.call("cudaGraphLaunch_v10000", 0, 10, 5)
    report.add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=20, end=60, deviceId=0, streamId=7,
               correlationId=5, globalPid=nw.global_pid(100), graphId=1)  # fmt: skip
    if node:
        report.kernel("k()", 20, 50, 5, node=node)
    path = report.write(tmp_path / "a.sqlite")
    launch = "cudaGraphLaunch_v10000"
    assert values(path, GPU) == {f"{launch}/{name}": time for name, time in expected.items()}


def test_the_program_has_the_time_outside_of_all_calls(tmp_path):
    report = nw.Report()
    report.call("cudaMalloc", 100, 150, 1)
    report.call("cudaFree", 400, 450, 2)
    path = report.write(tmp_path / "a.sqlite")
    assert values(path, "time") == {"<program>": 250, "cudaMalloc": 50, "cudaFree": 50}


def test_missing_ranks_are_told(tmp_path):
    for rank in (0, 1, 3):
        nw.small(100 + rank).write(tmp_path / "run" / f"report.rank{rank}.sqlite")
    assert findings(tmp_path / "run")[0] == ("CPM132", "1 of 4 ranks have no file")
    with NsightReader().open(tmp_path / "run") as profile:
        assert profile.placement().ranks.tolist() == [0, 1, 3]


@cells("further", [
    ("CREATE VIEW NVTX_EVENTS AS SELECT 1 AS start, 2 AS end, 59 AS eventType, 'x' AS text",),
    ("CREATE VIRTUAL TABLE NVTX_EVENTS USING fts5(start, end, eventType, text)",),
    ("CREATE TABLE NVTX_EVENTS (start, end AS (start + 1), eventType, text, globalTid)",
     "INSERT INTO NVTX_EVENTS (start, eventType, text) VALUES (1, 59, 'x')"),
    ("CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN SELECT 1; END",),
])  # fmt: skip
def test_no_code_of_a_database_is_run(tmp_path_factory, further):
    report = nw.Report()
    report.call("cudaMalloc", 0, 10, 1)
    path = report.write(tmp_path_factory.mktemp("a") / "a.sqlite", further)
    assert values(path, "time") == {"cudaMalloc": 10}


def test_a_huge_text_is_refused(tmp_path):
    report = nw.small()
    report.range("a" * (1 << 25), 700, 800)
    path = report.write(tmp_path / "a.sqlite")
    with pytest.raises(InputError, match="too big"):
        values(path, "time")


def test_a_report_that_is_not_exported_gets_the_command(tmp_path):
    path = tmp_path / "report1.nsys-rep"
    path.write_bytes(b"\x00NVDA")
    with pytest.raises(InputError) as caught, NsightReader().open(path):
        pass
    assert "nsys export --type sqlite report1.nsys-rep" in caught.value.hint


def test_a_database_without_events_says_how_to_record_them(tmp_path):
    report = nw.Report()
    report.text("nothing")
    path = report.write(tmp_path / "a.sqlite")
    with pytest.raises(InputError) as caught, NsightReader().open(path):
        pass
    assert "nsys profile --trace" in caught.value.hint


def test_a_table_without_rows_is_no_error(tmp_path):
    report = nw.Report()
    report.kernel("k()", 0, 10, 1)
    path = report.write(
        tmp_path / "a.sqlite",
        ["CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid, textId, domainId)"],
    )
    assert values(path, GPU) == {"(launch not recorded)/k": 10}
    path = report.write(
        tmp_path / "b.sqlite",
        [
            "CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid, textId, domainId)",
            "INSERT INTO NVTX_EVENTS VALUES (5, 1, 59, 'x', 1, NULL, 0)",
        ],
    )
    assert values(path, GPU) == {"(launch not recorded)/k": 10}


def with_steps(path, *, processes=1, slow=False):
    """Write six steps of 1000 ns with a kernel each; the first may be slow."""
    report = nw.Report()
    for pid in range(100, 100 + processes):
        at = 1000
        report.range("epoch", at - 100, at + 20000, pid)
        for step in range(6):
            length = 5000 if slow and not step else 1000 + 10 * step
            report.range(f"step {step}", at, at + length, pid)
            report.range("forward", at + 50, at + 500, pid)
            correlation = 100 * pid + step
            report.call("cudaLaunchKernel", at + 100, at + 200, correlation, pid)
            report.kernel("add(int)", at + 210, at + 400, correlation, pid)
            at += length + 100
    return report.write(path)


def test_numbered_ranges_are_steps(tmp_path):
    path = with_steps(tmp_path / "run" / "report.sqlite")
    with NsightReader().open(path) as profile:
        tree = profile.call_tree
        paths = [tree.path(row) for row in range(len(tree))]
        assert "epoch/step/forward/cudaLaunchKernel/add" in paths
        assert not any("step 1" in each for each in paths)
        visits = profile.reduce("visits", Reduction.MAX).exclusive
        assert visits[paths.index("epoch/step")] == 6
        (row,) = (k for k, region in enumerate(tree.regions) if region.role == "step")
        assert tree.regions[row].name == "step"
        assert profile.metadata["steps"] == "6"
        spent = 1000 + 10 * np.arange(6)
        expected = spent.std() / spent.mean()
        assert float(profile.metadata["step scatter"]) == pytest.approx(expected, rel=1e-5)


def test_selected_steps_of_a_database_have_their_events_only(tmp_path):
    path = with_steps(tmp_path / "run" / "report.sqlite", processes=2, slow=True)
    with NsightReader().open(path) as whole:
        assert [each.code for each in whole.findings()].count("CPM188") == 1
        some = whole.with_steps(StepRange.of("4-"))
        assert some.metadata["steps"] == "2"
        tree = some.call_tree
        paths = [tree.path(row) for row in range(len(tree))]
        visits = some.reduce("visits", Reduction.MAX).exclusive
        assert visits[paths.index("step")] == 2
        kernels = some.reduce("visits on GPU streams", Reduction.MAX).total
        assert kernels == 2
        assert "epoch" not in paths
        assert "CPM189" in [each.code for each in some.findings()]
        with pytest.raises(InputError, match="no selected step") as error:
            whole.with_steps(StepRange.of("9-"))
    assert error.value.hint == "the trace has steps 0 to 5"


def test_a_database_without_steps_has_none_to_select(tmp_path):
    report = nw.Report()
    report.range("main", 0, 100)
    path = report.write(tmp_path / "run" / "report.sqlite")
    with NsightReader().open(path) as profile:
        assert "steps" not in profile.metadata
        with pytest.raises(InputError) as error:
            profile.with_steps(StepRange.of("1-"))
    assert error.value.hint == "omit --steps; the trace has no steps"


def ranks(path):
    with NsightReader().open(path) as profile:
        placement = profile.placement()
        return placement.ranks.tolist() if placement is not None else None


def environments(folder, *texts, processes=1):
    """Write one file with each environment, named by letters that are no ranks."""
    for k, text in enumerate(texts):
        report = nw.Report()
        for pid in range(100, 100 + processes):
            report.range("main", 0, 100, pid)
        report.environment(text)
        report.write(folder / f"report.{k}.sqlite")
    return folder


@cells(
    "text",
    [
        "HOME=/root\nSLURM_PROCID=3\nX=1",
        "A=1;PMI_RANK=3;B=2",
        "OMPI_COMM_WORLD_RANK=3 SLURM_PROCID=0",
        '{"PMIX_RANK": "3"}',
    ],
)
def test_the_environment_states_the_rank_of_the_only_process(tmp_path, text):
    path = environments(tmp_path / "run", text, "SLURM_PROCID=1")
    assert ranks(path) == [3, 1]


@cells(
    "text",
    ["", "MY_SLURM_PROCID=3", "SLURM_PROCID=x", "SLURM_PROCID=12345678901", "SLURM_PROCID=-1",
     "SLURM_PROCID=3.5"],
)  # fmt: skip
def test_an_environment_without_a_rank_leaves_that_of_the_file(tmp_path, text):
    assert ranks(environments(tmp_path / "run", text, text)) == [0, 1]


def test_one_rank_in_two_files_is_that_of_a_launcher(tmp_path):
    assert ranks(environments(tmp_path / "run", "PMI_RANK=5", "PMI_RANK=5")) == [0, 1]


def test_an_environment_says_nothing_of_several_processes(tmp_path):
    path = environments(tmp_path / "run", "SLURM_PROCID=7", processes=2)
    found = ranks(path / "report.0.sqlite")
    assert found is None or 7 not in found


def test_ranks_of_mpi_come_before_the_environment(tmp_path):
    report = nw.Report()
    report.range("main", 0, 100)
    report.environment("SLURM_PROCID=7")
    report.add("MPI_RANKS", globalPid=nw.global_pid(100), rank=2)
    assert ranks(report.write(tmp_path / "run" / "report.sqlite")) == [2]
