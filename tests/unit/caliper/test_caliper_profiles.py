"""Profiles from Caliper records: values, flavours, processes, parameters."""

from __future__ import annotations

import json
from contextlib import contextmanager

import numpy as np
import pytest

import caliper_writer as cw
from callpath_modeler.errors import InputError
from callpath_modeler.profile.schema import COMPUTED, MetricStatus, Reduction
from cpmodel_caliper import CaliperReader

EXCLUSIVE = {
    ("main",): 16.0,
    ("main", "solve"): 60.0,
    ("main", "solve", "MPI_Allreduce"): 20.0,
    ("main", "io"): 4.0,
}


@pytest.fixture
def opened(tmp_path):
    """Open a text as a separate profile."""

    @contextmanager
    def opened(text, name="small.cali"):
        path = tmp_path / name
        path.write_text(text, newline="")
        with CaliperReader().open_runs(path) as runs:
            yield runs[0].source

    return opened


def values(source, reduction=Reduction.MEAN, metric="time"):
    exclusive = source.reduce(metric, reduction).exclusive
    tree = source.call_tree
    return {tree.path(row): float(exclusive[row]) for row in range(len(tree))}


def written(paths, name, unit="sec", **told):
    writer = cw.Writer()
    for path, value in paths.items():
        writer.record(path, {name: value}, unit=unit)
    writer.globals(told)
    return writer.text()


def test_means_are_sums_divided_by_all_processes(opened):
    with opened(cw.summed()) as source:
        assert source.reductions == (Reduction.MEAN, Reduction.SUM)
        assert values(source)["main/io"] == pytest.approx(1.0)
        assert values(source, Reduction.SUM)["main/solve"] == pytest.approx(60.0)
        assert source.reduce("time", Reduction.SUM).total == pytest.approx(100.5)


@pytest.mark.parametrize("name", ["sum#sum#time.duration", "sum#scale#sum#time.duration.ns"])
def test_inclusive_and_exclusive_files_of_one_run_are_one_profile(opened, name):
    with opened(cw.summed()) as inclusive:
        expected = values(inclusive)
    paths = {(): 0.5, **EXCLUSIVE}
    with opened(written(paths, name, **{"mpi.world.size": 4})) as exclusive:
        assert values(exclusive) == pytest.approx(expected)


def test_what_happened_in_no_region_is_the_programs(opened):
    with opened(cw.summed()) as source:
        tree = source.call_tree
        assert tree.path(0) == "<program>"
        assert len(tree.roots) == 1
        assert values(source)["<program>"] == pytest.approx(0.125)


def test_a_caller_without_a_record_costs_nothing_itself(opened):
    paths = {("main", "solve"): 8.0, ("main", "io"): 4.0}
    name = "sum#inclusive#sum#time.duration"
    with opened(written(paths, name, **{"mpi.world.size": 4})) as source:
        assert values(source)["main"] == 0.0
        assert source.reduce("time", Reduction.SUM).total == pytest.approx(12.0)


def test_rounding_of_printed_digits_is_no_negative_cost(opened):
    paths = {("main",): "2.000000", ("main", "a"): "1.000001", ("main", "b"): "1.000000"}
    name = "sum#inclusive#sum#time.duration"
    with opened(written(paths, name, **{"mpi.world.size": 1})) as source:
        reduced = source.reduce("time", Reduction.SUM)
        assert reduced.exclusive.min() == 0.0
        assert reduced.exclusive.sum() == pytest.approx(reduced.total, rel=1e-12)
        assert source.findings() == []


def test_callees_above_their_caller_are_a_finding(opened):
    paths = {("main",): 2.0, ("main", "a"): 3.0}
    name = "sum#inclusive#sum#time.duration"
    with opened(written(paths, name, **{"mpi.world.size": 1})) as source:
        assert source.reduce("time", Reduction.SUM).exclusive.min() == 0.0
        assert [finding.code for finding in source.findings()] == ["CPM105"]


def test_values_of_ranks_can_be_reduced_in_every_way(opened):
    paths = {("main",): [1.0, 3.0], ("main", "f"): [0.0, 8.0]}
    with opened(cw.per_rank(paths)) as source:
        assert source.reductions == COMPUTED
        assert values(source, Reduction.MAX)["main/f"] == 8.0
        assert values(source, Reduction.MIN)["main/f"] == 0.0
        assert values(source, Reduction.IMBALANCE)["main"] == pytest.approx(1.5)


