"""Distributions and further special functions that most commands need.

Importing scipy takes longer than these functions do. So they come from the compiled library if
there is one. Functions that are needed rarely come from scipy. All work elementwise on
arrays that broadcast against each other.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.kernels import kernels


def normal_share(z: FloatArray | float) -> FloatArray:
    """Return the probability that a standard normal variable is below `z`."""
    result: FloatArray = kernels().normal_share(z)
    return result


def log_normal_share(z: FloatArray | float) -> FloatArray:
    """Return the logarithm of `normal_share`, exact far in the tails."""
    result: FloatArray = kernels().log_normal_share(z)
    return result


def normal_quantile(probability: FloatArray | float) -> FloatArray:
    """Return the quantile of the standard normal distribution at a probability between 0 and 1."""
    result: FloatArray = kernels().normal_quantile(probability)
    return result


def student_share(dof: FloatArray | float, t: FloatArray | float) -> FloatArray:
    """Return the probability that a Student variable with `dof` degrees of freedom is below `t`.

    It is NaN without degrees of freedom.
    """
    result: FloatArray = kernels().student_share(dof, t)
    return result


def student_quantile(dof: FloatArray | float, probability: FloatArray | float) -> FloatArray:
    """Return the quantile of Student's distribution at a probability between 0 and 1."""
    result: FloatArray = kernels().student_quantile(dof, probability)
    return result


def polygammas(x: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the digamma, trigamma and tetragamma functions of positive numbers."""
    result: tuple[FloatArray, FloatArray, FloatArray] = kernels().polygammas(x)
    return result
