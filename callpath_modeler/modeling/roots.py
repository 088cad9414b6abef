"""Errors of coefficients as triangular roots: what is kept of their covariances.

In single precision, of coefficients of moderate size: those of shapes divided by their largest
magnitude at the points, in the unit of the row. Unlike a covariance, a root then loses nothing
where coefficients nearly compensate each other, and it tells the level and the slope of a
regression on one shape apart.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
TermArray = npt.NDArray[np.int16]

_ROW, _COLUMN = np.tril_indices(3)
_CONSTANT_FIRST = np.array([2, 0, 1])
"""A root has the constant last."""


def roots(covariance: FloatArray) -> FloatArray:
    """Return roots [..., 6] of covariances [6, ...]: cc, cf, cs, ff, fs, ss.

    With c the constant, f and s the coefficients of the first and the second shape. A root is a
    lower triangle by rows, in the order f, s, c: times its transpose it is the covariance.
    """
    cc, cf, cs, ff, fs, ss = covariance
    first = np.sqrt(np.maximum(ff, 0.0))
    per_first = np.divide(1.0, first, out=np.zeros_like(first), where=first > 0)
    fs, cf = fs * per_first, cf * per_first
    second = np.sqrt(np.maximum(ss - fs**2, 0.0))
    per_second = np.divide(1.0, second, out=np.zeros_like(second), where=second > 0)
    cs = (cs - cf * fs) * per_second
    third = np.sqrt(np.maximum(cc - cf**2 - cs**2, 0.0))
    return np.stack([first, fs, second, cf, cs, third], axis=-1)


def covariances(root: npt.NDArray[np.floating], codes: TermArray, peak: FloatArray) -> FloatArray:
    """Return the covariances of roots, [..., 3, 3], the constant first.

    Of coefficients in the unit of the row, of the shapes as they are.

    Parameters
    ----------
    root : ndarray [..., 6]
    codes : ndarray [..., 2]
        The shapes.
    peak : ndarray [S + 1]
        Their largest magnitudes at the points, of `peaks`.
    """
    lower = np.zeros((*root.shape[:-1], 3, 3))
    lower[..., _ROW, _COLUMN] = root
    lower[..., :2, :] /= peak[codes][..., None]
    lower = lower[..., _CONSTANT_FIRST, :]
    return np.asarray(lower @ lower.swapaxes(-1, -2))


def roots_of(covariance: FloatArray, codes: TermArray, peak: FloatArray) -> FloatArray:
    """Undo `covariances`."""
    size = np.ones(covariance.shape[:-1])
    size[..., 1:] = peak[codes]
    scaled = covariance * size[..., None] * size[..., None, :]
    return roots(np.moveaxis(scaled[..., *np.triu_indices(3)], -1, 0))


def rescaled(
    root: npt.NDArray[np.float32], codes: TermArray, before: FloatArray, after: FloatArray
) -> npt.NDArray[np.float32]:
    """Return roots [..., 6] where the peaks of shapes [S + 1] are others than they were."""
    factor = np.ones((*codes.shape[:-1], 3))
    factor[..., :2] = (after / before)[codes]
    return (root * factor[..., _ROW]).astype(np.float32)
