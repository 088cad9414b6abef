"""Models of the C library and of NumPy, from values to predictions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import Models, fit
from implementations import in_numpy
from many_rows import KINDS, many_rows


def assert_same(found: Models, expected: Models) -> None:
    """Check that models agree; rounding decides between shapes that are equal at the points."""
    assert (found.status == expected.status).mean() >= 0.99
    rows, names = range(len(found)), ("p", "n")[: found.axes]
    formulas = (each.formulas(rows, names) for each in (found, expected))
    same = np.array([one == other for one, other in zip(*formulas, strict=True)])
    assert same.mean() >= 0.97
    np.testing.assert_allclose(found.correlation, expected.correlation, atol=1e-6)
    if found.axes > 1:
        return
    targets = np.array([found.points[-1] * 4, found.points[-1] * 64])
    one, other = (each.take(same).predict(targets) for each in (found, expected))
    for name in ("value", "low", "high"):
        mine, theirs = getattr(one, name), getattr(other, name)
        close = np.isclose(mine, theirs, rtol=1e-3, equal_nan=True).all(axis=1)
        assert close.mean() >= 0.97, name


def assert_same_both_ways(points: FloatArray, y: FloatArray) -> None:
    with in_numpy():
        expected = fit(points, y)
    assert_same(fit(points, y), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_models_are_the_same_in_c_and_in_numpy(kind: str) -> None:
    assert_same_both_ways(*many_rows(KINDS[kind], 100, seed=11))


def test_models_of_counts_are_the_same_in_c_and_in_numpy() -> None:
    points = 2.0 ** np.arange(2, 9)
    random = np.random.default_rng(5)
    counts = np.round(random.uniform(1, 100, (100, 1)) * points ** random.choice([0, 1], (100, 1)))
    assert_same_both_ways(points, counts[..., None])


def test_models_in_two_parameters_are_the_same_in_c_and_in_numpy() -> None:
    grid = np.array(list(product((8.0, 16, 32, 64), (10.0, 20, 30, 40))))
    p, n = grid.T
    laws = np.array([n**3 / p, 3 + 0 * p, n * np.log2(p), n**2 / p + 0.2 * p, 5 + np.sqrt(p)])
    noise = np.random.default_rng(3).standard_normal((*laws.shape, 3))
    assert_same_both_ways(grid, laws[..., None] * np.exp(0.05 * noise))
