"""Tables with one column per case, parts without a run time, and Google Benchmark."""

from __future__ import annotations

import csv
import io
import re

import pytest

from callpath_modeler.errors import InputError
from callpath_modeler.studies import loading

SCALES = (1, 2, 4, 8, 16)
OLD = (100.0, 52.0, 28.0, 16.0, 11.0)
NEW = (100.0, 51.0, 26.0, 13.0, 6.6)


def table(titles, *columns):
    rows = zip(*columns, strict=True)
    return "\n".join([titles, *(",".join(map(str, row)) for row in rows), ""])


def values_of_cases(path, case):
    experiment = loading.load(path, loading.LoadOptions(case=case))
    return experiment.columns[experiment.metric().name].total.tolist()


@pytest.mark.parametrize(
    ("titles", "cases"),
    [
        ("ranks,time old,time new", ("old", "new")),
        ("p,t_old[s],t_new[s]", ("old", "new")),
        ("cores,OpenMPI time (s),MPICH time (s)", ("OpenMPI", "MPICH")),
        ("np,Time v1.1 (s),Time v1.2 (s)", ("v1.1", "v1.2")),
        ("nodes,gcc runtime,icc runtime", ("gcc", "icc")),
    ],
)
def test_times_that_differ_in_one_word_are_cases(write, run, titles, cases):
    path = write(table(titles, SCALES, OLD, NEW))
    assert {*loading.load(path).cases} == {*cases}
    assert values_of_cases(path, cases[0]) == [*OLD]
    assert values_of_cases(path, cases[1]) == [*NEW]
    out = run("rank", path, "--target", "64").out
    assert f"{cases[0]} probably takes longest of 2 cases" in out
    assert f"{cases[1]} is the fastest" in out


def test_rates_of_the_same_cases_belong_to_them(write):
    rates = [round(100 / t, 3) for t in OLD], [round(100 / t, 3) for t in NEW]
    titles = "p,time old (ms),time new (ms),speedup old,speedup new,ideal"
    path = write(table(titles, SCALES, OLD, NEW, *rates, SCALES))
    one = loading.load(path, loading.LoadOptions(loading.ReadOptions(metrics=None), case="new"))
    assert one.columns["time"].total == pytest.approx([t / 1000 for t in NEW])
    assert one.values("speedup")[0].tolist() == rates[1]


@pytest.mark.parametrize(
    "titles",
    [
        "p,total time,solver time",
        "p,wall time,cpu time",
        "p,time avg,time max",
        "p,comm time,compute time",
        "p,time,ideal time",
    ],
)
def test_other_columns_of_times_are_no_cases(write, titles):
    assert loading.load(write(table(titles, SCALES, OLD, NEW))).cases == ()


PARTS = (80.0, 40.0, 20.0, 10.0, 5.0), (1.0, 1.5, 2.0, 2.5, 3.5), (2.0, 1.0, 0.5, 0.4, 0.3)
WHOLE = [round(sum(row) + 0.5, 6) for row in zip(*PARTS, strict=True)]


@pytest.mark.parametrize("titles", ["procs,Loop time,Pair,Comm,Output", "p,main (s),Pair,Comm,io"])
def test_the_time_that_the_others_add_up_to_is_the_run_time(write, titles):
    experiment = loading.load(write(table(titles, SCALES, WHOLE, *PARTS)))
    paths = [experiment.tree.path(row) for row in range(len(experiment.tree))]
    names = titles.split(",")[2:]
    assert paths == ["<root>", *(f"<root>/{name}" for name in names), "<root>/other"]
    assert experiment.columns[experiment.metric().name].total == pytest.approx(WHOLE)


def test_parts_without_a_run_time_are_call_paths_of_their_sum(write, run):
    path = write(table("procs,Pair (s),Comm (s),Output", SCALES, *PARTS))
    experiment = loading.load(path)
    paths = [experiment.tree.path(row) for row in range(len(experiment.tree))]
    assert paths == ["<root>", "<root>/Pair", "<root>/Comm", "<root>/Output"]
    assert experiment.columns["time"].total == pytest.approx([t - 0.5 for t in WHOLE])
    lines = [re.split(r"\s{2,}", line) for line in run("info", path).out.splitlines()]
    (told,) = [line for line in lines if line[0] == "time (s)"]
    assert told[2] == "the sum of the parts, because no column is the run time"


HEAD = (
    "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,"
    "error_occurred,error_message"
)