def test_inclusive_values_of_ranks_are_taken_apart_rank_by_rank(opened):
    paths = {("main",): [10.0, 12.0], ("main", "f"): [4.0, 8.0]}
    with opened(cw.per_rank(paths, "inclusive#sum#time.duration")) as source:
        assert values(source, Reduction.MAX)["main"] == 6.0
        assert source.reduce("time", Reduction.MAX).total == 12.0


def test_ranks_without_a_record_are_said_and_left_out_of_the_mean(opened):
    text = cw.per_rank({("main",): [1.0, 3.0]}).replace("data=2", "data=64")
    with opened(text) as source:
        assert source.extent.processes == 64
        assert source.reductions == (Reduction.MEAN,)
        assert values(source)["main"] == 2.0
        assert [finding.code for finding in source.findings()] == ["CPM132"]


def test_a_metric_that_is_no_sum_over_processes_is_refused_beside_those_that_are(opened):
    writer = cw.Writer()
    writer.record(("main",), {"sum#sum#time.duration": 8.0, "sum#region.count": 2})
    writer.globals({"mpi.world.size": 4})
    with opened(writer.text()) as source:
        status = {declared.metric.name: declared.status for declared in source.metrics}
        assert status == {"time": MetricStatus.DATA, "region.count": MetricStatus.UNSUPPORTED}


def test_slices_of_time_are_not_counted_again(opened):
    writer = cw.Writer()
    channel = writer.attribute("spot.channel", cw.STRING, 64)
    value = writer.attribute("sum#sum#time.duration", cw.DOUBLE, 65, unit="sec")
    main = writer.path(("main",))
    for name, seconds in (("regionprofile", 8), ("timeseries", 3), ("timeseries", 5)):
        number = writer.node(channel, name)
        writer.lines.append(f"__rec=ctx,ref={main}={number},attr={value},data={seconds}")
    writer.globals({"mpi.world.size": 2})
    with opened(writer.text()) as source:
        assert values(source)["main"] == 4.0


def test_records_of_one_call_path_add_up(opened):
    writer = cw.Writer()
    for _ in range(3):
        writer.record(("main",), {"sum#time.duration": 2.0})
    with opened(writer.text()) as source:
        assert values(source)["main"] == 6.0


@pytest.mark.parametrize("name", ["a,b", "x=y", r"back\slash", "f(int, char**)", "a=b,c=d"])
def test_names_come_in_full_whatever_signs_they_have(opened, name):
    with opened(written({("main", name): 1.0}, "sum#time.duration")) as source:
        assert source.call_tree.name(2) == name


def test_a_name_of_two_lines_is_written_in_one(opened):
    with opened(written({("a\nb",): 1.0}, "sum#time.duration")) as source:
        assert source.call_tree.name(1) == r"a\nb"


@pytest.mark.parametrize(
    ("name", "unit", "seconds"),
    [
        ("sum#time.duration", "usec", 2e-6),
        ("sum#time.duration.ns", "", 2e-9),
        ("sum#scale#time.duration.ns", "", 2.0),
        ("inclusive#scale#sum#time.duration.ns", "sec", 2.0),
    ],
)
def test_times_are_seconds(opened, name, unit, seconds):
    with opened(written({("main",): 2.0}, name, unit=unit)) as source:
        assert values(source)["main"] == pytest.approx(seconds)
        assert source.metrics[0].metric.unit == "s"


@pytest.mark.parametrize(
    ("name", "unit", "words"),
    [
        ("avg#inclusive#sum#time.duration", "sec", "only an average over processes with"),
        ("sum#time.duration", "", "does not state the unit of its times"),
    ],
)
def test_a_metric_that_would_mislead_is_refused_with_the_reason(opened, name, unit, words):
    writer = cw.Writer()
    writer.record(("main",), {name: 2.0}, unit=unit)
    writer.record(("main",), {"sum#region.count": 5})
    with opened(writer.text()) as source:
        by_name = {declared.metric.name: declared for declared in source.metrics}
        assert by_name["time"].status is MetricStatus.UNSUPPORTED
        assert words in by_name["time"].note
        assert values(source, metric="region.count")["main"] == 5.0


