from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cells import cells
from cpmodel_guidelines.statistics.permutations import permutation_test
from cpmodel_guidelines.statistics.power import Power, least_mpiruns


@cells("mpiruns", [4, 5, 10, 30])
@cells("slowdown", [0.05, 0.1, 0.3, 0.5])
def test_the_chance_to_find_a_violation_is_that_of_a_noncentral_t(mpiruns, slowdown):
    power = Power(mpiruns, 0.07, 495, 0.05)
    distance = np.log1p(slowdown) * np.sqrt(mpiruns) / 0.07
    known = stats.nct.sf(power.critical, 2 * mpiruns - 2, distance)
    assert power.chance(slowdown) == pytest.approx(known, abs=0.02)


def test_the_slowdown_that_is_found_has_the_stated_probability():
    power = Power(10, 0.07, 495, 0.05)
    assert power.chance(power.slowdown) == pytest.approx(0.8, abs=1e-9)
    assert power.with_mpiruns(20).slowdown < power.slowdown


def test_the_number_of_mpiruns_is_the_least_that_finds_a_slowdown():
    power = Power(10, 0.07, 495, 0.05)
    runs = power.mpiruns_for(0.1)
    assert power.with_mpiruns(runs).slowdown <= 0.1 < power.with_mpiruns(runs - 1).slowdown
    assert Power(10, 5.0, 495, 0.05).mpiruns_for(0.01) is None


@cells(
    ("noise", "words"),
    [
        (0.5, "a violation by 157 % at"),
        (0.7, "by a factor of 3.8 at"),
        (3.0, "by a factor of 290 at"),
    ],
)
def test_a_large_slowdown_is_a_factor_instead_of_a_percentage(noise, words):
    assert words in Power(10, noise, 495, 0.05).said()


def test_less_mpiruns_than_permutations_need_show_nothing():
    power = Power(3, 0.07, 495, 0.05)
    assert (power.can_show, power.slowdown, power.chance(10.0)) == (False, np.inf, 0.0)
    assert power.said().endswith("measure at least 4.")
    assert least_mpiruns(0.05) == 4


@pytest.mark.parametrize("mpiruns", [5, 10])
def test_the_critical_value_is_nearly_that_of_permutations(mpiruns):
    rng = np.random.default_rng(mpiruns)
    left, right = np.exp(0.05 * rng.standard_normal((2, 315, mpiruns)))
    rows = [np.arange(k, k + 21) for k in range(0, 315, 21)]
    known = permutation_test(left, right, np.ones(315, bool), rows, 0.05).critical
    power = Power(mpiruns, 0.07, 315, 0.05)
    assert power.critical == pytest.approx(known, rel=0.1)
    assert Power.measured(mpiruns, 0.07, 315, 0.05, known).critical == pytest.approx(known)
