from __future__ import annotations

from math import exp

import numpy as np
import pytest
from scipy import stats

from callpath_modeler.analysis.changes import SampleComparison
from cells import cells
from cpmodel_guidelines import predicted_excess
from cpmodel_guidelines.benchmark import benchmark_of
from cpmodel_guidelines.campaigns.campaign import experiment_of
from cpmodel_guidelines.checks import FunctionAtSetting, GuidelineCheck
from cpmodel_guidelines.judge import GuidelineVerdict, GuidelineVerdicts
from cpmodel_guidelines.predicted_excess import Excess, bent, pooled_excess, unbent
from cpmodel_guidelines.rules import parse, patterns
from cpmodel_guidelines.statistics.two_sample_tests import rank_sum_chances
from cpmodel_guidelines.suites.files import benchmark_files, read_campaign
from cpmodel_guidelines.verification import Ask, verify

GATHER = "Gather <= Allgather"
AXES = (0, 1)


def check(p, size, rule=GATHER, row=0, group=()):
    setting = (float(p), float(size))
    return GuidelineCheck(
        parse(rule), group, FunctionAtSetting(row, setting), (FunctionAtSetting(9, setting),)
    )


def verdicts(excess, error):
    excess, error = np.broadcast_arrays(np.asarray(excess, float), error)
    reach = stats.norm.ppf(0.975) * error
    columns = [np.exp(excess + each) for each in (0, -reach, reach)]
    nothing = np.zeros(len(excess), bool)
    return GuidelineVerdicts(*columns, nothing * 1.0, nothing * 1.0, nothing, nothing)


def predict(measured, excess, checks, error=0.05):
    return pooled_excess(measured, verdicts(excess, error), checks, AXES, 0.95)[0]


def test_a_bent_excess_is_itself_where_it_is_small_and_comes_back_where_it_is_large():
    excess = np.array([-4.0, -0.05, 0.0, 0.05, 3.0])
    assert bent(excess)[1:4] == pytest.approx(excess[1:4], rel=2e-3)
    assert abs(bent(excess)[0]) < 1.4
    assert unbent(bent(excess)) == pytest.approx(excess)


def test_one_measured_check_is_predicted_as_by_hand():
    measured = [check(4, 64), check(4, 64, row=1)]
    told = verdicts([0.3, -0.3], 0.05)
    found, noise = pooled_excess(measured, told, [check(16, 64)], AXES, 0.95)
    # Two checks of different functions have the mean zero.
    level, steps, near = 0.13, 2 * 0.05, 0.4 + 0.6 * exp(-2 / 8)
    common = near * level + 0.02
    variance = 0.05**2 / (1 + (0.3 / 0.5) ** 2) + 1e-3 + level + 0.02
    assert bent(found.middle) == pytest.approx(common / variance * bent(0.3))
    assert found.low < found.middle < found.high
    alone = level + steps + 0.02 + 2 * 0.02
    assert found.error == pytest.approx(np.sqrt(alone - common**2 / variance))
    assert noise == pytest.approx(0.05)


def test_the_error_grows_with_each_doubling():
    found = predict([check(4, 64)], [0.3], [check(p, 64) for p in (4, 8, 64, 4096)])
    assert (np.diff(found.error) > 0).all()
    assert found.error[0] < 0.1


def test_similar_sizes_and_guidelines_of_the_same_function_are_evidence():
    here, sizes = check(8, 64), (16, 32, 128, 256)
    alone = predict([check(4, 64), check(4, 64, row=1)], [0.2, -0.2], [here], 0.2)
    beside = [check(4, size) for size in sizes]
    others = [check(4, size, row=1) for size in (64, *sizes)]
    together = predict([check(4, 64), *beside, *others], [0.2] * 5 + [-0.2] * 5, [here], 0.2)
    assert together.middle > alone.middle
    assert together.error < 0.97 * alone.error
    rule = "Gather <= Reduce(p*m)"
    same = [check(4, 64, rule)]
    by_function = predict([check(4, 64), *same, *others], [0.2] * 2 + [-0.2] * 5, [here], 0.2)
    other = predict([check(4, 64), check(4, 64, rule, group=("B",)), *others],
                    [0.2] * 2 + [-0.2] * 5, [here], 0.2)  # fmt: skip
    assert by_function.error < other.error


def test_only_sizes_that_were_measured_with_known_noise_are_predicted():
    found = predict(
        [check(4, 64), check(4, 128)], [0.2, 0.3], [check(8, s) for s in (64, 128, 256)],
        np.array([0.1, np.nan]),
    )  # fmt: skip
    assert np.isnan(found.middle).tolist() == [False, True, True]
    nothing = predict([], [], [check(8, 64)])
    assert np.isnan(nothing.middle).all()


