"""Slices of models in several parameters along one of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from callpath_modeler.modeling import SearchSpace, fit, slice_along
from callpath_modeler.modeling.model_columns import covariances
from callpath_modeler.modeling.shapes import peaks, shape_table
from surfaces import EXCHANGES, LAWS, N, P, grid, measured


@pytest.fixture(scope="module")
def surfaces():
    points = grid(P, N)
    return fit(points, measured(points, LAWS.values()))


@pytest.mark.parametrize("first", [1.0, 8.0])
def test_slices_of_differences_have_the_error_of_their_product(first):
    points = grid(first * 2.0 ** np.arange(5), N)
    laws = [EXCHANGES[name] for name in list(EXCHANGES)[:5]]
    values = measured(points, laws, noise=0.1)
    models = fit(points, values)
    for p, n in product((2.0, 8.0, 128.0, 2048.0), (10.0, 50.0, 200.0)):
        truth = np.array([law(p, n) for law in laws])
        for axis, target in enumerate((p, n)):
            line = slice_along(models, axis, [p, n])
            band = line.predict([target])
            inside = first <= p <= 16 * first and 10 <= n <= 50
            assert band.value == pytest.approx(models.values([[p, n]]))
            assert (band.low > 0).all()
            if inside:
                assert (band.high / band.low < 1.3).all()
                assert (band.low[:, 0] <= truth).all()
                assert (truth <= band.high[:, 0]).all()
    along_p = slice_along(models, 0, [1.0, 20.0])
    assert [str(along_p.growth(row)) for row in (0, 1)] == ["O(p)", "O(1)"]


@pytest.mark.parametrize("axis", [0, 1])
def test_a_slice_says_what_the_surface_says(surfaces, axis):
    targets = np.array([3.0, 100.0, 1e5])
    at = np.array([70.0, 33.0])
    points = np.tile(at, (len(targets), 1))
    points[:, axis] = targets
    assert slice_along(surfaces, axis, at).values(targets) == pytest.approx(surfaces.values(points))


def test_a_slice_has_the_growth_along_its_parameter(surfaces):
    along_p, along_n = (slice_along(surfaces, axis, [64.0, 30.0]) for axis in (0, 1))
    assert str(along_p.growth(3)) == "O(log p)"
    assert str(along_n.growth(3)) == "O(p^3)"
    assert str(along_p.growth(5)) == "O(1)"
    assert along_p.points.tolist() == list(P)


def test_terms_that_become_one_are_added():
    space = SearchSpace.of([1], [0], max_terms=2)
    points = grid((1.0, 2.0, 4.0, 8.0), (1.0, 3.0, 9.0, 27.0))
    models = fit(points, measured(points, [lambda p, n: 2 * p + p * n], noise=0.0), space=space)
    line = slice_along(models, 0, [1.0, 5.0])
    assert line.formula(0) == "7 * p"
    # Coefficients are correlated: at p = 1, the values are their sum, and so is the covariance.
    whole, found = (
        covariances(each.root[0, 0], each.terms[0], peaks(shape_table(each.shapes, each.points)))
        for each in (models, line)
    )
    change = np.array([0.0, 1.0, 5.0])
    order = models.terms[0]
    assert models.shapes[order[0]].text(("p", "n")) == "p"
    assert found[1, 1] == pytest.approx(change @ whole @ change, rel=1e-5)


def test_values_held_far_outside_widen_the_band():
    points = grid(P, N)
    rough = [lambda p, n: (p * n) ** 0.5 * (1 + 0.3 * np.sin(7 * p + n))] * 8
    models = fit(points, measured(points, rough))
    assert (models.drift > 0).all()
    near, far = (slice_along(models, 0, [1.0, n]) for n in (50.0, 5e5))
    assert (far.spread > near.spread).all()
    widths = [np.log(band.high / band.low).min() for band in (far.predict(P), near.predict(P))]
    assert widths[0] > widths[1]


def test_slices_along_each_parameter_know_what_is_not_known_along_it():
    rng, points = np.random.default_rng(5), grid(P, N)
    powers = rng.uniform(0.3, 2.5, (120, 2))
    laws = [
        lambda p, n, i=i, k=k: 20 + 40 * (p / P[-1]) ** i + 40 * (n / N[-1]) ** k for i, k in powers
    ]
    models = fit(points, measured(points, laws, noise=0.3))
    for axis, at in enumerate(([2048.0, 30.0], [32.0, 200.0])):
        band = slice_along(models, axis, at).predict([at[axis]])
        truth = np.array([law(*at) for law in laws])
        held = (band.low[:, 0] <= truth) & (truth <= band.high[:, 0])
        assert held.mean() >= 0.9


def test_each_parameter_has_runners_up_that_stand_for_all():
    models = fit(grid(P, N), measured(grid(P, N), LAWS.values(), noise=0.3))
    sets = models.alternative_weight.reshape(len(models), 2, -1)
    assert models.weight[:, None] + sets.sum(axis=2) == pytest.approx(1.0, abs=1e-5)
    for axis in range(2):
        slices = slice_along(models, axis, [64.0, 20.0])
        assert (slices.alternative_weight == sets[:, axis]).all()


def test_bands_and_slices_ask_for_what_they_need(surfaces):
    with pytest.raises(ValueError, match="held"):
        surfaces.predict([[1.0, 2.0]])
    with pytest.raises(ValueError, match="2 parameters"):
        surfaces.values([3.0])
    with pytest.raises(ValueError, match="finite and above zero"):
        slice_along(surfaces, 0, [1.0, np.inf])
    with pytest.raises(ValueError, match="nothing to hold"):
        slice_along(slice_along(surfaces, 0, [1.0, 2.0]), 0, [1.0])


def test_where_surfaces_come_to_nothing_slices_have_bands_without_a_warning():
    points = grid(P, N)
    laws = [lambda _, n: n - 10, lambda _, n: np.log2(n / 10), lambda _, n: 1 - 10 / n]
    found = slice_along(fit(points, measured(points, laws * 4)), 0, [1.0, 10.0]).predict(P)
    assert (found.low >= 0).all()
    assert (found.low <= found.value).all()
    assert (found.value <= found.high).all()
