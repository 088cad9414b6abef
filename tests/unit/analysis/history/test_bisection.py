"""The cheapest runs that decide a commit, and the commit that halves the rest."""

from __future__ import annotations

import numpy as np

from callpath_modeler.history.judgement import deciding_runs, middle_of, narrowed
from cells import cells


def sides(change, scatter, seed=1):
    random = np.random.default_rng(seed)
    before = scatter * random.standard_normal((30, len(change)))
    return before, np.asarray(change) + scatter * random.standard_normal((10, len(change)))


def test_the_cheapest_scale_that_shows_the_change_is_chosen():
    before, after = sides([0.0005, 0.3, 0.6], 0.02)
    found = deciding_runs(before, after, 3, np.array([1.0, 10.0, 100.0]))
    assert (found.scale, found.repetitions, found.cost) == (1, 1, 10.0)


def test_a_small_change_needs_repetitions_and_a_smaller_one_no_runs_at_all():
    before, after = sides([0.06], 0.02)
    found = deciding_runs(before, after, 3, np.array([5.0]))
    expected = (
        1.645 * before.std(ddof=1) * np.sqrt(3) / abs(after.mean() - before.mean()) * 2
    ) ** 2
    assert found.repetitions == np.ceil(expected)
    assert found.cost == 5 * found.repetitions
    assert deciding_runs(*sides([0.002], 0.02), 3, np.array([5.0])) is None


def test_unknown_costs_are_no_costs_and_missing_levels_no_change():
    before, after = sides([0.5, 0.5], 0.01)
    found = deciding_runs(before, after, 3, np.array([np.nan, 7.0]))
    assert found.scale == 1
    assert deciding_runs(before[:1], after, 3, np.ones(2)) is None
    assert deciding_runs(before, np.full((3, 2), np.nan), 3, np.ones(2)) is None


@cells("first", range(1, 10))
def test_halving_finds_the_first_changed_commit(first):
    commits, steps = list(range(1, 11)), 0
    while len(commits) > 1:
        at = middle_of(len(commits))
        assert at < len(commits) - 1
        commits = commits[: at + 1] if commits[at] >= first else commits[at + 1 :]
        steps += 1
    assert commits == [first]
    assert steps <= 4


def test_a_run_at_a_small_scale_narrows_the_interval():
    levels = np.array([[0.0, 0.0]] * 5 + [[0.01, np.nan], [0.38, np.nan]] + [[0.4, 0.4]] * 4)
    assert narrowed(levels, 5, 7) == (6, 6)
    assert narrowed(levels[[*range(6), *range(7, 11)]], 5, 6) == (6, 6)
    levels[5] = 0.39, np.nan
    assert narrowed(levels, 5, 7) == (5, 5)
