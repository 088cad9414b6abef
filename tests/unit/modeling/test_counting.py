"""Counts by chance, such as samples of a profiler, and counts that are exact."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import Models, fit, learn
from callpath_modeler.modeling.mixture.counting import expected, tick_of
from callpath_modeler.modeling.mixture.scaled_rows import repetition_stats
from callpath_modeler.modeling.stored import from_arrays, to_arrays
from cells import cells
from implementations import in_numpy

POINTS = 4.0 * 2.0 ** np.arange(6)
TARGETS = POINTS[-1] * np.array([2.0, 4.0])
PERIOD = 0.004


def laws(p: FloatArray) -> FloatArray:
    x = p / POINTS[0]
    return np.array([x**0, x**0.5, x, 1 / x])


def samples(repetitions: int, seed: int = 1, rows: int = 120) -> tuple[FloatArray, FloatArray]:
    """Draw samples at all points and targets; expectations [n, m] and counts [n, m, R]."""
    random = np.random.default_rng([seed, repetitions])
    first = np.exp(random.uniform(np.log(0.5), np.log(50), rows))
    mean = laws(np.concatenate([POINTS, TARGETS]))[np.arange(rows) % 4] * first[:, None]
    return mean, random.poisson(mean[..., None], (*mean.shape, repetitions)).astype(float)


@cache
def modelled(repetitions: int, unit: float = 1.0) -> Models:
    return fit(POINTS, unit * samples(repetitions)[1][:, :6])


@cells("repetitions", [1, 3, 5])
def test_bands_hold_new_samples_of_growing_and_of_falling_laws(repetitions: int) -> None:
    new = samples(repetitions)[1][:, 6:].mean(axis=2)
    band = modelled(repetitions).predict(TARGETS)
    there = np.isfinite(band.value[:, 0])
    holds = ((band.low <= new + 1e-9) & (new - 1e-9 <= band.high))[there]
    assert 0.92 <= holds.mean() <= 0.99
    assert holds[np.arange(120)[there] % 4 == 3].mean() >= 0.85


def test_the_grain_is_that_of_one_sample_divided_by_the_repetitions() -> None:
    assert modelled(1).grain == pytest.approx(1, abs=0.2)
    assert modelled(5).grain == pytest.approx(1 / 5, abs=0.03)
    assert modelled(5, PERIOD).grain == pytest.approx(PERIOD / 5, rel=0.1)


def test_samples_and_their_times_have_the_same_models() -> None:
    counts, times = modelled(3).predict(TARGETS), modelled(3, PERIOD).predict(TARGETS)
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(getattr(times, name), PERIOD * getattr(counts, name), rtol=1e-9)


def test_a_band_of_a_small_expectation_reaches_zero_and_ends_at_whole_samples() -> None:
    mean, _ = samples(3)
    band = modelled(3).predict(TARGETS)
    small = mean[:, 6:] < 0.2
    assert small.any()
    assert (band.low[small] == 0).all()
    ends = band.high[band.high > band.value] / modelled(3).grain
    np.testing.assert_allclose(ends, np.rint(ends), atol=1e-6)


def test_repetitions_that_agree_by_chance_are_not_exact() -> None:
    _, y = samples(3)
    y = y[:, :6].copy()
    y[0] = 2.0
    found = fit(POINTS, y)
    assert found.spread[0] > 0.3
    assert found.predict(TARGETS).high[0, 0] > 2.5


def test_the_noise_of_a_value_follows_its_expectation() -> None:
    models = modelled(5)
    # A level of 40 samples, halved and doubled.
    row = int(np.argmin(np.abs(models.unit - 40)))
    at = (models.spread_at(factor * models.unit)[row] ** 2 for factor in (0.5, 1.0, 2.0))
    half, same, double = at
    one = models.grain / models.unit[row]
    assert same == pytest.approx(models.spread[row] ** 2)
    assert (half - same, same - double) == (pytest.approx(one), pytest.approx(one / 2))


def deterministic(rows: int = 70) -> FloatArray:
    random, p = np.random.default_rng(1), POINTS
    sizes = random.integers(20, 5000, rows).astype(float)
    kinds = (
        lambda n: np.ceil(n / p),
        lambda n: np.floor(np.log2(p) * n / 40) + 1,
        lambda n: np.rint(n / 40 * p**0.5),
        lambda n: n + 0 * p,
    )
    return np.array([kinds[k % 4](n) for k, n in enumerate(sizes)])[..., None]


@cells(
    "y",
    [
        deterministic(),
        np.repeat(deterministic(), 3, axis=2),
        # A few counts differ between runs, such as those of messages that are polled for.
        np.concatenate([np.repeat(deterministic(), 3, axis=2), samples(3, rows=10)[1][:, :6]]),
        np.random.default_rng(1).lognormal(0, 0.1, (50, 6, 3)),
        # Samples of a hundredth of a second, with much larger noise than that of sampling.
        np.rint(1e3 * np.random.default_rng(1).lognormal(0, 0.5, (50, 6, 3))) / 100,
    ],
)
def test_other_metrics_do_not_count_by_chance(y: FloatArray) -> None:
    setting = learn(POINTS, y)
    assert setting is not None
    assert setting.counting is None
    assert fit(POINTS, y).grain == 0


@cells(
    ("values", "tick"),
    [
        (np.arange(1.0, 40), 1.0),
        (0.002 * np.arange(2.0, 40), 0.002),
        (np.arange(1.0, 40) / 997, 1 / 997),
        (np.append(np.arange(1.0, 40), 1e9 + 0.5), 1.0),
        (np.sqrt(np.arange(1.0, 40)), 0.0),
        (np.arange(1.0, 10), 0.0),
        (np.zeros(50), 0.0),
        (np.full(50, np.nan), 0.0),
    ],
)
def test_a_tick_divides_all_small_values(values: FloatArray, tick: float) -> None:
    assert tick_of(values) == pytest.approx(tick)


def test_expectations_are_between_the_values_and_never_zero() -> None:
    _, y = samples(1)
    y = np.concatenate([y, np.zeros((1, 8, 1))])[:, :6]
    found = expected(POINTS, repetition_stats(y, "mean"), 1.0)
    assert (found > 0).all()
    some = y.sum(axis=(1, 2)) > 20
    np.testing.assert_allclose(found.sum(axis=1)[some], y.sum(axis=(1, 2))[some], rtol=0.05)


def test_the_compiled_bands_of_counts_are_those_of_the_equations() -> None:
    found = modelled(3).predict(TARGETS)
    with in_numpy():
        equations = modelled(3).predict(TARGETS)
    np.testing.assert_allclose(found.low, equations.low, rtol=1e-9)
    np.testing.assert_allclose(found.high, equations.high, rtol=1e-9)


def test_a_store_keeps_the_grain_and_refuses_one_below_zero() -> None:
    arrays, header = to_arrays(modelled(3))
    assert from_arrays(arrays, header).grain == modelled(3).grain > 0
    with pytest.raises(ValueError, match="grain"):
        from_arrays(arrays, {**header, "grain": -1.0})
    without = {name: value for name, value in header.items() if name != "grain"}
    assert from_arrays(arrays, without).grain == 0
