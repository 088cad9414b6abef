"""Properties of all fits: any rows, any order and unit, missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import FitStatus, Models, SearchSpace, fit
from callpath_modeler.modeling.model_columns import column_names
from cells import cells

POINTS = 2.0 ** np.arange(3, 9)
TARGETS = np.array([1e-3, 0.5, 1, 8, 100, 256, 1e4, 1e9, 1e15, np.inf])
NAN = np.nan

values = st.floats(1e-9, 1e9) | st.just(NAN) | st.just(0.0)


def sane(models: Models) -> None:
    """Check the properties of every prediction."""
    band = models.predict(TARGETS)
    modelled = models.status < FitStatus.TOO_FEW_POINTS
    for column in (band.value, band.low, band.high):
        assert np.array_equal(np.isnan(column), np.repeat(~modelled[:, None], len(TARGETS), 1))
    low, value, high = band.low[modelled], band.value[modelled], band.high[modelled]
    assert (low >= 0).all()
    assert (low <= value).all()
    assert (value <= high).all()
    assert (models.weight[modelled] > 0).all()
    total = models.weight + models.alternative_weight.sum(axis=1)
    assert total[modelled] == pytest.approx(1)


def laws(random: np.random.Generator, repetitions: int = 3) -> FloatArray:
    clean = np.stack([5 + 0 * POINTS, 3 + 2 * POINTS, 100 / POINTS, 4 + np.sqrt(POINTS)])
    return clean[..., None] * (1 + 0.03 * random.standard_normal((4, 6, repetitions)))


@settings(max_examples=30)
@given(data=st.data())
def test_whatever_is_measured_predictions_keep_their_promises(data: st.DataObject) -> None:
    points = data.draw(
        st.lists(
            st.sampled_from([0.25, 0.5, 1, 2, 3, 8, 27, 64, 100, 1000, 4096]),
            min_size=1,
            max_size=7,
            unique=True,
        )
    )
    repetitions = data.draw(st.integers(1, 4))
    y = data.draw(arrays.arrays(np.float64, (3, len(points), repetitions), elements=values))
    models = fit(points, y)
    sane(models)
    used = (~np.isnan(y)).any(axis=2).sum(axis=1)
    assert models.used.tolist() == used.tolist()
    assert (models.status[used < 3] == FitStatus.TOO_FEW_POINTS).all()
    zero = (np.nan_to_num(y) == 0).all(axis=(1, 2)) & (used >= 3)
    assert (models.status[zero] == FitStatus.ZERO).all()


@pytest.mark.parametrize("measured", [(437_102.0, 0.0, 2.0), (4_779.0, 1.0, 0.0)])
def test_points_that_are_far_below_the_largest_one_do_not_overflow(measured) -> None:
    """Steep powers are nearly zero at all points of a row that ends early."""
    points = [0.25, 0.5, 3, 1, 2, 8, 4096]
    y = np.full((2, len(points), 2), np.nan)
    y[0, :3, 0] = measured
    y[1] = 3.0
    models = fit(points, y)
    sane(models)
    assert (models.coefficients[0, 0] < 100) & (models.weight[0] > 0)


@cells("unit", [1e-60, 1e-15, 2.0**-40, 1e-3, 7.3, 2.0**40, 1e18, 1e60])
@cells("repetitions", [1, 3])
def test_no_unit_changes_a_model_or_its_band(unit: float, repetitions: int) -> None:
    y = laws(np.random.default_rng(41), repetitions) * np.pi
    one, two = fit(POINTS, y), fit(POINTS, y * unit)
    assert np.array_equal(one.terms, two.terms)
    assert np.array_equal(one.status, two.status)
    assert two.aggregate == one.aggregate
    before, after = one.predict([8, 4096]), two.predict([8, 4096])
    for column in ("value", "low", "high"):
        scaled = getattr(before, column) * unit
        assert getattr(after, column) == pytest.approx(scaled, rel=1e-5, abs=0)
    assert two.weight == pytest.approx(one.weight, rel=1e-5)
    assert two.noise == pytest.approx(one.noise, rel=1e-9, nan_ok=True)


def test_rounding_decides_nothing_where_a_law_fits_exactly() -> None:
    y = np.full((3, 6, 2), 231.0)
    y[0, 5], y[1, 0], y[1, 1], y[1, 2] = [1, 231], [1, 231], [1, 231], [147, 1]
    points = 2.0 ** np.arange(3, 9)
    one, two = fit(points, y), fit(points, y * 1e-9)
    assert two.weight == pytest.approx(one.weight, rel=1e-9)
    assert two.values([8, 4096]) == pytest.approx(one.values([8, 4096]) * 1e-9, rel=1e-9, abs=0)


@pytest.mark.parametrize("seed", range(3))
def test_neither_the_order_of_points_nor_of_rows_nor_of_repetitions_matters(seed: int) -> None:
    random = np.random.default_rng(seed)
    y = np.concatenate([laws(random, 5) for _ in range(5)])
    y[3, 2, 1:] = NAN
    y[7, 4] = NAN
    plain = fit(POINTS, y)
    points, repetitions, rows = (random.permutation(count) for count in (6, 5, 20))
    same = fit(POINTS[points], y[:, points][:, :, repetitions])
    for name in column_names():
        assert np.array_equal(getattr(plain, name), getattr(same, name), equal_nan=True)
    moved = fit(POINTS, y[rows])
    assert np.array_equal(moved.terms, plain.terms[rows])
    assert moved.aggregate == plain.aggregate
    assert moved.predict([1024.0]).high == pytest.approx(
        plain.take(rows).predict([1024.0]).high, rel=1e-6
    )


def test_rows_that_are_multiples_of_each_other_have_one_model_in_different_units() -> None:
    random = np.random.default_rng(45)
    counts = np.round(laws(random)[[1, 3, 1, 0, 1], :, :1].repeat(3, axis=2))
    y = counts * np.array([3.0, 7, 12, 1, 5])[:, None, None]
    models = fit(POINTS, y)
    for row in (2, 4):
        for name in ("terms", "weight", "alternative_weight", "root", "spread", "status"):
            column = getattr(models, name)
            assert np.array_equal(column[0], column[row])
        ratio = y[row].sum() / y[0].sum()
        assert models.coefficients[row] == pytest.approx(models.coefficients[0] * ratio, rel=1e-12)
    assert models.weight[1] != models.weight[3]


def test_rows_without_a_model_do_not_change_those_with_one() -> None:
    y = np.concatenate([laws(np.random.default_rng(42)) for _ in range(4)])
    odd = np.full((6, 6, 3), 5.0)
    odd[0], odd[1, :, 0], odd[2, 1], odd[3, :4] = 0, np.inf, -1, NAN
    odd[4], odd[5, 3, 2] = NAN, -np.inf
    mixed = fit(POINTS, np.concatenate([odd, y]))
    assert [FitStatus(code).name for code in mixed.status[:6]] == [
        "ZERO",
        "NON_FINITE",
        "NEGATIVE",
        "TOO_FEW_POINTS",
        "TOO_FEW_POINTS",
        "NON_FINITE",
    ]
    alone = fit(POINTS, y)
    for name in column_names():
        assert np.array_equal(getattr(mixed, name)[6:], getattr(alone, name), equal_nan=True)
    sane(mixed)


@pytest.mark.parametrize("times", [1, 20])
def test_rows_whose_sums_are_beyond_all_numbers_have_no_model(times: int) -> None:
    y = np.repeat(laws(np.random.default_rng(42)), times, axis=0)
    y[-1] *= 1.7e308 / y[-1].max()
    models = fit(POINTS, y)
    assert models.status[-1] == FitStatus.NON_FINITE
    assert (models.status[:-1] != FitStatus.NON_FINITE).all()
    assert fit(POINTS, y[-1:]).status == [FitStatus.NON_FINITE]


@cells(
    ("points", "law", "formula"),
    [
        ([8.0, 16, 32], lambda p: 3 + 2 * p, "3 + 2 * p"),
        ([1.0, 2, 4], lambda p: 1 + np.log2(p), "1 + 1 * log2(p)"),
        ([0.01, 0.02, 0.04, 0.1, 0.3], lambda p: 1 + 3 * p, "1 + 3 * p"),
        ([0.01, 0.02, 0.04, 0.1, 0.3], lambda p: 1 + 3 / p, "1 + 3 * p^-1"),
        ([1e3, 1e6, 1e9, 1e12, 1e15], lambda p: 3 * p, "3 * p"),
        (np.arange(1.0, 66), lambda p: 2 * np.sqrt(p), "2 * p^(1/2)"),
    ],
)
def test_laws_come_out_at_few_many_small_and_large_points(
    points: npt.ArrayLike, law: Any, formula: str
) -> None:
    p = np.asarray(points)
    models = fit(p, law(p)[None, :, None].repeat(2, axis=2))
    assert models.formula(0) == formula
    assert models.status[0] == FitStatus.OK
    sane(models)


def test_four_points_are_enough_for_two_terms_that_show() -> None:
    points = np.array([4.0, 16, 64, 256])
    random = np.random.default_rng(45)
    law = np.stack([0.1 * points * (np.log2(points) + 2), 5 + 0 * points, 0.3 * points])
    y = law[:, :, None] * (1 + 0.002 * random.standard_normal((3, 4, 1)))
    found = fit(points, y).values([1024.0])[:, 0]
    assert found == pytest.approx([0.1 * 1024 * 12, 5, 307.2], rel=0.03)


@cells("rest", [0.0, 0.3])
@cells("power", [4, 5, 6, 7])
def test_laws_of_sizes_as_steep_as_those_of_correlated_electrons_are_found(
    power: int, rest: float
) -> None:
    points, far = np.array([10.0, 15, 20, 25, 30]), np.array([120.0])
    random = np.random.default_rng(46)

    def law(n: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return n**power + rest * points[1] ** power

    models = fit(points, law(points)[:, None] * (1 + 0.02 * random.standard_normal((10, 5, 3))))
    assert (models.status == FitStatus.OK).all()
    assert models.values(far)[:, 0] == pytest.approx(np.full(10, law(far)[0]), rel=0.1)


def test_a_regime_of_the_smallest_scales_does_not_bend_the_law_of_the_largest() -> None:
    points = 2.0 ** np.arange(1, 7)
    other = np.where(points < 8, 1.7, 1.0)
    y = np.stack([other * scale * points for scale in np.geomspace(1, 50, 20)])
    found = fit(points, y[..., None].repeat(2, axis=2)).values([128.0])[:, 0]
    assert np.median(found / (128 * np.geomspace(1, 50, 20))) == pytest.approx(1, rel=0.1)


def test_one_process_that_has_none_to_talk_to_does_not_bend_the_law_of_many() -> None:
    points = np.array([1.0, 8, 27, 64, 125])

    def wrong(smallest: float, share: float, noise: float, seed: int = 7) -> np.float64:
        random = np.random.default_rng(seed)
        # Ten call paths would show that one scale differs from the others.
        law = np.geomspace(1, 20, 9)[:, None] * points
        law[:, 0] *= share
        y = law[:, :, None] * np.exp(noise * random.standard_normal((9, 5, 3)))
        found = fit(smallest * points, y).values([smallest * 1000.0])[:, 0] / (8 * law[:, -1])
        return np.median(np.abs(np.log(found)))

    assert np.median([wrong(1, share=1e-4, noise=0.3, seed=seed) for seed in range(12)]) < 0.5
    # From two processes on, the smallest scale has the same weight as the others.
    assert wrong(1, share=0.3, noise=0.1) < 0.05 < wrong(2, share=0.3, noise=0.1)


def test_call_paths_do_not_talk_each_other_out_of_growth_that_none_of_them_shows() -> None:
    points, target = 2.0 ** np.arange(3, 8), np.array([2048.0])
    random = np.random.default_rng(3)
    # Three hundredths to a fifth of the value at the largest scale; ten times it far beyond.
    share = random.uniform(0.03, 0.25, 60)[:, None]

    def law(p: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return 128 / p + share * p / 128

    y = law(points)[:, :, None] * np.exp(0.1 * random.standard_normal((60, 5, 5)))
    found, truth = fit(points, y).predict(target), law(target)
    assert ((found.low <= truth) & (truth <= found.high)).mean() > 0.7


@pytest.mark.parametrize("node", [40.0, 48.0, 70.0])
def test_what_leaves_a_node_or_a_switch_levels_off_again(node: float) -> None:
    random = np.random.default_rng(5)

    def law(p: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return 1 + 2 * np.maximum(0.0, 1 - node / p)

    points, target = 24 * 2.0 ** np.arange(6), np.array([12288.0])
    y = np.tile(law(points)[:, None], (20, 1, 1)) * np.exp(
        0.01 * random.standard_normal((20, 6, 5))
    )
    found = fit(points, y).predict(target)
    assert np.median(np.abs(found.value / law(target) - 1)) < 0.05
    assert ((found.low <= law(target)) & (law(target) <= found.high)).mean() > 0.8


def test_two_points_make_no_model_and_say_so() -> None:
    models = fit([8.0, 16], np.ones((2, 2, 5)))
    assert (models.status == FitStatus.TOO_FEW_POINTS).all()
    assert models.formula(0) == "no model"
    assert "no model" in FitStatus(int(models.status[0])).sentence
    sane(models)


def test_zeros_and_enormous_ranges_are_survived() -> None:
    y = np.array(
        [
            [0, 0, 5.125, 5.125, 5.125, 5.125],
            [1.3, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 1.3],
            [1, 1e3, 1e6, 1e9, 1e12, 1e15],
            [1e15, 1e12, 1e9, 1e6, 1e3, 1],
            [1e-30, 1e30, 1, 1, 1, 1],
        ]
    )
    for repetitions in (1, 3):
        models = fit(POINTS, y[..., None].repeat(repetitions, axis=2))
        sane(models)
        assert (models.status == FitStatus.OUTSIDE).all()


def test_rounding_makes_no_coefficient_negative() -> None:
    y = np.full((4, 4, 1), 9.08781714e-206)
    y[0, 1] = 1.0
    models = fit([2.0, 1.0, 64.0, 3.0], y)
    assert (models.coefficients[0] >= 0).all()


def test_a_missing_repetition_is_like_one_that_was_never_made() -> None:
    y = laws(np.random.default_rng(43), 2)
    padded = np.concatenate([y, np.full_like(y, NAN)], axis=2)
    assert fit(POINTS, padded).coefficients == pytest.approx(fit(POINTS, y).coefficients)


def test_a_space_without_growing_terms_makes_models_without_growing_terms() -> None:
    models = fit(POINTS, laws(np.random.default_rng(44)), space=SearchSpace.of([-1], [0], 2))
    sane(models)
    assert str(models.growth(2)) in ("O(p^-1)", "O(1)")
    assert models.status[1] == FitStatus.OUTSIDE
