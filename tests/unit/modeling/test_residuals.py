"""Residuals of models: runs that were slower as a whole, and noisier scales."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import empirical_bayes, fit
from callpath_modeler.modeling.constants.noise import EXACT_VARIANCE
from callpath_modeler.modeling.mixture.residuals import error_correlation, noise_by_scale
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows
from cells import cells

POINTS = 2.0 ** np.arange(3, 8)


def rows(error: FloatArray, points: FloatArray = POINTS) -> tuple[ScaledRows, FloatArray]:
    """Return rows with given errors, [n, K], and their fits."""
    fitted = np.broadcast_to(0.5 + 0.4 * np.arange(error.shape[1]) / error.shape[1], error.shape)
    here = ~np.isnan(error)
    values = np.where(here, fitted * (1 + np.nan_to_num(error)), 0.0)
    of_noise = np.full(len(error), 1e-4)
    noise = of_noise, of_noise + 4, 0 * of_noise
    return ScaledRows(points, values, here.astype(float), *noise), np.array(fitted)


def correlation_of(data: ScaledRows, fitted: FloatArray) -> float:
    return error_correlation(data, fitted, noise_known=True)


def normal(shape: tuple[int, ...], seed: int) -> FloatArray:
    return 0.05 * np.random.default_rng(seed).standard_normal(shape)


@cells("seed", range(6))
def test_independent_errors_are_not_correlated(seed: int) -> None:
    assert correlation_of(*rows(normal((200, 5), seed))) < 0.01


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_what_all_rows_have_in_common_is_their_correlation(share: float) -> None:
    found = []
    points = 2.0 ** np.arange(9)
    for seed in range(20):
        common, own = normal((1, 9), seed), normal((200, 9), seed + 100)
        error = np.sqrt(share) * common + np.sqrt(1 - share) * own
        found.append(correlation_of(*rows(error, points)))
    assert np.mean(found) == pytest.approx(share, abs=0.12)


def test_growth_that_was_missed_is_no_matter_of_runs() -> None:
    trend = 0.1 * (np.log(POINTS) - np.log(POINTS).mean())
    assert correlation_of(*rows(trend + normal((100, 5), 7))) < 0.02


def test_errors_are_compared_where_every_point_was_measured() -> None:
    error = np.tile(normal((1, 5), 8), (60, 1))
    assert correlation_of(*rows(error)) > 0.8
    error[:, 2] = np.nan
    assert correlation_of(*rows(error)) == 0


def test_rows_that_are_met_exactly_say_nothing() -> None:
    assert correlation_of(*rows(np.zeros((50, 5)))) == 0
    assert correlation_of(*rows(normal((50, 2), 9), POINTS[:2])) == 0
    assert correlation_of(*rows(normal((1, 5), 9))) == 0


def test_what_is_counted_alike_in_every_run_is_off_its_law_for_other_reasons() -> None:
    data, fitted = rows(np.tile(normal((1, 5), 8), (60, 1)))
    counted = replace(data, variance=np.full(60, EXACT_VARIANCE))
    assert error_correlation(counted, fitted, noise_known=True) == 0
    assert error_correlation(counted, fitted, noise_known=False) > 0.8


def test_errors_of_two_parameters_are_compared_too() -> None:
    grid = np.stack(np.meshgrid(2.0 ** np.arange(4), [10.0, 20, 40]), axis=-1).reshape(-1, 2)
    common, own = normal((1, 12), 10), normal((80, 12), 11)
    assert correlation_of(*rows(own, grid)) < 0.01
    assert correlation_of(*rows(common + 0.1 * own, grid)) > 0.8


@pytest.mark.parametrize("repetitions", [1, 5])
def test_bands_hold_where_runs_were_slower_as_a_whole(repetitions: int) -> None:
    p, far = POINTS, np.append(POINTS, 2048.0)
    laws = [7 + 0 * far, np.log2(far), 10 + np.log2(far), far, 100 + far, np.sqrt(far), far**2]
    laws += [1000 / far, 0.3 + 1000 / far, far ** (1 / 3), 100 + 3 * np.log2(far), 1000 / far**0.5]
    truth = np.tile(np.stack(laws), (16, 1))
    held = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        slower = np.exp(0.05 * random.standard_normal((1, len(p), 1)))
        own = np.exp(0.02 * random.standard_normal((len(truth), len(p), repetitions)))
        band = fit(p, truth[:, :-1, None] * slower * own).predict(far[-1:])
        held.append(((band.low[:, 0] <= truth[:, -1]) & (truth[:, -1] <= band.high[:, 0])).mean())
    assert np.mean(held) > 0.945
    assert min(held) > 0.55


def test_what_one_law_beyond_the_hypotheses_explains_takes_no_witnesses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    laws = np.stack([7 + 0 * POINTS, np.log2(POINTS), np.sqrt(POINTS)])
    noise = np.random.default_rng(12).standard_normal((30, len(POINTS), 3))
    values = np.tile(laws, (10, 1))[:, :, None] * np.exp(0.05 * noise)
    probable = {}
    for told in (0.0, 0.5, 0.9):
        monkeypatch.setattr(empirical_bayes, "error_correlation", lambda *_, t=told, **__: t)
        models = fit(POINTS, values)
        assert models.correlation == max(told, empirical_bayes.LEAST_IN_SUMS)
        probable[told] = models.weight
    np.testing.assert_array_equal(probable[0.5], probable[0.0])
    assert not np.allclose(probable[0.9], probable[0.0])


GROWING = 0.01 * 2.0 ** np.arange(5)


@cells("seed", range(6))
def test_points_of_the_same_noise_are_the_same(seed: int) -> None:
    found = noise_by_scale(*rows(normal((200, 5), seed)), 0.0)
    assert np.ptp(np.log2(found)) < 1


@pytest.mark.parametrize("growth", [-2.0, 1.0, 2.0])
def test_noise_that_grows_with_scale_is_seen_without_repetitions(growth: float) -> None:
    spread = 0.02 * 2.0 ** (growth / 2 * np.arange(-2, 3))
    slopes = []
    for seed in range(10):
        error = spread * np.random.default_rng(seed).standard_normal((200, 5))
        found = noise_by_scale(*rows(error), 0.0)
        assert np.log(found).mean() == pytest.approx(0, abs=1e-9)
        slopes.append(np.polyfit(np.log2(POINTS), np.log2(found), 1)[0])
    assert np.mean(slopes) == pytest.approx(growth, abs=0.25)


def test_few_or_correlated_rows_and_points_do_not_tell_how_noise_grows() -> None:
    error = GROWING * np.random.default_rng(1).standard_normal((200, 5))
    data, fitted = rows(error)
    assert np.ptp(noise_by_scale(data, fitted, 0.0)) > 1
    assert (noise_by_scale(data, fitted, 0.2) == 1).all()
    assert (noise_by_scale(*rows(error[:15]), 0.0) == 1).all()
    assert (noise_by_scale(*rows(error[:, 2:], POINTS[2:]), 0.0) == 1).all()


def test_errors_of_one_size_in_one_unit_and_another_tell_the_same() -> None:
    data, fitted = rows(GROWING * np.random.default_rng(2).standard_normal((200, 5)))
    shuffled = np.random.default_rng(3).permutation(200)
    other = noise_by_scale(data.take(shuffled), fitted[shuffled], 0.0)
    np.testing.assert_allclose(other, noise_by_scale(data, fitted, 0.0), rtol=1e-9)


def test_totals_are_sane_where_single_runs_are_noisier_the_larger_they_are() -> None:
    far = np.append(POINTS, 2048.0)
    laws = [7 + 0 * far, 7 + 0 * far, 10 + np.log2(far), 5 + far / 32, 20 + 0 * far]
    truth = np.tile(np.stack(laws), (40, 1))
    for seed in range(6):
        noise = GROWING * np.random.default_rng(seed).standard_normal((200, 5))
        band = fit(POINTS, (truth[:, :-1] * np.exp(noise))[:, :, None]).predict(far[-1:])
        held = (band.low[:, 0] <= truth[:, -1]) & (truth[:, -1] <= band.high[:, 0])
        assert held.mean() > 0.93
        # By even noise, it was 9 to 33 times what it is.
        assert band.value.sum() < 3 * truth[:, -1].sum()


@pytest.mark.parametrize("points", [10.0 ** np.arange(0, 15, 3), 2.0 ** np.arange(0, 40, 4)])
def test_scales_may_be_far_apart(points: FloatArray) -> None:
    noise = np.random.default_rng(11).standard_normal((60, len(points), 1))
    law = np.where(np.arange(60) % 2, 7.0, np.log2(points)[:, None] + 1).T
    models = fit(points, law[:, :, None] * np.exp(0.05 * noise))
    assert models.values(points[-1:])[1::2] == pytest.approx(7.0, rel=0.1)
