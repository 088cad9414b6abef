"""What no command line checks is refused in words as well: a message, and what to do."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import CallpathModelerError
from cells import cells
from synthetic import experiment, fitted

LAWS = {"main": [1.0, 1.1, 1.2, 1.3, 1.4]}
MADE, MODELS = experiment(LAWS), fitted(LAWS)
RANKING, COMPARED = cpm.rank(MODELS, 64), cpm.compare(MODELS, MODELS)
FRAME = pd.DataFrame({"callpath": ["main"] * 3, "p": [2, 4, 8], "time": [1.0, 2.0, 4.0]})
ONE = np.ones(1)


def excess(scaling="weak", base=(2, ONE), scale=(4, ONE)):
    return cpm.excess_work(MADE.tree, scaling, base, scale)


def frame(columns=None, **options):
    return cpm.from_frame(FRAME.assign(**(columns or {})), **options)


def option(**options):
    return cpm.fit(MADE, None, cpm.FitOptions(**options))


REFUSED = [
    # What is of another kind
    (lambda: cpm.fit(FRAME), "experiment: Experiment is expected, not DataFrame"),
    (lambda: cpm.fit(MADE, None, {"method": "classic"}), "options: FitOptions or None"),
    (lambda: cpm.rank(MADE, 64), "fitted: Fitted is expected, not Experiment"),
    (lambda: cpm.advise(MADE, 64), "fitted: Fitted"),
    (lambda: cpm.check(MADE, "limits.toml"), "models: Fitted"),
    (lambda: cpm.check(MODELS, None), "path: str or Path is expected, not NoneType"),
    (lambda: cpm.compare(FRAME, MADE), "base: Fitted or Experiment"),
    (lambda: cpm.compare(MADE, MADE, held=3), "held 3 names no parameters"),
    (lambda: cpm.difference_table(RANKING), "compared: Compared"),
    (lambda: cpm.explain(MODELS, 0), "ranking: Ranking"),
    (lambda: cpm.graph(MODELS), "source: Ranking or Experiment is expected, not Fitted"),
    (lambda: cpm.graph(RANKING, "e.toml"), "check: Check or None"),
    (lambda: cpm.ranking_table(RANKING, check=1), "check: Check or None"),
    (lambda: cpm.ranking_table(MODELS), "ranking: Ranking"),
    (lambda: cpm.losses(MODELS), "experiment: Experiment"),
    (lambda: cpm.measured_excess(MODELS, "time", "p", 2, 4), "experiment: Experiment"),
    (lambda: cpm.load(None), "sources: Iterable"),
    (lambda: cpm.load([3]), "source: str or Path"),
    (lambda: cpm.load(["runs"], {"where": "p>2"}), "options: LoadOptions"),
    (lambda: cpm.LoadOptions(where=3), "where: str"),
    (lambda: cpm.LoadOptions("time"), "read: ReadOptions"),
    (lambda: cpm.ReadOptions(metrics="time"), "metrics: tuple"),
    (lambda: cpm.ReadOptions(parameter_sources="p"), "parameter_sources: Mapping"),
    (lambda: MODELS[3], "call path: str"),
    # Names and rows of what there is not
    (lambda: cpm.fit(MADE, 3), "no metric 3"),
    (lambda: cpm.losses(MADE, ["time"]), r"no metric \['time'\]"),
    (lambda: MADE.points("q"), "no parameter 'q'"),
    (lambda: cpm.explain(RANKING, 7), "no call path"),
    (lambda: cpm.explain(RANKING, "main"), "no call path"),
    (lambda: cpm.ranking_table(RANKING, [-1]), "no call path"),
    (lambda: cpm.difference_table(COMPARED, [0.5]), "no call path"),
    (lambda: cpm.losses(MADE, aggregate="avg"), "no aggregate 'avg'"),
    (lambda: cpm.compare(MADE, MADE, aggregate="avg"), "no aggregate 'avg'"),
    (lambda: excess("stron"), "no scaling 'stron'"),
    # Invalid numbers
    (lambda: option(confidence=2), "--confidence 2 is not a probability"),
    (lambda: option(confidence=float("nan")), "--confidence nan is not a probability"),
    (lambda: option(confidence="high"), "--confidence high is not a probability"),
    (lambda: cpm.compare(MADE, MADE, confidence=0), "--confidence 0 is not a probability"),
    (lambda: option(method="classic", folds=1), "--folds 1 is not a whole number of at least 2"),
    (lambda: option(method="classic", folds=2.5), "--folds 2.5"),
    (lambda: option(jobs=-1), "--jobs -1 is not a whole number of at least 0"),
    (lambda: cpm.ReadOptions(jobs="many"), "--jobs 'many'"),
    (lambda: cpm.losses(MADE, pair=(2,)), "a pair is of two scales, not 1"),
    (lambda: cpm.losses(MADE, pair=("2", "4")), "not a number"),
    (lambda: cpm.losses(MADE, base="2"), "base '2' is not a number"),
    (lambda: cpm.measured_excess(MADE, "time", "p", 2, 3), "not measured at p = 3"),
    (lambda: excess(base=(0, ONE)), "scale 0 is not positive"),
    (lambda: excess(base=(2, np.ones(2))), "there are 1 call paths"),
    # Spaces of hypotheses
    (lambda: option(space="p"), "space: SearchSpace"),
    (lambda: cpm.SearchSpace.of(["x"]), "'x' is not an exponent"),
    (lambda: cpm.SearchSpace((), (0,)), "no term besides the constant"),
    (lambda: cpm.SearchSpace(("1",), (0,)), "must be fractions"),
    (lambda: cpm.SearchSpace((Fraction(1),), ("0",)), "must be fractions"),
    # Tables
    (lambda: cpm.from_frame([1, 2]), "frame: DataFrame is expected, not list"),
    (lambda: cpm.from_frame(pd.DataFrame()), "no column 'callpath'"),
    (lambda: cpm.from_frame(FRAME.iloc[:0], parameters=["p"]), "holds no values"),
    (lambda: frame(parameters=None), "parameters: str or list or tuple"),
    (lambda: frame(callpath=[]), "no column of call paths"),
    (lambda: frame(callpath=3), "callpath: str or list"),
    (lambda: frame(metrics={"time": 3}), "unit 3 of time is not text"),
    (lambda: frame({"n": np.inf}, repetition="n"), "not whole numbers"),
    (lambda: frame({"callpath": [{"main": 1}] * 3}), "no call path"),
    (lambda: cpm.from_frame(pd.concat([FRAME, FRAME["time"]], axis=1)), "several columns 'time'"),
]


@cells(("ask", "words"), REFUSED)
def test_what_makes_no_sense_is_refused_with_what_to_do(ask, words):
    with pytest.raises(CallpathModelerError, match=words) as caught:
        ask()
    assert caught.value.hint


def test_one_column_need_not_be_in_a_list():
    made = cpm.from_frame(FRAME.rename(columns={"p": "ranks"}), parameters="ranks", metrics="time")
    assert made.points("p").tolist() == [2, 4, 8]
    assert list(made.columns) == ["time"]


def test_rows_may_be_given_as_a_list():
    assert cpm.ranking_table(RANKING, [0]).columns["callpath"] == ["main"]
