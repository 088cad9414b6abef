"""Counts of workers, parts of the run time, totals and models in tables made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.studies import loading
from cells import cells


def names(experiment):
    return [parameter.name for parameter in experiment.parameters]


def paths(experiment):
    return [experiment.tree.path(row) for row in range(len(experiment.tree))]


HYBRID = "mpi,omp,time\n1,1,100\n2,1,51\n4,1,27\n1,2,55\n2,2,28\n4,2,15\n"


@pytest.mark.parametrize(
    ("text", "parameters", "processes"),
    [
        ("MPI,threads,time\n1,4,100\n2,4,51\n4,4,27\n8,4,15\n", ["p"], [1, 2, 4, 8]),
        (HYBRID, ["p", "omp"], [1, 2, 4]),
        ("nodes,mpi,omp,time (s)\n1,4,2,9.5\n2,6,2,5.1\n4,9,2,2.8\n", ["nodes", "p"], [4, 6, 9]),
        ("threads,time,MPI\n1,100,1\n1,51,2\n2,55,1\n2,30,2\n", ["threads", "p"], [1, 2]),
        ("mpi,omp,time,comm\n1,4,100,0.5\n2,4,51,0.8\n4,4,27,1.1\n", ["p"], [1, 2, 4]),
    ],
)
def test_whole_numbers_of_mpi_beside_threads_or_nodes_count_processes(
    load, text, parameters, processes
):
    experiment = load("x.csv", text)
    assert names(experiment) == parameters
    assert experiment.points("p").tolist() == processes
    assert "<root>/mpi" not in [path.lower() for path in paths(experiment)]
    assert list(experiment.columns) == ["time"]


@pytest.mark.parametrize(
    "text",
    [
        "cores,time,compute,mpi\n24,180,170,3\n48,92,85,4\n96,49,42,6\n",
        "cores,time,mpi\n24,180,3\n48,92,4\n96,49,6\n",
        "cores,mpi,time\n24,3.5,180\n48,4.5,92\n96,6.5,49\n",
        "cores,mpi (s),time (s)\n24,3,180\n48,6,92\n96,12,49\n",
        "cores,mpi,time\n24,0,180\n48,1,92\n96,2,49\n",
    ],
)
def test_times_of_mpi_are_a_part_of_the_run_time(load, text):
    experiment = load("x.csv", text)
    assert names(experiment) == ["cores"]
    assert "<root>/mpi" in paths(experiment)


@pytest.mark.parametrize("title", ["mpi", "MPI", "ranks"])
def test_a_column_that_is_called_p_is_found_by_its_title(tmp_path, title):
    (tmp_path / "x.csv").write_text(HYBRID.replace("mpi", title))
    options = loading.ReadOptions(parameter_sources={"p": f"column:{title}"})
    experiment = loading.load([tmp_path / "x.csv"], loading.LoadOptions(options))
    assert experiment.points("p").tolist() == [1, 2, 4]


@cells(
    "text",
    [
        "p,time,ideal\n1,100.5,100.5\n2,51,50.25\n4,27,25.125\n",
        "p,ideal time (s),time (s)\n1,100,100.5\n2,50,51\n4,25,27\n",
        "p,Time (ideal),run time\n1,100,100.5\n2,50,51\n4,25,27\n",
        "callpath,p,expected (s),time (s)\n<root>,1,100,100.5\n<root>,2,50,51\n<root>,4,25,27\n",
        "x,linear,time\n1,100,100.5\n2,50,51\n4,25,27\n",
        "predicted,p,time,perfect speedup\n100,1,100.5,1\n50,2,51,2\n25,4,27,4\n",
    ],
)
def test_columns_of_models_are_neither_parts_nor_the_default_metric(tmp_path, text):
    (tmp_path / "table.csv").write_text(text)
    experiment = loading.load([tmp_path / "table.csv"])
    assert names(experiment) == ["p"]
    assert paths(experiment) == ["<root>"]
    (metric,) = experiment.columns
    assert experiment.values(metric).tolist() == [[100.5, 51, 27]]


def test_a_part_with_the_name_of_a_model_is_a_part(load):
    text = "p,total (s),linear solver (s),fit (s)\n1,100,20,90\n2,51,10,45\n4,27,5,20\n"
    assert paths(load("x.csv", text)) == ["<root>", "<root>/linear solver", "<root>/other"]


def test_parts_without_a_value_are_unknown_together_with_the_rest(load, value_of):
    text = "p,time,comp,comm\n1,100,90,2\n2,51,44,3\n4,27,21,4\n8,15,10,-\n"
    experiment = load("x.csv", text)
    other = [value_of(experiment, "time", "<root>/other", p=p) for p in (1, 2, 4, 8)]
    comm = [value_of(experiment, "time", "<root>/comm", p=p) for p in (1, 2, 4, 8)]
    np.testing.assert_equal(other, [8, 4, 2, np.nan])
    np.testing.assert_equal(comm, [2, 3, 4, np.nan])
    assert value_of(experiment, "time", "<root>/unknown", p=8) == 5
    assert experiment.columns["time"].total.tolist() == [100, 51, 27, 15]


@pytest.mark.parametrize("bad", ["0", "0.0", "-1", "inf", "nan"])
def test_a_run_time_that_is_not_positive_is_no_run(load, bad):
    experiment = load("x.csv", f"p,time,comm\n1,100,2\n2,51,3\n4,{bad},4\n8,15,5\n")
    assert experiment.points("p").tolist() == [1, 2, 8]
    assert paths(experiment) == ["<root>", "<root>/comm", "<root>/other"]
    found = [(finding.code, finding.message) for finding in experiment.findings]
    assert found == [("CPM101", "line 4: no value of time")]


def test_a_count_of_zero_is_a_value(load):
    experiment = load("x.csv", "p,visits\n1,3\n2,0\n4,5\n")
    assert experiment.values("visits").tolist() == [[3, 0, 5]]


def with_total(name, totals, title="time"):
    """Return a table with two call paths and a row that may be their total."""
    rows = [f"callpath,p,{title},visits"]
    for p, total in zip((1, 2, 4), totals, strict=True):
        rows += [f"solve,{p},{8 / p},5", f"{name},{p},{total},1", f"io,{p},1,3"]
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("name", ["total", "Sum", "SUMME", "gesamt", "overall", "all", "Whole"])
@pytest.mark.parametrize("title", ["time", "time (inc)"])
def test_the_total_of_all_others_is_their_caller(load, value_of, name, title):
    experiment = load("x.csv", with_total(name, (10, 5.5, 3.0), title))
    assert {*paths(experiment)} == {name, f"{name}/solve", f"{name}/io"}
    assert experiment.columns["time"].total.tolist() == [10, 5.5, 3]
    assert [value_of(experiment, "time", name, p=p) for p in (1, 2, 4)] == [1, 0.5, 0]
    assert value_of(experiment, "time", f"{name}/solve", p=2) == 4
    # Its number of visits is not that of the others.
    assert [value_of(experiment, "visits", name, p=p) for p in (1, 2, 4)] == [1, 1, 1]


def test_a_total_that_is_rounded_has_no_own_time(load, value_of):
    experiment = load("x.csv", with_total("total", (9, 4.98, 3)))
    assert value_of(experiment, "time", "total", p=2) == 0
    assert experiment.findings == ()


@pytest.mark.parametrize(
    ("name", "totals"), [("total", (10, 4.9, 3)), ("sum", (1, 1, 1)), ("main", (10, 5.5, 3))]
)
def test_a_row_that_is_no_total_is_an_ordinary_call_path(load, name, totals):
    experiment = load("x.csv", with_total(name, totals))
    assert {*paths(experiment)} == {name, "solve", "io"}


def test_a_total_is_the_caller_in_each_repetition(load, value_of):
    rows = ["region,p,time"]
    for p in (1, 2):
        for more in (0, 1):
            rows += [f"a,{p},{3 + more}", f"b,{p},2", f"total,{p},{6 + 2 * more}"]
    experiment = load("x.csv", "\n".join(rows) + "\n")
    assert [value_of(experiment, "time", "total", r, p=2) for r in (1, 2)] == [1, 2]
    assert experiment.columns["time"].total.tolist() == [6, 8, 6, 8]


def test_a_total_below_columns_of_scales_is_the_caller(load, value_of):
    text = "region,p=1,p=2,p=4\nsolve,8,4,2\nio,1,1,1\nTotal,10,5.5,3\n"
    experiment = load("x.csv", text)
    assert value_of(experiment, "time", "Total/io", p=4) == 1
    assert value_of(experiment, "time", "Total", p=1) == 1
