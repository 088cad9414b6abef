from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.groups import Costs, FormulaCosts, Grouping, functions, outermost
from callpath_modeler.profile.outline import Selection, hot_path, outline
from callpath_modeler.profile.schema import PROGRAM, Region
from callpath_modeler.profile.tree_views import BottomUp, Flat, TopDown, View, ViewKind, open_view
from synthetic import call_tree, chain

NAN = float("nan")
DEEP = 50_000

# The example of HPCToolkit's manual: m in file1.c calls f and g, f calls g, g calls itself and h.
# Printed there: g_1 costs 6 and g_3 costs 3 with all that they call, so g costs 9.
FILES = {"m": "file1.c", "f": "file1.c", "g": "file2.c", "h": "file2.c"}
REGIONS = tuple(Region(name, file=file, module="a.out") for name, file in FILES.items())
MANUAL = CallTree.from_parents([ROOT, 0, 1, 2, 3, 0], [0, 1, 2, 2, 3, 2], REGIONS)
MANUAL_COST = np.array([0.0, 1.0, 1.0, 1.0, 4.0, 3.0])  # m f g_1 g_2 h g_3


def of(tree, *columns):
    return Costs.of(tree, np.array(columns, float).T)


def one(view: View, nodes, name):
    (found,) = [node for node in nodes.tolist() if view.name(node) == name]
    return found


def shown(view, nodes, costs):
    own, whole = view.values(nodes, costs)
    return {view.name(node): (whole[k, 0], own[k, 0]) for k, node in enumerate(nodes.tolist())}


def test_top_down_is_the_call_tree():
    view, costs = TopDown(MANUAL), of(MANUAL, MANUAL_COST)
    assert shown(view, view.roots, costs) == {"m": (10, 0)}
    assert shown(view, view.children(0), costs) == {"f": (7, 1), "g": (3, 3)}
    assert shown(view, view.children(2), costs) == {"g": (5, 1)}
    assert view.children(4).tolist() == []
    assert view.has_children(np.arange(6)).tolist() == [True, True, True, True, False, False]
    assert view.names(4) == ("m", "f", "g", "g", "h")


def test_a_recursive_function_counts_its_outermost_instances_only_bottom_up():
    view, costs = BottomUp(MANUAL), of(MANUAL, MANUAL_COST)
    assert shown(view, view.roots, costs) == {"m": (10, 0), "f": (7, 1), "g": (9, 5), "h": (4, 4)}


def test_callers_share_the_cost_of_what_they_call():
    view, costs = BottomUp(MANUAL), of(MANUAL, MANUAL_COST)
    g = one(view, view.roots, "g")
    assert shown(view, view.children(g), costs) == {"m": (3, 3), "f": (6, 1), "g": (5, 1)}
    below = one(view, view.children(g), "g")
    assert shown(view, view.children(below), costs) == {"f": (5, 1)}
    assert view.names(int(view.children(below)[0])) == ("g", "g", "f")
    h = one(view, view.roots, "h")
    path = [h]
    while len(nodes := view.children(path[-1])):
        path.append(int(nodes[0]))
    assert view.names(path[-1]) == ("h", "g", "g", "f", "m")
    assert shown(view, np.array(path[-1:]), costs) == {"m": (4, 4)}


def test_a_recursive_function_counts_its_outermost_instances_only_in_the_flat_view():
    costs = of(MANUAL, MANUAL_COST)
    view = Flat(MANUAL)
    assert shown(view, view.roots, costs) == {"m": (10, 0), "f": (7, 1), "g": (9, 5), "h": (4, 4)}
    view = Flat(MANUAL, (Grouping.MODULE, Grouping.FILE, Grouping.REGION))
    assert shown(view, view.roots, costs) == {"a.out": (10, 10)}
    files = view.children(int(view.roots[0]))
    assert shown(view, files, costs) == {"file1.c": (10, 1), "file2.c": (9, 9)}
    inside = view.children(one(view, files, "file2.c"))
    assert shown(view, inside, costs) == {"g": (9, 5), "h": (4, 4)}
    assert view.has_children(view.roots).all()
    assert not view.has_children(inside).any()


