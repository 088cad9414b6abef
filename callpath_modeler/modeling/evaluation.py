"""Values of models at targets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.breaks import Break, break_values
from callpath_modeler.modeling.differences import Difference, less
from callpath_modeler.modeling.growth import growth_values
from callpath_modeler.modeling.products import Factor, Product
from callpath_modeler.modeling.shapes import Shape
from callpath_modeler.modeling.terms import Term

FloatArray = npt.NDArray[np.float64]
TermArray = npt.NDArray[np.int16]


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
    table = np.zeros((len(shapes) + 1, len(p)))
    factors = {k: shape for k, shape in enumerate(shapes) if isinstance(shape, Factor)}
    if factors:
        table[list(factors)] = _factor_values(list(factors.values()), p)
    products = {k: shape for k, shape in enumerate(shapes) if isinstance(shape, Product)}
    if products:
        table[list(products)] = _product_values(list(products.values()), p)
    return table


def _product_values(products: Sequence[Product], p: FloatArray) -> FloatArray:
    """Evaluate products at all targets, [S, m]: each factor once, though many have it."""
    values = np.ones((len(products), len(p)))
    by_parameter = zip(*(each.factors for each in products), strict=True)
    for column, factors in zip(p.T, by_parameter, strict=True):
        # Terms are slow to compare; those of one search are the same objects.
        distinct = {id(factor): factor for factor in factors}
        number = {name: k for k, name in enumerate(distinct)}
        values *= _factor_values(list(distinct.values()), column)[
            [number[id(factor)] for factor in factors]
        ]
    return values


def _factor_values(factors: Sequence[Factor], p: FloatArray) -> FloatArray:
    """Evaluate factors at all targets, [F, m]: terms in one go, and differences out of these."""
    found = np.empty((len(factors), len(p)))
    broken = {k: each for k, each in enumerate(factors) if isinstance(each, Break)}
    differ = {k: each for k, each in enumerate(factors) if isinstance(each, Difference)}
    terms = {k: each for k, each in enumerate(factors) if isinstance(each, Term)}
    ends = [(each.larger, each.smaller) for each in differ.values()]
    every = *terms.values(), *chain.from_iterable(ends)
    if every:
        values = growth_values(np.array([each.growth.order for each in every]), p)
        found[list(terms)] = values[: len(terms)]
        found[list(differ)] = less(values[len(terms) :: 2], values[len(terms) + 1 :: 2])
    if broken:
        found[list(broken)] = break_values(list(broken.values()), p)
    return found


def peaks(table: FloatArray) -> FloatArray:
    """Return the largest magnitude of shapes at points, [S + 1]; that of no shape is 1.

    `table` [S + 1, K] is their `shape_table` there.
    """
    found = np.abs(table).max(axis=1)
    found[-1] = 1.0
    return np.asarray(found)


def evaluate(
    shapes: Sequence[Shape], terms: TermArray, coefficients: FloatArray, p: FloatArray
) -> FloatArray:
    """Evaluate models, clipped at zero.

    Parameters
    ----------
    shapes : sequence of Shape
        What `terms` refer to.
    terms : ndarray [n, T]
        Codes of terms.
    coefficients : ndarray [n, T + 1]
        Constant first.
    p : ndarray [m] or [m, D]
        Targets.

    Returns
    -------
    ndarray [n, m]
        Values; NaN where coefficients are.
    """
    table = shape_table(shapes, p)
    is_finite = bool(np.isfinite(table).all())
    value = np.repeat(coefficients[:, :1], len(p), axis=1)
    for slot in range(terms.shape[1]):
        number = coefficients[:, slot + 1, None]
        with np.errstate(invalid="ignore"):
            part = number * table[terms[:, slot]]
        if not is_finite:
            part[number[:, 0] == 0] = 0.0  # nothing times infinity is nothing
        value += part
    # Constraints forbid more than rounding below zero; the clip takes that away.
    return np.maximum(value, 0.0, out=value)
