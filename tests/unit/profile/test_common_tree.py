"""Call paths of a run are found in the common tree in the rows in which unification put them."""

from __future__ import annotations

import numpy as np

from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import Region
from callpath_modeler.profile.unify import unify
from callpath_modeler.readers.process_values import CommonTree
from cells import cells
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


@cells("seed", range(40))
def test_wanted_call_paths_are_found_as_among_all(seed):
    random = np.random.default_rng(seed)
    regions = [Region(f"f{k % 4}", file="a.c", line=int(10 * (k // 4))) for k in range(6)]
    trees = []
    for _ in range(3):
        parents = [ROOT]
        for row in range(1, 60):
            callers = [row - 1]
            while callers[-1] != ROOT:
                callers.append(parents[callers[-1]])
            parents.append(int(random.choice(callers)))
        trees.append(CallTree.from_parents(parents, random.integers(0, 6, 60), regions))
    united = unify(trees)
    wanted = random.uniform(size=len(united.tree)) < random.choice([0.02, 0.1, 1.0])
    for ignored in ([], ["**/f2"]):
        given = {"ignored": ignored, "renumbered": united.renumbered}
        whole = CommonTree(united.tree, **given)
        some = CommonTree(united.tree, **given, wanted=wanted)
        for tree in trees:
            expected = whole.rows_of(tree)
            found = some.rows_of(tree)
            asked = (expected != ROOT) & np.append(wanted, False)[expected]
            np.testing.assert_array_equal(found[asked], expected[asked])
            assert ((found == expected) | (found == ROOT)).all()


def test_call_paths_that_the_common_tree_lacks_have_no_row():
    rows = CommonTree(call_tree(["main", "main/a"])).rows_of(
        call_tree(["main", "main/x", "main/x/a", "main/a"])
    )
    assert rows.tolist() == [0, ROOT, ROOT, 1]
