"""Evidence of a change is worth what it says at every time a reader stops looking."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from callpath_modeler.history.alarms import (
    Splits,
    Sums,
    crowd,
    largest_log_factors,
    log_factors,
    record_weights,
    series_weights,
    splits,
)


def factor(t, dof, size):
    return float(np.exp(log_factors(*(np.array([[float(x)]]) for x in (t, dof, size))))[0, 0])


@pytest.mark.parametrize(("dof", "size"), [(3, 0.8), (10, 1.5), (60, 20.0)])
def test_the_expected_evidence_is_one_if_nothing_changed(dof, size):
    def weighed(t):
        return factor(t, dof, size) * stats.t.pdf(t, dof)

    total = 2 * (integrate.quad(weighed, 0, 50, limit=200)[0]
                 + integrate.quad(weighed, 50, np.inf, limit=200)[0])  # fmt: skip
    assert total == pytest.approx(1, abs=1e-3)


def test_evidence_grows_with_the_difference_and_is_the_same_in_both_directions():
    found = [factor(t, 30, 5) for t in (0, 2, 4, 8)]
    assert found == sorted(found)
    assert found[0] < 1
    assert factor(-4, 30, 5) == found[2]


def test_the_bound_is_never_below_the_evidence():
    random = np.random.default_rng(1)
    t, dof = random.standard_t(3, (50, 20)) * 4, random.uniform(1, 60, (50, 20))
    found = Splits(t, t, dof, random.uniform(0.5, 30, t.shape))
    factors = log_factors(found.t, found.dof, found.size)
    assert (factors <= largest_log_factors(found)).all()


def test_splits_are_those_of_the_two_sample_t_test_and_need_values_on_both_sides():
    random = np.random.default_rng(2)
    values = random.standard_normal((3, 12))
    values[1, 4] = np.nan
    values[2, :7] = np.nan
    change = np.full((3, 1), 7)
    found = splits(
        Sums.of(values, np.zeros(values.shape)),
        np.zeros((3, 1), int),
        change,
        np.full((3, 1), 12),
        2,
        0.0,
    )
    for row in (0, 1):
        before, after = values[row, :7], values[row, 7:]
        expected = stats.ttest_ind(after, before[~np.isnan(before)])
        assert found.t[row, 0] == pytest.approx(expected.statistic)
        assert found.dof[row, 0] == expected.df
    assert np.isnan(found.t[2, 0])
    late = splits(
        Sums.of(values, np.zeros(values.shape)),
        np.zeros((3, 1), int),
        change + 4,
        np.full((3, 1), 12),
        2,
        0.0,
    )
    assert np.isnan(late.t).all()


def test_values_without_scatter_are_not_infinitely_sure():
    values = np.zeros((1, 10))
    values[0, 5:] = 1e-4
    found = splits(
        Sums.of(values, np.zeros(values.shape)), *(np.full((1, 1), k) for k in (0, 5, 10)), 2, 1e-3
    )
    assert abs(found.t[0, 0]) < 1


@pytest.mark.parametrize("number", [1, 10, 10_000])
def test_weights_never_add_up_to_more_than_one(number):
    assert 0 < record_weights(number).sum() <= 1
    random = np.random.default_rng(3)
    shares = series_weights(random.integers(0, 5, number), random.uniform(0, 1, number))
    assert shares.sum() <= 1
    assert (shares > 0).all()


def test_a_costly_series_has_a_larger_share_and_a_later_one_takes_nothing_away():
    first, cost = np.array([0, 0, 0]), np.array([1.0, 9.0, 3.0])
    before = series_weights(first, cost)
    assert np.argsort(-before).tolist() == [1, 2, 0]
    after = series_weights(np.append(first, 4), np.append(cost, 100.0))
    assert after[:3].tolist() == before.tolist()


def moved(count, number, by=20.0):
    t = np.random.default_rng(4).standard_normal((number, 1))
    t[:count] += by
    return Splits(t, t, np.full_like(t, 50.0), np.full_like(t, 5.0))


@pytest.mark.parametrize(("count", "number"), [(0, 100), (1, 100), (9, 100), (1, 8)])
def test_few_series_that_move_do_not_make_a_crowd(count, number):
    assert crowd(moved(count, number), 0.1)[0] < 1.8


@pytest.mark.parametrize(("count", "number"), [(12, 100), (40, 100), (2, 8), (3, 4)])
def test_many_series_that_move_make_a_crowd(count, number):
    assert crowd(moved(count, number), 0.5 if number == 4 else 0.1)[0] > 6