def test_minima_maxima_and_variances_are_no_metrics(opened):
    with opened(cw.summed()) as source:
        assert [declared.metric.name for declared in source.metrics] == ["time"]


def test_metadata_tell_processes_threads_nodes_program_and_problem(opened, tmp_path):
    told = {"threads": 5, "numhosts": 2, "problem_size": 30, "libraries": "[a,b]"}
    with opened(cw.summed(**told)) as source:
        extent = source.extent
        assert (extent.processes, extent.threads, extent.nodes) == (4, 5, 2)
        assert source.metadata["program"] == "app"
        assert source.metadata["creator"] == "Caliper 2.10.0"
        assert "libraries" not in source.metadata
    with CaliperReader().open_runs(tmp_path / "small.cali") as runs:
        assert runs[0].parameters == {"problem_size": 30.0}


def test_adiak_tells_the_processes_where_caliper_does_not(opened):
    name = "sum#inclusive#sum#time.duration"
    with opened(written({("main",): 8.0}, name, jobsize=16)) as source:
        assert source.extent.processes == 16
        assert values(source)["main"] == 0.5


def test_a_deep_call_path_is_no_deep_recursion(opened):
    depth = 50_000
    writer = cw.Writer()
    region = writer.attribute("region", cw.STRING, 268)
    name = "sum#inclusive#sum#time.duration"
    value = writer.attribute(name, cw.DOUBLE, 65, unit="sec")
    above = -1
    for k in range(depth):
        above = writer.node(region, f"f{k % 7}", above)
        writer.lines.append(f"__rec=ctx,ref={above},attr={value},data={depth - k}")
    writer.globals({"mpi.world.size": 1})
    with opened(writer.text()) as source:
        reduced = source.reduce("time", Reduction.SUM)
        assert len(reduced.exclusive) == depth + 1
        assert reduced.total == depth
        assert reduced.exclusive.sum() == depth


# JSON.


def split(data, columns, nodes, described=None, **told):
    described = described or [{"is_value": title != "path"} for title in columns]
    document = {"data": data, "columns": columns, "column_metadata": described, "nodes": nodes}
    return json.dumps(document | told)


NODES = [{"label": "main", "column": "path"}, {"label": "f", "column": "path", "parent": 0}]


def test_a_column_that_a_report_has_renamed_is_known_by_its_words(opened):
    described = [{"is_value": True, "attribute.unit": "sec"}, {"is_value": False}]
    for title, of_main in (("time", 5.0), ("time (inc)", 3.0)):
        text = split([[5.0, 0], [2.0, 1]], [title, "path"], NODES, described)
        with opened(text, "small.json") as source:
            assert values(source)["main"] == of_main


def test_globals_beside_the_records_are_read(opened):
    records = [{"path": "main/f", "sum#inclusive#sum#time.duration.ns": 8e9}]
    document = {"records": records, "globals": {"mpi.world.size": 4, "problem_size": "30"}}
    with opened(json.dumps(document), "small.json") as source:
        assert values(source)["main/f"] == 2.0
        assert source.parameters == {"problem_size": 30.0}


def test_json_and_cali_of_one_run_are_one_profile(opened):
    with opened(cw.summed()) as source:
        expected = values(source)
    places = {(): None, ("main",): 0, ("main", "solve"): 1}
    places |= {("main", "solve", "MPI_Allreduce"): 2, ("main", "io"): 3}
    nodes = [{"label": path[-1], "column": "path"} for path in list(places)[1:]]
    for k, above in ((1, 0), (2, 1), (3, 0)):
        nodes[k]["parent"] = above
    name = "sum#inclusive#sum#time.duration"
    data = [[cw.INCLUSIVE[path], at] for path, at in places.items()]
    described = [{"is_value": True, "attribute.unit": "sec"}, {"is_value": False}]
    text = split(data, [name, "path"], nodes, described, **{"mpi.world.size": "4"})
    with opened(text, "small.json") as source:
        assert values(source) == pytest.approx(expected)


