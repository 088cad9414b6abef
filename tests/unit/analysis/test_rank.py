from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from callpath_modeler.analysis.answer import FIRST, By, answer_at, rank
from callpath_modeler.analysis.excess_work import NOTICEABLE
from callpath_modeler.analysis.measured_only import measured_values
from callpath_modeler.analysis.predict import predict_sum
from callpath_modeler.analysis.uncertain import (
    MARKS,
    MOST_IN_DOUBT,
    among_the_first,
    marks_of_trust,
)
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.schema import Metric, Reduction
from callpath_modeler.profile.tree_views import TopDown
from callpath_modeler.studies import pipeline
from synthetic import POINTS, experiment, fitted

P = np.array(POINTS)
NAN = float("nan")
VALUES = {
    "main": list(100 + 0 * P),
    "main/linear": list(0.5 * P),
    "main/cubic": list(1e-4 * P**3),
    "main/log": list(3 * np.log2(P)),
    "main/late": [NAN, NAN, NAN, 4.0, 5.0],
}
NAMES = list(VALUES)


@pytest.fixture(scope="module")
def fit():
    return fitted(VALUES)


def order(ranking):
    tree = ranking.fitted.experiment.tree
    return [tree.path(int(row)) for row in ranking.order]


def test_by_value_the_costliest_at_the_target_comes_first(fit):
    assert order(rank(fit, 64))[:3] == ["main", "main/linear", "main/cubic"]
    assert order(rank(fit, 1024))[:3] == ["main/cubic", "main/linear", "main"]


def test_by_growth_the_fastest_comes_first_whatever_it_costs(fit):
    expected = ["main/cubic", "main/linear", "main/log", "main"]
    assert order(rank(fit, 64, By.GROWTH)) == expected
    assert order(rank(fit, np.inf)) == expected


def test_by_loss_what_is_beyond_the_ideal_comes_first(fit):
    ranking = rank(fit, 64, By.LOSS)
    assert order(ranking)[-1] == "main"  # constant per process: that is weak scaling's ideal
    row = NAMES.index("main/linear")
    assert ranking.excess.lost[row] == pytest.approx(0.5 * 64 - 0.5 * 2, rel=1e-6)


def test_by_share_what_gains_most_comes_first(fit):
    assert order(rank(fit, 1024, By.SHARE))[0] == "main/cubic"
    assert order(rank(fit, 1024, By.SHARE))[-1] == "main"


def test_a_share_is_compared_with_the_share_among_the_same_call_paths():
    """Call paths without a model have no share at the target, so they have none before it."""
    constant = {"main": [0.0] * 5, "main/a": [6.0] * 5, "main/b": [4.0] * 5}
    late = {"main/late": [NAN, NAN, NAN, 90.0, 90.0]}
    for values in (constant, constant | late):
        gains = order(rank(fitted(values | {"main/c": list(0.1 * P)}), 64, By.SHARE))
        # Constant call paths lose share, the more the larger they are.
        assert gains == ["main/c", "main", "main/b", "main/a"]


def test_measured_values_with_callees_are_those_of_the_largest_scale(fit):
    found = rank(fit, 64).inputs.at_largest.inclusive[:, 0]
    at_largest = [column[-1] for column in VALUES.values()]
    assert found[0] == pytest.approx(sum(at_largest))
    assert found[1:] == pytest.approx(at_largest[1:])


def test_predictions_shares_and_totals_belong_together(fit):
    ranking = rank(fit, 64)
    modelled = [100, 0.5 * 64, 1e-4 * 64**3, 3 * 6]
    assert ranking.value[:4] == pytest.approx(modelled, rel=1e-6)
    assert ranking.total[0] == pytest.approx(sum(modelled), rel=1e-6)
    assert np.nansum(ranking.share) == pytest.approx(1)
    assert ranking.total[1] <= ranking.total[0] <= ranking.total[2]
    assert (ranking.low[:4] <= ranking.value[:4]).all()
    assert (ranking.value[:4] <= ranking.high[:4]).all()


