from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from callpath_modeler.analysis.linear_program import most_within


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 12))
def test_the_most_is_what_scipy_finds(seed, variables, limits):
    rng = np.random.default_rng(seed)
    taken = rng.uniform(0, 1, (limits, variables)) * rng.integers(0, 2, (limits, variables))
    taken[rng.integers(0, limits, variables), np.arange(variables)] = rng.uniform(0.1, 1, variables)
    gain = rng.uniform(0, 1, variables)
    expected = linprog(-gain, A_ub=taken, b_ub=np.ones(limits)).fun
    assert most_within(gain, taken) == pytest.approx(-expected, rel=1e-9)


def test_limits_that_are_met_at_once_are_no_endless_walk():
    same = np.ones((6, 3))
    assert most_within(np.array([1.0, 2.0, 2.0]), same) == pytest.approx(2)


def test_limits_that_meet_in_one_corner_are_told_from_each_other():
    # Messages and bytes explain all times exactly, so the same costs meet every limit.
    messages = np.arange(1.0, 6.0)
    needs = np.stack([messages, messages * 10.0 ** np.arange(5)], axis=1)
    taken = needs / (needs @ [3.0, 0.002])[:, None]
    for gain, expected in zip(needs, needs @ [3.0, 0.002], strict=True):
        assert most_within(gain, taken) >= expected * (1 - 1e-9)
    assert most_within(needs[2], taken) == pytest.approx(needs[2] @ [3.0, 0.002])


def test_what_gains_nothing_is_not_taken():
    assert most_within(np.zeros(2), np.ones((3, 2))) == 0
