"""Evidence of a change is worth what it says at every time a reader stops looking."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from callpath_modeler.history.alarms import (
    Regressions,
    Splits,
    crowd,
    largest_log_factors,
    log_factors,
    record_weights,
    series_weights,
)
from callpath_modeler.modeling.day_scatter import DayScatter, learnt_scatter


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


def scatter(sd, correlation=0.0, rows=1, dof=1e9):
    column = np.ones(rows)
    return DayScatter(
        0 * column, sd * column, correlation * column, dof * column, 0 * column,
        np.empty((rows, 0)), (np.empty(0),)
    )  # fmt: skip


def split(values, sd, correlation=0.0, change=7):
    """Return the step at a record of series with a known scatter, which is wide enough to clip."""
    rows, records = values.shape
    known = scatter(sd, correlation, rows)
    sums = Regressions.of(values, np.zeros(values.shape), known, np.zeros(rows))
    start = np.zeros((rows, 1), int)
    return sums.splits(start, np.array([change]), np.array([records]), 2)


def test_a_step_is_the_difference_of_means_and_needs_values_on_both_sides():
    values = np.random.default_rng(2).standard_normal((3, 12))
    values[1, 4] = np.nan
    values[2, :7] = np.nan
    found = split(values, 5.0)
    for row in (0, 1):
        before, after = values[row, :7], values[row, 7:]
        before = before[~np.isnan(before)]
        assert found.difference[row, 0] == pytest.approx(after.mean() - before.mean())
        error = 5.0 * np.sqrt(1 / len(before) + 1 / len(after))
        assert found.t[row, 0] == pytest.approx(found.difference[row, 0] / error, rel=1e-4)
    assert np.isnan(found.t[2, 0])
    assert np.isnan(split(values, 5.0, change=11).t).all()


def test_a_step_of_correlated_records_is_that_of_generalised_least_squares():
    values = np.random.default_rng(3).standard_normal((1, 12))
    found, rho = split(values, 5.0, 0.8), 0.8
    covariance = 25.0 * rho ** np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    design = np.column_stack([np.ones(12), np.arange(12) >= 7])
    inverse = np.linalg.inv(covariance)
    precision = design.T @ inverse @ design
    expected = np.linalg.solve(precision, design.T @ inverse @ values[0])[1]
    error = np.sqrt(np.linalg.inv(precision)[1, 1])
    assert found.difference[0, 0] == pytest.approx(expected)
    assert found.t[0, 0] == pytest.approx(expected / error, rel=1e-6)


def test_odd_records_after_a_change_are_no_evidence_and_equal_ones_are():
    random = np.random.default_rng(6)
    values = 0.01 * random.standard_normal((20, 40))
    values[random.random(values.shape) < 0.05] += 0.12
    segment = np.zeros(values[:, :30].shape, np.intp)
    known = learnt_scatter(values[:, :30], np.zeros((20, 30)), segment, 1e-3)
    odd, lasting = values.copy(), values.copy()
    odd[0, 30:33] = [0.01, 0.6, 0.0]
    lasting[0, 30:33] = 0.2
    found = [
        Regressions.of(each, np.zeros(each.shape), known, np.zeros(20)).evidence(0, 0, 30, 33)
        for each in (odd, lasting)
    ]
    assert found[0] < 6
    assert found[1] > 14


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


def test_series_that_should_not_move_and_do_make_a_crowd():
    t = np.random.default_rng(4).standard_normal((100, 1))
    dof = np.full_like(t, 50.0)
    assert crowd(t, dof)[0] < 1.8
    t[3] += 20.0
    assert crowd(t, dof)[0] > 6
