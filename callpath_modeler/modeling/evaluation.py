"""Values of models at targets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.terms import SearchSpace

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


def term_table(space: SearchSpace, p: FloatArray) -> FloatArray:
    """Evaluate all terms at all targets, [H + 1, m]; the last row, reached by code -1, is zero."""
    return np.stack([*(term(p) for term in space.terms), np.zeros_like(p)])


def evaluate(
    space: SearchSpace, terms: TermArray, coefficients: FloatArray, p: FloatArray
) -> FloatArray:
    """Evaluate models, clipped at zero.

    Parameters
    ----------
    space : SearchSpace
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
    table = term_table(space, p)
    value = np.repeat(coefficients[:, :1], len(p), axis=1)
    for slot in range(terms.shape[1]):
        value += coefficients[:, slot + 1, None] * table[terms[:, slot]]
    # Constraints forbid more than rounding below zero; the clip takes that away.
    return np.maximum(value, 0.0, out=value)
