"""Linear programs of a few variables, for commands that cannot wait for scipy to be imported."""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray

_ZERO = 1e-12


def most_within(gain: FloatArray, taken: FloatArray) -> float:
    """Return the largest ``gain @ c`` with ``taken @ c <= 1`` and ``c >= 0``.

    The simplex method starts at zero, which is feasible. It takes the first of equally good steps,
    so it ends (Bland: *New finite pivoting rules for the simplex method*, 1977).

    Parameters
    ----------
    gain : ndarray [m]
        Zero or above.
    taken : ndarray [K, m]
        Zero or above; each column has a positive entry.
    """
    limits, variables = taken.shape
    table = np.zeros((limits + 1, variables + limits + 1))
    table[:-1, :variables], table[:-1, variables:-1], table[:-1, -1] = taken, np.eye(limits), 1.0
    table[-1, :variables] = -gain
    basis = np.arange(variables, variables + limits)
    while (better := np.flatnonzero(table[-1, :-1] < -_ZERO * gain.max())).size:
        column = int(better[0])
        steps = np.full(limits, np.inf)
        bound = table[:-1, column] > _ZERO
        # Where limits meet in one corner, rounding leaves less than nothing of some.
        steps[bound] = np.maximum(table[:-1, -1][bound], 0.0) / table[:-1, column][bound]
        ties = np.flatnonzero(steps <= steps.min() + _ZERO)
        row = int(ties[np.argmin(basis[ties])])
        table[row] /= table[row, column]
        others = np.arange(limits + 1) != row
        table[others] -= table[others, column][:, None] * table[row]
        basis[row] = column
    return float(table[-1, -1])
