from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.analysis.excess_work import (
    ExcessPattern,
    doubtful,
    excess_work,
    measured_excess,
    overlap,
    per_process,
    readings,
)
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.schema import Reduction
from cells import cells
from synthetic import call_tree, experiment

TREE = call_tree(["main", "main/f", "main/f/MPI_Wait"])
NAN = float("nan")


def test_weak_scaling_loses_what_one_process_takes_longer():
    # T_q = 1 + 4 + 3 = 8; X_w = (C_q - C_p) / T_q
    excess = excess_work(
        TREE, Scaling.WEAK, (2, np.array([1.0, 4.0, 1.0])), (8, np.array([1.0, 4.0, 3.0]))
    )
    assert excess.exclusive.tolist() == [0, 0, 2 / 8]
    assert excess.inclusive.tolist() == [2 / 8, 2 / 8, 2 / 8]
    assert excess.lost.tolist() == [0, 0, 2]
    # A call path is measured against its own cost: MPI_Wait takes three times as long.
    assert excess.efficiency == pytest.approx([6 / 8, 5 / 7, 1 / 3])


def test_strong_scaling_loses_what_is_beyond_one_over_p():
    # p = 2, q = 8: ideal is a quarter. X_s = (8 C_q - 2 C_p) / (8 T_q), T_q = 0.5 + 1 + 2.5 = 4
    excess = excess_work(
        TREE, Scaling.STRONG, (2, np.array([2.0, 8.0, 2.0])), (8, np.array([0.5, 1.0, 2.5]))
    )
    expected = [(8 * q - 2 * p) / (8 * 4) for p, q in ((2, 0.5), (8, 1), (2, 2.5))]
    assert excess.exclusive == pytest.approx(expected)
    assert expected == [0, -0.25, 0.5]  # superlinear in f, a loss in MPI_Wait
    assert excess.inclusive == pytest.approx([0.25, 0.25, 0.5])


def test_the_efficiency_of_a_superlinear_call_path_is_above_one():
    """The larger caches of more processes make f cheaper than its ideal. This is not cut off."""
    excess = excess_work(
        TREE, Scaling.STRONG, (2, np.array([2.0, 8.0, 2.0])), (8, np.array([0.5, 1.0, 0.5]))
    )
    assert excess.efficiency == pytest.approx([3 / 2, 2.5 / 1.5, 1.0])
    assert excess.lost.tolist() == [0, -1, 0]


def test_perfect_scaling_loses_nothing_either_way():
    cost = np.array([1.0, 2.0, 3.0])
    assert not excess_work(TREE, Scaling.WEAK, (2, cost), (8, cost)).exclusive.any()
    assert not excess_work(TREE, Scaling.STRONG, (2, cost), (8, cost / 4)).inclusive.any()


def test_a_call_path_that_did_not_occur_costs_nothing():
    excess = excess_work(
        TREE, Scaling.WEAK, (2, np.array([1.0, 1.0, NAN])), (8, np.array([1.0, NAN, 3.0]))
    )
    assert excess.lost.tolist() == [0, -1, 3]
    assert excess.exclusive.tolist() == [0, -1 / 4, 3 / 4]


def test_a_run_without_cost_has_no_excess():
    nothing = np.zeros(3)
    assert not excess_work(TREE, Scaling.WEAK, (2, nothing), (8, nothing)).exclusive.any()


@pytest.mark.parametrize(
    ("aggregate", "lost", "share"),
    [("median", 4, 4 / 5), ("min", 1, 1 / 2), ("mean", 1.5, 1.5 / 4)],
)
def test_repetitions_become_the_cost_that_is_asked_for(aggregate, lost, share):
    made = experiment({"main": [[1, 5.5, 1], [5, 5, 2]]}, (2, 4))
    excess = measured_excess(made, "time", "p", 2, 4, aggregate)
    assert excess.lost.tolist() == [lost]
    assert excess.exclusive.tolist() == [share]


@pytest.mark.parametrize(("base", "scale"), [(2, 4), (4, 32), (2, 32), (8, 16)])
def test_any_pair_of_scales_can_be_compared(base, scale):
    made = experiment({"main": [1] * 5, "main/f": [2, 4, 8, 16, 32]})
    excess = measured_excess(made, "time", "p", base, scale)
    assert excess.inclusive[0] == pytest.approx((scale - base) / (1 + scale))


