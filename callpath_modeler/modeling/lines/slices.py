"""Slices: models along one parameter, made from models in several parameters.

With all parameters but one held at values, a product of factors becomes a number times a term of
the remaining parameter, or a constant. Coefficients and their covariances follow linearly. See
docs/explanation/several-parameters.md, 'Slices'.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray, Int16Array, IntArray
from callpath_modeler.modeling.evaluation import peaks
from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.products import NOTHING, Product
from callpath_modeler.modeling.roots import covariances, roots_of
from callpath_modeler.modeling.shapes import Shapes


def slice_along(models: Models, axis: int, at: npt.ArrayLike) -> Models:
    """Return models along one parameter, with all other parameters held at values.

    Parameters
    ----------
    models : Models
        Models in D parameters.
    axis : int
        The parameter that is left.
    at : array_like [D]
        Values of all parameters, above zero and finite; that of `axis` has no effect.

    Returns
    -------
    Models
        Models in one parameter, over its distinct values. At each target they predict the same as
        `models`. The deviation of measurements grows with the distance between held and measured
        values.

    Raises
    ------
    ValueError
        If `models` has one parameter, or the values are not as described.
    """
    if models.points.ndim == 1:
        raise ValueError("models in one parameter have nothing to hold")
    count = models.points.shape[1]
    held = np.array(at, dtype=np.float64)
    if held.shape != (count,) or not 0 <= axis < count:
        raise ValueError(f"expected an axis and values of {count} parameters")
    held[axis] = 1.0
    if not (np.isfinite(held) & (held > 0)).all():
        raise ValueError("values of held parameters must be finite and above zero")
    terms, code, factor = _split(models, axis, held)
    # Each parameter has separate alternatives.
    size = models.alternative_weight.shape[1] // count
    others = slice(axis * size, (axis + 1) * size)
    codes = np.concatenate([models.terms[:, None], models.alternative_terms[:, others]], axis=1)
    numbers = np.concatenate(
        [models.coefficients[:, None], models.alternative_coefficients[:, others]], axis=1
    )
    root = np.concatenate([models.root[:, :1], models.root[:, 1:][:, others]], axis=1)
    covariance = covariances(root, codes, peaks(models.shapes.table(models.points)))
    change, kept = _change(code[codes], factor[codes])
    numbers = np.einsum("ncij,ncj->nci", change, numbers)
    covariance = change @ covariance @ change.swapaxes(-1, -2)
    codes_left: Int16Array = np.where(numbers[..., 1:] != 0, kept, -1).astype(np.int16)
    points = np.unique(models.points[:, axis])
    spread = np.sqrt(models.spread**2 + models.drift * _distance(models.points, axis, held))
    return replace(
        models,
        shapes=terms,
        points=points,
        terms=codes_left[:, 0],
        coefficients=numbers[:, 0],
        spread=spread,
        low_p=np.full(len(models), points[0]),
        high_p=np.full(len(models), points[-1]),
        alternative_terms=codes_left[:, 1:],
        alternative_coefficients=numbers[:, 1:],
        alternative_weight=models.alternative_weight[:, others],
        root=roots_of(covariance, codes_left, peaks(terms.table(points))).astype(np.float32),
    )


def _split(models: Models, axis: int, held: FloatArray) -> tuple[Shapes, IntArray, FloatArray]:
    """Return the remaining factors, and for each product its remaining factor and a number.

    The factor is -1 if the product does not depend on the remaining parameter. The last entry
    stands for no product.
    """
    products = [shape for shape in models.shapes if isinstance(shape, Product)]
    left = [shape.factors[axis] for shape in products]
    terms = Shapes.of(factor for factor in left if factor != NOTHING)
    number = {term: code for code, term in enumerate(terms)}
    code = np.array([*(number.get(term, -1) for term in left), -1], dtype=np.intp)
    rest = [
        Product((*shape.factors[:axis], NOTHING, *shape.factors[axis + 1 :])) for shape in products
    ]
    factor = np.array([*(float(shape(held[None])[0]) for shape in rest), 0.0])
    return terms, code, factor


def _change(code: IntArray, factor: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the linear map of the coefficients, [n, C, 3, 1 + T], and the terms of the new ones.

    In sums of more than two terms, at most one term depends on the parameter.
    """
    first, second = code[..., 0], code[..., 1]
    rest = code[..., 2:].max(axis=-1, initial=-1)
    # The rest of a pair comes first if the other is a constant now, or the same term.
    one = (first < 0) | (second < 0) | (first == second)
    swap = ~one & (first > second)
    slot = np.zeros(code.shape, dtype=np.intp)
    slot[..., 0] = np.where(first < 0, 0, np.where(swap, 2, 1))
    slot[..., 1] = np.where(second < 0, 0, np.where(one | swap, 1, 2))
    slot[..., 2:] = np.where(code[..., 2:] < 0, 0, 1)
    change = np.zeros((*code.shape[:-1], 3, 1 + code.shape[-1]))
    change[..., 0, 0] = 1.0
    for old in range(code.shape[-1]):
        for new in range(3):
            change[..., new, old + 1] += np.where(slot[..., old] == new, factor[..., old], 0.0)
    kept = np.full((*code.shape[:-1], 2), -1, dtype=np.intp)
    only = np.maximum(np.maximum(first, second), rest)
    kept[..., 0] = np.where(one | swap, np.where(one, only, second), first)
    kept[..., 1] = np.where(one, -1, np.maximum(first, second))
    return change, kept


def _distance(points: FloatArray, axis: int, held: FloatArray) -> float:
    """Return the distance of held values outside of the measured ones, in doublings."""
    others = [other for other in range(points.shape[1]) if other != axis]
    low, high = points[:, others].min(axis=0), points[:, others].max(axis=0)
    outside = np.maximum(np.maximum(held[others] / high, low / held[others]), 1.0)
    return float(np.log2(outside).sum())
