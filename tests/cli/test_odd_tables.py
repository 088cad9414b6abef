"""Tables in odd but ordinary shapes: what they say, or a question whose option works."""

from __future__ import annotations

import json
import re
import shlex

import numpy as np
import pytest

from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import ColumnChoices
from callpath_modeler.studies import loading

ROWS = [(1, 120.0), (2, 61.5), (4, 32.0), (8, 17.2), (16, 10.1), (32, 7.3)]
SCALES, TIMES = ([*each] for each in zip(*ROWS, strict=True))


def lines(head, row, rows=ROWS):
    return "\n".join([head, *(row(p, t) for p, t in rows), ""])


def paths(experiment):
    return [experiment.tree.path(row) for row in range(len(experiment.tree))]


def times(experiment):
    return experiment.columns[experiment.metric().name].total.tolist()


SHAPES = {
    "transposed": "np," + ",".join(map(str, SCALES)) + "\ntime (s)," + ",".join(map(str, TIMES)),
    "decimal commas with units": lines(
        "| Kerne | Zeit |\n|--|--|", lambda p, t: f"| {p} | {str(t).replace('.', ',')} s |"
    ),
    "a row of units with dashes": lines("Ranks\tTime\n[-]\t[s]", lambda p, t: f"{p}\t{t}"),
    "columns in JSON": json.dumps({"ranks": SCALES, "time": TIMES}),
    "sides of a grid of processes": "px,py,time (s)\n1,1,120.0\n2,1,61.5\n2,2,32.0\n4,2,17.2\n"
    "4,4,10.1\n8,4,7.3\n",
    "parts with units behind an underscore": lines(
        "ranks,init_ms,solve_ms", lambda p, t: f"{p},2000,{round(1000 * t - 2000)}"
    ),
    "two rows of titles": lines("ranks,time,time\n,mean,std", lambda p, t: f"{p},{t},{t / 100}"),
    "empty columns of a spreadsheet": lines("ranks;time;;", lambda p, t: f"{p};{t};;") + ";;;\n",
    "emphasis": lines("| **Ranks** | Time |\n|--|--|", lambda p, t: f"| **{p}** | `{t}` s |"),
    "a bare count of named workers": lines("GPU,count,time", lambda p, t: f"A100,{p},{t}"),
    "one column per scale with its unit": "size,"
    + ",".join(f"{p} core{'s' * (p > 1)}" for p in SCALES)
    + "\n100,"
    + ",".join(map(str, TIMES))
    + "\n",
    "numbers with words": lines("ranks,time", lambda p, t: f"{p} rank{'s' * (p > 1)},{t}"),
    "a rule below the titles": lines("ranks  time\n-----  ----", lambda p, t: f"{p:<6} {t}"),
    "merged cells": "alg,ranks,time\nquick,1,120.0\n,2,61.5\n,4,32.0\n,8,17.2\n,16,10.1\n,32,7.3\n",
}
ENDINGS = {"columns in JSON": "json", "emphasis": "md",
           "a rule below the titles": "txt", "decimal commas with units": "md",
           "a row of units with dashes": "tsv"}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_run_times(write, shape):
    experiment = loading.load(write(SHAPES[shape], f"runs.{ENDINGS.get(shape, 'csv')}"))
    (parameter,) = experiment.parameters
    assert [*parameter.values] == SCALES
    assert times(experiment) == pytest.approx(TIMES)
    assert experiment.metric().unit == "s"


def test_merged_cells_never_pool_cases(write):
    text = "alg,ranks,time\nquick,1,120\n,2,61\n,4,32\nheap,1,150\n,2,80\n,4,42\n"
    parts = loading.load_parts([write(text)], loading.LoadOptions())
    assert {case: times(part) for (_, case), part in parts.items()} == {
        "quick": [120, 61, 32],
        "heap": [150, 80, 42],
    }


