"""Values of shapes at targets."""

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
    """Check values of the parameters.

    Parameters
    ----------
    p : array_like [m] or [m, D]
        Of one parameter, or of several.
    axes : int
        How many are expected.

    Returns
    -------
    ndarray [m] or [m, D]
        The values.

    Raises
    ------
    ValueError
        If one is not above zero, or there are more or fewer parameters.
    """
    wanted = np.atleast_1d(np.asarray(p, dtype=np.float64))
    if wanted.shape[1:] != ((axes,) if axes > 1 else ()):
        raise ValueError(f"predictions need targets in {axes} parameters")
    if not (wanted > 0).all():
        raise ValueError("predictions need values of the parameter above zero")
    return wanted


def doublings(points: FloatArray) -> FloatArray:
    """Return how far `points` [K] or [K, D] are from the largest, [K].

    In doublings of the parameter, of all together with several.
    """
    away = np.log2(points.max(axis=0) / points)
    return np.asarray(away if points.ndim == 1 else away.sum(axis=1))


def shape_table(shapes: Sequence[Shape], p: FloatArray) -> FloatArray:
    """Evaluate all shapes at all targets, [S + 1, m]; the last row, reached by code -1, is zero."""
    return ShapeFactors.of(shapes).table(p)


@dataclass(frozen=True, slots=True)
class _Factors:
    """F factors, taken apart: terms are evaluated in one go, and differences out of these.

    Attributes
    ----------
    count : F
    terms, differ, broken : which are terms, differences and breaks
    orders : of the terms and of both terms of each difference, as `Growth.order`
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
        """Evaluate them at all targets, [F, m]."""
        found, size = np.empty((self.count, len(p))), len(self.terms)
        values = growth_values(self.orders, p)
        found[self.terms] = values[:size]
        found[self.differ] = difference_of(values[size::2], values[size + 1 :: 2])
        found[self.broken] = self.breaks.values(p)
        return found


@dataclass(frozen=True, slots=True)
class ShapeFactors:
    """S shapes, taken apart into what they are evaluated with, which takes longer than that.

    Attributes
    ----------
    count : S
    factors, alone : those of one parameter, and where they are
    products : where products are
    of_each : of each parameter the different factors of products, and which of these each has
    """

    count: int
    factors: _Factors
    alone: list[int]
    products: list[int]
    of_each: tuple[tuple[_Factors, list[int]], ...]

    @classmethod
    def of(cls, shapes: Sequence[Shape]) -> Self:
        """Take shapes apart."""
        alone = {k: shape for k, shape in enumerate(shapes) if isinstance(shape, Factor)}
        products = {k: shape for k, shape in enumerate(shapes) if isinstance(shape, Product)}
        of_each = []
        for factors in zip(*(each.factors for each in products.values()), strict=True):
            # Terms are slow to compare; those of one search are the same objects.
            distinct = {id(factor): factor for factor in factors}
            number = {name: k for k, name in enumerate(distinct)}
            which = [number[id(factor)] for factor in factors]
            of_each.append((_Factors.of(list(distinct.values())), which))
        its = _Factors.of(list(alone.values()))
        return cls(len(shapes), its, list(alone), list(products), tuple(of_each))

    def table(self, p: FloatArray) -> FloatArray:
        """Evaluate all shapes at all targets, as `shape_table`."""
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
    """Return the largest magnitude of shapes at points, [S + 1]; that of no shape is 1.

    `table` [S + 1, K] is their `shape_table` there.
    """
    found = np.abs(table).max(axis=1)
    found[-1] = 1.0
    return np.asarray(found)
