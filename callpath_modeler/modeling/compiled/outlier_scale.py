"""What rows say of a point under all factors, of ``mixture/outlier_scale.py``, in C."""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.compiled.library import call, float64_arrays, starts
from callpath_modeler.modeling.mixture.posterior import Posterior


def likelihoods(
    found: Posterior, centre: FloatArray, sharp: FloatArray, level: FloatArray, factors: FloatArray
) -> FloatArray:
    """Return the logarithm of what the candidates of each row say together of F factors, [n, F].

    That of each [M] is ``level - sharp / 2 (factor - centre)**2``.
    """
    rows = len(found.variance)
    said = np.empty((rows, len(factors)))
    columns = float64_arrays(centre, sharp, level, factors)
    call("likelihoods", *said.shape, starts(found.row, rows), *columns, said)
    return said
