"""Bands of sums: of rows with common errors, with independent errors, and with a doubtful law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.analysis.predict import predict, predict_sum, total_of, with_callees
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Prediction
from callpath_modeler.modeling.constants.bands import COLUMNS
from callpath_modeler.modeling.constants.noise import LEAST_IN_SUMS
from callpath_modeler.modeling.distributions import as_normal, scores
from callpath_modeler.modeling.stored import from_arrays, to_arrays
from callpath_modeler.modeling.sums import addable, as_addends, ends_of_sums
from cells import cells
from synthetic import fitted

CONFIDENCE = 0.95
SCORES = scores(CONFIDENCE)
VALUE = np.array([10.0, 20.0, 30.0])
REACH = np.array([0.3, 0.4, 0.0])


def of_bands(value: np.ndarray, low: np.ndarray, high: np.ndarray, correlation: float):
    """Return low and high of the sum of parts with half-normal errors on both sides."""
    quantiles = as_normal(value, low, high, CONFIDENCE)
    added = as_addends(quantiles, correlation, CONFIDENCE).sum(axis=0)
    low, high = ends_of_sums(np.array(np.nansum(value)), added)
    return float(low), float(high)


@pytest.mark.parametrize(("correlation", "reach"), [(0.0, 0.5), (1.0, 0.7), (0.5, 0.37**0.5)])
def test_normal_errors_add_up_as_squares_and_common_ones_as_they_are(
    correlation: float, reach: float
) -> None:
    ends = of_bands(VALUE, VALUE - REACH, VALUE + REACH, correlation)
    assert ends == pytest.approx((60 - reach, 60 + reach), abs=0.01 * reach)


@pytest.mark.parametrize("confidence", [0.3, 0.68, 0.95, 0.999])
def test_the_band_of_one_row_is_its_own(confidence: float) -> None:
    made, _ = slower_as_a_whole(4)
    models, points = replace(made.models, confidence=confidence), np.array([256.0, 1e5])
    band = models.predict(points)
    low, high = ends_of_sums(band.value, addable(models, points, band))
    np.testing.assert_allclose(low, band.low, rtol=1e-9)
    np.testing.assert_allclose(high, band.high, rtol=1e-9)


def test_what_has_no_band_is_sure_and_what_has_no_model_adds_nothing() -> None:
    value, low, high = np.array([[1.0, 7.0, np.nan], [0.5, np.nan, np.nan], [2.0, np.nan, np.nan]])
    added = as_addends(as_normal(value, low, high, CONFIDENCE), 0.3, CONFIDENCE)
    assert added.shape == (3, COLUMNS)
    np.testing.assert_allclose(added[1], [7.0] * 2 + [0.0] * 4, atol=1e-12)
    assert not added[2].any()
    ends = ends_of_sums(np.array([8.0, 0.0]), np.stack([added.sum(axis=0), added[2]]))
    np.testing.assert_allclose(ends, [[7.5, 0.0], [9.0, 0.0]], rtol=1e-9)


@cells("correlation", [0.0, 0.1, 1.0])
@cells("value", [np.inf, 1e200, 1e300])
def test_sums_with_what_is_larger_than_its_square_can_be_have_ends(
    value: float, correlation: float
) -> None:
    for high in (np.inf, value):
        values, low = np.array([value, 1.0]), np.array([0.5 * value, 0.5])
        ends = of_bands(values, low, np.array([high, 2.0]), correlation)
        assert ends[0] <= values.sum() <= ends[1]
        assert ends[1] == np.inf if high == np.inf else ends[1] < np.inf


def wide(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return quantiles [rows, 2001] of rows over decades, some with two peaks."""
    at = np.linspace(-5, 5, 2001)
    spread, level = rng.uniform(0.1, 1.5, (rows, 1)), rng.normal(0, 1, (rows, 1))
    jump = rng.uniform(0, 3, (rows, 1)) * (at > rng.normal(0, 1, (rows, 1)))
    return np.asarray(np.exp(level + spread * at + jump))


def drawn_sums(
    rng: np.random.Generator, quantiles: np.ndarray, of_scores: np.ndarray, correlation: float
) -> np.ndarray:
    """Draw 4,000 sums of rows from their quantiles [rows, 2001], with correlated errors."""
    decades = (np.log(of_scores[:, -2] / of_scores[:, 1]) / 4) ** 2
    alike = correlation + max(0.6 - correlation, 0) * decades / (1 + decades)
    common = np.sqrt(alike) * rng.standard_normal((4_000, 1))
    drawn = common + np.sqrt(1 - alike) * rng.standard_normal((4_000, len(quantiles)))
    drawn = np.clip(drawn, SCORES[0], SCORES[-1])
    at = np.linspace(-5, 5, quantiles.shape[1])
    each = [np.interp(drawn[:, k], at, row) for k, row in enumerate(quantiles)]
    return np.asarray(np.sum(each, axis=0))


