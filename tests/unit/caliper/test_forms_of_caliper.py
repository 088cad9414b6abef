"""Variants of Caliper files: no MPI, GPUs, samples, threads, Caliper 1."""

from __future__ import annotations

import json

import numpy as np
import pytest

import caliper_writer as cw
from callpath_modeler.errors import InputError
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.base import Match
from callpath_modeler.studies.loading import load
from cpmodel_caliper import CaliperReader

SPOT = ("min", "max", "avg", "sum")
INCLUSIVE = "inclusive#sum#time.duration"
FUNCTION, MODULE = "source.function#callpath.address", "module#cali.sampler.pc"


@pytest.fixture
def opened(tmp_path):
    """Open the text of a profile."""

    def opened(text, name="small.cali"):
        path = tmp_path / name
        path.write_text(text)
        with CaliperReader().open_runs(path) as runs:
            return runs[0].source

    return opened


def values(source, metric="time", reduction=Reduction.MEAN):
    found = source.reduce(metric, reduction).exclusive
    return {source.call_tree.path(row): value for row, value in enumerate(found)}


def spot(paths, processes=1, **told):
    """Return a profile of minima, maxima, averages and sums over processes."""
    writer = cw.Writer()
    for names, value in paths.items():
        total = {"sum": value * processes}
        writer.record(names, {f"{op}#{INCLUSIVE}": f"{total.get(op, value):.6f}" for op in SPOT})
    writer.globals({"cali.caliper.version": "2.9.0", **told})
    return writer.text()


RAJA = {(): 77.2, ("RAJAPerf",): 3.0, ("RAJAPerf", "triad"): 1.0, ("RAJAPerf", "sort"): 1.5}


def test_sums_that_equal_averages_minima_and_maxima_are_of_one_process(opened):
    source = opened(spot(RAJA))
    assert source.extent.processes == 1
    assert values(source) == pytest.approx(
        {"<program>": 77.2, "RAJAPerf": 0.5, "RAJAPerf/triad": 1.0,
         "RAJAPerf/sort": 1.5}
    )  # fmt: skip
    assert not source.findings()


def test_sums_divided_by_averages_count_the_processes_with_a_finding(opened):
    source = opened(spot(RAJA, processes=4))
    assert source.extent.processes == 4
    assert values(source)["RAJAPerf/sort"] == pytest.approx(1.5)
    assert [finding.code for finding in source.findings()] == ["CPM161"]


def test_the_stated_number_of_processes_counts_before_averages(opened):
    source = opened(spot(RAJA, processes=4, jobsize=8))
    assert source.extent.processes == 8
    assert not source.findings()


@pytest.mark.parametrize(
    ("old", "new"), [("max#", "maximum#"), ("data=0.500000=0.5", "data=0.500000=0.7")]
)
def test_sums_of_several_processes_are_not_taken_for_one(opened, old, new):
    text = spot({("main",): 0.5}).replace(old, new)
    if old == "max#":
        assert opened(text).extent.processes == 1
        return
    with pytest.raises(InputError, match="sums over an unknown number of processes"):
        opened(text)


def test_averages_of_a_file_that_is_cut_short_tell_nothing(opened):
    text = "".join(line + "\n" for line in spot(RAJA).splitlines()[:-1])
    with pytest.raises(InputError, match="sums over an unknown number of processes"):
        opened(text)


@pytest.mark.parametrize("unit", ["sec", ""])
@pytest.mark.parametrize("name", ["cupti.activity.duration", "rocm.activity.duration", "t.gpu.c"])
@pytest.mark.parametrize("word", ["iscale", "inclusive_scale"])
def test_gpu_times_are_inclusive_sums_over_processes(opened, name, unit, word):
    writer = cw.Writer()
    attribute = f"sum#{word}#{name}"
    for names, value in ((("main",), 12), (("main", "kernel_a"), 12), (("main", "io"), 0)):
        writer.record(names, {attribute: value}, unit=unit)
        writer.record(names, {f"sum#{INCLUSIVE}": 40 if len(names) == 1 else 10})
    writer.globals({"mpi.world.size": 2})
    source = opened(writer.text())
    assert [declared.metric.name for declared in source.metrics] == ["time", name]
    found = values(source, name)
    assert found["main/kernel_a"] == 6.0
    assert found["main"] == 0.0


def test_gpu_times_without_scale_are_nanoseconds(opened):
    writer = cw.Writer()
    writer.record(("main",), {"sum#sum#cupti.activity.duration": 8e9}, unit="")
    writer.globals({"mpi.world.size": 2})
    assert values(opened(writer.text()), "cupti.activity.duration")["main"] == 4.0