def test_what_has_no_file_or_module_is_said_to_have_none():
    view = Flat(call_tree(["main"]), (Grouping.MODULE,))
    assert [view.name(node) for node in view.roots] == ["<unknown module>"]


def test_any_number_of_columns_is_summed_at_once_and_nothing_is_not_zero():
    tree = call_tree(["main", "main/f", "main/f/g", "main/g"])
    costs = of(tree, [1, 2, NAN, 4], [NAN, NAN, 8, NAN], [1, 1, NAN, NAN])
    view = BottomUp(tree)
    g = one(view, view.roots, "g")
    own, whole = view.values(np.array([g]), costs)
    np.testing.assert_equal(own, [[4, 8, NAN]])
    np.testing.assert_equal(whole, [[4, 8, NAN]])
    np.testing.assert_equal(costs.total, [7, 8, 2])


def test_values_of_nodes_from_anywhere_in_a_view_come_in_the_order_asked_for():
    view, costs = BottomUp(MANUAL), of(MANUAL, MANUAL_COST)
    g = one(view, view.roots, "g")
    nodes = np.concatenate([view.children(g)[::-1], [g], view.roots[:1]])
    together = view.values(nodes, costs)
    one_by_one = [view.values(nodes[[k]], costs) for k in range(len(nodes))]
    assert together[0].tolist() == [own[0].tolist() for own, _ in one_by_one]
    assert together[1].tolist() == [whole[0].tolist() for _, whole in one_by_one]


def test_the_artificial_program_root_calls_nothing():
    tree = CallTree.from_parents(
        [ROOT, 0, 1], [0, 1, 0], [Region(PROGRAM), Region("main"), Region("f")]
    )
    view = BottomUp(tree)
    assert not view.has_children(np.array([one(view, view.roots, "main")])).any()
    below = view.children(one(view, view.roots, PROGRAM))  # a function of that name is one
    assert [view.name(node) for node in below.tolist()] == ["main"]


def test_functions_are_told_apart_by_file_but_not_by_line_or_directory():
    regions = [
        Region("f", file="/a/x.c", line=1),
        Region("f", file="/b/x.c", line=7),
        Region("f", file="y.c"),
        Region("g"),
    ]
    numbers, names = functions(regions)
    assert numbers.tolist() == [0, 0, 1, 2]
    assert names == ("f (x.c)", "f (y.c)", "g")


def test_functions_are_one_whatever_builds_append_to_their_names():
    regions = [
        Region("solve.isra.3", key="solve"),
        Region("solve.isra.5", key="solve"),
        Region("poll [libc-2.28.so]", key="poll [libc.so]"),
    ]
    numbers, names = functions(regions)
    assert numbers.tolist() == [0, 0, 1]
    assert names == ("solve", "poll [libc-2.28.so]")


def test_siblings_of_one_name_are_one_function():
    tree = call_tree(["main", "main/f", "main/f"], ["", "", "#2"])
    view, costs = BottomUp(tree), of(tree, [1, 2, 4])
    assert shown(view, view.roots, costs)["f"] == (6, 6)
    assert [TopDown(tree).name(row) for row in (1, 2)] == ["f", "f#2"]


def test_groups_do_not_reach_into_each_other():
    tree = call_tree(["main", "main/f", "main/f/f", "main/g"])
    rows = np.array([0, 1, 2, 3, 1, 2])
    group = np.array([0, 0, 0, 0, 1, 1])
    assert outermost(tree, rows, group).tolist() == [True, False, False, False, True, False]
    assert outermost(tree, np.empty(0, np.intp), np.empty(0, np.intp)).tolist() == []


