from __future__ import annotations

import itertools

import numpy as np
import pytest

from callpath_modeler.profile import unify as unify_module
from callpath_modeler.profile.calltree import NO_LINE, ROOT, CallTree
from callpath_modeler.profile.schema import PROGRAM, Region
from callpath_modeler.profile.unify import scatter_to_union, unify
from synthetic import call_tree


def paths(tree):
    return [tree.path(row) for row in range(len(tree))]


def test_equal_trees_unify_to_themselves():
    tree = call_tree(["main", "main/f", "main/f/g"])
    united = unify([tree, tree])
    assert paths(united.tree) == paths(tree)
    assert [rows.tolist() for rows in united.rows] == [[0, 1, 2]] * 2
    assert united.added == (0, 0)
    assert united.renumbered == ()


def test_a_call_path_of_one_run_alone_is_kept():
    small, large = call_tree(["main", "main/f"]), call_tree(["main", "main/MPI_Send", "main/f"])
    united = unify([small, large])
    assert sorted(paths(united.tree)) == ["main", "main/MPI_Send", "main/f"]
    values = scatter_to_union(np.array([1.0, 2.0]), united.rows[0], 3)
    assert np.isnan(values[paths(united.tree).index("main/MPI_Send")])


def test_siblings_of_one_name_are_added_and_counted():
    united = unify([call_tree(["main", "main/f", "main/f", "main/g"])])
    assert paths(united.tree) == ["main", "main/f", "main/g"]
    assert united.added == (1,)
    assert scatter_to_union(np.array([1.0, 2.0, 4.0, 8.0]), united.rows[0], 3).tolist() == [
        1.0,
        6.0,
        8.0,
    ]


def test_what_is_below_added_siblings_is_added_too():
    tree = call_tree(["main", "main/f", "main/f/g", "main/f", "main/f/g"])
    united = unify([tree])
    assert paths(united.tree) == ["main", "main/f", "main/f/g"]
    assert united.added == (2,)


def test_calls_with_different_parameters_stay_apart():
    tree = call_tree(["main", "main/f", "main/f"], ["", "[n=4]", "[n=8]"])
    assert paths(unify([tree, tree]).tree) == ["main", "main/f[n=4]", "main/f[n=8]"]


def test_functions_of_one_name_are_numbered_by_line():
    tree = call_tree(["main", "main/init@30", "main/init@10"])
    united = unify([tree])
    assert sorted(paths(united.tree)) == ["main", "main/init", "main/init#2"]
    second = paths(united.tree).index("main/init#2")
    assert united.rows[0][1] == second  # line 30 is the second, wherever it is called


def test_a_function_that_one_run_lacks_does_not_shift_the_others():
    whole = call_tree(["main", "main/init@10", "main/init@20", "main/init@30"])
    lacking = call_tree(["main", "main/init@20", "main/init@30"])
    united = unify([lacking, whole])
    assert united.renumbered == ()
    assert len(united.tree) == 4
    assert united.rows[0][1] == united.rows[1][2]
    assert united.rows[0][2] == united.rows[1][3]


def test_lines_that_moved_between_builds_are_matched_by_order_and_said():
    one = call_tree(["main", "main/init@10", "main/init@20"])
    other = call_tree(["main", "main/init@12", "main/init@25"])
    united = unify([one, other])
    assert len(united.tree) == 3
    assert united.renumbered == ("init",)


def test_a_line_that_moved_is_no_other_function_where_the_name_is_unique():
    united = unify([call_tree(["main", "main/f@10"]), call_tree(["main", "main/f@99"])])
    assert len(united.tree) == 2
    assert united.renumbered == ()


def test_the_build_directory_is_no_key():
    trees = [
        CallTree.from_parents([ROOT], [0], [Region("f", file=f"/build/{k}/f.c", line=3)])
        for k in range(2)
    ]
    assert len(unify(trees).tree) == 1


def test_the_artificial_root_is_one_whatever_the_executable_is_called():
    trees = [
        CallTree.from_parents([ROOT, 0], [0, 1], [Region(PROGRAM, mangled=name), Region("main")])
        for name in ("bt.C.64", "bt.C.128")
    ]
    assert len(unify(trees).tree) == 2


