"""Call paths of a run are found in the common tree in the rows in which unification put them."""

from __future__ import annotations

import numpy as np

from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.matching import CommonTree
from callpath_modeler.profile.schema import Region
from callpath_modeler.profile.unify import unify
from synthetic import call_tree


def tree_of(*regions):
    """Return a tree whose root calls all other regions."""
    parents = [ROOT, *[0] * (len(regions) - 1)]
    return CallTree.from_parents(parents, range(len(regions)), regions)


def same_as_united(*trees):
    united = unify(trees)
    common = CommonTree(united.tree, renumbered=united.renumbered)
    for tree, rows in zip(trees, united.rows, strict=True):
        np.testing.assert_array_equal(common.rows_of(tree), rows)


def test_runs_with_different_call_paths():
    same_as_united(
        call_tree(["main", "main/a", "main/a/b", "main/c"]),
        call_tree(["main", "main/c", "main/d", "main/a"]),
    )


def test_functions_of_one_name_are_told_apart_by_their_lines():
    main = Region("main")
    first, second, third = (Region("static", file="a.c", line=line) for line in (10, 20, 30))
    same_as_united(tree_of(main, second, first), tree_of(main, second))
    same_as_united(tree_of(main, second, first), tree_of(main, second), tree_of(main, third))


def test_functions_of_one_name_keep_their_order_in_another_build():
    main = Region("main")
    old = [Region("static", file="a.c", line=line) for line in (10, 20)]
    new = [Region("static", file="a.c", line=line) for line in (11, 22)]
    same_as_united(tree_of(main, *old), tree_of(main, *new))


def test_excluded_call_paths_have_no_row_and_folded_ones_that_of_their_caller():
    own = call_tree(["main", "main/a", "main/a/b", "main/a/b/c", "main/d", "main/d/e"])
    common = call_tree(["main", "main/a", "main/a/c"])
    rows = CommonTree(common, ignored=["main/d"], hidden=["**/b"]).rows_of(own)
    assert rows.tolist() == [0, 1, 1, 2, ROOT, ROOT]


def test_call_paths_that_the_common_tree_lacks_have_no_row():
    rows = CommonTree(call_tree(["main", "main/a"])).rows_of(
        call_tree(["main", "main/x", "main/x/a", "main/a"])
    )
    assert rows.tolist() == [0, ROOT, ROOT, 1]
