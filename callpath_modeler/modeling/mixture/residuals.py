"""What the errors of first models say of the measurement, which no repetition tells.

Errors are compared by their directions, each row's as a vector over the points with length 1. A
level and a power of each parameter are taken out first: where models are off by these in the same
way, growth was not recognised, which is no matter of runs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.evaluation import doublings
from callpath_modeler.modeling.mixture.repetition_noise import EXACT_VARIANCE
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows, error_unit

FloatArray = npt.NDArray[np.float64]

_BY_CHANCE = 3.0
"""Standard deviations by which chance makes independent errors look alike, at most."""

_EXACT = 1e-6
"""A row that is met as closely has no errors to compare."""

_GROWTHS = np.linspace(-3.0, 3.0, 121)
"""Of the variance of noise per doubling of scale, as powers of two."""
_MOST_DOUBLINGS = 12.0
"""Scales that are further apart count as these: numbers have no digits for larger variances."""
_NATS_BY_CHANCE = 4.0
_FEWEST_WITNESSES = 20.0


def error_correlation(data: ScaledRows, fitted: FloatArray, *, noise_known: bool) -> float:
    """Estimate the correlation between the errors of rows, from 0 to 1.

    The squared length of the sum of n independent directions is n on average, that of n equal ones
    is n^2.

    Parameters
    ----------
    data : of n rows; those with missing values are left out, and those whose repetitions agree:
        what is counted alike in every run is off its law for other reasons than runs
    fitted : [n, K]
    noise_known : whether repetitions tell anything
    """
    error, free = _directions(data, fitted, noise_known=noise_known)
    count = len(error)
    if count < 2 or free.shape[1] < 1:
        return 0.0
    likeness = float((error.sum(axis=0) ** 2).sum()) / count
    chance = 1 + _BY_CHANCE * float(np.sqrt(2 / free.shape[1]))
    return min(max(likeness - chance, 0.0) / (count - 1), 1.0)


def noise_by_scale(data: ScaledRows, fitted: FloatArray, correlation: float) -> FloatArray:
    """Return how noisy points are without repetitions, as variances about 1, [K].

    The noise of a row at a point is that of the row times a power of p that all rows share, and
    normal; then directions follow the angular central Gaussian distribution (Tyler: Statistical
    analysis for the angular central Gaussian distribution on the sphere, Biometrika 1987), whose
    likelihood is largest at the power that is returned, shrunk by as much of the gain in
    likelihood as chance may bring.

    Parameters
    ----------
    data, fitted : as of `error_correlation`, of one parameter, without repetitions
    correlation : of the errors; rows that err alike are few witnesses
    """
    error, free = _directions(data, fitted, noise_known=False)
    count, freedom = len(error), free.shape[1]
    witnesses = count / (1 + (count - 1) * correlation)
    even = np.ones(len(data.points))
    # A single direction is the same under any noise.
    if witnesses < _FEWEST_WITNESSES or freedom < 2:
        return even
    scale = doublings(data.points)
    scale *= min(1.0, _MOST_DOUBLINGS / float(scale.max()))
    variance = 2.0 ** (_GROWTHS[:, None] * (scale.mean() - scale))
    covariance = np.einsum("kd,gk,ke->gde", free, variance, free)
    error = error @ free
    length = np.einsum("nd,gde,ne->gn", error, np.linalg.inv(covariance), error, optimize=True)
    of_size = np.linalg.slogdet(covariance)[1]
    likely = -0.5 * witnesses * (of_size + freedom * np.log(length).mean(axis=1))
    best = int(likely.argmax())
    gain = float(likely[best] - likely[len(_GROWTHS) // 2])
    return np.asarray(variance[best] ** max(0.0, 1 - _NATS_BY_CHANCE / max(gain, _NATS_BY_CHANCE)))


def _directions(
    data: ScaledRows, fitted: FloatArray, *, noise_known: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the errors of rows as directions over the points, [n', K].

    Those are orthogonal to a level and a power of each parameter; what they span has the
    orthonormal columns that are returned with them, [K, free].
    """
    whole = (data.weight > 0).all(axis=1) & ((data.variance > EXACT_VARIANCE) | (not noise_known))
    rows, fitted = data.take(whole), fitted[whole]
    error = np.clip((rows.values - fitted) / error_unit(rows, fitted), -1.0, 1.0)
    smooth = np.column_stack([np.ones(len(data.points)), np.log(data.points)])
    basis, _ = np.linalg.qr(smooth, mode="complete")
    taken, free = np.split(basis, [smooth.shape[1]], axis=1)
    error = error - error @ taken @ taken.T
    length = np.sqrt((error**2).sum(axis=1))
    return error[length > _EXACT] / length[length > _EXACT, None], free
