"""What a hypothesis leaves where it misses by much: in logarithms."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_MUCH = 0.01
"""A relative misfit, root mean square, from which on logarithms say something else."""

_NOTHING = 1e-3
"""Against the value, a model that is as good as zero."""


def large_misfits(residual: FloatArray, relative: FloatArray) -> IntArray:
    """Tell which of weighted sums of squares, [M], are not those of good fits.

    `relative` [M] is what they would be if models missed every value by its size.
    """
    return np.flatnonzero(residual > _MUCH**2 * relative)


def log_residuals(
    values: FloatArray, modelled: FloatArray, weights: FloatArray, unit: FloatArray
) -> FloatArray:
    """Compare weighted sums of squares of logarithms with those of relative errors, [M].

    A model that is a tenth of the value misses by nine tenths, one that is ten times as large by
    nine: relative errors are lenient with whatever is too small, such as a constant where values
    rise a hundredfold. Logarithms know no such favour, and where a model fits they say the same.

    Parameters
    ----------
    values, modelled : [K, M] what was measured; what the models say
    weights : [K, M] of the points, 0 = missing
    unit : [K, M] what the weights make errors relative to

    Returns
    -------
    ndarray [M]
        What the sums of squares have to be multiplied by; these may be those of regressions whose
        coefficients are bounded afterwards.
    """
    squares = modelled - values
    squares *= squares
    # Where bounds let a model touch zero, rounding decides on which side of it.
    positive = np.maximum(modelled, _NOTHING * values)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logarithms = np.log(positive / values)
    logarithms *= unit
    logarithms *= logarithms
    # Of a value of zero there is no logarithm.
    np.copyto(logarithms, squares, where=~np.isfinite(logarithms))
    squares *= weights
    logarithms *= weights
    return np.asarray(
        logarithms.sum(axis=0) / np.maximum(squares.sum(axis=0), np.finfo(float).tiny)
    )