@pytest.mark.parametrize("word", ["timeout", "OOM", "FAILED", "DNF"])
def test_a_word_of_failure_is_no_time_and_the_others_stay(write, run, word):
    path = write(lines("ranks,time", lambda p, t: f"{p},{word if p == 4 else t}"))
    experiment = loading.load(path)
    assert experiment.points("p").tolist() == [p for p in SCALES if p != 4]
    assert "CPM101" in run("rank", path, "--target", "64").err


def test_counts_in_another_notation_are_refused_and_never_pooled(write, run):
    text = lines("nodes,cores,time", lambda p, t: f"{p}x4,{4 * p},{t}")
    refused = run("rank", write(text), "--target", "64")
    refused.fails(3, "line 2: nodes: '1x4' is not a number")
    option = shlex.split(refused.complaint.rpartition("column: ")[2])
    assert "7.30 s" in run("rank", write(text), "--target", "128", *option).out


def test_an_empty_note_is_not_the_one_above(write):
    experiment = loading.load(write("note,ranks,time\nwarm,1,120\n,2,61\n,4,32\n"))
    assert [run.metadata.get("note") for run in experiment.runs] == ["warm", "", ""]


def test_versions_in_numbers_are_cases(write, run):
    text = lines("version,ranks,time", lambda p, t: f"1.1,{p},{t}\n1.2,{p},{0.9 * t}")
    parts = loading.load_parts([write(text)], loading.LoadOptions())
    assert [case for _, case in parts] == ["1.1", "1.2"]
    path = write(json.dumps([{"version": v, "ranks": p, "time": t / v} for p, t in ROWS
                             for v in (1, 2)]), "runs.json")  # fmt: skip
    assert [case for _, case in loading.load_parts([path], loading.LoadOptions())] == ["1", "2"]
    assert "7.30 s" in run("rank", path, "--target", "32", "--case", "1").out
    constant = loading.load(write(lines("version,ranks,time", lambda p, t: f"3,{p},{t}"), "c.csv"))
    assert [each.name for each in constant.parameters] == ["p"]


def test_callers_by_name_make_call_paths(write):
    text = lines(
        "function,caller,np,time (exc)",
        lambda p, t: (
            f"main,,{p},{t}\nsolve,main,{p},{t / 2}\nio,main,{p},1\n"
            f"MPI_Send,solve,{p},2\nMPI_Send,io,{p},0.5"
        ),
    )
    experiment = loading.load(write(text))
    assert paths(experiment) == [
        "main", "main/solve", "main/solve/MPI_Send", "main/io", "main/io/MPI_Send",
    ]  # fmt: skip
    assert experiment.values("time")[:, 0].tolist() == [120, 60, 2, 1, 0.5]
    unclear = text + "x,solve,1,1\nx,io,1,1\ny,x,1,1\n"
    with pytest.raises(InputError, match="the callers of 'x' are not known: solve, io"):
        loading.load(write(unclear))


def test_stages_and_components_are_parts_of_one_program(write):
    text = lines("stage,np,time", lambda p, t: f"read,{p},{t / 4}\ncompute,{p},{3 * t / 4}")
    experiment = loading.load(write(text))
    assert paths(experiment) == ["read", "compute"]
    assert times(experiment) == pytest.approx(TIMES)


def test_several_times_without_a_run_time_are_told_and_one_can_be_chosen(write, run):
    path = write(lines("nodes,CPU time (s),GPU time (s)", lambda p, t: f"{p},{t},{t / 5}"))
    told = run("rank", path, "--target", "32")
    assert "CPM167" in told.err
    chosen = run("rank", path, "--target", "32", "--time", "CPU time (s)")
    assert "CPM167" not in chosen.err
    assert "7.30 s" in chosen.out


QUESTIONS = {
    "x,y": (lambda p, t: f"{p},{t}", "7.30"),
    "cores,JUWELS": (lambda p, t: f"{p},{t}", "7.30"),
    "half,time": (lambda p, t: f"{p + 0.5},{t}", "7.30"),
    "p,Dauer": (lambda p, t: f"{p},{t}", "7.30"),
}


