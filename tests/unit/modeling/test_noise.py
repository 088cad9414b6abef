from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import Centre, centre, fit
from callpath_modeler.modeling.repetitions import (
    CENTRES,
    looks_exact,
    relative_efficiency,
    summarise,
)
from cells import cells

Noise = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]
NAN = np.nan


def test_the_median_ignores_missing_repetitions_and_a_spike() -> None:
    y = np.array([[[3.0, NAN, 1.0, 2.0], [5.0, 5.0, 5.0, 500.0], [NAN, NAN, NAN, NAN]]])
    assert centre(y, "median").tolist()[0][:2] == [2.0, 5.0]
    assert np.isnan(centre(y, "median")[0, 2])
    assert centre(y, "mean")[0, 0] == 2.0
    assert centre(y, "min")[0].tolist()[:2] == [1.0, 5.0]


def test_the_least_of_infinite_repetitions_is_infinite() -> None:
    y = np.array([[[np.inf, np.inf], [np.inf, 1.0]]])
    assert centre(y, "min").tolist() == [[np.inf, 1.0]]


def test_the_median_agrees_with_numpy() -> None:
    y = np.random.default_rng(1).normal(10, 1, (50, 4, 6))
    y[::3, :, 4:] = NAN
    y[::5, :, 2] = NAN
    assert centre(y, "median") == pytest.approx(np.nanmedian(y, axis=2))


def test_the_first_quartile_agrees_with_numpy() -> None:
    y = np.random.default_rng(1).normal(10, 1, (50, 4, 6))
    y[::3, :, 4:] = NAN
    y[::5, :, 2] = NAN
    assert centre(y, "first-quartile") == pytest.approx(np.nanpercentile(y, 25, axis=2))


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


@pytest.mark.parametrize(
    ("how", "values"),
    [
        ("trimmed", [3.0, 2.5, 7.0]),
        ("midrange", [51.0, 2.5, 7.0]),
        ("first-quartile", [2.0, 2.25, 7.0]),
        ("mean", [27.0, 2.5, 7.0]),
    ],
)
def test_centres_of_few_and_missing_repetitions(how: Centre, values: list[float]) -> None:
    y = np.array([[[2.0, 100.0, 4.0, 2.0], [3.0, NAN, 2.0, NAN], [NAN, NAN, NAN, 7.0]]])
    assert centre(y, how).tolist() == [values]
    assert np.isnan(centre(np.full((1, 1, 3), NAN), how)).all()


@settings(max_examples=40)
@given(
    y=arrays.arrays(np.float64, (2, 3, 5), elements=st.floats(0, 1e6) | st.just(NAN)),
    order=st.permutations(range(5)),
    how=st.sampled_from(CENTRES),
)
def test_a_centre_lies_within_the_repetitions_whatever_their_order(
    y: FloatArray, order: list[int], how: Centre
) -> None:
    found = centre(y, how)
    assert np.array_equal(found, centre(y[:, :, order], how), equal_nan=True)
    some = ~np.isnan(y).all(axis=2)
    assert np.array_equal(~np.isnan(found), some)
    assert (found[some] >= np.nanmin(y[some], axis=1) * (1 - 1e-12)).all()
    assert (found[some] <= np.nanmax(y[some], axis=1) * (1 + 1e-12)).all()


def uniform(random: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
    return random.uniform(0.9, 1.1, size)


def normal(random: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
    return 1 + 0.05 * random.standard_normal(size)


def spiky(random: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
    spike = np.where(random.random(size) < 0.12, random.exponential(0.8, size), 0.0)
    return 1 + 0.02 * random.standard_normal(size) + spike


def delayed(random: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
    return 1 + random.exponential(0.1, size)


def heavy(random: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
    return 1 + random.laplace(0, 0.05, size)


NOISES = [
    (uniform, "midrange", True),
    (normal, "median", False),
    (spiky, "min", True),
    (delayed, "min", True),
    (heavy, "trimmed", True),
]


@cells(("noise", "how", "is_better"), NOISES)
def test_the_efficiency_of_a_centre_is_that_of_fresh_draws_of_the_noise(
    noise: Noise, how: Centre, is_better: bool
) -> None:
    random = np.random.default_rng(7)
    efficiency = relative_efficiency(noise(random, (3000,)), 7, how)
    again = np.random.default_rng(8)
    drawn = noise(again, (20_000, 1, 7))
    chosen, mean = (centre(drawn, which)[:, 0] for which in (how, "mean"))
    relative = (chosen.std() / chosen.mean()) ** 2 / (mean.std() / mean.mean()) ** 2
    assert efficiency == pytest.approx(relative, rel=0.35)
    assert (efficiency < 1) == is_better


@cells(("noise", "how"), [each[:2] for each in NOISES])
def test_models_are_of_means_whatever_the_noise_unless_another_centre_is_asked_for(
    noise: Noise, how: Centre
) -> None:
    points = 2.0 ** np.arange(3, 9)
    random = np.random.default_rng(9)
    law = np.stack([3 + 2 * points, 5 + 0 * points, 100 / points, 4 * points**0.5] * 5)
    y = law[:, :, None] * noise(random, (20, 6, 7))
    assert fit(points, y).aggregate == "mean"
    assert fit(points, y, aggregate=how).aggregate == how


def test_the_first_quartile_is_modelled_where_it_is_asked_for() -> None:
    points = 2.0 ** np.arange(3, 9)
    random = np.random.default_rng(9)
    noise = np.where(random.random((20, 6, 7)) < 0.6, 1.0, 1 + random.exponential(0.6, (20, 6, 7)))
    models = fit(points, (3 + 2 * points)[:, None] * noise, aggregate="first-quartile")
    assert models.values([256.0]) == pytest.approx(np.full((20, 1), 515.0), rel=0.1)


def test_little_knowledge_of_noise_makes_no_centre_better() -> None:
    random = np.random.default_rng(1)
    assert relative_efficiency(delayed(random, (500,)), 2, "min") == 1.0
    assert relative_efficiency(delayed(random, (10,)), 9, "min") == 1.0
    assert relative_efficiency(np.ones(500), 9, "min") == 1.0
    assert relative_efficiency(delayed(random, (500,)), 9, "mean") == 1.0


def test_an_enormous_spike_takes_no_digits_from_a_trimmed_mean() -> None:
    assert centre([[[0.25, 1e17, 0.25, 0.5, 0.0]]], "trimmed")[0, 0] == pytest.approx(1 / 3)
