"""Noise of a whole experiment: rows with few repetitions borrow from other rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import fit
from callpath_modeler.modeling.mixture.scaled_rows import (
    Noise,
    noise_of,
    profile_of,
    repetition_stats,
)

POINTS = 2.0 ** np.arange(3, 9)


def rows(spread: npt.ArrayLike, count: int, repetitions: int, seed: int = 0) -> FloatArray:
    random = np.random.default_rng(seed)
    deviate = random.standard_normal((count, len(POINTS), repetitions))
    return 5 * (1 + np.reshape(spread, (-1, 1, 1)) * deviate)


def noise(y: FloatArray) -> Noise:
    return noise_of(repetition_stats(np.sort(y, axis=2), "mean"), 1.0)


def width(y: FloatArray) -> float:
    band = fit(POINTS, y).predict([1024.0])
    return float(((band.high - band.low) / band.value)[0, 0])


def test_the_noise_of_a_row_is_the_pooled_relative_spread_of_its_repetitions() -> None:
    y = rows(0.03, 4, 5) * np.array([1e-6, 1, 10, 1e6])[:, None, None]
    models = fit(POINTS, y)
    relative = y / y.mean(axis=2, keepdims=True)
    pooled = np.sqrt(relative.var(axis=2, ddof=1).mean(axis=1))
    assert models.noise == pytest.approx(pooled)


def test_repetitions_that_differ_by_factors_are_as_noisy_as_their_logarithms() -> None:
    y = np.exp(np.random.default_rng(2).normal(0, 2, (40, 6, 5)))
    # Of five relative deviations none is above four, whatever the values are.
    assert np.median(fit(POINTS, y).noise) == pytest.approx(2, rel=0.1)
    y[:, 2, 0] = 0.0
    assert np.isfinite(fit(POINTS, y).noise).all()


def test_noise_is_unknown_without_repetitions_and_none_where_they_agree() -> None:
    assert np.isnan(fit(POINTS, rows(0.1, 3, 1)).noise).all()
    y = np.repeat(3 + 2 * POINTS, 4).reshape(1, 6, 4) / 7
    models = fit(POINTS, y)
    assert models.noise[0] < 1e-9
    assert models.formula(0) == "0.4286 + 0.2857 * p"
    assert models.predict([1e4]).high[0, 0] == pytest.approx(20003 / 7, rel=1e-3)


def test_a_row_borrows_the_noise_of_the_others() -> None:
    row = rows(0.03, 1, 2, seed=3)
    quiet = np.concatenate([row, rows(0.03, 60, 2, seed=4)])
    loud = np.concatenate([row, rows(0.30, 60, 2, seed=4)])
    assert width(quiet) < 0.7 * width(row)
    assert width(loud) > 1.3 * width(row)


def test_variances_shrink_to_those_of_like_rows_and_scatter_less() -> None:
    y = rows(0.05, 400, 2)
    found = noise(y)
    alone = y.var(axis=2, ddof=1).mean(axis=1) / 25 / 2
    truth = 0.05**2 / 2
    assert np.abs(np.log(found.variance / truth)).max() < np.abs(np.log(alone / truth)).max() / 3
    assert np.median(found.variance) == pytest.approx(truth, rel=0.1)


def test_rows_that_really_differ_keep_their_own_noise() -> None:
    y = rows(np.repeat([0.01, 0.2], 100), 200, 5)
    found = noise(y)
    spread = np.sqrt(found.variance * 5)
    assert np.median(spread[:100]) == pytest.approx(0.01, rel=0.15)
    assert np.median(spread[100:]) == pytest.approx(0.2, rel=0.15)


def test_small_rows_that_are_noisier_borrow_from_small_rows() -> None:
    size = np.geomspace(1e-4, 1e4, 300)
    spread = 0.02 * size**-0.25
    y = rows(spread, 300, 2) * size[:, None, None]
    found = noise(y)
    assert np.abs(np.log(np.sqrt(found.variance * 2) / spread)).mean() < 0.3


def test_a_point_with_more_repetitions_counts_more() -> None:
    y = np.repeat(rows(0.0, 1, 1), 8, axis=2) + 0.2 * np.array([1, -1] * 4)
    y[0, :, 2:] = np.nan
    y[0, 2] = 6 + 0.2 * np.array([1, -1] * 4)
    few = np.array(y)
    few[0, 2, 2:] = np.nan
    many, little = (fit(POINTS, case).values([32.0])[0, 0] for case in (y, few))
    assert many > little


def test_exact_rows_do_not_make_noisy_ones_look_exact() -> None:
    noisy = rows(0.05, 20, 3)
    exact = np.repeat(np.full((60, 6, 1), 7.0), 3, axis=2)
    together = fit(POINTS, np.concatenate([noisy, exact])).predict([1024.0])
    alone = fit(POINTS, noisy).predict([1024.0])
    narrow = (together.high - together.low)[:20, 0] / (alone.high - alone.low)[:, 0]
    assert np.median(narrow) > 0.5


@pytest.mark.parametrize("repetitions", [2, 5])
def test_points_that_are_noisier_in_all_rows_count_less(repetitions: int) -> None:
    random = np.random.default_rng(11)
    spread = 0.02 * np.array([1, 1, 1, 1.5, 2.5])[:, None]
    y = 10 * np.exp(spread * random.standard_normal((300, 5, repetitions)))
    variance = profile_of(repetition_stats(y, "mean"))
    assert variance[3:] / variance[:3].mean() == pytest.approx([1.5**2, 2.5**2], rel=0.15)
    weight = noise_of(repetition_stats(y, "mean"), 1.0).weight.mean(axis=0)
    assert weight[3:] / weight[:3].mean() == pytest.approx([1 / 1.5**2, 1 / 2.5**2], rel=0.3)
    alike = 10 * np.exp(0.02 * random.standard_normal((300, 5, 2)))
    assert (noise_of(repetition_stats(alike, "mean"), 1.0).weight == 1).all()


def test_where_noise_grows_with_scale_bands_hold() -> None:
    p, far = 2.0 ** np.arange(3, 8), 2.0 ** np.array([3, 4, 5, 6, 7, 11])
    laws = [7 + 0 * far, 10 + np.log2(far), 100 + far, np.sqrt(far), 1000 / far, far, far**2]
    truth, held = np.tile(np.stack(laws), (30, 1)), []
    for seed in range(6):
        random = np.random.default_rng(seed)
        own = random.standard_normal((len(truth), 5, 2))
        y = truth[:, :-1, None] * np.exp(0.01 * 2.0 ** np.arange(5)[:, None] * own)
        band = fit(p, y).predict(far[-1:])
        held.append(((band.low[:, 0] <= truth[:, -1]) & (truth[:, -1] <= band.high[:, 0])).mean())
    assert np.mean(held) > 0.93


def test_noisier_points_change_no_weight_of_what_repetitions_agree_on() -> None:
    random = np.random.default_rng(12)
    spread = 0.02 * np.array([1, 1, 1, 2, 4])[:, None]
    noisy = 10 * np.exp(spread * random.standard_normal((60, 5, 3)))
    counted = np.repeat(np.arange(5.0, 10.0)[None, :, None], 3, axis=2)
    found = noise_of(repetition_stats(np.concatenate([noisy, counted]), "mean"), 1.0)
    assert found.weight[:60].std(axis=0).max() > 0
    assert found.weight[60].tolist() == [1.0] * 5
