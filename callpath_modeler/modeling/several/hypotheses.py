"""What could be true of a row in several parameters: products of terms, alone and in pairs.

Every product is paired with every term of one parameter, in fans of which a row opens a few. Pairs
of two products, and products of three factors or four, are too many; the plainest are kept: those
whose factors programs are known to have. A law among the others is approximated by its neighbours,
and what they leave is a deviation that widens the band.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import combinations

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.hypotheses import (
    ALIKE,
    Fans,
    Group,
    Hypotheses,
    Kept,
    assembled,
    intricacy,
    weighted,
)
from callpath_modeler.modeling.products import NOTHING, Product
from callpath_modeler.modeling.terms import SearchSpace, Term

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

_MOST_OF_TWO = 8500
_MOST_OF_MORE = 3000
"""Products of two factors, all of them up to three parameters; of three, and of four."""
_MOST_FACTORS = 16
"""Of a parameter in products of more than two: terms beyond are not plain anyway."""

_MOST_PAIRED = 400
_MOST_FIXED = 8000
"""Products of several factors that are paired with each other, and pairs of them."""

_OPENED = 300
"""Fans of pairs that are looked into for a row."""

_SECOND_CLASS = 0.5
"""How probable a finer fraction is against a privileged exponent, in each factor."""

_KEPT = Kept(shapes=250, pairs=10**6, nats=5.5, frugal=True)
"""All pairs that are tried: which of them are close is chance, where there is much noise."""

_NO_PAIRS = np.empty((0, 2), dtype=np.intp)

_FRACTION = 0.1
_FALLING = 0.1
_FURTHER_FACTOR = 0.1
"""What roots, decreasing factors and each factor more add to how intricate a product is; the last
for each parameter beyond the first, since products grow in number with them."""


class _Kind(IntEnum):
    """Kinds of laws; those of one factor and those of several are different habits."""

    CONSTANT = 0
    FACTOR = 1  # of one parameter, growing
    PRODUCT = 2  # of several
    FALLING = 3
    OFFSET_FACTOR = 4
    OFFSET_PRODUCT = 5
    SUM = 6  # a factor beside one of another parameter
    SHARED = 7  # a factor beside work that is shared: a product that falls with a parameter
    BESIDE = 8  # a factor beside any other product
    ONE_PARAMETER = 9  # two factors of the same
    PRODUCTS = 10  # two of several factors each


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
}

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
    products = _Products.of([_factors(space, column) for column in points.T])
    table = products.values(points)
    size = np.abs(table).max(axis=1)
    varies = np.isfinite(size) & (size > 0) & (np.ptp(table, axis=1) > ALIKE * size)
    kept = products.by_growth(np.flatnonzero(varies))
    if not kept.size:
        raise ValueError("no term of the space varies over the points")
    products, table, scale = products.take(kept), table[kept], size[kept]
    group = np.where(products.falling, Group.FALLING, Group.GROWING)
    weight, plain = products.weight(space), 2.0**-products.cost
    fixed = _fixed(products) if space.max_terms > 1 else _NO_PAIRS
    known = assembled(products.shapes(), table / scale[:, None], scale, group, fixed, _KEPT)
    there = np.ones(len(fixed), dtype=np.bool_)
    if space.max_terms > 1 and products.single.any():
        fans = _fans(products, points, len(fixed))
        first, second, of_fans = _of_fans(products, fans.terms)
        first, second = np.append(known.first, first), np.append(known.second, second)
        known = replace(known, first=first, second=second, fans=fans)
        there = np.append(there, of_fans)
    known = replace(known, kinds=_kinds(products, known.first, known.second))
    each = weight * plain
    both = each[known.first] * each[known.second] * there
    return weighted(known, weight * np.sqrt(plain), both, _PRIOR, _HELD)


def _kinds(products: _Products, first: IntArray, second: IntArray) -> IntArray:
    """Return the kinds of all hypotheses."""
    single, falling, axis = products.single, products.falling, products.axis
    alone = np.where(single, _Kind.FACTOR, _Kind.PRODUCT)
    alone[falling] = _Kind.FALLING
    offset = np.where(single, _Kind.OFFSET_FACTOR, _Kind.OFFSET_PRODUCT)
    shared = products.falls & ~single
    pair = np.where(shared[first] | shared[second], _Kind.SHARED, _Kind.BESIDE)
    pair[~single[first] & ~single[second]] = _Kind.PRODUCTS
    both = single[first] & single[second]
    pair[both] = np.where(axis[first] == axis[second], _Kind.ONE_PARAMETER, _Kind.SUM)[both]
    return np.concatenate([[_Kind.CONSTANT], alone, offset, alone, pair])


def _codes(sizes: Sequence[int], axes: Sequence[int]) -> IntArray:
    """Return all products of one factor of each of some parameters, [D, S]."""
    each = np.indices([sizes[axis] - 1 for axis in axes]).reshape(len(axes), -1) + 1
    code = np.zeros((len(sizes), each.shape[1]), dtype=np.intp)
    code[list(axes)] = each
    return code


def _factors(space: SearchSpace, values: FloatArray) -> list[Term]:
    return [NOTHING, *(term for term in space.terms if values.min() >= 1 or not term.log)]


@dataclass(frozen=True, slots=True)
class _Products:
    """Products of factors, as numbers: thousands of objects would take longer than a fit.

    Attributes
    ----------
    factors : of each of D parameters; the first of them is none
    code : [D, S] which factor of each
    cost : [S] how far each is from those that programs are known to have
    """

    factors: tuple[list[Term], ...]
    code: IntArray
    cost: FloatArray

    @classmethod
    def of(cls, factors: Sequence[list[Term]]) -> _Products:
        """Return the plainest products of factors; of one or two of them, nearly all."""
        count = len(factors)
        ordered = [
            [NOTHING, *sorted(each[1:], key=lambda t: (_of_factor(t), t))] for each in factors
        ]
        costs = [np.array([0.0, *map(_of_factor, each[1:])]) for each in ordered]
        found = []
        for used in range(1, count + 1):
            sizes, most = [len(each) for each in costs], _MOST_OF_TWO
            if used > 2:
                sizes, most = [min(size, 1 + _MOST_FACTORS) for size in sizes], _MOST_OF_MORE
            code = np.concatenate(
                [_codes(sizes, axes) for axes in combinations(range(count), used)], 1
            )
            cost = sum((of[which] for of, which in zip(costs, code, strict=True)), np.zeros(1))
            cost += _FURTHER_FACTOR * (count - 1) * (used - 1)
            found.append(cls(tuple(ordered), code, cost).take(_plainest(cost, most)))
        codes = np.concatenate([some.code for some in found], axis=1)
        return cls(tuple(ordered), codes, np.concatenate([some.cost for some in found]))

    def take(self, which: IntArray) -> _Products:
        """Return some of them."""
        return replace(self, code=self.code[:, which], cost=self.cost[which])

    @property
    def single(self) -> BoolArray:
        """Which have one factor."""
        return np.asarray((self.code > 0).sum(axis=0) == 1)

    @property
    def axis(self) -> IntArray:
        """The parameter of those that have one factor; -1 for the others."""
        return np.where(self.single, (self.code > 0).argmax(axis=0), -1)

    @property
    def falls(self) -> BoolArray:
        """Which fall with a parameter."""
        return np.asarray(self._of_each(lambda term: float(term.decreasing)).any(axis=0))

    @property
    def falling(self) -> BoolArray:
        """Which rise with no parameter; as `Product.decreasing`."""
        falls = self._of_each(lambda term: float(term == NOTHING or term.decreasing))
        return np.asarray(falls.all(axis=0), dtype=np.bool_)

    def values(self, points: FloatArray) -> FloatArray:
        """Return the values at points [K, D], [S, K]."""
        found = np.ones((self.code.shape[1], len(points)))
        for factors, which, column in zip(self.factors, self.code, points.T, strict=True):
            of = np.array([np.ones(len(column)), *(term(column) for term in factors[1:])])
            found *= of[which]
        return found

    def weight(self, space: SearchSpace) -> FloatArray:
        """Return how probable each is for the class of its factors, [S]."""
        first_class = dict(zip(space.terms, space.first_class, strict=True))
        each = self._of_each(lambda term: 1.0 if first_class.get(term, True) else _SECOND_CLASS)
        return np.asarray(each.prod(axis=0))

    def by_growth(self, which: IntArray) -> IntArray:
        """Put some in order of their growth where all parameters grow alike."""
        keys = [
            self._of_each(part)[:, which].sum(axis=0).round(9)
            for part in (
                lambda term: float(term.log),
                lambda term: float(term.exponent),
                lambda term: float(term.rate),
            )
        ]
        return which[np.lexsort(keys)]

    def shapes(self) -> tuple[Product, ...]:
        """Return the products themselves."""
        return tuple(
            Product(tuple(of[code] for of, code in zip(self.factors, codes, strict=True)))
            for codes in self.code.T.tolist()
        )

    def _of_each(self, number: Callable[[Term], float]) -> FloatArray:
        """Return a number of every factor, [D, S]."""
        return np.array(
            [
                np.array([number(term) for term in factors])[which]
                for factors, which in zip(self.factors, self.code, strict=True)
            ]
        )


def _of_factor(term: Term) -> float:
    # Whole powers count for less than in one parameter: sizes of problems come in cubes.
    whole = term.exponent.denominator == 1 and not term.log
    plain = intricacy(term) / 2 if whole else intricacy(term)
    return plain + _FRACTION * (term.exponent.denominator > 1) + _FALLING * term.decreasing


def _plainest(costs: FloatArray, most: int) -> IntArray:
    """Return which are plainest, at most so many; of those as plain all or none."""
    cost = np.round(costs, 9)
    if len(cost) <= most:
        return np.arange(len(cost))
    return np.flatnonzero(cost < np.partition(cost, most)[most])


def _fixed(products: _Products) -> IntArray:
    """Return the plainest pairs of products of several factors, the slower growing one first."""
    several = np.flatnonzero(~products.single)
    few = several[_plainest(products.cost[several], _MOST_PAIRED)]
    first, second = (few[place] for place in np.triu_indices(len(few), 1))
    # Two that fall in every parameter are one curve, as they are in one parameter.
    both = ~(products.falling[first] & products.falling[second])
    first, second = first[both], second[both]
    kept = _plainest(products.cost[first] + products.cost[second], _MOST_FIXED)
    return np.stack([first[kept], second[kept]], axis=1)


def _fans(products: _Products, points: FloatArray, start: int) -> Fans:
    """Return what pairs every product with every term of one parameter."""
    terms = np.flatnonzero(products.single)
    terms = terms[np.argsort(products.axis[terms], kind="stable")]
    axes, count = np.unique(products.axis[terms], return_counts=True)
    levels = [np.unique(points[:, axis], return_inverse=True)[1].ravel() for axis in axes]
    return Fans(start, count.cumsum(), terms, np.array(levels), _OPENED)


def _of_fans(products: _Products, terms: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the pairs of all fans, the slower growing product first, and which are there."""
    count = len(products.cost)
    shape, term = np.repeat(np.arange(count), len(terms)), np.tile(terms, count)
    axis, falling = products.axis, products.falling
    # Two terms are a pair once.
    again = (axis[shape] > axis[term]) | ((axis[shape] == axis[term]) & (shape >= term))
    there = ~(products.single[shape] & again) & ~(falling[shape] & falling[term])
    return np.minimum(shape, term), np.maximum(shape, term), there