@pytest.mark.parametrize("head", QUESTIONS)
def test_the_option_of_a_question_works(write, run, head):
    row, found = QUESTIONS[head]
    path = write(lines(head, row))
    refused = run("rank", path, "--target", "64")
    refused.fails(3)
    option = shlex.split(re.search(r"e\.g\. (--\S+ (?:'[^']*'|\S+));", refused.complaint)[1])
    helped = run("rank", path, *option, "--target", "32.5" if head == "half,time" else "32")
    assert helped.status == 0, helped.err
    assert found in helped.out


def test_a_rate_is_never_offered_as_a_time(write, run):
    refused = run(
        "rank", write(lines("nodes,GFlop/s", lambda p, t: f"{p},{1 / t}")), "--target", 64
    )
    refused.fails(3, "no column is called a time")
    assert "--time" not in refused.complaint


@pytest.mark.parametrize("name", ["runs.txt", "runs.csv"])
def test_columns_without_titles_are_refused_with_the_remedy(write, run, name):
    separator = "," if name.endswith("csv") else " "
    path = write("".join(f"{p}{separator}{t}\n" for p, t in ROWS), name)
    refused = run("rank", path, "--target", "64")
    refused.fails(3, "the columns have no titles", "write titles above the numbers, e.g. p time")
    path.write_text(f"p{separator}time\n{path.read_text()}")
    assert run("rank", path, "--target", "64").status == 0


BLOCKS = {
    "other titles": "# p t_weak\n",
    "the same titles": "# p t\n",
    "two blank lines": "\n\n",
}


@pytest.mark.parametrize("between", BLOCKS)
def test_a_second_block_of_gnuplot_is_not_pooled_with_the_first(write, run, between):
    rows = "".join(f"{p} {t}\n" for p, t in ROWS)
    path = write(f"# p t\n{rows}{BLOCKS[between]}{rows.replace('.', '0.')}", "runs.dat")
    refused = run("rank", path, "--target", "64", "--time", "t")
    refused.fails(3, "2 tables of measurements", "write each table to a file of its own")


def test_a_title_that_is_a_unit_is_the_time_in_it(write):
    experiment = loading.load(write(lines("gpus,Hours", lambda p, t: f"{p},{t}")))
    assert times(experiment) == pytest.approx([3600 * t for t in TIMES])
    told = loading.ReadOptions(columns=ColumnChoices(time="Hours"))
    experiment = loading.load(write(lines("gpus,time,Hours", lambda p, t: f"{p},1,{t}")),
                              loading.LoadOptions(told))  # fmt: skip
    assert times(experiment) == pytest.approx([3600 * t for t in TIMES])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_configuration_that_is_printed_for_a_shape_gives_the_same_ranking(write, run, shape):
    path = write(SHAPES[shape], f"runs.{ENDINGS.get(shape, 'csv')}")
    asked = ("rank", path, "--target", "64", "-f", "csv")
    before = run(*asked)
    told = json.loads(run("info", path, "--explain", "-f", "json").out)
    (path.parent / "cpmodel.toml").write_text(told["cpmodel_toml"])
    after = run(*asked)
    assert (after.status, after.out) == (0, before.out)


PARTS = """p,rep,total,solve,io
8,1,10,7,2
8,2,10,7,2
16,1,12,7,4
16,2,12,7,4
32,1,16,7,8
32,2,18,7,
"""


def test_the_total_of_a_run_is_that_of_its_column_if_a_part_is_empty(write, run):
    experiment = loading.load(write(PARTS))
    assert np.nansum(experiment.values(), axis=0) == pytest.approx([10, 10, 12, 12, 16, 18])
    # The other run of this scale has 8 s and 1 s; 11 s have the same ratio.
    values = dict(zip(paths(experiment), experiment.values()[:, -1].tolist(), strict=True))
    assert values["<root>/io"] == pytest.approx(11 * 8 / 9)
    answer = run("rank", write(PARTS), "--target", "32")
    assert "ran 17.0 s at p = 32 (mean of 2 runs, 16.0 … 18.0 s" in answer.out
    assert "line 7: io: no value" in answer.err