def test_every_call_path_of_every_order_of_runs_gets_the_same_values():
    trees = [
        call_tree(["main", "main/f", "main/g@3", "main/g@9"]),
        call_tree(["main", "main/g@3", "main/g@9", "main/h"]),
        call_tree(["main", "main/h", "main/f", "main/f"]),
    ]
    values = [np.arange(1.0, len(tree) + 1) * 10**k for k, tree in enumerate(trees)]
    seen = []
    for order in itertools.permutations(range(3)):
        united = unify([trees[k] for k in order])
        table = {
            k: scatter_to_union(values[k], united.rows[place], len(united.tree))
            for place, k in enumerate(order)
        }
        seen.append(
            {
                path: tuple(float(np.nan_to_num(table[k][row], nan=-1)) for k in range(3))
                for row, path in enumerate(paths(united.tree))
            }
        )
    assert all(one == seen[0] for one in seen)


def test_the_union_is_in_preorder_and_has_the_order_of_the_first_run():
    first = call_tree(["main", "main/b", "main/a"])
    second = call_tree(["main", "main/a", "main/a/x", "main/c", "main/b", "main/b/y"])
    united = unify([first, second]).tree
    assert paths(united) == ["main", "main/b", "main/b/y", "main/a", "main/a/x", "main/c"]


def test_a_value_that_is_missing_everywhere_stays_missing_and_zero_stays_zero():
    rows = np.array([0, 1, 1])
    assert scatter_to_union(np.array([0.0, np.nan, 2.0]), rows, 3)[:2].tolist() == [0.0, 2.0]
    assert np.isnan(scatter_to_union(np.array([0.0, np.nan, np.nan]), rows, 3)[1:]).all()


def test_a_chain_of_50000_calls_is_unified():
    depth = 50_000
    tree = CallTree.from_parents(np.arange(-1, depth - 1), np.zeros(depth, int), [Region("f")])
    shorter = CallTree.from_parents(np.arange(-1, 9), np.zeros(10, int), [Region("f")])
    united = unify([shorter, tree])
    assert len(united.tree) == depth
    assert united.rows[0].tolist() == list(range(10))


@pytest.mark.parametrize("count", [1, 3])
def test_runs_without_call_paths_unify_to_nothing(count):
    assert len(unify([CallTree.from_parents([], [], [])] * count).tree) == 0


def test_one_tree_is_unified_as_with_others(monkeypatch):
    """A tree whose siblings differ in names or lines takes a shorter way to the same result."""
    random, shorter, called_from = np.random.default_rng(5), 0, 0
    found = unify_module._as_it_is
    for _ in range(300):
        size = int(random.integers(1, 12))
        parent, stack = [], [ROOT]
        for row in range(size):
            del stack[int(random.integers(1, len(stack) + 1)) :]
            parent.append(stack[-1])
            stack.append(row)
        regions = [Region(f"f{k % 4}", file=f"{k % 2}.c", line=k % 3) for k in range(6)]
        notes = ["x", "", "y", "x"]
        tree = CallTree.from_parents(
            parent,
            random.integers(0, 6, size),
            [Region(PROGRAM), *regions[1:]],
            random.integers(0, 4, size),
            notes,
            random.integers(NO_LINE, 4, size) if random.random() < 0.7 else None,
        )
        short = found(tree)
        shorter += short is not None
        called_from += short is not None and any(":" in note for note in short.annotations)
        monkeypatch.setattr(unify_module, "_as_it_is", found)
        one = unify([tree, tree])
        monkeypatch.setattr(unify_module, "_as_it_is", lambda _: None)
        other = unify([tree, tree])
        assert one.tree.is_same_as(other.tree)
        for mine, others in zip(one.rows, other.rows, strict=True):
            np.testing.assert_array_equal(mine, others)
        assert (one.added, one.renumbered) == (other.added, other.renumbered)
        assert one.without_sites == other.without_sites
    assert 50 < shorter < 290
    assert called_from > 20
