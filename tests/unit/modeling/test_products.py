"""Products of factors, the parts of laws in several parameters."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from callpath_modeler.modeling import Product, Term, TermDifference
from callpath_modeler.modeling.growth import Growth
from callpath_modeler.modeling.products import NOTHING
from callpath_modeler.modeling.shapes import shape_table


def test_a_product_knows_its_growth_and_its_parameters():
    root = Term(Fraction(1, 2), 0)
    shape = Product((Term(Fraction(-1), 0), NOTHING, Term(Fraction(1, 2), 1)))
    assert shape.growth == Growth(Fraction(-1, 2), 1)
    assert not shape.decreasing
    assert Product((Term(Fraction(-1), 0), NOTHING)).decreasing
    assert not Product((NOTHING, root)).decreasing
    assert shape.text(("p", "n", "k")) == "p^-1 * k^(1/2) * log2(k)"


def test_a_logarithm_in_a_formula_for_people_is_of_one_parameter():
    logs, linear = Term(Fraction(0), 2), Term(Fraction(1), 1)
    assert Product((logs, linear)).text(["x", "y"], pretty=True) == "(log₂² x) y log₂ y"
    assert Product((linear, NOTHING)).text(["x", "y"], pretty=True) == "x log₂ x"
    assert Product((logs, linear)).text(["x", "y"]) == "log2(x)^2 * y * log2(y)"


def test_a_difference_may_be_a_factor():
    root, shared = (Term(Fraction(power), 0) for power in ("1/2", "-1"))
    rising, easing = TermDifference(root, NOTHING), TermDifference(NOTHING, shared)
    points = np.array([[1.0, 3.0], [4.0, 3.0], [16.0, 5.0]])
    shapes = [Product((rising, NOTHING)), Product((easing, root)), Product((root, shared))]
    table = shape_table(shapes, points)[:-1]
    assert table == pytest.approx(np.array([shape(points) for shape in shapes]))
    assert table[0].tolist() == [0.0, 1.0, 3.0]
    assert table[1] == pytest.approx([0.0, 0.75 * np.sqrt(3), 0.9375 * np.sqrt(5)])
    assert (rising.growth, easing.growth) == (Growth(Fraction(1, 2), 0), Growth(Fraction(0), 0))
    assert easing(np.inf) == 1
    assert rising(np.inf) == np.inf
    shape = Product((easing, Term(Fraction(2), 0)))
    assert not shape.decreasing
    assert shape.text(("p", "n")) == "(1 - p^-1) * n^2"
    assert shape.text(("p", "n"), pretty=True) == "(1 - p⁻¹) n²"
    assert Product((rising, NOTHING)).text(("p", "n")) == "(p^(1/2) - 1)"
    assert Product.from_header(shape.to_header()) == shape


def test_products_beyond_all_numbers_are_infinite_and_no_warning():
    square, doubling = Term(Fraction(2), 0), Term(Fraction(0), 0, Fraction(1))
    points = np.array([[1e150, 1e10], [8.0, 5000.0], [8.0, 2.0]])
    products = [Product((square, square)), Product((square, doubling))]
    assert shape_table(products, points)[:-1].tolist() == [
        [np.inf, 64 * 25e6, 256],
        [np.inf, np.inf, 256],
    ]
