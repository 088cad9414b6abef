"""Predictions of call paths are reconciled with that of the run time."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callpath_modeler.analysis.answer import answer_at, rank
from callpath_modeler.analysis.predict import (
    larger,
    lowered,
    predict,
    predicted_values,
    reconciled_total,
    weight_of_sum,
)
from callpath_modeler.analysis.uncertain import Band
from callpath_modeler.profile.schema import Reduction
from synthetic import fitted


def band(*total):
    return Band(*(np.array([each]) for each in total))


def test_predictions_that_disagree_weigh_as_much_as_they_are_precise():
    def of(alone, sums):
        return float(reconciled_total(band(*alone), band(*sums))[0])

    nan = float("nan")
    assert of((1.0, 0.5, 2.0), (4.0, 2.0, 8.0)) == pytest.approx(2.0)
    assert of((1.0, 0.99, 1.1), (4.0, 2.5, 8.0)) == 2.5
    assert of((1.0, 0.1, 10.0), (4.0, 3.99, 4.01)) == pytest.approx(4.0, rel=0.001)
    assert of((1.0, 0.1, 1.01), (4.0, 0.4, 4.01)) == pytest.approx(1.0, rel=0.001)
    assert of((1.0, nan, nan), (4.0, nan, nan)) == pytest.approx(2.0)
    assert of((1.0, 0.0, np.inf), (4.0, 3.0, 5.0)) == 4.0


@pytest.mark.parametrize("alone", [(4.0, 3.0, 5.0), (0.0, 0.0, 0.0), (np.nan, np.nan, np.nan)])
def test_sums_that_obey_the_rule_are_not_changed(alone):
    assert reconciled_total(band(*alone), band(2.0, 1.0, 8.0))[0] == 2.0


def test_the_run_time_has_the_larger_value_and_lower_end_and_an_upper_end_between_both():
    def of(alone, sums, times=2.0):
        return larger(band(*alone), band(*sums), np.array([times])).at(0)

    for times, high in ((0.5, 5.0), (1.0, 5.0), (2.0, 10.0), (8.0, 5.0 * 4.0**0.75), (1e300, 20.0)):
        found = of((4.0, 3.0, 5.0), (2.0, 1.0, 20.0), times)
        assert found == (4.0, 3.0, pytest.approx(high, rel=0.002))
    assert of((4.0, 3.0, 5.0), (20.0, 18.0, 30.0)) == (20.0, 18.0, 20.0)
    assert of((4.0, 3.0, np.inf), (2.0, 1.0, 8.0)) == (4.0, 3.0, np.inf)
    assert of((4.0, 3.0, 5.0), (2.0, 1.0, np.inf)) == (4.0, 3.0, np.inf)
    assert of((0.0, 0.0, 0.0), (2.0, 1.0, 8.0)) == (2.0, 1.0, 8.0)
    assert of((4.0, 1.0, 5.0), (2.0, 2.0, 2.0)) == (4.0, 2.0, 5.0)
    unknown = (np.nan, np.nan, np.nan)
    assert of(unknown, (3.0, 2.0, 4.0)) == (3.0, 2.0, 4.0)
    assert of((3.0, 2.0, 4.0), unknown) == (3.0, 2.0, 4.0)


def test_an_infinitely_wide_band_has_no_weight():
    assert weight_of_sum(band(1.0, 0.0, np.inf), band(4.0, 3.0, 5.0))[0] == 1.0
    assert weight_of_sum(band(1.0, 0.5, 2.0), band(4.0, 0.0, 5.0))[0] == 0.0


def test_uncertain_predictions_take_most_of_the_adjustment():
    value, low = np.array([100.0, 10.0, 1000.0]), np.array([99.0, 0.0, 1.0])
    found = lowered(value, low, 200.0)
    assert found.sum() == pytest.approx(200.0)
    assert found[0] == pytest.approx(99.5, abs=0.5)
    np.testing.assert_allclose((value - found)[:2] / (value - low)[:2], [0.09, 0.5], atol=0.45)
    assert found[2] < 100


def test_small_adjustments_go_with_the_square_of_the_uncertainty():
    value, low = np.array([10.0, 20.0, 30.0]), np.array([9.0, 18.0, 30.0])
    np.testing.assert_allclose(value - lowered(value, low, 59.999), [0.0002, 0.0008, 0], rtol=0.01)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1e-6, 1e6), st.floats(0, 1)), min_size=1, max_size=20),
    st.floats(1e-3, 0.999),
)
def test_lowered_predictions_add_up_and_stay_above_their_lower_ends(rows, part):
    value = np.array([value for value, _ in rows])
    low = value * [share for _, share in rows]
    total = value.sum() * part
    found = lowered(value, low, total)
    assert found.sum() == pytest.approx(total, rel=1e-9)
    assert (found <= value * (1 + 1e-9)).all()
    if total > low.sum():
        assert (found >= low * (1 - 1e-9)).all()


def test_values_of_any_size_are_lowered():
    value, low = np.array([3.0, 2.0, 1e-300]), np.array([1.0, 1.9, 0.0])
    found = lowered(value, low, 4.0)
    np.testing.assert_allclose(lowered(value * 1e300, low * 1e300, 4e300), found * 1e300)
    np.testing.assert_allclose(lowered(value * 1e-300, low * 1e-300, 4e-300), found * 1e-300)


def test_call_paths_without_a_model_stay_without_a_prediction():
    found = lowered(np.array([4.0, np.nan, 6.0]), np.array([2.0, np.nan, 3.0]), 7.0)
    assert np.isnan(found).tolist() == [False, True, False]
    assert np.nansum(found) == pytest.approx(7.0)


def test_values_without_bands_are_those_with_bands():
    models = fitted(
        {"main": [20.0, 20.3, 19.8, 20.1, 19.9], "main/wait": [0.04, 0.14, 0.11, 0.38, 0.7]},
        (2.0, 4.0, 8.0, 16.0, 32.0),
        run_time=[20.6, 20.5, 20.9, 20.6, 20.8],
        reduction=Reduction.MEAN,
    )
    found = predicted_values(models, 512.0)
    np.testing.assert_array_equal(found, predict(models, 512.0).value)
    assert found.sum() < models.models.values(np.array([512.0])).sum() * 0.99


def test_a_sample_of_many_call_paths_stands_for_all(monkeypatch):
    rng = np.random.default_rng(5)
    scales = np.array([2.0, 4.0, 8.0, 16.0, 32.0])
    size, power = rng.pareto(1.0, 3000), rng.choice([0.0, 0.0, 0.5, 1.0], 3000)
    noise = np.exp(0.1 * rng.standard_normal((3000, 5)))
    times = size[:, None] * scales ** power[:, None] * noise
    values = {"main": [0.0] * 5} | {f"main/f{k}": list(row) for k, row in enumerate(times)}
    sums = times.sum(axis=0)
    made = partial(fitted, values, tuple(scales), run_time=sums * [2.0, 1.6, 1.3, 1.1, 1.0])
    models = made(reduction=Reduction.MEAN)
    every = predict(models, 512.0)
    monkeypatch.setattr("callpath_modeler.analysis.predict._MANY", 600)
    again = made(reduction=Reduction.MEAN)
    sampled = predict(again, 512.0)
    raw = np.nansum(models.models.values(np.array([512.0])))
    assert np.nansum(every.value) < 0.99 * raw
    np.testing.assert_allclose(sampled.total(), every.total(), rtol=0.02)
    costly = every.value > 1e-3 * np.nansum(every.value)
    np.testing.assert_allclose(sampled.value[costly], every.value[costly], rtol=0.03)
    np.testing.assert_array_equal(predicted_values(again, 512.0), sampled.value)


@pytest.mark.parametrize("target", [48.0, 512.0])
def test_no_band_of_a_call_path_ends_above_that_of_the_run_time(target):
    rng = np.random.default_rng(2)
    scales, values = (2.0, 4.0, 8.0, 16.0, 32.0), {"main": [20.0] * 5}
    for k in range(6):
        values[f"main/f{k}"] = list(np.exp(rng.standard_normal(5)))
    run_time = np.sum(list(values.values()), axis=0) * 1.01
    models = fitted(values, scales, run_time=run_time, reduction=Reduction.MEAN)
    for ranking in (rank(models, target), rank(models, target, inclusive=True)):
        assert np.nanmax(ranking.high) <= ranking.run_time.total[2] * (1 + 1e-12)
    answer = answer_at(models, target)
    assert answer.run_time.total == pytest.approx(ranking.run_time.total)
