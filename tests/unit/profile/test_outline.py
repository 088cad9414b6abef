from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.outline import Opening, Outline, Selection, outline
from callpath_modeler.profile.tree_views import BottomUp, Flat, TopDown, ViewKind, open_view
from synthetic import call_tree

PATHS = ["main", "main/a", "main/a/x", "main/a/y", "main/b", "main/c", "main/c/x", "main/d"]
TREE = call_tree(PATHS)
COST = np.array([1.0, 10.0, 5.0, 0.5, 20.0, 0.25, 0.5, -8.0])
COSTS = Costs.of(TREE, COST)


def text(lines):
    """Return the lines as text: names indented, ``+`` for hidden children."""
    out = []
    for line in lines.lines:
        name = f"... {len(line.nodes)} more" if line.is_rest else lines.view.name(line.node)
        out.append("  " * line.depth + name + "+" * line.is_closed)
    return out


def written(view, **selection):
    lines = outline(view, COSTS, Selection(**selection))
    assert lines.check(COSTS).holds
    return lines


def test_everything_has_a_line_unless_told_otherwise():
    assert text(written(TopDown(TREE))) == [
        "main", "  b", "  a", "    x", "    y", "  c", "    x", "  d"
    ]  # fmt: skip


def test_small_nodes_share_a_line_and_large_negative_ones_do_not():
    lines = written(TopDown(TREE), least=8.0)
    assert text(lines) == ["main", "  b", "  a", "    ... 2 more", "  c+", "  d"]
    assert [PATHS[row] for row in lines.hidden] == ["main/a/x", "main/a/y", "main/c/x"]


def test_a_small_node_that_would_have_a_shared_line_for_itself_has_its_name():
    for chosen in ({"least": 1.0}, {"top": 3}):
        lines = written(TopDown(TREE), **chosen)
        assert text(lines) == ["main", "  b", "  a", "    x", "    y", "  c+", "  d"]
        assert [PATHS[row] for row in lines.hidden] == ["main/c/x"]


def test_a_node_that_was_not_asked_for_stays_without_a_name_even_alone():
    kept = Costs.of(TREE, np.array([path != "main/d" for path in PATHS], float))
    lines = written(TopDown(TREE), keep=kept)
    assert text(lines)[-3:] == ["  c", "    x", "  ... 1 more"]


def test_a_small_node_alone_is_opened_where_that_is_asked_for():
    view = TopDown(TREE)
    lines = written(view, least=1.0, openings={PATHS.index("main/c"): Opening.OPEN})
    assert text(lines)[-3:] == ["  c", "    x", "  d"]


def test_top_down_a_loss_that_callees_win_back_has_a_line():
    costs = Costs.of(TREE, np.array([1.0, 5.0, -5.0, 0.0, 1.0, 1.0, 0.0, 0.0]))
    lines = outline(TopDown(TREE), costs, Selection(least=2.0))
    assert text(lines) == ["main", "  a", "    y", "    x", "  ... 3 more"]


def test_the_first_siblings_are_the_largest_in_size():
    lines = written(TopDown(TREE), top=2)
    assert text(lines) == ["main", "  b", "  a", "    x", "    y", "  ... 2 more"]
    lines = written(TopDown(TREE), top=1, inclusive=False)
    assert text(lines) == ["main", "  b", "  ... 3 more"]


def test_a_node_at_the_last_level_stands_for_what_is_below_it():
    lines = written(TopDown(TREE), depth=2)
    assert text(lines) == ["main", "  b", "  a+", "  c+", "  d"]
    assert [PATHS[row] for row in lines.hidden] == ["main/a/x", "main/a/y", "main/c/x"]


def test_callers_are_written_below_what_they_call():
    lines = written(BottomUp(TREE), inclusive=False, least=1.0, depth=2)
    assert text(lines) == [
        "b", "  main", "a", "  main", "x", "  a+", "  c+", "main", "d", "  main",
        "... 2 more",
    ]  # fmt: skip
    assert [PATHS[row] for row in lines.hidden] == ["main/a/y", "main/c"]


def test_lines_that_are_shared_have_the_values_of_all_that_share_them():
    lines = written(Flat(TREE), inclusive=False, top=1)
    own, whole = lines.values(COSTS)
    assert text(lines) == ["b", "... 6 more"]
    assert own[:, 0].tolist() == [20, COST.sum() - 20]
    assert whole[1, 0] == COST.sum()  # main is one of them


@pytest.mark.parametrize("kind", ViewKind)
def test_the_sum_check_notices_a_line_that_is_missing(kind):
    lines = outline(open_view(TREE, kind), COSTS, Selection(depth=1))
    assert lines.check(COSTS).holds
    other = Costs(COSTS.exclusive + 1.0, COSTS.inclusive)
    assert lines.check(other).holds == (kind is not ViewKind.TOP_DOWN)
    short = Outline(lines.view, lines.nodes[1:], lines.depth[1:], lines.is_closed[1:], {})
    assert not short.check(COSTS).holds


def test_infinite_values_add_up():
    costs = Costs.of(TREE, np.where(COST > 10, np.inf, COST))
    assert outline(TopDown(TREE), costs, Selection(depth=1)).check(costs).holds


@pytest.mark.parametrize("kind", ViewKind)
def test_what_did_not_occur_has_no_size(kind):
    costs = Costs.of(TREE, np.where(np.isin(COST, (0.5, 5.0)), np.nan, COST))
    lines = outline(open_view(TREE, kind), costs, Selection(least=0.1))
    (shared,) = (line for line in lines.lines if line.is_rest)
    assert [lines.view.name(node) for node in shared.nodes.tolist()] == ["x", "y"]
    assert lines.check(costs).holds
