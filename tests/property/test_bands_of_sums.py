"""Bands of sums of non-negative parts, for random parts."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from callpath_modeler.modeling.distributions import as_normal, scores
from callpath_modeler.modeling.sums import as_addends, ends_of_sums

CONFIDENCE = 0.95
SLACK = 1e-9

AMOUNTS = st.floats(0.0, 1e12, allow_nan=False) | st.floats(1e-12, 1e3)


@st.composite
def parts(draw):
    """Draw quantiles of rows, [n, scores], ascending and non-negative."""
    rows = draw(st.integers(1, 8))
    width = len(scores(CONFIDENCE))
    if draw(st.booleans()):
        ends = [sorted(draw(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS))) for _ in range(rows)]
        low, value, high = np.array(ends).T
        return as_normal(value, low, high, CONFIDENCE)
    steps = [draw(st.lists(AMOUNTS, min_size=width, max_size=width)) for _ in range(rows)]
    return np.sort(np.array(steps), axis=1)


def ends(quantiles, correlation):
    """Return low and high of the sum of rows, whose values are their middle quantiles."""
    value = np.array(quantiles[:, quantiles.shape[1] // 2].sum())
    added = as_addends(quantiles, correlation, CONFIDENCE).sum(axis=0)
    return [float(end) for end in ends_of_sums(value, added)]


@settings(max_examples=300)
@given(parts(), st.floats(0.0, 1.0), st.data())
def test_ends_of_a_sum_are_never_below_those_of_a_part(quantiles, correlation, data):
    chosen = data.draw(st.sets(st.integers(0, len(quantiles) - 1), min_size=1))
    low, high = ends(quantiles, correlation)
    part_low, part_high = ends(quantiles[sorted(chosen)], correlation)
    slack = SLACK * max(high, 1e-300)
    assert low >= part_low - slack
    assert high >= part_high - slack


@settings(max_examples=200)
@given(parts(), st.floats(0.0, 1.0))
def test_ends_of_a_sum_lie_between_sums_of_ends(quantiles, correlation):
    low, high = ends(quantiles, correlation)
    slack = SLACK * max(quantiles[:, -1].sum(), 1e-300)
    assert quantiles[:, 1].sum() - slack <= low <= high <= quantiles[:, -2].sum() + slack


@settings(max_examples=200)
@given(parts(), st.floats(0.0, 1.0))
def test_the_band_of_one_part_is_its_own(quantiles, correlation):
    for row in quantiles:
        found = ends(row[None], correlation)
        np.testing.assert_allclose(found, [row[1], row[-2]], rtol=1e-6, atol=SLACK * row[-1])


@settings(max_examples=100)
@given(parts(), st.floats(0.0, 1.0), st.floats(1e-3, 1e3))
def test_ends_follow_the_unit_and_not_the_order(quantiles, correlation, unit):
    found = np.array(ends(quantiles, correlation))
    slack = SLACK * max(quantiles.max(), 1e-300)
    np.testing.assert_allclose(ends(quantiles[::-1], correlation), found, rtol=1e-6, atol=slack)
    scaled = ends(unit * quantiles, correlation)
    np.testing.assert_allclose(scaled, unit * found, rtol=1e-6, atol=unit * slack)
