"""Integers: exact laws stay exact, and rounded values are known to a half."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import FitStatus, Models, fit
from callpath_modeler.modeling.mixture.scaled_rows import data_of, noise_of, repetition_stats
from cells import cells

DOUBLED = 8 * 2.0 ** np.arange(5)
NODES = np.array([32, 48, 64, 96, 128.0])


def fitted(points: FloatArray, *rows: npt.ArrayLike) -> Models:
    return fit(points, np.array(rows, dtype=float)[..., None])


def band(models: Models, target: float) -> tuple[FloatArray, FloatArray]:
    predicted = models.predict([target])
    return predicted.low[:, 0], predicted.high[:, 0]


@cells(
    "law",
    [
        lambda p: p - 1,
        lambda p: 1 + 3 * np.log2(p),
        lambda p: 5 * p,
        lambda p: 896 / p,
        lambda p: p * np.log2(p),
        lambda p: 7 + 2 * np.log2(p),
    ],
)
def test_exact_laws_of_small_numbers_stay_exact(law) -> None:  # type: ignore[no-untyped-def]
    models = fitted(DOUBLED, law(DOUBLED))
    low, high = band(models, 2048)
    np.testing.assert_allclose([low, high], law(2048.0), rtol=1e-5)
    assert models.status.tolist() == [FitStatus.OK]


@pytest.mark.parametrize("tick", [1.0, 0.01])
def test_what_is_rounded_is_not_taken_for_what_meets_it_by_chance(tick: float) -> None:
    low, high = band(fitted(NODES, tick * np.array([23, 24, 24, 25, 26])), 2048)
    assert low < 31 * tick < high
    assert high / low > 1.1


@pytest.mark.parametrize("work", [1329, 3671, 455 * 8])
def test_blocks_that_are_rounded_up_are_shared_work(work: int) -> None:
    models = fitted(DOUBLED, np.ceil(work / DOUBLED))
    low, high = band(models, 512)
    assert low < np.ceil(work / 512) < high + 1
    assert models.predict([512]).value[0, 0] < 2 * work / 512


def test_what_is_rounded_is_within_the_model_class_and_held() -> None:
    random = np.random.default_rng(1)
    level, slope = random.uniform(5, 50, 40), random.uniform(0.1, 0.4, 40)
    exact = [each * (1 + more * np.log2(NODES)) for each, more in zip(level, slope, strict=True)]
    models = fitted(NODES, *np.round(exact))
    low, high = band(models, 2048)
    truth = np.round(level * (1 + slope * 11))
    # A law that fits exactly may differ from the true one by an integer.
    assert ((low - 1 <= truth) & (truth <= high + 1)).mean() >= 0.95
    assert (models.status == FitStatus.OUTSIDE).mean() < 0.2


def rounding_of(rows: npt.ArrayLike) -> FloatArray:
    y = np.array(rows, dtype=float)
    data, unit = data_of(DOUBLED[: y.shape[1]], noise_of(repetition_stats(y, "mean"), 1.0))
    return data.rounding * unit**2


def test_small_whole_numbers_that_differ_may_be_rounded() -> None:
    rows = [
        [[8], [5], [3]],
        [[8], [8], [8]],
        [[8], [5.000001234], [3]],
        [[8001], [5000], [3000]],
        [[8001], [500], [0]],
    ]
    np.testing.assert_allclose(rounding_of(rows), np.array([1, 0, 0, 0, 1]) / 12)


def test_multiples_of_a_number_are_small_whole_numbers_of_it() -> None:
    """75, 150, 150 contain no more information on a law than 1, 2, 2."""
    rows = [[[75], [150], [150]], [[8000], [5000], [3000]], [[7.5], [3.0], [0]]]
    np.testing.assert_allclose(12 * rounding_of(rows), np.array([75, 1000, 1.5]) ** 2)
    steps = fitted(DOUBLED, 75 * np.ceil(np.log2(DOUBLED) / 4))
    low, high = band(steps, 256)
    assert low <= 150 <= high
    assert high >= 225


def test_equal_times_of_a_few_ticks_are_known_to_half_a_tick() -> None:
    times, counts = fitted(DOUBLED, [2e-6] * 5), fitted(DOUBLED, [2.0] * 5)
    low, high = band(times, 256)
    assert low < 1.5e-6
    assert high > 2.5e-6
    low, high = band(counts, 256)
    np.testing.assert_allclose([low, high], 2, rtol=1e-5)


def test_times_with_few_digits_are_known_to_half_a_digit() -> None:
    rows = [[[0.5], [0.3], [0.1]], [[0.08], [0.02], [0.01]], [[3.01], [1.0], [0.25]]]
    np.testing.assert_allclose(12 * rounding_of(rows), [1e-2, 1e-4, 1e-4])


def test_whole_numbers_whose_repetitions_differ_are_noisy_instead() -> None:
    rows = [[[8, 9], [5, 5], [3, 4]], [[8, 8], [5, 5], [3, 3]]]
    np.testing.assert_allclose(rounding_of(rows), np.array([0, 1]) / 12)


def test_how_rows_are_ordered_does_not_matter() -> None:
    rows = [[23, 24, 24, 25, 26], [31, 47, 63, 95, 127], [6, 6, 6, 6, 6], [84, 56, 42, 28, 21]]
    one, other = fitted(NODES, *rows), fitted(NODES, *rows[::-1])
    for found, expected in zip(band(one, 1024), band(other, 1024), strict=True):
        np.testing.assert_allclose(found, expected[::-1], rtol=1e-9)
