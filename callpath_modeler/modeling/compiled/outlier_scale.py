"""Likelihoods of rows under all scale factors: calls into ``conditions.c``."""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.compiled.library import call, float64_arrays, starts
from callpath_modeler.modeling.mixture.posterior import Posterior


def likelihoods(
    found: Posterior, centre: FloatArray, sharp: FloatArray, level: FloatArray, factors: FloatArray
) -> FloatArray:
    """Return the log likelihood of each row under F factors, [n, F], summed over its candidates.

    The log likelihood of a candidate, [M], is ``level - sharp / 2 (factor - centre)**2``.
    """
    rows = len(found.variance)
    said = np.empty((rows, len(factors)))
    columns = float64_arrays(centre, sharp, level, factors)
    call("likelihoods", *said.shape, starts(found.row, rows), *columns, said)
    return said
