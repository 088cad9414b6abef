"""Values of models at targets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.shapes import Shape

FloatArray = npt.NDArray[np.float64]
TermArray = npt.NDArray[np.int16]


def targets(p: npt.ArrayLike) -> FloatArray:
    """Check values of the parameter.

    Returns
    -------
    ndarray [m]
        The values.

    Raises
    ------
    ValueError
        If one is not above zero.
    """
    wanted = np.atleast_1d(np.asarray(p, dtype=np.float64))
    if wanted.ndim != 1 or not (wanted > 0).all():
        raise ValueError("predictions need values of the parameter above zero")
    return wanted


def shape_table(shapes: Sequence[Shape], p: FloatArray) -> FloatArray:
    """Evaluate all shapes at all targets, [S + 1, m]; the last row, reached by code -1, is zero."""
    return np.stack([*(shape(p) for shape in shapes), np.zeros(len(p))])


def evaluate(
    shapes: Sequence[Shape], terms: TermArray, coefficients: FloatArray, p: FloatArray
) -> FloatArray:
    """Evaluate models, clipped at zero.

    Parameters
    ----------
    shapes : sequence of Term or Break
        What `terms` refer to.
    terms : ndarray [n, T]
        Codes of terms.
    coefficients : ndarray [n, T + 1]
        Constant first.
    p : ndarray [m]
        Targets.

    Returns
    -------
    ndarray [n, m]
        Values; NaN where coefficients are.
    """
    table = shape_table(shapes, p)
    value = np.repeat(coefficients[:, :1], len(p), axis=1)
    for slot in range(terms.shape[1]):
        number = coefficients[:, slot + 1, None]
        with np.errstate(invalid="ignore"):
            part = number * table[terms[:, slot]]
        value += np.where(number == 0, 0.0, part)  # nothing times infinity is nothing
    # Constraints forbid more than rounding below zero; the clip takes that away.
    return np.maximum(value, 0.0, out=value)