@pytest.mark.parametrize(("rows", "correlation"), [(2, 0.3), (5, 0.25), (30, 0.25), (30, 0.6)])
def test_ends_are_those_of_sums_that_are_drawn(rows: int, correlation: float) -> None:
    off = []
    for seed in range(40):
        rng = np.random.default_rng([seed, rows])
        quantiles, at = wide(rng, rows), np.linspace(-5, 5, 2001)
        of_scores = np.array([np.interp(SCORES, at, row) for row in quantiles])
        added = as_addends(of_scores, correlation, CONFIDENCE)
        drawn = drawn_sums(rng, quantiles, of_scores, correlation)
        truth = np.quantile(drawn, [0.025, 0.975])
        middle = np.array(of_scores[:, len(SCORES) // 2].sum())
        ends = ends_of_sums(middle, added.sum(axis=0))
        off.append(np.log(np.array(ends) / truth))
    below, above = np.array(off).T
    assert abs(np.median(above)) < 0.03
    assert np.quantile(np.abs(above), 0.9) < 0.15
    # Lower ends over decades are decades below the values.
    assert abs(np.median(below)) < 0.25


def test_the_low_end_of_what_is_wrong_alike_is_far_below_the_value() -> None:
    """Three call paths, each equally likely at nearly zero and at its full value."""
    likely = np.where(SCORES < -0.3, 0.2, 2000.0)
    rows = np.stack([likely * factor for factor in (1.3, 0.8, 0.3)])
    rows[:, -1] *= 2
    added = as_addends(rows, LEAST_IN_SUMS, CONFIDENCE).sum(axis=0)
    low, high = ends_of_sums(np.array(rows[:, -2].sum()), added)
    assert low < 0.1 * rows[:, -2].sum() < high


@cells(("rows", "correlation"), [(2, 0.0), (2, 0.3), (10, 0.25), (100, 0.25)])
@cells("high", [1e2, 1e8, np.inf])
def test_the_low_end_of_parts_that_may_be_huge_is_below_the_value(
    rows: int, correlation: float, high: float
) -> None:
    """All parts may be small at once, however large each of them may be."""
    one = np.ones(rows)
    low, _ = of_bands(one, 1e-4 * one, high * one, correlation)
    assert 1e-4 <= low < 0.99 * rows


@pytest.mark.parametrize(("rows", "correlation"), [(2, 0.0), (5, 0.25), (30, 0.25), (30, 0.6)])
def test_low_ends_of_parts_that_may_jump_are_those_of_sums_that_are_drawn(
    rows: int, correlation: float
) -> None:
    off = []
    for seed in range(20):
        rng, at = np.random.default_rng([seed, rows]), np.linspace(-5, 5, 2001)
        jump = rng.uniform(3, 12, (rows, 1)) * (at > rng.uniform(0.1, 1.5, (rows, 1)))
        quantiles = np.exp(rng.normal(0, 1, (rows, 1)) + 0.2 * at + jump)
        of_scores = np.array([np.interp(SCORES, at, row) for row in quantiles])
        value = np.array(of_scores[:, len(SCORES) // 2].sum())
        added = as_addends(of_scores, correlation, CONFIDENCE).sum(axis=0)
        drawn = drawn_sums(rng, quantiles, of_scores, correlation)
        truth = min(np.quantile(drawn, 0.025), float(value))
        off.append(float(np.log(ends_of_sums(value, added)[0] / truth)))
    assert abs(np.median(off)) < 0.18


def test_a_sum_is_the_same_in_any_order_and_unit() -> None:
    rng = np.random.default_rng(0)
    quantiles = np.array([np.interp(SCORES, np.linspace(-5, 5, 2001), row) for row in wide(rng, 9)])
    value = np.array(quantiles[:, len(SCORES) // 2].sum())
    parts = as_addends(quantiles, 0.25, CONFIDENCE)
    one = ends_of_sums(value, parts.sum(axis=0))
    np.testing.assert_allclose(ends_of_sums(value, parts[rng.permutation(9)].sum(axis=0)), one)
    more = as_addends(1e6 * quantiles, 0.25, CONFIDENCE).sum(axis=0)
    np.testing.assert_allclose(ends_of_sums(1e6 * value, more), 1e6 * np.array(one))


def slower_as_a_whole(seed: int, spread: float = 0.06) -> tuple[Fitted, float]:
    """Return a program of 40 functions, each run slower by a factor; and the law at 256."""
    random = np.random.default_rng(seed)
    points = 2.0 ** np.arange(7)
    laws = [3 + 0 * points, 1 + 0.02 * points, 2 + 0.3 * np.log2(points), 5 + np.sqrt(points)]
    of_runs = np.exp(spread * random.standard_normal((len(points), 3)))
    values = {"main": 1e-3 * np.ones((len(points), 3))}
    for number in range(40):
        own = np.exp(0.01 * random.standard_normal((len(points), 3)))
        values[f"main/f{number}"] = laws[number % 4][:, None] * own * of_runs
    truth = 0.001 + 10 * (3 + (1 + 0.02 * 256) + (2 + 0.3 * 8) + (5 + 16))
    made = fitted(
        {name: columns.tolist() for name, columns in values.items()}, tuple(points.astype(int))
    )
    return made, truth


def test_totals_of_runs_that_were_slower_as_a_whole_hold() -> None:
    held, would_hold, correlations = [], [], []
    for seed in range(12):
        made, truth = slower_as_a_whole(seed)
        correlations.append(made.models.correlation)
        for correlation, among in ((made.models.correlation, held), (0.0, would_hold)):
            models = replace(made.models, correlation=correlation)
            _, low, high = total_of(models, np.array([256.0]))
            among.append(low[0] <= truth <= high[0])
    assert min(correlations) > 0.25
    assert np.median(correlations) > 0.6
    assert np.mean(held) > max(0.7, np.mean(would_hold) + 0.15)


def test_without_anything_in_common_errors_are_correlated_as_little_as_they_may_be() -> None:
    made, _ = slower_as_a_whole(1, spread=0.0)
    assert made.models.correlation == LEAST_IN_SUMS
    own = predict(made, 256.0)
    value, _, high = own.total()
    above = own.high - own.value
    independent = np.sqrt((above**2).sum())
    assert 1.2 * independent < high - value < 0.8 * above.sum()


def test_every_view_of_a_sum_has_the_same_band() -> None:
    made, _ = slower_as_a_whole(2)
    for target in (256.0, 1e5):
        own = predict(made, target)
        tree = made.experiment.tree
        root = with_callees(tree, own)
        curve = predict_sum(made, np.arange(len(tree)), np.array([target]))
        assert (root.value[0], root.low[0], root.high[0]) == pytest.approx(own.total())
        assert [float(end[0]) for end in curve] == pytest.approx(own.total())
        assert answer_at(made, target).total == pytest.approx(own.total())
        leaves = tree.end == np.arange(len(tree)) + 1
        np.testing.assert_allclose(root.low[leaves], own.low[leaves])
        np.testing.assert_allclose(root.high[leaves], own.high[leaves])


def test_a_curve_of_thousands_of_call_paths_is_their_sum() -> None:
    made, _ = slower_as_a_whole(3)
    rows = np.tile(np.arange(len(made.experiment.tree)), 60)
    own = predict(made, 256.0)
    value, added = np.array(own.value[rows].sum()), own.added[rows].sum(axis=0)
    low, high = ends_of_sums(value, added)
    curve = predict_sum(made, rows, np.linspace(128.0, 256.0, 300))
    assert [end[-1] for end in curve] == pytest.approx([float(each) for each in (value, low, high)])


def test_the_correlation_is_kept_in_stores() -> None:
    made, _ = slower_as_a_whole(3)
    arrays, header = to_arrays(made.models)
    assert from_arrays(arrays, header).correlation == made.models.correlation > 0
    header["version"] -= 1
    with pytest.raises(ValueError, match="not understood"):
        from_arrays(arrays, header)


@pytest.mark.parametrize(("ratio", "is_shaped"), [(1.9, False), (2.0, False), (2.1, True)])
def test_the_shape_of_a_distribution_counts_from_ends_a_factor_of_two_apart(
    ratio: float, is_shaped: bool
) -> None:
    made, _ = slower_as_a_whole(4)
    points = np.array([256.0])
    value = made.models.values(points)
    low = value / np.sqrt(ratio)
    # The values differ by exactly this factor; a rounded product would miss it.
    band = Prediction(value, low, ratio * low)
    added = addable(made.models, points, band)
    normal = as_normal(band.value, band.low, band.high, made.models.confidence)
    plain = as_addends(normal, made.models.correlation, made.models.confidence)
    assert (not np.array_equal(added, plain, equal_nan=True)) == is_shaped