def test_the_total_at_the_largest_scale_counts_what_has_no_model(fit):
    ranking = rank(fit, 64)
    assert ranking.total_at_largest == pytest.approx(sum(column[-1] for column in VALUES.values()))
    assert np.nansum(ranking.share_at_largest) == pytest.approx(1)


def test_what_was_not_modelled_is_counted_with_its_share(fit):
    ranking = rank(fit, 64)
    row = NAMES.index("main/late")
    assert ranking.unmodelled.tolist() == [row]
    assert ranking.unmodelled_share == pytest.approx(5 / ranking.total_at_largest)
    assert row not in ranking.order
    assert ranking.trust[row] == -1
    assert np.isnan(ranking.value[row])
    assert fit.status(row) == "too_few_points"


def test_every_call_path_is_either_ranked_or_counted(fit):
    for target in (64, np.inf):
        for by in set(By) - {By.ENERGY}:
            ranking = rank(fit, target, by)
            assert sorted([*ranking.order, *ranking.unmodelled]) == list(range(len(NAMES)))


def test_excess_at_the_target_follows_the_formula_for_both_scalings():
    values = {"main": list(8 / P), "main/linear": list(0.5 * P)}
    for scaling, ideal in ((Scaling.WEAK, 1.0), (Scaling.STRONG, 2 / 64)):
        ranking = rank(fitted(values, scaling=scaling), 64)
        predicted = ranking.value
        at_base = np.array([4.0, 1.0])
        expected = (predicted - at_base * ideal) / predicted.sum()
        assert ranking.excess.exclusive == pytest.approx(expected, rel=1e-6)
        assert ranking.excess.inclusive[0] == pytest.approx(expected.sum(), rel=1e-6)


def test_a_call_path_without_a_model_takes_no_part_in_excess_at_the_target(fit):
    excess = rank(fit, 64).excess
    assert excess.exclusive[NAMES.index("main/late")] == 0


def test_at_infinity_the_fastest_growth_takes_all(fit):
    ranking = rank(fit, np.inf)
    row = NAMES.index("main/cubic")
    assert ranking.share[row] == 1
    assert ranking.excess.exclusive[row] == 1
    assert np.isinf(ranking.total[0])
    assert ranking.value[NAMES.index("main")] == pytest.approx(100)


def test_at_infinity_equal_growth_is_ordered_by_its_coefficient():
    ranking = rank(fitted({"main": list(P), "main/f": list(3 * P), "main/g": list(2 * P)}), np.inf)
    assert order(ranking) == ["main/f", "main/g", "main"]
    assert ranking.share == pytest.approx([1 / 6, 3 / 6, 2 / 6])


def test_at_infinity_what_grows_without_end_is_lost_without_end(fit):
    ranking = rank(fit, np.inf, By.LOSS)
    assert ranking.excess.lost[NAMES.index("main/log")] == np.inf
    assert ranking.excess.lost[NAMES.index("main")] == 0


def test_at_infinity_nothing_grows_where_all_is_constant():
    ranking = rank(fitted({"main": [4] * 5, "main/f": [1] * 5}), np.inf)
    assert ranking.total[0] == pytest.approx(5)
    assert ranking.share == pytest.approx([0.8, 0.2])
    assert ranking.excess.exclusive == pytest.approx([0, 0])


def test_inclusive_values_rank_subtrees_and_the_total_is_the_root():
    ranking = rank(fitted(VALUES), 64, inclusive=True)
    assert order(ranking)[0] == "main"
    assert ranking.total[0] == pytest.approx(ranking.value[0])
    assert ranking.total == pytest.approx(rank(fitted(VALUES), 64).total)
    assert ranking.share[0] == pytest.approx(1)
    assert ranking.total_at_largest == pytest.approx(sum(c[-1] for c in VALUES.values()))


