from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callpath_modeler.modeling import GrowthSyntaxError, parse_growth, parse_growths
from cells import cells


@cells(
    ("texts", "canonical"),
    [
        (("O(1)", "1", " O( 1 ) ", "Θ(1)", "O(1 + 1/p)"), "O(1)"),
        (("O(p log p)", "p*log2(p)", "p · log₂ p", "log p p", "(p)(log p)"), "O(p log p)"),
        (("O(p^1.5)", "p**1.5", "p^(3/2)", "p sqrt(p)", "√p p"), "O(p^(3/2))"),
        (("log^2 p", "log(p)^2", "log² p", "(log p)^2", "ln p lg p", "log^2(p)"), "O(log^2 p)"),
        (("p^0.67", "p^(2/3)", "p^0.667", "p^0.66", "p^⅔", "(p^2)^(1/3)"), "O(p^(2/3))"),
        (("p^0.33", "p^(1/3)", "p^.333"), "O(p^(1/3))"),
        (("p^1.33", "p^(4/3)"), "O(p^(4/3))"),
        (("p^0.17",), "O(p^(1/6))"),
        (("p^0.3",), "O(p^(3/10))"),
        (("p^2.81",), "O(p^(281/100))"),
        (("sqrt(p)", "sqrt p", "√p", "p^0.5", "p^½", "p^0.50", "sqrt(p + log p)"), "O(p^(1/2))"),
        (("O(p^2 + p log p)", "p log p + p^2", "p (p + 1)"), "O(p^2)"),
        (("1/p", "p^-1", "p⁻¹", "p^(-1)", "p / p^2"), "O(p^-1)"),
        (("p/log p", "p log^-1 p", "p (1 / log p)"), "O(p / log p)"),
        (("log(p^2)", "log(p^3 + p)", "log(sqrt(p))"), "O(log p)"),
        (("log(2^p)", "log(p 2^p)"), "O(p)"),
        (("4^p", "2^(2 p)", "2^(2p)", "(2^p)^2"), "O(2^(2 p))"),
        (("2^(p/2)", "2^(0.5 p)", "2^(1/2 * p)", "2^(½ p)", "sqrt(2^p)"), "O(2^(p/2))"),
        (("2^(3p/2)", "2^(3/2 p)", "8^(p/2)"), "O(2^(3/2 p))"),
        (("2^-p", "2^(-p)", "1/2^p"), "O(2^-p)"),
    ],
)
def test_growths_are_read_as_people_write_them(texts: tuple[str, ...], canonical: str) -> None:
    for text in texts:
        assert str(parse_growth(text).growth) == canonical, text


def test_the_name_of_the_parameter_is_told() -> None:
    assert parse_growth("O(k^3 2^k)").parameter == "k"
    assert parse_growth("n_atoms log n_atoms").parameter == "n_atoms"
    assert parse_growth("O(1)").parameter is None
    assert parse_growth("O(1)", "p").parameter is None


def test_a_parameter_of_any_name_is_read_when_it_is_known() -> None:
    parsed = parse_growth("O(problem size^2 log problem size)", "problem size")
    assert str(parsed.growth) == "O(p^2 log p)"
    assert parsed.parameter == "problem size"
    with pytest.raises(GrowthSyntaxError, match="'p' is not the parameter, 'problem size'"):
        parse_growth("O(p)", "problem size")


@cells(
    ("text", "column", "message"),
    [
        ("", 0, "a factor is missing"),
        ("O(", 2, "a factor is missing"),
        ("O()", 2, "a factor is missing"),
        ("O(p", 3, "a bracket is open"),
        ("O(p))", 4, "growth ends before"),
        ("O(p) + O(p)", 5, "growth ends before"),
        ("O(p log q)", 8, "a second one besides 'p'"),
        ("2 p", 0, "no coefficients"),
        ("p + 2", 4, "no coefficients"),
        ("p^2/3", 3, "fraction in brackets"),
        ("2^k/2", 4, "no coefficients"),
        ("2^2", 0, "no coefficients"),
        ("2^(2)", 0, "no coefficients"),
        ("2^3 k", 0, "no coefficients"),
        ("p^k", 2, "exponentials with base 2"),
        ("3^k", 0, "base of an exponential must be 2"),
        ("1.5^k", 0, "base of an exponential must be 2"),
        ("1^k", 0, "base of an exponential must be 2"),
        ("2^(k k)", 5, "a number times the parameter"),
        ("2^(k", 4, "a number times the parameter"),
        ("log2p", 0, "put a blank"),
        ("p + plogp", 4, "put a blank"),
        ("exp(p)", 0, "no function is called 'exp'"),
        ("log", 3, "a factor is missing"),
        ("log 1", 4, "a factor is missing"),
        ("p log(1)", 2, "argument of a logarithm"),
        ("log(1/p)", 0, "argument of a logarithm"),
        ("log(log p)", 0, "argument of a logarithm"),
        ("log log p", 4, "logarithms of logarithms"),
        ("log p^2", 5, "inside or outside"),
        ("√p²", 2, "inside or outside"),
        ("p - 1", 2, "no differences"),
        ("p $ 2", 2, "'$' is not allowed here"),
        ("p^", 2, "a number is missing"),
        ("p^(1/2", 6, "')' is missing"),
        ("p^(1/0)", 5, "division by zero"),
        ("p^" + "9" * 5000, 2, "too many digits"),
        ("(" * 5000 + "p", 50, "too many brackets"),
        ("p /", 3, "a factor is missing"),
    ],
)
def test_a_text_that_is_no_growth_is_refused_with_the_place(
    text: str, column: int, message: str
) -> None:
    with pytest.raises(GrowthSyntaxError) as caught:
        parse_growth(text)
    assert message in caught.value.message
    assert (caught.value.text, caught.value.column) == (text, column)


@cells(
    ("text", "along"),
    [
        ("O(n^2 / p)", {"n": "O(n^2)", "p": "O(p^-1)"}),
        ("n^2 / p + n log p", {"n": "O(n^2)", "p": "O(log p)"}),
        ("2^(k/2) n^3", {"k": "O(2^(k/2))", "n": "O(n^3)"}),
        ("log(n p) sqrt(n)", {"n": "O(n^(1/2) log n)", "p": "O(log p)"}),
        ("p log p", {"p": "O(p log p)"}),
        ("O(1)", {}),
    ],
)
def test_a_growth_in_several_parameters_is_read_along_each(
    text: str, along: dict[str, str]
) -> None:
    assert {name: growth.text(name) for name, growth in parse_growths(text).items()} == along


def test_a_growth_in_several_parameters_has_no_coefficients() -> None:
    for text in ("3 n / p", "log(2) p", "n p - p", "n /"):
        with pytest.raises(GrowthSyntaxError):
            parse_growths(text)


def test_a_fault_points_at_its_place_whatever_the_text_holds() -> None:
    with pytest.raises(GrowthSyntaxError) as caught:
        parse_growth("p\tlog\nq")
    assert "at column 7 of 'p\\tlog\\nq'" in str(caught.value)


@settings(max_examples=150)
@given(st.text(alphabet="pk 12+-*/^().½²log√O", max_size=12) | st.text(max_size=8))
def test_no_text_does_more_than_be_read_or_refused(text: str) -> None:
    fault: GrowthSyntaxError | None = None
    try:
        parsed = parse_growth(text)
        assert parse_growth(str(parsed.growth)).growth == parsed.growth
    except GrowthSyntaxError as error:
        fault = error
    assert fault is None or (fault.text, fault.column <= len(text)) == (text, True)
