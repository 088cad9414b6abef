"""Estimates from few repetitions, combined over many call paths."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.analysis.measured import pool_of, sample_at
from cells import cells


def noisy(rng, rows, repetitions, spread, points=3):
    """Return values [rows, points, repetitions] around 1 with standard deviation `spread`."""
    return np.exp(spread * rng.standard_normal((rows, points, repetitions)))


@cells("repetitions", [2, 3, 5])
@cells("spread", [0.01, 0.2])
def test_the_interval_of_a_centre_holds_the_truth_as_often_as_it_says(repetitions, spread):
    values = noisy(np.random.default_rng(1), 4000, repetitions, spread)
    sample = sample_at(values, 1)
    for confidence in (0.8, 0.95, 0.999):
        holds = np.abs(np.log(sample.centre)) <= sample.reach(confidence)
        assert confidence - 0.01 <= holds.mean() <= (1 + confidence) / 2 + 0.001


def test_two_repetitions_that_agree_by_chance_are_as_noisy_as_the_other_call_paths():
    values = noisy(np.random.default_rng(2), 200, 2, 0.1)
    values[7, :] = 1.0
    values[7, 0] = 1.0, 1.0001
    assert sample_at(values, 0).reach(0.95)[7] > 0.05


def test_repetitions_that_agree_everywhere_are_exact_beside_noisy_ones():
    values = noisy(np.random.default_rng(3), 50, 3, 0.1)
    values[4] = 12.0
    reach = sample_at(values, 2).reach(1 - 1e-9)
    assert reach[4] == 0
    assert (np.delete(reach, 4) > 0.05).all()


def test_without_repetitions_nothing_is_known_of_noise():
    sample = sample_at(np.ones((3, 4, 1)), 0)
    assert not sample.is_repeated
    assert np.isnan(sample.reach(0.95)).all()


def test_a_row_borrows_from_a_pool_that_it_is_not_part_of():
    rng = np.random.default_rng(4)
    many, one = noisy(rng, 300, 3, 0.05), noisy(rng, 1, 3, 0.05)
    alone, among = sample_at(one, 0), sample_at(one, 0, pool_of(many))
    assert among.dof[0] == 10 * alone.dof[0]
    assert sample_at(np.concatenate([many, one]), 0).reach(0.95)[-1] == pytest.approx(
        among.reach(0.95)[0], rel=0.05
    )
