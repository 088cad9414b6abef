"""Costs of call paths at a measured target: measurements decide, not models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import callpath_modeler as cpm
from callpath_modeler.analysis.answer import By, answer_at, rank
from callpath_modeler.analysis.answer_bands import AnswerInputs
from callpath_modeler.analysis.excess_work import excess_work
from callpath_modeler.analysis.expectations.expectation import CriterionKind
from callpath_modeler.analysis.expectations.subjects import Subjects
from callpath_modeler.analysis.measured import Measured
from callpath_modeler.analysis.uncertain import deviation
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.schema import Metric, Reduction
from callpath_modeler.profile.tree_views import BottomUp, TopDown
from cells import cells
from synthetic import POINTS, experiment

P = np.array(POINTS)
NAN = float("nan")
LAWS = {
    "main": 4 + 0 * P,
    "main/odd": np.array([1.0, 1.6, 0.8, 1.7, 0.9]),
    "main/odd/MPI_Send": 3 * np.log2(P),
    "main/MPI_Send": 0.1 * P,
    "main/absent": 2 + 0 * P,
    "main/alone": np.array([NAN, NAN, 6.0, NAN, NAN]),
}
"""odd follows no law; absent does not occur at p = 8, and alone has no model."""
NAMES = list(LAWS)
TARGET, AT = 8.0, 2
ODD, ABSENT, ALONE = (NAMES.index(f"main/{name}") for name in ("odd", "absent", "alone"))


def cube(repetitions=4, seed=3, noise=0.02):
    random = np.random.default_rng(seed)
    shape = (len(LAWS), len(P), repetitions)
    values = np.array(list(LAWS.values()))[..., None] * np.exp(
        noise * random.standard_normal(shape)
    )
    values[ABSENT, AT] = np.nan
    return values


def models(values, **of_experiment):
    return cpm.fit(experiment(dict(zip(NAMES, values, strict=True)), P, **of_experiment))


@pytest.fixture(scope="module")
def fit():
    return models(cube())


@cells("inclusive", [False, True])
@cells("target", [2.0, 8.0, 32.0])
@cells(
    "of_experiment",
    [{}, {"scaling": Scaling.STRONG}, {"scaling": Scaling.STRONG, "reduction": Reduction.SUM}],
)
def test_where_a_target_was_repeated_all_numbers_are_those_that_expectations_are_held_against(
    inclusive, target, of_experiment
):
    fit = models(cube(), **of_experiment)
    ranking = rank(fit, target, inclusive=inclusive)
    measured, rows = Measured(fit), ranking.order
    each = Subjects(measured, rows, inclusive)
    value, share, excess, loss = (
        each.band(kind, target, 0.95)
        for kind in (
            CriterionKind.VALUE,
            CriterionKind.SHARE,
            CriterionKind.EXCESS,
            CriterionKind.LOSS,
        )
    )
    assert value.measured.all()
    found = ranking.excess.inclusive if inclusive else ranking.excess.exclusive
    for ours, theirs in (
        (ranking.value, value.value),
        (ranking.low, value.low),
        (ranking.high, value.high),
        (ranking.share, share.value),
        (found, excess.value),
        (ranking.lost, loss.value),
    ):
        np.testing.assert_allclose(ours[rows], theirs, rtol=1e-9, atol=1e-12)
    whole = Subjects(measured, None).band(CriterionKind.VALUE, target, 0.95)
    assert ranking.total == pytest.approx(whole.at(0))
    assert (ranking.basis, ranking.repetitions) == ("measured", 4)


def test_the_values_shown_add_up_to_the_total(fit):
    ranking = rank(fit, TARGET)
    assert np.nansum(ranking.value) == pytest.approx(ranking.total[0])
    assert np.nansum(ranking.share) == pytest.approx(1)
    assert rank(fit, TARGET, inclusive=True).value[0] == pytest.approx(ranking.total[0])
    assert ranking.total[1] < ranking.total[0] < ranking.total[2]


def test_a_model_that_misses_does_not_move_what_was_measured(fit):
    ranking = rank(fit, TARGET)
    assert ranking.value[ODD] == pytest.approx(0.8, rel=0.05)
    assert ranking.low[ODD] < 0.8 < ranking.high[ODD]
    assert ranking.deviation[ODD] > 0.2
    assert ranking.predicted.value[ODD] == rank(fit, TARGET, predicted=True).value[ODD]


def test_what_does_not_occur_in_the_runs_of_the_target_costs_nothing_there(fit):
    ranking = rank(fit, TARGET)
    assert ABSENT not in ranking.order
    assert np.isnan(ranking.value[ABSENT])
    assert ranking.predicted.value[ABSENT] == pytest.approx(2, rel=0.05)
    # Its whole previous cost is saved.
    at_base = fit.at_smallest()[ABSENT]
    assert ranking.excess.exclusive[ABSENT] == pytest.approx(-at_base / ranking.total[0])


def test_what_was_measured_is_ranked_without_a_model(fit):
    ranking = rank(fit, TARGET)
    assert NAMES[ranking.order[1]] == "main/alone"
    assert ranking.leader[ALONE] == -1
    assert ranking.trust[ALONE] == 4
    assert np.isnan(ranking.deviation[ALONE])
    assert rank(fit, TARGET, By.GROWTH).order[-1] == ALONE
    assert ALONE not in rank(fit, TARGET, predicted=True).order


def test_models_are_held_against_what_they_know_and_not_against_what_has_none():
    exact = {"main": 4 + 0 * P, "main/f": 0.5 * P, "main/alone": LAWS["main/alone"]}
    fit = cpm.fit(experiment({name: np.tile(v[:, None], 2) for name, v in exact.items()}, P))
    for inclusive in (False, True):
        ranking = rank(fit, TARGET, inclusive=inclusive)
        assert ranking.value[0] == pytest.approx(14 if inclusive else 4)
        assert ranking.deviation[:2] == pytest.approx([0, 0], abs=1e-9)
    assert ranking.total[0] == pytest.approx(14)
    assert ranking.modelled_total == pytest.approx(8)
    (own, whole) = answer_at(fit, TARGET).of_nodes(TopDown(fit.experiment.tree), np.arange(3))
    for values in (own, whole):
        assert values.deviation[:2] == pytest.approx([0, 0], abs=1e-9)
        assert np.isnan(values.deviation[2])
    assert answer_at(fit, TARGET).modelled_total == pytest.approx(8)


def test_excess_work_at_a_measured_target_is_that_of_the_centres(fit):
    expected = excess_work(
        fit.experiment.tree,
        Scaling.WEAK,
        (P[0], fit.measured[:, 0]),
        (TARGET, fit.measured[:, AT]),
    )
    found = rank(fit, TARGET).excess
    np.testing.assert_allclose(found.exclusive, expected.exclusive, atol=1e-12)
    np.testing.assert_allclose(found.inclusive, expected.inclusive, atol=1e-12)


def test_a_call_path_of_some_runs_has_an_interval():
    """One run has the noise of the others, and a zero makes the interval that of the mean."""
    values, send = cube(), NAMES.index("main/MPI_Send")
    values[ODD, AT, 1:] = np.nan
    values[send, AT] = 0, 1, 2, 5
    ranking = rank(models(values), TARGET)
    assert ranking.value[ODD] == values[ODD, AT, 0]
    assert ranking.low[ODD] < values[ODD, AT, 0] < ranking.high[ODD]
    assert ranking.high[ODD] / ranking.low[ODD] < 1.3
    # Student's t with 3 degrees of freedom is 3.182, and the deviation of 0, 1, 2, 5 is 2.160.
    assert ranking.value[send] == 2
    assert ranking.low[send] == 0
    assert ranking.high[send] == pytest.approx(2 + 3.182446 * 2.160247 / 2)
    assert ranking.trust[send] == 0
    assert np.isfinite(ranking.total).all()
    assert np.nansum(ranking.value) == pytest.approx(ranking.total[0])
    assert np.isfinite(ranking.first).all()


def test_a_target_that_was_run_once_is_measured_with_the_noise_of_other_scales():
    values = cube()
    values[:, AT, 1:] = np.nan
    ranking = rank(models(values), TARGET)
    assert (ranking.basis, ranking.repetitions) == ("measured", 1)
    np.testing.assert_array_equal(ranking.value, values[:, AT, 0])
    width = np.log(ranking.high / ranking.low)[:4]
    others = rank(models(cube()), TARGET)
    four = np.log(others.high / others.low)[:4]
    # The mean of four runs is twice as certain as one run.
    assert np.median(width / four) == pytest.approx(2, rel=0.25)
    assert ranking.total[0] == pytest.approx(np.nansum(values[:, AT, 0]))
    assert ranking.total[1] < ranking.total[0] < ranking.total[2]


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_without_any_repetition_the_noise_is_the_deviation_from_the_models(noise):
    fit = models(cube(1, noise=noise))
    ranking, held = rank(fit, TARGET), Measured(fit)
    assert ranking.repetitions == 1
    spread, dof = fit.models.spread[0], fit.models.dof[0]
    reach = stats.t.ppf(0.975, max(dof, 1.0)) * spread
    assert ranking.high[0] == pytest.approx(ranking.value[0] * np.exp(reach))
    assert ranking.low[0] == pytest.approx(ranking.value[0] * np.exp(-reach))
    assert ranking.trust.max() <= 3
    each = Subjects(held, np.arange(len(NAMES)))
    band = each.band(CriterionKind.VALUE, TARGET, 0.95)
    np.testing.assert_allclose(band.low, ranking.low)
    np.testing.assert_allclose(band.high, ranking.high)
    viewed = answer_at(fit, TARGET).call_paths[0]
    np.testing.assert_allclose(viewed.high, ranking.high)
    share = each.band(CriterionKind.SHARE, TARGET, 0.95)
    np.testing.assert_allclose(share.value, ranking.share)
    known = ~np.isnan(ranking.value)
    assert (share.high[known] >= ranking.share[known]).all()


def test_between_and_beyond_the_runs_models_are_asked(fit):
    for target in (6.0, 64.0, np.inf):
        ranking = rank(fit, target)
        assert ranking.basis == "predicted"
        np.testing.assert_array_equal(ranking.value, ranking.predicted.value)
        assert not np.nan_to_num(ranking.deviation).any()
        assert ABSENT in ranking.order


def test_whoever_asks_the_models_is_told_what_they_say(fit):
    asked = rank(fit, TARGET, predicted=True)
    found = rank(fit, TARGET)
    assert asked.basis == "predicted"
    np.testing.assert_array_equal(asked.value, found.predicted.value)
    np.testing.assert_allclose(asked.high, found.predicted.high)
    assert asked.total == pytest.approx(found.own.total())
    assert found.predicted_total == asked.total[0]


def test_a_metric_that_does_not_add_up_is_measured_without_a_total():
    fit = models(cube(), metric=Metric("imbalance", "1", additive=False))
    ranking = rank(fit, TARGET)
    assert ranking.basis == "measured"
    assert ranking.value[ODD] == fit.measured[ODD, AT]
    assert np.isnan(ranking.total).all()


def test_where_other_parameters_are_held_where_nothing_was_run_models_are_asked():
    rows = []
    random = np.random.default_rng(1)
    for p in (2, 4, 8, 16):
        for n in (10, 20, 40):
            rows += [(f"f,{p},{n},{k},{n * p * random.uniform(0.99, 1.01)}") for k in range(3)]
    import pandas as pd

    names = ["path", "p", "n", "rep", "time"]
    frame = pd.DataFrame([row.split(",") for row in rows], columns=names)
    frame = frame.astype({"p": float, "n": float, "rep": int, "time": float})
    made = cpm.from_frame(
        frame, callpath="path", parameters=["p", "n"], repetition="rep", metrics={"time": "s"}
    )
    fit = cpm.fit(made)
    there = rank(fit.holding({"n": 20.0}), 8.0)
    assert there.basis == "measured"
    assert there.value[0] == pytest.approx(160, rel=0.02)
    assert rank(fit.holding({"n": 30.0}), 8.0).basis == "predicted"


# Views


@pytest.mark.parametrize("inclusive", [False, True])
def test_top_down_every_call_path_has_the_values_of_the_ranking(fit, inclusive):
    made, ranking = answer_at(fit, TARGET), rank(fit, TARGET, inclusive=inclusive)
    values = made.of_nodes(TopDown(fit.experiment.tree), np.arange(len(NAMES)))[inclusive]
    excess = ranking.excess.inclusive if inclusive else ranking.excess.exclusive
    for ours, theirs in (
        (values.value, ranking.value),
        (values.low, ranking.low),
        (values.high, ranking.high),
        (values.share, ranking.share),
        (values.excess, excess),
        (values.predicted, ranking.predicted.value),
        (values.deviation, ranking.deviation),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    assert values.trust.tolist() == ranking.trust.tolist()
    assert made.total == pytest.approx(ranking.total)
    assert made.predicted_total == pytest.approx(ranking.predicted_total)
    assert (made.basis, made.repetitions) == (ranking.basis, ranking.repetitions)
    assert made.total_excess == pytest.approx(ranking.excess.inclusive[0])


def test_the_interval_of_a_function_is_that_of_its_sum_in_each_run(fit):
    view, made = BottomUp(fit.experiment.tree), answer_at(fit, TARGET)
    (send,) = [node for node in view.roots.tolist() if view.name(node) == "MPI_Send"]
    own, _ = made.of_nodes(view, np.array([send]))
    rows = [NAMES.index("main/odd/MPI_Send"), NAMES.index("main/MPI_Send")]
    expected = Measured(fit).values(lambda v: v[rows].sum(axis=0)[None], AT, 0.95)
    assert (own.value[0], own.low[0], own.high[0]) == pytest.approx(expected.at(0))


def test_intervals_come_later_as_bands_do(fit):
    early = answer_at(fit, TARGET, bands=False)
    assert early.total[0] == pytest.approx(rank(fit, TARGET).total[0])
    assert np.isnan(early.total[1])
    assert not early.has_bands
    complete = early.with_bands()
    assert complete is not None
    assert complete.has_bands
    assert complete.total == answer_at(fit, TARGET).total


def test_views_ask_the_models_too_if_told_to(fit):
    asked = answer_at(AnswerInputs(fit, predicted=True), TARGET)
    assert asked.basis == "predicted"
    assert asked.total == pytest.approx(rank(fit, TARGET, predicted=True).total)


# Invariances


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-9, 0.125, 3.0, 1e6]))
def test_the_unit_and_the_order_of_runs_do_not_matter(seed, factor):
    values = cube(seed=seed % 7)
    random = np.random.default_rng(seed)
    orders = random.permuted(np.tile(np.arange(values.shape[2]), (len(P), 1)), axis=1)
    moved = np.take_along_axis(values, orders[None], axis=2)
    first, again = rank(models(values), TARGET), rank(models(moved * factor), TARGET)
    assert again.order.tolist() == first.order.tolist()
    assert again.total == pytest.approx([number * factor for number in first.total], rel=1e-6)
    np.testing.assert_allclose(again.value, first.value * factor, rtol=1e-9)
    np.testing.assert_allclose(again.low, first.low * factor, rtol=1e-6)
    np.testing.assert_allclose(again.high, first.high * factor, rtol=1e-6)
    np.testing.assert_allclose(again.share, first.share, rtol=1e-9)


def test_a_run_that_is_slow_as_a_whole_widens_the_interval_of_the_total():
    values = cube()
    slow = values.copy()
    slow[:, AT, 0] *= 1.5
    before, after = rank(models(values), TARGET).total, rank(models(slow), TARGET).total
    assert np.log(after[2] / after[1]) > 5 * np.log(before[2] / before[1])


def test_how_far_models_are_off_is_relative_to_what_was_measured():
    off = deviation(np.array([2.0, 0.0, 3.0, NAN, 1.0]), np.array([1.0, 0.0, 0.0, 1.0, NAN]))
    np.testing.assert_array_equal(off, [1.0, 0.0, np.inf, NAN, NAN])


def test_a_wider_confidence_widens_intervals(fit):
    narrow = replace(fit, models=replace(fit.models, confidence=0.5))
    assert (rank(narrow, TARGET).high < rank(fit, TARGET).high)[rank(fit, TARGET).order].all()
