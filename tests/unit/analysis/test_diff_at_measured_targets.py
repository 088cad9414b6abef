"""Comparison at a target that both experiments measured: measurements decide, not models."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.analysis.answer import rank
from callpath_modeler.analysis.difference import RegressionGate, difference, only_in_one, violations
from synthetic import POINTS
from two_sides import LAWS, P, changed, pair, row, runs

SLOW_AT_8 = changed(main__solve=4.0 * np.where(P == 8, 1.3, 1.0))
"""A step at one scale, which no model contains."""


@pytest.fixture(scope="module")
def stepped():
    return pair(runs(LAWS, 1), runs(SLOW_AT_8, 2))


def same(one, other):
    for name in ("base", "new", "change", "relative", "low", "high", "p", "rate", "mark"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_what_models_cannot_know_is_shown_where_both_ran_it(stepped):
    found = difference(stepped, 8.0)
    solve = row(found, "main/solve")
    assert (found.basis, found.repetitions) == ("measured", (3, 3))
    assert found.at_target.scale == 8.0
    assert found.at_target.mark[:-1].tolist() == [0, 1, 0, 0, 0, 0]
    assert found.at_target.relative[solve] == pytest.approx(0.3, abs=0.05)
    assert found.at_target.low[solve] < 0.3 < found.at_target.high[solve]
    assert found.order[0] == solve
    assert not found.predicted.mark[solve]
    assert not found.measured.mark[solve]


def test_models_answer_if_they_are_asked(stepped):
    found = difference(stepped, 8.0, predicted=True)
    assert (found.basis, found.repetitions) == ("predicted", (0, 0))
    assert found.at_target is found.predicted
    assert not found.at_target.mark[row(found, "main/solve")]
    same(found.predicted, difference(stepped, 8.0).predicted)
    same(found.ran, difference(stepped, 8.0).at_target)


def test_limits_are_held_against_the_runs_of_the_target(stepped):
    (broken,) = [
        breach
        for breach in violations(difference(stepped, 8.0), RegressionGate(0.05), np.arange(6))
        if breach.row is not None
    ]
    assert (broken.scale, broken.amount) == (8.0, pytest.approx(0.3, abs=0.05))
    assert not violations(
        difference(stepped, 8.0, predicted=True), RegressionGate(0.05), np.arange(6)
    )


def test_the_largest_common_scale_is_told_once():
    found = difference(pair(runs(LAWS, 1), runs(changed(main__solve=5.0 + 0 * P), 2)), 32.0)
    assert found.at_target is found.measured
    assert found.answers == (found.measured,)
    broken = violations(found, RegressionGate(0.05), found.order)
    assert [breach.row for breach in broken] == [None, row(found, "main/solve")]


@pytest.mark.parametrize("inclusive", [False, True])
def test_values_are_those_of_rankings(stepped, inclusive):
    found = difference(stepped, 8.0, inclusive=inclusive)
    for side, values in zip(
        stepped.sides, (found.at_target.base, found.at_target.new), strict=True
    ):
        ranking = rank(side.fitted, 8.0, inclusive=inclusive)
        assert ranking.basis == "measured"
        np.testing.assert_allclose(values[:-1], ranking.value)
        assert values[-1] == pytest.approx(ranking.total[0])


@pytest.mark.parametrize("single", [0, 1])
def test_one_run_on_either_side_has_the_noise_of_the_other(single):
    repetitions = [3, 3]
    repetitions[single] = 1
    sides = (runs(LAWS, k, repetitions=count) for k, count in enumerate(repetitions))
    found = difference(pair(*sides), 8.0)
    assert (found.basis, found.repetitions) == ("measured", tuple(repetitions))
    assert found.at_target is found.ran
    assert not found.at_target.mark.any()
    assert np.isfinite(found.at_target.p).all()
    asked = difference(pair(*(runs(LAWS, k) for k in (0, 1))), 8.0, predicted=True)
    assert asked.basis == "predicted"


def test_a_scale_that_one_side_ran_is_predicted():
    small = {path: law[:4] for path, law in LAWS.items()}
    found = difference(pair(runs(LAWS, 1), runs(small, 2, points=POINTS[:4])), 32.0)
    assert found.basis == "predicted"
    assert found.ran is None
    assert found.measured.scale == 16.0


def test_what_does_not_occur_at_the_target_costs_nothing_there():
    rare = changed(main__halo=np.array([2.0, 2.0, np.nan, 2.0, 2.0]))
    found = difference(pair(runs(LAWS, 1), runs(rare, 2)), 8.0)
    halo = row(found, "main/halo")
    assert np.isnan(found.at_target.new[halo])
    assert found.at_target.change[halo] == pytest.approx(-2.0, rel=0.05)
    assert found.predicted.new[halo] == pytest.approx(2.0, rel=0.05)
    assert found.at_target.new[-1] == pytest.approx(np.nansum(found.at_target.new[:-1]))


def test_call_paths_without_a_model_are_compared_where_they_were_run():
    rare = changed(main__io=np.array([np.nan, np.nan, 0.5, np.nan, 0.5]))
    found = difference(pair(runs(LAWS, 1), runs(rare, 2)), 8.0)
    io = row(found, "main/io")
    assert found.left_out[io]
    assert found.at_target.mark[io] == 1
    assert found.at_target.new[io] == pytest.approx(0.5, rel=0.05)


def test_costs_of_what_is_in_one_only_are_those_of_the_target():
    new = changed(main__pack=P)
    found = difference(pair(runs(LAWS, 1), runs(new, 2)), 8.0)
    (cost,) = only_in_one(found).cost
    assert cost == pytest.approx(8.0, rel=0.05)
