"""Properties of all views of all call trees, with recursion, absent and negative values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_call_trees import REGIONS, trees

from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.groups import Costs, Grouping, functions
from callpath_modeler.profile.outline import Selection, hot_path, outline
from callpath_modeler.profile.schema import PROGRAM
from callpath_modeler.profile.tree_views import BottomUp, Flat, ViewKind, open_view

quick = settings(max_examples=60)
BY = (Grouping.FILE, Grouping.REGION)


@st.composite
def profiles(draw):
    """Draw a tree with two columns of integers, so that sums are exact."""
    tree = draw(trees())
    values = st.one_of(st.integers(-(2**40), 2**40).map(float), st.just(float("nan")))
    own = draw(st.lists(values, min_size=2 * len(tree), max_size=2 * len(tree)))
    return tree, np.array(own, float).reshape(len(tree), 2)


def callers(tree, row):
    """Return the row and its callers, the nearest first, without an artificial root."""
    chain = []
    while row != ROOT:
        chain.append(row)
        row = int(tree.parent[row])
    if len(chain) > 1 and tree.regions[tree.region[chain[-1]]].name == PROGRAM:
        chain.pop()
    return chain


def expected_values(tree, own, rows):
    """Return exclusive and inclusive values by definition: inclusive sums all rows below `rows`."""
    below = [r for r in range(len(tree)) if any(a <= r < tree.end[a] for a in rows)]
    return [np.where(np.isnan(own[part]).all(axis=0), np.nan, np.nansum(own[part], axis=0))
            for part in (sorted(rows), below)]  # fmt: skip


def all_nodes(view):
    found, waiting = [], view.roots.tolist()
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting += view.children(node).tolist()
    return found


def check_nodes(view, tree, own, expected):
    nodes = all_nodes(view)
    assert sorted(view.names(node) for node in nodes) == sorted(expected)
    exclusive, inclusive = view.values(np.array(nodes, np.intp), Costs.of(tree, own))
    has_children = view.has_children(np.array(nodes, np.intp))
    for place, node in enumerate(nodes):
        rows = expected[view.names(node)]
        assert view.rows(node).tolist() == sorted(rows)
        alone, whole = expected_values(tree, own, rows)
        np.testing.assert_equal(exclusive[place], alone)
        np.testing.assert_equal(inclusive[place], whole)
        assert has_children[place] == (len(view.children(node)) > 0)


@quick
@given(profiles())
def test_bottom_up_values_are_those_of_all_call_paths_that_end_in_the_callers_given(profile):
    tree, own = profile
    of_region, names = functions(tree.regions)
    expected: dict[tuple[str, ...], set[int]] = {}
    for row in range(len(tree)):
        chain = [names[of_region[tree.region[r]]] for r in callers(tree, row)]
        for length in range(1, len(chain) + 1):
            expected.setdefault(tuple(chain[:length]), set()).add(row)
    check_nodes(BottomUp(tree), tree, own, expected)


@quick
@given(profiles())
def test_flat_values_are_those_of_all_call_paths_of_a_file_or_function(profile):
    tree, own = profile
    expected: dict[tuple[str, ...], set[int]] = {}
    for row in range(len(tree)):
        region = tree.regions[tree.region[row]]
        file = region.file or "<unknown file>"
        for names in ((file,), (file, region.name)):
            expected.setdefault(names, set()).add(row)
    check_nodes(Flat(tree, BY), tree, own, expected)


@quick
@given(
    profiles(),
    st.sampled_from(ViewKind),
    st.booleans(),
    st.integers(0, 2**41),
    st.one_of(st.none(), st.integers(1, 3)),
    st.one_of(st.none(), st.integers(1, 3)),
)
def test_no_view_loses_cost_whatever_is_hidden(profile, kind, inclusive, least, top, depth):
    tree, own = profile
    costs = Costs.of(tree, own)
    view = open_view(tree, kind, BY)
    lines = outline(view, costs, Selection(1, inclusive, float(least), top, depth))
    check = lines.check(costs)
    assert check.holds
    assert check.counted.tolist() == np.nansum(own, axis=0).tolist()
    if kind is ViewKind.TOP_DOWN:
        with_line = {line.node for line in lines.lines if not line.is_rest}
        assert {*lines.hidden.tolist()} == {*range(len(tree))} - with_line


@quick
@given(profiles(), st.sampled_from(ViewKind))
def test_callees_and_callers_never_have_more_call_paths_than_what_they_are_below(profile, kind):
    tree, own = profile
    view = open_view(tree, kind, BY)
    costs = Costs.of(tree, np.abs(np.nan_to_num(own)))
    for node in all_nodes(view):
        children = view.children(node)
        below, above = view.values(children, costs), view.values(np.array([node]), costs)
        assert (below[1] <= above[1]).all()
        if kind is not ViewKind.TOP_DOWN:
            assert (below[0].sum(axis=0) <= above[0][0]).all()


@quick
@given(profiles(), st.sampled_from(ViewKind))
def test_the_hot_path_is_a_path_and_never_grows(profile, kind):
    tree, own = profile
    view, costs = open_view(tree, kind, BY), Costs.of(tree, np.nan_to_num(own))
    path = hot_path(view, lambda nodes: view.values(nodes, costs)[1][:, 0])
    assert [view.parent(node) for node in path] == [ROOT, *path[:-1]][: len(path)]
    values = view.values(np.array(path, np.intp), costs)[1][:, 0]
    assert (values[1:] >= 0.5 * values[:-1]).all()


@pytest.mark.parametrize("seed", range(2))
def test_a_large_recursive_tree_adds_up_in_every_view(seed):
    rng = np.random.default_rng(seed)
    parents, stack = [], []
    for row in range(3000):
        del stack[max(0, len(stack) - int(rng.integers(0, 3))) :]
        parents.append(stack[-1] if stack else ROOT)
        stack.append(row)
    tree = CallTree.from_parents(parents, rng.integers(0, 8, 3000), REGIONS)
    costs = Costs.of(tree, rng.random((3000, 2)))
    for kind in ViewKind:
        lines = outline(open_view(tree, kind), costs, Selection(least=5.0, depth=4))
        assert lines.check(costs).holds
