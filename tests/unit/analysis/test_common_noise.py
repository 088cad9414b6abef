"""Noise that all call paths of a run share does not hide the change of one of them."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.analysis.changes import LEAST_CALL_PATHS, factors_of_runs, relative_to_others
from callpath_modeler.analysis.difference import difference
from synthetic import TIME, VISITS, experiment
from two_sides import pair, row

SHARED, OWN = 0.1, 0.02
SIZES = np.exp(np.linspace(-3, 3, 20))
P = (2, 4, 8, 16, 32)


def measured(random, size=SIZES, runs=(5, 3), *, shared=SHARED, follows=None):
    """Return values [call paths, *runs], and the factors of the runs.

    `follows` says how much of the shared noise each call path has; None = all of it.
    """
    follows = np.ones(len(size)) if follows is None else follows
    common = shared * random.standard_normal(runs)
    own = OWN * random.standard_normal((len(size), *runs))
    return size[:, None, None] * np.exp(follows[:, None, None] * common + own), np.exp(common)


def relative(base, new):
    both = (base, new)
    return relative_to_others(both, [factors_of_runs(one) for one in both], (-1, -1), 0.95)


def program(values, metric=TIME):
    """Return an experiment of `values` [call paths, points, repetitions]."""
    names = ["main", *(f"main/f{k}" for k in range(1, len(values)))]
    return experiment(dict(zip(names, values.tolist(), strict=True)), P, metric=metric)


def test_factors_of_runs_are_found():
    values, factors = measured(np.random.default_rng(1), np.repeat(SIZES, 10))
    expected = factors / np.exp(np.log(factors).mean(axis=1, keepdims=True))
    assert factors_of_runs(values) == pytest.approx(expected, rel=0.01)


def test_single_runs_and_missing_values_have_no_factor():
    values, _ = measured(np.random.default_rng(1), runs=(2, 3))
    values[:, 1, 1:] = np.nan
    values[:7] = np.nan
    found = factors_of_runs(values)
    assert (found[1] == 1).all()
    assert (found[0] != 1).all()


def test_few_call_paths_are_not_compared_with_each_other():
    values, _ = measured(np.random.default_rng(1), SIZES[: LEAST_CALL_PATHS - 1])
    assert (factors_of_runs(values) == 1).all()
    assert relative(values, values) is None


def test_runs_without_repetitions_show_no_noise():
    values, _ = measured(np.random.default_rng(1), runs=(5, 1))
    assert relative(values, values) is None


@pytest.mark.parametrize("shared", [0.0, SHARED])
@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_stated_probabilities_are_right_if_nothing_changed(shared, spread):
    random = np.random.default_rng(3)
    small = []
    for _ in range(100):
        follows = np.maximum(1 + spread * random.standard_normal(len(SIZES)), 0)
        base, new = (measured(random, shared=shared, follows=follows)[0] for _ in range(2))
        small.append(relative(base, new).p < 0.05)
    assert np.mean(small) < 0.07


def test_a_call_path_that_became_slower_is_named_in_spite_of_shared_noise():
    random = np.random.default_rng(4)
    named, others = 0, 0
    for k in range(20):
        base, new = (measured(random)[0] for _ in range(2))
        new[k] *= 1.5
        found = difference(pair(program(base), program(new)), None)
        slow = row(found, f"main/f{k}" if k else "main")
        named += found.measured.mark[slow] == 1
        others += np.delete(found.measured.mark[:-1], slow).any()
    assert named == 20
    assert others <= 3


def test_an_unchanged_program_on_a_slower_machine_has_no_better_call_paths():
    random = np.random.default_rng(5)
    base, new = (measured(random)[0] for _ in range(2))
    new[1:] *= 1.3
    new[0] *= 1.1
    found = difference(pair(program(base), program(new)), None)
    # It is faster than the others, and slower than before.
    assert found.measured.mark[row(found, "main")] != -1


def test_counts_are_compared_alone():
    values, _ = measured(np.random.default_rng(6))
    found = difference(pair(program(values, VISITS), program(values, VISITS)), None)
    assert (found.measured.p == 1).all()
