"""Hypotheses in several parameters: products of factors, alone and in pairs.

Every product is paired with every term of one parameter, in fans; a row evaluates a few fans. There
are too many pairs of two products, and too many products of three or four factors. Only the
plainest are kept. These have factors of known programs, or are pairs of which one product follows
from the other. Any other law is approximated by its neighbours; their error is a deviation that
widens the band. See docs/explanation/several-parameters.md.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.priors import ALIKE
from callpath_modeler.modeling.constants.screening import EVERY
from callpath_modeler.modeling.constants.several import (
    BROKEN,
    CLOSEST_OF_SEVERAL,
    HELD,
    MORE_THAN_SHARED,
    OPENED,
    PLAIN,
    PRIOR,
)
from callpath_modeler.modeling.mixture.hypotheses import (
    Hypotheses,
    HypothesisGroup,
    PairGroups,
    ScreeningLimits,
    assemble_hypotheses,
    with_prior,
)
from callpath_modeler.modeling.several.catalogue import Catalogue
from callpath_modeler.modeling.several.related_pairs import always_tested_pairs
from callpath_modeler.modeling.terms import SearchSpace

_KEPT = ScreeningLimits(habits=CLOSEST_OF_SEVERAL, pairs=EVERY, frugal=True)
"""Limits on the hypotheses of a row: all pairs that are tried count.

