"""Pairs of products of several factors."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from callpath_modeler.modeling.factor_catalogue import Catalogue
from callpath_modeler.modeling.products_of_factors import always_tested_pairs
from callpath_modeler.modeling.terms import JOINT_SPACE, SearchSpace

NAMES = ("p", "n", "m")


def written(axes, space=JOINT_SPACE):
    """Return the pairs over a grid of some parameters as texts."""
    points = np.array(list(product((2.0, 4.0, 8.0), repeat=axes)))
    products = Catalogue.of(space, points)
    products = products.take(products.by_growth(np.arange(products.code.shape[1])))
    texts = [shape.text(NAMES[:axes]) for shape in products.shapes()]
    pairs = always_tested_pairs(products)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    return {frozenset((texts[first], texts[second])) for first, second in pairs}


@pytest.fixture(scope="module")
def of_two():
    return written(2)


def test_a_volume_that_is_shared_is_beside_its_surface(of_two):
    for surface, volume in (
        ("p^(-2/3) * n^2", "p^-1 * n^3"),
        ("p^(-1/2) * n", "p^-1 * n^2"),
        ("p^(-2/3) * n^(2/3)", "p^-1 * n"),
        ("p^2 * n^(-2/3)", "p^3 * n^-1"),
    ):
        assert {surface, volume} in of_two


def test_an_exchange_with_all_but_oneself_is_beside_that_without_a_size(of_two):
    for alone, with_size in (
        ("(p - 1)", "(p - 1) * n"),
        ("(1 - p^-1)", "(1 - p^-1) * n^2"),
        ("(n^2 - n)", "p * (n^2 - n)"),
    ):
        assert {alone, with_size} in of_two


def test_of_three_parameters_what_is_no_part_of_a_volume_stays():
    of_three = written(3)
    assert {"p^(-2/3) * n^2 * m", "p^-1 * n^3 * m"} in of_three
    assert {"p^(-1/2) * n^(1/2) * m^(1/2)", "p^-1 * n * m"} in of_three
    assert {"(p - 1) * m", "(p - 1) * n * m"} in of_three


def test_a_space_without_such_terms_has_none_of_these():
    few = written(2, SearchSpace.of(["1/2", 2], [0], max_terms=2))
    assert few
    assert not any("-" in text for pair in few for text in pair)


def test_a_factor_is_beside_sums_of_the_other_parameter(of_two):
    for first, second in (
        ("p^-1 * n^3", "p^(-1/2) * n^3"),
        ("p^(1/3) * n", "p^(1/3) * n^3"),
    ):
        assert {first, second} in of_two


def test_of_what_is_shared_in_all_parameters_some_may_be_shared_less(of_two):
    for whole, less in (
        ("p^-1 * n^-1", "p^-1"),
        ("p^-1 * n^-1", "p^(-2/3) * n^(-2/3)"),
        ("p^-1", "p^(-1/2)"),
        ("p^-1", "n^-1"),
    ):
        assert {whole, less} in of_two
    assert {"p^(-1/2)", "p^(-1/3)"} not in of_two