def test_no_caller_is_predicted_below_its_callees():
    ranking = rank(fitted(VALUES), 1000, inclusive=True)
    parent = ranking.fitted.experiment.tree.parent
    called = (parent >= 0) & (ranking.leader >= 0)
    assert (ranking.value[parent[called]] >= ranking.value[called]).all()
    assert (ranking.low <= ranking.value)[ranking.order].all()
    assert (ranking.value <= ranking.high)[ranking.order].all()


def test_the_leader_of_a_subtree_grows_fastest_and_costs_most_of_those_that_do():
    values = {
        "main": [1] * 5,
        "main/f": list(0.5 * P),
        "main/f/g": list(2 * P),
        "main/f/h": list(0.25 * P),
        "main/k": list(P**0.5),
    }
    fit = fitted(values)
    ranking = rank(fit, np.inf, inclusive=True)
    names = list(values)
    assert [names[i] for i in ranking.leader] == [
        "main/f/g", "main/f/g", "main/f/g", "main/f/h", "main/k"
    ]  # fmt: skip
    assert ranking.share[:4] == pytest.approx([1, 1, 2 / 2.75, 0.25 / 2.75])


def test_inclusive_values_are_ranked_at_infinity():
    ranking = rank(fitted(VALUES), np.inf, inclusive=True)
    leader = int(ranking.leader[ranking.order[0]])
    assert ranking.fitted.models.growth(leader).text("p") == "O(p^3)"


def test_the_formula_of_a_subtree_is_the_sum_of_its_models():
    fit = fitted({"main": [1] * 5, "main/f": list(2 * P), "main/g": list(3 * P + 4)})
    assert fit.models.sum_formula(range(3)) == "5 + 5 * p"
    value, low, high = predict_sum(fit, np.flatnonzero(fit.modelled), np.array([100.0]))
    assert value == pytest.approx([505])
    assert low <= value <= high


def test_equal_call_paths_keep_their_order():
    ranking = rank(fitted({"main": [1] * 5, "main/b": [1] * 5, "main/a": [1] * 5}), 64)
    assert order(ranking) == ["main", "main/b", "main/a"]


def test_a_metric_that_does_not_add_up_has_no_total_no_share_and_no_excess():
    fit = fitted(
        {"main": list(P), "main/f": [1] * 5}, metric=Metric("min_time", "s", additive=False)
    )
    for target in (64, np.inf):
        ranking = rank(fit, target)
        assert order(ranking) == ["main", "main/f"]
        assert np.isnan(ranking.total).all()
        assert np.isnan(ranking.total_at_largest)
        assert np.isnan(ranking.share).all()
        assert np.isnan(ranking.excess.inclusive).all()
    for by in (By.LOSS, By.SHARE):
        with pytest.raises(UsageError, match="does not add up"):
            rank(fit, 64, by)


def test_a_metric_that_is_zero_everywhere_is_ranked_without_shares():
    ranking = rank(fitted({"main": [0] * 5, "main/f": [0] * 5}), 64)
    assert len(ranking.order) == 2
    assert ranking.total == (0, 0, 0)
    assert np.isnan(ranking.share).all()
    assert not ranking.excess.exclusive.any()


def test_trust_says_how_far_the_band_reaches():
    value = np.array([10, 10, 10, 10, 10, 0, NAN, 10.0])
    low = np.array([9.5, 8.5, 6, 3, 1, 0, NAN, 0])
    high = np.array([10.5, 12, 19, 40, 12, 0, NAN, 11])
    assert marks_of_trust(value, low, high).tolist() == [MARKS, 3, 2, 1, 0, MARKS, -1, 0]


def test_at_infinity_trust_is_how_probable_the_growth_is(fit):
    ranking = rank(fit, np.inf)
    weight = fit.models.weight[ranking.leader]
    # Of single runs there are three marks at most.
    assert np.isnan(fit.models.noise).all()
    assert ((ranking.trust == MARKS - 1) == (weight >= 0.8))[ranking.leader >= 0].all()
    assert np.isnan(ranking.first).all()


