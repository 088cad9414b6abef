"""Candidates of the C library and of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from callpath_modeler.modeling.mixture.candidates import Candidates, candidates
from callpath_modeler.modeling.products_of_factors import joint_hypotheses
from callpath_modeler.modeling.terms import JOINT_SPACE
from cells import cells
from implementations import in_numpy
from many_rows import KINDS, many_rows, screened


def both(given):
    """Return candidates in order, of the library and of NumPy."""
    found = candidates(*given)
    with in_numpy():
        return in_order(found), in_order(candidates(*given))


def in_order(found):
    order = np.lexsort((found.chosen, found.row))
    return Candidates(
        found.row[order],
        found.chosen[order],
        found.log_evidence[:, order],
        found.coefficients[..., order],
        found.covariance[..., order],
    )


def compare(found, expected):
    """Check that all candidates are equal; rounding decides between nearly equal shapes."""
    np.testing.assert_array_equal(found.row, expected.row)
    np.testing.assert_array_equal(found.chosen, expected.chosen)
    assert np.isfinite(found.coefficients).all()
    likely, expected_likely = np.exp(found.log_evidence), np.exp(expected.log_evidence)
    apart = np.abs(likely - expected_likely).max(axis=0)
    assert apart.max() < 1e-3
    assert np.mean(apart < 1e-8) > 0.98
    for name in ("coefficients", "covariance"):
        columns, others = getattr(found, name), getattr(expected, name)
        size = np.maximum(np.abs(others).max(axis=1, keepdims=True), 1e-300)
        apart = (np.abs(columns - others) / size).max(axis=(0, 1))
        assert apart.max() < 1e-5
        assert np.mean(apart < 1e-9) > 0.99


@cells("name", KINDS)
def test_the_library_weighs_as_numpy_does(name):
    compare(*both(screened(*many_rows(KINDS[name], 300))))


def test_the_library_weighs_as_numpy_does_over_580_orders_of_magnitude():
    points, y = many_rows(KINDS["usual"], 100)
    y *= 10.0 ** np.linspace(-290, 290, 100)[:, None, None]
    compare(*both(screened(points, y)))


def test_the_library_weighs_as_numpy_does_in_several_parameters():
    grid = np.array([(p, n) for p in (8, 16, 32, 64) for n in (10, 20, 30, 40)], dtype=float)
    p, n = grid.T
    laws = np.array([n**3 / p, 3 + 0 * p, n * np.log2(p), n**2 / p + 0.2 * p, 5 + np.sqrt(p)])
    random = np.random.default_rng(3)
    y = laws[..., None] * np.exp(0.05 * random.standard_normal((*laws.shape, 3)))
    known = joint_hypotheses(JOINT_SPACE, grid)
    compare(*both(screened(grid, y, known)))


def test_all_hypotheses_can_be_candidates():
    points, y = many_rows(KINDS["usual"], 20)
    data, chosen, known, ways = screened(points, y)
    rows, size = np.arange(20), len(known.shapes)
    every = np.arange(20 * size)
    chosen = structs.replace(
        chosen,
        row=np.repeat(rows, size),
        shape=np.tile(np.arange(size), 20),
        families=(every, every, every),
        pair_row=np.repeat(rows, len(known.first)),
        pair=np.tile(np.arange(len(known.first)), 20),
    )
    found, expected = both((data, chosen, known, ways))
    compare(found, expected)
    assert len(found.row) == 20 * len(known.log_prior)


@pytest.mark.parametrize("name", ["noisy", "exact"])
def test_a_row_is_weighed_by_itself(name):
    data, chosen, known, ways = screened(*many_rows(KINDS[name], 60))
    found = candidates(data, chosen, known, ways)
    for row in (0, 17, 59):
        only = np.array([row])
        alone = candidates(data.take(only), chosen.take(only), known, ways)
        its = found.row == row
        np.testing.assert_array_equal(alone.chosen, found.chosen[its])
        np.testing.assert_array_equal(alone.log_evidence, found.log_evidence[:, its])
        np.testing.assert_array_equal(alone.covariance, found.covariance[..., its])


def test_candidates_are_ordered_by_row():
    found = candidates(*screened(*many_rows(KINDS["usual"], 50)))
    assert (np.diff(found.row) >= 0).all()
    assert (np.diff(found.row, prepend=-1) > 0).tolist() == (found.chosen == 0).tolist()
