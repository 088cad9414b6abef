"""What could be true of a row in several parameters: products of terms, alone and in pairs.

Products of all terms of a space are too many from three parameters on, and pairs of them from
two on. The plainest are kept: those whose factors programs are known to have. A law among the
others is approximated by its neighbours, and what they leave is a deviation that widens the band.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.hypotheses import (
    SECOND_CLASS,
    Group,
    Hypotheses,
    Kept,
    distinct,
    intricacy,
    weighted,
)
from callpath_modeler.modeling.products import NOTHING, Product
from callpath_modeler.modeling.terms import SearchSpace, Term

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_MOST_PRODUCTS = 3000
_MOST_PAIRS = 24_000
_MOST_FACTORS = 12
"""Of one parameter, where there are more than two: terms beyond are not plain anyway."""

_KEPT = Kept(shapes=200, pairs=600)

_FRACTION = 0.1
_FALLING = 0.1
_FURTHER_FACTOR = 0.1
"""What roots, decreasing factors and each factor more add to how intricate a product is; the last
for each parameter beyond the first, since products grow in number with them."""

_BESIDE = 0.1
"""How much of it counts for a term of one parameter, beside one that is not of the same."""

_PRIOR = {
    Group.CONSTANT: 0.38,
    Group.GROWING: 0.30,
    Group.FALLING: 0.05,
    Group.OFFSET: 0.07,
    # One term for each parameter is what a program does that computes and communicates.
    Group.PAIR: 0.20,
}


def joint_hypotheses(space: SearchSpace, points: FloatArray) -> Hypotheses:
    """Make the hypotheses of a space over `points` [K, D].

    Raises
    ------
    ValueError
        If no term of the space fits the points.
    """
    axes = range(points.shape[1])
    factors = [_factors(space, points[:, axis], len(axes)) for axis in axes]
    every = list(_products(factors))
    costs = np.array([_intricacy(shape) for shape in every])
    kept = [every[code] for code in _plainest(costs, _MOST_PRODUCTS)]
    shapes, table, scale = distinct(kept, points)
    if not shapes:
        raise ValueError("no term of the space varies over the points")
    first_class = dict(zip(space.terms, space.first_class, strict=True))
    weight = np.array(
        [
            prod(1.0 if first_class.get(f, True) else SECOND_CLASS for f in shape.factors)
            for shape in shapes
        ]
    )
    group = np.array([Group.FALLING if s.decreasing else Group.GROWING for s in shapes])
    pairs = _pairs(shapes) if space.max_terms > 1 else []
    cost = np.array([_intricacy(shape) for shape in shapes])
    pair_weight = np.array([2.0 ** -(cost[a] + cost[b]) for a, b in pairs])
    return weighted(tuple(shapes), table, scale, group, pairs, weight, _PRIOR, pair_weight, _KEPT)


def _factors(space: SearchSpace, values: FloatArray, axes: int) -> list[Term]:
    terms = [term for term in space.terms if values.min() >= 1 or not term.log]
    if axes > 2:
        terms = sorted(terms, key=lambda term: (_of_factor(term), term))[:_MOST_FACTORS]
    return [NOTHING, *terms]


def _products(factors: list[list[Term]]) -> Iterator[Product]:
    return (Product(each) for each in product(*factors) if any(f != NOTHING for f in each))


def _intricacy(shape: Product) -> float:
    """Tell how far a product is from those that programs are known to have."""
    used = [factor for factor in shape.factors if factor != NOTHING]
    return sum(_of_factor(factor) for factor in used) + _FURTHER_FACTOR * (
        len(shape.factors) - 1
    ) * (len(used) - 1)


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


def _pairs(shapes: Sequence[Product]) -> list[tuple[int, int]]:
    """Pair products with each other, the slower growing one first: the plainest pairs.

    A term of one parameter beside one of another, or beside work that is shared, is what programs
    do that compute and communicate: how intricate such a term is hardly counts there.
    """
    cost = np.array([_intricacy(shape) for shape in shapes])
    single = np.array([len(shape.axes) == 1 for shape in shapes])
    axis = np.array([min(shape.axes) for shape in shapes])
    falling = np.array([shape.decreasing for shape in shapes])
    first, second = np.triu_indices(len(shapes), 1)
    # Two that fall in every parameter are one curve, as they are in one parameter.
    several = ~(falling[first] & falling[second])
    first, second = first[several], second[several]
    alike = single[first] & single[second] & (axis[first] == axis[second])
    mild = np.where(single, _BESIDE * cost, cost)
    pair_cost = np.where(alike, cost[first] + cost[second], mild[first] + mild[second])
    kept = _plainest(pair_cost, _MOST_PAIRS)
    return list(zip(first[kept].tolist(), second[kept].tolist(), strict=True))