STACKS = {("main", "solve"): ("app", 100), ("main", "solve", "exp"): ("libm.so", 20)}


def samples_as_json(*, regions=()):
    nodes = [
        {"column": MODULE, "label": "app"},
        {"column": MODULE, "label": "libm.so"},
        {"column": FUNCTION, "label": "main"},
        {"column": FUNCTION, "label": "solve", "parent": 2},
        {"column": FUNCTION, "label": "exp", "parent": 3},
        {"column": "path", "label": "cycle"},
    ]
    columns = [MODULE, "count", FUNCTION]
    rows = [[0, 100, 3], [1, 20, 4]]
    if regions:
        columns.append("path")
        rows = [[*row, of] for row, of in zip(rows, regions, strict=True)]
        rows.append([None, 7, None, 5])
    metadata = [{"is_value": column == "count"} for column in columns]
    return json.dumps(
        {"data": rows, "columns": columns, "column_metadata": metadata, "nodes": nodes}
    )


def samples_as_cali():
    writer = cw.Writer()
    count = writer.attribute("count", cw.UINT, 85)
    function = writer.attribute(FUNCTION, cw.STRING, 64)
    module = writer.attribute(MODULE, cw.STRING, 64)
    for names, (library, samples) in STACKS.items():
        above = writer.node(module, library)
        for name in names:
            above = writer.node(function, name, above)
        writer.lines.append(f"__rec=ctx,ref={above},attr={count},data={samples}")
    writer.globals({"mpi.world.size": 1})
    return writer.text()


@pytest.mark.parametrize("name", ["x.json", "x.cali"])
def test_samples_are_along_the_functions_of_the_call_stack(opened, name):
    text = samples_as_json() if name == "x.json" else samples_as_cali()
    assert values(opened(text, name), "count") == {
        "<program>": 0, "main": 0, "main/solve": 100,
        "main/solve/exp": 20,
    }  # fmt: skip


@pytest.mark.parametrize("first", ["columns", "column_metadata", "nodes"])
def test_json_is_recognised_whatever_the_order_of_its_keys(tmp_path, first):
    document = json.loads(samples_as_json())
    # This is more than the first block that a reader examines.
    document["nodes"] += [{"column": MODULE, "label": "x" * 1000}] * 100
    path = tmp_path / "x.json"
    path.write_text(json.dumps({first: document.pop(first), **document}))
    assert CaliperReader().match(path) is Match.CONTENT


def test_metadata_may_stand_before_the_records(opened, tmp_path):
    record = {"path": "main", "mpi.rank": 0, "sum#time.duration.ns": 5e9}
    source = opened(json.dumps({"globals": {"jobsize": 1}, "records": [record]}), "x.json")
    assert values(source)["main"] == 5.0
    assert CaliperReader().match(tmp_path / "x.json") is Match.CONTENT


def test_other_json_with_nodes_is_not_taken_for_caliper(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"nodes": [1], "edges": [2]}))
    assert CaliperReader().match(path) is Match.NO


def test_what_has_no_call_stack_is_along_its_regions(opened):
    found = values(opened(samples_as_json(regions=(5, None)), "x.json"), "count")
    assert found["cycle"] == 7
    assert found["main/solve"] == 100


def test_without_call_stacks_functions_come_before_modules(opened):
    flat = "source.function#cali.sampler.pc"
    document = {
        "data": [[0, 3, 1]],
        "columns": [MODULE, "count", flat],
        "column_metadata": [{"is_value": False}, {"is_value": True}, {"is_value": False}],
        "nodes": [{"column": MODULE, "label": "app"}, {"column": flat, "label": "solve"}],
    }
    assert "solve" in values(opened(json.dumps(document), "x.json"), "count")


@pytest.mark.parametrize("label", ["omp.thread.id", "pthread.id"])
def test_times_are_those_of_the_slowest_thread_and_counts_are_added(opened, label):
    writer = cw.Writer()
    rank = writer.attribute("mpi.rank", cw.INT, 65)
    thread = writer.attribute(label, cw.INT, 65)
    time = writer.attribute("sum#time.duration", cw.DOUBLE, 65, unit="sec")
    calls = writer.attribute("count", cw.UINT, 85)
    main = writer.path(("main",))
    measured = {(0, 0): (3.0, 1), (0, 1): (5.0, 2), (1, 0): (2.0, 4), (1, 1): (1.0, 8)}
    writer.lines += [
        f"__rec=ctx,ref={main},attr={rank}={thread}={time}={calls},data={r}={t}={value}={n}"
        for (r, t), (value, n) in measured.items()
    ]
    # Records outside parallel regions have no thread, so they belong to the first one.
    writer.lines.append(f"__rec=ctx,ref={main},attr={rank}={time},data=0=1.0")
    writer.globals({"mpi.world.size": 2})
    source = opened(writer.text())
    assert (source.extent.processes, source.extent.threads) == (2, 2)
    assert values(source, "time", Reduction.MAX)["main"] == 5.0
    assert values(source)["main"] == (5.0 + 2.0) / 2
    assert values(source, "count")["main"] == (3 + 12) / 2
    found = source.reduce("time", Reduction.MAX)
    assert (found.total, found.run_time) == (5.0, 5.0)


