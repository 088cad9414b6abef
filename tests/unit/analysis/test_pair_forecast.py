"""Values of two experiments for the nodes of a view."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.analysis.difference import difference
from callpath_modeler.analysis.pair_forecast import PairInputs, pair_forecast
from callpath_modeler.errors import DataError
from callpath_modeler.profile.outline import Selection, hot_path, outline
from callpath_modeler.profile.tree_views import ViewKind, open_view
from callpath_modeler.profile.view_request import Sort
from callpath_modeler.studies.comparison import differences_of
from callpath_modeler.studies.pipeline import FitOptions, fit
from callpath_modeler.studies.study import Study
from two_sides import LAWS, P, changed, row, runs

SLOWER = changed(main__halo__MPI_Send=0.2 * P, main__solve=3.0 + 0 * P)
SLOWER = {path: law for path, law in SLOWER.items() if path != "main/io"}
SLOWER |= {"main/output": 0.4 + 0 * P, "main/output/MPI_Send": 0.05 * P}


def inputs_of(base, new, *, modelled=True, **how):
    options = FitOptions(aggregate="mean")
    fitted = fit(new, None, options)
    sides = (fit(base, None, options), fitted) if modelled else (base, new)
    return PairInputs(fitted, differences_of(*sides), ("a", "b"), **how)


@pytest.fixture(scope="module")
def two():
    return inputs_of(runs(LAWS, 1), runs(SLOWER, 2))


@pytest.fixture(scope="module", params=[128.0, 32.0, float("inf")])
def shown(request, two):
    """Predicted at p = 128, measured at p = 32, and measured for want of a target."""
    return pair_forecast(two, request.param)


def test_call_paths_have_the_values_and_the_marks_of_diff(two, shown):
    target = shown.target if np.isfinite(shown.target) else None
    view = open_view(shown.tree, ViewKind.TOP_DOWN)
    nodes = np.arange(len(shown.tree))
    for inclusive, values in enumerate(shown.of_nodes(view, nodes)):
        found = difference(two.pair, target, inclusive=bool(inclusive))
        changes = found.changes
        for ours, theirs in (
            (values.base, changes.base),
            (values.new, changes.new),
            (values.change, changes.change),
            (values.ratio - 1, changes.relative),
            (values.low - 1, changes.low),
            (values.p, changes.p),
        ):
            np.testing.assert_allclose(ours, theirs[:-1], rtol=1e-12, atol=1e-12)
        assert values.mark.tolist() == changes.mark[:-1].tolist()
        assert values.in_base.tolist() == found.in_base.tolist()


@pytest.mark.parametrize("kind", ViewKind)
def test_the_lines_of_every_view_add_up_to_the_totals_of_diff(shown, kind):
    view = open_view(shown.tree, kind)
    lines = outline(view, shown.decides, Selection(least=0.05 * shown.whole))
    check = shown.check(lines)
    assert check.holds
    changes = shown.answers[0]
    assert check.total[:2] == pytest.approx([changes.base[-1], changes.new[-1]])


def test_a_call_path_of_one_experiment_is_a_node_of_its_own(shown):
    view = open_view(shown.tree, ViewKind.TOP_DOWN)
    for path, is_new in (("main/io", False), ("main/output/MPI_Send", True)):
        node = np.array([row(shown.found[0], path)])
        own, _ = shown.of_nodes(view, node)
        assert (own.in_base[0], own.in_new[0]) == (not is_new, is_new)
        assert np.isnan(own.base[0]) == is_new
        assert np.isnan(own.ratio[0])
        assert own.change[0] == (own.new[0] if is_new else -own.base[0])
    halo, _ = shown.of_nodes(view, np.array([row(shown.found[0], "main/halo")]))
    assert halo.ratio[0] == pytest.approx(1.0, abs=0.1)


def function(shown, name):
    view = open_view(shown.tree, ViewKind.FLAT)
    (node,) = [n for n in view.roots.tolist() if view.name(n) == name]
    return shown.of_nodes(view, np.array([node]))[0]


def test_a_function_with_several_call_paths_is_tested_as_their_sum(two):
    shown = pair_forecast(two, 128.0)
    found = function(shown, "MPI_Send")
    assert found.mark[0] == 1
    assert found.base[0] == pytest.approx(0.1 * 128, rel=0.1)
    assert found.new[0] == pytest.approx(0.25 * 128, rel=0.1)
    assert found.low[0] < 2.5 < found.high[0]


@pytest.mark.parametrize("target", [128.0, 32.0])
def test_sums_that_did_not_change_are_rarely_called_worse(target):
    """The rate of wrong marks is at most 5 %; more than 4 of 40 would be improbable."""
    laws = {"main": 1 + 0 * P}
    for k in range(8):
        laws |= {f"main/f{k}": 1.0 + k + 0 * P, f"main/f{k}/MPI_Send": 0.1 * P}
    wrong = 0
    for seed in range(40):
        two = inputs_of(runs(laws, 2 * seed), runs(laws, 2 * seed + 1), modelled=target > 32)
        wrong += bool(function(pair_forecast(two, target), "MPI_Send").mark[0])
    assert wrong <= 4


@pytest.mark.parametrize("modelled", [True, False])
def test_a_sum_that_changed_is_marked_with_repetitions_or_with_the_error_of_models(modelled):
    """Without models, repetitions tell the noise; without repetitions, models do."""
    laws = {"main": 1 + 0 * P, "main/f": 1 + 0 * P, "main/f/g": 0.1 * P, "main/g": 0.1 * P}
    slow = laws | {"main/f/g": 0.3 * P, "main/g": 0.3 * P}
    how = {"repetitions": 1} if modelled else {}
    two = inputs_of(runs(laws, 1, **how), runs(slow, 2, **how), modelled=modelled)
    found = function(pair_forecast(two, 32.0), "g")
    assert found.mark[0] == 1
    assert found.ratio[0] == pytest.approx(3.0, rel=0.1)


def test_without_repetitions_and_models_no_difference_is_marked():
    single = {"repetitions": 1, "points": (32.0,)}
    laws = {path: law[-1:] for path, law in LAWS.items()}
    slow = {path: 2 * law for path, law in laws.items()}
    base, new = runs(laws, 1, **single), runs(slow, 2, **single)
    two = PairInputs(Study(new).measured(), differences_of(base, new), ("a", "b"))
    shown = pair_forecast(two, 32.0)
    view = open_view(shown.tree, ViewKind.TOP_DOWN)
    own, _ = shown.of_nodes(view, np.arange(len(shown.tree)))
    assert np.isnan(own.p).all()
    assert not own.mark.any()
    assert not own.is_doubted.any()
    assert own.ratio == pytest.approx(2.0, rel=0.2)


def test_the_hot_path_leads_to_the_loss_also_if_the_program_became_faster():
    faster = changed(main__solve=0.5 + 0 * P, main__halo__MPI_Send=0.12 * P)
    shown = pair_forecast(inputs_of(runs(LAWS, 1), runs(faster, 2)), float("inf"))
    view = open_view(shown.tree, ViewKind.TOP_DOWN)
    assert shown.leads.total[0] < 0
    path = hot_path(view, lambda nodes: shown.worth(view, nodes, inclusive=True))
    assert [view.name(node) for node in path] == ["main", "halo", "MPI_Send"]


def test_the_order_of_siblings_is_by_loss_by_ratio_or_by_value(shown):
    view = open_view(shown.tree, ViewKind.TOP_DOWN)
    nodes = view.children(int(view.roots[0]))
    firsts = {}
    for sort in shown.sorts:
        keys = shown.sibling_order(view, sort, inclusive=True)(nodes)
        firsts[sort] = view.name(int(nodes[np.argmax(np.nan_to_num(keys, nan=-np.inf))]))
    assert firsts[Sort.DIFFERENCE] == "halo"
    assert firsts[Sort.RATIO] == "output"
    assert firsts[Sort.NEW] == "halo"
    assert firsts[Sort.NAME] == "halo"


def test_without_a_common_scale_and_a_target_there_is_nothing_to_show():
    few = {path: law[:4] for path, law in LAWS.items()}
    more = {path: law[:4] * 2 for path, law in LAWS.items()}
    base = runs(few, 1, points=(2.0, 4.0, 8.0, 16.0))
    new = runs(more, 2, points=(3.0, 5.0, 9.0, 17.0))
    two = inputs_of(base, new)
    assert pair_forecast(two, 64.0).scale == 64.0
    with pytest.raises(DataError, match="no common scale"):
        pair_forecast(two, float("inf"))
