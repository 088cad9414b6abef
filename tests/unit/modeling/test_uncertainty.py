"""Mixtures of the predictions of hypotheses, compared with samples of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import special

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import Mixture
from cells import cells


def one(
    centre: list[float], below: list[float], above: list[float], weight: list[float]
) -> Mixture:
    def column(values: list[float]) -> FloatArray:
        return np.array(values)[None, :, None]

    return Mixture(column(centre), column(below), column(above), np.array([weight]))


def samples(of: Mixture, count: int) -> FloatArray:
    random = np.random.default_rng(1)
    which = random.choice(of.weight.shape[1], count, p=of.weight[0])
    deviate = random.standard_normal(count)
    spread = np.where(deviate < 0, of.below[0, which, 0], of.above[0, which, 0])
    return np.asarray(of.centre[0, which, 0] * np.exp(deviate * spread))


THREE = one([10.0, 12.0, 40.0], [0.1, 0.3, 0.2], [0.2, 0.05, 0.5], [0.6, 0.3, 0.1])


@cells("probability", [0.025, 0.2, 0.5, 0.8, 0.975])
def test_a_quantile_is_that_of_samples(probability: float) -> None:
    drawn = samples(THREE, 100_000)
    found = THREE.quantile(probability)[0, 0]
    assert found == pytest.approx(np.quantile(drawn, probability), rel=0.02)
    assert THREE.exceedance(found)[0, 0] == pytest.approx(1 - probability, abs=1e-6)


@cells("value", [5.0, 9.9, 12.0, 30.0, 90.0])
def test_an_exceedance_is_the_share_of_samples_above(value: float) -> None:
    share = (samples(THREE, 100_000) > value).mean()
    assert THREE.exceedance(value)[0, 0] == pytest.approx(share, abs=0.004)


def test_one_hypothesis_has_the_quantiles_of_a_log_normal_on_either_side() -> None:
    alone = one([7.0], [0.1], [0.4], [1.0])
    low, high = alone.band(0.95)
    assert low[0, 0] == pytest.approx(7 * np.exp(0.1 * special.ndtri(0.025)), rel=1e-6)
    assert high[0, 0] == pytest.approx(7 * np.exp(0.4 * special.ndtri(0.975)), rel=1e-6)
    assert alone.quantile(0.5)[0, 0] == pytest.approx(7, rel=1e-6)


def test_a_hypothesis_without_weight_says_nothing() -> None:
    padded = one([7.0, 1e9, 0.0], [0.1, 9.0, 9.0], [0.4, 9.0, 9.0], [1.0, 0.0, 0.0])
    alone = one([7.0], [0.1], [0.4], [1.0])
    for probability in (0.01, 0.5, 0.99):
        assert padded.quantile(probability) == pytest.approx(alone.quantile(probability), rel=1e-6)


def test_without_any_spread_all_quantiles_are_the_prediction() -> None:
    sure = one([3e-7], [0.0], [0.0], [1.0])
    low, high = sure.band(0.95)
    assert low[0, 0] == pytest.approx(3e-7, rel=1e-6)
    assert high[0, 0] == pytest.approx(3e-7, rel=1e-6)
    assert sure.exceedance(2.9e-7)[0, 0] == pytest.approx(1)
    assert sure.exceedance([3.1e-7])[0, 0] == pytest.approx(0)


def test_what_is_zero_for_sure_exceeds_nothing_and_has_a_band_of_zero() -> None:
    nothing = one([0.0], [0.0], [0.0], [1.0])
    assert nothing.band(0.95) == (0.0, 0.0)
    assert nothing.exceedance([[1e-9]])[0, 0] == pytest.approx(0)


@settings(max_examples=25)
@given(
    centre=st.lists(st.floats(1e-12, 1e15), min_size=4, max_size=4),
    spread=st.lists(st.floats(0, 3), min_size=8, max_size=8),
    weight=st.lists(st.floats(0.01, 1), min_size=4, max_size=4),
)
@example(
    centre=[140.0, 5.96e-08, 694.0, 192.0],
    spread=[0.0, 0.0, 0.0, 1.0, 0.0, 0.59375, 0.0, 0.0],
    weight=[1.0, 0.5, 0.125, 0.75],
)
def test_surer_bands_hold_less_sure_ones(
    centre: list[float], spread: list[float], weight: list[float]
) -> None:
    share = (np.array(weight) / sum(weight)).tolist()
    made = one(centre, spread[:4], spread[4:], share)
    bands = [made.band(confidence) for confidence in (0.99, 0.95, 0.5)]
    lows, highs = [low[0, 0] for low, _ in bands], [high[0, 0] for _, high in bands]
    assert 0 < lows[0] <= lows[1] <= lows[2] <= highs[2] <= highs[1] <= highs[0] < np.inf


def test_quantiles_of_many_parts_of_all_widths_are_exceeded_as_often_as_they_say() -> None:
    random = np.random.default_rng(15)
    shape = 2000, 15, 1
    spread = 10.0 ** random.uniform(-3, 1, (2, *shape))
    weight = random.dirichlet(np.full(15, 0.3), 2000)
    made = Mixture(random.lognormal(0, 2, shape), *spread, weight)
    for probability in (0.025, 0.5, 0.8):
        exceeded = made.exceedance(made.quantile(probability))
        assert exceeded == pytest.approx(np.full((2000, 1), 1 - probability), abs=1e-5)
