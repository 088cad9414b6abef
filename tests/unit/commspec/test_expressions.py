"""Numbers as formulas that reproduce the numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cpmodel_commspec.expressions import RANK, Expression, find


def test_what_never_varies_is_a_number():
    assert find(np.full((4, 3, 2), 7), [0, 1, 2, 3]) == Expression(7)


def test_what_grows_evenly_is_a_sum():
    ranks = [1, 4, 6]
    rank, i, j = np.ix_(ranks, range(3), range(5))
    found = find(100 + 8 * rank - 3 * i + 16 * j, ranks)
    assert found == Expression(100, 8, (-3, 16))


def test_what_is_irregular_in_one_direction_is_a_table_of_it():
    table = np.array([1, 5, 2, 9])
    found = find(np.ones((3, 1), np.int64) * table + 10 * np.arange(3)[:, None], [0, 1, 2])
    assert found == Expression(0, 10, (0,), (0,), (4,), (1, 5, 2, 9))


def test_the_table_of_a_single_rank_is_its_row():
    values = np.array([[1, 5], [4, 4], [0, 9]])
    found = find(values, [2, 3, 8])
    assert found.axes == (RANK, 0)
    np.testing.assert_array_equal(found.of_rank(1).values([3], [2]), [[4, 4]])


def test_a_table_that_begins_anew_says_where():
    values = np.tile(np.arange(8), 4)[np.newaxis] + np.repeat(100 * np.arange(4) ** 2, 8)
    assert (find(values, [0]).jumps(0) + 1).tolist() == [8, 16, 24]


@given(
    st.data(),
    st.lists(st.integers(0, 50), min_size=1, max_size=4, unique=True).map(sorted),
    st.lists(st.integers(1, 4), max_size=3),
)
def test_formulas_give_the_numbers_back(data, ranks, counts):
    shape = (len(ranks), *counts)
    values = data.draw(hnp.arrays(np.int64, shape, elements=st.integers(-3, 3)))
    np.testing.assert_array_equal(find(values, ranks).values(ranks, counts), values)
