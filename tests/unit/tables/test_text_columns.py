"""Columns of text: metadata, part of the call path, or ignored; never an error."""

from __future__ import annotations

import pytest

from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.studies import pipeline

SCALES = (1, 2, 4, 8)


def table(header, *rows):
    """Return a table with the given rows at every scale."""
    lines = [row.format(p=p, t=2 * p) for p in SCALES for row in rows]
    return "\n".join([header, *lines]) + "\n"


def codes(experiment):
    return [(finding.code, finding.message) for finding in experiment.findings]


@pytest.mark.parametrize(
    ("header", "row", "left_out"),
    [
        ("p,time", "{p},{t}", []),
        ("p,compiler,time", "{p},gcc,{t}", ["compiler"]),
        ("compiler,p,time", "gcc,{p},{t}", ["compiler"]),
        ("p,time,comment", '{p},{t},"slow, check"', ["comment"]),
        ("date,p,time", "2024-01-01 10:00,{p},{t}", ["date"]),
        ("rank,p,time", "all,{p},{t}", ["rank"]),
    ],
)
def test_a_table_without_call_paths_is_about_the_program(load, header, row, left_out):
    experiment = load("x.csv", table(header, row))
    assert len(experiment.tree) == 1
    assert experiment.values("time")[0].tolist() == [2 * p for p in SCALES]
    assert codes(experiment) == [("CPM125", title) for title in left_out]


@pytest.mark.parametrize("title", ["compiler", "Matrix Size", "study", "colour"])
@pytest.mark.parametrize("order", ["{p},{text},{t}", "{text},{p},{t}"])
def test_texts_that_tell_runs_apart_are_cases(load, title, order):
    header = order.format(p="p", text=title, t="time")
    rows = [order.replace("{text}", text) for text in ("big", "small")]
    text = table(header, *rows)
    whole = load("x.csv", text)
    assert "CPM184" in {finding.code for finding in whole.findings}
    with pytest.raises(UsageError, match=f"2 cases of '{title}': big, small"):
        pipeline.fit(whole)
    experiment = load("x.csv", text, where=f"{title}=big")
    assert experiment.values("time").tolist() == [[2 * p for p in SCALES]]
    assert len(experiment.tree) == 1


def test_repetitions_of_several_cases_are_not_mixed(load):
    text = table("p,algorithm,time", "{p},quick,{t}", "{p},quick,{t}", "{p},heap,{p}")
    experiment = load("x.csv", text, where="algorithm=quick")
    assert [run.repetition for run in experiment.runs] == [1, 2] * 4
    assert load("x.csv", text, where="algorithm=heap").values("time").tolist() == [[1, 2, 4, 8]]


def test_texts_before_a_column_of_functions_belong_to_the_call_path(load, value_of):
    text = table("suite,call,p,time", "lapack,solve,{p},{t}", "lapack,io,{p},1")
    experiment = load("x.csv", text)
    assert value_of(experiment, "time", "lapack/solve", p=4) == 8
    assert codes(experiment) == [("CPM165", "suite, call")]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("p,queue,time", "{p},q{p},{t}"),
        ("p,input,time", "{p},n{p},{t}"),
        ("p,log,time", "{p},out.{p}.txt,{t}"),
        ("p,n,input,time", "{p},100,small,{t}"),
    ],
)
def test_one_text_per_scale_is_metadata(load, header, row):
    experiment = load("x.csv", table(header, row))
    assert experiment.points("p").tolist() == [*SCALES]
    assert [code for code, _ in codes(experiment)] == ["CPM125"]


def test_a_column_with_numbers_and_words_is_one_of_texts(load):
    text = "callpath,p,input,time\nmain,1,64,2\nmain,2,big,4\nmain,4,128,8\nmain,8,huge,16\n"
    experiment = load("x.csv", text)
    assert [parameter.name for parameter in experiment.parameters] == ["p"]
    assert codes(experiment) == [("CPM125", "input")]


def test_one_word_in_a_column_of_numbers_is_a_mistake(load):
    text = "callpath,p,n,time\nmain,1,64,2\nmain,2,12B,4\nmain,4,256,8\nmain,8,512,16\n"
    with pytest.raises(InputError, match="line 3: n: '12B' is not a number"):
        load("x.csv", text)


@pytest.mark.parametrize("title", ["time", "p"])
def test_a_column_that_has_to_hold_numbers_is_refused_with_the_line(load, title):
    rows = ["main,1,2", "main,2,4", "main,x,8" if title == "p" else "main,4,x"]
    rows += ["main,y,16" if title == "p" else "main,8,y"]
    with pytest.raises(InputError, match=f"line 4: {title}: 'x' is not a number"):
        load("x.csv", "\n".join(["callpath,p,time", *rows]) + "\n")
