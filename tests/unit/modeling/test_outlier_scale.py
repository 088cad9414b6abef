"""One scale that was measured under other conditions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import Models, fit
from callpath_modeler.modeling.constants.noise import LEAST_IN_SUMS
from callpath_modeler.modeling.stored import from_arrays, to_arrays
from cells import cells

POINTS = 2.0 ** np.arange(3, 9)
FAR = np.append(POINTS, 4096.0)
LAWS = np.stack(
    [
        7 + 0 * FAR,
        20 + 0 * FAR,
        np.log2(FAR),
        10 + np.log2(FAR),
        FAR / 8,
        100 + FAR,
        np.sqrt(FAR),
        1000 / FAR,
        5 + 300 / FAR,
        FAR ** (1 / 3),
    ]
)
TRUTH = np.tile(LAWS, (6, 1))


def measured(factors: npt.ArrayLike, seed: int, repetitions: int = 3) -> FloatArray:
    """Return values with 2 % noise, [n, K, R], times factors of scales or also of rows."""
    noise = np.random.default_rng(seed).standard_normal((len(TRUTH), len(POINTS), repetitions))
    return (TRUTH[:, :-1] * np.asarray(factors))[:, :, None] * np.exp(0.02 * noise)


def slow(point: int, factor: float) -> FloatArray:
    factors = np.ones(len(POINTS))
    factors[point] = factor
    return factors


def errors(models: Models) -> FloatArray:
    return np.asarray(np.abs(models.values(FAR[-1:])[:, 0] / TRUTH[:, -1] - 1))


@cells("repetitions", [1, 3])
@cells("factor", [0.8, 1.3, 2.0])
@cells("point", [0, 2, 5])
def test_a_scale_at_which_all_rows_are_off_by_one_factor_is_found_and_counts_little(
    point: int, factor: float, repetitions: int
) -> None:
    models = fit(POINTS, measured(slow(point, factor), point, repetitions))
    assert models.odd_scale is not None
    where, times = models.odd_scale
    assert where == (POINTS[point],)
    assert times == pytest.approx(factor, rel=0.06)
    assert np.median(errors(models)) < 0.03
    band = models.predict(FAR[-1:])
    assert ((band.low[:, 0] <= TRUTH[:, -1]) & (TRUTH[:, -1] <= band.high[:, 0])).mean() > 0.9


@cells("factor", [1e-6, 0.01, 30.0, 1000.0])
@cells("point", [2, 5])
def test_factors_are_told_however_large_as_of_another_unit(point: int, factor: float) -> None:
    odd = fit(POINTS, measured(slow(point, factor), point)).odd_scale
    assert odd is not None
    assert odd == ((POINTS[point],), pytest.approx(factor, rel=0.06))


def test_what_the_largest_scale_alone_shows_may_stay() -> None:
    models = fit(POINTS, measured(slow(5, 1.3), 1))
    band = models.predict(FAR[-1:])
    for may_be in (TRUTH[:, -1], 1.3 * TRUTH[:, -1]):
        assert ((band.low[:, 0] <= may_be) & (may_be <= band.high[:, 0])).mean() > 0.9
    # The factor is the same for all rows.
    assert models.correlation > 0.9
    earlier = fit(POINTS, measured(slow(3, 1.3), 1))
    assert earlier.correlation == LEAST_IN_SUMS
    wide, narrow = (np.log(b.high / b.low) for b in (band, earlier.predict(FAR[-1:])))
    assert np.median(wide) > 3 * np.median(narrow)


@pytest.mark.parametrize("seed", range(4))
def test_without_such_a_scale_none_is_found(seed: int) -> None:
    assert fit(POINTS, measured(1.0, seed)).odd_scale is None


@pytest.mark.parametrize("seed", range(4))
def test_where_all_scales_are_off_none_is_odd(seed: int) -> None:
    factors = np.random.default_rng(seed).permutation([1.1, 0.92, 1.12, 0.9, 1.05, 0.94])
    assert fit(POINTS, measured(factors, seed)).odd_scale is None


def test_rows_that_break_by_factors_of_their_own_are_believed() -> None:
    factors = np.ones(TRUTH[:, :-1].shape)
    factors[:, -1] = np.random.default_rng(5).uniform(1.2, 6, len(TRUTH))
    assert fit(POINTS, measured(factors, 5)).odd_scale is None


def test_what_only_half_of_the_rows_show_is_theirs() -> None:
    factors = np.ones(TRUTH[:, :-1].shape)
    factors[::2, -1] = 1.4
    assert fit(POINTS, measured(factors, 6)).odd_scale is None


def test_few_rows_or_points_do_not_tell() -> None:
    values = measured(slow(5, 1.3), 7)
    assert fit(POINTS, values[:8]).odd_scale is None
    assert fit(POINTS[2:], values[:, 2:]).odd_scale is None


def test_the_odd_scale_is_the_same_in_another_unit_and_order() -> None:
    values = measured(slow(2, 1.5), 8)
    order = np.random.default_rng(9).permutation(len(values))
    assert fit(POINTS, values).odd_scale == fit(POINTS, 1000 * values[order]).odd_scale


def test_a_store_keeps_the_odd_scale() -> None:
    models = fit(POINTS, measured(slow(2, 1.5), 8))
    arrays, header = to_arrays(models)
    assert from_arrays(arrays, header).odd_scale == models.odd_scale is not None
    # Older stores have one value, or none if it was not known.
    header["odd_scale"] = [32.0, 1.5]
    assert from_arrays(arrays, header).odd_scale == ((32.0,), 1.5)
    del header["odd_scale"]
    assert from_arrays(arrays, header).odd_scale is None