def test_sums_over_processes_are_brought_back_to_one_process():
    weak = experiment({"main": [2, 4, 8, 16, 32]}, reduction=Reduction.SUM)
    assert measured_excess(weak, "time", "p", 2, 32).exclusive.tolist() == [0]
    assert per_process(weak, "p", np.array([8.0]), 4).tolist() == [2]
    assert per_process(experiment({"main": [1] * 5}), "p", np.array([8.0]), 4).tolist() == [8]


def test_over_another_parameter_than_p_only_the_user_chooses_strong_scaling():
    strong = experiment(
        {"main": [1, 2, 3, 4, 5]}, reduction=Reduction.SUM, scaling=Scaling.STRONG, parameter="n"
    )
    assert per_process(strong, "n", np.array([8.0]), 4).tolist() == [8]
    points = strong.points("n")
    excess = measured_excess(strong, "time", "n", points[0], points[-1])
    # The user's choice applies to the parameter that varies, whatever its name is.
    assert excess.exclusive.tolist() == [(5 - 1 * 2 / 32) / 5]
    recognised = replace(strong, scaling_reason="computation goes as p^-1.00")
    excess = measured_excess(recognised, "time", "n", points[0], points[-1])
    assert excess.exclusive.tolist() == [(5 - 1) / 5]


def test_a_scale_that_was_not_measured_is_an_error():
    with pytest.raises(UsageError, match="time was not measured at p = 3"):
        measured_excess(experiment({"main": [1] * 5}), "time", "p", 2, 3)


def test_costs_far_below_a_second_have_excess_work_and_an_efficiency():
    excess = excess_work(
        TREE, Scaling.WEAK, (2, np.array([1e-6, 0.0, 1e-6])), (8, np.array([1e-6, 0.0, 3e-6]))
    )
    assert excess.exclusive == pytest.approx([0, 0, 0.5])
    assert excess.efficiency == pytest.approx([0.5, 1 / 3, 1 / 3])


def test_a_subtree_that_no_longer_costs_anything_has_no_efficiency():
    gone = excess_work(
        TREE, Scaling.WEAK, (2, np.array([1.0, 1.0, 1.0])), (8, np.array([1.0, 0.0, 0.0]))
    )
    assert np.isnan(gone.efficiency[1:]).all()
    assert gone.efficiency[0] == pytest.approx(3.0)


def test_another_number_of_costs_than_call_paths_is_refused_with_both_numbers():
    with pytest.raises(UsageError, match=r"costs have shape \(2,\); there are 3 call paths"):
        excess_work(TREE, Scaling.WEAK, (2, np.ones(2)), (8, np.ones(3)))


@cells(
    ("before", "after", "overlaps"),
    [
        ([[1.0, 2.0]], [[3.0, 4.0]], False),
        ([[3.0, 4.0]], [[1.0, 2.0]], False),
        ([[1.0, 3.0]], [[2.0, 4.0]], True),
        ([[2.0, 3.0]], [[1.0, 4.0]], True),
        ([[1.0, 2.0]], [[2.0, 3.0]], True),
        ([[2.0, 3.0]], [[1.0, 2.0]], True),
    ],
)
def test_repetitions_of_two_scales_overlap_unless_all_of_one_are_larger(
    before: list[list[float]], after: list[list[float]], overlaps: bool
) -> None:
    assert overlap(np.array(before), np.array(after)) == [overlaps]
    assert overlap(np.array(before)[:, :1], np.array(after)) is None


def test_noise_may_explain_a_noticeable_loss_or_gain_whose_repetitions_overlap() -> None:
    excess = np.array([0.3, -0.3, 0.005, 0.004, np.nan, 0.3])
    overlaps = np.array([True, True, True, True, True, False])
    assert doubtful(excess, overlaps).tolist() == [True, True, True, False, False, False]
    assert not doubtful(excess, None).any()


@cells(
    ("own", "callees", "pattern"),
    [
        (0.2, 0.02, ExcessPattern.OWN),
        (0.02, 0.2, ExcessPattern.CALLEES),
        (0.2, 0.03, ExcessPattern.BOTH),
        (10.0, 1.0, ExcessPattern.OWN),
        (1.0, 10.0, ExcessPattern.CALLEES),
        (0.005, 0.0, ExcessPattern.OWN),
        (0.004, 0.0, ExcessPattern.NONE),
        (-0.005, 0.0, ExcessPattern.GAIN),
    ],
)
def test_a_part_below_a_tenth_of_the_other_is_not_named(
    own: float, callees: float, pattern: ExcessPattern
) -> None:
    assert readings(np.array([own + callees]), np.array([own])) == [pattern]
