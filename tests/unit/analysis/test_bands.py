"""Bands of sums: squares add up where errors are independent, widths where they are common."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.analysis.bands import addable, ends_of_sums
from callpath_modeler.analysis.forecast import forecast
from callpath_modeler.analysis.predict import predict, predict_sum, summed, with_callees
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling.mixture.setting import LEAST_IN_SUMS
from callpath_modeler.modeling.stored import from_arrays, to_arrays
from synthetic import fitted

VALUE = np.array([10.0, 20.0, 30.0])
LOW, HIGH = VALUE - np.array([3.0, 4.0, 0.0]), VALUE + np.array([6.0, 8.0, 0.0])


@pytest.mark.parametrize(
    ("correlation", "down", "up"), [(0.0, 5.0, 10.0), (1.0, 7.0, 14.0), (0.5, 37**0.5, 148**0.5)]
)
def test_common_errors_add_up_as_they_are(correlation: float, down: float, up: float) -> None:
    total, low, high = summed(VALUE, LOW, HIGH, correlation)
    assert (total, low, high) == pytest.approx((60, 60 - down, 60 + up))


def test_what_has_no_band_adds_none_and_no_sum_is_below_zero() -> None:
    unknown, far = np.array([1.0, np.nan, np.inf]), np.array([0.5, np.nan, np.inf])
    added = addable(unknown, far, unknown)
    np.testing.assert_array_equal(added, [[0.25, 0, 0.5, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    low, high = ends_of_sums(np.array([1.0]), np.array([[9.0, 4.0, 3.0, 2.0]]), 0.0)
    assert (low.tolist(), high.tolist()) == ([0.0], [3.0])


@pytest.mark.parametrize("correlation", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("value", [np.inf, 1e200])
def test_sums_with_what_is_larger_than_its_square_can_be_have_ends(
    value: float, correlation: float
) -> None:
    values, low, high = np.array([value, 1.0]), np.array([0.5 * value, 0.5]), [np.inf, 2.0]
    added = addable(values, low, np.array(high)).sum(axis=0)
    ends = ends_of_sums(values.sum(), added, correlation)
    assert ends[0] <= values.sum() <= ends[1]
    assert ends[1] == np.inf


def slower_as_a_whole(seed: int, spread: float = 0.06) -> tuple[Fitted, float]:
    """Return a program of 40 functions, each of its runs slower by a factor; and the law at 256."""
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
    held, would_hold = [], []
    for seed in range(12):
        made, truth = slower_as_a_whole(seed)
        assert made.models.correlation > 0.3
        own = predict(made, 256.0)
        for correlation, among in ((own.correlation, held), (0.0, would_hold)):
            _, low, high = summed(own.value, own.low, own.high, correlation)
            among.append(low <= truth <= high)
    assert np.mean(held) > max(0.7, np.mean(would_hold) + 0.15)


def test_without_anything_in_common_nearly_squares_add_up() -> None:
    made, _ = slower_as_a_whole(1, spread=0.0)
    assert made.models.correlation == LEAST_IN_SUMS
    own = predict(made, 256.0)
    above = own.high - own.value
    for correlation, common in ((0.0, 0.0), (own.correlation, LEAST_IN_SUMS * above.sum() ** 2)):
        _, _, high = summed(own.value, own.low, own.high, correlation)
        squares = (1 - correlation) * (above**2).sum()
        assert high - own.value.sum() == pytest.approx(np.sqrt(squares + common))


def test_every_view_of_a_sum_has_the_same_band() -> None:
    made, _ = slower_as_a_whole(2)
    own = predict(made, 256.0)
    total = summed(own.value, own.low, own.high, own.correlation)
    tree = made.experiment.tree
    root = with_callees(tree, own)
    curve = predict_sum(made, np.arange(len(tree)), np.array([256.0]))
    assert (root.value[0], root.low[0], root.high[0]) == pytest.approx(total)
    assert [float(end[0]) for end in curve] == pytest.approx(total)
    assert forecast(made, 256.0).total == pytest.approx(total)


def test_a_curve_of_thousands_of_call_paths_is_their_sum() -> None:
    made, _ = slower_as_a_whole(3)
    rows = np.tile(np.arange(len(made.experiment.tree)), 60)
    own = predict(made, 256.0)
    total = summed(own.value[rows], own.low[rows], own.high[rows], own.correlation)
    curve = predict_sum(made, rows, np.array([128.0, 256.0]))
    assert [float(end[1]) for end in curve] == pytest.approx(total)


def test_the_correlation_is_kept_in_stores() -> None:
    made, _ = slower_as_a_whole(3)
    arrays, header = to_arrays(made.models)
    assert from_arrays(arrays, header).correlation == made.models.correlation > 0
    header["version"] -= 1
    with pytest.raises(ValueError, match="not understood"):
        from_arrays(arrays, header)