def test_chances_to_be_among_the_first_sum_to_their_number():
    random = np.random.default_rng(1)
    value = random.lognormal(0, 2, 300)
    chance = among_the_first(value, value / 3, value * 4, FIRST, 0.95)
    assert chance.sum() == pytest.approx(FIRST)
    assert (np.diff(chance[np.argsort(value)]) >= -1e-12).all()
    sure = among_the_first(value, value, value, FIRST, 0.95)
    assert np.sort(sure)[-FIRST:] == pytest.approx(1, abs=0.5)
    assert np.sort(sure)[:-FIRST].max() < 0.5


def test_chances_to_be_among_the_first_agree_with_drawing_lots():
    random = np.random.default_rng(2)
    value = random.lognormal(0, 1, 60)
    below, above = random.uniform(0.1, 1, 60), random.uniform(0.1, 1, 60)
    band = value * np.exp(-1.959964 * below), value * np.exp(1.959964 * above)
    chance = among_the_first(value, *band, 10, 0.95)
    lots = random.normal(size=(4000, 60))
    drawn = np.log(value) + np.where(lots < 0, lots * below, lots * above)
    first = np.argsort(-drawn, axis=1)[:, :10]
    seen = np.bincount(first.ravel(), minlength=60) / len(lots)
    assert np.abs(chance - seen).max() < 0.06


def test_of_few_call_paths_all_are_among_the_first(fit):
    first = rank(fit, 64).first
    assert (first[rank(fit, 64).order] == 1).all()


def test_the_parameter_of_the_ranking_need_not_be_p():
    ranking = rank(fitted(VALUES, parameter="n"), 64)
    assert ranking.fitted.parameter == "n"
    assert "at n = 64" in repr(ranking)


def test_a_call_path_that_is_gone_at_the_largest_scale_is_not_predicted():
    values = {"main": [1] * 5, "main/old": [10, 20, 40, 80, NAN], "main/new": [2] * 5}
    fit = fitted(values)
    ranking = rank(fit, 64)
    assert fit.status(1) == "gone"
    assert ranking.unmodelled.tolist() == [1]
    assert ranking.total[0] == pytest.approx(3)


def test_points_at_which_a_metric_was_not_measured_are_no_points():
    ranking = rank(fitted({"main": [NAN, 1, 1, 1, 1], "main/k": [NAN, 9, 9, 9, 9]}), 128)
    assert ranking.base == P[1]
    assert ranking.excess.exclusive == pytest.approx([0, 0])


def test_below_the_smallest_run_there_is_no_excess():
    ranking = rank(fitted({"main": [4] * 5}), 1)
    assert np.isnan(ranking.excess.exclusive).all()


def test_sums_over_ever_more_processes_have_no_excess_at_infinity():
    fit = fitted({"main": list(P)}, reduction=Reduction.SUM)
    assert np.isnan(rank(fit, np.inf).excess.exclusive).all()
    assert rank(fit, 1024).excess.exclusive == pytest.approx([0], abs=1e-9)


def test_what_falls_slowest_has_the_shares_where_everything_falls():
    fit = fitted({"main": list(1 / P), "main/k": list(10 * P**-0.5)}, scaling=Scaling.STRONG)
    ranking = rank(fit, np.inf, By.SHARE)
    assert ranking.share == pytest.approx([0, 1])
    assert len(ranking.order) == 2


def test_shares_of_what_is_predicted_are_held_against_the_same_call_paths():
    values = {"main": [1] * 5, "main/mid": [3] * 5, "main/new": [NAN, NAN, NAN, 50, 50]}
    ranking = rank(fitted(values), 256, By.SHARE)
    assert ranking.unmodelled_share == pytest.approx(50 / 54)
    gain = ranking.share - ranking.share_at_largest / (1 - ranking.unmodelled_share)
    assert gain[:2] == pytest.approx([0, 0])


