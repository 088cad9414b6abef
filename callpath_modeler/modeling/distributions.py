"""Distributions and further special functions that most commands need.

Importing scipy takes longer than these functions do. So they come from the compiled library if
there is one, and else from scipy, as functions that are needed rarely do. All work elementwise on
arrays that broadcast against each other.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.compiled.distributions import elementwise
from callpath_modeler.modeling.compiled.library import compiled


def normal_share(z: FloatArray | float) -> FloatArray:
    """Return the probability that a standard normal variable is below `z`."""
    if compiled():
        return elementwise("normal_shares", z)[0]
    from scipy import special

    return np.asarray(special.ndtr(z))


def log_normal_share(z: FloatArray | float) -> FloatArray:
    """Return the logarithm of `normal_share`, exact far in the tails."""
    if compiled():
        return elementwise("log_normal_shares", z)[0]
    from scipy import special

    return np.asarray(special.log_ndtr(z))


def normal_quantile(probability: FloatArray | float) -> FloatArray:
    """Return the quantile of the standard normal distribution at a probability between 0 and 1."""
    if compiled():
        return elementwise("normal_quantiles", probability)[0]
    from scipy import special

    return np.asarray(special.ndtri(probability))


def student_share(dof: FloatArray | float, t: FloatArray | float) -> FloatArray:
    """Return the probability that a Student variable with `dof` degrees of freedom is below `t`.

    It is NaN without degrees of freedom.
    """
    if compiled():
        return elementwise("student_shares", dof, t)[0]
    from scipy import special

    return np.asarray(special.stdtr(dof, t))


def student_quantile(dof: FloatArray | float, probability: FloatArray | float) -> FloatArray:
    """Return the quantile of Student's distribution at a probability between 0 and 1."""
    if compiled():
        return elementwise("student_quantiles", dof, probability)[0]
    from scipy import special

    return np.asarray(special.stdtrit(dof, probability))


def polygammas(x: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the digamma, trigamma and tetragamma functions of positive numbers."""
    if compiled():
        first, second, third = elementwise("polygammas", x, results=3)
        return first, second, third
    from scipy import special

    first, second, third = (np.asarray(special.polygamma(k, x)) for k in range(3))
    return first, second, third
