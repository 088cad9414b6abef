"""What could be true of a row in several parameters: products of terms, alone and in pairs.

Products of all terms of a space are too many from three parameters on, and pairs of them from
two on. The plainest are kept: those whose factors programs are known to have. A law among the
others is approximated by its neighbours, and what they leave is a deviation that widens the band.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from math import prod

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.hypotheses import (
    SECOND_CLASS,
    Group,
    Hypotheses,
    distinct,
    intricacy,
    weighted,
)
from callpath_modeler.modeling.products import NOTHING, Product
from callpath_modeler.modeling.terms import SearchSpace, Term

FloatArray = npt.NDArray[np.float64]

_MOST_PRODUCTS = 2000
_MOST_PAIRED = 120
_MOST_FACTORS = 12
"""Of one parameter, where there are more than two: terms beyond are not plain anyway."""

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
    ranked = sorted(_products(factors), key=_plainness)
    shapes, table, scale = distinct(list(islice(ranked, _MOST_PRODUCTS)), points)
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
    return weighted(tuple(shapes), table, scale, group, pairs, weight, _PRIOR)


def _factors(space: SearchSpace, values: FloatArray, axes: int) -> list[Term]:
    terms = [term for term in space.terms if values.min() >= 1 or not term.log]
    if axes > 2:
        terms = sorted(terms, key=lambda term: (_intricacy(term), term))[:_MOST_FACTORS]
    return [NOTHING, *terms]


def _products(factors: list[list[Term]]) -> Iterator[Product]:
    return (Product(each) for each in product(*factors) if any(f != NOTHING for f in each))


def _plainness(shape: Product) -> tuple[float, int, tuple[Term, ...]]:
    """Order products, plainest first; what is as plain as another, by its factors."""
    used = [factor for factor in shape.factors if factor != NOTHING]
    return sum(_intricacy(factor) for factor in used), len(used), shape.factors


def _intricacy(term: Term) -> float:
    """Count whole powers for less than in one parameter: sizes of problems come in cubes."""
    whole = term.exponent.denominator == 1 and not term.log
    return intricacy(term) / 2 if whole else intricacy(term)


def _pairs(shapes: list[Product]) -> list[tuple[int, int]]:
    """Pair the plainest products with each other; the slower growing one comes first."""
    plainest = sorted(range(len(shapes)), key=lambda code: _plainness(shapes[code]))
    kept = sorted(plainest[:_MOST_PAIRED])
    return [
        (a, b)
        for a in kept
        for b in kept
        # Two that fall in every parameter are one curve, as they are in one parameter.
        if a < b and not (shapes[a].decreasing and shapes[b].decreasing)
    ]
