from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import centre
from callpath_modeler.modeling.noise import looks_exact, summarise

NAN = np.nan


def test_the_median_ignores_missing_repetitions_and_a_spike() -> None:
    y = np.array([[[3.0, NAN, 1.0, 2.0], [5.0, 5.0, 5.0, 500.0], [NAN, NAN, NAN, NAN]]])
    assert centre(y).tolist()[0][:2] == [2.0, 5.0]
    assert np.isnan(centre(y)[0, 2])
    assert centre(y, "mean")[0, 0] == 2.0
    assert centre(y, "min")[0].tolist()[:2] == [1.0, 5.0]


def test_the_median_agrees_with_numpy() -> None:
    y = np.random.default_rng(1).normal(10, 1, (50, 4, 6))
    y[::3, :, 4:] = NAN
    y[::5, :, 2] = NAN
    assert centre(y) == pytest.approx(np.nanmedian(y, axis=2))


def test_the_spread_is_relative_and_pooled_over_the_points() -> None:
    random = np.random.default_rng(2)
    y = np.array([1.0, 10.0, 1000.0])[:, None] * (1 + random.normal(0, 0.05, (400, 3, 5)))
    reps = summarise(y, "median", 0.95)
    assert np.mean(reps.spread) == pytest.approx(0.05, rel=0.05)
    assert (reps.dof == 12).all()


@pytest.mark.parametrize("aggregate", ["median", "mean"])
def test_the_variance_of_a_centre_is_that_of_repeated_experiments(aggregate: str) -> None:
    random = np.random.default_rng(3)
    reps = summarise(1 + random.normal(0, 0.05, (4000, 1, 9)), aggregate, 0.95)
    assert np.mean(reps.centre_variance) == pytest.approx(np.var(reps.centre), rel=0.12)


def test_nothing_is_known_of_noise_from_one_repetition() -> None:
    reps = summarise(np.ones((2, 3, 1)), "median", 0.95)
    assert np.isnan(reps.spread).all()
    assert (reps.dof == 0).all()
    assert not reps.indistinct.any()


def test_configurations_are_indistinct_where_repetitions_differ_more() -> None:
    random = np.random.default_rng(4)
    noisy = np.array([1.0, 1.02, 1.01])[:, None] * (1 + random.normal(0, 0.3, (1, 3, 5)))
    clear = np.array([1.0, 2.0, 4.0])[:, None] * (1 + random.normal(0, 0.01, (1, 3, 5)))
    reps = summarise(np.concatenate([noisy, clear]), "median", 0.95)
    assert reps.indistinct.tolist() == [True, False]


@pytest.mark.parametrize(
    ("values", "exact"),
    [
        ([175.0, 7900 / 27, 365.625], True),
        ([175.31, 292.63, 365.625], False),
        ([1.7e9, 2.9e9, 3.6e9], False),
        ([0.0, 3.0, 5.0], True),
    ],
    ids=["averages of counts", "seconds", "clock ticks", "counts"],
)
def test_one_repetition_looks_exact_only_if_it_counts(values: list[float], exact: bool) -> None:
    points = np.array([8.0, 27.0, 64.0])
    unknown = np.array([NAN]), np.array([0.0])
    assert looks_exact(points, np.array([values]), *unknown).tolist() == [exact]


def test_equal_repetitions_are_exact_whatever_their_values() -> None:
    reps = summarise(np.full((1, 3, 2), 0.1234567), "median", 0.95)
    points = np.array([8.0, 27.0, 64.0])
    assert looks_exact(points, reps.centre, reps.spread, reps.dof).tolist() == [True]