def test_a_barrier_without_a_size_and_a_benchmark_without_sizes_are_predicted():
    assert np.isfinite(predict([check(4, 0)], [0.2], [check(8, 0)]).middle).all()
    told = verdicts([0.2], 0.05)
    alone, _ = pooled_excess([check(4, 64)], told, [check(8, 64)], (0, None), 0.95)
    assert np.isfinite(alone.middle).all()


def test_of_too_many_checks_those_at_the_largest_scales_decide(monkeypatch):
    measured = [check(p, size) for p in (2, 4, 8) for size in (8, 16, 32)]
    excess = [0.0] * 6 + [0.3] * 3
    monkeypatch.setattr(predicted_excess, "_MOST_CELLS", 3)
    few = predict(measured, excess, [check(16, 16)])
    monkeypatch.undo()
    last = predict([*measured[6:], check(2, 16, row=1)], [*excess[6:], 0.0], [check(16, 16)])
    assert few.error == pytest.approx(last.error)


def test_models_decide_where_they_are_clearly_sharper():
    pooled = Excess.of_bent(np.zeros(4), np.array([0.3, 0.3, 0.3, np.nan]), 0.95)
    half = stats.norm.ppf(0.975) * np.array([0.1, 0.2, np.nan, 5.0])
    middle = np.full(4, 1e-3)
    models = SampleComparison(middle, middle - half, middle + half, np.ones(4))
    found, wins = pooled.with_models(Excess.of_models(models, 0.95))
    assert wins.tolist() == [True, False, False, True]
    assert found.error[1:3] == pytest.approx(0.3)
    assert found.high[[0, 3]] == pytest.approx((middle + half)[[0, 3]])


@cells(
    ("middle", "verdict"),
    [
        (0.7, GuidelineVerdict.VIOLATED),
        (0.2, GuidelineVerdict.OPEN),
        (-0.2, GuidelineVerdict.OPEN),
        (-0.9, GuidelineVerdict.HOLDS),
    ],
)
def test_a_prediction_is_a_violation_if_that_is_likelier_than_not(middle, verdict):
    excess, noise = Excess.of_bent(np.array([middle]), np.array([0.3]), 0.95), np.array([0.1])
    yes, no = np.ones(1, bool), np.zeros(1, bool)
    found = excess.verdicts(noise, 0.05, yes, yes)
    assert found.verdict(0) is verdict
    assert bool(found.chance[0] < 0.5) is (verdict is GuidelineVerdict.VIOLATED)
    assert found.low < found.factor < found.high
    closed = excess.verdicts(noise, 0.05, no, no)
    assert closed.verdict(0) is GuidelineVerdict.OPEN
    assert np.isnan(closed.chance).all()


def test_a_tolerance_and_noise_make_a_violation_less_likely():
    excess = Excess.of_bent(np.full(2, 0.4), np.full(2, 0.1), 0.95)
    noise = np.array([0.05, 0.3])
    chance = excess.violation_chance(noise, 0.05)
    assert chance[0] > chance[1]
    assert excess.violation_chance(noise, 0.5)[0] < chance[0]
    exact = Excess.of_bent(np.array([-3.0, 3.0]), np.full(2, 1e-9), 0.95)
    assert exact.violation_chance(np.zeros(2), 0.05) == pytest.approx([0.04, 0.96])


@pytest.mark.parametrize(
    ("known", "target"),
    [(["quiet_p2", "quiet_p4"], "quiet_p8"), (["p4"], "p8")],
)
def test_measured_campaigns_are_predicted_with_the_stated_probabilities(known, target, shared_data):
    def benchmark(names):
        folders = [shared_data / "mpi_guidelines" / f"openmpi414_{name}" for name in names]
        files = benchmark_files([f"{folder}/raw_data" for folder in folders], None)
        return benchmark_of(experiment_of(read_campaign(files)))

    there = verify(benchmark([target]), patterns(), with_singles=False).here
    ahead = verify(benchmark(known), patterns(), ask=Ask(8.0), with_singles=False).ahead
    rows = {(c.guideline, c.left.setting[-1]): k for k, c in enumerate(there.checks)}
    pairs = [
        (k, rows[key])
        for k, c in enumerate(ahead.checks)
        if (key := (c.guideline, c.left.setting[-1])) in rows
    ]
    told, true = (np.array(each) for each in zip(*pairs, strict=True))
    shown = rank_sum_chances(*there.runs)[true] <= 0.05
    share, predicted = 1 - ahead.verdicts.chance[told], ahead.verdicts.take(told)
    factor = there.verdicts.factor[true]
    assert np.mean((predicted.low <= factor) & (factor <= predicted.high)) >= 0.9
    assert share.sum() == pytest.approx(shown.sum(), rel=0.15)
    assert shown[share > 0.5].mean() > 0.5
    assert (~shown & (share > 0.5)).sum() <= 0.05 * (~shown).sum()
