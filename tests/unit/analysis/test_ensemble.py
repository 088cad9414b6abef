from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.analysis.ensemble import losses, unmatched
from callpath_modeler.analysis.excess_work import ExcessPattern, measured_excess, overlap, readings
from callpath_modeler.analysis.scales import choose_pairs
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.profile.experiment import TOLD_SCALINGS, Scaling
from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.runs import ParameterLine
from callpath_modeler.profile.schema import Metric, Reduction
from callpath_modeler.profile.tree_views import BottomUp
from synthetic import experiment

NAN = float("nan")
POINTS = np.array([2.0, 4.0, 8.0])
RATIO = Metric("ratio", "1", additive=False)
# Per process at p = 2, 4, 8; f is gone at 8 and h is new there.
VALUES = {
    "main": [1.0, 1.0, 2.0],
    "main/f": [3.0, 2.0, NAN],
    "main/f/g": [1.0, 1.0, NAN],
    "main/h": [NAN, NAN, 4.0],
    "main/h/g": [NAN, NAN, 2.0],
}


def test_without_a_wish_every_scale_is_compared_with_the_smallest():
    assert choose_pairs(POINTS, ParameterLine("p")) == ((2, 4), (2, 8))
    assert choose_pairs(POINTS, ParameterLine("p"), base=4) == ((4, 8),)
    assert choose_pairs(POINTS, ParameterLine("p"), pair=(8, 2)) == ((2, 8),)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"pair": (2, 16)}, "no run at p = 16"),
        ({"pair": (4, 4)}, "one scale twice"),
        ({"base": 3}, "no run at p = 3"),
        ({"base": 8}, "no scale is larger than the base, p = 8"),
    ],
)
def test_scales_that_cannot_be_compared_are_refused(asked, message):
    with pytest.raises(UsageError, match=message) as told:
        choose_pairs(POINTS, ParameterLine("p"), **asked)
    assert told.value.hint


@pytest.mark.parametrize("scaling", TOLD_SCALINGS)
def test_every_call_path_has_the_excess_work_of_the_formula(scaling):
    found = losses(experiment(VALUES, POINTS, scaling=scaling))
    own = np.nan_to_num(np.array(list(VALUES.values())))
    subtrees = [range(5), range(1, 3), [2], [3, 4], [4]]
    whole = np.array([own[list(rows)].sum(axis=0) for rows in subtrees])
    for k, (p, q) in enumerate(found.pairs):
        column, total = int(np.log2(q)) - 1, own[:, int(np.log2(q)) - 1].sum()
        for cost, excess in ((own, found.excess.exclusive), (whole, found.excess.inclusive)):
            direct = (cost[:, column] - cost[:, 0]) / total
            if scaling is Scaling.STRONG:
                direct = (q * cost[:, column] - p * cost[:, 0]) / (q * total)
            np.testing.assert_allclose(np.nan_to_num(excess[:, k]), direct, atol=1e-15)
        assert found.total[k] == pytest.approx(found.excess.inclusive[0, k])


def test_a_pair_says_the_same_as_two_measured_scales():
    made = experiment({"main": [1, 2, 3], "main/f": [4, 5, 9]}, POINTS, reduction=Reduction.SUM)
    found = losses(made, pair=(2, 8))
    old = measured_excess(made, "time", "p", 2, 8)
    assert found.excess.exclusive[:, 0].tolist() == old.exclusive.tolist()
    assert found.excess.inclusive[:, 0].tolist() == old.inclusive.tolist()
    assert found.run_time.tolist() == [2.5, 1.5]  # sums over processes become those of one


def test_a_call_path_of_neither_scale_has_no_excess_and_one_of_a_single_scale_has():
    found = losses(experiment(VALUES, POINTS), pair=(2, 4))
    np.testing.assert_equal(found.excess.exclusive[:, 0], [0, -0.25, 0, NAN, NAN])
    found = losses(experiment(VALUES, POINTS), pair=(4, 8))
    assert found.excess.exclusive[:, 0].tolist() == [1 / 8, -2 / 8, -1 / 8, 4 / 8, 2 / 8]


