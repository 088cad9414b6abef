"""Expectations from models: their content, and the changes that they pass and catch."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.expectations.clauses import interpret
from callpath_modeler.analysis.expectations.expectation import parse
from callpath_modeler.analysis.expectations.growth_check import (
    BaselineSettings,
    baseline,
    patterns_of,
)
from callpath_modeler.analysis.expectations.judge import Judge
from callpath_modeler.errors import DataError
from callpath_modeler.profile.pattern import Patterns, find_one
from callpath_modeler.profile.schema import Metric
from callpath_modeler.report.exports import to_toml
from cells import cells
from synthetic import VISITS, experiment

POINTS = np.array([8.0, 16.0, 32.0, 64.0, 128.0])
LAWS = {
    "main": 0.3 + 0 * POINTS,
    "main/f": 20 + 0 * POINTS,
    "main/f/MPI_Send": 0.7 * np.log2(POINTS),
    "main/g": 0.05 * POINTS,
    "main/g/MPI_Wait": 0.4 + 0 * POINTS,
    **{f"main/h{k}": 0.01 * (k + 1) + 0 * POINTS for k in range(10)},
}


def noisy(seed, laws=LAWS, noise=0.03, repetitions=3, **of_experiment):
    random = np.random.default_rng(seed)
    values = {
        path: law[:, None] * (1 + noise * random.standard_normal((len(POINTS), repetitions)))
        for path, law in laws.items()
    }
    return cpm.fit(experiment(values, POINTS, **of_experiment))


def expectations(fitted, **settings):
    return interpret(
        parse(to_toml(baseline(fitted, BaselineSettings(**settings))), "baseline.toml")
    )


def failures(expected, fitted):
    outcomes = Judge(expected, lambda _: fitted).outcomes()
    return [outcome.expectation.name for outcome in outcomes if outcome.failed]


@pytest.fixture(scope="module")
def today():
    return noisy(1_000)


def test_the_whole_program_comes_first_and_call_paths_follow_by_their_cost(today):
    names = [each.name for each in expectations(today).expectations]
    assert names[:4] == ["whole program", "main/f", "main/g", "main/f/MPI_Send"]
    assert names[-1] == "every other call path"


def test_enough_call_paths_are_chosen_to_cover_the_cost_and_no_more(today):
    chosen = {entry.row for entry in baseline(today, BaselineSettings(cover=0.9)).entries}
    value = today.models.values([128.0])[:, 0]
    covered = sum(value[row] for row in chosen if row is not None) / value.sum()
    least = min(value[row] for row in chosen if row is not None) / value.sum()
    assert covered >= 0.9 > covered - least
    every = baseline(today, BaselineSettings(cover=1.0))
    assert len(every.entries) == 1 + len(LAWS)
    assert (every.left, every.others) == (0, 0.0)
    assert len(baseline(today, BaselineSettings(cover=1.0, most=2)).entries) == 3


def test_models_meet_their_own_baseline_and_are_sure_of_it(today):
    found = Judge(expectations(today), lambda _: today).outcomes()
    assert {str(outcome.status) for outcome in found} == {"pass"}
    assert {str(outcome.verdict) for outcome in found} == {"kept"}


@cells("seed", range(12))
def test_fresh_noise_breaks_nothing(today, seed):
    assert failures(expectations(today), noisy(seed)) == []


@cells("seed", range(3))
@cells(
    ("path", "name"),
    [("main/f", "main/f"), ("main/g/MPI_Wait", "main/g/MPI_Wait"), ("main/h0", "every other")],
)
def test_what_grows_where_it_did_not_is_caught_and_named(today, path, name, seed):
    grown = LAWS | {path: LAWS[path] * np.sqrt(POINTS / POINTS[0]) ** (4 if "h" in path else 1)}
    found = failures(expectations(today), noisy(seed, grown))
    assert any(failed.startswith(name) for failed in found)


def test_what_is_twice_as_slow_at_every_scale_is_caught(today):
    assert "main/f" in failures(
        expectations(today), noisy(5, LAWS | {"main/f": 2 * LAWS["main/f"]})
    )


def test_a_new_call_path_of_some_cost_is_caught(today):
    found = failures(expectations(today), noisy(5, LAWS | {"main/new": 3 + 0 * POINTS}))
    assert "every other call path" in found


def test_bounds_are_at_the_largest_scale_or_at_the_target(today):
    assert tomllib.loads(to_toml(baseline(today)))["target"] == {"p": 128}
    far = expectations(today, target=4096.0)
    near = expectations(today)
    bounds = [
        next(e for e in some.expectations if e.name == "main/g").criteria[1].amount
        for some in (near, far)
    ]
    assert 6.4 < bounds[0] < 12
    assert bounds[1] > 200


def test_exact_counts_are_bounded_exactly():
    counts = cpm.fit(experiment({"main": [7.0] * 5, "main/f": POINTS}, POINTS, metric=VISITS))
    text = to_toml(baseline(counts, BaselineSettings(cover=1.0)))
    assert 'value = "<= 128"' in text
    assert 'value = "<= 7"' in text
    assert 'growth = "<= O(p)"' in text
    expected = interpret(parse(text, "baseline.toml"))
    assert failures(expected, counts) == []
    more = cpm.fit(experiment({"main": [8.0] * 5, "main/f": POINTS}, POINTS, metric=VISITS))
    assert failures(expected, more) == ["whole program", "main"]


def test_what_does_not_add_up_has_no_whole_program():
    peak = Metric("heap: peak", "B", additive=False)
    models = cpm.fit(
        experiment({"main": 1e9 * POINTS, "main/f": 2e6 * POINTS}, POINTS, metric=peak)
    )
    expected = expectations(models)
    assert [each.name for each in expected.expectations] == ["main", "main/f"]
    assert {each.metric for each in expected.expectations} == {"heap: peak"}
    assert failures(expected, models) == []


@cells("unit", ["s", "B", "1", "Joule", "1/s", "10^3 odd %"])
def test_a_value_in_any_unit_can_be_read_again_or_is_left_out(unit):
    odd = Metric("odd", unit)
    models = cpm.fit(
        experiment({"main": 1.7e-5 * POINTS, "main/f": 3e7 * POINTS}, POINTS, metric=odd)
    )
    expected = expectations(models)
    assert len(expected.expectations) >= 2
    assert failures(expected, models) == []


ODD = [
    "main/operator->",
    "main/std::vector<int, {a,b}>::f(int*)",
    "main/~A",
    'main/a "quoted" \\ name',
    "main/tab\there",
    "main/void f(int)",
    "main/void f(long)",
    "main/#pragma = [x]",
    "main/\x7fdel",
]


def test_patterns_name_one_call_path_whatever_it_is_called():
    values = {"main": [1.0] * 5} | {name: [2.0 + k] * 5 for k, name in enumerate(ODD)}
    models = cpm.fit(experiment(values, POINTS))
    tree = models.experiment.tree
    rows = range(len(tree))
    assert [find_one(tree, each) for each in patterns_of(Patterns.of(tree), rows)] == [*rows]
    expected = expectations(models, cover=1.0)
    assert len({each.name for each in expected.expectations}) == len(values) + 1
    assert failures(expected, models) == []


def test_nothing_is_expected_of_call_paths_without_any_model():
    nan = float("nan")
    few = cpm.fit(experiment({"main": [1.0, nan, 1.0, nan, nan], "f": [1.0, 1, 1, -1, 1]}, POINTS))
    with pytest.raises(DataError, match="no call path has a model"):
        baseline(few)


def test_what_may_cost_more_for_all_that_is_known_has_a_line_of_its_own():
    erratic = {"main/erratic": np.array([0.3, 0.02, 0.25, 0.03, 0.2])}
    steady = {"main/steady": 0.21 + 0 * POINTS}
    found = baseline(noisy(3, LAWS | erratic | steady), BaselineSettings(cover=0.96, target=256.0))
    tree = found.fitted.experiment.tree
    names = [tree.path(entry.row) for entry in found.entries if entry.row is not None]
    assert "main/erratic" in names
    assert "main/steady" not in names
    cheapest = min(entry.value for entry in found.entries if "erratic" not in entry.pattern)
    assert found.others <= 1.1 * cheapest
