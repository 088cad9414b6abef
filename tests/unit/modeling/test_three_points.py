"""Three points: small parts next to shared work, and an increase at the last point."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import fit

POINTS = ([8.0, 64, 512], [1.0, 8, 64], [64.0, 128, 256])


def _noisy(y: np.ndarray, noise: float, repetitions: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return y[..., None] * np.exp(noise * rng.standard_normal((*y.shape, repetitions)))


@pytest.mark.parametrize("points", POINTS)
def test_messages_beside_shared_work_are_in_the_band(points):
    p = np.array(points)
    last, rng = p[-1], np.random.default_rng(2)
    shares = np.exp(rng.uniform(np.log(0.15), 0, 20))[:, None]
    amdahl = last / p + shares
    messages = last / p + shares * p / last
    y = np.concatenate([np.repeat(amdahl, 2, axis=0), messages])
    band = fit(p, _noisy(y, 0.03, 3)).predict([16 * last])
    truth = np.concatenate([np.repeat(1 / 16 + shares, 2), (1 / 16 + 16 * shares)[:, 0]])
    held = (band.low[:, 0] <= truth) & (truth <= band.high[:, 0])
    assert held[:40].mean() >= 0.9
    assert held[40:].mean() >= 0.7


def test_a_constant_that_jumps_at_the_last_of_three_points_may_stay_there():
    """A jump looks like growth with p^(5/2), which is very rare."""
    band = fit([8.0, 64, 512], _noisy(np.array([[100.0, 100, 300]]), 0.02, 3)).predict([8192.0])
    assert band.value[0, 0] < 1000
    assert band.low[0, 0] < 300 < band.high[0, 0]


def test_growth_from_three_points_is_growth():
    p = np.array([8.0, 64, 512])
    laws = [p, p**0.5, np.log2(p), 20 + p, p**2]
    y = np.tile(np.array(laws), (6, 1))
    models = fit(p, _noisy(y, 0.02, 3))
    expected = ["O(p)", "O(p^(1/2))", "O(log p)", "O(p)", "O(p^2)"] * 6
    found = [str(models.growth(row)) for row in range(len(y))]
    assert np.mean([a == b for a, b in zip(found, expected, strict=True)]) >= 0.8


def test_three_points_from_one_process_on_do_not_fit_any_pair():
    """Without a measurement at one process, two points are left."""
    p = np.array([1.0, 8, 64])
    y = np.tile([[1e-9, 8.0, 1.0]], (20, 1))
    value = fit(p, _noisy(y, 0.02, 3)).predict([1024.0]).value[:, 0]
    assert (value < 0.2).all()
