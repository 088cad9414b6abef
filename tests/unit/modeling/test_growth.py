from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from callpath_modeler.modeling import Growth, parse_growth
from callpath_modeler.modeling.growth import CONSTANT_GROWTH
from cells import cells

powers = st.fractions(min_value=-4, max_value=4, max_denominator=12)
growths = st.builds(Growth, powers, powers, powers)
quick = settings(max_examples=60)


@cells(
    ("exponent", "log", "text", "pretty"),
    [
        ("0", "0", "O(1)", "O(1)"),
        ("0", "1", "O(log p)", "O(log p)"),
        ("0", "2", "O(log^2 p)", "O(log² p)"),
        ("0", "1/2", "O(log^(1/2) p)", "O(log^½ p)"),
        ("0", "-1", "O(1 / log p)", "O(1 / log p)"),
        ("1/2", "0", "O(p^(1/2))", "O(p^½)"),
        ("1/2", "-2", "O(p^(1/2) / log^2 p)", "O(p^½ / log² p)"),
        ("1", "1", "O(p log p)", "O(p log p)"),
        ("2", "0", "O(p^2)", "O(p²)"),
        ("2/3", "0", "O(p^(2/3))", "O(p^⅔)"),
        ("3/2", "2", "O(p^(3/2) log^2 p)", "O(p^(3/2) log² p)"),
        ("-1", "0", "O(p^-1)", "O(p⁻¹)"),
        ("-1/2", "0", "O(p^(-1/2))", "O(p^-½)"),
    ],
)
def test_growth_is_written_in_o_notation(exponent: str, log: str, text: str, pretty: str) -> None:
    growth = Growth(Fraction(exponent), Fraction(log))
    assert growth.text() == str(growth) == text
    assert growth.text(pretty=True) == pretty
    assert growth.text("n") == text.replace("p", "n")


@cells(
    ("rate", "text", "pretty"),
    [
        ("1", "O(k^3 2^k)", "O(k³ 2^k)"),
        ("1/2", "O(k^3 2^(k/2))", "O(k³ 2^(k/2))"),
        ("2/3", "O(k^3 2^(2/3 k))", "O(k³ 2^(⅔ k))"),
        ("-1", "O(k^3 2^-k)", "O(k³ 2^-k)"),
        ("-1/2", "O(k^3 2^(-k/2))", "O(k³ 2^(-k/2))"),
        ("-5/2", "O(k^3 2^(-5/2 k))", "O(k³ 2^(-5/2 k))"),
    ],
)
def test_exponentials_are_powers_of_two(rate: str, text: str, pretty: str) -> None:
    growth = Growth(Fraction(3), 0, Fraction(rate))
    assert (growth.text("k"), growth.text("k", pretty=True)) == (text, pretty)


def test_growth_is_ordered_by_exponential_then_exponent_then_logarithm() -> None:
    ladder = [
        parse_growth(text).growth
        for text in ("2^-p", "1/p", "p^-0.5", "1/log p", "1", "log^0.5 p", "log^2 p", "sqrt(p)")
    ]
    ladder += [parse_growth(text).growth for text in ("sqrt(p) log p", "p", "p^9", "2^(p/9)")]
    assert sorted(set(ladder)) == ladder


def test_equal_growths_are_one_key_however_they_came_about() -> None:
    half = Growth(Fraction(0), 1) ** Fraction(1, 2)
    assert {half * half: "found"}[Growth(Fraction(0), 1)] == "found"


def test_powers_are_exact() -> None:
    growth = parse_growth("k^3 2^k log k").growth
    assert growth ** Fraction(1, 3) == parse_growth("k 2^(k/3) log^(1/3) k").growth
    assert growth**-1 == CONSTANT_GROWTH / growth
    assert growth**0 == CONSTANT_GROWTH


def test_values_are_those_of_the_function() -> None:
    assert Growth(Fraction(3, 2), 2)([1.0, 4.0, 16.0]).tolist() == [0.0, 32.0, 1024.0]
    assert Growth(Fraction(0), Fraction(1, 2))([16.0]).tolist() == [2.0]
    assert Growth(Fraction(1), 0, Fraction(1, 2))([4.0]).tolist() == [16.0]
    assert np.isinf(Growth(Fraction(0), 0, Fraction(1))([2000.0, np.inf])).all()


@quick
@given(growths, growths, growths)
def test_products_are_a_group_that_keeps_the_order(a: Growth, b: Growth, c: Growth) -> None:
    assert a * b == b * a
    assert (a * b) / b == a
    assert a / a == CONSTANT_GROWTH
    assert (a < b) == (a * c < b * c) == (b / a > CONSTANT_GROWTH)
    assert (a < b) + (a == b) + (a > b) == 1


@quick
@given(growths, growths, powers.filter(lambda power: power > 0))
def test_powers_keep_the_order_and_undo_each_other(a: Growth, b: Growth, n: Fraction) -> None:
    assert (a < b) == (a**n < b**n)
    assert (a**n) ** (1 / n) == a
    assert a**n * b**n == (a * b) ** n


def _logarithm_at_huge_scale(growth: Growth) -> Fraction:
    """Return log2 of the function at p = 2**(2**15), exactly."""
    doublings = 2**15
    return growth.rate * 2**doublings + growth.exponent * doublings + growth.log * 15


@quick
@given(
    st.builds(Growth, powers, powers),
    st.builds(Growth, powers, powers),
)
def test_the_faster_growth_is_the_larger_function_at_a_huge_scale(a: Growth, b: Growth) -> None:
    assert (a < b) == (_logarithm_at_huge_scale(a) < _logarithm_at_huge_scale(b))


@quick
@given(growths, st.sampled_from(["p", "n_atoms", "größe"]), st.booleans())
def test_what_is_written_is_read_back(growth: Growth, parameter: str, pretty: bool) -> None:
    parsed = parse_growth(growth.text(parameter, pretty=pretty))
    assert parsed.growth == growth
    assert parsed.parameter in (parameter, None)
    assert (parsed.parameter is None) == (growth == CONSTANT_GROWTH)
