"""Properties of all sets of call trees, with call paths that some runs lack."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.pattern import match
from callpath_modeler.profile.schema import PROGRAM, Region
from callpath_modeler.profile.unify import scatter_to_union, unify

# Few names, so that siblings, recursion and functions of one name on several lines are common.
REGIONS = [Region(name, line=line) for name in ("f", "g", "a/b", PROGRAM) for line in (1, 7)]
NOTES = ("", "[n=4]")
quick = settings(max_examples=60)


@st.composite
def trees(draw, most=25):
    """Draw a tree in preorder: callers are the previous call path or one of its callers."""
    parents: list[int] = []
    for row in range(draw(st.integers(0, most))):
        above = [ROOT]
        while row and (caller := (row - 1 if len(above) == 1 else parents[above[-1]])) != ROOT:
            above.append(caller)
        parents.append(draw(st.sampled_from(above)))
    size = len(parents)
    regions = draw(st.lists(st.integers(0, len(REGIONS) - 1), min_size=size, max_size=size))
    notes = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    return CallTree.from_parents(parents, regions, REGIONS, notes, NOTES)


@st.composite
def profiles(draw):
    """Draw a tree with an integer per call path, so that sums are exact."""
    tree = draw(trees())
    values = st.one_of(st.integers(0, 2**40).map(float), st.just(float("nan")))
    own = draw(st.lists(values, min_size=len(tree), max_size=len(tree)))
    return tree, np.array(own, float)


def inclusive_by_brute_force(tree, own):
    below = [0.0] * len(tree)
    for row in range(len(tree)):
        above = row
        while above != ROOT:
            below[above] += own[row]
            above = int(tree.parent[above])
    return below


def content(tree, column):
    """Return values by path and lines, which identify a call path in any row."""
    seen = {}
    for row in range(len(tree)):
        key, above = [], row
        while above != ROOT:
            key.append(tree.name(above))
            above = int(tree.parent[above])
        assert tuple(key) not in seen  # no two call paths of a unified tree share a path
        seen[tuple(key)] = None if np.isnan(column[row]) else float(column[row])
    return seen


@quick
@given(st.lists(profiles(), min_size=1, max_size=4))
def test_cost_is_conserved_however_call_paths_come_and_go(runs):
    united = unify([tree for tree, _ in runs])
    for (_, own), rows in zip(runs, united.rows, strict=True):
        column = scatter_to_union(own, rows, len(united.tree))
        total = float(np.nansum(own))
        assert np.nansum(column) == total
        inclusive = united.tree.inclusive(np.nan_to_num(column))
        assert inclusive[united.tree.roots].sum() == total


@quick
@given(st.lists(profiles(), min_size=1, max_size=4))
def test_subtrees_are_kept_and_nothing_moves_to_another_caller(runs):
    united = unify([tree for tree, _ in runs])
    for (tree, own), rows in zip(runs, united.rows, strict=True):
        column = scatter_to_union(own, rows, len(united.tree))
        whole = united.tree.inclusive(np.nan_to_num(column))
        parts = scatter_to_union(
            np.array(inclusive_by_brute_force(tree, np.nan_to_num(own))), rows, len(whole)
        )
        reached = ~np.isnan(parts)
        assert (whole[reached] == parts[reached]).all()
        assert not whole[~reached].any()
        for row, caller in enumerate(tree.parent):
            above = ROOT if caller == ROOT else rows[caller]
            assert united.tree.parent[rows[row]] == above


@quick
@given(st.lists(profiles(), min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_runs_changes_no_value(runs, random):
    order = list(range(len(runs)))
    random.shuffle(order)
    first = unify([tree for tree, _ in runs])
    other = unify([runs[k][0] for k in order])
    for place, k in enumerate(order):
        own = runs[k][1]
        assert content(
            first.tree, scatter_to_union(own, first.rows[k], len(first.tree))
        ) == content(other.tree, scatter_to_union(own, other.rows[place], len(other.tree)))
    assert [other.added[order.index(k)] for k in range(len(runs))] == list(first.added)


@quick
@given(st.lists(trees(), min_size=1, max_size=4))
def test_a_unified_tree_unifies_to_itself(several):
    once = unify(several).tree
    again = unify([once]).tree
    assert again.parent.tolist() == once.parent.tolist()
    assert [again.name(row) for row in range(len(again))] == [
        once.name(row) for row in range(len(once))
    ]


@quick
@given(st.lists(trees(), min_size=1, max_size=3))
def test_ids_of_a_unified_tree_are_unique_unless_the_artificial_root_hides_the_path(several):
    tree = unify(several).tree
    paths = [tree.path(row) for row in range(len(tree))]
    ids = tree.ids()
    assert len(set(ids)) == len(set(paths))
    assert len({*zip(paths, ids, strict=True)}) == len(set(paths))


@quick
@given(profiles())
def test_inclusive_values_equal_brute_force(profile):
    tree, own = profile
    own = np.nan_to_num(own)
    assert tree.inclusive(own).tolist() == inclusive_by_brute_force(tree, own)


@quick
@given(trees())
def test_depth_equals_the_number_of_callers(tree):
    expected = []
    for row in range(len(tree)):
        callers, above = 0, int(tree.parent[row])
        while above != ROOT:
            callers, above = callers + 1, int(tree.parent[above])
        expected.append(callers)
    assert tree.depth().tolist() == expected


@quick
@given(trees())
def test_two_stars_match_every_call_path(tree):
    assert match(tree, "**").all()


@quick
@given(trees())
def test_the_path_of_a_call_path_is_a_pattern_for_it(tree):
    for row in range(len(tree)):
        assert match(tree, tree.path(row))[row]


@pytest.mark.parametrize("seed", range(3))
def test_a_large_tree_is_unified_and_summed_without_loss(seed):
    rng = np.random.default_rng(seed)
    parents, stack = [], []
    for row in range(3000):
        del stack[max(0, len(stack) - int(rng.integers(0, 3))) :]
        parents.append(stack[-1] if stack else ROOT)
        stack.append(row)
    tree = CallTree.from_parents(parents, rng.integers(0, 8, 3000), REGIONS)
    own = rng.random(3000)
    united = unify([tree, tree])
    column = scatter_to_union(own, united.rows[1], len(united.tree))
    assert column.sum() == pytest.approx(own.sum())
    assert len(set(united.tree.ids())) == len(
        {united.tree.path(k) for k in range(len(united.tree))}
    )
