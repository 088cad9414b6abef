from __future__ import annotations

import math

import pytest

from callpath_modeler.units import (
    interval,
    parameter_value,
    percent,
    quantity,
    rough_value,
    significant,
    to_ascii,
)
from cells import cells

INF, NAN = float("inf"), float("nan")


@cells(
    ("value", "unit", "text"),
    [
        (1.0, "s", "1.00 s"),
        (0.9999, "s", "1.00 s"),
        (0.999, "s", "999 ms"),
        (999.6e-6, "s", "1.00 ms"),
        (2.5e-9, "s", "2.50 ns"),
        (2.5e-14, "s", "2.50e-05 ns"),
        (123456.0, "s", "123 000 s"),
        (-0.0025, "s", "-2.50 ms"),
        (0.0, "s", "0 s"),
        (999.6, "1", "1.00 k"),
        (2.0**64 - 1, "1", "18.4 E"),
        (5.0, "1", "5.00"),
        (0.0, "1", "0"),
        (1e24, "B", "1.00e+06 EB"),
        (NAN, "s", "-"),
        (INF, "s", "∞"),
        (-INF, "B", "-∞"),
    ],
)
def test_quantities_have_three_digits_and_a_prefix(value, unit, text):
    assert quantity(value, unit) == text


def test_in_ascii_micro_is_u_and_infinity_is_a_word():
    assert quantity(2.5e-6, "s", ascii_only=True) == "2.50 us"
    assert quantity(INF, "s", ascii_only=True) == "inf"


@cells(
    ("low", "high", "text"),
    [
        (1.0, 2.0, "1.00 … 2.00 s"),
        (0.5, 2.0, "500 ms … 2.00 s"),
        (0.0, 0.002, "0 … 2.00 ms"),
        (0.0, 0.0, "0 … 0 s"),
        (1.0, INF, "1.00 s … ∞"),
        (NAN, NAN, "- … -"),
        (12345.0, 23456.0, "12 300 … 23 500 s"),
    ],
)
def test_a_shared_unit_stands_once(low, high, text):
    assert interval(low, high, "s") == text


def test_intervals_of_counts_have_no_unit():
    assert interval(1.0, 2.0, "1") == "1.00 … 2.00"
    assert interval(1500.0, 2500.0, "1") == "1.50 … 2.50 k"


@cells(
    ("value", "text"),
    [
        (0.0009996, "0.00100"),
        (999999.0, "1.00e+06"),
        (999499.0, "999 000"),
        (-16938.0, "-16 900"),
        (1e-300, "1.00e-300"),
    ],
)
def test_significant_digits_survive_rounding_to_the_next_power(value, text):
    assert significant(value) == text


@cells("value", [1.0, 9.994, 9.996, 99.95, 0.012345, 5e5, 1e9, 3e-7])
def test_significant_digits_read_back_within_half_a_digit(value):
    assert float(significant(value).replace(" ", "")) == pytest.approx(value, rel=0.0051)


@cells(
    ("share", "text"),
    [(1.0, "100 %"), (0.0049, "<1 %"), (0.005, "0 %"), (-0.001, "0 %"), (NAN, "-"), (INF, "-")],
)
def test_percentages_have_no_decimals(share, text):
    assert percent(share) == text


@cells(
    ("value", "text"),
    [(262144.0, "262144"), (1e15, "1e+15"), (0.5, "0.5"), (INF, "inf"), (1e12, "1000000000000")],
)
def test_parameter_values_are_written_in_full(value, text):
    assert parameter_value(value) == text
    assert math.isclose(float(text), value)


def test_everything_can_be_written_in_ascii():
    assert to_ascii("●○ … → × µ ∞ é 計") == "*. ... -> x u inf ? ?"


@cells(
    ("value", "text"),
    [(418.3, "420"), (99.6, "100"), (9.7, "10"), (8.3, "8"), (1.0, "1"), (0.34, "0.3"),
     (1.35e6, "1400000")],
)  # fmt: skip
def test_a_rough_value_has_two_digits_and_below_ten_one(value, text):
    assert rough_value(value) == text