def test_diverging_trees_are_named_where_they_diverge():
    found = losses(experiment(VALUES, POINTS))
    none, some = unmatched(found, 0), unmatched(found, 1)
    assert none.rows.tolist() == []
    tree = found.experiment.tree
    assert [tree.path(row) for row in some.rows] == ["main/f", "main/h"]
    assert some.is_new.tolist() == [False, True]
    assert some.cost.tolist() == [4, 6]
    assert some.share.tolist() == [4 / 5, 6 / 8]
    assert some.callpaths.tolist() == [2, 2]


def test_the_costliest_divergence_comes_first():
    found = losses(experiment({"main": [1, 1], "main/a": [NAN, 1], "main/b": [NAN, 2]}, (2, 4)))
    assert [found.experiment.tree.path(row) for row in unmatched(found, 0).rows] == [
        "main/b",
        "main/a",
    ]


def test_excess_work_adds_up_over_any_group_of_call_paths():
    found = losses(experiment(VALUES, POINTS))
    view = BottomUp(found.experiment.tree)
    own, whole = view.values(view.roots, found.excess)
    by_name = {view.name(node): k for k, node in enumerate(view.roots.tolist())}
    g = by_name["g"]
    assert own[g].tolist() == pytest.approx([0, (2 - 1) / 8])  # all calls of g together
    assert whole[g].tolist() == own[g].tolist()
    assert np.nansum(own, axis=0).tolist() == pytest.approx(found.total.tolist())


def test_metrics_that_do_not_add_up_have_no_excess_work():
    made = experiment({"main": [1, 2, 3]}, POINTS, metric=RATIO)
    with pytest.raises(UsageError, match="ratio does not add up"):
        losses(made, "ratio")


def test_excess_work_needs_two_scales():
    with pytest.raises(DataError, match="one scale: nothing to compare"):
        losses(experiment({"main": [1]}, (2,)))
    with pytest.raises(DataError, match="time was measured at one scale only"):
        losses(experiment({"main": [1, NAN, NAN]}, POINTS))


def test_nothing_is_no_measure_of_excess():
    with pytest.raises(DataError, match="time is zero at p = 8"):
        losses(experiment({"main": [1, 1, 0]}, POINTS))


def test_a_scale_where_the_metric_was_not_measured_is_passed_over():
    assert losses(experiment({"main": [NAN, 1, 2]}, POINTS)).pairs == ((4, 8),)


def test_inclusive_against_exclusive_says_where_to_look():
    cases = {
        (0.20, 0.20): ExcessPattern.OWN,
        (0.20, 0.19): ExcessPattern.OWN,
        (0.20, 0.00): ExcessPattern.CALLEES,
        (0.20, -0.30): ExcessPattern.CALLEES,  # its own part got faster, the callees lose
        (0.01, 0.30): ExcessPattern.OWN,  # the callees win back what it loses
        (0.20, 0.10): ExcessPattern.BOTH,
        (-0.20, -0.10): ExcessPattern.GAIN,
        (0.001, 0.001): ExcessPattern.NONE,
        (NAN, NAN): ExcessPattern.NONE,
    }
    inclusive, exclusive = np.array(list(cases)).T
    assert readings(inclusive, exclusive) == list(cases.values())


def test_repetitions_that_overlap_leave_a_difference_in_doubt():
    before, after = np.array([[1, 2], [1, 2], [3, 4]]), np.array([[1.5, 3], [3, 4], [1, 2]])
    assert overlap(before, after).tolist() == [True, False, False]
    assert overlap(before, after[:, :1]) is None


def test_repetitions_are_brought_to_the_larger_scale():
    made = experiment({"main": [[8, 6], [3, 2]], "main/f": [[0, 0], [1, NAN]]}, (2, 4),
                      scaling=Scaling.STRONG)  # fmt: skip
    before, after = losses(made).repetitions(0)
    assert isinstance(before, Costs)
    assert before.inclusive[0].tolist() == [4, 3]
    assert after.inclusive[0].tolist() == [4, 2]


def test_repetitions_of_sums_are_per_process():
    made = experiment({"main": [[8, 6], [12, 8]]}, (2, 4), reduction=Reduction.SUM)
    before, after = losses(made).repetitions(0)
    assert before.inclusive[0].tolist() == [4, 3]
    assert after.inclusive[0].tolist() == [3, 2]