# Errors.


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__rec=node,id=12,attr=10,data=64,parent=3", "line 1: the line is cut off"),
        ("hello\n", "line 1: not a Caliper record"),
        ("__rec=node,attr=10,data=1\n", "line 1: the record has no 'id'"),
        ("__rec=node,id=12,attr=10,data=1,parent=99\n", "line 1: node 99 is not defined"),
        ("__rec=node,id=12,attr=10,data=1,parent=12\n", "line 1: node 12 is not defined"),
        ("\n__rec=ctx,attr=77,data=1\n", "line 2: attribute 77 is not defined"),
        ("__rec=ctx,attr=8=9,data=1\n", "line 1: 2 attributes, but 1 values"),
        ("__rec=node,id=x,attr=10,data=1\n", "line 1: not a Caliper record"),
        ("__rec=c\0x,attr=8,data=1\n", "line 1: not a Caliper record"),
        ("", "the file has no times or counts"),
    ],
)
def test_a_broken_file_is_refused_with_the_line(opened, text, words):
    with pytest.raises(InputError) as caught, opened(text):
        pass
    assert words in caught.value.message
    assert "small.cali" in caught.value.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"data": [[1,\n 2', "line 2: not JSON"),
        ('{"data": [[1]]}', "the list 'columns' is missing"),
        (split([[1, 2]], ["path"], []), "row 1 of the data needs one value per column"),
        (split([[7]], ["path"], NODES), "row 1 refers to node 7"),
        (split([], [], [{"label": "f", "parent": 0}]), "row 0 refers to node 0"),
        ('[{"region": "a", "loop": "b", "count": 1}]', "write json-split"),
        ("[1]", "record 1 is not an object"),
        ("3", "neither a table nor a list"),
        ("[" * 100_000, "not JSON"),
        ('[{"path": "a", "sum#count": 1' + "0" * 400 + "}]", "is not a finite number"),
    ],
)
def test_broken_json_is_refused_with_the_place(opened, text, words):
    with pytest.raises(InputError, match=r"small\.json: ") as caught, opened(text, "small.json"):
        pass
    assert words in caught.value.message


def test_sums_without_the_number_of_processes_are_refused(opened):
    text = "".join(line + "\n" for line in cw.summed().splitlines()[:-1])
    with pytest.raises(InputError, match="sums over an unknown number of processes"), opened(text):
        pass


def test_values_that_are_no_numbers_count_as_missing(opened):
    text = cw.per_rank({("main",): [1.0, float("inf")], ("main", "f"): [2.0, 4.0]})
    with opened(text) as source:
        assert np.isfinite(list(values(source).values())).all()
        assert [finding.code for finding in source.findings()] == ["CPM117"]


WAITING = {("solve",): (1.0, 0.5), ("solve", "MPI_Wait"): (2.0, 0.0)}
"""Time of two threads in regions; the second one also waits for 2.5 s."""


def with_waits(name):
    writer = cw.Writer()
    for path, of_threads in WAITING.items():
        for thread, value in enumerate(of_threads):
            writer.record(path, {"mpi.rank": 0, "omp.thread.id": thread, name: value})
    wait = {"mpi.rank": 0, "omp.thread.id": 1, "omp.sync": "barrier", name: 2.5}
    writer.record(("solve",), wait)
    writer.globals({"mpi.world.size": 1})
    return writer.text()


def test_waiting_in_openmp_is_a_call_path_of_its_own(opened):
    with opened(with_waits("sum#sum#time.duration")) as profile:
        tree = profile.call_tree
        row = {tree.path(k): k for k in range(len(tree))}
        assert tree.regions[tree.region[row["solve/!$omp barrier"]]].paradigm == "openmp"
        values = profile.reduce("time of all threads", Reduction.SUM).exclusive
        assert values[row["solve/!$omp barrier"]] == 2.5
        assert values[row["solve"]] == 1.5
        time = profile.reduce("time", Reduction.SUM)
        assert time.exclusive[row["solve"]] == 1.0
        assert time.total == time.run_time == 3.0


def test_inclusive_values_keep_waiting_in_its_region(opened):
    with opened(with_waits("inclusive#sum#time.duration")) as profile:
        assert "solve/!$omp barrier" not in profile.call_tree.paths(range(len(profile.call_tree)))
