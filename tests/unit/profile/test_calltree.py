from __future__ import annotations

import copy
import gc
import weakref
from itertools import product

import numpy as np
import pytest

from callpath_modeler.profile import calltree
from callpath_modeler.profile.calltree import ROOT, CallTree, escape, subtree_ends
from callpath_modeler.profile.schema import PROGRAM, Region
from callpath_modeler.testing.checks import check_tree
from cells import cells
from synthetic import call_tree, chain

PATHS = ["main", "main/f", "main/f/g", "main/f/h", "main/k", "other"]
DEEP = 50_000


def test_a_subtree_is_the_slice_up_to_its_end():
    tree = call_tree(PATHS)
    assert tree.end.tolist() == [5, 4, 3, 4, 5, 6]
    assert tree.roots.tolist() == [0, 5]


def test_children_come_in_order_and_skip_grandchildren():
    tree = call_tree(PATHS)
    assert list(tree.children(0)) == [1, 4]
    assert list(tree.children(1)) == [2, 3]
    assert list(tree.children(5)) == []


def test_rows_out_of_preorder_are_refused():
    with pytest.raises(ValueError, match="preorder"):
        subtree_ends(np.array([ROOT, 0, 0, 1], np.int32))


def test_columns_cannot_be_written():
    tree = call_tree(PATHS)
    with pytest.raises(ValueError, match="read-only"):
        tree.parent[0] = 3


def test_depth_counts_callers():
    assert call_tree(PATHS).depth().tolist() == [0, 1, 2, 2, 1, 0]


def test_inclusive_sums_each_subtree_and_keeps_further_axes():
    tree = call_tree(PATHS)
    own = np.arange(12.0).reshape(6, 2)
    total = tree.inclusive(own)
    assert total[1].tolist() == own[1:4].sum(axis=0).tolist()
    assert total[0].tolist() == own[:5].sum(axis=0).tolist()
    assert own[0].tolist() == [0.0, 1.0]  # the argument stays as it was


def test_a_small_subtree_keeps_its_digits_beside_a_large_one():
    tree = call_tree(["main", "main/big", "main/small", "main/small/leaf"])
    total = tree.inclusive(np.array([0.0, 1e17, 1.0, 2.0]))
    assert total[2] == 3.0


def test_an_empty_tree_has_no_roots_and_no_ids():
    tree = CallTree.from_parents([], [], [])
    assert len(tree) == 0
    assert tree.ids() == []
    assert tree.inclusive(np.empty(0)).tolist() == []


def test_a_chain_of_50000_calls_is_no_problem():
    tree = chain(DEEP)
    assert tree.depth()[-1] == DEEP - 1
    assert len(tree.names(DEEP - 1)) == DEEP
    assert tree.inclusive(np.ones(DEEP))[0] == DEEP
    ids = tree.ids()
    assert len(set(ids)) == DEEP


def test_a_slash_in_a_name_is_escaped_in_paths():
    tree = call_tree(["main"])
    tree = CallTree.from_parents([ROOT, 0], [0, 1], [*tree.regions, Region("operator/")])
    assert escape("a/b") == "a\\/b"
    assert tree.path(1) == "main/operator\\/"


def test_the_artificial_root_is_left_out_of_paths_below_it():
    regions = [Region(PROGRAM), Region("main")]
    tree = CallTree.from_parents([ROOT, 0], [0, 1], regions)
    assert tree.path(0) == PROGRAM
    assert tree.path(1) == "main"


def test_many_paths_at_once_are_those_of_each():
    names = (PROGRAM, "main", "operator/", PROGRAM, "f", "other")
    tree = CallTree.from_parents(
        *([ROOT, 0, 1, 0, 3, ROOT], range(6), [*map(Region, names)]),
        annotation=[0, 0, 1, 0, 1, 0],
        annotations=["", "#2"],
    )
    for rows in (range(6), [4, 1, 5, 4], [2], []):
        assert tree.paths(rows) == [tree.path(row) for row in rows]
    assert tree.paths([2, 4]) == ["main/operator\\/#2", "<program>/f#2"]
    assert tree.paths([2, 4], str.upper) == ["MAIN/OPERATOR/#2", "<PROGRAM>/F#2"]


