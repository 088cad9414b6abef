"""Distributions, and what else of scipy's special functions most commands need.

To import scipy takes longer than what they do with it. Where there is a compiled library, the
functions of that are asked; scipy where there is none, and of functions that are needed rarely.
All go elementwise through arrays that broadcast against each other.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.compiled.distributions import elementwise
from callpath_modeler.modeling.compiled.library import compiled


def normal_share(z: FloatArray | float) -> FloatArray:
    """Return the probability of a standard normal variable to lie below `z`."""
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
    """Return below what a standard normal variable lies with a probability between 0 and 1."""
    if compiled():
        return elementwise("normal_quantiles", probability)[0]
    from scipy import special

    return np.asarray(special.ndtri(probability))


def student_share(dof: FloatArray | float, t: FloatArray | float) -> FloatArray:
    """Return the probability of a Student variable with `dof` degrees of freedom to lie below `t`.

    NaN where there are none.
    """
    if compiled():
        return elementwise("student_shares", dof, t)[0]
    from scipy import special

    return np.asarray(special.stdtr(dof, t))


def student_quantile(dof: FloatArray | float, probability: FloatArray | float) -> FloatArray:
    """Return below what such a variable lies with a probability between 0 and 1."""
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