def benchmark(name, time, unit="ns", failed=""):
    return f'"{name}",{round(1e9 / time)},{time},{time * 0.99},{unit},,,,{failed},'


SIZES = (1024, 4096, 16384, 65536)


def test_google_benchmark_has_sizes_and_cases(write, run):
    rows = [benchmark(f"BM_{kind}/{n}", k * n) for k, kind in enumerate(("copy", "sort"), 1)
            for n in SIZES for _ in range(2)]  # fmt: skip
    rows += [benchmark(f"BM_copy/{SIZES[-1]}_{end}", 7) for end in ("mean", "median", "stddev")]
    rows += [benchmark("BM_copy/9", 7, failed="true")]
    path = write("\n".join([HEAD, *rows, ""]))
    experiment = loading.load(path, loading.LoadOptions(case="BM_sort"))
    assert {p.name: p.values for p in experiment.parameters} == {"n": SIZES}
    total = experiment.columns[experiment.metric().name].total
    assert total == pytest.approx([2e-9 * n for n in SIZES for _ in range(2)])
    assert len(loading.load(path, loading.LoadOptions(case="BM_copy")).runs) == 8
    answer = run("rank", path, "--target", "1e6", "-f", "csv")
    rows = [*csv.DictReader(io.StringIO(answer.out))]
    assert [row["case"] for row in rows] == ["BM_sort", "BM_copy"]
    assert float(rows[0]["value_at_target[s]"]) == pytest.approx(2e-3, rel=0.05)


def test_threads_and_units_of_google_benchmark(write):
    rows = [benchmark(f"BM_x/real_time/threads:{p}", 64.0 / p, "us") for p in (1, 2, 4, 8)]
    experiment = loading.load(write("\n".join([HEAD, *rows, ""])))
    assert [p.name for p in experiment.parameters] == ["threads"]
    total = experiment.columns[experiment.metric().name].total
    assert total == pytest.approx([64e-6 / p for p in (1, 2, 4, 8)])


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([benchmark("BM_a/8", 1, "weeks")], "weeks"),
        ([benchmark("BM_a/8", 1, failed="true")], "the run failed"),
    ],
)
def test_odd_outputs_of_google_benchmark_are_refused(write, rows, said):
    with pytest.raises(InputError, match=said):
        loading.load(write("\n".join([HEAD, *rows, ""])))


def test_of_nodes_and_tasks_the_one_that_targets_mean_is_named(write, run):
    nodes = [32 * p for p in SCALES]
    path = write(table("nodes,tasks,time", SCALES, nodes, OLD))
    told = run("rank", path, "--target", "1024")
    assert "targets are values of p, and of nodes with --parameter nodes" in told.err
    assert "at nodes = 64" in run("rank", path, "--target", "64", "--parameter", "nodes").out


@pytest.mark.parametrize("folder", ["v3", "exp_t3_a"])
def test_a_letter_in_the_folder_of_all_runs_is_no_parameter(tmp_path, folder):
    (tmp_path / folder).mkdir()
    for p in SCALES:
        (tmp_path / folder / f"app-p{p}.folded").write_text(f"main;f {640 // p}\n")
    experiment = loading.load(tmp_path / folder)
    assert [parameter.name for parameter in experiment.parameters] == ["p"]
    assert experiment.constants == {}


@pytest.mark.parametrize(
    ("title", "metric", "truth"),
    [
        ("efficiency", "relative core time", lambda p: 1 + 0.02 * p),
        ("Efficiency (%)", "relative core time", lambda p: 1 + 0.02 * p),
        ("Speed-up", "relative time", lambda p: 1 / p + 0.02),
    ],
)
def test_rates_alone_are_predicted_by_the_cost_that_they_stand_for(
    write, run, title, metric, truth
):
    costs = [truth(p) / truth(1) for p in SCALES]
    factor = 100 if "%" in title else 1
    path = write(table(f"p,{title}", SCALES, [f"{factor / cost:.6f}" for cost in costs]))
    experiment = loading.load(path)
    assert experiment.metric().name == metric
    assert experiment.values(metric)[0] == pytest.approx(costs, rel=1e-5)
    answer = run("rank", path, "--target", "64", "-f", "csv")
    (row,) = csv.DictReader(io.StringIO(answer.out))
    predicted = float(row["value_at_target[1]"])
    assert predicted == pytest.approx(truth(64) / truth(1), rel=0.1)
    (told,) = [line for line in run("info", path).out.splitlines() if line.startswith(metric)][-1:]
    assert "the inverse of" in told
