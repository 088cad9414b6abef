"""Bands in C against those in numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special

from callpath_modeler.modeling import Mixture, Models, fit
from callpath_modeler.modeling.compiled import library

FloatArray = npt.NDArray[np.float64]
Numpy = Callable[[], AbstractContextManager[None]]

pytestmark = pytest.mark.skipif(not library.compiled(), reason="there is no compiled library")

KINDS = {
    "exact": (5, 1, 0.0),
    "hardly noisy": (8, 5, 0.005),
    "noisy": (5, 5, 0.1),
    "noisier, and not repeated": (12, 1, 0.5),
    "of three points": (3, 3, 0.1),
}


@pytest.fixture
def in_numpy(monkeypatch: pytest.MonkeyPatch) -> Numpy:
    """Return a context in which there is no library."""

    @contextmanager
    def without() -> Iterator[None]:
        with monkeypatch.context() as patched:
            patched.setattr(library, "_library", lambda: None)
            yield

    return without


def models_of(kind: str, rows: int = 150) -> Models:
    count, repetitions, noise = KINDS[kind]
    random = np.random.default_rng(count)
    points = 2.0 ** np.arange(count)
    power, share = random.choice([-1, -0.5, 0, 0.5, 1, 2.5], rows), random.uniform(0, 1, rows)
    law = share[:, None] + (1 - share[:, None]) * (points / points[-1]) ** power[:, None]
    y = law[..., None] * (1 + noise * random.uniform(-1, 1, (rows, count, repetitions)))
    y *= 10.0 ** random.uniform(-300, 290, rows)[:, None, None]
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


@pytest.mark.parametrize("kind", KINDS)
def test_bands_are_those_of_numpy(kind: str, in_numpy: Numpy) -> None:
    models, targets = models_of(kind), np.array([0.7, 3e2, np.inf, 4e6])
    found = models.predict(targets)
    with in_numpy():
        expected = models.predict(targets)
    np.testing.assert_allclose(found.low, expected.low, rtol=1e-9)
    np.testing.assert_allclose(found.high, expected.high, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_mixtures_are_those_of_numpy(kind: str, in_numpy: Numpy) -> None:
    models, targets = models_of(kind), np.array([3e2, 5e5])
    found = models.mixture(targets)
    with in_numpy():
        expected = models.mixture(targets)
    for name in ("centre", "below", "above", "weight"):
        # What is next to nothing comes from the logarithm of a number next to one.
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-15
        )


@pytest.mark.parametrize("parts", [1, 2, 5, 15])
def test_quantiles_and_exceedances_are_those_of_numpy(parts: int, in_numpy: Numpy) -> None:
    made = mixture(parts)
    for probability in (1e-6, 0.025, 0.5, 0.8, 1 - 1e-6):
        found = made.quantile(probability)
        exceeding = made.exceedance(found)
        with in_numpy():
            expected = made.quantile(probability)
            np.testing.assert_allclose(exceeding, made.exceedance(found), rtol=1e-9, atol=1e-300)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_row_has_the_same_band_wherever_it_stands() -> None:
    models = models_of("noisy")
    random = np.random.default_rng(0)
    rows = random.permutation(len(models))[:100]
    whole, some = models.predict([1e4, 1e5]), models.take(rows).predict([1e5])
    np.testing.assert_array_equal(whole.low[rows, 1:], some.low)
    np.testing.assert_array_equal(whole.high[rows, 1:], some.high)


def test_quantiles_of_one_part_have_all_digits() -> None:
    probability = np.array([1e-300, 1e-12, 1e-6, 0.024, 0.3, 0.5, 0.8, 1 - 1e-6, 1 - 1e-12])
    one = np.ones((1, 1, 1))
    alone = Mixture(one, one, one, np.ones((1, 1)))
    found = [np.log(alone.quantile(float(each))[0, 0]) for each in probability]
    assert found == pytest.approx(special.ndtri(probability), rel=1e-14, abs=1e-15)
