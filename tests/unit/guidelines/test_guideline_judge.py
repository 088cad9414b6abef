from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from callpath_modeler.analysis.uncertain import Band
from cells import cells
from cpmodel_guidelines.benchmark import Estimates
from cpmodel_guidelines.judge import (
    NO_TIME,
    GuidelineVerdict,
    added,
    interpolated,
    measured,
    predicted,
    slower_chance,
    verdicts_of,
)

ONE = np.ones(1)


def estimates(value, deviation, dof=1e6):
    value = np.atleast_1d(np.asarray(value, float))
    return Estimates(value, np.full_like(value, deviation**2), np.full_like(value, dof))


def verdicts(comparison, **options):
    """Judge each measured check on its own, at an error rate of 2.5 %."""
    count = len(comparison.p)
    can_break = options.pop("can_break", np.ones(count, bool))
    chance = np.where(can_break, slower_chance(comparison), np.nan)
    given = {"largest_rate": 0.025, "tolerance": 0.05, "can_hold": np.ones(count, bool)}
    return verdicts_of(comparison, chance, chance, **(given | options))


def test_what_is_done_one_after_the_other_adds_up_with_its_errors():
    parts = [estimates(30.0, 0.02), estimates(10.0, 0.05), NO_TIME]
    whole = added(parts, np.array([2.0]))
    assert whole.value == pytest.approx(80.0)
    assert np.sqrt(whole.variance) * 40 == pytest.approx(np.hypot(0.6, 0.5))
    assert added([estimates(1.0, 0.1, 4.0), estimates(1.0, 0.1, 4.0)], ONE).dof == pytest.approx(8)


def test_the_test_is_that_of_welch_by_hand():
    left, right = estimates(12.0, 0.05, 4.0), estimates(10.0, 0.02, 8.0)
    found = verdicts(measured(left, right, 0.95))
    error = np.hypot(0.05, 0.02)
    dof = error**4 / (0.05**4 / 4 + 0.02**4 / 8)
    assert found.chance == pytest.approx(stats.t.sf(np.log(1.2) / error, dof))
    assert found.high == pytest.approx(1.2 * np.exp(stats.t.ppf(0.975, dof) * error))
    assert found.verdict(0) is GuidelineVerdict.VIOLATED


@cells(
    ("factor", "error", "verdict"),
    [
        (1.10, 0.02, GuidelineVerdict.VIOLATED),
        (1.10, 0.06, GuidelineVerdict.OPEN),
        (1.04, 0.001, GuidelineVerdict.HOLDS),  # shown to be slower, but by less than matters
        (1.045, 0.01, GuidelineVerdict.OPEN),
        (1.06, 0.02, GuidelineVerdict.VIOLATED),
        (0.99, 0.02, GuidelineVerdict.HOLDS),
        (0.90, 0.20, GuidelineVerdict.OPEN),
    ],
)
def test_verdicts_need_evidence_and_a_difference_that_matters(factor, error, verdict):
    test = measured(estimates(factor, error), estimates(1.0, 0.0), 0.95)
    assert verdicts(test).verdict(0) is verdict


def test_without_noise_nothing_is_decided():
    nothing = Estimates(np.array([9.0]), np.array([np.nan]), np.array([np.nan]))
    assert verdicts(measured(nothing, nothing, 0.95)).verdict(0) is GuidelineVerdict.OPEN


def test_a_check_tells_only_what_it_can():
    test = measured(estimates([2.0, 0.5], 0.01), estimates([1.0, 1.0], 0.01), 0.95)
    found = verdicts(test, can_break=np.zeros(2, bool), can_hold=np.zeros(2, bool))
    assert not found.violated.any()
    assert not found.holds.any()


def test_a_violation_does_not_contradict_its_interval():
    test = measured(estimates(1.3, 0.2), estimates(1.0, 0.0), 0.95)
    shown = verdicts_of(
        *(test, np.zeros(1), np.zeros(1)),
        largest_rate=0.05,
        tolerance=0.05,
        can_hold=np.ones(1, bool),
    )
    assert shown.verdict(0) is GuidelineVerdict.OPEN


def test_what_lies_between_two_sizes_reaches_as_far_as_both():
    found = interpolated(estimates(10.0, 0.0), estimates(40.0, 0.0), np.array([0.25]), 0.95)
    assert found.value == pytest.approx(10 * 4**0.25)
    reach = stats.norm.ppf(0.975) * np.sqrt(found.variance)
    assert found.value * np.exp(reach) == pytest.approx(40.0)


def test_predictions_are_compared_by_their_bands():
    left = Band(np.array([20.0]), np.array([19.0]), np.array([21.0]))
    parts = [Band(np.array([v]), np.array([v - 1]), np.array([v + 1])) for v in (4.0, 5.0)]
    found = predicted(left, parts, 0.95)
    assert found.difference == pytest.approx(np.log(20 / 9))
    down, up = np.log(20 / 19), np.log((9 + np.sqrt(2)) / 9)
    assert found.low == pytest.approx(np.log(20 / 9) - np.hypot(down, up))
