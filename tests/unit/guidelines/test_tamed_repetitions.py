from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cpmodel_guidelines.repetitions import winsorised

RANDOM = np.random.default_rng(4)


@pytest.mark.parametrize("number", [5, 7, 10, 20, 100])
def test_centre_variance_and_freedom_are_those_of_yuen(number):
    logs = RANDOM.standard_normal((2, 3, number))
    found = winsorised(np.exp(logs))
    assert np.log(found.centre) == pytest.approx(stats.trim_mean(logs, 0.2, axis=2))
    one, other = logs[0, 0], logs[1, 0]
    yuen = stats.ttest_ind(one, other, equal_var=False, trim=0.2)
    variance = np.log(found.values).var(axis=2, ddof=1) * found.per_variance
    error = np.sqrt(variance[0, 0] + variance[1, 0])
    difference = np.log(found.centre[0, 0] / found.centre[1, 0])
    assert difference / error == pytest.approx(yuen.statistic)
    assert found.per_dof * (number - 1) == pytest.approx(number - 2 * int(0.2 * number) - 1)


def test_fewer_than_five_are_taken_as_they_are():
    values = np.exp(RANDOM.standard_normal((1, 2, 4)))
    values[0, 1, 2:] = np.nan
    found = winsorised(values)
    assert np.sort(found.values, axis=2) == pytest.approx(np.sort(values, axis=2), nan_ok=True)
    assert found.per_variance.tolist() == [[1 / 4, 1 / 2]]
    assert found.per_dof.tolist() == [[1.0, 1.0]]


def test_a_disturbed_call_changes_next_to_nothing():
    values = np.array([[[1.00, 1.01, 0.99, 1.02, 40.0]]])
    found = winsorised(values)
    assert found.centre == pytest.approx(1.01, rel=1e-3)
    assert np.nanmax(found.values) == pytest.approx(1.02)


def test_what_is_missing_or_zero_counts_as_nothing():
    values = np.array([[[np.nan] * 5, [2.0, 0.0, np.nan, np.nan, np.nan]]])
    found = winsorised(values)
    assert found.centre == pytest.approx(np.array([[np.nan, 2.0]]), nan_ok=True)
    assert (~np.isnan(found.values)).sum(axis=2).tolist() == [[0, 1]]
