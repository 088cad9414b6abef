"""Laws with a change point in one of several parameters."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from callpath_modeler.modeling import Break, FitStatus, fit, slice_along
from callpath_modeler.modeling.fitting import default_space
from callpath_modeler.modeling.products_of_factors import joint_hypotheses
from callpath_modeler.modeling.stored import from_arrays, to_arrays
from cells import cells

P = (8.0, 16.0, 32.0, 64.0, 128.0)
N = (10.0, 20.0, 30.0, 40.0, 50.0)


def grid(*axes):
    return np.array(list(product(*axes)))


def measured(points, laws, noise=0.02):
    rng = np.random.default_rng(0)
    exact = np.array([law(*points.T) for law in laws])
    return exact[..., None] * (1 + noise * rng.uniform(-0.5, 0.5, (*exact.shape, 3)))


@cells(
    ("formula", "law"),
    [
        ("3 * [p > 90.51] * n", lambda p, n: n * np.where(p > 100, 5, 2)),
        ("3 * [p > 22.63] * n^3", lambda p, n: n**3 * np.where(p > 20, 5, 2)),
        ("3 * p * [n > 24.49]", lambda p, n: p * np.where(n > 25, 5, 2)),
        ("2 * [p <= 45.25] * n", lambda p, n: n * np.where(p > 40, 2, 4)),
        ("5 * min(1, p/32) * n", lambda p, n: 5 * n * np.minimum(p / 32, 1)),
        ("5 * max(1, p/32) * n", lambda p, n: 5 * n * np.maximum(p / 32, 1)),
    ],
)
@cells("noise", [0.0, 0.02])
def test_laws_that_break_along_a_parameter_are_outside_and_named(formula, law, noise):
    points = grid(P, N)
    models = fit(points, measured(points, [law], noise))
    assert models.status[0] == FitStatus.OUTSIDE
    text = models.formula(0, ("p", "n"))
    shape = formula.partition(" * ")[2]
    assert text.endswith(shape)
    if not noise:
        assert formula in text
    at = np.array([16 * P[-1], 4 * N[-1]])
    for axis in range(2):
        band = slice_along(models, axis, at).predict(at[axis])
        truth = law(*at)
        assert band.value[0, 0] == pytest.approx(truth, rel=1e-6 + 2 * noise)
        assert band.low[0, 0] <= truth * (1 + 1e-9)
        assert band.high[0, 0] >= truth * (1 - 1e-9)


def test_where_the_last_run_takes_longer_the_band_holds_what_stays_goes_on_or_is_a_share():
    points = grid(P, N)
    models = fit(points, measured(points, [lambda p, n: n * p * np.where(p > 100, 2, 1)]))
    assert models.status[0] == FitStatus.OUTSIDE
    band = slice_along(models, 0, [1.0, 50.0]).predict([2048.0])
    for truth in (2 * 50 * 2048, 50 * (2048 + 128), 50 * (2048 + 128 * 31)):
        assert 0.99 * band.low[0, 0] <= truth <= 1.01 * band.high[0, 0]
    assert band.high[0, 0] < 3.2 * 50 * 2048


def test_a_break_of_a_slice_is_that_of_its_parameter_and_a_number_elsewhere():
    points = grid(P, N)
    models = fit(points, measured(points, [lambda p, n: n * np.where(p > 100, 5, 2)], noise=0.0))
    assert slice_along(models, 0, [8.0, 10.0]).formula(0, "p") == "20 + 30 * [p > 90.51]"
    assert slice_along(models, 1, [64.0, 10.0]).formula(0, "n") == "2 * n"
    assert slice_along(models, 1, [128.0, 10.0]).formula(0, "n") == "5 * n"
    again = from_arrays(*to_arrays(models))
    assert again.formula(0, ("p", "n")) == models.formula(0, ("p", "n"))


def test_three_values_of_a_parameter_show_no_break():
    points = grid(P[:3], N)
    known = joint_hypotheses(default_space("mixture", several=True), points)
    broken = {
        axis
        for shape in known.shapes
        for axis, factor in enumerate(shape.factors)
        if isinstance(factor, Break)
    }
    assert broken == {1}


@cells("noise", [0.0, 0.02])
@cells("at", [11.0, 40.0, 100.0])
@cells("rises", [False, True])
def test_what_levels_off_between_two_values_stays_there(at, rises, noise):
    points = grid(P, N)

    def law(p, n):
        return n**3 * (np.minimum(1, p / at) if rises else np.maximum(1, at / p))

    models = fit(points, measured(points, [law], noise))
    assert models.status[0] == FitStatus.OUTSIDE
    band = slice_along(models, 0, [1.0, 50.0]).predict([2048.0])
    assert band.value[0, 0] == pytest.approx(50**3, rel=1e-6 + 2 * noise)
    assert band.low[0, 0] <= 50**3 * (1 + 1e-9)
    assert band.high[0, 0] >= 50**3 * (1 - 1e-9)


def test_what_begins_to_grow_between_two_values_is_a_law_of_two_bends():
    points = grid(P, N)
    models = fit(points, measured(points, [lambda p, n: n * np.maximum(1, p / 40)]))
    assert models.status[0] == FitStatus.OUTSIDE
    band = slice_along(models, 0, [1.0, 50.0]).predict([2048.0])
    assert band.value[0, 0] == pytest.approx(50 * 2048 / 40, rel=0.04)
    assert band.low[0, 0] <= 50 * 2048 / 40 <= band.high[0, 0]


def test_what_levels_off_at_the_last_value_is_nothing_alone():
    known = joint_hypotheses(default_space("mixture", several=True), grid(P, N))
    late = [
        code
        for code, shape in enumerate(known.shapes)
        for factor, last in zip(shape.factors, (P[-1], N[-1]), strict=True)
        if isinstance(factor, Break) and factor.at == last and factor.kind in ("floor", "plateau")
    ]
    assert late
    prior = known.log_prior[1 : 1 + 3 * len(known.shapes)].reshape(3, -1)
    assert np.isneginf(prior[:, late]).all()
