from __future__ import annotations

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.answer import rank
from callpath_modeler.analysis.predict import predict_sum
from callpath_modeler.analysis.scales import plateau
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.schema import Metric, Reduction
from callpath_modeler.studies import pipeline
from cells import cells
from several_laws import write_runs
from synthetic import experiment, fitted

POINTS = (8.0, 16.0, 32.0, 64.0, 128.0)
P = np.array(POINTS)
LEAST = np.sqrt(1000 / 0.01)
"""Minimum of 1000 / p + 0.01 p: p = 316."""
SHARED, ALONE = list(1000 / P), list(0.01 * P)


def strong(values, **told):
    return fitted(values, POINTS, **{"scaling": Scaling.STRONG, **told})


def noisy(values, seed=1, noise=0.05):
    """Return models of three repetitions of each value."""
    random = np.random.default_rng(seed)
    repeated = {
        name: [[v * random.lognormal(0, noise) for _ in range(3)] for v in column]
        for name, column in values.items()
    }
    return pipeline.fit(experiment(repeated, POINTS, scaling=Scaling.STRONG))


@pytest.fixture(scope="module")
def fit():
    return strong({"main": SHARED, "main/f": ALONE})


@pytest.mark.parametrize("target", [1024.0, 1e6, 1e30, np.inf])
def test_the_least_of_a_known_law_is_found_whatever_the_target(fit, target):
    found = rank(fit, target).turning
    assert found.at == pytest.approx(LEAST, rel=0.005)
    assert found.total[0] == pytest.approx(2 * np.sqrt(1000 * 0.01), rel=1e-3)
    assert found.first <= found.at <= found.last


def test_the_least_of_one_call_path_is_found_as_that_of_a_sum():
    found = rank(strong({"main": list(1000 / P + 0.01 * P)}), 4096).turning
    assert found.at == pytest.approx(LEAST, rel=0.01)


def test_at_infinity_the_least_is_looked_for_up_to_1024_times_the_largest_scale(fit):
    assert rank(fit, np.inf).turning.until == 1024 * 128
    assert rank(fit, 2048).turning.until == 2048
    late = strong({"main": list(1e12 / P), "main/f": ALONE})  # least at p = 10^7
    assert rank(late, np.inf).turning is None
    assert rank(late, 1e9).turning.at == pytest.approx(1e7, rel=0.01)


def test_the_band_of_the_least_is_that_of_any_other_total():
    fit = noisy({"main": SHARED, "main/f": ALONE})
    found = rank(fit, 4096).turning
    total = [part[0] for part in predict_sum(fit, np.arange(2), np.array([found.at]))]
    assert found.total == pytest.approx(total)
    assert found.total[1] < found.total[0] < found.total[2]


def test_the_range_is_of_the_scales_whose_totals_are_within_the_band_of_the_least():
    fit = noisy({"main": SHARED, "main/f": ALONE})
    found = rank(fit, 4096).turning
    assert POINTS[0] < found.first < found.at < found.last < found.until
    ends = np.array([found.first, found.last])
    limit = found.total[2]
    within, beyond = (
        predict_sum(fit, np.arange(2), ends * factor)[0]
        for factor in (np.ones(2), np.array([0.99, 1.01]))
    )
    assert (within <= limit).all()
    assert (beyond > limit).all()


def test_a_target_is_slower_only_where_its_whole_band_is_above_that_of_the_optimum():
    fit = noisy({"main": SHARED, "main/f": ALONE})
    for target in (400, 600, 1000, 4096):
        ranking = rank(fit, target)
        expected = ranking.total[1] > ranking.turning.total[2]
        assert ranking.turning.is_slower is expected
    assert not rank(fit, 400).turning.is_slower
    assert rank(fit, 4096).turning.is_slower
    assert rank(fit, np.inf).turning.is_slower


def test_a_range_that_reaches_the_target_ends_there():
    found = rank(noisy({"main": SHARED, "main/f": ALONE}), 400).turning
    assert found.last == 400 == found.until


def test_a_total_that_rises_from_the_beginning_is_least_at_the_smallest_scale():
    found = rank(strong({"main": list(10 / P), "main/f": list(0.5 * P)}), 1024).turning
    assert found.at == 8 == found.first


def test_nothing_is_said_where_the_least_is_at_the_target(fit):
    assert rank(fit, 256).turning is None
    assert rank(fit, 316).turning is None


def test_nothing_is_said_of_a_total_that_rises_by_less_than_three_digits_show(fit):
    assert rank(fit, 320).turning is None


@pytest.mark.parametrize("target", [1024.0, np.inf])
def test_nothing_is_said_where_the_total_only_falls(target):
    assert rank(strong({"main": SHARED, "main/f": [2.0] * 5}), target).turning is None


def test_nothing_is_said_of_what_does_not_change():
    assert rank(strong({"main": [3.0] * 5}), 1024).turning is None


def test_nothing_is_said_where_nothing_has_a_model():
    assert rank(strong({"main": [-1.0] * 5}), 1024).turning is None


@cells("target", [4.0, 64.0, 100.0, 128.0])
@cells("predicted", [True, False])
def test_nothing_is_said_inside_the_data(target, predicted):
    fit = strong({"main": list(10 / P), "main/f": list(0.5 * P)})
    assert rank(fit, target, predicted=predicted).turning is None


def test_asking_the_models_changes_nothing_beyond_the_data(fit):
    assert rank(fit, 2048, predicted=True).turning == rank(fit, 2048).turning


@cells(
    "told",
    [
        {"scaling": Scaling.WEAK},
        {"reduction": Reduction.SUM},
        {"metric": Metric("visits", "1")},
        {"metric": Metric("bytes", "B")},
        {"metric": Metric("longest", "s", additive=False)},
    ],
)
def test_nothing_is_said_where_more_processes_are_not_to_make_a_run_shorter(told):
    fit = strong({"main": SHARED, "main/f": ALONE}, **told)
    assert rank(fit, 2048).turning is None


def test_the_optimal_scale_is_the_same_for_inclusive_values(fit):
    assert rank(fit, 2048, inclusive=True).turning == rank(fit, 2048).turning


def test_what_has_no_model_takes_no_part(fit):
    nan = float("nan")
    late = strong({"main": SHARED, "main/f": ALONE, "main/late": [nan, nan, nan, 4.0, 5.0]})
    assert rank(late, 2048).turning.total[0] == pytest.approx(rank(fit, 2048).turning.total[0])


def test_the_stretch_about_the_least_ends_where_totals_first_leave_it():
    points, totals = np.arange(1.0, 8.0), np.array([1.5, 4.0, 2.0, 1.0, 2.0, 4.0, 1.5])
    assert plateau(points, totals, 3, 2.0) == (3, 5)
    assert plateau(points, totals, 3, 9.0) == (1, 7)
    assert plateau(points, totals, 3, 0.9) == (4, 4)  # rounding


def test_with_several_parameters_it_is_along_p_with_the_others_held(tmp_path):
    laws = {"main/work": lambda p, n: n * n / p, "main/wait": lambda p, n: 0.04 * p}  # noqa: ARG005
    fit = cpm.fit(cpm.load(write_runs(tmp_path / "app.csv", laws, 1, noise=0.001)))
    for n in (20, 40):
        found = rank(fit.holding({"n": n}), 4096).turning
        assert found.at == pytest.approx(np.sqrt(n * n / 0.04), rel=0.02)
