"""Triangular roots of the covariances of coefficients, which models store.

They are in single precision, for coefficients of moderate size: those of shapes divided by their
largest magnitude at the points, in the unit of the row. Unlike a covariance, a root stays precise
where coefficients nearly compensate each other. It separates the level and the slope of a
regression on one shape.

See docs/explanation/noise-and-bands.md, 'Prediction and band'.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import isqrt

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import Float32Array, FloatArray, Int16Array


def numbers_of_root(terms: int) -> int:
    """Return how many numbers the root of a model with `terms` terms has."""
    return (terms + 1) * (terms + 2) // 2


def roots(covariance: FloatArray) -> FloatArray:
    """Return roots [..., E] of covariances [E, ...]: cc, cf, cs, ff, fs, ss for two terms.

    Here c is the constant, f and s are the coefficients of the first and the second shape. A root
    is a lower triangle by rows, in the order f, s, c. The covariance is the root times its
    transpose.
    """
    size = _size(len(covariance))
    places = combinations_with_replacement(range(size), 2)
    upper = dict(zip(places, covariance, strict=True))
    order = (*range(1, size), 0)
    lower: dict[tuple[int, int], FloatArray] = {}
    for j, column in enumerate(order):
        square = upper[column, column]
        for k in range(j):
            square = square - lower[j, k] ** 2
        lower[j, j] = np.sqrt(np.maximum(square, 0.0))
        per = np.divide(1.0, lower[j, j], out=np.zeros_like(square), where=lower[j, j] > 0)
        for i in range(j + 1, size):
            left = upper[min(order[i], column), max(order[i], column)]
            for k in range(j):
                left = left - lower[i, k] * lower[j, k]
            lower[i, j] = left * per
    return np.stack([lower[i, j] for i in range(size) for j in range(i + 1)], axis=-1)


def with_more_terms(root: Float32Array, terms: int) -> Float32Array:
    """Return roots of models with `terms` terms; the added terms have no error."""
    before = _size(root.shape[-1])
    found = np.zeros((*root.shape[:-1], numbers_of_root(terms)), dtype=np.float32)
    row, column = np.tril_indices(before)
    # The constant comes last.
    row = np.where(row == before - 1, terms, row)
    column = np.where(column == before - 1, terms, column)
    found[..., row * (row + 1) // 2 + column] = root
    return found


def _size(numbers: int) -> int:
    """Return how many coefficients belong to a root of so many numbers."""
    return (isqrt(8 * numbers + 1) - 1) // 2


def covariances(root: npt.NDArray[np.floating], codes: Int16Array, peak: FloatArray) -> FloatArray:
    """Return the covariances of roots, [..., T + 1, T + 1], the constant first.

    They belong to coefficients in the unit of the row, of the shapes without scaling.

    Parameters
    ----------
    root : ndarray [..., E]
        The roots.
    codes : ndarray [..., T]
        The shapes.
    peak : ndarray [S + 1]
        Their largest magnitudes at the points, as returned by `peaks`.
    """
    size = codes.shape[-1] + 1
    lower = np.zeros((*root.shape[:-1], size, size))
    lower[..., *np.tril_indices(size)] = root
    lower[..., :-1, :] /= peak[codes][..., None]
    lower = np.roll(lower, 1, axis=-2)
    return np.asarray(lower @ lower.swapaxes(-1, -2))


def roots_of(covariance: FloatArray, codes: Int16Array, peak: FloatArray) -> FloatArray:
    """Return the roots of covariances, the inverse of `covariances`."""
    size = np.ones(covariance.shape[:-1])
    size[..., 1:] = peak[codes]
    scaled = covariance * size[..., None] * size[..., None, :]
    upper = np.triu_indices(codes.shape[-1] + 1)
    return roots(np.moveaxis(scaled[..., *upper], -1, 0))


def rescaled(
    root: Float32Array, codes: Int16Array, before: FloatArray, after: FloatArray
) -> Float32Array:
    """Return roots [..., E] for shapes whose peaks [S + 1] change from `before` to `after`."""
    size = codes.shape[-1] + 1
    factor = np.ones((*codes.shape[:-1], size))
    factor[..., :-1] = (after / before)[codes]
    row, _ = np.tril_indices(size)
    return (root * factor[..., row]).astype(np.float32)