Under much noise, chance decides which of them are closest.
"""

_NO_PAIRS = np.empty((0, 2), dtype=np.intp)


class _Kind(IntEnum):
    """Kinds of hypotheses; laws of one factor and of several are separate kinds."""

    CONSTANT = 0
    FACTOR = 1  # one factor, growing
    PRODUCT = 2  # a product of several factors, growing
    FALLING = 3
    OFFSET_FACTOR = 4
    OFFSET_PRODUCT = 5
    SUM = 6  # a factor and one of another parameter
    SHARED = 7  # a factor and shared work, a product that falls; or more of that work
    BESIDE = 8  # a factor and any other product
    ONE_PARAMETER = 9  # two factors of one parameter
    PRODUCTS = 10  # two products of several factors
    BREAK = 11  # a break along a parameter: outside the model class
    RISING = 12  # a falling and a growing factor of one parameter: U-shapes
    OF_A_SHARE = 13  # a product that falls with one parameter, times a sum in another
    NEVER = 14


_PRIOR = {_Kind[name]: share for name, share in PRIOR.items()}


def joint_hypotheses(space: SearchSpace, points: FloatArray) -> Hypotheses:
    """Return the hypotheses of a search space over `points` [K, D].

    Raises
    ------
    ValueError
        If no term of the space fits the points.
    """
    products = Catalogue.of(space, points)
    # Products that overflow at these points are left out.
    with np.errstate(over="ignore", invalid="ignore"):
        table = products.values(points)
        size = np.abs(table).max(axis=1)
        varies = np.isfinite(size) & (size > 0) & (np.ptp(table, axis=1) > ALIKE * size)
    kept = products.by_growth(np.flatnonzero(varies))
    if not kept.size:
        raise ValueError("no term of the space varies over the points")
    products, table, scale = products.take(kept), table[kept], size[kept]
    group = np.where(products.falling, HypothesisGroup.FALLING, HypothesisGroup.GROWING)
    group[products.breaks] = HypothesisGroup.BREAK
    weight, plain = products.weight(space), 2.0**-products.cost
    fixed = always_tested_pairs(products) if space.max_terms > 1 else _NO_PAIRS
    known = assemble_hypotheses(
        products.shapes(), table / scale[:, None], scale, group, fixed, _KEPT
    )
    each = weight * plain
    of_pair, structure = _kinds_of_pairs(products)
    of_fixed = of_pair[structure[known.first], structure[known.second]]
    both = weight[known.first] * weight[known.second]
    both *= 2.0 ** -products.together(known.first, known.second)
    shared, of_share = _with_sum_of_same(products, known.first, known.second)
    of_fixed[shared], both[shared] = _Kind.SHARED, both[shared] * MORE_THAN_SHARED
    of_fixed[of_share] = _Kind.OF_A_SHARE
    kinds = [_kinds_of_singles(products), of_fixed]
    if space.max_terms > 1 and products.single.any():
        fans = _fans(products, points, len(fixed))
        terms, every = fans.terms, np.arange(len(each))[:, None]
        slower, faster = np.minimum(every, terms).ravel(), np.maximum(every, terms).ravel()
        first, second = np.append(known.first, slower), np.append(known.second, faster)
        known = replace(known, first=first, second=second, fans=fans)
        kinds.append(of_pair[:, structure[terms]][structure].ravel())
        of_fans = each[:, None] * each[terms] * _there_in_fans(products, terms)
        both = np.append(both, of_fans)
    known = replace(known, kinds=np.concatenate(kinds))
    # A rare factor is not tried alone: with a constant, x - 1 is the same as x.
    weight = weight * ~(products.single & products.seldom | products.beside_only(points))
    prior = {**_PRIOR, _Kind.BREAK: min(BROKEN / len(plain), 0.04)}
    return with_prior(known, weight * np.sqrt(plain), both, prior, HELD)


def _kinds_of_singles(products: Catalogue) -> IntArray:
    """Return the kinds of the constant and of hypotheses with one shape."""
    single, falling = products.single, products.falling
    alone = np.where(single, _Kind.FACTOR, _Kind.PRODUCT)
    alone[falling] = _Kind.FALLING
    alone[products.breaks] = _Kind.BREAK
    offset = np.where(single, _Kind.OFFSET_FACTOR, _Kind.OFFSET_PRODUCT)
    # A product that rises with one parameter and falls with another is negative somewhere as an
    # offset.
    offset[products.falls & ~falling] = _Kind.NEVER
    return np.concatenate([[_Kind.CONSTANT], alone, offset, alone])


def _kinds_of_pairs(products: Catalogue) -> tuple[IntArray, IntArray]:
    """Return the kinds of pairs by the structures of both shapes, [C, C]; the structures, [S]."""
    shared = products.falls & ~products.single
    of_shape = np.stack([products.single, shared, products.breaks, products.falling, products.axis])
    known, structure = np.unique(of_shape, axis=1, return_inverse=True)
    single, shared, breaks, falling = known[:4].astype(np.bool_)
    axis = known[4]
    pair = np.where(shared[:, None] | shared, _Kind.SHARED, _Kind.BESIDE)
    pair[~single[:, None] & ~single] = _Kind.PRODUCTS
    both = single[:, None] & single
    alike = axis[:, None] == axis
    pair[both] = np.where(alike, _Kind.ONE_PARAMETER, _Kind.SUM)[both]
    pair[both & alike & (falling[:, None] ^ falling)] = _Kind.RISING
    pair[breaks[:, None] | breaks] = _Kind.BREAK
    return pair, structure.ravel()


def _with_sum_of_same(
    products: Catalogue, first: IntArray, second: IntArray
) -> tuple[BoolArray, BoolArray]:
    """Return which pairs [P] are a product times a sum in one parameter, a part of which falls.

    In the first array all other factors grow, as in n^3 (1/p + log2(p)). In the second one all
    fall, as in 1/p (1/t + t): everything the threads of a process do concerns its share.
    """
    one, other = products.code[:, first], products.code[:, second]
    falls = products.of_each(lambda factor: float(factor.decreasing)) > 0
    differ, either = one != other, falls[:, first] | falls[:, second]
    more = differ & (one > 0) & (other > 0) & either
    single, breaks = (each[first] | each[second] for each in (products.single, products.breaks))
    there = ~single & ~breaks & more.any(axis=0) & (differ.sum(axis=0) == 1)
    of_share = there & (differ | (one == 0) | falls[:, first]).all(axis=0)
    return np.asarray(there & ~of_share), np.asarray(of_share)


def _fans(products: Catalogue, points: FloatArray, start: int) -> PairGroups:
    """Return the fans: groups of pairs of every product with every term of one parameter."""
    terms = np.flatnonzero(products.single & ~products.seldom & ~products.breaks)
    terms = terms[np.argsort(products.axis[terms], kind="stable")]
    axes, count = np.unique(products.axis[terms], return_counts=True)
    levels = [np.unique(points[:, axis], return_inverse=True)[1].ravel() for axis in axes]
    return PairGroups(start, count.cumsum(), terms, np.array(levels), OPENED)


def _there_in_fans(products: Catalogue, terms: IntArray) -> BoolArray:
    """Return which pairs of a product and one of the `terms` [T] exist, [S, T]."""
    axis, falling, every = products.axis[:, None], products.falling, np.arange(len(products.cost))
    # Two terms form one pair, not two.
    again = (axis > axis[terms].T) | ((axis == axis[terms].T) & (every[:, None] >= terms))
    single, seldom = products.single[:, None], products.seldom[:, None]
    there = ~(single & again) & ~(falling[:, None] & falling[terms])
    there &= ~products.breaks[:, None]
    there &= ~seldom | ~single & (products.cost[terms] <= PLAIN)
    return np.asarray(there)
