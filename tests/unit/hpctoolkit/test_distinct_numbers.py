"""Distinct numbers of contexts, as `numpy.unique` finds them."""

from __future__ import annotations

import numpy as np

from cells import cells
from cpmodel_hpctoolkit.contexts import distinct_of


@cells("largest", [2, 20, 10**9])
@cells("least", [0, -2])
def test_distinct_numbers_are_those_of_numpy(least, largest):
    rng = np.random.default_rng(1)
    for count in (0, 1, 2, 30):
        numbers = rng.integers(least, largest, count)
        found, expected = distinct_of(numbers), np.unique(numbers, return_inverse=True)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
