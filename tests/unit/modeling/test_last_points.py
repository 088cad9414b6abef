"""A change in the last run only: it may persist, be an outlier, or continue."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from callpath_modeler.analysis.uncertain import marks_of_trust
from callpath_modeler.modeling import FitStatus, fit, slice_along
from callpath_modeler.modeling.growth import CONSTANT_GROWTH
from callpath_modeler.modeling.products import Break, BreakKind, at_last
from callpath_modeler.modeling.shapes import Shapes
from callpath_modeler.modeling.terms import Term

POINTS = {count: 8 * 2.0 ** np.arange(count) for count in (3, 4, 5, 8)}
LAWS = {
    "constant": lambda p: 10 + 0 * p,
    "shared": lambda p: 1280 / p,
    "growing": lambda p: 10 + 0.1 * p,
}


def repeated(y, noise):
    rng = np.random.default_rng(1)
    return y[..., None] * np.exp(noise * rng.standard_normal((*y.shape, 3)))


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("count", POINTS)
@pytest.mark.parametrize("law", [law for law in LAWS if law != "growing"])
def test_what_is_more_at_the_last_point_only_may_stay_end_or_go_on(law, count, noise):
    p, law = POINTS[count], LAWS[law]
    if count == 3 and law is not LAWS["constant"]:
        pytest.skip("of three points nothing tells a law that falls from its last point")
    more = law(p[0])
    models = fit(p, repeated((law(p) + more * (p == p[-1]))[None], noise))
    assert models.status[0] == FitStatus.OUTSIDE
    at = np.array([2, 16]) * p[-1]
    band = models.predict(at)
    for truth in (law(at), law(at) + more, law(at) + more * (at / p[-2] - 1)):
        assert (band.low[0] <= truth * 1.05).all()
        assert (band.high[0] >= truth * 0.95).all()
    assert marks_of_trust(band.value, band.low, band.high).max() <= 1


def test_all_three_are_named_and_what_stays_is_the_model():
    p = POINTS[5]
    models = fit(p, repeated((10 + 7 * (p == p[-1]))[None], 0.0))
    assert models.formula(0) == "10 + 7 * [p > 90.51]"
    others = [other.formula for other in models.alternatives(0)]
    assert others[:2] == ["10 + 7 * [p = 128]", "10 + 7 * max(0, p/64 - 1)"]


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_what_two_points_show_is_not_doubted(noise):
    p = POINTS[8]
    models = fit(p, repeated((10 + 11 * (p >= p[-3]))[None], noise))
    band = models.predict([16 * p[-1]])
    assert band.value[0, 0] == pytest.approx(21, rel=0.02)
    assert band.high[0, 0] < 22.5
    assert band.low[0, 0] > 19.5


def test_a_law_that_holds_is_not_doubted_at_its_last_point():
    p = POINTS[5]
    laws = np.stack([law(p) for law in LAWS.values()])
    band = fit(p, repeated(laws, 0.01)).predict([2 * p[-1]])
    truth = np.array([law(2 * p[-1]) for law in LAWS.values()])
    assert (band.low[:, 0] <= truth).all()
    assert (band.high[:, 0] >= truth).all()
    assert (band.high[:, 0] < 1.3 * truth).all()


def test_what_was_there_once_is_nothing_beyond():
    once = Break(BreakKind.ONCE, 128.0)
    assert once([64.0, 128, 129, np.inf]).tolist() == [0, 1, 0, 0]
    shared = Term(-1, 0)
    shapes = Shapes([shared, once])
    both, rank = np.array([[0, 1]]), {growth: k for k, growth in enumerate(shapes.growths)}
    assert shapes.growth_rank(both, np.array([[0.0, 3, 4]])) == rank[shared.growth]
    assert shapes.growth_rank(both, np.array([[2.0, 3, 4]])) == rank[CONSTANT_GROWTH]


def test_below_three_points_none_is_the_last_of_others():
    assert at_last(np.array([1.0, 2])) == ()


@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize("law", [lambda n: 0 * n + 70, lambda n: 7 * n], ids=["beside", "times"])
def test_along_one_of_several_parameters_it_is_the_same(law, noise):
    points = np.array(list(product(POINTS[5], 10.0 * np.arange(1, 6))))
    p, n = points.T
    models = fit(points, repeated((10 * n + law(n) * (p == p.max()))[None], noise))
    assert models.status[0] == FitStatus.OUTSIDE
    band = slice_along(models, 0, [1.0, 50.0]).predict([256.0])
    for truth in (500, 500 + law(50), 500 + 3 * law(50)):
        assert band.low[0, 0] <= truth * (1 + 2 * noise)
        assert band.high[0, 0] >= truth * (1 - 2 * noise)
    assert band.high[0, 0] < 500 + 6 * law(50)
    at_most = slice_along(models, 1, [128.0, 1.0]).predict([200.0])
    assert at_most.value[0, 0] == pytest.approx(2000 + law(200), rel=0.05)
