"""Tables of many layouts, opened without options."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import InputError
from callpath_modeler.studies import loading

LONG = """callpath,p,metric,value
main,4,time,1.0
main/solve,4,time,2.5
main,4,visits,1
main/solve,4,visits,10
main,8,time,1.0
main/solve,8,time,5.0
main,8,visits,1
main/solve,8,visits,10
"""
WIDE = """callpath,p,time,visits
main,4,1.0,1
main/solve,4,2.5,10
main,8,1.0,1
main/solve,8,5.0,10
"""


def json_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_long_and_wide_tables_give_the_same_experiment(load):
    long, wide = load("a.csv", LONG), load("b.csv", WIDE)
    for experiment in (long, wide):
        assert list(experiment.columns) == ["time", "visits"]
        assert experiment.points("p").tolist() == [4, 8]
        assert [run.extent.processes for run in experiment.runs] == [4, 8]
        assert experiment.findings == ()
    np.testing.assert_array_equal(long.values("time"), wide.values("time"))
    assert long.values("time").tolist() == [[1, 1], [2.5, 5]]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", LONG.replace(",", "\t")),
        ("a.csv", LONG.replace(",", ";")),
        ("a.csv", LONG.replace("\n", "\r\n")),
        ("a.csv", "\ufeff" + LONG),
        ("a.csv", LONG.encode("utf-16")),
        ("a.csv", "# measured on Monday\n\n" + LONG),
        ("a.csv.gz", gzip.compress(LONG.encode())),
        ("a.csv", LONG.replace("main/solve", "main->solve")),
        ("a.csv", LONG.replace("main/solve", "main;solve")),
        ("a.csv", LONG.replace("callpath", "Call Path").replace("value", "value[s]")),
        ("a.csv", LONG.replace("value", "seconds measured")),
        ("a.csv", LONG.replace("callpath,p", "region,ranks")),
        ("a.csv", WIDE.replace("time", "time[s]")),
    ],
)
def test_spelling_does_not_matter(load, name, content):
    experiment = load(name, content)
    assert experiment.values("time").tolist() == [[1, 1], [2.5, 5]]
    assert [experiment.tree.path(row) for row in range(2)] == ["main", "main/solve"]
    assert experiment.points("p").tolist() == [4, 8]


def test_json_lines_may_hold_parameters_together_or_flat(load, value_of):
    together = [
        {"params": {"p": p, "n": 9}, "callpath": "main->f", "metric": "time", "value": 2 * p}
        for p in (2, 4)
    ]
    flat = [{"p": p, "callpath": ["main", "f"], "time": 2 * p} for p in (2, 4)]
    for name, rows in (("a.jsonl", together), ("b.jsonl", flat)):
        assert value_of(load(name, json_lines(rows)), "time", "main/f", p=4) == 8


def test_call_paths_as_lists_and_as_text_do_not_mix(load):
    rows = [{"p": 2, "n": n, "callpath": path, "v": 1} for n in (1, 2) for path in (["a"], "a")]
    with pytest.raises(InputError, match="line 2: callpath: not a list of names"):
        load("a.jsonl", json_lines(rows))


def test_json_lines_of_extrap_need_neither_call_path_nor_metric(load):
    rows = [{"params": {"x": x, "y": 1}, "value": x**2} for x in (1, 2, 3)]
    experiment = load("a.jsonl", json_lines(rows))
    assert experiment.tree.path(0) == "<root>"
    assert experiment.values("value").tolist() == [[1, 4, 9]]


def test_rows_of_one_setting_are_repetitions_in_order(load):
    rows = [
        {"params": {"p": p}, "callpath": path, "metric": "time", "value": 10 * p + r}
        for p in (2, 4)
        for r in (1, 2, 3)
        for path in ("main", "main->f")
    ]
    experiment = load("a.jsonl", json_lines(rows))
    assert [run.repetition for run in experiment.runs] == [1, 2, 3, 1, 2, 3]
    assert experiment.values("time")[1].tolist() == [21, 22, 23, 41, 42, 43]


def test_a_column_of_repetitions_is_heeded(load):
    text = "callpath,p,run,time\nmain,2,7,1\nmain,2,3,2\nmain,4,1,5\n"
    assert load("a.csv", text).values("time").tolist() == [[2, 1, 5]]


def test_few_rows_of_one_call_path_are_siblings_of_one_name_and_are_added(load):
    text = "callpath,p,time\nmain,2,1\nmain/f,2,2\nmain/f,2,3\nmain/g,2,4\n"
    experiment = load("a.csv", text)
    assert experiment.values("time").tolist() == [[1], [5], [4]]
    assert [f.code for f in experiment.findings] == ["CPM112"]


def test_inclusive_values_become_exclusive(load):
    text = "callpath,p,time (inc)\nmain,2,10\nmain/f,2,7\nmain/f/MPI_Send,2,3\nmain/g,2,1\n"
    experiment = load("a.csv", text)
    assert experiment.values("time").tolist() == [[2], [4], [3], [1]]
    assert experiment.columns["time"].total.tolist() == [10]


def test_where_both_are_there_the_exclusive_values_count(load):
    text = "callpath,p,time_inc_mean,time_excl_mean\nmain,2,10,2.5\nmain/f,2,7,7\n"
    experiment = load("a.csv", text)
    assert list(experiment.columns) == ["time_mean"]
    assert experiment.values("time_mean").tolist() == [[2.5], [7]]
    assert experiment.columns["time_mean"].total.tolist() == [10]


def test_a_callee_without_a_caller_is_taken_from_the_nearest_one_that_is_there(load):
    text = "callpath,p,time (inc)\nmain,2,10\nmain/f/g,2,7\nmain,4,9\nmain/f,4,8\nmain/f/g,4,7\n"
    experiment = load("a.csv", text)
    np.testing.assert_array_equal(experiment.values("time"), [[3, 1], [np.nan, 1], [7, 7]])


def test_callees_that_cost_more_than_their_caller_are_a_finding(load):
    text = "callpath,p,time (inc)\nmain,2,10\nmain/f,2,11\n"
    experiment = load("a.csv", text)
    assert experiment.values("time").tolist() == [[0], [11]]
    assert [(f.code, f.message) for f in experiment.findings] == [("CPM105", "time, down to -1")]


def test_no_exclusive_values_are_made_of_inclusive_maxima(load):
    text = "callpath,p,time_inc_max\nmain,2,10\nmain/f,2,11\n"
    experiment = load("a.csv", text)
    assert experiment.values("time_inc_max").tolist() == [[10], [11]]
    assert not experiment.metric("time_inc_max").additive
    assert experiment.findings == ()


def test_units_become_base_units(load):
    text = "callpath,p,latency_us,time[ms],bytes_sent\nmain,2,10,20,30\n"
    experiment = load("a.csv", text)
    units = {name: values.metric.unit for name, values in experiment.columns.items()}
    assert units == {"latency": "s", "time": "s", "bytes_sent": "B"}
    found = [float(values.exclusive[0, 0]) for values in experiment.columns.values()]
    assert found == pytest.approx([10e-6, 0.02, 30])


def test_a_column_of_units_is_heeded_even_if_it_mixes_powers(load):
    text = "callpath,p,metric,value,unit\nmain,2,t,10,ms\nmain,4,t,1,s\n"
    assert load("a.csv", text).values("t").tolist() == [[0.01, 1.0]]


def test_texts_name_the_call_path_where_no_column_is_called_so(load, value_of):
    text = "library,call,Ranks,N,mean,sd,note\n"
    for k, p in enumerate((32, 64, 128)):
        for j, call in enumerate(("MPI_Bcast", "MPI_Reduce", "MPI_Gather")):
            text += f"A,{call},{p},{1600 + 7 * j + k},{p + j},0.5,x{j}\n"
    experiment = load("a.csv", text)
    assert value_of(experiment, "mean", "A/MPI_Reduce", p=64) == 65
    assert [p.name for p in experiment.parameters] == ["p"]
    assert "N" in experiment.columns
    assert not experiment.metric("sd").additive
    found = [(f.code, f.message) for f in experiment.findings]
    assert found == [("CPM125", "note"), ("CPM165", "library, call")]


def test_words_for_processes_beside_their_number_are_left_out(load):
    text = "callpath,p,ranks,time\nmain,8,node1,1\nmain,16,node[1-2],2\n"
    experiment = load("a.csv", text)
    assert [p.values for p in experiment.parameters] == [(8, 16)]
    assert [(f.code, f.message) for f in experiment.findings] == [("CPM125", "ranks")]


def test_numbers_before_the_values_are_parameters_if_each_setting_has_the_call_paths(load):
    rows = [f"{path},{p},{n},{p * n}" for p in (2, 4) for n in (10, 20) for path in ("a", "b")]
    experiment = load("a.csv", "callpath,p,cells,time\n" + "\n".join(rows))
    assert [p.name for p in experiment.parameters] == ["p", "cells"]


def test_parameters_may_stand_behind_the_values(load):
    rows = [f"{path},{p * n},{n},{p}" for p in (2, 4) for n in (10, 20) for path in ("a", "b")]
    experiment = load("a.csv", "callpath,time,grid [cells],p\n" + "\n".join(rows))
    assert sorted(p.name for p in experiment.parameters) == ["grid [cells]", "p"]
    assert list(experiment.columns) == ["time"]


def test_unknown_numbers_that_differ_in_every_row_are_values(load):
    rows = [f"{path},{p},{p},{7 * p + k}" for p in (2, 4, 8) for k, path in enumerate("abc")]
    experiment = load("a.csv", "callpath,p,time,L2_TCM\n" + "\n".join(rows))
    assert list(experiment.columns) == ["time", "L2_TCM"]


def test_a_column_of_run_names_tells_parameters_and_repetitions(load):
    text = "file,n_locations,callpath,time\n"
    for p, size in ((8, 30), (27, 30), (27, 40)):
        text += f"runs/app.p{p}.size{size}.r1/profile.cubex,{p},main,{p * size}\n"
    experiment = load("a.csv", text)
    assert [p.name for p in experiment.parameters] == ["p", "size"]
    assert experiment.values("time").tolist() == [[240, 810, 1080]]


def test_what_has_no_value_did_not_occur(load):
    text = "callpath,p,time,visits\nmain,2,1,\nmain/f,2,nan,3\nmain,4,2,1\n"
    experiment = load("a.csv", text)
    np.testing.assert_array_equal(experiment.values("time"), [[1, 2], [np.nan, np.nan]])
    np.testing.assert_array_equal(experiment.values("visits"), [[np.nan, 1], [3, np.nan]])


def test_slashes_and_arrows_in_names_are_kept(load):
    text = "callpath,id,p,time\nmain/a\\/b,@1234567,2,1\nmain/ptr::operator->(),@1234568,2,1\n"
    experiment = load("a.csv", text)
    names = [experiment.tree.name(row) for row in range(len(experiment.tree))]
    assert names == ["main", "a/b", "ptr::operator->()"]


def test_mpi_functions_are_known_by_their_names(load):
    experiment = load("a.csv", "callpath,p,time\nmain,2,1\nmain/MPI_Send,2,1\n")
    assert [region.paradigm for region in experiment.tree.regions] == ["", "mpi"]


def test_a_condition_may_name_any_parameter(load):
    rows = [f"main,{p},{n},1" for p in (2, 4) for n in (10, 20)]
    text = "callpath,p,grid cells,time\n" + "\n".join(rows)
    experiment = load("a.csv", text, where="grid cells=20")
    assert experiment.constants == {"grid cells": 20}


def test_endless_values_are_missing_and_said(load):
    experiment = load("a.csv", "callpath,p,time\nmain,2,inf\nmain/f,2,1\n")
    assert np.isnan(experiment.values("time")[0, 0])
    assert [f.code for f in experiment.findings] == ["CPM117"]


def test_the_examples_of_the_manual_are_read(load):
    manual = Path(__file__).parents[3] / "docs" / "how-to" / "your-table.md"
    fence = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    blocks = fence.findall(manual.read_text("utf-8"))
    tables = [text for kind, text in blocks if not kind and text.startswith(("callpath", "{"))]
    assert len(tables) == 3
    for k, text in enumerate(tables):
        experiment = load(f"{'abc'[k]}.{'csv' if text.startswith('c') else 'jsonl'}", text)
        row = [experiment.tree.path(row) for row in range(len(experiment.tree))]
        assert experiment.values("time")[row.index("main/solve"), 0] == 2.5
        assert experiment.findings == ()


JOBS = "callpath,p,jobid,time\n" + "".join(
    f"main,{p},{1000 + 7 * (3 * k + r)},{p + r}\n"
    for k, p in enumerate((4, 8, 16, 32, 64))
    for r in range(3)
)


@pytest.mark.parametrize("source", ["name", "metadata:jobid"])
def test_an_identifier_of_a_table_can_be_made_a_parameter(tmp_path, source):
    (tmp_path / "jobs.csv").write_text(JOBS)
    options = loading.LoadOptions(loading.ReadOptions(parameter_sources={"jobid": source}))
    experiment = loading.load([tmp_path / "jobs.csv"], options)
    assert [parameter.name for parameter in experiment.parameters] == ["jobid", "p"]
    assert experiment.runs[4].parameters == {"jobid": 1028, "p": 8}
    assert "CPM141" not in {finding.code for finding in experiment.findings}


def test_an_identifier_of_a_table_that_is_confirmed_is_no_finding(tmp_path):
    (tmp_path / "jobs.csv").write_text(JOBS)
    options = loading.LoadOptions(loading.ReadOptions(parameter_sources={"jobid": "none"}))
    experiment = loading.load([tmp_path / "jobs.csv"], options)
    assert [parameter.name for parameter in experiment.parameters] == ["p"]
    assert "CPM141" not in {finding.code for finding in experiment.findings}
    assert "CPM141" in {f.code for f in loading.load([tmp_path / "jobs.csv"]).findings}


def test_a_call_path_without_a_row_costs_nothing_in_that_repetition(load, value_of):
    rows = ["callpath,p,repetition,time[s]"]
    rows += [f"main,{p},{rep},1.0" for p in (2, 4) for rep in (1, 2, 3)]
    rows += ["main/rare,2,1,0.01", "main/rare,2,3,", "main/other,4,1,0.01"]
    experiment = load("x.csv", "\n".join(rows))
    rare = [value_of(experiment, "time", "main/rare", rep, p=2) for rep in (1, 2, 3)]
    np.testing.assert_equal(rare, [0.01, 0.0, np.nan])
    # Nothing is known about a scale where no run has a row.
    assert np.isnan(
        [value_of(experiment, "time", "main/rare", rep, p=4) for rep in (1, 2, 3)]
    ).all()


def test_times_by_few_samples_have_wide_bands(load):
    """One sample takes 10 ms; in 7 of 15 runs, a function that takes 3 ms has one."""
    seen = {16: (1, 3), 32: (3,), 64: (3,), 128: (2, 3), 256: (2,)}
    rows = ["callpath,p,repetition,time[s]"]
    rows += [f"main,{p},{rep},{5 + (p * rep) % 7 / 20}" for p in seen for rep in (1, 2, 3)]
    rows += [f"main/rare,{p},{rep},0.01" for p, runs in seen.items() for rep in runs]
    fitted = cpm.fit(load("x.csv", "\n".join(rows)))
    band = fitted["main/rare"].predict(4096)
    assert 0.004 < band.value < 0.006
    assert band.low < 0.003
    assert band.high > 0.01