def test_shares_of_a_total_of_zero_are_none_and_what_has_no_model_has_no_share_of_it():
    late = [NAN, NAN, NAN, 0.0, 0.0]
    ranking = rank(fitted({"main": [0.0] * 5, "main/f": [0.0] * 5, "main/late": late}), 64)
    assert ranking.unmodelled.tolist() == [2]
    assert ranking.unmodelled_share == 0.0
    assert np.isnan(ranking.share).all()
    assert tuple(ranking.total) == (0.0, 0.0, 0.0)


def noisy(more=(), **of_experiment):
    """Return models of three repetitions, whose predictions have bands."""
    random = np.random.default_rng(3)
    laws = {"main": 10 + 0 * P, "main/f": 1.0 * P, "main/f/g": 0.5 * P, "main/h": 3 + 0 * P}
    laws |= {path: np.array(law) for path, law in dict(more).items()}
    values = {
        path: law[:, None] * (1 + 0.02 * random.standard_normal((len(P), 3)))
        for path, law in laws.items()
    }
    return fitted(values, **of_experiment)


GONE = {"main/old": [7.0, 7.0, 7.0, 7.0, NAN]}


@pytest.mark.parametrize("more", [{}, GONE])
@pytest.mark.parametrize("inclusive", [False, True])
def test_the_band_of_excess_work_is_that_of_the_views(inclusive, more):
    """A call path that is gone counts neither at the base nor at the target."""
    made = noisy(more)
    nodes = np.arange(len(made.experiment.tree))
    own, whole = answer_at(made, 128.0).of_nodes(TopDown(made.experiment.tree), nodes)
    expected = whole if inclusive else own
    band = rank(made, 128.0, inclusive=inclusive).excess_band
    assert (expected.excess_low < expected.excess)[:4].all()
    assert band.value[:4] == pytest.approx(expected.excess[:4])
    assert band.low[:4] == pytest.approx(expected.excess_low[:4])
    assert band.high[:4] == pytest.approx(expected.excess_high[:4])
    assert np.isnan(band.low[4:]).all()


def test_excess_work_has_no_band_at_infinity_where_it_was_measured_and_beside_a_correction():
    made = noisy()
    corrected = dataclasses.replace(made, band_factor=2.0)
    for ranking in (rank(made, np.inf), rank(made, 32.0), rank(corrected, 128.0)):
        band = ranking.excess_band
        assert band.value.tolist() == ranking.excess.exclusive.tolist()
        assert np.isnan([*band.low, *band.high]).all()
    assert rank(made, 32.0).repetitions == 3


def test_the_probability_to_be_among_the_first_is_about_ten_call_paths():
    values = {"main": [100.0] * 5} | {f"main/f{k}": [50.0 - k] * 5 for k in range(12)}
    first = rank(fitted(values), 64).first
    assert first[:9].min() > 0.9
    assert first[11:].max() < 0.1
    assert FIRST == 10
    assert np.isnan(rank(fitted(values), np.inf).first).all()


def test_the_excess_work_of_the_program_is_the_sum_over_its_call_paths(fit):
    ranking = rank(fit, 64)
    assert ranking.total_excess == pytest.approx(np.nansum(ranking.excess.exclusive))
    assert 0.3 < ranking.total_excess < 0.5
    alone = fitted({"main": list(P)}, metric=Metric("min_time", "s", additive=False))
    assert np.isnan(rank(alone, 64).total_excess)


def test_a_ranking_is_predicted_unless_its_target_was_run():
    made = noisy()
    assert [rank(made, at).basis for at in (32.0, 64.0)] == ["measured", "predicted"]
    assert rank(made, 32.0, predicted=True).basis == "predicted"
    once = fitted(VALUES)
    assert rank(once, 32.0).basis == "measured"
    assert rank(once, 32.0).repetitions == 1


