"""Call paths that are joined: direct recursion, chains without cost, call sites."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.pruning import (
    drop_subtrees,
    fold_chains,
    fold_recursion,
    join_call_sites,
    merge_into_callers,
    recursive_calls,
)
from callpath_modeler.profile.schema import Region
from callpath_modeler.profile.unify import unify
from callpath_modeler.testing.checks import check_tree
from synthetic import chain, experiment

POINTS = (2.0, 4.0)


def made(values):
    return experiment(values, POINTS)


def costs(found):
    paths = found.tree.paths(range(len(found.tree)))
    assert len(set(paths)) == len(paths)
    return dict(zip(paths, found.values("time").tolist(), strict=True))


def inclusive(found, path):
    row = found.tree.paths(range(len(found.tree))).index(path)
    return found.values("time", inclusive=True)[row].tolist()


RECURSIVE = {
    "main": [1.0, 1.0],
    "main/f": [1.0, 2.0],
    "main/f/g": [10.0, 10.0],
    "main/f/f": [2.0, 4.0],
    "main/f/f/f": [3.0, 8.0],
    "main/f/f/f/g": [5.0, 5.0],
    "main/f/f/h": [7.0, 7.0],
    "main/g": [1.0, 1.0],
    "main/g/f": [1.0, 1.0],
}


def test_direct_recursion_becomes_its_outermost_call():
    whole = made(RECURSIVE)
    found = fold_recursion(whole)
    assert costs(found) == {
        "main": [1.0, 1.0],
        "main/f": [6.0, 14.0],
        "main/f/g": [15.0, 15.0],
        "main/f/h": [7.0, 7.0],
        "main/g": [1.0, 1.0],
        "main/g/f": [1.0, 1.0],
    }
    for path in ("main", "main/f", "main/g"):
        assert inclusive(found, path) == inclusive(whole, path)


def test_a_recursion_of_100000_calls_is_folded():
    whole = with_tree(chain(100_000), [[1.0, 2.0]] * 100_000)
    assert fold_recursion(whole).values("time").tolist() == [[1e5, 2e5]]


def test_chains_without_cost_are_left_out():
    values = {
        "main": [1.0, 1.0],
        "main/run": [0.0, 0.0],
        "main/run/loop": [0.0, np.nan],
        "main/run/loop/solve": [5.0, 6.0],
        "main/run/loop/solve/a": [1.0, 1.0],
        "main/run/loop/solve/b": [1.0, 1.0],
        "main/timed": [1.0, 0.0],
        "main/timed/x": [1.0, 0.0],
    }
    found = fold_chains(made(values))
    kept = {path: cost for path, cost in values.items() if not path.endswith(("run", "loop"))}
    expected = {path.replace("run/loop/", ""): cost for path, cost in kept.items()}
    assert costs(found) == expected
    assert found.chains == {1: ("run", "loop")}


def test_the_names_of_a_chain_stay_with_its_end():
    values = {"main": [1.0, 1.0], "main/a": [0.0, 0.0], "main/a/b": [0.0, 0.0]}
    values |= {"main/a/b/f": [2.0, 2.0], "main/a/b/f/f": [1.0, 1.0], "main/a/b/f/g": [3.0, 3.0]}
    values |= {"main/h": [2.0, 2.0]}
    folded = fold_chains(made(values))
    assert folded.chains == {1: ("a", "b")}
    assert fold_recursion(folded).chains == {1: ("a", "b")}
    assert fold_chains(folded).chains == {1: ("a", "b")}
    without = drop_subtrees(folded, ["main/h"])
    assert (without.chains, len(without.tree)) == ({1: ("a", "b")}, 4)
    assert drop_subtrees(folded, ["main/f"]).chains == {}
    assert merge_into_callers(folded, ["main/f"]).chains == {}


def test_a_chain_stays_if_its_end_would_join_another_callee():
    values = {
        "main": [1.0, 1.0],
        "main/solve": [2.0, 2.0],
        "main/run": [0.0, 0.0],
        "main/run/loop": [0.0, 0.0],
        "main/run/loop/solve": [5.0, 6.0],
    }
    assert costs(fold_chains(made(values))) == values


def test_roots_and_leaves_are_no_inner_parts_of_chains():
    values = {"main": [0.0, 0.0], "main/f": [0.0, 0.0], "main/f/g": [0.0, 0.0]}
    assert [*costs(fold_chains(made(values)))] == ["main", "main/g"]


def sited(names, parents, lines):
    """Return a tree of functions that are called from some lines."""
    known = {name: k for k, name in enumerate(dict.fromkeys(names))}
    regions = [Region(name) for name in known]
    tree = CallTree.from_parents(parents, [known[name] for name in names], regions, site=lines)
    return unify([tree]).tree


def with_tree(tree, values):
    """Return an experiment with the values of each call path of a tree."""
    return replace(experiment({f"x{k}": cost for k, cost in enumerate(values)}, POINTS), tree=tree)


def test_recursion_from_several_lines_is_folded_with_its_callees():
    # main calls f in line 3; f calls itself in lines 7 and 9, and g in line 8.
    tree = sited(["main", "f", "f", "g", "f", "g"], [-1, 0, 1, 2, 1, 1], [-1, 3, 7, 8, 9, 8])
    assert tree.paths(range(6)) == [
        "main", "main/f", "main/f/f:7", "main/f/f:7/g", "main/f/f:9", "main/f/g",
    ]  # fmt: skip
    found = fold_recursion(with_tree(tree, [[1, 1], [2, 2], [4, 4], [8, 8], [16, 16], [32, 32]]))
    assert costs(found) == {"main": [1, 1], "main/f": [22, 22], "main/f/g": [40, 40]}
    assert found.tree.site.tolist() == [-1, 3, 8]


def test_a_folded_caller_takes_the_lines_of_its_calls_with_it():
    # main calls f in line 5, and g calls f in line 31, which is no line of main.
    tree = sited(["main", "f", "g", "f"], [-1, 0, 0, 2], [-1, 5, 6, 31])
    found = merge_into_callers(with_tree(tree, [[1, 1], [2, 2], [4, 4], [8, 8]]), ["**/g"])
    assert costs(found) == {"main": [5, 5], "main/f:5": [2, 2], "main/f": [8, 8]}


def test_call_sites_are_joined_in_memory():
    tree = sited(["main", "f", "g", "f", "g"], [-1, 0, 1, 0, 3], [-1, 5, 3, 9, 3])
    found = join_call_sites(with_tree(tree, [[1, 1], [2, 2], [4, 4], [8, 8], [16, 16]]))
    assert costs(found) == {"main": [1, 1], "main/f": [10, 10], "main/f/g": [20, 20]}
    assert not found.tree.has_sites


@st.composite
def recursive_experiments(draw):
    size = draw(st.integers(1, 25))
    depth, parents = 0, [-1]
    stack = [0]
    for row in range(1, size):
        depth = draw(st.integers(1, len(stack)))
        stack = [*stack[:depth], row]
        parents.append(stack[-2])
    names = [draw(st.sampled_from("abc")) for _ in range(size)]
    lines = [draw(st.sampled_from([-1, 3, 4])) for _ in range(size)]
    tree = sited(names, parents, lines)
    values = draw(st.lists(st.integers(0, 9), min_size=len(tree), max_size=len(tree)))
    return with_tree(tree, [[float(value)] * 2 for value in values])


@given(recursive_experiments())
def test_folding_conserves_costs_and_leaves_nothing_to_fold(whole):
    total = whole.values("time").sum()
    for fold in (fold_recursion, fold_chains, join_call_sites):
        found = fold(whole)
        check_tree(found.tree)
        assert np.nansum(found.values("time")) == pytest.approx(total)
        assert costs(found)  # names are unique
        again = fold(found)
        assert again.tree.is_same_as(found.tree)
    assert not recursive_calls(fold_recursion(whole).tree).any()
