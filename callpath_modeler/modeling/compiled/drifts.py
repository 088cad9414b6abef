"""Drifts in the form that the compiled functions need.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.mixture.deviations import Drift, variances


def precisions(points: FloatArray, drifts: Sequence[Drift]) -> tuple[FloatArray, FloatArray]:
    """Return the input of `relative_weights` in ``rows.h`` for L drifts over `points`, each [L, K].

    Returns
    -------
    precision : ndarray
        Factor of the weights if every point has a value.
    away : ndarray
        Logarithm of the variance at each point, minus the mean over all points.
    """
    away = np.log(variances(drifts, points))
    away -= away.mean(axis=1, keepdims=True)
    precision = np.exp(-away)
    precision[:, 0] /= [drift.of_first for drift in drifts]
    return precision, away