def test_one_path_far_down_costs_no_more_than_itself():
    assert len(chain(DEEP).paths([DEEP - 1])[0].split("/")) == DEEP


def test_an_id_depends_on_the_path_alone():
    with_root = CallTree.from_parents(
        [ROOT, 0, 1], [0, 1, 2], list(map(Region, (PROGRAM, "main", "f")))
    )
    assert call_tree(PATHS).ids()[1] == call_tree(["main", "main/a", "main/f"]).ids()[2]
    assert with_root.ids()[2] == call_tree(PATHS).ids()[1]


def test_ids_have_seven_hexadecimal_digits():
    ids = call_tree(PATHS).ids()
    assert all(len(one) == calltree.ID_DIGITS for one in ids)
    assert all(int(one, 16) >= 0 for one in ids)


def test_ids_with_a_common_start_are_as_long_as_tells_them_apart():
    names = [f"f{k}" for k in range(20_000)]  # of so many, some share seven digits
    tree = CallTree.from_parents(np.full(20_000, ROOT), np.arange(20_000), list(map(Region, names)))
    ids = tree.ids()
    longer = [one for one in ids if len(one) > calltree.ID_DIGITS]
    assert longer
    assert len(set(ids)) == len(ids)
    starts = [one[: calltree.ID_DIGITS] for one in ids]
    assert all(starts.count(one[: calltree.ID_DIGITS]) > 1 for one in longer)


def test_ids_of_some_call_paths_are_those_of_all():
    names = [f"f{k}" for k in range(20_000)]
    tree = CallTree.from_parents(np.full(20_000, ROOT), np.arange(20_000), list(map(Region, names)))
    ids = tree.ids()
    longest = max(range(len(ids)), key=lambda row: len(ids[row]))
    assert tree.ids([longest, 3]) == [ids[longest], ids[3]]
    assert tree.ids([]) == []


def test_parameters_of_a_call_are_part_of_its_name_and_id():
    tree = call_tree(["main", "main/f", "main/f"], ["", "[n=4]", "[n=8]"])
    assert tree.name(1) == "f[n=4]"
    assert len(set(tree.ids())) == 3


def test_columns_make_the_same_tree_and_only_those_of_a_tree_do():
    for size in range(4):
        for parent in product(range(-1, size), repeat=size):
            try:
                tree = CallTree.from_parents(parent, np.zeros(size), [Region("f")])
            except ValueError:
                tree = None
            for end in product(range(size + 2), repeat=size):
                zeros = np.zeros(size)
                columns = np.array([parent, end, zeros, zeros], np.int32)
                if tree is not None and tree.end.tolist() == list(end):
                    again = CallTree.from_columns(columns, tree.regions, tree.annotations)
                    check_tree(again)
                    assert again.is_same_as(tree)
                    np.testing.assert_array_equal(again.columns, columns)
                else:
                    with pytest.raises(ValueError, match="preorder"):
                        CallTree.from_columns(columns, [Region("f")], [""])


def test_copies_of_one_tree_are_one_tree():
    tree = CallTree.from_parents([-1, 0, 0], [0, 1, 1], [Region("main"), Region("f")])
    first, second = (copy.copy(tree) for _ in range(2))
    assert first is second
    assert first.is_same_as(tree)
    assert not first.parent.flags.writeable
    other = CallTree.from_parents([-1, 0, 1], [0, 1, 1], [Region("main"), Region("f")])
    assert copy.copy(other).is_same_as(other)


def test_a_tree_that_nobody_uses_leaves_no_copy():
    tree = CallTree.from_parents([-1, 0], [0, 1], [Region("main"), Region("only here")])
    twin = copy.copy(tree)
    gone = weakref.ref(twin)
    del twin
    gc.collect()
    assert gone() is None


@cells(
    "ids", [[[1, 1], [8, 8]], [[1, 0], [8, 8]], [[-1], [8]], [[2], [8]], [[0], [7]], [[0], [33]]]
)
def test_stored_ids_of_no_call_path_or_length_are_refused(ids):
    tree = CallTree.from_parents([ROOT, 0], [0, 1], [Region("main"), Region("f")])
    with pytest.raises(ValueError, match="id"):
        tree.know_long_ids(np.array(ids, np.int32))
