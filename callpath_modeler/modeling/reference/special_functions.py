"""Special functions of scipy; see `distributions`.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from callpath_modeler.arrays import FloatArray


def normal_share(z: FloatArray | float) -> FloatArray:
    """Return as `distributions.normal_share`."""
    return np.asarray(special.ndtr(z))


def log_normal_share(z: FloatArray | float) -> FloatArray:
    """Return as `distributions.log_normal_share`."""
    return np.asarray(special.log_ndtr(z))


def normal_quantile(probability: FloatArray | float) -> FloatArray:
    """Return as `distributions.normal_quantile`."""
    return np.asarray(special.ndtri(probability))


def student_share(dof: FloatArray | float, t: FloatArray | float) -> FloatArray:
    """Return as `distributions.student_share`."""
    return np.asarray(special.stdtr(dof, t))


def student_quantile(dof: FloatArray | float, probability: FloatArray | float) -> FloatArray:
    """Return as `distributions.student_quantile`."""
    return np.asarray(special.stdtrit(dof, probability))


def polygammas(x: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return as `distributions.polygammas`."""
    first, second, third = (np.asarray(special.polygamma(k, x)) for k in range(3))
    return first, second, third
