"""Shapes of models, their growths, and values of models.

See docs/explanation/modeling.md, 'The method in one page'.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import BoolArray, FloatArray, Int16Array, Int64Array, IntArray
from callpath_modeler.modeling.breaks import Break, BreakKind
from callpath_modeler.modeling.constants.limits import ROWS_TOGETHER
from callpath_modeler.modeling.differences import TermDifference
from callpath_modeler.modeling.evaluation import ShapeFactors
from callpath_modeler.modeling.growth import CONSTANT_GROWTH, Growth
from callpath_modeler.modeling.products import Product, Shape, factor_from_header


class Shapes(tuple[Shape, ...]):  # noqa: SLOT001 - cached properties need a dict
    """The shapes of models, slowest growth first, and their comparison."""

    @classmethod
    def of(cls, shapes: Iterable[Shape]) -> Self:
        """Return the distinct shapes in order of growth."""
        return cls(sorted(set(shapes), key=lambda shape: (shape.growth, repr(shape))))

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
