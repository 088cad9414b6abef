"""Residuals of large misfits, measured in logarithms.

See docs/explanation/hypotheses.md, 'Evidence'.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import LARGE_MISFIT, LEAST_RATIO


def large_misfits(residual: FloatArray, relative: FloatArray) -> IntArray:
    """Return the positions of the weighted sums of squares, [M], that do not belong to good fits.

    `relative` [M] is the sum of squares of a model that misses every value by its size.
    """
    return np.flatnonzero(residual > LARGE_MISFIT**2 * relative)


def log_residuals(
    values: FloatArray, modelled: FloatArray, weights: FloatArray, unit: FloatArray
) -> FloatArray:
    """Return the ratio of weighted sums of squares of logarithms to those of relative errors, [M].

    A model of a tenth of the value has a relative error of 0.9; a model of ten times the value has
    an error of 9. So relative errors favour models that are too small, such as a constant where
    values rise a hundredfold. Logarithms treat both alike, and agree with relative errors where a
    model fits.

    Parameters
    ----------
    values, modelled : [K, M] measured values; values of the models
    weights : [K, M] weights of the points, 0 = missing
    unit : [K, M] values that errors are relative to under these weights

    Returns
    -------
    ndarray [M]
        Factor for each sum of squares; this sum may be that of a regression whose coefficients are
        bounded afterwards.
    """
    squares = modelled - values
    squares *= squares
    # A bounded model may touch zero, and rounding decides on which side.
    positive = np.maximum(modelled, LEAST_RATIO * values)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logarithms = np.log(positive / values)
    logarithms *= unit
    logarithms *= logarithms
    # A value of zero has no logarithm.
    np.copyto(logarithms, squares, where=~np.isfinite(logarithms))
    squares *= weights
    logarithms *= weights
    return np.asarray(
        logarithms.sum(axis=0) / np.maximum(squares.sum(axis=0), np.finfo(float).tiny)
    )