def test_the_hot_path_goes_down_while_a_node_has_half_of_the_one_above():
    tree = call_tree(["main", "main/f", "main/f/g", "main/f/h", "main/k"])
    costs = of(tree, [1, 1, 4, 3, 2])  # main 11, f 8, g 4, h 3

    def worth(nodes):
        return view.values(nodes, costs)[1][:, 0]

    view = TopDown(tree)
    assert hot_path(view, worth) == [0, 1, 2]
    assert hot_path(view, worth, part=0.6) == [0, 1]
    assert hot_path(view, worth, start=1) == [2]
    assert hot_path(view, worth, levels=2) == [0, 1]
    assert hot_path(view, lambda nodes: -worth(nodes)) == []
    view = BottomUp(tree)
    assert [view.name(node) for node in hot_path(view, worth)] == ["main"]


def test_siblings_together_do_not_count_what_one_calls_in_another_twice():
    view, costs = BottomUp(MANUAL), of(MANUAL, MANUAL_COST)
    nodes = np.array([one(view, view.roots, name) for name in ("h", "g")])
    own, whole = view.together(nodes, costs)
    assert (own.tolist(), whole.tolist()) == ([9], [9])


@pytest.mark.parametrize("kind", ViewKind)
def test_a_chain_of_50000_calls_is_no_problem(kind):
    tree = chain(DEEP)
    costs = of(tree, np.ones(DEEP))
    view = open_view(tree, kind)
    own, whole = view.values(view.roots, costs)
    assert own.sum() == (1 if kind is ViewKind.TOP_DOWN else DEEP)
    assert whole.tolist() == [[DEEP]]
    lines = outline(view, costs, Selection(depth=100))
    assert lines.check(costs).holds


@pytest.mark.parametrize("kind", ViewKind)
def test_a_tree_without_call_paths_has_empty_views(kind):
    tree = CallTree.from_parents([], [], [])
    costs = Costs.of(tree, np.empty((0, 2)))
    view = open_view(tree, kind)
    assert view.roots.tolist() == []
    assert hot_path(view, lambda nodes: nodes.astype(float)) == []
    empty = outline(view, costs, Selection())
    assert empty.lines == ()
    assert empty.check(costs).holds


@pytest.mark.parametrize("view", [TopDown(MANUAL), BottomUp(MANUAL), Flat(MANUAL)])
def test_a_formula_of_a_node_is_that_of_its_sums(view):
    work, cycles = of(MANUAL, MANUAL_COST), of(MANUAL, [1.0, 2.0, 1.0, 4.0, NAN, 5.0])

    def ratio(sums):
        return sums[..., :1] / sums[..., 1:]

    costs = FormulaCosts.by(Costs.beside([work, cycles]), ratio)
    nodes = view.roots
    pairs = zip(view.values(nodes, work), view.values(nodes, cycles), strict=True)
    expected = [a / b for a, b in pairs]
    for found, sums in zip(view.values(nodes, costs), expected, strict=True):
        np.testing.assert_allclose(found, sums)
    pairs = zip(view.together(nodes, work), view.together(nodes, cycles), strict=True)
    np.testing.assert_allclose(view.together(nodes, costs), [a / b for a, b in pairs])
    assert costs.total.tolist() == [10 / 13]


def test_a_function_divides_the_sums_of_all_its_call_paths():
    view = Flat(MANUAL)
    work, cycles = of(MANUAL, MANUAL_COST), of(MANUAL, [1.0, 2.0, 1.0, 4.0, NAN, 5.0])
    costs = FormulaCosts.by(Costs.beside([work, cycles]), lambda s: s[..., :1] / s[..., 1:])
    # g: 1 + 1 + 3 of 1 + 4 + 5; with callees g_1 (6 of 5) and g_3 (3 of 5).
    assert shown(view, view.roots, costs)["g"] == (9 / 10, 5 / 10)


def test_a_formula_of_what_occurs_nowhere_is_not_known():
    nowhere = of(MANUAL, np.full(6, NAN))
    costs = FormulaCosts.by(Costs.beside([nowhere, nowhere]), lambda s: s[..., :1] * s[..., 1:])
    assert np.isnan(costs.total).all()
