"""Ratios of sums of predictions, in which shared errors cancel."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler import modeling
from callpath_modeler.modeling import lines

P, N = np.array([1.0, 2, 4, 8, 16]), np.array([10.0, 20, 40, 80])
POINTS = np.stack(np.meshgrid(P, N, indexing="ij"), -1).reshape(-1, 2)
HERE = np.stack([np.ones(8), np.geomspace(5, 640, 8)], axis=1)
THERE = HERE * [32.0, 1.0]


@pytest.fixture(scope="module")
def models():
    """Return models of two noisy rows, n/p + 1 and log2(p)."""
    p, n = POINTS.T
    laws = np.stack([n / p + 1, 0.5 * np.log2(p) + 0.1])
    noise = np.random.default_rng(1).normal(0, 0.02, (2, len(POINTS), 3))
    return modeling.fit(POINTS, laws[..., None] * np.exp(noise))


def test_the_value_is_the_ratio_of_the_sums(models):
    found = lines.ratio_of_sums(models, 1, HERE, THERE)
    expected = models.values(HERE).sum(axis=0) / models.values(THERE).sum(axis=0)
    assert found.value == pytest.approx(expected)
    assert (found.low <= found.value).all()
    assert (found.value <= found.high).all()


def test_a_place_has_no_error_relative_to_itself(models):
    inside = POINTS[[0, 7, 19]]
    found = lines.ratio_of_sums(models, 1, inside, inside)
    assert found.low == pytest.approx(1, rel=1e-5)
    assert found.high == pytest.approx(1, rel=1e-5)


def test_errors_grow_outside_of_the_measured_range(models):
    found = lines.ratio_of_sums(models, 1, HERE, THERE)
    near = lines.ratio_of_sums(models, 1, HERE, HERE * [16.0, 1.0])
    assert (np.log(found.high / found.low) > np.log(near.high / near.low)).all()


def test_settings_in_blocks_have_the_same_ratios(models, monkeypatch):
    whole = lines.ratio_of_sums(models, 1, HERE, THERE)
    monkeypatch.setattr(lines, "RATIOS_TOGETHER", 1)
    blocks = lines.ratio_of_sums(models, 1, HERE, THERE)
    assert blocks.low == pytest.approx(whole.low)
    assert blocks.high == pytest.approx(whole.high)
