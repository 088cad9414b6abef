"""Bands of the C library and of NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from callpath_modeler.modeling import Mixture, Models, fit
from callpath_modeler.modeling.constants.bands import ENDS, SCORES
from callpath_modeler.modeling.sums import addable, as_addends
from cells import cells
from implementations import in_numpy
from many_rows import KINDS, many_rows


def models_of(kind: str, rows: int = 150) -> Models:
    points, y = many_rows(KINDS[kind], rows)
    y *= 10.0 ** np.random.default_rng(1).uniform(-290, 280, rows)[:, None, None]
    y[0], y[1], y[2, 0], y[3] = 0.0, np.nan, np.nan, -1.0
    return fit(points, y)


def mixture(parts: int) -> Mixture:
    random = np.random.default_rng(parts)
    shape = 70, parts, 3
    centre = 10.0 ** random.uniform(-100, 100, (70, 1, 3)) * random.lognormal(0, 2, shape)
    spread = 10.0 ** random.uniform(-3, 1, (2, *shape))
    weight = random.dirichlet(np.full(parts, 0.3), 70)
    weight[random.uniform(size=weight.shape) < 0.2] = 0.0
    centre[0], centre[1], centre[2, 0], centre[3, -1] = 0.0, np.nan, np.inf, np.nan
    return Mixture(centre, *spread, weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300))


@cells("kind", KINDS)
def test_bands_are_those_of_numpy(kind: str) -> None:
    models, targets = models_of(kind), np.array([0.7, 3e2, np.inf, 4e6])
    found = models.predict(targets)
    with in_numpy():
        expected = models.predict(targets)
    np.testing.assert_allclose(found.low, expected.low, rtol=1e-9)
    np.testing.assert_allclose(found.high, expected.high, rtol=1e-9)


@cells("others", range(6))
def test_bands_with_any_number_of_runners_up_are_those_of_numpy(others: int) -> None:
    models, targets = models_of("usual"), np.array([3e2, 4e6])
    few = replace(
        models,
        alternative_terms=models.alternative_terms[:, :others],
        alternative_coefficients=models.alternative_coefficients[:, :others],
        alternative_weight=models.alternative_weight[:, :others],
        root=models.root[:, : 1 + others],
    )
    found = few.predict(targets)
    with in_numpy():
        expected = few.predict(targets)
    np.testing.assert_allclose(found.low, expected.low, rtol=1e-9)
    np.testing.assert_allclose(found.high, expected.high, rtol=1e-9)


@cells("kind", KINDS)
def test_mixtures_are_those_of_numpy(kind: str) -> None:
    models, targets = models_of(kind), np.array([3e2, 5e5])
    found = models.mixture(targets)
    with in_numpy():
        expected = models.mixture(targets)
    for name in ("centre", "weight"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)
    for name in ("below", "above"):
        # The smallest values are logarithms of numbers near one.
        wanted = getattr(expected, name)
        np.testing.assert_allclose(getattr(found, name), wanted, rtol=1e-9, atol=1e-15)


def assert_close(found: np.ndarray, expected: np.ndarray, high: np.ndarray, digits: float) -> None:
    """Compare additive numbers [..., columns] of rows; differences are rounded as their terms."""
    known = np.isfinite(expected)
    np.testing.assert_array_equal(found[~known], expected[~known])
    unit = np.minimum(np.nan_to_num(high), 1e150)[..., None]
    scale = np.concatenate([np.repeat(unit, 4, axis=-1), np.repeat(unit**2, 2, axis=-1)], axis=-1)
    scale = np.maximum(scale, np.abs(np.where(known, expected, 0.0)))
    away = np.where(known, found, 0.0) - np.where(known, expected, 0.0)
    assert (np.abs(away) <= digits * scale).all()


@pytest.mark.parametrize("kind", KINDS)
@cells("confidence", [0.3, 0.999])
def test_addends_are_those_of_numpy(kind: str, confidence: float) -> None:
    models = replace(models_of(kind), confidence=confidence)
    targets = np.array([0.7, 3e2, np.inf, 4e6])
    band = models.predict(targets)
    found = addable(models, targets, band)
    with in_numpy():
        expected = addable(models, targets, band)
    # Quantiles between two parts of a mixture that are far apart depend on rounding.
    assert_close(found, expected, band.high, 1e-6)


def test_addends_of_odd_quantiles_are_those_of_numpy() -> None:
    random = np.random.default_rng(7)
    rows = np.cumsum(10.0 ** random.uniform(-3, 3, (300, SCORES)), axis=1)
    rows[:8, -1], rows[8:16, -3:], rows[16:24] = np.inf, np.inf, 0.0
    rows[24:32, :4], rows[32:40], rows[40:48] = 0.0, np.inf, 1e-320
    rows[48:56] *= 1e160
    rows[56:64, 1:] = rows[56:64, :1]
    for correlation in (0.0, 0.25, 1.0):
        found = as_addends(rows, correlation, 0.95)
        with in_numpy():
            expected = as_addends(rows, correlation, 0.95)
        assert_close(found, expected, rows[:, ENDS[1]], 1e-12)


@cells("parts", [1, 2, 5, 15])
@cells("probability", [0.0, 1e-6, 0.025, 0.5, 0.8, 1 - 1e-6, 1.0])
def test_quantiles_and_exceedances_are_those_of_numpy(parts: int, probability: float) -> None:
    made = mixture(parts)
    found = made.quantile(probability)
    exceeding = made.exceedance(found), made.exceedance([1e-5, 0.0, 1e5])
    with in_numpy():
        expected = made.exceedance(found), made.exceedance([1e-5, 0.0, 1e5])
        quantile = made.quantile(probability)
    np.testing.assert_allclose(exceeding, expected, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(found, quantile, rtol=1e-9)


def test_a_row_has_the_same_band_wherever_it_stands() -> None:
    models = models_of("usual")
    rows = np.random.default_rng(0).permutation(len(models))[:100]
    whole, some = models.predict([1e4, 1e5]), models.take(rows).predict([1e5])
    np.testing.assert_array_equal(whole.low[rows, 1:], some.low)
    np.testing.assert_array_equal(whole.high[rows, 1:], some.high)


def test_quantiles_of_one_part_have_all_digits() -> None:
    probability = np.array([1e-300, 1e-12, 1e-6, 0.024, 0.3, 0.5, 0.8, 1 - 1e-6, 1 - 1e-12])
    one = np.ones((1, 1, 1))
    alone = Mixture(one, one, one, np.ones((1, 1)))
    found = [np.log(alone.quantile(float(each))[0, 0]) for each in probability]
    assert found == pytest.approx(special.ndtri(probability), rel=1e-14, abs=1e-15)
