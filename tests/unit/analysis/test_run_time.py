"""Agreement of the predicted run time and the sum of the call paths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callpath_modeler.analysis.answer import answer_at, rank
from callpath_modeler.analysis.predict import sum_is_a_bound
from callpath_modeler.analysis.run_time import predicted_run_time, run_time_bands, run_times
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.report.headline import cost_text, sum_notes
from callpath_modeler.report.layout import DEFAULT_STYLE
from synthetic import fitted

POINTS = (2.0, 4.0, 8.0, 16.0, 32.0)
P = np.array(POINTS)
COMPUTES, WAITS = [20.0] * 5, list(0.1 * P)


def modelled(values, run_time, *, reduction=Reduction.MEAN, scaling=Scaling.WEAK):
    """Return models of call paths and of run times [runs]."""
    return fitted(values, POINTS, run_time=run_time, reduction=reduction, scaling=scaling)


@pytest.fixture(scope="module", params=["exact", "noisy"])
def at_odds(request):
    """Return models of growing call paths, and of a disturbed run time that does not grow."""
    if request.param == "exact":
        sums = np.add(COMPUTES, WAITS)
        return modelled({"main": COMPUTES, "main/wait": WAITS}, np.maximum(sums, 23.5))
    computes, waits = [20.0, 20.3, 19.8, 20.1, 19.9], [0.04, 0.14, 0.11, 0.38, 0.7]
    return modelled({"main": computes, "main/wait": waits}, [23.5, 20.5, 20.9, 20.6, 20.8])


@pytest.mark.parametrize("target", [48.0, 512.0, 1e6])
def test_the_run_time_is_between_its_model_and_a_larger_sum(at_odds, target):
    ranking = rank(at_odds, target)
    value, low, high = ranking.run_time.total
    assert 20 < value <= ranking.total[0]
    assert low <= value <= high
    assert low >= min(ranking.total[1], value)


@pytest.mark.parametrize("target", [16.0, 48.0, 512.0])
def test_rows_others_and_imbalance_add_up_to_the_number_of_the_sentence(at_odds, target):
    ranking = rank(at_odds, target)
    value = ranking.program_total[0]
    assert value == ranking.run_time.total[0]
    assert np.nansum(ranking.value) + ranking.imbalance == pytest.approx(value)
    assert ranking.share.sum() + ranking.imbalance / value == pytest.approx(1)


def test_the_answer_names_one_prediction_and_the_imbalance(at_odds):
    ranking = rank(at_odds, 48.0)
    assert f" will run {ranking.run_time.total[0]:.1f} s at " in cost_text(
        ranking, style=DEFAULT_STYLE
    )
    (note,) = sum_notes(ranking)
    assert note.startswith("imbalance: the run time less the sum of all call paths. ")


def test_a_measured_run_time_is_stated_as_it_was_measured(at_odds):
    ranking = rank(at_odds, 2.0)
    assert ranking.run_time.repetitions == 1
    assert ranking.run_time.total[0] == 23.5


def test_views_state_the_run_time_of_the_ranking(at_odds):
    ranked, viewed = rank(at_odds, 512.0), answer_at(at_odds, 512.0)
    assert viewed.run_time.total == pytest.approx(ranked.run_time.total)


def test_a_run_time_above_the_sum_has_its_own_model():
    models = modelled({"main": COMPUTES, "main/wait": WAITS}, np.add(COMPUTES, WAITS) * 1.2)
    run_time = rank(models, 512.0).run_time
    assert run_time.total[0] == pytest.approx(71.2 * 1.2, rel=0.01)


@pytest.mark.parametrize("reduction", [Reduction.MAX, Reduction.GIVEN])
def test_sums_of_what_is_no_mean_do_not_bound_the_run_time(reduction):
    models = modelled({"main": COMPUTES, "main/wait": WAITS}, [23.5] * 5, reduction=reduction)
    assert not sum_is_a_bound(models)
    assert rank(models, 512.0).predicted_run_time == pytest.approx(23.5)


def test_sums_that_exceed_the_run_times_of_measured_runs_do_not_bound_it():
    models = modelled({"main": COMPUTES, "main/wait": WAITS}, [15.0] * 5)
    assert not sum_is_a_bound(models)
    assert rank(models, 512.0).predicted_run_time == pytest.approx(15.0)


def test_the_fastest_scale_is_sought_in_the_stated_run_time():
    # The model of the run time is 1105 / p. Its geometric mean with the sum is least at p = 126.
    values = {"main": list(1000 / P), "main/wait": list(0.001 * P**2)}
    models = modelled(values, 1105 / P, scaling=Scaling.STRONG)
    points = np.geomspace(2.0, 4096.0, 50)
    stated = run_times(models, points)
    sums = models.models.sum_values(np.arange(2), points)
    np.testing.assert_allclose(stated, np.maximum(1105 / points, np.sqrt(sums * 1105 / points)))
    found = rank(models, 4096.0).turning
    assert found.at == pytest.approx(126.0, rel=0.05)
    assert found.total == pytest.approx(predicted_run_time(models, found.at))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(0.1, 10.0), min_size=5, max_size=5),
    st.lists(st.floats(0.1, 10.0), min_size=5, max_size=5),
    st.lists(st.floats(1.0, 2.0), min_size=5, max_size=5),
    st.floats(33.0, 1e5),
)
def test_no_run_time_is_less_than_the_sum_is_at_least(one, other, imbalance, target):
    models = modelled({"main": one, "main/f": other}, np.add(one, other) * imbalance)
    ranking = rank(models, target)
    value, low, high = ranking.run_time.total
    slack = 1 - 1e-9
    assert value >= ranking.total[1] * slack
    assert high >= ranking.total[1] * slack
    assert low <= value <= high


@pytest.mark.parametrize("target", [48.0, 512.0, 1e6])
def test_no_call_path_takes_longer_than_the_program(at_odds, target):
    ranking = rank(at_odds, target)
    assert ranking.share.max() <= 1
    assert ranking.imbalance >= -1e-9 * ranking.program_total[0]
    assert ranking.high.max() <= ranking.program_total[2] * (1 + 1e-9)


@pytest.mark.parametrize("fast", [15.0, 19.6])
def test_call_paths_and_a_run_time_that_were_measured_once_belong_to_one_run(fast):
    values = {"main": [20.0, 20.1, fast, 20.1, 20.0], "main/wait": [0.2, 0.2, 0.1, 0.2, 0.2]}
    models = modelled(values, [20.5, 20.5, fast + 0.15, 20.5, 20.5])
    ranking, viewed = rank(models, 8.0), answer_at(models, 8.0)
    assert ranking.run_time.total[0] == fast + 0.15
    assert ranking.value.tolist() == [fast, 0.1]
    assert ranking.imbalance == pytest.approx(0.05)
    np.testing.assert_allclose(viewed.call_paths[0].value, ranking.value)
    said = rank(models, 8.0, predicted=True)
    assert said.run_time.repetitions == 0
    assert ranking.predicted_run_time == pytest.approx(said.run_time.total[0])


@pytest.mark.parametrize("target", [48.0, 512.0, 1e6])
def test_curves_and_rankings_predict_one_run_time(at_odds, target):
    (at_one,) = zip(*_columns(run_time_bands(at_odds, np.array([target]))), strict=True)
    assert at_one == pytest.approx(rank(at_odds, target).run_time.total)


def test_sums_over_processes_are_bounded_by_the_run_time_of_all_processes():
    times = {"main": P * COMPUTES, "main/wait": P * WAITS}
    models = modelled(times, np.maximum(np.add(COMPUTES, WAITS), 23.5), reduction=Reduction.SUM)
    ranking = rank(models, 512.0)
    assert np.nansum(ranking.value) == pytest.approx(512 * ranking.run_time.total[0])
    assert ranking.imbalance == pytest.approx(0, abs=1e-6)
    assert not sum_is_a_bound(modelled(times, [15.0] * 5, reduction=Reduction.SUM))


def _columns(band):
    return band.value.tolist(), band.low.tolist(), band.high.tolist()
