"""Sums with one factor of each of three parameters or more."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from callpath_modeler.modeling import FitStatus, SearchSpace, fit, slice_along
from callpath_modeler.modeling.constants.learning import LEAST_IN_SUMS
from callpath_modeler.modeling.fitting import default_space
from callpath_modeler.modeling.several.product_space import product_space
from callpath_modeler.modeling.several.hypotheses import joint_hypotheses
from callpath_modeler.modeling.stored import from_arrays, to_arrays

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


@pytest.mark.parametrize("design", ["grid", "cross", "corner"])
@pytest.mark.parametrize("formula", LAWS)
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
