"""Excess work of models at a target: where it is defined, and which costs are expected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.analysis.excess_work import (
    Excess,
    Loss,
    compares_scales,
    efficiency_of,
    excess_band,
    excess_beyond,
    expected_addends,
    expected_at,
    loss_at,
    measured_excess,
    no_excess,
    repetitions_compared,
)
from callpath_modeler.analysis.ideals import GrowthIdeal, ReferenceIdeal
from callpath_modeler.analysis.uncertain import Band
from callpath_modeler.errors import UsageError
from callpath_modeler.modeling import parse_function
from callpath_modeler.modeling.constants.bands import COLUMNS
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.schema import Metric, Reduction
from synthetic import call_tree, experiment, fitted

NAN, INF = float("nan"), float("inf")
VALUES = {
    "main": [4.0, 4.0, 4.0, 4.0, 4.0],
    "main/f": [1.0, 2.0, 4.0, 8.0, 16.0],
    "main/gone": [2.0, 2.0, 2.0, 2.0, NAN],
}
"""Costs at p = 2 to 32; `gone` does not occur at the largest scale, so that it has no model."""
TREE = call_tree(list(VALUES))
ADDENDS = np.ones((3, COLUMNS))


def growth(text):
    return GrowthIdeal(text, parse_function(text)[0], "p")


@pytest.fixture(scope="module")
def weak():
    return fitted(VALUES)


@pytest.fixture(scope="module")
def sums():
    """Return models of sums over processes under strong scaling."""
    return fitted(VALUES, scaling=Scaling.STRONG, reduction=Reduction.SUM)


@pytest.fixture(scope="module")
def reference(weak):
    """Return models that are compared with another experiment, which is known at p = 64."""
    costs, predicted = {64.0: np.array([5.0, 6.0, 7.0])}, {64.0: ADDENDS}
    return replace(weak, ideal=ReferenceIdeal("old", "p", costs, predicted=predicted))


# Where excess work is defined


@pytest.mark.parametrize("target", [2.0, 3.0, 64.0, INF])
def test_perfect_scaling_expects_a_cost_from_the_base_to_infinity(weak, target):
    assert no_excess(weak, target) == ""
    assert loss_at(weak, target, 20.0) == Loss(1.0, 20.0)


def test_a_target_below_the_base_has_no_excess(weak):
    assert no_excess(weak, 1.0) == "the target is below p = 2"
    assert loss_at(weak, 1.0, 20.0) is None


def test_a_metric_that_does_not_add_up_has_no_excess():
    ratios = fitted(VALUES, metric=Metric("ratio", "1", additive=False))
    assert no_excess(ratios, 64.0) == "ratio does not add up over call paths"


def test_sums_over_processes_have_no_excess_at_infinity_only(sums):
    assert no_excess(sums, INF) == "sums over processes grow with their number"
    assert no_excess(sums, 64.0) == ""


def test_an_expected_growth_has_no_cost_at_infinity(weak):
    grows = replace(weak, ideal=growth("O(p)"))
    assert no_excess(grows, INF) == "no cost is expected at infinity"
    assert no_excess(grows, 64.0) == ""


def test_an_expected_growth_without_a_value_at_the_base_says_so_at_infinity(weak):
    grows = replace(weak, ideal=growth("p - 2"))
    assert no_excess(grows, INF) == "p - 2 is not a finite number above zero at p = 2"


def test_another_experiment_that_was_not_run_at_the_target_expects_nothing(reference):
    assert no_excess(reference, 64.0) == ""
    message = "old was not measured at p = 128, and it has no models"
    assert no_excess(reference, 128.0) == message


def test_scales_are_compared_without_models_if_a_cost_is_expected(weak):
    measured = replace(weak, is_measured_only=True)
    assert compares_scales(measured, 32.0)
    assert not compares_scales(measured, 2.0)
    assert not compares_scales(weak, 32.0)
    unclear = replace(measured, experiment=experiment(VALUES, scaling=Scaling.UNCLEAR))
    assert not compares_scales(unclear, 32.0)


# Expected costs


def test_weak_scaling_expects_the_cost_at_the_base(weak):
    assert expected_at(weak, 64.0, predicted=False).tolist() == [4, 1, 2]


def test_a_call_path_without_a_model_has_no_expected_cost_beside_predictions(weak):
    assert expected_at(weak, 64.0, predicted=True).tolist() == [4, 1, 0]


def test_sums_are_divided_by_the_processes_of_the_base(sums):
    """Two processes had 4 s together, so 2 s each. With 8 processes, each should have a quarter."""
    assert expected_at(sums, 8.0, predicted=False).tolist() == [0.5, 0.125, 0.25]


def test_another_experiment_states_costs_of_call_paths_with_a_model(reference):
    assert expected_at(reference, 64.0, predicted=True).tolist() == [5, 6, 0]
    assert expected_at(reference, 64.0, predicted=False).tolist() == [5, 6, 7]


def test_no_cost_is_expected_where_excess_work_is_not_defined(weak, reference):
    assert expected_at(weak, 1.0, predicted=False).tolist() == [0, 0, 0]
    assert expected_at(reference, 128.0, predicted=True).tolist() == [0, 0, 0]


def test_only_predicted_costs_of_another_experiment_have_bands(weak, reference):
    found = expected_addends(reference, 64.0)
    assert found.tolist() == [[1] * COLUMNS, [1] * COLUMNS, [0] * COLUMNS]
    assert expected_addends(weak, 64.0) is None
    assert expected_addends(reference, 128.0) is None
    assert expected_addends(reference, 1.0) is None


def test_expected_costs_have_no_bands_at_infinity(weak):
    always = ReferenceIdeal("old", "p", {INF: np.ones(3)}, predicted={INF: ADDENDS})
    assert expected_addends(replace(weak, ideal=always), INF) is None


# Factors of excess work


def test_sums_are_divided_by_the_processes_of_the_target(sums):
    loss = loss_at(sums, 8.0, 16.0)
    assert loss == Loss(1 / 8, 2.0)
    # 8 s of 8 processes are 1 s of one. 0.5 s of it are expected, so a quarter of 2 s is lost.
    cost, expected = np.array([8.0, NAN]), np.array([0.5, 0.5])
    assert loss.lost(cost, expected).tolist() == [0.5, -0.5]
    assert loss.excess(cost, expected).tolist() == [0.25, -0.25]


def test_a_program_without_cost_loses_no_share():
    cost = np.array([3.0])
    assert Loss(1.0, 0.0).excess(cost, np.array([1.0])).tolist() == [0]
    assert Loss(1.0, 0.5).excess(cost, np.array([1.0])).tolist() == [4]


def test_in_an_infinite_run_time_only_infinite_costs_are_lost():
    loss, cost, expected = Loss(1.0, INF), np.array([INF, 3.0, NAN]), np.ones(3)
    assert loss.lost(cost, expected).tolist() == [INF, 0, 0]
    assert loss.excess(cost, expected, np.array([0.75, 0.25, NAN])).tolist() == [0.75, 0.25, 0]
    assert loss.excess(cost[1:], expected[1:]).tolist() == [0, 0]


def test_in_a_finite_run_time_shares_do_not_replace_lost_costs():
    found = Loss(1.0, 10.0).excess(np.array([3.0]), np.array([1.0]), np.array([0.9]))
    assert found.tolist() == [0.2]


# Excess work of call paths


def test_only_counted_call_paths_are_summed():
    excess = excess_beyond(TREE, (2, 8), np.array([1.0, 1.0, 1.0]), np.array([2.0, 5.0, 3.0]))
    assert excess.inclusive[0] == pytest.approx(7 / 10)
    some = replace(excess, counted=np.array([True, False, True]))
    assert some.inclusive[0] == pytest.approx((1 + 2) / 10)
    assert np.isnan(some.inclusive[1])


def test_the_efficiency_of_no_cost_is_not_known():
    found = efficiency_of(np.array([0.0, 4.0, 0.5]), np.array([0.0, 1.0, 0.25]))
    np.testing.assert_array_equal(found, [NAN, 0.75, 0.5])


def test_an_unknown_cost_has_an_efficiency_of_its_callees_alone():
    unknown = np.array([NAN, 4.0, NAN])
    excess = Excess(TREE, 2, 8, np.zeros(3), np.array([0.0, 1.0, 0.0]), unknown)
    np.testing.assert_array_equal(excess.efficiency, [0.75, 0.75, NAN])


def test_measured_scales_are_listed_if_a_scale_was_not_measured():
    with pytest.raises(UsageError) as told:
        measured_excess(experiment({"main": [1.0, 1.0]}, (2, 4)), "time", "p", 3, 4)
    assert told.value.hint == "measured: 2, 4"


def test_repetitions_keep_a_run_in_which_one_call_path_did_not_occur():
    """Three runs at p = 4, but two at p = 2, the second of them without f."""
    main = [[4.0, 5.0, NAN], [6.0, 7.0, 8.0], [9.0] * 3, [9.0] * 3, [9.0] * 3]
    f = [[1.0, NAN, NAN], [3.0] * 3, [3.0] * 3, [3.0] * 3, [3.0] * 3]
    before, after = repetitions_compared(fitted({"main": main, "main/f": f}), 4.0)
    assert before.exclusive.tolist() == [[4, 5], [1, 0]]
    assert after.exclusive.tolist() == [[6, 7, 8], [3, 3, 3]]


# Bands


def columns(value, width):
    """Return additive numbers of a cost whose band is value - width to value + width."""
    return np.array([[value, value, 0.0, 0.0, width**2, width**2]])


def test_columns_after_those_of_a_sum_do_not_change_a_band():
    more = np.full((1, 1), 9.0)
    expected = Band(*np.array([[2.0], [2.0], [2.0]]))
    found = excess_band(
        np.array([6.0]),
        np.hstack([columns(6.0, 1.0), more]),
        (10.0, np.hstack([columns(10.0, 1.0), more])[0]),
        expected,
        Loss(1.0, 10.0),
    )
    assert (found.low[0], found.high[0]) == pytest.approx((3 / 9, 5 / 11))


def test_a_total_below_a_cost_adds_no_error_of_the_rest():
    expected = Band(*np.array([[2.0], [2.0], [2.0]]))
    found = excess_band(
        np.array([6.0]), columns(6.0, 2.0), (6.0, columns(6.0, 1.0)[0]), expected, Loss(1.0, 6.0)
    )
    assert (found.low[0], found.high[0]) == pytest.approx((2 / 4, 6 / 8))
