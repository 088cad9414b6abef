"""Imbalance from maxima over processes."""

from __future__ import annotations

import numpy as np

from cpmodel_caliper.metrics import ProcessMaxima
from synthetic import call_tree


def test_imbalance_is_known_for_call_paths_without_callees():
    tree = call_tree(["main", "main/f", "main/g", "main/h"])
    largest = np.array([9.0, 6.0, 4.0, 0.0])
    found = ProcessMaxima(largest, np.array([1, 1, 2, 0]), tree)
    # The exclusive maximum of main is not known, and g has two records that may have other maxima.
    ratio = found.imbalance(np.array([1.0, 2.0, 2.0, 0.0]))
    np.testing.assert_array_equal(ratio, np.array([np.nan, 3.0, np.nan, np.nan], np.float32))


def test_a_maximum_is_not_less_than_the_mean():
    tree = call_tree(["main"])
    found = ProcessMaxima(np.array([1.0]), np.array([1]), tree)
    assert found.imbalance(np.array([1.0 + 1e-9]))[0] == 1.0
