"""Bands of excess work, from the bands of a cost, of the rest of the program and of its ideal."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.analysis.excess_work import Loss, excess_band, expected_band
from callpath_modeler.analysis.uncertain import Band
from callpath_modeler.modeling.constants.bands import COLUMNS

NAN = float("nan")
OF_ONE = Loss(1.0, 10.0)
"""The run time is 10 s, as the sum of all costs."""


def addends(value, width):
    """Return the additive numbers [n, columns] of costs whose bands are value - width ... + width.

    Their errors are independent, so squares of widths add up.
    """
    value, width = np.broadcast_arrays(np.asarray(value, float), np.asarray(width, float))
    none = np.zeros_like(value)
    columns = np.stack([value, value, none, none, width**2, width**2], axis=-1)
    assert columns.shape[-1] == COLUMNS
    return columns


def exact(value):
    value = np.asarray(value, float)
    return Band(value, value, value)


def test_an_ideal_without_additive_numbers_is_exact():
    band = expected_band(np.array([2.0, 3.0]), None, 0.5)
    assert band.low.tolist() == band.value.tolist() == band.high.tolist() == [2, 3]


def test_an_ideal_per_process_has_the_band_of_the_cost_it_was_made_of():
    """Sums over 4 processes: 8 ± 2 s are 2 ± 0.5 s of one process."""
    band = expected_band(np.array([2.0]), addends([8.0], 2.0), 0.25)
    assert [each.item() for each in (band.value, band.low, band.high)] == pytest.approx(
        [2.0, 1.5, 2.5]
    )


def test_excess_is_the_share_of_the_program_beyond_the_ideal():
    cost = np.array([6.0, 3.0, NAN])
    parts = addends([6.0, 3.0, 0.0], 0.0)
    found = excess_band(cost, parts, (10.0, addends(10.0, 0.0)), exact([2.0, 4.0, 0.0]), OF_ONE)
    assert found.value[:2] == pytest.approx([0.4, -0.1])
    assert np.isnan([found.value[2], found.low[2], found.high[2]]).all()
    assert found.low[:2] == pytest.approx(found.value[:2])
    assert found.high[:2] == pytest.approx(found.value[:2])


def test_the_error_of_a_cost_changes_the_program_as_well():
    found = excess_band(
        np.array([6.0]), addends([6.0], 1.0), (10.0, addends(10.0, 1.0)), exact([2.0]), OF_ONE
    )
    assert found.low[0] == pytest.approx((5 - 2) / 9)
    assert found.high[0] == pytest.approx((7 - 2) / 11)


def test_the_error_of_the_rest_of_the_program_widens_the_band():
    # The total is 10 ± 2, of which 6 ± 0 are the cost: the rest is 4 ± 2.
    found = excess_band(
        np.array([6.0]), addends([6.0], 0.0), (10.0, addends(10.0, 2.0)), exact([2.0]), OF_ONE
    )
    assert found.low[0] == pytest.approx(4 / 12)
    assert found.high[0] == pytest.approx(4 / 8)


def test_the_error_of_the_ideal_widens_the_band():
    ideal = Band(np.array([2.0]), np.array([1.0]), np.array([2.5]))
    found = excess_band(
        np.array([6.0]), addends([6.0], 0.0), (10.0, addends(10.0, 0.0)), ideal, OF_ONE
    )
    assert found.low[0] == pytest.approx((6 - 2.5) / 10)
    assert found.high[0] == pytest.approx((6 - 1) / 10)


def test_independent_errors_add_up_by_squares():
    ideal = Band(np.array([2.0]), np.array([1.0]), np.array([3.0]))
    both = excess_band(
        np.array([6.0]), addends([6.0], 0.0), (10.0, addends(10.0, 2.0)), ideal, OF_ONE
    )
    assert both.high[0] == pytest.approx(0.4 + np.hypot(4 / 8 - 0.4, 0.1))


def test_costs_of_all_processes_are_compared_with_an_ideal_per_process():
    """Cost and program are sums over 4 processes; one process has the same excess."""
    whole = excess_band(
        np.array([24.0]),
        addends([24.0], 4.0),
        (40.0, addends(40.0, 4.0)),
        exact([2.0]),
        Loss(0.25, 10.0),
    )
    one = excess_band(
        np.array([6.0]), addends([6.0], 1.0), (10.0, addends(10.0, 1.0)), exact([2.0]), OF_ONE
    )
    for name in ("value", "low", "high"):
        assert getattr(whole, name) == pytest.approx(getattr(one, name))


def test_a_cost_above_the_total_leaves_no_negative_rest():
    """The total has its own model, which may be a little below a cost."""
    found = excess_band(
        np.array([6.0]), addends([6.0], 0.0), (5.0, addends(5.0, 0.0)), exact([2.0]), Loss(1.0, 5.0)
    )
    assert found.value[0] == pytest.approx(4 / 6)


def test_a_run_time_beyond_the_sum_makes_all_shares_smaller():
    """The run time is 20 s and the sum 10 s, so shares and their bands are halved."""
    cost, parts, total = np.array([6.0]), addends([6.0], 1.0), (10.0, addends(10.0, 1.0))
    sums = excess_band(cost, parts, total, exact([2.0]), OF_ONE)
    found = excess_band(cost, parts, total, exact([2.0]), Loss(1.0, 20.0))
    for name in ("value", "low", "high"):
        assert getattr(found, name) == pytest.approx(getattr(sums, name) / 2)
