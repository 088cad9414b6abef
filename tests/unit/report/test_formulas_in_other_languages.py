"""Formulas in other languages have the values of the models."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from callpath_modeler.modeling.products import Product, TermDifference, breaks, factor_text
from callpath_modeler.modeling.terms import Term
from callpath_modeler.report.model_formulas import (
    latex_formula,
    latex_growth,
    latex_number,
    python_formulas,
)
from cells import cells

POINTS = np.array([3.0, 8.0, 20.0, 64.0, 125.0, 512.0])
SCALES = np.array([1.0, 3.0, 8.0, 9.0, 100.0, 243.0, 4096.0, 262144.0])
TERMS = [
    *(Term(Fraction(i), j) for i in ("-2", "-1/3", "1/2", "1", "5/3", "3") for j in (0, 1, 2)),
    *(Term(0, 0, rate) for rate in (Fraction(1, 40), Fraction(-1, 40), Fraction(3, 400))),
    Term(2, 1, Fraction(1, 100)),
]
SHAPES = [*TERMS, *breaks(POINTS), TermDifference(Term(1, 0), Term(Fraction(2, 3), 0))]


@cells("shape", SHAPES)
def test_python_computes_what_the_model_does(shape):
    formula = f"2.5 - 3e-07 * {factor_text(shape, 'p', pretty=False, exact=True)}"
    with np.errstate(over="ignore"):
        said = eval(python_formulas([formula])[0], {"np": np}, {"p": SCALES})  # noqa: S307 - ours
        np.testing.assert_allclose(said, 2.5 - 3e-7 * shape(SCALES), rtol=1e-12)


def test_a_product_of_shapes_holds_together():
    product = Product((breaks(POINTS)[0], TermDifference(Term(1, 0), Term(0, 0)), Term(2, 0)))
    at = np.stack([SCALES, SCALES[::-1], SCALES], axis=1)
    formula = f"1.0 + 2.0 * {product.text(['p', 'n', 'k_2'], exact=True)}"
    names = dict(zip(["p", "n", "k_2"], at.T, strict=True))
    said = eval(python_formulas([formula])[0], {"np": np}, names)  # noqa: S307 - ours
    np.testing.assert_allclose(said, 1 + 2 * product(at))


@cells(
    ("formula", "written"),
    [
        ("0.0006349 + 2.98558e-05 * p^(3/2)", r"0.0006349 + 2.986 \cdot 10^{-5}\,p^{3/2}"),
        ("3.0 * p^-1 * log2(p)^2", r"3\,p^{-1}\,\log_2^{2} p"),
        ("-1.5 + 2.0 * log2(n_cells)", r"-1.5 + 2\,\log_2 \mathit{n\_cells}"),
        ("2.0 * (p - 1) * n", r"2\,(p - 1)\,n"),
        ("1.0 + 9.0 * [p > 45.25]", r"1 + 9\,[p > 45.25]"),
        ("4.0 * [p <= 2.828]", r"4\,[p \le 2.828]"),
        ("1.0 - 2.0 * max(0, p/60 - 1)", r"1 - 2\,\max(0, p/60 - 1)"),
        ("1.0 * (1 + (96/p)^3)^(1/3)", r"1\,(1 + (96/p)^{3})^{1/3}"),
        ("5.0 * (1 - exp(-p/30))", r"5\,(1 - e^{-p/30})"),
        ("1.0 * ceil(log_2(p))", r"1\,\lceil \log_2 p \rceil"),
        ("1.0 * ceil(log_16(p)) + 1.0 * p", r"1\,\lceil \log_{16} p \rceil + 1\,p"),
        ("1.0 * log2(2^20/p)/p", r"1\,\log_2 (2^{20}/p)/p"),
        ("7.0 * 2^(3/2 p)", r"7\,2^{3/2\,p}"),
        ("0", "0"),
    ],
)
def test_latex_of_a_formula(formula, written):
    assert latex_formula()(formula) == written


@pytest.mark.parametrize(
    ("growth", "written"),
    [
        ("O(p^(1/2) log p)", r"O(p^{1/2} \log p)"),
        ("O(log^2 p)", r"O(\log^{2} p)"),
        ("O(p^-1)", "O(p^{-1})"),
        ("O(1)", "O(1)"),
    ],
)
def test_latex_of_a_growth(growth, written):
    assert latex_growth(growth) == written


def test_numbers_have_four_digits():
    assert [latex_number(value) for value in (0.123456, 1e-9, 262144.0, 0.0)] == [
        "0.1235",
        r"1 \cdot 10^{-9}",
        r"2.621 \cdot 10^{5}",
        "0",
    ]
