from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import FitStatus, Models, SearchSpace, default_space, fit, learn
from callpath_modeler.modeling.model_columns import column_names
from cells import cells

POINTS = 2.0 ** np.arange(3, 9)
NAN = np.nan

positive = st.floats(1e-3, 1e3)
series = arrays.arrays(np.float64, (3, 6, 2), elements=positive)
points_of_any_kind = st.lists(
    st.sampled_from([0.25, 0.5, 1, 2, 3, 5, 8, 13, 27, 64, 100, 1000, 4096]),
    min_size=4,
    max_size=8,
    unique=True,
)


def power_laws(count: int = 40, repetitions: int = 5, noise: float = 0.02) -> FloatArray:
    random = np.random.default_rng(11)
    power = random.choice([-1, 0, 0.5, 1, 2], (count, 1))
    share = random.uniform(0.1, 5, (count, 2))
    y = share[:, :1] + share[:, 1:] * POINTS**power
    return y[..., None] * (1 + random.normal(0, noise, (count, len(POINTS), repetitions)))


def same(one: Models, two: Models) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(two, name), equal_nan=True)
        for name in column_names()
    )


@cells("method", ["mixture", "classic"])
@cells(
    ("law", "growth"),
    [
        (lambda k: 3 + 2 * 2**k, "O(2^k)"),
        (lambda k: 0.1 * k**3 * 2**k, "O(k^3 2^k)"),
        (lambda k: 1 + 4 * 2 ** (k / 2), "O(2^(k/2))"),
        (lambda k: 3 + 2 * k**2, "O(k^2)"),
        (lambda k: 7 + 0 * k, "O(1)"),
    ],
)
def test_exponentials_of_a_parameter_of_an_algorithm_are_found(
    law: Any, growth: str, method: Any
) -> None:
    k = np.arange(3, 17.0)
    space = replace(default_space(method), exponential=(Fraction(1, 2), Fraction(1)))
    noise = 1 + np.random.default_rng(1).normal(0, 0.01, (10, len(k), 3))
    models = fit(k, law(k)[None, :, None] * noise, space=space, method=method)
    assert [models.growth(row).text("k") for row in range(10)].count(growth) >= 9
    band = models.predict([20.0, 5000.0])
    assert not np.isnan(band.high).any()
    assert models.predict([18.0]).value[:, 0] == pytest.approx(law(18.0), rel=0.1)


@settings(max_examples=60)
@given(data=st.data())
def test_no_prediction_is_ever_negative(data: st.DataObject) -> None:
    points = np.array(data.draw(points_of_any_kind))
    y = data.draw(arrays.arrays(np.float64, (4, len(points), 1), elements=st.floats(0, 1e3)))
    models = fit(points, y)
    targets = np.geomspace(points.min(), 1e9, 60)
    band = models.predict(targets)
    assert (band.low >= 0).all()
    assert (band.low <= band.value).all()
    assert (band.value <= band.high).all()
    # Not even before the clip, but for rounding, from the first point of the law on.
    table = np.stack([shape(targets) for shape in models.shapes] + [np.zeros(60)])
    raw = models.coefficients[:, :1] + np.einsum(
        "nt,ntm->nm", models.coefficients[:, 1:], table[models.terms]
    )
    holds = targets >= models.since[:, None]
    assert (
        raw[holds] >= -1e-6 * np.broadcast_to(y.max(axis=(1, 2))[:, None], raw.shape)[holds]
    ).all()


@cells("noise", [0.0, 0.02])
@cells(
    ("values", "end"),
    [
        ([100, 100, 100, 50, 50, 50], 50),
        ([100, 100, 100, 100, 50, 50], 50),
        ([8, 8, 8, 8, 0, 0], 0),
        ([8, 8, 8, 8, 8, 0], 0),
        ([8, 16, 32, 32, 32, 32], 32),
        ([0, 0, 8, 8, 8, 8], 8),
        ([0, 8, 8, 8, 8, 8], 8),
    ],
)
def test_what_took_less_or_stopped_growing_stays_there(
    values: list[float], end: float, noise: float
) -> None:
    scatter = 1 + noise * np.random.default_rng(3).standard_normal((1, 6, 5))
    models = fit(POINTS, np.array(values, dtype=float)[None, :, None] * scatter)
    assert models.status[0] == FitStatus.OUTSIDE
    band = models.predict([4096.0])
    assert band.value[0, 0] == pytest.approx(end, rel=0.03)
    # Of exact values, 8, 16, 32 are as small whole numbers as 1, 2, 4.
    assert band.high[0, 0] <= 1.15 * end
    # A fit that ignores existing values is not a model of them.
    assert models.values(POINTS)[0] == pytest.approx(values, rel=0.05)


@pytest.mark.parametrize("values", [[10, 10, 0], [10, 10, 0, 0], [10, 0, 0, 0]])
def test_of_four_points_or_less_what_ends_at_nothing_may_be_nothing(values: list[float]) -> None:
    points = POINTS[: len(values)]
    band = fit(points, np.array(values, dtype=float)[None, :, None]).predict([4096.0])
    assert band.low[0, 0] <= 0.01
    assert band.value[0, 0] <= 5


