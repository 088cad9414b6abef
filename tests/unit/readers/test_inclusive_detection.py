"""Times whose titles do not say whether they are inclusive."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.readers.paths import exclusive_of
from callpath_modeler.readers.records import looks_inclusive, same_times
from synthetic import call_tree

PATHS = ["main", "main/a", "main/a/x", "main/a/x/y", "main/b", "main/b/z", "main/c"]
OWN = np.array([0.01, 0.1, 1.0, 3.0, 0.2, 2.0, 0.5])[:, None] * np.array([1.0, 2.0, 3.0])


@pytest.fixture(scope="module")
def tree():
    return call_tree(PATHS)


def test_inclusive_values_look_inclusive_and_exclusive_ones_do_not(tree):
    inclusive = np.stack([OWN[row : tree.end[row]].sum(axis=0) for row in range(len(tree))])
    assert np.allclose(exclusive_of(tree, inclusive)[0], OWN)
    why = looks_inclusive(tree, inclusive)
    assert why == "each of 4 callers takes at least the time of its callees"
    assert not looks_inclusive(tree, OWN)


def test_one_caller_that_takes_less_than_its_callees_settles_it(tree):
    inclusive = np.stack([OWN[row : tree.end[row]].sum(axis=0) for row in range(len(tree))])
    inclusive[1, 2] *= 0.9
    assert not looks_inclusive(tree, inclusive)


def test_what_was_not_measured_proves_nothing(tree):
    inclusive = np.stack([OWN[row : tree.end[row]].sum(axis=0) for row in range(len(tree))])
    inclusive[[0, 1], :] = np.nan
    assert not looks_inclusive(tree, inclusive)


def test_one_run_of_few_callers_proves_nothing(tree):
    inclusive = np.stack([OWN[row : tree.end[row]].sum(axis=0) for row in range(len(tree))])
    assert not looks_inclusive(tree, inclusive[:, :1])


def test_functions_of_a_list_that_all_take_what_the_program_takes_contain_each_other():
    tree = call_tree(["main", "loop", "solve", "output"])
    times = np.array([[10.0, 20.0, 40.0], [9.99, 19.98, 39.9], [9.95, 19.9, 39.8], [1, 1, 1]])
    assert same_times(tree, times).startswith("3 functions take the same, largest time")
    assert not same_times(tree, times[[0, 1, 3, 3]])
    assert not same_times(tree, times[:, :2])
    assert not same_times(tree, 0 * times)


def test_call_paths_of_the_same_time_contain_each_other_only_if_one_calls_the_next():
    times = np.array([[10.0, 20.0, 40.0], [9.99, 19.98, 39.9], [9.95, 19.9, 39.8], [9, 18, 36]])
    chain = call_tree(["main", "main/loop", "main/loop/solve", "main/loop/output"])
    assert same_times(chain, times).startswith("3 functions")
    siblings = call_tree(["main", "main/loop", "main/solve", "main/output"])
    assert not same_times(siblings, times)
