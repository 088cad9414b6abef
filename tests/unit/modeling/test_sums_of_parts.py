"""Sums of parts as models with two terms: what they predict, their bands, and what stays."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler import modeling
from callpath_modeler.modeling.sums_of_parts import SumsOfParts, with_sums_of_parts

POINTS = np.array([8.0, 16, 32, 64, 128])
SCALES = np.append(POINTS, 128.0 * 2 ** np.arange(1, 6))


def models(rows=3):
    """Return models of noisy constants."""
    noise = np.random.default_rng(7).normal(1, 0.02, (rows, len(POINTS), 3))
    return modeling.fit(POINTS, 5 * noise)


def sums(values, variance=0.01):
    """Return sums of parts, with a variance that grows by the same beyond the points."""
    beyond = np.maximum(np.log2(SCALES / POINTS[-1]), 0)
    return SumsOfParts(SCALES, np.atleast_2d(values), variance * (1 + beyond)[None])


@pytest.mark.parametrize(
    ("law", "growth"),
    [
        (lambda p: 3 + 0 * p, "O(1)"),
        (lambda p: 0.1 * p * np.log2(p), "O(p log p)"),
        (lambda p: 2 + 0.5 * np.sqrt(p), "O(p^(1/2))"),
        (lambda p: 40 / p + 0.2 * np.log2(p), "O(log p)"),
    ],
)
def test_a_sum_within_two_terms_is_predicted_exactly(law, growth):
    found = with_sums_of_parts(models(), np.array([1]), sums(law(SCALES)))
    far = np.array([256.0, 8192.0])
    assert found.values(far)[1] == pytest.approx(law(far), rel=0.025)
    assert found.growth(1).text("p") == growth


def test_other_sums_are_near_and_never_negative_far_beyond():
    values = 1 + 0.2 * np.log2(SCALES) + 0.01 * SCALES ** (2 / 3) + 5 / SCALES
    found = with_sums_of_parts(models(), np.array([0]), sums(values))
    assert found.values(SCALES)[0] == pytest.approx(values, rel=0.1)
    assert found.values(np.array([2.0**30]))[0, 0] > 0


def test_other_rows_and_sums_near_no_model_keep_theirs():
    before = models()
    wild = np.where(np.arange(len(SCALES)) % 2, 1.0, 50.0)
    same = with_sums_of_parts(before, np.array([2]), sums(wild))
    assert same is before
    found = with_sums_of_parts(before, np.array([1]), sums(0.1 * SCALES))
    others = [0, 2]
    assert (found.values(SCALES)[others] == before.values(SCALES)[others]).all()
    one, other = (each.predict(SCALES) for each in (found, before))
    assert one.low[others] == pytest.approx(other.low[others])
    assert one.high[others] == pytest.approx(other.high[others])


def test_the_band_has_the_variance_of_the_sum():
    before = modeling.fit(POINTS, np.tile(0.1 * POINTS, (2, 1))[..., None])
    found = with_sums_of_parts(before, np.array([0]), sums(0.1 * SCALES, variance=0.04))
    band = found.predict(np.array([256.0]))
    half = 1.96 * np.sqrt(0.04 * 2)
    assert np.log(band.high[0, 0] / band.value[0, 0]) == pytest.approx(half, rel=0.1)
    assert np.log(band.value[0, 0] / band.low[0, 0]) == pytest.approx(half, rel=0.1)


def test_the_former_model_is_an_alternative_and_probabilities_add_up_to_one():
    found = with_sums_of_parts(models(), np.array([0]), sums(0.1 * SCALES))
    assert found.weight[0] == pytest.approx(0.9, abs=0.02)
    whole = found.weight + found.alternative_weight.sum(axis=1)
    assert whole == pytest.approx(np.ones(3), abs=1e-5)
    assert found.alternative_weight[0].max() > 0.03


def test_a_sum_that_vanishes_at_some_scale_is_near_no_model():
    before = models()
    values = np.append(np.zeros(3), np.ones(len(SCALES) - 3))
    assert with_sums_of_parts(before, np.array([0]), sums(values)) is before


def test_what_waits_has_wider_bands_unless_its_law_is_exact():
    noisy = models()
    exact = modeling.fit(POINTS, (3 + 0.1 * POINTS)[None, :, None])
    every = np.ones(3, bool)
    near, far = (noisy.predict(np.array([p])) for p in (128.0, 1024.0))
    waiting = noisy.waiting(every)
    assert waiting.predict(np.array([128.0])).high == pytest.approx(near.high)
    assert (waiting.predict(np.array([1024.0])).high > 1.3 * far.high).all()
    assert (noisy.waiting(~every).drift == noisy.drift).all()
    assert exact.waiting(np.ones(1, bool)).drift == pytest.approx(exact.drift, abs=1e-9)
