"""What could be true of a row in several parameters: products of terms, alone and in pairs.

Every product is paired with every term of one parameter, in fans of which a row opens a few. Pairs
of two products, and products of three factors or four, are too many; the plainest are kept: those
whose factors programs are known to have, and pairs of which one product follows from the other. A
law among the others is approximated by its neighbours, and what they leave is a deviation that
widens the band.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.hypotheses import (
    Hypotheses,
    HypothesisGroup,
    PairGroups,
    ScreeningLimits,
    assemble_hypotheses,
    with_prior,
)
from callpath_modeler.modeling.mixture.identifiability import ALIKE
from callpath_modeler.modeling.several.catalogue import PLAIN, Catalogue
from callpath_modeler.modeling.several.related_pairs import always_tested_pairs
from callpath_modeler.modeling.terms import SearchSpace

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

_OPENED = 250
"""Fans of pairs that are looked into for a row."""

_KEPT = ScreeningLimits(habits=250, pairs=10**6, frugal=True)
"""All pairs that are tried: which of them are close is chance, where there is much noise."""

_NO_PAIRS = np.empty((0, 2), dtype=np.intp)


class _Kind(IntEnum):
    """Kinds of laws; those of one factor and those of several are different habits."""

    CONSTANT = 0
    FACTOR = 1  # of one parameter, growing
    PRODUCT = 2  # of several
    FALLING = 3
    OFFSET_FACTOR = 4
    OFFSET_PRODUCT = 5
    SUM = 6  # a factor beside one of another parameter
    SHARED = 7  # a factor beside work that is shared, a product that falls; or that with more of it
    BESIDE = 8  # a factor beside any other product
    ONE_PARAMETER = 9  # two factors of the same
    PRODUCTS = 10  # two of several factors each
    BREAK = 11  # with a break along a parameter: outside the model class
    RISING = 12  # one that falls and one that grows, of the same: U-shapes
    OF_A_SHARE = 13  # what falls with one parameter, times a sum in another
    NEVER = 14


_PRIOR = {
    _Kind.CONSTANT: 0.36,
    _Kind.FACTOR: 0.15,
    _Kind.PRODUCT: 0.12,
    _Kind.FALLING: 0.05,
    _Kind.OFFSET_FACTOR: 0.04,
    _Kind.OFFSET_PRODUCT: 0.03,
    # One term for each parameter is what a program does that computes and communicates.
    _Kind.SUM: 0.08,
    _Kind.SHARED: 0.06,
    _Kind.BESIDE: 0.06,
    _Kind.ONE_PARAMETER: 0.01,
    _Kind.PRODUCTS: 0.04,
    # Against what only falls as in one parameter.
    _Kind.RISING: 0.03,
    # Such a sum is as probable as its product that falls beside a term of one parameter.
    _Kind.OF_A_SHARE: 0.002,
    _Kind.NEVER: 0.0,
}
_BROKEN = 10.0
"""How probable laws are that break, by the number of products: those with breaks are plain, and a
plain law is to be more probable than what is left of it, or more, from some value on."""

_MORE_THAN_SHARED = 0.25
"""Beside shared work of any size, n^3/p, how probable n^3 log2(p) or n^3/sqrt(p) is against n^3:
as in one parameter, where what is beside 1/p is a constant first."""

_HELD = 0.1
"""As how many call paths each hypothesis of a kind counts: pairs are thousands, and one call path
is not to make those that happen to suit it the habit of an application."""


def joint_hypotheses(space: SearchSpace, points: FloatArray) -> Hypotheses:
    """Make the hypotheses of a space over `points` [K, D].

    Raises
    ------
    ValueError
        If no term of the space fits the points.
    """
    products = Catalogue.of(space, points)
    # What grows beyond all numbers at these points is no hypothesis about them.
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
    of_fixed[shared], both[shared] = _Kind.SHARED, both[shared] * _MORE_THAN_SHARED
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
    # What is seldom a factor is no law alone: with a constant x - 1 is what x is.
    weight = weight * ~(products.single & products.seldom | products.beside_only(points))
    prior = {**_PRIOR, _Kind.BREAK: min(_BROKEN / len(plain), 0.04)}
    return with_prior(known, weight * np.sqrt(plain), both, prior, _HELD)


def _kinds_of_singles(products: Catalogue) -> IntArray:
    """Return the kinds of the constant and of hypotheses with one shape."""
    single, falling = products.single, products.falling
    alone = np.where(single, _Kind.FACTOR, _Kind.PRODUCT)
    alone[falling] = _Kind.FALLING
    alone[products.breaks] = _Kind.BREAK
    offset = np.where(single, _Kind.OFFSET_FACTOR, _Kind.OFFSET_PRODUCT)
    # Less a constant, what rises with one parameter and falls with another is negative somewhere.
    offset[products.falls & ~falling] = _Kind.NEVER
    return np.concatenate([[_Kind.CONSTANT], alone, offset, alone])


def _kinds_of_pairs(products: Catalogue) -> tuple[IntArray, IntArray]:
    """Return the kinds of pairs, [C, C], by the structures of both; and those of shapes, [S]."""
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
    """Return which pairs [P] are a product that falls with a parameter, times a sum in that.

    Those of which all else grows, n^3 (1/p + log2(p)), and those of which all else falls,
    1/p (1/t + t): all that the threads of a process do is of its share.
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
    """Return what pairs every product with every term of one parameter."""
    terms = np.flatnonzero(products.single & ~products.seldom & ~products.breaks)
    terms = terms[np.argsort(products.axis[terms], kind="stable")]
    axes, count = np.unique(products.axis[terms], return_counts=True)
    levels = [np.unique(points[:, axis], return_inverse=True)[1].ravel() for axis in axes]
    return PairGroups(start, count.cumsum(), terms, np.array(levels), _OPENED)


def _there_in_fans(products: Catalogue, terms: IntArray) -> BoolArray:
    """Return which pairs of all products with `terms` [T] of one parameter there are, [S, T]."""
    axis, falling, every = products.axis[:, None], products.falling, np.arange(len(products.cost))
    # Two terms are a pair once.
    again = (axis > axis[terms].T) | ((axis == axis[terms].T) & (every[:, None] >= terms))
    single, seldom = products.single[:, None], products.seldom[:, None]
    there = ~(single & again) & ~(falling[:, None] & falling[terms])
    there &= ~products.breaks[:, None]
    there &= ~seldom | ~single & (products.cost[terms] <= PLAIN)
    return np.asarray(there)
