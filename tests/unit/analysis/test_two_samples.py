from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from callpath_modeler.analysis.changes import compare_bands, compare_samples, false_discovery_rate
from callpath_modeler.analysis.measured import deviation_of_models, sample_at
from synthetic import POINTS, fitted

NAN = np.nan
CONFIDENCE = 0.95


def noisy(rng, rows, repetitions, spread, points=3):
    """Return values [rows, points, repetitions] around 1, all rows as noisy as `spread` says."""
    return np.exp(np.broadcast_to(spread, (rows,))[:, None, None] * rng.standard_normal((rows, points, repetitions)))  # fmt: skip # noqa: E501


def test_where_nothing_changed_few_differences_look_certain():
    rng = np.random.default_rng(1)
    base, new = noisy(rng, 4000, 3, 0.05), noisy(rng, 4000, 5, 0.05)
    p = compare_samples(sample_at(base, 2), sample_at(new, 2), CONFIDENCE).p
    assert 0.02 < (p < 0.05).mean() < 0.055
    assert (p < 0.001).mean() < 0.002


def test_noise_of_many_call_paths_finds_what_two_repetitions_cannot():
    rng = np.random.default_rng(2)
    base, new = noisy(rng, 500, 2, 0.03), 1.15 * noisy(rng, 500, 2, 0.03)
    p = compare_samples(sample_at(base, 0), sample_at(new, 0), CONFIDENCE).p
    alone = stats.ttest_ind(np.log(base[:, 0]), np.log(new[:, 0]), axis=1, equal_var=False).pvalue
    assert (p < 0.01).mean() > 0.5
    assert (p < 0.01).mean() > 3 * (alone < 0.01).mean()


def test_the_interval_holds_the_true_change():
    rng = np.random.default_rng(3)
    base, new = noisy(rng, 3000, 4, 0.1), 1.5 * noisy(rng, 3000, 3, 0.2)
    found = compare_samples(sample_at(base, 1), sample_at(new, 1), CONFIDENCE)
    holds = (found.low < np.log(1.5)) & (np.log(1.5) < found.high)
    assert 0.94 < holds.mean() < 0.985


def test_one_slow_run_among_many_steady_ones_is_no_difference():
    rng = np.random.default_rng(4)
    base, new = noisy(rng, 200, 3, 0.01), noisy(rng, 200, 3, 0.01)
    new[7, 2, 1] = 400.0
    found = compare_samples(sample_at(base, 2), sample_at(new, 2), CONFIDENCE)
    assert np.exp(found.difference[7]) > 5
    assert found.p[7] > 0.2


def test_a_single_run_is_judged_by_the_noise_of_the_repeated_side():
    rng = np.random.default_rng(5)
    base, new = noisy(rng, 2000, 5, 0.05), noisy(rng, 2000, 1, 0.05)
    p = compare_samples(sample_at(base, 0), sample_at(new, 0), CONFIDENCE).p
    assert 0.02 < (p < 0.05).mean() < 0.065
    swapped = compare_samples(sample_at(new, 0), sample_at(base, 0), CONFIDENCE).p
    assert swapped == pytest.approx(p)


def test_nothing_is_certain_where_nothing_was_repeated():
    one = np.ones((3, 2, 1))
    found = compare_samples(sample_at(one, 0), sample_at(2 * one, 0), CONFIDENCE)
    assert np.isnan(found.p).all()
    assert np.exp(found.difference) == pytest.approx(np.full(3, 2.0))


def test_counts_that_repeat_exactly_differ_for_sure_or_not_at_all():
    base = np.full((3, 2, 4), 1000.0)
    new = base * np.array([1.0, 1 + 1e-12, 1.001])[:, None, None]
    found = compare_samples(sample_at(base, 1), sample_at(new, 1), CONFIDENCE)
    assert found.p.tolist() == [1.0, 1.0, 0.0]


def test_what_costs_nothing_counts_as_absent():
    base, new = np.ones((2, 1, 3)), np.ones((2, 1, 3))
    new[0] = 0.0
    base[1, 0, 0] = 0.0
    samples = sample_at(base, 0), sample_at(new, 0)
    assert samples[0].count.tolist() == [3, 2]
    assert np.isnan(compare_samples(*samples, CONFIDENCE).p[0])
    assert np.isnan(samples[1].centre[0])


def test_the_rate_of_false_discoveries_is_that_of_scipy():
    p = np.random.default_rng(6).uniform(size=200) ** 3
    holes = np.insert(p, [0, 50], NAN)
    rate = false_discovery_rate(holes)
    assert np.isnan(rate[[0, 51]]).all()
    assert rate[~np.isnan(holes)] == pytest.approx(stats.false_discovery_control(p))
    assert false_discovery_rate(np.array([NAN])).size == 1


def test_bands_of_lognormal_predictions_compare_as_their_logarithms_do():
    reach = stats.norm.ppf(0.975)
    spreads = np.array([0.2, 0.1])
    value = np.array([10.0, 15.0])
    bands = [
        (np.array([v]), np.array([v * np.exp(-reach * s)]), np.array([v * np.exp(reach * s)]))
        for v, s in zip(value, spreads, strict=True)
    ]
    found = compare_bands(bands[0], bands[1], CONFIDENCE)
    z = np.log(1.5) / np.hypot(*spreads)
    assert found.p[0] == pytest.approx(2 * stats.norm.sf(z))
    assert found.low[0] == pytest.approx(np.log(1.5) - reach * np.hypot(*spreads))
    back = compare_bands(bands[1], bands[0], CONFIDENCE)
    assert back.p == pytest.approx(found.p)
    assert back.high == pytest.approx(-found.low)


def test_a_band_that_reaches_away_from_the_other_makes_nothing_uncertain():
    base = np.array([10.0]), np.array([1.0]), np.array([10.5])
    new = np.array([20.0]), np.array([19.0]), np.array([900.0])
    found = compare_bands(base, new, CONFIDENCE)
    assert found.p[0] < 1e-6
    assert np.exp(found.high[0]) > 40


def test_bands_without_width_differ_if_their_values_do():
    one, two = (np.array([v]) for v in (1.0, 2.0))
    assert compare_bands((one, one, one), (two, two, two), CONFIDENCE).p[0] == 0
    assert compare_bands((one, one, one), (one, one, one), CONFIDENCE).p[0] == 1


def test_bands_that_reach_zero_or_have_no_end_have_no_interval():
    zero, one = np.zeros(1), np.ones(1)
    endless = np.array([np.inf])
    for base, new in (
        ((one, one, one), (zero, zero, one)),
        ((zero, zero, endless), (one, zero, one)),
    ):
        found = compare_bands(base, new, CONFIDENCE)
        assert np.isnan([found.low[0], found.high[0], found.p[0]]).all()


def test_deviations_of_models_add_up_like_independent_errors():
    rng = np.random.default_rng(7)
    laws = {"main": 3.0, "main/f": 2.0, "main/g": 1.0}
    values = {
        path: (law * (1 + 0.05 * rng.standard_normal(5))).tolist() for path, law in laws.items()
    }
    models = fitted(values, POINTS)
    own, _ = deviation_of_models(models, inclusive=False)
    whole, dof = deviation_of_models(models, inclusive=True)
    cost = models.measured[:, -1]
    expected = (own[:3] * cost**2).sum() / cost.sum() ** 2
    assert whole[0] == pytest.approx(expected) == pytest.approx(whole[-1])
    assert own[-1] == pytest.approx(expected)
    assert dof[0] > models.models.dof.min()
