"""Values of shapes at points and targets.

See docs/explanation/modeling.md, 'The method in one page'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Self

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.breaks import Break, Breaks
from callpath_modeler.modeling.differences import TermDifference, difference_of
from callpath_modeler.modeling.growth import growth_values
from callpath_modeler.modeling.products import Factor, Product, Shape
from callpath_modeler.modeling.terms import Term


def targets(p: npt.ArrayLike, axes: int = 1) -> FloatArray:
    """Return checked values of the parameters.

    Parameters
    ----------
    p : array_like [m] or [m, D]
        Values of one parameter, or of several.
    axes : int
        Expected number of parameters.

    Returns
    -------
    ndarray [m] or [m, D]
        The values.

    Raises
    ------
    ValueError
        If a value is not above zero, or the number of parameters is wrong.
    """
    wanted = np.atleast_1d(np.asarray(p, dtype=np.float64))
    if wanted.shape[1:] != ((axes,) if axes > 1 else ()):
        raise ValueError(f"predictions need targets in {axes} parameters")
    if not (wanted > 0).all():
        raise ValueError("predictions need values of the parameter above zero")
    return wanted


def doublings(points: FloatArray) -> FloatArray:
    """Return the distances of `points` [K] or [K, D] from the largest one, in doublings, [K].

    With several parameters, the doublings of all parameters are added.
    """
    away = np.log2(points.max(axis=0) / points)
    return np.asarray(away if points.ndim == 1 else away.sum(axis=1))


def shape_table(shapes: Sequence[Shape], p: FloatArray) -> FloatArray:
    """Return the values of all shapes at all targets, [S + 1, m]; the last row, code -1, is 0."""
    return ShapeFactors.of(shapes).table(p)


@dataclass(frozen=True, slots=True)
class _Factors:
    """F factors as numbers: terms are evaluated together, and differences from these.

    Attributes
    ----------
    count : number of factors F
    terms, differ, broken : positions of the terms, differences and breaks
    orders : `Growth.order` of the terms, and of both terms of each difference
    breaks : the breaks
    """

    count: int
    terms: list[int]
    differ: list[int]
    broken: list[int]
    orders: FloatArray
    breaks: Breaks

    @classmethod
    def of(cls, factors: Sequence[Factor]) -> Self:
        broken = {k: each for k, each in enumerate(factors) if isinstance(each, Break)}
        differ = {k: each for k, each in enumerate(factors) if isinstance(each, TermDifference)}
        terms = {k: each for k, each in enumerate(factors) if isinstance(each, Term)}
        ends = ((each.larger, each.smaller) for each in differ.values())
        orders = [each.growth.order for each in (*terms.values(), *chain.from_iterable(ends))]
        return cls(
            len(factors),
            list(terms),
            list(differ),
            list(broken),
            np.array(orders).reshape(-1, 3),
            Breaks.of(list(broken.values())),
        )

    def values(self, p: FloatArray) -> FloatArray:
        """Return the values of all factors at all targets, [F, m]."""
        found, size = np.empty((self.count, len(p))), len(self.terms)
        values = growth_values(self.orders, p)
        found[self.terms] = values[:size]
        found[self.differ] = difference_of(values[size::2], values[size + 1 :: 2])
        found[self.broken] = self.breaks.values(p)
        return found


@dataclass(frozen=True, slots=True)
class ShapeFactors:
    """S shapes as numbers, since conversion takes longer than evaluation.

    Attributes
    ----------
    count : number of shapes S
    factors, alone : shapes of one parameter, and their positions
    products : positions of the products
    of_each : for each parameter the distinct factors of products, and the factor of each product
    """

    count: int
    factors: _Factors
    alone: list[int]
    products: list[int]
    of_each: tuple[tuple[_Factors, list[int]], ...]

    @classmethod
    def of(cls, shapes: Sequence[Shape]) -> Self:
        """Return shapes as numbers."""
        alone = {k: shape for k, shape in enumerate(shapes) if isinstance(shape, Factor)}
        products = {k: shape for k, shape in enumerate(shapes) if isinstance(shape, Product)}
        of_each = []
        for factors in zip(*(each.factors for each in products.values()), strict=True):
            # Comparing terms is slow; the terms of one search are the same objects.
            distinct = {id(factor): factor for factor in factors}
            number = {name: k for k, name in enumerate(distinct)}
            which = [number[id(factor)] for factor in factors]
            of_each.append((_Factors.of(list(distinct.values())), which))
        its = _Factors.of(list(alone.values()))
        return cls(len(shapes), its, list(alone), list(products), tuple(of_each))

    def table(self, p: FloatArray) -> FloatArray:
        """Return the values of all shapes at all targets, as `shape_table` does."""
        table = np.zeros((self.count + 1, len(p)))
        if self.alone:
            table[self.alone] = self.factors.values(p)
        if self.products:
            table[self.products] = 1.0
            with np.errstate(over="ignore", invalid="ignore"):
                for column, (factors, which) in zip(p.T, self.of_each, strict=True):
                    table[self.products] *= factors.values(column)[which]
        return table


def peaks(table: FloatArray) -> FloatArray:
    """Return the largest magnitude of each shape at the points, [S + 1]; 1 for no shape.

    `table` [S + 1, K] is the `shape_table` at the points.
    """
    found = np.abs(table).max(axis=1)
    found[-1] = 1.0
    return np.asarray(found)