def test_threads_are_told_apart_in_json_as_well(opened):
    records = [
        {"path": "main", "omp.thread.id": t, "sum#time.duration.ns": 1e9 * (t + 1)}
        for t in (0, 1, 2)
    ]
    source = opened(json.dumps(records), "x.json")
    assert source.extent.threads == 3
    assert values(source)["main"] == 3.0


def caliper_1():
    """Return a trace of events as Caliper 1 wrote it: with basic nodes, without nesting."""
    kinds = ("usr", "int", "uint", "string", "addr", "double", "bool", "type")
    lines = [f"__rec=node,id={k},attr=9,data={kind}" for k, kind in enumerate(kinds)]
    basic = {8: ("name", 3), 9: ("type", 7), 10: ("prop", 1)}
    lines += [
        f"__rec=node,id={k},attr=8,data=cali.attribute.{name},parent={above}"
        for k, (name, above) in basic.items()
    ]
    lines += [
        "__rec=node,id=13,attr=10,data=12,parent=3",
        "__rec=node,id=14,attr=8,data=cali.caliper.version,parent=13",
        "__rec=node,id=15,attr=14,data=1.5.dev",
        "__rec=node,id=21,attr=10,data=20,parent=3",
        "__rec=node,id=22,attr=8,data=time.unit,parent=21",
        "__rec=node,id=32,attr=22,data=usec,parent=2",
        "__rec=node,id=35,attr=10,data=85,parent=32",
        "__rec=node,id=37,attr=8,data=time.inclusive.duration,parent=35",
        "__rec=node,id=38,attr=8,data=phase,parent=21",
        "__rec=node,id=23,attr=10,data=84,parent=3",
        "__rec=node,id=39,attr=8,data=event.begin#phase,parent=23",
        "__rec=node,id=44,attr=39,data=body",
        "__rec=node,id=51,attr=38,data=body",
        "__rec=ctx,ref=44=15",
        "__rec=node,id=56,attr=38,data=loop,parent=51",
        "__rec=ctx,ref=44=56=15,attr=37,data=300",
        "__rec=ctx,ref=56=15,attr=37,data=200",
        "__rec=ctx,ref=51=15,attr=37,data=1800",
    ]
    return "\n".join(lines) + "\n"


def test_files_of_caliper_1_are_read(opened):
    source = opened(caliper_1())
    assert values(source) == pytest.approx({"<program>": 0, "body": 1.3e-3, "body/loop": 5e-4})


@pytest.fixture
def reported(shared_data):
    folder = shared_data / "reports"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data/reports")
    return folder


def test_the_reported_profiles_without_mpi_are_of_one_process(reported):
    experiment = load(reported / "b05_caliper_spot_without_mpi")
    assert [run.extent.processes for run in experiment.runs] == [1, 1, 1, 1]
    assert [parameter.name for parameter in experiment.parameters] == ["n"]
    row = [experiment.tree.path(k) for k in range(len(experiment.tree))].index("bench/sort")
    assert experiment.values("time")[row, 0] == 1.5


def test_the_reported_gpu_times_are_read(reported):
    folder = reported / "b08_caliper_iscale_gpu_time"
    for p in (2, 32):
        with CaliperReader().open_runs(folder / f"app.p{p}.cali") as runs:
            found = values(runs[0].source, "cupti.activity.duration")
            assert found["main/kernel_a"] == 6.0
            assert found["main"] == 0.0


@pytest.mark.parametrize("kind", ["json", "cali"])
def test_the_reported_samples_are_along_functions(reported, kind):
    folder = reported / "b12_caliper_json_sampling_takes_modules_for_call_paths"
    with CaliperReader().open_runs(folder / kind / f"app.p2.{kind}") as runs:
        found = values(runs[0].source, "count")
    above = "_start/main" if kind == "json" else "main"
    assert found[f"{above}/solve"] == 100
    assert found[f"{above}/solve/exp"] == 20
    assert np.isclose(sum(found.values()), 150 if kind == "json" else 120)
