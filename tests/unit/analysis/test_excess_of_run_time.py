"""Excess work divides by the run time of the slowest process, and so adds up to that of it.

All right values are computed by hand from p = 2 to p = 32: X = (C_q - C_p) / T_q under weak
scaling, and X = (q C_q - p C_p) / (q T_q) under strong scaling.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.answer import answer_at, rank
from callpath_modeler.analysis.ensemble import losses, measured_excess_of
from callpath_modeler.analysis.expectations.expectation import CriterionKind
from callpath_modeler.analysis.expectations.subjects import Subjects
from callpath_modeler.analysis.further_excess import with_target
from callpath_modeler.analysis.ideals import CallPathIdeal, GrowthIdeal, ReferenceIdeal
from callpath_modeler.analysis.measured import Measured
from callpath_modeler.analysis.measured_only import measured_values
from callpath_modeler.modeling import parse_function
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.studies.pipeline import fit
from synthetic import POINTS, experiment

P = np.array(POINTS)
MAIN, WAIT, REST = 20 + 0 * P, 0.1 * P, 0.5 * P
"""Seconds of two call paths, and of the slowest process beyond them."""
T = {p: 20 + 0.1 * p + 0.5 * p for p in (*POINTS, 64)}
WEAK = {"main": 0.0, "main/wait": (3.2 - 0.2) / T[32]}
STRONG = {
    "main": (32 * 20 - 2 * 20) / (32 * T[32]),
    "main/wait": (32 * 3.2 - 2 * 0.2) / (32 * T[32]),
}
OF_PROGRAM = {
    Scaling.WEAK: (T[32] - T[2]) / T[32],
    Scaling.STRONG: (32 * T[32] - 2 * T[2]) / (32 * T[32]),
}
OF_ROWS = {Scaling.WEAK: WEAK, Scaling.STRONG: STRONG}


def runs_of(scaling, reduction=Reduction.MEAN, *, runs=1, run_time=True, points=POINTS):
    """Return `runs` equal runs of both call paths at each point."""
    by = P if reduction is Reduction.SUM else np.ones(len(P))
    chosen = np.isin(P, points)
    values = {
        name: np.repeat((value * by)[chosen, None], runs, axis=1)
        for name, value in {"main": MAIN, "main/wait": WAIT}.items()
    }
    found = experiment(values, points, scaling=scaling, reduction=reduction)
    if not run_time:
        return found
    whole = np.repeat((MAIN + WAIT + REST)[chosen], runs)
    return replace(found, columns={"time": replace(found.columns["time"], run_time=whole)})


def made(scaling, reduction=Reduction.MEAN, **of_runs):
    return fit(runs_of(scaling, reduction, **of_runs))


@pytest.fixture(params=[Scaling.WEAK, Scaling.STRONG])
def scaling(request):
    return request.param


@pytest.fixture(params=[Reduction.MEAN, Reduction.SUM])
def models(request, scaling):
    return made(scaling, request.param)


def rows_of(scaling):
    return pytest.approx([*OF_ROWS[scaling].values()], abs=1e-12)


def test_a_measured_target_has_the_excess_work_of_the_equations(models, scaling):
    answer = answer_at(models, 32.0)
    assert answer.call_paths[0].excess == rows_of(scaling)
    assert answer.total_excess == pytest.approx(OF_PROGRAM[scaling])
    rest = OF_PROGRAM[scaling] - sum(OF_ROWS[scaling].values())
    assert answer.imbalance_excess == pytest.approx(rest)
    assert rank(models, 32.0).excess.exclusive == rows_of(scaling)


def test_losses_and_the_functions_of_python_have_the_same(models, scaling):
    found = losses(models.experiment, pair=(2, 32))
    assert found.excess.exclusive[:, 0] == rows_of(scaling)
    assert found.total == pytest.approx([OF_PROGRAM[scaling]])
    assert found.run_time == pytest.approx([T[2], T[32]])
    assert found.has_run_time
    assert found.has_imbalance
    assert found.imbalance == pytest.approx(found.total - found.excess.total)
    alone = cpm.measured_excess(models.experiment, "time", "p", 2, 32)
    assert alone.exclusive == rows_of(scaling)
    assert measured_excess_of(models)[-1].exclusive == rows_of(scaling)


def test_excess_work_of_arrays_takes_the_run_time(scaling):
    tree, costs = runs_of(scaling).tree, ((2, [20.0, 0.2]), (32, [20.0, 3.2]))
    pair = [(p, np.array(cost)) for p, cost in costs]
    assert cpm.excess_work(tree, scaling, *pair, T[32]).exclusive == rows_of(scaling)
    by_sum = np.array([*OF_ROWS[scaling].values()]) * T[32] / 23.2
    assert cpm.excess_work(tree, scaling, *pair).exclusive == pytest.approx(by_sum)


def test_the_ensemble_is_the_mean_over_pairs_of_the_program(scaling):
    found = losses(runs_of(scaling, points=(2, 4, 8))).ensemble
    power = 1 if scaling is Scaling.STRONG else 0
    pairs = ((2, 4), (2, 8), (4, 8))
    assert found.count == 3
    assert found.total == pytest.approx(
        np.mean([1 - T[p] * (p / q) ** power / T[q] for p, q in pairs])
    )
    assert found.imbalance == pytest.approx(found.total - found.costs.total[0])


def test_a_predicted_target_divides_by_the_predicted_run_time(models, scaling):
    answer = answer_at(models, 64.0)
    whole = answer.program_total[0] / (64 if models.experiment.reduction is Reduction.SUM else 1)
    assert whole == pytest.approx(T[64], rel=0.01)
    spent = T[2] * (2 / 64 if scaling is Scaling.STRONG else 1)
    assert answer.total_excess == pytest.approx(1 - spent / whole)
    parts = float(answer.call_paths[0].excess.sum()) + answer.imbalance_excess
    assert parts == pytest.approx(answer.total_excess)
    band = answer.program_excess
    assert band.low[0] <= band.value[0] <= band.high[0]
    of_rows = answer.call_paths[0].excess_band
    assert (of_rows.low <= of_rows.value + 1e-9).all()
    assert (of_rows.value <= of_rows.high + 1e-9).all()


def test_a_target_beside_measured_pairs_has_the_excess_work_of_an_answer(scaling):
    models = made(scaling)
    longer, answer = with_target(losses(models.experiment), models, 64.0)
    assert longer.total[-1] == pytest.approx(answer.total_excess)
    assert longer.run_time[-2:] == pytest.approx([T[2], answer.program_total[0]])
    assert longer.imbalance[-1] == pytest.approx(answer.imbalance_excess)


def test_without_a_run_time_the_sum_divides(scaling):
    answer = answer_at(made(scaling, run_time=False), 32.0)
    by = T[32] / 23.2
    assert answer.call_paths[0].excess == pytest.approx(
        [x * by for x in OF_ROWS[scaling].values()], abs=1e-12
    )
    assert answer.total_excess == pytest.approx(by * sum(OF_ROWS[scaling].values()))
    assert answer.imbalance_excess == pytest.approx(0)
    assert not losses(answer.fitted.experiment).has_run_time


def test_two_scales_are_compared_by_their_run_times(scaling):
    two = measured_values(runs_of(scaling, points=(2, 32)), settings={})
    answer = answer_at(two, 32.0)
    assert answer.is_comparison
    assert answer.call_paths[0].excess == rows_of(scaling)
    assert answer.total_excess == pytest.approx(OF_PROGRAM[scaling])


@pytest.mark.parametrize("runs", [1, 3])
def test_expectations_have_the_excess_work_and_the_loss_of_a_ranking(models, scaling, runs):
    models = made(scaling, models.experiment.reduction, runs=runs)
    measured = Measured(models)
    rows = np.arange(2)
    ideal = 2 / 32 if scaling is Scaling.STRONG else 1
    lost = {"main": 20 - ideal * 20, "main/wait": 3.2 - ideal * 0.2}
    for target in (32.0, 64.0):
        answer = answer_at(models, target)
        of_rows, of_program = Subjects(measured, rows), Subjects(measured, None)
        found = of_rows.band(CriterionKind.EXCESS, target, 0.95).value
        assert found == pytest.approx(answer.call_paths[0].excess, abs=1e-9)
        found = of_program.band(CriterionKind.EXCESS, target, 0.95).value
        assert found == pytest.approx([answer.total_excess])
        found = of_rows.band(CriterionKind.LOSS, target, 0.95).value
        assert found == pytest.approx(answer.call_paths[0].lost, abs=1e-9)
        if target == 32:
            assert found == pytest.approx([*lost.values()], abs=1e-9)
            found = of_program.band(CriterionKind.LOSS, target, 0.95).value
            assert found == pytest.approx([T[32] - ideal * T[2]])


def test_an_expected_growth_applies_to_the_imbalance():
    grown = GrowthIdeal("O(p)", parse_function("p")[0], "p")
    answer = answer_at(replace(made(Scaling.WEAK), ideal=grown), 32.0)
    assert answer.total_excess == pytest.approx((T[32] - 16 * T[2]) / T[32])
    rest = 16 - 16 * 1.0
    assert answer.imbalance_excess == pytest.approx(rest / T[32])


def test_growths_of_call_paths_leave_perfect_scaling_to_the_imbalance(scaling):
    functions = (("p", parse_function("p")[0]),)
    ideal = CallPathIdeal("file", functions, np.array([-1, 0]), scaling, "p")
    answer = answer_at(replace(made(scaling), ideal=ideal), 32.0)
    perfect = 2 / 32 if scaling is Scaling.STRONG else 1
    assert answer.call_paths[0].excess == pytest.approx(
        [(20 - perfect * 20) / T[32], (3.2 - 16 * 0.2) / T[32]], abs=1e-12
    )
    assert answer.imbalance_excess == pytest.approx((16 - perfect * 1) / T[32])


@pytest.mark.parametrize(("known", "expected"), [(None, 15.0), (lambda _: 18.0, 18.0)])
def test_another_experiment_states_the_expected_run_time(known, expected):
    ideal = ReferenceIdeal("old", "p", {32.0: np.array([12.0, 3.0])}, run_time_at=known)
    answer = answer_at(replace(made(Scaling.WEAK), ideal=ideal), 32.0)
    assert answer.call_paths[0].excess == pytest.approx([8 / T[32], 0.2 / T[32]])
    assert answer.total_excess == pytest.approx((T[32] - expected) / T[32])


def test_the_base_of_the_program_is_that_of_the_call_paths():
    later = replace(made(Scaling.WEAK), base_point=1)
    answer = answer_at(later, 32.0)
    assert answer.program_at_base == pytest.approx(T[4])
    assert answer.imbalance_at_base == pytest.approx(2.0)
    assert answer.total_excess == pytest.approx((T[32] - T[4]) / T[32])
