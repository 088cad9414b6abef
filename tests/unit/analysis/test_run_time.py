"""Agreement of the predicted run time and the sum of the call paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callpath_modeler import pipeline
from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.analysis.rank import rank
from callpath_modeler.analysis.run_time import larger, predicted_run_time, run_times, sum_is_a_bound
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.report.headline import cost_text, sum_notes
from callpath_modeler.report.text_style import DEFAULT_STYLE
from synthetic import experiment

POINTS = (2.0, 4.0, 8.0, 16.0, 32.0)
P = np.array(POINTS)
COMPUTES, WAITS = [20.0] * 5, list(0.1 * P)


def modelled(values, run_time, *, reduction=Reduction.MEAN, scaling=Scaling.WEAK):
    """Return models of call paths and of run times [runs]."""
    made = experiment(values, POINTS, reduction=reduction, scaling=scaling)
    column = replace(made.columns["time"], run_time=np.asarray(run_time, float))
    return pipeline.fit(replace(made, columns={"time": column}))


@pytest.fixture(scope="module")
def at_odds():
    """Return models of growing call paths, and of a disturbed run time that does not grow."""
    sums = np.add(COMPUTES, WAITS)
    return modelled({"main": COMPUTES, "main/wait": WAITS}, np.maximum(sums, 23.5))


@pytest.mark.parametrize("target", [48.0, 512.0, 1e6])
def test_the_predicted_run_time_is_at_least_the_sum_of_the_means(at_odds, target):
    ranking = rank(at_odds, target)
    assert ranking.run_time.by_model < ranking.total[0]
    assert ranking.run_time.total == pytest.approx(ranking.total)
    assert ranking.run_time.is_sum


def test_the_answer_names_both_predictions(at_odds):
    ranking = rank(at_odds, 512.0)
    assert " will run 71.2 s at " in cost_text(ranking, style=DEFAULT_STYLE)
    (note,) = sum_notes(ranking, style=DEFAULT_STYLE)
    assert "The model of the run time predicts 2" in note
    assert note.endswith("so the sum is shown.")


def test_a_measured_run_time_is_stated_as_it_was_measured(at_odds):
    ranking = rank(at_odds, 2.0)
    assert ranking.run_time.repetitions == 1
    assert ranking.run_time.total[0] == 23.5


def test_views_state_the_run_time_of_the_ranking(at_odds):
    ranked, viewed = rank(at_odds, 512.0), answer_at(at_odds, 512.0)
    assert viewed.run_time.total == pytest.approx(ranked.run_time.total)


def test_a_run_time_above_the_sum_has_its_own_model():
    fitted = modelled({"main": COMPUTES, "main/wait": WAITS}, np.add(COMPUTES, WAITS) * 1.2)
    run_time = rank(fitted, 512.0).run_time
    assert run_time.predicted == run_time.by_model == pytest.approx(71.2 * 1.2, rel=0.01)
    assert not run_time.is_sum


@pytest.mark.parametrize("reduction", [Reduction.MAX, Reduction.SUM, Reduction.GIVEN])
def test_sums_of_what_is_no_mean_do_not_bound_the_run_time(reduction):
    fitted = modelled({"main": COMPUTES, "main/wait": WAITS}, [23.5] * 5, reduction=reduction)
    assert not sum_is_a_bound(fitted)
    assert rank(fitted, 512.0).run_time.predicted == pytest.approx(23.5)


def test_sums_that_exceed_the_run_times_of_measured_runs_do_not_bound_it():
    fitted = modelled({"main": COMPUTES, "main/wait": WAITS}, [15.0] * 5)
    assert not sum_is_a_bound(fitted)
    assert rank(fitted, 512.0).run_time.predicted == pytest.approx(15.0)


def test_the_fastest_scale_is_sought_in_the_stated_run_time():
    # The model of the run time is 1105 / p; the sum of the call paths is least at p = 100.
    values = {"main": list(1000 / P), "main/wait": list(0.1 * P)}
    fitted = modelled(values, 1105 / P, scaling=Scaling.STRONG)
    points = np.geomspace(2.0, 4096.0, 50)
    stated = run_times(fitted, points)
    assert (stated >= fitted.models.sum_values(np.arange(2), points) * (1 - 1e-12)).all()
    found = rank(fitted, 4096.0).turning
    assert found.at == pytest.approx(100.0, rel=0.05)
    assert found.total == pytest.approx(predicted_run_time(fitted, found.at))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(0.1, 10.0), min_size=5, max_size=5),
    st.lists(st.floats(0.1, 10.0), min_size=5, max_size=5),
    st.lists(st.floats(1.0, 2.0), min_size=5, max_size=5),
    st.floats(33.0, 1e5),
)
def test_no_run_time_is_less_than_the_sum_whatever_was_measured(one, other, imbalance, target):
    fitted = modelled({"main": one, "main/f": other}, np.add(one, other) * imbalance)
    ranking = rank(fitted, target)
    slack = 1 - 1e-9
    for stated, summed in zip(ranking.run_time.total, ranking.total, strict=True):
        assert stated >= summed * slack
    value, low, high = ranking.run_time.total
    assert low <= value <= high


def test_the_larger_of_two_bands_keeps_the_end_that_is_known():
    nan = float("nan")
    assert larger((1.0, 0.5, 2.0), (3.0, nan, nan)) == (3.0, 0.5, 3.0)
    assert larger((nan, nan, nan), (3.0, 2.0, 4.0)) == (3.0, 2.0, 4.0)
