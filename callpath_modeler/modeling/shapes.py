"""Shapes of models: their values at points and targets, their growths, and values of models.

See docs/explanation/modeling.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, Int16Array, Int64Array, IntArray
from callpath_modeler.modeling.constants.limits import ROWS_TOGETHER
from callpath_modeler.modeling.growth import CONSTANT_GROWTH, Growth, growth_values
from callpath_modeler.modeling.products import (
    Break,
    BreakKind,
    Breaks,
    Factor,
    Product,
    Shape,
    TermDifference,
    difference_of,
    factor_from_header,
)
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


class _Factors(Struct, frozen=True):
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


class ShapeFactors(Struct, frozen=True):
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


class Shapes(tuple[Shape, ...]):  # noqa: SLOT001 - cached properties need a dict
    """The shapes of models, slowest growth first, and their comparison."""

    @classmethod
    def of(cls, shapes: Iterable[Shape]) -> Self:
        """Return the distinct shapes in order of growth."""
        return cls(sorted(set(shapes), key=lambda shape: (shape.growth.order, repr(shape))))

    @cached_property
    def _parts(self) -> ShapeFactors:
        return ShapeFactors.of(self)

    def table(self, p: FloatArray) -> FloatArray:
        """Return all shapes at `p` [m] or [m, D], [S + 1, m]; the last row (no shape) is zero."""
        return self._parts.table(p)

    @cached_property
    def growths(self) -> tuple[Growth, ...]:
        """The growths that models of these shapes may have, slowest first."""
        known = {CONSTANT_GROWTH, *(shape.growth for shape in self)}
        return tuple(sorted(known, key=lambda growth: growth.order))

    @cached_property
    def rank(self) -> Int64Array:
        """Position of each growth in `growths`, [S + 1]; the last one belongs to a constant."""
        place = {growth: k for k, growth in enumerate(self.growths)}
        return np.array([*(place[shape.growth] for shape in self), place[CONSTANT_GROWTH]])

    @cached_property
    def grows(self) -> BoolArray:
        """True for shapes that grow without limit, [S + 1]; False for the last entry (no shape)."""
        return np.asarray(self.rank > self.rank[-1])

    def lead(self, terms: npt.NDArray[np.integer], coefficients: FloatArray) -> IntArray:
        """Return the position of the leading coefficient of models, [...].

        It belongs to the fastest growing term. If no term grows without limit, the constant leads,
        unless it is zero and a term does not end at zero.

        Parameters
        ----------
        terms : [..., T] codes, -1 = none
        coefficients : [..., T + 1] coefficients, the constant first
        """
        last, slot = (np.zeros(terms.shape[:-1], np.intp) for _ in range(2))
        for number in range(1, terms.shape[-1] + 1):  # numpy is slow along short rows
            code = terms[..., number - 1]
            last[self.grows[code]] = number
            slot[(code >= 0) & ~self.ends_at_zero[code]] = number
        alone = (last == 0) & (coefficients[..., 0] == 0)
        return np.where(alone, slot, last)

    def growth_rank(self, terms: npt.NDArray[np.integer], coefficients: FloatArray) -> Int64Array:
        """Return the position of the growth of models in `growths`, [...], as in `lead`."""
        lead = self.lead(terms, coefficients)
        rank = np.full(lead.shape, self.rank[-1])
        for number in range(1, terms.shape[-1] + 1):
            leads = lead == number
            rank[leads] = self.rank[terms[..., number - 1][leads]]
        return rank

    @cached_property
    def ends_at_one(self) -> BoolArray:
        """True for breaks that add a constant at infinity, such as steps and ceilings, [S + 1]."""
        return self._breaks_that_end_at(1.0)

    @cached_property
    def ends_at_zero(self) -> BoolArray:
        """True for breaks that add nothing at infinity, such as drops, [S + 1]."""
        return self._breaks_that_end_at(0.0)

    @cached_property
    def leaps(self) -> BoolArray:
        """True for leaps, which are paired with a power, [S + 1]."""
        found = [isinstance(shape, Break) and shape.kind is BreakKind.LEAP for shape in self]
        return np.array([*found, False])

    def _breaks_that_end_at(self, value: float) -> BoolArray:
        ends = [
            # A shape that falls by a power is never zero, and that power is its growth.
            isinstance(shape, Break | TermDifference)
            and not shape.decreasing
            and shape(np.inf) == value
            for shape in self
        ]
        return np.array([*ends, False])


def shapes_to_header(shapes: Sequence[Shape]) -> list[dict[str, Any]]:
    """Return shapes as texts and numbers for JSON."""
    return [shape.to_header() for shape in shapes]


def shapes_from_header(header: Sequence[dict[str, Any]]) -> Shapes:
    """Return the shapes of a header that `shapes_to_header` made.

    Raises
    ------
    ValueError
        If an entry does not describe a shape.
    """
    try:
        return Shapes(
            Product.from_header(entry) if "factors" in entry else factor_from_header(entry)
            for entry in header
        )
    except (KeyError, TypeError, ArithmeticError) as error:
        raise ValueError(f"not a shape: {error}") from error


def evaluate(
    shapes: Shapes, terms: Int16Array, coefficients: FloatArray, p: FloatArray
) -> FloatArray:
    """Return the values of models, at least zero.

    Parameters
    ----------
    shapes : Shapes
        The shapes that `terms` stand for.
    terms : ndarray [n, T]
        Codes of terms.
    coefficients : ndarray [n, T + 1]
        Coefficients, the constant first.
    p : ndarray [m] or [m, D]
        Targets.

    Returns
    -------
    ndarray [n, m]
        Values; NaN where coefficients are.
    """
    table = shapes.table(p)
    is_finite = bool(np.isfinite(table).all())
    value = np.repeat(coefficients[:, :1], len(p), axis=1)
    for start in range(0, len(value), ROWS_TOGETHER):
        rows = slice(start, start + ROWS_TOGETHER)
        for slot in range(terms.shape[1]):
            number = coefficients[rows, slot + 1, None]
            with np.errstate(invalid="ignore"):
                part = number * table[terms[rows, slot]]
            if not is_finite:
                part[number[:, 0] == 0] = 0.0  # zero times infinity is zero here
            value[rows] += part
    # Constraints keep values at or above zero except for rounding, which is clipped.
    return np.maximum(value, 0.0, out=value)
