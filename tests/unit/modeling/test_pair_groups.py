"""Groups of pairs: their members, and bounds that hold for all members."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from callpath_modeler.modeling import Break, Product, SearchSpace, Term, TermDifference
from callpath_modeler.modeling.factor_catalogue import SHARED
from callpath_modeler.modeling.mixture.scaled_rows import error_unit, relative_weights
from callpath_modeler.modeling.products import NOTHING
from callpath_modeler.modeling.products_of_factors import joint_hypotheses
from many_rows import rows_to_fit
from oracle.bounds import (
    expand,
    group_bounds,
    regress,
    residuals_beside,
)

POINTS = np.array(list(product((4.0, 8.0, 16.0, 32.0), (10.0, 20.0, 30.0), (1.0, 2.0, 4.0))))
SPACE = SearchSpace.of(["-1", "1/2", 1, 2], [0, 1], max_terms=2)
TREE = Term(Fraction(-1), 1)


@pytest.fixture(scope="module")
def known():
    return joint_hypotheses(SPACE, POINTS)


@pytest.fixture(scope="module")
def seen(known):
    """Return rows with noise, some with missing values, and their regressions under two drifts."""
    rng = np.random.default_rng(4)
    p, n, m = POINTS.T
    laws = np.array([n**2 / p + p, 3 + 0 * p, np.sqrt(p) * n * m + 50 / m, 5 + np.log2(p) + n])
    y = laws[..., None] * np.exp(0.1 * rng.standard_normal((*laws.shape, 2)))
    y[1::2][rng.random((2, len(POINTS))) < 0.2] = np.nan
    data, ways = rows_to_fit(POINTS, y)
    unit = error_unit(data, data.values)
    weights = [relative_weights(data, unit, drift).T for drift in ways.extremes]
    return data, [regress(data, known, each) for each in weights]


def left_by(data, seen, row, table):
    """Return the residual of a row after a least-squares regression on columns."""
    weight = np.sqrt(seen.weights[:, row])
    columns = np.stack([np.ones(len(weight)), *table], axis=1) * weight[:, None]
    values = data.values[row] * weight
    numbers = np.linalg.lstsq(columns, values, rcond=None)[0]
    return ((values - columns @ numbers) ** 2).sum(), numbers


def test_a_pair_has_the_shape_and_the_term_that_its_number_says(known):
    fans, size = known.fans, len(known.fans.terms)
    axes = [known.shapes[code].axes for code in fans.terms]
    assert [axes.count({axis}) for axis in range(3)] == np.diff([0, *fans.ends]).tolist()
    assert all(axes[place] == {0} for place in range(fans.ends[0]))
    for shape, place in ((0, 0), (100, 3), (len(known.shapes) - 1, size - 1)):
        pair = fans.start + shape * size + place
        assert sorted([shape, fans.terms[place]]) == [known.first[pair], known.second[pair]]
    assert len(known.first) == fans.start + len(known.shapes) * size


def falls(shape):
    return any(factor.decreasing for factor in shape.factors)


def is_seldom(shape):
    return any(isinstance(factor, TermDifference) or factor == TREE for factor in shape.factors)


def breaks(shape):
    return any(isinstance(factor, Break) for factor in shape.factors)


def test_each_shape_is_beside_each_term_once(known):
    prior = known.log_prior[1 + 3 * len(known.shapes) :]
    there = np.isfinite(prior)
    pairs = list(zip(known.first[there].tolist(), known.second[there].tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    falling = {code for code, shape in enumerate(known.shapes) if shape.decreasing}
    assert not any(first == second for first, second in pairs)
    both = [{first, second} for first, second in pairs if {first, second} <= falling]
    assert both
    wholly = {Product(factors) for factors in product((NOTHING, SHARED), repeat=3)}
    of_both = [{known.shapes[code] for code in pair} for pair in both]
    # Transpositions occur with a size and without one.
    assert all(wholly & pair or all(map(is_seldom, pair)) for pair in of_both)
    growing = [
        code
        for code, shape in enumerate(known.shapes)
        if code not in falling and not is_seldom(shape) and not breaks(shape)
    ]
    expected = {
        (min(code, term), max(code, term))
        for code in growing
        for term in known.fans.terms.tolist()
        if code != term
    }
    assert expected <= set(pairs)


def test_what_is_seldom_a_factor_is_beside_plain_ones_only(known):
    pairs = slice(1 + 3 * len(known.shapes), None)
    there = np.flatnonzero(np.isfinite(known.log_prior[pairs]))
    steep = Term(Fraction(2), 1)
    for pair in there:
        shapes = [known.shapes[code] for code in (known.first[pair], known.second[pair])]
        with_it = list(filter(is_seldom, shapes))
        if not with_it:
            continue
        assert all(len(shape.axes) > 1 for shape in with_it) or len(with_it) == 2
        assert not any(steep in shape.factors for shape in shapes if len(shape.axes) == 1)
        for shape in with_it:
            assert steep not in shape.factors
            assert sum(is_seldom(Product((factor,))) for factor in shape.factors) == 1
    alone = [code for code, shape in enumerate(known.shapes) if is_seldom(shape)]
    singles = np.array([code for code in alone if len(known.shapes[code].axes) == 1])
    prior = known.log_prior[1 : pairs.start].reshape(3, -1)
    assert len(singles)
    assert np.isneginf(prior[:, singles]).all()
    products = sorted({*alone} - {*singles.tolist()})
    assert np.isfinite(prior[[0, 2]][:, products]).all()
    never = [shape.decreasing is False and falls(shape) for shape in known.shapes]
    assert np.array_equal(np.isneginf(prior[1, products]), np.array(never)[products])


def test_no_pair_of_a_fan_leaves_less_than_its_shape_beside_any_function(known, seen):
    data, looks = seen
    rows, fans = np.arange(len(data.values)), known.fans
    rng = np.random.default_rng(5)
    for view in looks:
        left = residuals_beside(view, rows, data, fans, known.table)
        for shape, place, row in rng.integers(
            (len(known.shapes), len(fans.terms), 4), size=(300, 3)
        ):
            axis = np.searchsorted(fans.ends, place, side="right")
            columns = known.table[[shape, fans.terms[place]]]
            of_pair, numbers = left_by(data, view, row, columns)
            if numbers[1] >= 0:
                assert of_pair >= left[3 * shape + axis, row] * (1 - 1e-9) - 1e-12


def test_beside_a_level_for_each_value_a_shape_leaves_what_is_said(known, seen):
    data, (view, _) = seen
    rows = np.arange(len(data.values))
    left = residuals_beside(view, rows, data, known.fans, known.table)
    for axis, row, shape in product(range(3), rows, range(0, len(known.shapes), 37)):
        levels = np.eye(4)[known.fans.levels[axis]].T
        expected, numbers = left_by(data, view, row, [known.table[shape], *levels])
        if numbers[1] < 0:
            expected, _ = left_by(data, view, row, levels)
        assert left[3 * shape + axis, row] == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_the_most_promising_fans_are_opened_and_none_that_is_out_of_question(known, seen):
    data, looks = seen
    prior = known.log_prior[1 + 3 * len(known.shapes) :]
    bounds = group_bounds(looks, np.array([0]), data, known.fans, known.table, prior)[:, 0]
    few = expand(bounds, float(bounds.max()), known.fans)
    size = len(known.fans.terms)
    shape, place = np.divmod(few - known.fans.start, size)
    fan = 3 * shape + np.searchsorted(known.fans.ends, place, side="right")
    which = np.unique(fan)
    assert 0 < len(which) <= known.fans.opened
    assert bounds[which].min() >= np.delete(bounds, which).max() or (
        len(which) < known.fans.opened and bounds[which].min() >= bounds.max() - 25
    )
    assert not expand(bounds, float(bounds.max()) + 30, known.fans).size


def test_of_fans_that_are_as_promising_but_for_rounding_the_first_are_opened(known):
    fans = replace(known.fans, opened=40)
    rng = np.random.default_rng(6)
    even = rng.permutation(len(known.shapes) * 3)[:100]
    expected = np.sort(np.append(even[:10], np.sort(even[10:])[:30]))
    for _ in range(3):
        bounds = np.full(len(known.shapes) * 3, -5, dtype=np.float32)
        bounds[even] = rng.uniform(1, 1 + 1e-5, len(even))
        bounds[even[:10]] += 1
        pairs = expand(bounds, 1.0, fans) - fans.start
        shape, place = np.divmod(pairs, len(fans.terms))
        found = 3 * shape + np.searchsorted(fans.ends, place, side="right")
        assert np.unique(found).tolist() == expected.tolist()


def test_a_space_of_one_term_a_model_has_no_pairs():
    known = joint_hypotheses(SearchSpace.of([1], [0], max_terms=1), POINTS)
    assert known.fans is None
    assert not known.first.size