def test_shares_at_a_measured_target_are_compared_as_they_are():
    """All call paths were measured there, so none is excluded from the shares."""
    made = noisy()
    ranking = rank(made, 32.0, By.SHARE)
    gain = ranking.share - ranking.share_at_largest
    assert gain == pytest.approx(np.zeros(4), abs=1e-12)
    before = rank(made, 8.0, By.SHARE)
    gains = (before.share - before.share_at_largest)[before.order]
    assert gains.tolist() == sorted(gains, reverse=True)


def test_the_predicted_total_is_that_of_the_models():
    made = noisy()
    measured = rank(made, 32.0)
    assert measured.predicted_total == pytest.approx(rank(made, 32.0, predicted=True).total[0])
    assert measured.predicted_total != measured.total[0]


def test_costs_below_a_second_have_shares_and_excess_work():
    values = {path: [1e-6 * each for each in column] for path, column in VALUES.items()}
    small, large = rank(fitted(values), 64), rank(fitted(VALUES), 64)
    assert small.share_at_largest == pytest.approx(large.share_at_largest, nan_ok=True)
    assert small.excess.exclusive == pytest.approx(large.excess.exclusive, rel=1e-3)
    assert small.excess.efficiency == pytest.approx(large.excess.efficiency, nan_ok=True, rel=1e-3)


def test_no_call_path_without_cost_at_the_largest_scale_has_a_share_before():
    ranking = rank(fitted({"main": [0.0] * 5, "main/f": [0.0] * 5}), 64)
    assert np.isnan(ranking.share_at_largest).all()


@pytest.mark.parametrize(
    ("inclusive", "by", "words"),
    [(True, By.VALUE, "no inclusive ranking: min_time"), (False, By.LOSS, "no ranking by loss")],
)
def test_what_does_not_add_up_is_refused_by_its_name(inclusive, by, words):
    made = fitted({"main": list(P)}, metric=Metric("min_time", "s", additive=False))
    with pytest.raises(UsageError, match=words):
        rank(made, 64, by, inclusive=inclusive)


def test_a_subtree_of_measured_call_paths_has_the_marks_of_its_own_interval():
    made = noisy()
    own, whole = (rank(made, 64, inclusive=inclusive).trust for inclusive in (False, True))
    assert own[2] == whole[2]
    assert whole.min() >= 0


def test_ranked_call_paths_are_marked_as_ranked(fit):
    ranking = rank(fit, 64)
    assert np.flatnonzero(ranking.is_ranked).tolist() == sorted(ranking.order.tolist())


def repeated(laws, noise=0.002):
    """Return models of four repetitions of laws [K] by call path."""
    random = np.random.default_rng(3)
    return fitted(
        {
            path: np.asarray(law)[:, None] * (1 + noise * random.standard_normal((len(P), 4)))
            for path, law in laws.items()
        }
    )


def test_marks_of_a_subtree_are_limited_by_its_call_paths_and_those_of_a_call_path_by_none():
    """At 16 times the largest scale, no prediction has more than two marks."""
    made = repeated({"main": 2.0 + 0 * P, "main/f": 1.0 * P, "main/g": 0.5 * P})
    assert rank(made, 500, inclusive=True).trust.tolist() == [MARKS] * 3
    assert rank(made, 512, inclusive=True).trust.tolist() == [MOST_IN_DOUBT] * 3
    odd = repeated({"main": 5.0 + 0 * P, "main/odd": 100 * np.array([1, 1.6, 0.8, 1.7, 0.9])})
    assert odd.status(1) == "outside"
    assert rank(odd, 64).trust[0] == MARKS
    assert rank(odd, 64, inclusive=True).trust[0] <= MOST_IN_DOUBT


def test_the_efficiency_is_the_expected_cost_over_the_cost_per_process():
    values = {"main": list(8 / P), "main/f": list(0.5 * P)}
    own = rank(fitted(values), 64).excess
    assert own.cost == pytest.approx([8 / 64, 32])
    assert own.efficiency == pytest.approx([(4 + 1) / (8 / 64 + 32), 1 / 32])
    # The same costs as sums over processes.
    sums = {path: list(np.array(column) * P) for path, column in values.items()}
    summed = rank(fitted(sums, reduction=Reduction.SUM), 64).excess
    assert summed.cost == pytest.approx(own.cost)
    assert summed.efficiency == pytest.approx(own.efficiency)
    assert np.isnan(rank(fitted(values), np.inf).excess.efficiency).all()