def test_next_to_nothing_below_a_step_has_a_band() -> None:
    points = np.array([0.25, 0.5, 2, 8])
    y = np.ones((4, 4, 1))
    y[2, :, 0] = [6.74642765e-292, 1, 0, 1]
    band = fit(points, y).predict(np.geomspace(0.25, 1e9, 60))
    assert np.isfinite(band.value).all()
    assert (band.low <= band.value).all()
    assert (band.value <= band.high).all()


@settings(max_examples=25)
@given(y=series, unit=st.sampled_from([2.0**-30, 2.0**10, 1e-9, 3.7e5]))
def test_the_unit_scales_the_prediction_and_nothing_else(y: FloatArray, unit: float) -> None:
    # Whole numbers are counts, which have no unit, and are modelled as such.
    y = y * np.pi
    one, two = fit(POINTS, y), fit(POINTS, y * unit)
    targets = np.array([8.0, 4096.0])
    assert np.array_equal(one.terms, two.terms)
    assert two.values(targets) == pytest.approx(one.values(targets) * unit, rel=1e-6)


@settings(max_examples=25)
@given(y=series, order=st.permutations(range(6)), rows=st.permutations(range(3)))
def test_the_order_of_rows_points_and_repetitions_does_not_matter(
    y: FloatArray, order: list[int], rows: list[int]
) -> None:
    plain = fit(POINTS, y)
    assert same(plain, fit(POINTS[order], y[:, order]))
    assert same(plain, fit(POINTS, y[:, :, ::-1]))
    moved = fit(POINTS, y[rows])
    targets = np.array([8.0, 1e5])
    assert moved.values(targets) == pytest.approx(plain.take(rows).values(targets), rel=1e-9)


def test_the_same_data_give_the_same_models_to_the_last_bit() -> None:
    assert same(fit(POINTS, power_laws()), fit(POINTS, power_laws()))


def test_rows_with_the_priors_of_others_have_the_models_that_they_have_among_these() -> None:
    y = power_laws(3000)
    every, priors = fit(POINTS, y), learn(POINTS, y)
    for first in (2995, 100):
        few = fit(POINTS, y[first:], priors=priors)
        assert same(few, every.take(np.arange(first, 3000)))


def test_priors_of_other_points_are_refused() -> None:
    y = power_laws()
    with pytest.raises(ValueError, match="other points"):
        fit(2 * POINTS, y, priors=learn(POINTS, y))


def test_rows_of_the_classic_method_do_not_depend_on_others() -> None:
    y = power_laws(1500, 2)
    whole, part = fit(POINTS, y, method="classic"), fit(POINTS, y[1000:1100], method="classic")
    targets = np.array([8.0, 1e5])
    assert whole.values(targets)[1000:1100] == pytest.approx(part.values(targets), rel=1e-9)


@cells("folds", [None, 2, 3])
@cells("aggregate", ["median", "mean", "min"])
def test_every_setting_of_the_classic_method_finds_a_clear_growth(
    folds: int | None, aggregate: Any
) -> None:
    y = np.stack([3 + 2 * POINTS, 7 * POINTS**2, 4 + 0 * POINTS])[..., None]
    y = y * (1 + np.random.default_rng(1).uniform(-0.001, 0.001, (3, 6, 3)))
    models = fit(POINTS, y, method="classic", folds=folds, aggregate=aggregate)
    assert [models.growth(row).text() for row in range(3)] == ["O(p)", "O(p^2)", "O(1)"]


def test_every_outcome_has_a_status() -> None:
    random = np.random.default_rng(3)
    y = np.full((8, 6, 2), 5.0)
    y[0] = (2 * POINTS)[:, None] * (1 + random.normal(0, 0.01, (6, 2)))
    y[1] *= 1 + random.normal(0, 0.01, (6, 2))
    y[2] = 0
    y[3, :4] = NAN
    y[4, 0, 0] = np.inf
    y[5, 1] = -1
    y[6] = random.lognormal(0, 0.6, (6, 2))
    y[7, 3:] = 50.0
    models = fit(POINTS, y)
    assert [FitStatus(code).name for code in models.status] == [
        "OK",
        "CONSTANT",
        "ZERO",
        "TOO_FEW_POINTS",
        "NON_FINITE",
        "NEGATIVE",
        "NOISY",
        "OUTSIDE",
    ]
    assert models.used.tolist() == [6, 6, 6, 2, 6, 6, 6, 6]
    rows = [6, 0, 3, 0]
    assert models.growth_texts(rows, "n") == [models.growth(row).text("n") for row in rows]
    assert models.formulas(rows, "n") == [models.formula(row, "n") for row in rows]
    assert models.formula(3) == "no model"
    without = [3, 4, 5]
    assert np.isnan(models.values([100.0])[without]).all()
    assert np.isnan(models.predict([100.0]).low[without]).all()
    assert (models.growth_rank()[without] == -1).all()
    assert models.formula(3) == "no model"
    assert models.formula(2) == "0"
    assert models.values([100.0])[2] == 0
    assert models.doubtful().tolist() == [False] * 6 + [True] * 2
    assert all(FitStatus(code).sentence.endswith(".") for code in models.status)


