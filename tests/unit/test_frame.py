from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import InputError, UsageError

ROWS = [
    (path, p, rep, 1000.0 * p * (1 + k), 5 * rep)
    for p in (2, 4, 8)
    for rep in (1, 2)
    for k, path in enumerate(("main", "main/solve"))
]


@pytest.fixture
def frame():
    return pd.DataFrame(ROWS, columns=["path", "ranks", "rep", "time", "calls"])


def test_a_data_frame_becomes_an_experiment(frame):
    made = cpm.from_frame(
        frame, callpath="path", parameters=["ranks"], repetition="rep", metrics={"time": "ms"}
    )
    assert list(made.columns) == ["time"]
    assert made.points("p").tolist() == [2, 4, 8]
    assert made.values("time").tolist() == [[2, 2, 4, 4, 8, 8], [4, 4, 8, 8, 16, 16]]
    assert [run.repetition for run in made.runs] == [1, 2] * 3
    assert made.runs[0].source == "data frame[p=2 r1]"


def test_columns_of_numbers_are_metrics_unless_told(frame):
    made = cpm.from_frame(frame, callpath="path", parameters=["ranks"], repetition="rep")
    assert list(made.columns) == ["time", "calls"]
    assert made.metric("time").unit == "s"


def test_rows_alike_are_repetitions(frame):
    made = cpm.from_frame(frame.drop(columns="rep"), callpath="path", parameters=["ranks"])
    assert [run.repetition for run in made.runs] == [1, 2] * 3


def test_index_levels_are_columns_too(frame):
    indexed = frame.set_index(["path", "ranks", "rep"])
    made = cpm.from_frame(indexed, callpath="path", parameters=["ranks"], repetition="rep")
    assert made.values("calls")[0].tolist() == [5, 10] * 3


def test_call_paths_may_be_sequences_or_several_columns():
    data = pd.DataFrame({"c": [("main",), ("main", "a/b")], "p": [2, 2], "time": [1.0, 2.0]})
    made = cpm.from_frame(data, callpath="c", parameters=["p"])
    assert made.tree.names(1) == ("main", "a/b")
    data = pd.DataFrame({"lib": ["A", "B"], "call": ["x", "y"], "p": [2, 2], "time": [1.0, 2.0]})
    made = cpm.from_frame(data, callpath=["lib", "call"], parameters=["p"])
    assert {made.tree.path(row) for row in range(4)} == {"A", "A/x", "B", "B/y"}


def test_what_is_not_there_did_not_occur(frame):
    frame.loc[0, "time"] = np.nan
    made = cpm.from_frame(frame, callpath="path", parameters=["ranks"], repetition="rep")
    assert np.isnan(made.values("time")[0, 0])


def test_the_experiment_can_be_fitted_and_ranked(frame):
    more = pd.concat([frame, frame.assign(ranks=frame["ranks"] * 8, time=frame["time"] * 8)])
    made = cpm.from_frame(more, callpath="path", parameters=["ranks"], repetition="rep")
    ranking = cpm.rank(cpm.fit(made, "time"), target=1024)
    assert cpm.ranking_table(ranking).columns["callpath"][0] == "main/solve"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"callpath": "route"}, UsageError, "no column 'route'"),
        ({"callpath": "path", "metrics": ["tme"]}, UsageError, "no column 'tme'"),
        ({"callpath": "path", "metrics": []}, UsageError, "no column of values"),
        ({"callpath": "path", "metrics": ["text"]}, InputError, "text does not contain numbers"),
        ({"callpath": "calls"}, InputError, "no call path"),
        ({"callpath": "path", "parameters": ["hole"]}, InputError, "hole is not a number"),
        ({"callpath": "path", "repetition": "half"}, InputError, "not whole numbers"),
    ],
)
def test_columns_that_do_not_fit_are_an_error(frame, options, error, message):
    frame = frame.assign(text="x", hole=np.nan, half=0.5)
    with pytest.raises(error, match=message):
        cpm.from_frame(frame, **options)


@pytest.mark.parametrize("layout", ["wide", "long"])
@pytest.mark.parametrize("inclusive", [False, True])
def test_the_table_of_an_experiment_comes_back(samples, layout, inclusive):
    made = cpm.load([samples / "stencil"])
    back = cpm.from_frame(made.to_frame(layout=layout, inclusive=inclusive))
    assert [run.parameters for run in back.runs] == [run.parameters for run in made.runs]
    assert [run.repetition for run in back.runs] == [run.repetition for run in made.runs]
    order = [back.tree.path(row) for row in range(len(back.tree))]
    for metric in made.columns if layout == "long" else ["time"]:
        if inclusive and not made.metric(metric).additive:
            continue
        before = dict(
            zip(map(made.tree.path, range(len(made.tree))), made.values(metric), strict=True)
        )
        for path, values in zip(order, back.values(metric), strict=True):
            assert values == pytest.approx(before[path], rel=1e-9, abs=1e-12, nan_ok=True)


def test_a_wide_table_of_the_caller_is_read():
    columns = pd.MultiIndex.from_product([[2, 4, 8], [1, 2]], names=["p", "repetition"])
    index = pd.Index(["main", "main/f"], name="callpath")
    made = cpm.from_frame(
        pd.DataFrame([[1.0] * 6, [4, 4, 2, 2, 1, np.nan]], index, columns),
        parameters=["p"],
        repetition="repetition",
    )
    assert made.points("p").tolist() == [2, 4, 8]
    assert made.values("time")[1].tolist()[:5] == [4, 4, 2, 2, 1]


def test_other_levels_of_columns_are_refused():
    frame = pd.DataFrame([[1.0, 2.0]], columns=pd.MultiIndex.from_product([["a"], ["x", "y"]]))
    with pytest.raises(UsageError, match="levels that are no parameters"):
        cpm.from_frame(frame)


def test_an_unknown_layout_is_refused(samples):
    with pytest.raises(UsageError, match="no layout 'tall'"):
        cpm.load([samples / "stencil"]).to_frame(layout="tall")


def test_answers_are_tables_sequences_and_short_texts(samples):
    study = cpm.Study(samples / "stencil")
    ranking, models = study.ranking(target=1024), study.models()
    frame = ranking.to_frame()
    assert frame["rank"].tolist()[:3] == [1, 2, 3]
    assert [model.callpath for model in ranking[:3]] == frame.index.tolist()[:3]
    assert ranking[0].callpath == next(iter(ranking)).callpath == frame.index[0]
    assert len(frame) == len(models) == len(models.to_frame()) == len([*models])
    assert len(ranking) == len([*ranking])
    assert models.to_frame().loc["main/find_owners", "growth"] == "O(p)"
    for answer in (ranking, models, study.experiment().tree):
        assert len(repr(answer)) < 100


def test_results_of_expectations_are_a_table_by_name(samples, tmp_path):
    path = tmp_path / "e.toml"
    path.write_text('schema = 1\n[[expect]]\nname = "owners"\ncallpath = "main/find_owners"\n'
                    'growth = "O(p)"\n')  # fmt: skip
    found = cpm.Study(samples / "stencil").check(path).to_frame()
    assert found.loc["owners", "status"] == "pass"
    assert found.loc["owners", "match"] == "exact"
