"""All outputs of a cost use the same centre of its repetitions."""

from __future__ import annotations

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.aggregation import aggregate_for
from callpath_modeler.modeling.noise import CENTRES
from several_laws import LAWS, write_runs
from synthetic import POINTS, experiment

P = np.array(POINTS)


def runs(seed, draw, points=POINTS, repetitions=5):
    """Return runs of growing call paths with noise."""
    random = np.random.default_rng(seed)
    laws = {"main": 1.0, "main/f": 0.5, "main/g": 2.0, "main/h": 5.0}
    shape = (len(points), repetitions)
    return experiment(
        {
            path: (np.array(points)[:, None] * first * draw(random, shape)).tolist()
            for path, first in laws.items()
        },
        points,
    )


def normal(random, shape):
    return 1 + 0.02 * random.standard_normal(shape)


def spiky(random, shape):
    return 1 + 0.01 * random.standard_normal(shape) + 3 * (random.random(shape) < 0.15)


def two_ended(random, shape):
    return random.choice([0.9, 1.1], shape)


@pytest.mark.parametrize(
    ("draw", "chosen"), [(normal, "mean"), (spiky, "min"), (two_ended, "midrange")]
)
def test_excess_work_between_scales_is_that_of_a_ranking_at_the_larger(draw, chosen):
    made = runs(1, draw)
    fitted = cpm.fit(made)
    found = cpm.losses(made)
    assert found.centre == fitted.models.aggregate == chosen
    for pair, (_, scale) in enumerate(found.pairs):
        ranking = cpm.rank(fitted, scale)
        assert ranking.basis == "measured"
        np.testing.assert_array_equal(found.excess.exclusive[:, pair], ranking.excess.exclusive)
        one = cpm.measured_excess(made, "time", "p", POINTS[0], scale)
        np.testing.assert_array_equal(one.exclusive, ranking.excess.exclusive)


@pytest.mark.parametrize("how", CENTRES)
def test_the_centre_asked_for_is_taken(how):
    made = runs(2, spiky)
    ranking = cpm.rank(cpm.fit(made, options=cpm.FitOptions(aggregate=how)), POINTS[-1])
    found = cpm.losses(made, aggregate=how)
    assert found.centre == how
    np.testing.assert_array_equal(found.excess.exclusive[:, -1], ranking.excess.exclusive)


def test_models_in_several_parameters_choose_by_all_runs_and_so_do_their_slices(tmp_path):
    made = cpm.load([write_runs(tmp_path / "runs.csv", LAWS, 1)])
    fitted = cpm.fit(made)
    for n in (10, 40):
        found = cpm.losses(made, held={"n": n})
        assert found.centre == fitted.models.aggregate
        ranking = cpm.rank(fitted.holding({"n": n}), 128)
        np.testing.assert_allclose(found.costs.exclusive[:, -1], ranking.value)


def test_where_there_are_too_few_scales_to_choose_by_it_is_the_median():
    few = runs(3, normal, POINTS[:2])
    assert aggregate_for(few, "time") == "median"
    assert cpm.losses(few).centre == "median"
    one = runs(3, normal, POINTS[:1])
    assert aggregate_for(one, "time") == "median"


def test_sides_of_a_comparison_have_one_centre_whichever_is_modelled():
    before, after = runs(4, normal), runs(5, normal, POINTS[-2:])
    for base, new in ((cpm.fit(before), after), (after, cpm.fit(before)), (before, after)):
        found = cpm.compare(base, new).difference
        assert found.pair.centre == "mean"
    values = after.values("time")[:, -5:].mean(axis=1)
    np.testing.assert_allclose(found.measured.new[:-1], values)
    asked = cpm.compare(after, after, aggregate="min").difference
    np.testing.assert_allclose(asked.measured.base[:-1], after.values("time")[:, -5:].min(axis=1))
