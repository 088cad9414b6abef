"""Costs of a whole program: its run time, its imbalance, and how far predictions are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler import LoadOptions, Study
from callpath_modeler.analysis import program_costs, run_time
from callpath_modeler.analysis.answer import answer_at, rank
from callpath_modeler.analysis.measured_only import measured_values
from callpath_modeler.analysis.uncertain import Band
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.schema import Metric, Reduction
from synthetic import POINTS, experiment, fitted

P, INF, NAN = np.array(POINTS), float("inf"), float("nan")
COMPUTES, WAITS = 20 + 0 * P, 0.1 * P
CALL_PATHS = {"main": COMPUTES, "main/wait": WAITS}
LONGER = 5.0
"""Seconds of the slowest process beyond the sum of the call paths."""


@pytest.fixture(scope="module")
def uneven():
    return fitted(CALL_PATHS, run_time=COMPUTES + WAITS + LONGER, reduction=Reduction.MEAN)


@pytest.fixture(scope="module")
def even():
    return fitted(CALL_PATHS, run_time=COMPUTES + WAITS, reduction=Reduction.MEAN)


@pytest.fixture(scope="module")
def sums():
    """Values are sums over processes, but the run time is that of one process."""
    values = {"main": COMPUTES * P, "main/wait": WAITS * P}
    return fitted(values, run_time=COMPUTES + WAITS + LONGER, reduction=Reduction.SUM)


@pytest.fixture(scope="module")
def timeless():
    return fitted(CALL_PATHS)


# Run time and imbalance


def test_the_run_time_at_the_ends_of_the_data_is_as_measured(uneven):
    answer = answer_at(uneven, 64.0)
    assert answer.program_at_base == pytest.approx(20 + 0.1 * P[0] + LONGER)
    assert answer.program_at_largest == pytest.approx(20 + 0.1 * P[-1] + LONGER)


@pytest.mark.parametrize("bands", [True, False])
def test_the_imbalance_is_the_run_time_beyond_the_sum(uneven, bands):
    answer = answer_at(uneven, 64.0, bands=bands)
    assert answer.imbalance_at_base == pytest.approx(LONGER)
    assert answer.imbalance_at_largest == pytest.approx(LONGER)
    assert answer.imbalance == pytest.approx(LONGER, rel=0.01)
    assert answer.program_total[0] == pytest.approx(20 + 6.4 + LONGER, rel=0.01)
    assert answer.has_imbalance


def test_a_run_time_that_is_the_sum_has_no_imbalance(even):
    assert not answer_at(even, 64.0).has_imbalance
    assert not answer_at(even, float(P[-1])).has_imbalance


@pytest.mark.parametrize("of_call_paths", [1999.0, 1998.9], ids=["hidden", "shown"])
@pytest.mark.parametrize("imbalanced", [2.0, 32.0])
def test_three_digits_hide_an_imbalance_of_half_a_thousandth(of_call_paths, imbalanced):
    """Three digits of 2000 and 1999 are the same. The first scale is the target."""
    scatter = np.array([-10.0, 10.0])
    sums = np.where(imbalanced == P, of_call_paths, 2000.0)
    models = fitted(
        {"main": sums[:, None] + scatter},
        run_time=np.tile(2000 + scatter, len(P)),
        reduction=Reduction.MEAN,
    )
    answer = answer_at(models, 2.0)
    found = answer.imbalance, answer.imbalance_at_largest
    expected = [2000 - of_call_paths if scale == imbalanced else 0 for scale in (2.0, 32.0)]
    assert found == pytest.approx(expected)
    assert answer.has_imbalance == (of_call_paths < 1999)


@pytest.mark.parametrize("bands", [True, False])
def test_a_slow_scale_does_not_move_the_run_time_that_is_predicted_there(bands):
    """All runs took 20 s, but both runs at p = 8 took 30 s."""
    slow = [[30.0 if p == 8 else 20.0] * 2 for p in P]
    models = fitted({"main": slow}, run_time=np.ravel(slow), reduction=Reduction.MEAN)
    found = answer_at(models, 8.0, bands=bands).run_time
    assert (found.repetitions, found.total[0]) == (2, 30)
    assert answer_at(models, 8.0, bands=bands).predicted_run_time == pytest.approx(20, rel=0.05)


def test_without_a_run_time_the_sum_is_the_cost_of_the_program(timeless):
    answer = answer_at(timeless, 64.0)
    assert answer.run_time is None
    assert answer.program_at_base == pytest.approx(20 + 0.1 * P[0])
    assert answer.program_total == answer.total
    assert answer.imbalance_at_base == pytest.approx(0)
    assert not answer.has_imbalance


@pytest.mark.parametrize("bands", [True, False])
def test_the_run_time_of_sums_counts_for_all_processes(sums, bands):
    answer = answer_at(sums, 64.0, bands=bands)
    assert answer.program_total[0] == pytest.approx(64 * (20 + 6.4 + LONGER), rel=0.01)
    assert answer.program_at_base == pytest.approx(P[0] * (20 + 0.1 * P[0] + LONGER))
    assert answer.program_at_largest == pytest.approx(P[-1] * (20 + 0.1 * P[-1] + LONGER))
    assert answer.imbalance_at_base == pytest.approx(P[0] * LONGER)
    assert answer.cost_per_process == pytest.approx(20 + 6.4 + LONGER, rel=0.01)


@pytest.mark.parametrize("runs", [1, 2])
def test_a_target_that_was_run_is_measured(runs):
    models = fitted({"main": [[20.0] * runs] * len(P)})
    assert answer_at(models, float(P[1])).basis == "measured"
    assert answer_at(models, float(P[1])).repetitions == runs
    assert answer_at(models, 64.0).basis == "predicted"


def test_a_run_time_that_was_measured_is_not_predicted(uneven, monkeypatch):
    """The prediction is made for the notes that state it, and not for the value."""

    def refuse(*_):
        raise AssertionError("a prediction was made")

    monkeypatch.setattr(program_costs, "predicted_run_time", refuse)
    monkeypatch.setattr(run_time, "predicted_run_time", refuse)
    answer = answer_at(uneven, 8.0)
    assert answer.run_time.total[0] == pytest.approx(20 + 0.8 + LONGER)
    assert answer.run_time.repetitions == 1
    with pytest.raises(AssertionError):
        _ = answer.predicted_run_time


def test_without_models_a_single_run_is_measured():
    compared = experiment({"main": [20.0, 30.0]}, (2.0, 4.0))
    answer = answer_at(measured_values(compared, settings={}), 4.0)
    assert not answer.has_models
    assert (answer.basis, answer.total[0]) == ("measured", 30)


def test_the_costs_at_the_base_beside_predictions_are_those_with_a_model():
    gone = [[3.0] * 2, [3.0] * 2, *[[NAN] * 2] * 3]
    some = fitted({"main": [[20.0] * 2] * len(P), "main/gone": gone})
    assert answer_at(some, float(P[1])).costs_at_base.exclusive[:, 0].tolist() == [20, 3]
    before = answer_at(some, 64.0).costs_at_base.exclusive[:, 0]
    assert np.nan_to_num(before).tolist() == [20, 0]


# How far predictions are known


def known_up_to(monkeypatch, models, target, high):
    """Return the farthest known scale, if bands of 1 end at these numbers, and the scales asked."""
    asked = []

    def bands(_, points):
        asked.extend(points.tolist())
        return Band(np.ones(len(points)), np.ones(len(points)), np.array(high[: len(points)]))

    monkeypatch.setattr(program_costs, "run_time_bands", bands)
    return answer_at(models, target, bands=False).farthest_known, asked


@pytest.mark.parametrize(
    ("high", "farthest"),
    [
        ([1.2] * 3, 256.0),
        ([1.2, 1.2, 3.0], 128.0),
        ([1.2, 3.0, 1.2], 64.0),
        ([3.0, 1.2, 1.2], None),
    ],
    ids=["all", "two", "one", "none"],
)
def test_the_farthest_scale_is_the_last_before_one_without_three_marks(
    monkeypatch, timeless, high, farthest
):
    found, asked = known_up_to(monkeypatch, timeless, 300.0, high)
    assert asked == [64, 128, 256]
    assert found == farthest


def test_a_target_close_to_the_data_asks_for_twice_the_largest_scale(monkeypatch, timeless):
    assert known_up_to(monkeypatch, timeless, 40.0, [1.2]) == (64.0, [64])


@pytest.mark.parametrize("target", [16.0, 32.0, INF])
def test_scales_within_the_data_and_infinity_have_no_farthest_scale(monkeypatch, timeless, target):
    assert known_up_to(monkeypatch, timeless, target, [1.2] * 9) == (None, [])


def test_many_call_paths_have_no_farthest_scale(monkeypatch, timeless):
    monkeypatch.setattr(program_costs, "_MANY", 2)
    assert known_up_to(monkeypatch, timeless, 64.0, [1.2])[0] == 64
    monkeypatch.setattr(program_costs, "_MANY", 1)
    assert known_up_to(monkeypatch, timeless, 64.0, [1.2]) == (None, [])


# Metrics that do not add up, and infinity


def test_ratios_have_no_sums():
    twice = np.repeat(np.array([COMPUTES, WAITS])[..., None], 2, axis=2)
    values = dict(zip(["main", "main/f"], twice, strict=True))
    ratios = fitted(values, metric=Metric("r", "1", additive=False))
    for target, runs in ((64.0, 0), (float(P[1]), 2), (INF, 0)):
        ranking = rank(ratios, target)
        assert ranking.repetitions == runs
        assert ranking.whole == 0
        assert np.isnan(ranking.total).tolist() == [True] * 3


def test_at_infinity_the_fastest_growths_share_by_their_coefficients():
    grows = fitted({"main": COMPUTES, "main/one": 1.0 * P, "main/two": 2.0 * P})
    costs = answer_at(grows, INF, bands=False).costs
    assert costs.whole == 1
    assert costs.decides.exclusive[:, 0] == pytest.approx([0, 1 / 3, 2 / 3], rel=1e-6)


def test_a_call_path_that_costs_nothing_leaves_the_shares_at_infinity_to_the_others():
    """All costs fall to zero, and those that fall slowest remain: 1/p and 3/p, but not 9/p^2."""
    values = {"main": 0 * P, "main/one": 1 / P, "main/three": 3 / P, "main/square": 9 / P**2}
    costs = answer_at(fitted(values), INF, bands=False).costs
    assert costs.value.total[0] == 0
    assert costs.decides.exclusive[:, 0] == pytest.approx([0, 1 / 4, 3 / 4, 0], rel=1e-6)


def test_a_program_without_any_cost_has_no_shares_at_infinity():
    costs = answer_at(fitted({"main": 0 * P, "main/f": 0 * P}), INF, bands=False).costs
    assert np.isnan(costs.decides.exclusive[:, 0]).tolist() == [True, True]


def test_constant_costs_share_at_infinity_as_anywhere():
    still = fitted({"main": 0.1 + 0 * P, "main/f": 0.3 + 0 * P})
    for target in (INF, 64.0):
        costs = answer_at(still, target, bands=False).costs
        assert costs.whole == pytest.approx(0.4)
        assert costs.decides.exclusive[:, 0] == pytest.approx([0.1, 0.3])


@pytest.mark.parametrize("gone", [[3.0, NAN, NAN, NAN, NAN], [*(3 * P[:-1]), NAN]])
def test_a_call_path_that_the_largest_scale_lacks_has_no_share_at_infinity(gone):
    grows = fitted({"main": 1.0 * P, "main/gone": gone})
    shares = answer_at(grows, INF, bands=False).costs.decides.exclusive[:, 0]
    assert shares[0] == 1
    assert np.isnan(shares[1])


# Formulas of sums


WORK, CYCLES = {"main": 10 + 0 * P, "main/f": 2.0 * P}, {"main": 5 + 0 * P, "main/f": 4.0 * P}
SLOW = np.where(P == 8, 1.5, 1.0)
"""Factor of the cycles: both runs at p = 8 needed half as many again."""


@pytest.fixture(scope="module")
def ratios():
    """Return models of work per cycle, of two equal runs at each scale."""
    twice = [
        experiment(
            {name: np.repeat((values * factor)[:, None], 2, axis=1) for name, values in of.items()},
            metric=Metric(metric, "1"),
        )
        for metric, of, factor in (("work", WORK, 1.0), ("cycles", CYCLES, SLOW))
    ]
    columns = {**twice[0].columns, **twice[1].columns}
    made = replace(twice[0], columns=columns, declared=dict.fromkeys(columns, ""))
    return Study(made, LoadOptions(define="ipc = work / cycles")).models("ipc")


@pytest.mark.parametrize(("target", "runs"), [(8.0, 2), (64.0, 0)])
def test_the_first_operand_is_the_size_of_a_node(ratios, target, runs):
    costs = answer_at(ratios, target, bands=False).costs
    assert costs.repetitions == runs
    assert costs.decides.exclusive[:, 0] == pytest.approx([10, 2 * target])
    assert costs.decides.inclusive[:, 0] == pytest.approx([10 + 2 * target, 2 * target])
    assert costs.whole == pytest.approx(10 + 2 * target)


def test_a_formula_is_predicted_from_predictions_of_its_operands(ratios):
    """At p = 8, main/f did 16 operations in 48 cycles, and about 32 cycles were to be expected."""
    costs = answer_at(ratios, 8.0, bands=False).costs
    assert costs.value.exclusive[:, 0] == pytest.approx([10 / 7.5, 16 / 48])
    work, cycles = (part.models.values([8.0])[:, 0] for part in ratios.parts)
    assert cycles[1] < 40
    assert costs.predicted.exclusive[:, 0] == pytest.approx(work / cycles)
    assert costs.predicted.inclusive[0, 0] == pytest.approx(work.sum() / cycles.sum())


# Expected costs, and the scale with the shortest run time


def test_below_the_base_no_cost_is_expected(timeless):
    assert answer_at(timeless, 1.0).expected.exclusive[:, 0].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("scaling", "reduction", "expected"),
    [
        (Scaling.WEAK, Reduction.MAX, [20, 4]),
        (Scaling.STRONG, Reduction.MAX, [20 / 32, 4 / 32]),
        (Scaling.WEAK, Reduction.SUM, [10, 2]),
        (Scaling.STRONG, Reduction.SUM, [10 / 32, 2 / 32]),
    ],
)
def test_perfect_scaling_expects_the_cost_of_one_process_at_the_base(scaling, reduction, expected):
    """20 s and 4 s at p = 2 are those of one process, or of two together. The target is p = 64."""
    values = {"main": 20 + 0 * P, "main/f": 2 * P}
    found = answer_at(fitted(values, scaling=scaling, reduction=reduction), 64.0).expected
    assert found.exclusive[:, 0] == pytest.approx(expected)
    assert found.inclusive[:, 0] == pytest.approx([sum(expected), expected[1]])


def test_weak_scaling_keeps_the_costs_at_the_base_whose_sums_views_have_already(timeless):
    answer = answer_at(timeless, 64.0)
    assert answer.expected is answer.costs_at_base


def test_only_predictions_have_a_scale_with_the_shortest_run_time():
    """A time of 128 / p + p seconds is shortest at 11 processes."""
    falls = np.repeat((128 / P)[:, None], 2, axis=1)
    rises = np.repeat(P[:, None], 2, axis=1)
    models = fitted({"main": falls, "main/rises": rises}, scaling=Scaling.STRONG)
    assert answer_at(models, float(P[-1])).turning is None
    assert answer_at(models, 64.0).turning.at == pytest.approx(11.3, rel=0.1)
    assert answer_at(models, 64.0, bands=False).turning is None