def test_empty_parts_of_all_runs_of_a_scale_are_one_unknown_part(write):
    experiment = loading.load(write(PARTS.replace("32,1,16,7,8\n", "")))
    values = dict(zip(paths(experiment), experiment.values()[:, -1].tolist(), strict=True))
    assert values["<root>/unknown"] == 11
    assert np.isnan([values["<root>/io"], values["<root>/other"]]).all()
    experiment = loading.load(write(PARTS.replace("32,1,16,7,8", "32,1,16,,8")))
    values = dict(zip(paths(experiment), experiment.values()[:, -2:].tolist(), strict=True))
    assert values["<root>/solve"] == [7, 7]
    assert values["<root>/io"] == [8, 8]
    assert values["<root>/other"] == [1, 3]
    assert "<root>/unknown" not in values


def test_a_root_without_own_values_needs_no_model(write, run):
    text = PARTS.replace("7,\n", "7,9\n")
    assert "CPM201" not in run("rank", write(text), "--target", "64").err
    rare = "callpath,p,time\nmain/f,8,1\nmain/f,16,2\nmain/f,32,4\nmain/rare,32,1\n"
    err = run("rank", write(rare), "--target", "64").err
    assert "1 call path, 12 % of the cost of all scales, measured at too few" in err


def test_a_run_without_a_costly_call_path_is_named(tmp_path, run):
    for p in (4, 8, 16):
        for rep in (1, 2):
            path = tmp_path / f"app.p{p}.r{rep}.folded"
            path.write_text(f"main;solve 70\nmain;io {5 * p}\nmain;rare {rep - 1}\n")
    whole = run("rank", tmp_path, "--target", "16")
    assert "CPM149" not in whole.err
    path.write_text("main;io 80\n")
    cut = run("rank", tmp_path, "--target", "16")
    assert "app.p16.r2.folded: main/solve: 0, but 47 % of the total in a repetition" in cut.err


def test_a_column_called_other_and_the_rest_are_added(write):
    experiment = loading.load(write(PARTS.replace("solve", "other").replace("7,\n", "7,9\n")))
    assert np.nansum(experiment.values(), axis=0) == pytest.approx([10, 10, 12, 12, 16, 18])


def test_the_only_empty_part_is_the_rest_of_the_total(write):
    whole = "p,total,solve,io\n8,9,7,2\n16,11,7,4\n32,15,7,\n"
    experiment = loading.load(write(whole))
    assert paths(experiment) == ["<root>", "<root>/solve", "<root>/io"]
    assert experiment.values()[2].tolist() == [2, 4, 8]


@pytest.mark.parametrize(("cell", "named"), [("40", "io"), ("7", "solve, io")])
def test_a_part_that_once_exceeds_the_total_is_named(write, run, cell, named):
    text = PARTS.replace("16,2,12,7,4", f"16,2,12,7,{cell}").replace("32,2,18,7,\n", "")
    err = run("rank", write(text), "--target", "64").err
    assert f"line 5: {named}: more than total" in err
    assert "CPM169" not in run("rank", write(PARTS), "--target", "64").err


def test_an_unknown_call_path_does_not_make_the_run_shorter(write, run):
    rows = [
        f"{path},{p},{rep},{'' if (path, p, rep) == ('main/io', 32, 2) else time}"
        for p in (8, 16, 32)
        for rep in (1, 2)
        for path, time in (("main", 1), ("main/solve", 7), ("main/io", p / 4))
    ]
    answer = run("rank", write("\n".join(["callpath,p,rep,time", *rows])), "--target", "32")
    assert "ran 16.0 s at p = 32 (mean of 2 runs, 16.0 … 16.0 s" in answer.out
    assert "line 19: main/io: no value" in answer.err