def compared():
    """Return the values of two scales: one call path is slower, others scatter."""
    two = {
        "main": [[5.0, 5.1, 5.2], [5.1, 5.2, 5.4]],
        "main/f": [[1.0, 1.1, 1.2], [2.0, 2.1, 2.2]],
        "main/g": [[1.0, 1.3, 1.2], [1.3, 1.25, 1.9]],
        "main/g/h": [[1.0, 1.0, 1.0], [3.0, 3.0, 3.0]],
    }
    return measured_values(experiment(two, POINTS[:2]), settings={}, pairs=[(2.0, 4.0)])


def test_excess_work_is_doubted_where_the_repetitions_of_both_scales_overlap():
    ranking = rank(compared(), 4.0)
    assert ranking.is_comparison
    assert (np.abs(ranking.excess.exclusive) > NOTICEABLE).any()
    own, whole = ranking.doubted
    assert own.tolist() == [True, False, True, False]
    assert whole.tolist() == [False, False, False, False]


@pytest.mark.parametrize("target", [6.0, 64.0, np.inf])
def test_excess_work_at_a_target_without_runs_is_not_doubted(target):
    assert not np.any(rank(noisy(), target).doubted)


def test_the_fastest_scale_is_that_of_the_run_time_where_it_is_known():
    """The call paths are at their mean over processes, and the slowest process takes longer."""
    made = experiment({"main": list(1000 / P), "main/f": list(0.01 * P)}, scaling=Scaling.STRONG)
    longer = np.array(2000 / P + 0.5 * P)
    column = dataclasses.replace(made.columns["time"], run_time=longer)
    found = rank(pipeline.fit(dataclasses.replace(made, columns={"time": column})), 1024)
    assert found.turning.at == pytest.approx(np.sqrt(2000 / 0.5), rel=0.02)
    assert found.turning.total[0] == pytest.approx(2 * np.sqrt(2000 * 0.5), rel=0.01)


def test_a_ranking_says_what_it_ranks(fit):
    assert repr(rank(fit, 64)) == "<Ranking app at p = 64: 4 call paths by value>"


def test_of_equal_growth_the_costlier_call_path_comes_first():
    values = {"main": [1.0] * 5, "main/f": list(1.0 * P), "main/g": list(3.0 * P)}
    assert order(rank(fitted(values), 64, By.GROWTH)) == ["main/g", "main/f", "main"]


def test_at_infinity_the_fastest_growth_gains_and_the_others_lose_the_shares_they_had(fit):
    shares = rank(fit, np.inf, By.SHARE)
    assert order(shares) == ["main/cubic", "main/log", "main/linear", "main"]
    before = shares.share_at_largest[shares.order[1:]]
    assert before.tolist() == sorted(before)


def test_costs_at_the_base_and_own_shares_follow_the_view(fit):
    own, subtrees = rank(fit, 64.0), rank(fit, 64.0, inclusive=True)
    assert own.at_base[:4] == pytest.approx([100, 1, 1e-4 * 8, 3])
    assert subtrees.at_base[0] == pytest.approx(104 + 1e-4 * 8)
    assert np.nansum(subtrees.own_share) == pytest.approx(1)
    np.testing.assert_array_equal(subtrees.own_share, own.share)


def test_a_refused_ranking_of_inclusive_ratios_names_views_for_formulas_alone():
    ratios = fitted(VALUES, metric=Metric("ratio", "1", additive=False))
    with pytest.raises(UsageError) as told:
        rank(ratios, 64.0, inclusive=True)
    assert told.value.hint == "--exclusive, and --by value or --by growth"
