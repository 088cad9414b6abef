"""Configurations of several parameters that were measured under other conditions."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import Models, fit, slice_along
from callpath_modeler.modeling.stored import from_arrays, to_arrays

POINTS = np.array(list(product((8.0, 16.0, 32.0, 64.0), (10.0, 20.0, 30.0, 40.0))))
FAR = np.array([1024.0, 160.0])


def laws(points: FloatArray) -> FloatArray:
    """Return the values of 20 call paths, [n, K]."""
    p, n = points.T
    each = [
        7 + 0 * p,
        1e-3 * n**3 / p,
        n**2,
        10 + np.log2(p),
        0.2 * (p - 1) * n,
        3 + p * np.log2(n),
        0.1 * (n**3 / p) ** (2 / 3),
        30 * n / p + 0.1 * p,
        5 + 0.01 * n**3 / p + 2 * np.log2(p),
        0.2 * np.sqrt(p) * n,
    ]
    return np.tile(np.array(each), (2, 1))


TRUTH = laws(FAR[None])[:, 0]


def measured(
    slow: npt.ArrayLike, factor: float, seed: int, repetitions: int = 3, points: FloatArray = POINTS
) -> FloatArray:
    """Return values with 2 % noise, [n, K, R], multiplied by a factor at some points."""
    exact = laws(points) * np.where(slow, factor, 1.0)
    noise = np.random.default_rng(seed).standard_normal((*exact.shape, repetitions))
    return exact[:, :, None] * np.exp(0.02 * noise)


def held(models: Models, truth: FloatArray) -> float:
    band = slice_along(models, 0, FAR).predict(FAR[:1])
    return float(((band.low[:, 0] <= truth) & (truth <= band.high[:, 0])).mean())


@pytest.mark.parametrize(
    ("at", "repetitions"), [((64.0, 40.0), 3), ((16.0, 20.0), 3), ((8.0, 10.0), 1)]
)
def test_one_slow_run_in_a_grid_is_found_and_counts_little(
    at: tuple[float, float], repetitions: int
) -> None:
    slow = (at == POINTS).all(axis=1)
    models = fit(POINTS, measured(slow, 1.4, 1, repetitions))
    assert models.odd_scale == (at, pytest.approx(1.4, rel=0.05))
    errors = np.abs(models.values(FAR[None])[:, 0] / TRUTH - 1)
    assert np.median(errors) < 0.03
    assert held(models, TRUTH) >= 0.9


def test_all_runs_with_the_largest_value_of_a_parameter_may_be_unlike_the_others() -> None:
    models = fit(POINTS, measured(POINTS[:, 0] == 64, 1.4, 2))
    assert models.odd_scale == ((64.0, None), pytest.approx(1.4, rel=0.05))
    # All larger scales may be like this one.
    assert held(models, TRUTH) >= 0.9
    assert held(models, 1.4 * TRUTH) >= 0.9
    assert models.correlation > 0.8
    arrays, header = to_arrays(models)
    assert from_arrays(arrays, header).odd_scale == models.odd_scale


def test_one_slow_run_where_each_parameter_varied_alone_is_found() -> None:
    points = POINTS[(POINTS == (8.0, 10.0)).any(axis=1)]
    slow = (points == (32.0, 10.0)).all(axis=1)
    assert fit(points, measured(slow, 1.4, 3, points=points)).odd_scale == (
        (32.0, 10.0),
        pytest.approx(1.4, rel=0.05),
    )


@pytest.mark.parametrize("seed", range(3))
def test_where_runs_are_alike_none_is_odd(seed: int) -> None:
    values = measured(False, 1.0, seed)
    assert fit(POINTS, values).odd_scale is None
    # The same holds if a fifth of the call paths have separate steps.
    broken = POINTS[:, 0] > 32
    values[::5, broken] *= np.array([1.5, 2.0, 3.0, 1.2])[:, None, None]
    assert fit(POINTS, values).odd_scale is None


def test_the_odd_configuration_is_the_same_in_another_unit_and_order() -> None:
    rng = np.random.default_rng(4)
    values = measured((POINTS == (32.0, 40.0)).all(axis=1), 1.5, 5)
    rows, points = rng.permutation(len(values)), rng.permutation(len(POINTS))
    first = fit(POINTS, values).odd_scale
    assert first is not None
    assert fit(POINTS[points], 1e3 * values[rows][:, points]).odd_scale == first
