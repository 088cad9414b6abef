"""Screening of hypotheses in the C library and in NumPy."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from callpath_modeler.modeling.compiled import library
from callpath_modeler.modeling.compiled.library import call
from callpath_modeler.modeling.mixture.one_parameter import hypotheses
from callpath_modeler.modeling.mixture.residuals import screen
from callpath_modeler.modeling.products_of_factors import joint_hypotheses
from callpath_modeler.modeling.terms import DEFAULT_SPACE, JOINT_SPACE, SearchSpace
from cells import cells
from implementations import in_numpy
from many_rows import KINDS, many_rows, rows_to_fit


def both(data, known, ways):
    """Return the selected hypotheses with the library and without it."""
    arguments = data, known, known.log_prior, ways.extremes
    with_it = screen(*arguments)
    with in_numpy():
        return with_it, screen(*arguments)


def chosen_by_row(found, known):
    """Return the hypotheses of each row, as a set of sets."""
    shapes = len(known.shapes)
    rows = [set() for _ in found.variance]
    for family, which in enumerate(found.families):
        for row, shape in zip(found.row[which], found.shape[which], strict=True):
            rows[row].add((1 + family) * shapes + shape)
    for row, pair in zip(found.pair_row, found.pair, strict=True):
        rows[row].add(4 * shapes + pair)
    return rows


@cells("name", KINDS)
def test_the_library_chooses_what_numpy_chooses(name):
    points, y = many_rows(KINDS[name], 400)
    known = hypotheses(DEFAULT_SPACE, points)
    data, ways = rows_to_fit(points, y)
    found, expected = both(data, known, ways)
    np.testing.assert_allclose(found.variance, expected.variance, rtol=1e-8)
    pairs = zip(chosen_by_row(found, known), chosen_by_row(expected, known), strict=True)
    same = np.array([one == other for one, other in pairs])
    # After gaps and zeros, shapes may be equal at the remaining points; then rounding decides.
    assert same.mean() >= (0.97 if name in {"with gaps", "with zeros"} else 0.995)
    # NumPy computes bounds in single precision.
    np.testing.assert_allclose(found.fitted[same], expected.fitted[same], rtol=1e-5)
    np.testing.assert_array_equal(found.scattered, expected.scattered)


SPACES = {
    "two parameters": (JOINT_SPACE, 2, 0.0),
    "with gaps": (JOINT_SPACE, 2, 0.1),
    "three parameters": (SearchSpace.of(["-1", "1/2", 1, 2], [0, 1], 2), 3, 0.0),
    "no pairs but those of fans": (SearchSpace.of([1], [0], 2), 2, 0.0),
}


@pytest.mark.parametrize("name", SPACES)
def test_the_library_chooses_what_numpy_chooses_in_several_parameters(name):
    space, parameters, missing = SPACES[name]
    axes = ((8.0, 16.0, 32.0, 64.0), (10.0, 20.0, 30.0, 40.0), (1.0, 2.0, 4.0))[:parameters]
    grid = np.array(list(product(*axes)))
    known = joint_hypotheses(space, grid)
    rng = np.random.default_rng(3)
    p, n = grid.T[:2]
    laws = np.array([n**3 / p, 3 + 0 * p, n * np.log2(p), n**2 / p + 0.2 * p, 5 + np.sqrt(p)])
    y = laws[..., None] * np.exp(0.05 * rng.standard_normal((*laws.shape, 3)))
    y[rng.random(laws.shape) < missing] = np.nan
    data, ways = rows_to_fit(grid, y)
    found, expected = both(data, known, ways)
    np.testing.assert_allclose(found.variance, expected.variance, rtol=1e-8)
    np.testing.assert_allclose(found.fitted, expected.fitted, rtol=1e-4)
    for one, other in zip(chosen_by_row(found, known), chosen_by_row(expected, known), strict=True):
        assert len(one ^ other) <= 0.01 * len(other)


def test_the_library_chooses_what_numpy_chooses_for_any_number_of_shapes():
    points, y = many_rows(KINDS["usual"], 30)
    data, ways = rows_to_fit(points, y)
    shapes, pairs = set(), set()
    for count, logs in product(range(1, 17), ([0], [0, 1])):
        space = SearchSpace.of([Fraction(power, 4) for power in range(1, 1 + count)], logs, 2)
        known = hypotheses(space, points)
        shapes.add(len(known.shapes) % 16)
        pairs.add(len(known.first) % 16)
        found, expected = both(data, known, ways)
        assert chosen_by_row(found, known) == chosen_by_row(expected, known)
        np.testing.assert_allclose(found.fitted, expected.fitted, rtol=1e-5)
    assert {0, 1, 15} <= shapes
    assert 0 in pairs


def test_a_row_is_screened_by_itself():
    points, y = many_rows(KINDS["usual"], 60)
    known = hypotheses(DEFAULT_SPACE, points)
    data, ways = rows_to_fit(points, y)
    found = screen(data, known, known.log_prior, ways.extremes)
    order = np.random.default_rng(2).permutation(60)
    other = screen(data.take(order), known, known.log_prior, ways.extremes)
    np.testing.assert_array_equal(other.fitted, found.fitted[order])
    rows = chosen_by_row(found, known)
    assert chosen_by_row(other, known) == [rows[row] for row in order]


@pytest.mark.parametrize("noted", [0, 1])
def test_rows_for_which_there_is_no_room_are_screened_later(noted, monkeypatch):
    points, y = many_rows(KINDS["usual"], 300)
    known = hypotheses(DEFAULT_SPACE, points)
    data, ways = rows_to_fit(points, y)
    arguments = data, known, known.log_prior, ways.extremes
    found, calls = library.screened(*arguments), []
    monkeypatch.setattr(library, "NOTED", noted)
    monkeypatch.setattr(
        library, "call", lambda *a, **numbers: calls.append(a) or call(*a, **numbers)
    )
    later = library.screened(*arguments)
    assert len(calls) > 1
    for one, other in zip(found, later, strict=True):
        np.testing.assert_array_equal(one, other)
