"""Sums of products of factors of three parameters or more."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from callpath_modeler.errors import UsageError
from callpath_modeler.modeling import FitStatus, SearchSpace, fit, slice_along
from callpath_modeler.modeling.constants.noise import LEAST_IN_SUMS
from callpath_modeler.modeling.fitting import default_space
from callpath_modeler.modeling.mixture import row_models
from callpath_modeler.modeling.product_sums import partitions, product_space
from callpath_modeler.modeling.products_of_factors import joint_hypotheses
from callpath_modeler.modeling.stored import from_arrays, to_arrays
from cells import cells

P, N = (8.0, 16.0, 32.0, 64.0), (10.0, 20.0, 30.0, 40.0)
M, Q = (2.0, 4.0, 8.0, 16.0), (5.0, 9.0, 20.0)
FEW = SearchSpace.of(["-1", "1/2", 1, "3/2", 2], [0, 1], max_terms=2)
"""Enough terms for products that fit equally well, and few enough for many tests."""
NAMES = ("p", "n", "m", "q")


def grid(*axes):
    return np.array(list(product(*axes)))


def cross(*axes, corner=False):
    """Vary each parameter while the others stay at their smallest values."""
    least = [axis[0] for axis in axes]
    points = [least]
    for place, axis in enumerate(axes):
        points += [[*least[:place], value, *least[place + 1 :]] for value in axis[1:]]
    if corner:
        points.append([axis[-1] for axis in axes])
    return np.array(points)


def measured(points, law, noise):
    rng = np.random.default_rng(2)
    exact = law(*points.T)[None, :, None]
    return exact * (1 + noise * rng.uniform(-0.5, 0.5, (1, len(points), 3)))


def sum_of_three(p, n, m):
    return 30 * p + n**2 + 50 * m * np.log2(m)


LAWS = {
    "30 * p + 50 * m * log2(m) + 1 * n^2": sum_of_three,
    "100 + 5 * p + 7 * n + 9 * m": lambda p, n, m: 100 + 5 * p + 7 * n + 9 * m,
    "5000 * p^-1 + 7 * n + 9 * m": lambda p, n, m: 5000 / p + 7 * n + 9 * m,
}


@cells("design", ["grid", "cross", "corner"])
@cells("formula", LAWS)
def test_sums_of_three_parameters_are_found_where_pairs_of_products_fit_as_well(formula, design):
    points = grid(P, N, M) if design == "grid" else cross(P, N, M, corner=design == "corner")
    law = LAWS[formula]
    models = fit(points, measured(points, law, 0.0), space=FEW)
    assert models.formula(0, NAMES[:3]) == formula
    assert models.status[0] == FitStatus.OK
    far = 16 * points.max(axis=0)
    assert models.values(far[None])[0, 0] == pytest.approx(law(*far))
    for axis in range(3):
        band = slice_along(models, axis, far).predict(far[axis])
        assert band.value[0, 0] == pytest.approx(law(*far))
        assert band.low[0, 0] <= law(*far) * (1 + 1e-9)
        assert band.high[0, 0] >= law(*far) * (1 - 1e-9)


def test_with_noise_a_sum_is_predicted_and_its_band_holds():
    points = cross(P, N, M)
    models = fit(points, measured(points, sum_of_three, 0.02))
    far = 4 * points.max(axis=0)
    assert models.values(far[None])[0, 0] == pytest.approx(sum_of_three(*far), rel=0.05)
    for axis in range(3):
        band = slice_along(models, axis, far).predict(far[axis])
        assert band.low[0, 0] < sum_of_three(*far) < band.high[0, 0]
        assert (slice_along(models, axis, far).coefficients[:, 1:] >= 0).all()


def test_sums_of_four_parameters_have_four_terms():
    points = cross(P, N, M, Q)
    exact = measured(points, lambda p, n, m, q: 5 * p + 7 * n + 9 * m + q, 0.0)
    models = fit(points, exact, space=FEW)
    assert models.formula(0, NAMES) == "5 * p + 7 * n + 9 * m + 1 * q"
    slices = slice_along(models, 3, [64.0, 40.0, 16.0, 5.0])
    assert slices.formula(0, "q") == "744 + 1 * q"


@pytest.mark.parametrize(
    ("formula", "law"),
    [
        ("1 * p * n * m", lambda p, n, m: p * n * m),
        ("50 * m + 1 * p * n", lambda p, n, m: 50 * m + p * n),
        ("1000 + 1 * p * n", lambda p, n, m: 1000 + p * n + 0 * m),
    ],
)
def test_products_that_vary_one_parameter_at_a_time_are_no_sums(formula, law):
    points = cross(P, N, M)
    assert fit(points, measured(points, law, 0.0), space=FEW).formula(0, NAMES[:3]) == formula


def test_what_is_known_of_a_sum_is_known_of_its_slices_and_stored():
    points = cross(P, N, M)
    models = fit(points, measured(points, sum_of_three, 0.1), space=FEW)
    sets = models.alternative_weight.reshape(1, 3, -1)
    assert models.weight[:, None] + sets.sum(axis=2) == pytest.approx(1.0, abs=1e-5)
    held = np.array([100.0, 70.0, 5.0])
    for axis in range(3):
        slices = slice_along(models, axis, held)
        assert slices.terms.shape == (1, 2)
        assert slices.predict(held[axis]).value == pytest.approx(models.values(held[None]))
    again = from_arrays(*to_arrays(models))
    assert again.formula(0, NAMES[:3]) == models.formula(0, NAMES[:3])


def test_an_error_of_each_term_widens_the_band_along_any_parameter():
    points = cross(P, N, M)
    models = fit(points, measured(points, LAWS["100 + 5 * p + 7 * n + 9 * m"], 0.3), space=FEW)
    near, far = [64.0, 10.0, 2.0], [64.0, 10.0, 200.0]
    widths = []
    for held in (near, far):
        band = slice_along(models, 0, held).predict(64.0)
        widths.append(band.high[0, 0] - band.low[0, 0])
    assert widths[1] > 2 * widths[0]


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_rows_that_are_such_sums_have_no_errors_in_common(noise):
    points = cross(P, N, M, corner=True)
    laws = [(1 + k) * sum_of_three(*points.T) for k in range(12)]
    rng = np.random.default_rng(3)
    values = np.array(laws) * np.exp(noise * rng.standard_normal((12, len(points))))
    assert fit(points, values[:, :, None], space=FEW).correlation == LEAST_IN_SUMS


def test_two_parameters_and_spaces_of_one_term_have_no_such_sums():
    space = default_space("mixture", several=True)
    assert product_space(space, joint_hypotheses(space, grid(P, N)), grid(P, N)) is None
    single = SearchSpace.of([1, 2], [0, 1], max_terms=1)
    models = fit(grid(P, N, M), measured(grid(P, N, M), sum_of_three, 0.0), space=single)
    assert models.terms.shape == (1, 2)


LINES = {
    "p": (8.0, 16.0, 32.0, 64.0, 128.0),
    "n": (10.0, 20.0, 30.0, 40.0, 50.0),
    "k": (4.0, 6.0, 8.0, 10.0, 12.0),
    "q": (2.0, 4.0, 8.0, 16.0, 32.0),
    "r": (3.0, 5.0, 7.0, 9.0, 11.0),
}


def sparse(count, *, inner=True):
    """Return a line of each parameter, and one inner point."""
    axes = list(LINES.values())[:count]
    points = cross(*axes)
    return np.vstack([points, [axis[1] for axis in axes]]) if inner else points


PRODUCTS = {
    "half powers and a logarithm": lambda p, n, k: 50 + 2.5 * np.sqrt(p * k) * n * np.log2(n),
    "a third": lambda p, n, k: 500 + 0.34 * p * np.sqrt(n) * k ** (1 / 3),
    "quarters and a logarithm": lambda p, n, k: 100 + 40 * p**0.75 * np.log2(n) * k,
    "a product and a term": lambda p, n, k: 7 + 0.3 * p ** (4 / 5) * k**2 + 90 * np.log2(n) ** 2,
    "shared work": lambda p, n, k: 3 + n ** (7 / 3) * k / p,
    "small beside others": lambda p, n, k: 60 * p**2.5 * n**2 * np.log2(n) + 0.2 * k**2.5,
}


@cells("name", PRODUCTS)
def test_lines_and_one_inner_point_give_exact_products_of_three_parameters(name):
    points, law = sparse(3), PRODUCTS[name]
    models = fit(points, measured(points, law, 0.0))
    for far in (np.array([256.0, 60.0, 14.0]), 2 * points.max(axis=0)):
        assert models.values(far[None])[0, 0] == pytest.approx(law(*far), rel=1e-6)
        band = slice_along(models, 0, far).predict(far[0])
        assert band.low[0, 0] <= law(*far) * (1 + 1e-6)
        assert band.high[0, 0] >= law(*far) * (1 - 1e-6)


@cells("name", [name for name in PRODUCTS if name != "small beside others"])
def test_with_little_noise_such_products_are_close_and_their_bands_hold(name):
    points, law = sparse(3), PRODUCTS[name]
    models = fit(points, measured(points, law, 0.01))
    far = np.array([256.0, 60.0, 14.0])
    band = slice_along(models, 0, far).predict(far[0])
    assert band.value[0, 0] == pytest.approx(law(*far), rel=0.05)
    assert 0.99 * band.low[0, 0] <= law(*far) <= 1.01 * band.high[0, 0]


def test_an_inner_point_decides_whether_terms_are_multiplied_and_else_the_band_holds_both():
    # Along all lines the product is the same as 30 p + n^2 + 50 m log2(m).
    def product_of_two(p, n, m):
        return 100 + 30 * p + n**2 * m * np.log2(m) / 2

    far = np.array([128.0, 80.0, 32.0])
    for law, other in ((sum_of_three, product_of_two), (product_of_two, sum_of_three)):
        open_, decided = (
            fit(points, measured(points, law, 0.0), space=FEW)
            for points in (cross(P, N, M), cross(P, N, M, corner=True))
        )
        band = slice_along(open_, 1, far).predict(far[1])
        assert band.low[0, 0] <= law(*far) * (1 + 1e-9)
        assert band.high[0, 0] >= other(*far) * (1 - 1e-9) or other(*far) < law(*far)
        assert band.high[0, 0] / band.low[0, 0] > 10
        band = slice_along(decided, 1, far).predict(far[1])
        assert band.value[0, 0] == pytest.approx(law(*far))
        assert band.high[0, 0] / band.low[0, 0] < 1.001


def test_laws_of_five_parameters_are_exact():
    points = sparse(5)

    def law(p, n, k, q, r):
        return 20 + 3 * p ** (2 / 3) * q**1.5 + 0.7 * n**2 * k * np.log2(r)

    models = fit(points, measured(points, law, 0.0))
    far = 2 * points.max(axis=0)
    assert models.values(far[None])[0, 0] == pytest.approx(law(*far), rel=1e-6)


def test_values_that_are_missing_leave_exact_laws_exact():
    points, law = sparse(3), PRODUCTS["a product and a term"]
    values = measured(points, law, 0.0)
    values[0, [2, 6]] = np.nan
    far = 2 * points.max(axis=0)
    assert fit(points, values).values(far[None])[0, 0] == pytest.approx(law(*far), rel=1e-6)


def test_without_lines_there_are_no_sums_of_products():
    rng = np.random.default_rng(4)
    points = np.stack([rng.permutation(np.arange(8.0, 24.0)) for _ in range(3)], axis=1)
    space = default_space("mixture", several=True)
    assert product_space(space, joint_hypotheses(space, points), points) is None
    assert fit(points, measured(points, sum_of_three, 0.01)).status[0] == FitStatus.OK


def test_all_divisions_into_groups_are_tried():
    assert [len(list(partitions(range(count)))) for count in range(6)] == [1, 1, 2, 5, 15, 52]
    assert set(partitions((0, 2))) == {((0,), (2,)), ((0, 2),)}


def test_each_product_has_a_number_of_its_own():
    points = sparse(3)
    space = product_space(FEW, joint_hypotheses(FEW, points), points)
    sizes = [len(axis.factors) for axis in space.axes]
    positions = np.array(list(product(*map(range, sizes))))
    numbers = space.numbers(positions)
    assert numbers[0] == -1
    assert len(set(numbers.tolist())) == len(positions)
    assert numbers[1:].min() >= space.start
    assert (space.positions(numbers[1:]) == positions[1:]).all()


def test_more_shapes_than_columns_can_number_cost_the_rarest_alternatives_only(monkeypatch):
    points = sparse(3)
    laws = list(PRODUCTS.values())
    values = np.concatenate([measured(points, law, 0.2) for law in laws])
    whole = fit(points, values)
    most = len(whole.shapes) // 2
    monkeypatch.setattr(row_models, "MOST_SHAPES", most)
    fewer = fit(points, values)
    assert len(fewer.shapes) < most
    assert fewer.weight == pytest.approx(whole.weight)
    assert [fewer.formula(row, NAMES[:3]) for row in range(len(laws))] == [
        whole.formula(row, NAMES[:3]) for row in range(len(laws))
    ]


def test_models_of_more_shapes_than_columns_can_number_are_refused(monkeypatch):
    points = sparse(3)
    values = np.concatenate([measured(points, law, 0.0) for law in PRODUCTS.values()])
    monkeypatch.setattr(row_models, "MOST_SHAPES", 3)
    with pytest.raises(UsageError, match="more than 3 different products"):
        fit(points, values)


@cells("law", ["peak", "step"])
def test_values_that_no_sum_of_positive_terms_fits_have_other_models(law):
    """Every sum had the evidence zero there, which ended in an IndexError."""
    points = grid(
        (2.0, 4.0, 8.0, 16.0, 32.0, 64.0), [2.0**k for k in range(16, 25, 2)], (6, 16, 22)
    )
    p, n, m = points.T
    exact = (
        np.where(m == 16, n / p, 1e-3) if law == "peak" else np.where(m < 22, 1e-6, 1e-9 * n / p)
    )
    noise = np.exp(0.05 * np.random.default_rng(0).standard_normal((1, len(points), 1)))
    models = fit(points, exact[None, :, None] * noise, space=FEW)
    assert models.status[0] == FitStatus.OK
    assert np.isfinite(models.values(points)).all()
