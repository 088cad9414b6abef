"""Staircases of small integers: bands contain the next steps."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import fit
from cells import cells

P = 2.0 ** np.arange(3, 15)


def modelled(rows):
    values = np.repeat(np.array(rows, dtype=np.float64)[..., None], 3, axis=2)
    return fit(P[: values.shape[1]], values)


def held(rows, known, ahead):
    """Return True for bands that contain the value `ahead` scales after the first `known` ones."""
    rows = np.array(rows, dtype=np.float64)
    band = modelled(rows[:, :known]).predict(P[[known - 1 + ahead]])
    truth = rows[:, known - 1 + ahead]
    return (band.low[:, 0] <= truth * 1.001) & (truth <= band.high[:, 0] * 1.001)


def staircases(seed, sign):
    """Return steps of one to three after two or three scales, from a random place on."""
    random = np.random.default_rng(seed)
    scales = np.arange(len(P))
    for _ in range(60):
        size, tread, begin = random.integers(1, 4), random.integers(2, 4), random.integers(3)
        start = random.integers(1, 6) if sign > 0 else random.integers(30, 60)
        yield start + sign * size * ((scales + begin) // tread)


@cells("known", [4, 5, 6])
@cells("ahead", [1, 2, 4])
def test_bands_hold_the_next_steps_upwards(known, ahead):
    levels = [a * np.ceil(np.log(P) / np.log(b) - 1e-9) for a in (1, 2, 5, 75) for b in (4, 8, 16)]
    assert held([*staircases(1, 1), *levels], known, ahead).mean() >= 0.97


@pytest.mark.parametrize("known", [5, 6])
@pytest.mark.parametrize("ahead", [1, 2])
def test_bands_hold_the_next_steps_downwards(known, ahead):
    assert held([*staircases(2, -1)], known, ahead).mean() >= 0.93


def test_the_next_step_has_the_direction_of_the_last_one():
    band = modelled([[5, 5, 7, 7, 7], [59, 59, 57, 57, 57]]).predict(P[[5]])
    rising, falling = zip(band.low[:, 0], band.high[:, 0], strict=True)
    assert rising == pytest.approx((7, 9), rel=0.02)
    assert falling == pytest.approx((55, 57), rel=0.02)


def test_whole_numbers_that_follow_a_law_keep_their_bands():
    band = modelled([[7, 7, 7, 7, 7], [7, 15, 31, 63, 127]]).predict(P[[5]])
    assert band.low[:, 0] == pytest.approx(band.high[:, 0])
