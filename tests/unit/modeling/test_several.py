"""Models in several parameters."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import FitStatus, fit, slice_along
from callpath_modeler.modeling.stored import from_arrays, to_arrays
from surfaces import LAWS, N, P, grid, measured


@pytest.fixture(scope="module")
def surfaces():
    points = grid(P, N)
    return fit(points, measured(points, LAWS.values()))


def test_laws_in_two_parameters_are_found(surfaces):
    names = ("p", "n")
    shapes = [
        {surfaces.shapes[code].text(names) for code in codes if code >= 0}
        for codes in surfaces.terms
    ]
    assert shapes == [
        set(),
        {"p^-1 * n^3"},
        {"p * log2(n)"},
        {"p^-1 * n^3", "log2(p) * n^2"},
        {"p^(1/2)", "n^2"},
        {"n^3"},
        {"log2(p)"},
    ]
    assert surfaces.formula(1, names).endswith(" * p^-1 * n^3")


@pytest.mark.parametrize(
    "law",
    [
        lambda p, n: 20 + 0.1 * p**1.5 * n**0.5 * np.log2(n) + 2e-3 * n**3,
        lambda p, n: 20 + 0.02 * p ** (2 / 3) * n * np.log2(n) + 3e-3 * p**2,
    ],
)
def test_a_product_is_found_beside_a_factor_of_another_law(law):
    points = grid(P, N)
    found = slice_along(fit(points, measured(points, [law])), 0, [1.0, 200.0]).predict([2048.0])
    truth = float(law(2048.0, 200.0))
    assert found.value[0, 0] == pytest.approx(truth, rel=0.1)
    assert found.low[0, 0] <= truth <= found.high[0, 0]


def test_what_noise_adds_to_a_sum_of_two_terms_does_not_cost_it_its_law():
    points = grid(P, N)
    values = measured(points, [lambda p, n: 500 * n / p + p] * 20, seed=3)
    # Each call path is fitted alone, so no other one influences the prior.
    rows = [fit(points, row[None]) for row in values]
    found = [slice_along(models, 0, [1.0, 50.0]).predict([2048.0]) for models in rows]
    truth = 500 * 50 / 2048 + 2048
    held = [each.low[0, 0] <= truth <= each.high[0, 0] for each in found]
    assert np.mean(held) >= 0.8
    assert np.mean([models.coefficients[0, 0] == 0 for models in rows]) >= 0.9


def test_far_beyond_both_ends_predictions_are_right_and_the_band_holds(surfaces):
    p, n = 2048.0, 500.0
    truth = np.array([float(law(p, n)) for law in LAWS.values()])
    found = slice_along(surfaces, 0, [1.0, n]).predict([p])
    assert found.value[:, 0] == pytest.approx(truth, rel=0.03)
    assert (found.low[:, 0] <= truth).all()
    assert (truth <= found.high[:, 0]).all()
    assert (found.high[:, 0] / found.low[:, 0] < 1.5).all()


def test_nothing_is_negative_beyond_points_where_work_no_longer_fits_into_a_cache():
    points = grid(P[:3], N[:3])
    models = fit(points, measured(points, [lambda p, n: n / p * np.where(n / p > 1, 2e3, 1e3)]))
    for held in ([P[-1], N[0]], [P[-1], N[-1]], [P[-1], 10 * N[-1]]):
        band = slice_along(models, 0, held).predict([128.0, 2048.0, 1e5])
        assert (band.value > 0).all()
        assert (band.low > 0).all()


def test_units_points_rows_and_repetitions_may_come_in_any_order():
    points = grid(P, N)
    values = measured(points, LAWS.values(), noise=0.1)
    rng = np.random.default_rng(1)
    shuffled, rows = rng.permutation(len(points)), rng.permutation(len(values))
    first = fit(points, values)
    other = fit(points[shuffled], values[rows][:, shuffled, ::-1] * 1e-3)
    assert other.terms.tolist() == first.terms[rows].tolist()
    assert other.coefficients == pytest.approx(first.coefficients[rows] * 1e-3, rel=1e-6)
    assert other.weight == pytest.approx(first.weight[rows], rel=1e-6)


def test_which_parameter_comes_first_does_not_matter():
    points = grid(P, N)
    values = measured(points, LAWS.values())
    one, two = fit(points, values), fit(points[:, ::-1], values)
    target = np.array([[1024.0, 200.0]])
    assert two.values(target[:, ::-1]) == pytest.approx(one.values(target), rel=0.02)


@pytest.mark.parametrize("parameters", [3, 4])
def test_laws_in_three_and_four_parameters_are_modelled(parameters):
    axes = (P[:4], N[:3], (1.0, 2.0, 4.0), (3.0, 6.0, 12.0))[:parameters]
    points = grid(*axes)
    laws = [
        lambda *at: at[1] ** 2 / at[0] + 0.2 * at[-1],
        lambda *at: at[1] ** 2 * at[2] / at[0] + 0.2 * at[-1] * np.log2(at[0]),
        lambda *at: 7 + 0 * at[0],
    ]
    models = fit(points, measured(points, laws, noise=0.01))
    target = [256.0, 100.0, 8.0, 24.0][:parameters]
    truth = np.array([float(law(*target)) for law in laws])
    found = slice_along(models, 0, target).predict(target[:1])
    assert found.value[[0, 2], 0] == pytest.approx(truth[[0, 2]], rel=0.03)
    # With four parameters, the pairs do not include the second law; the band still holds.
    assert (found.low[:, 0] <= truth).all()
    assert (truth <= found.high[:, 0]).all()


@pytest.mark.parametrize(
    "law",
    [
        lambda p, n, m: 20 + p ** (2 / 3) * np.log2(p) ** 2 + 0 * n * m,
        lambda p, n, m: 5 + n**1.5 * np.log2(n) ** 2 * m ** (1 / 3) + 0 * p,
        lambda p, n, m: 9 + 0.2 * p**1.5 + 0.3 * m**2 * np.log2(m) + 0 * n,
    ],
)
def test_of_three_parameters_some_may_have_no_effect(law):
    points = grid(P[:4], N[:4], (2.0, 4.0, 8.0, 16.0))
    at = [512.0, 150.0, 64.0]
    found = slice_along(fit(points, measured(points, [law])), 0, at).predict(at[:1])
    truth = float(law(*np.array(at)))
    assert found.value[0, 0] == pytest.approx(truth, rel=0.05)
    assert found.low[0, 0] <= truth <= found.high[0, 0]


def test_only_shapes_that_a_model_has_are_kept(surfaces):
    used = {*surfaces.terms.ravel().tolist(), *surfaces.alternative_terms.ravel().tolist()}
    assert used - {-1} == set(range(len(surfaces.shapes)))


def test_a_design_that_is_no_grid_is_enough():
    cross = [(p, 30.0) for p in P] + [(32.0, n) for n in N if n != 30.0]
    points = np.array(cross)
    models = fit(points, measured(points, [LAWS["both at once"]], noise=0.01))
    assert models.values([[1024.0, 100.0]])[0, 0] == pytest.approx(
        float(LAWS["both at once"](1024.0, 100.0)), rel=0.1
    )


def test_two_products_that_are_one_at_all_points_are_no_pair():
    points = np.array([(p, 14.0) for p in (1.0, 2.0, 4.0, 8.0, 16.0)] + [(1.0, n) for n in N[1:]])
    values = 50 * (1 + 0.1 * np.random.default_rng(0).uniform(-0.5, 0.5, (20, len(points), 3)))
    models = fit(points, values)
    # At one process, and so wherever n varies, log2(p) is zero: its products with n are all alike.
    assert (models.status == FitStatus.CONSTANT).all()
    band = slice_along(models, 0, [1.0, 800.0]).predict([256.0])
    assert (band.low > 25).all()
    assert (band.high < 100).all()


def test_rows_without_enough_values_have_no_model():
    points = grid(P[:3], N[:3])
    values = np.full((2, 9, 1), np.nan)
    values[1, :, 0] = 3.0
    values[0, :2, 0] = 1.0
    models = fit(points, values)
    assert np.isnan(models.values([[100.0, 100.0]])[0, 0])
    assert models.values([[100.0, 100.0]])[1, 0] == pytest.approx(3.0)


def test_models_are_stored_and_come_back(surfaces):
    arrays, header = to_arrays(surfaces)
    again = from_arrays(arrays, header)
    assert again.shapes == surfaces.shapes
    assert again.points.tolist() == surfaces.points.tolist()
    assert again.formula(3, ("p", "n")) == surfaces.formula(3, ("p", "n"))


@pytest.mark.parametrize(
    ("points", "settings", "words"),
    [
        (np.ones((4, 6)), {}, "2 to 5"),
        (grid((1.0, 2.0), (0.0, 2.0)), {}, "above zero"),
        (grid((1.0, 2.0), (1.0, 1.0)), {}, "differ"),
        (grid((1.0, 2.0), (1.0, 2.0)), {"method": "classic"}, "one parameter"),
    ],
)
def test_points_that_make_no_sense_are_refused(points, settings, words):
    with pytest.raises(ValueError, match=words):
        fit(points, np.ones((1, len(points), 1)), **settings)