def test_missing_points_are_left_out_not_taken_for_zero() -> None:
    y = (3 * POINTS)[None, :, None].repeat(3, axis=0)
    y[1, 2] = NAN
    y[2, 5] = NAN
    models = fit(POINTS, y)
    assert [models.formula(row) for row in range(3)] == ["3 * p"] * 3
    assert models.high_p.tolist() == [256, 256, 128]
    assert models.used.tolist() == [6, 5, 5]


def test_terms_with_logarithms_are_left_out_below_one() -> None:
    points = np.array([0.25, 0.5, 1, 2, 4])
    models = fit(points, (1 + 2 * points)[None, :, None])
    assert models.formula(0) == "1 + 2 * p"
    with pytest.raises(ValueError, match="negative below 1"):
        fit(points, np.ones((1, 5, 1)), space=SearchSpace.of([0], [1, 2]))


@pytest.mark.parametrize(
    ("law", "formula"),
    [
        (lambda p: 5 / p + 0.01 * p, "5 * p^-1 + 0.01 * p"),
        (lambda p: 5 + 0.25 * p + 0.01 * p**2, "5 + 0.25 * p + 0.01 * p^2"),
        (lambda p: p - 1, "1 * (p - 1)"),
        (lambda p: 7 * np.log2(p), "7 * log2(p)"),
    ],
)
def test_sums_of_terms_without_noise_come_out_term_by_term(law: Any, formula: str) -> None:
    points = 2.0 ** np.arange(2, 10)
    models = fit(points, law(points)[None, :, None])
    assert models.formula(0) == formula
    assert models.status[0] == FitStatus.OK


def test_exact_counts_of_edges_and_surfaces_are_sums_of_finer_fractions() -> None:
    side = np.array([2, 3, 4, 5, 6, 7.0])
    models = fit(side**3, (8 + 12 * side + 6 * side**2)[None, :, None])
    assert models.formula(0) == "8 + 12 * p^(1/3) + 6 * p^(2/3)"
    assert models.status[0] == FitStatus.OK


def test_a_user_can_allow_one_term_only() -> None:
    points = 2.0 ** np.arange(2, 10)
    y = (5 + 0.25 * points + 0.01 * points**2)[None, :, None]
    models = fit(points, y, space=SearchSpace.of([0, 1, 2], [0], max_terms=1))
    assert (models.terms >= 0).sum() == 1


def test_bands_of_clear_data_are_narrow_and_of_noisy_data_wide() -> None:
    random = np.random.default_rng(5)
    factor = (
        1 + random.normal(0, 1, (200, 6, 5)) * np.array([0.005, 0.05]).repeat(100)[:, None, None]
    )
    y = (4 + 2 * POINTS**0.5)[None, :, None] * factor
    band = fit(POINTS, y).predict([1024.0])
    width = ((band.high - band.low) / band.value)[:, 0]
    assert np.median(width[:100]) < 0.1 < np.median(width[100:])
    truth = 4 + 2 * 32.0
    held = (band.low[:100, 0] <= truth) & (truth <= band.high[:100, 0])
    assert held.mean() > 0.9


@cells(
    ("points", "y", "settings_", "message"),
    [
        ([1, 2, 3, 0], np.ones((1, 4, 1)), {}, "above zero"),
        ([1, 2, 3, np.inf], np.ones((1, 4, 1)), {}, "finite"),
        ([1, 2, 3, 3], np.ones((1, 4, 1)), {}, "must differ"),
        (np.arange(1.0, 2**15 + 1), np.ones((1, 2**15, 1)), {}, "at most 32767"),
        ([1, 2, 3, 4], np.ones((1, 5, 1)), {}, "expected"),
        ([1, 2, 3, 4], np.ones((1, 4)), {}, "expected"),
        ([1, 2, 3, 4], np.ones((1, 4, 1)), {"folds": 1, "method": "classic"}, "folds"),
        ([1, 2, 3, 4], np.ones((1, 4, 1)), {"folds": 5, "method": "classic"}, "folds"),
        ([1, 2, 3, 4], np.ones((1, 4, 1)), {"folds": 2}, "classic"),
        ([1, 2, 3, 4], np.ones((1, 4, 1)), {"method": "bayes"}, "method"),
        (
            [1, 2, 3, 4],
            np.ones((1, 4, 1)),
            {"method": "classic", "aggregate": "trimmed"},
            "classic method does not support",
        ),
        ([1, 2, 3, 4], np.ones((1, 4, 1)), {"aggregate": "max"}, "aggregate"),
        ([1, 2, 3, 4], np.ones((1, 4, 1)), {"confidence": 1.0}, "confidence"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    points: npt.ArrayLike, y: FloatArray, settings_: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fit(points, y, **settings_)


def test_no_rows_make_no_models() -> None:
    models = fit(POINTS, np.empty((0, 6, 2)))
    assert len(models) == 0
    assert models.predict([5.0]).value.shape == (0, 1)
    assert models.growth_rank().shape == (0,)
