"""How well each hypothesis explains each row, integrated over its coefficients.

For a hypothesis with shapes x the model is ``f = c0 + c1 x (+ c2 z)`` with normal errors of
variance ``V / w_k`` at point k, weights ``w`` relative to the value itself. Least squares give the
coefficients, and the integral of likelihood times prior over them is the evidence (Laplace's
method, exact here up to the slope of the prior): the residual sum of squares enters the
likelihood, the determinant of the normal equations pays for each coefficient, and normal integrals
over the range of allowed signs pay for coefficients at their bounds. The prior has no scale: it is
uniform in the logarithm of the level, and Beta(1, 1/2) in the share of the level that the shape
makes up at its largest point. What is beside a decreasing shape makes up a share that is uniform in
its logarithm instead: however little of the work is not shared, it is what is left at large scales.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.distributions import log_normal_share, normal_share
from callpath_modeler.modeling.mixture.regressions import (
    CONSTANT_FOLDS,
    LEAST,
    PAIR_FOLDS,
    TINY,
    OneTermFits,
    TwoTermFits,
    occam_volume,
)

FloatArray = npt.NDArray[np.float64]

SHARE_EDGE = 1e-3
"""Shares nearer to one count as this: beyond it a constant cannot be told from none."""

_FAR_OUT = 1e-280
"""Of a normal probability: below it only its logarithm is a number."""

LOG_2PI = float(np.log(2 * np.pi))
LOG_2 = float(np.log(2))
LEAST_LEVEL = 0.05
"""Of an offset hypothesis, whose level may be near zero, against the mean."""


def constant_evidence(weight: FloatArray, mean: FloatArray) -> FloatArray:
    """Return the log evidence of constants without likelihood; arguments as of `Moments`."""
    return np.asarray(0.5 * (LOG_2PI - np.log(weight)) - np.log(np.maximum(mean, TINY)))


def positive_evidence(
    found: OneTermFits, falling: npt.NDArray[np.bool_], variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return log evidences without likelihood where coefficients are positive, and the slopes, [M].

    `falling` [M] are shapes; `variance` [M] is roughly that of a point.
    """
    mean, slope = found.mean, found.slope
    no_constant = mean / np.maximum(found.at, TINY)
    constant = mean - slope * found.at
    growing = np.maximum(slope, 0.0)
    level = np.maximum(constant, 0.0) + growing + LEAST
    share = np.clip(growing / level, 0.0, 1 - SHARE_EDGE)
    known = np.sqrt(variance * found.covariance()[0])
    rest = occam_volume(constant / level, known / level, CONSTANT_FOLDS)
    room = np.where(falling, rest * rest, 4 * (1 - share))
    evidence = LOG_2PI - 0.5 * np.log(found.weight * found.square * level**4 * room)
    spread = np.sqrt(variance / found.square)
    evidence += _log_between(slope, spread, 0.0, no_constant)
    return evidence, np.minimum(growing, no_constant)


def offset_evidence(
    found: OneTermFits,
    least: FloatArray,
    most: FloatArray,
    falling: npt.NDArray[np.bool_],
    variance: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """As `positive_evidence`, where a coefficient is negative but the model positive at all points.

    `least`, `most` and `falling` [M] are of the shapes.
    """
    mean, at = found.mean, found.at
    no_constant = mean / np.maximum(at, TINY)
    steepest = mean / np.maximum(at - least, 1e-9)
    to_zero = -mean / np.maximum(most - at, 1e-9)
    low, high = np.where(falling, to_zero, no_constant), np.where(falling, 0.0, steepest)
    slope = np.minimum(np.maximum(found.slope, low), high)
    far = mean + slope * (np.where(falling, 0.0, 1.0) - at)
    level = np.maximum(far, LEAST_LEVEL * mean)
    evidence = LOG_2PI - 0.5 * np.log(found.weight * found.square * level**4)
    evidence += _log_between(found.slope, np.sqrt(variance / found.square), low, high)
    return evidence, slope


def bare_evidence(mean: FloatArray, slope: FloatArray, square: FloatArray) -> FloatArray:
    """Return log evidences without likelihood of ``slope x``, [M]; `square` is sum w x**2."""
    return 0.5 * (LOG_2PI - np.log(square)) - np.log(np.maximum(slope, LEAST_LEVEL * mean))


def pair_volume(
    found: TwoTermFits,
    falling: npt.NDArray[np.bool_],
    known: tuple[FloatArray | float, FloatArray | float] = (0.0, 0.0),
) -> FloatArray:
    """Bound log evidences of pairs without likelihood from above; of the shape of `found`.

    `falling` are pairs beside a decreasing shape, whose constant and other coefficient are `known`
    so well.
    """
    level = np.maximum(found.first, 0.0)
    level += np.maximum(found.second, 0.0)
    level += found.constant
    level += LEAST
    volume = np.log(level)
    volume *= np.where(found.free, -3.0, -2.0)
    volume += np.where(found.free, 1.5 * LOG_2PI + LOG_2, LOG_2PI + LOG_2)
    volume -= 0.5 * np.log(found.determinant)
    room = occam_volume(found.second / level, known[1] / level, PAIR_FOLDS)
    constant = occam_volume(found.constant / level, known[0] / level, PAIR_FOLDS)
    room *= np.where(found.free, constant, 1.0)
    volume -= np.where(falling, np.log(room), 0.0)
    volume[~found.positive] = -np.inf
    return volume


def pair_evidence(
    found: TwoTermFits,
    covariance: tuple[FloatArray, ...],
    falling: npt.NDArray[np.bool_],
    variance: FloatArray,
) -> FloatArray:
    """Return log evidences of pairs without likelihood, [M].

    So are `falling`, as of `pair_volume`, and `variance`, of a point.
    """
    spread = np.sqrt(variance)
    cc, _, _, xx, _, zz = covariance
    evidence = pair_volume(found, falling, (spread * np.sqrt(cc), spread * np.sqrt(zz)))
    for number, square in ((found.first, xx), (found.second, zz)):
        evidence += log_normal_share(number / (spread * np.sqrt(square)))
    with np.errstate(divide="ignore", invalid="ignore"):
        away = log_normal_share(found.constant / (spread * np.sqrt(cc)))
    return evidence + np.where(found.free, away, 0.0)


def likelihood(
    residual: FloatArray, variance: FloatArray, dof: FloatArray, freedom: FloatArray
) -> FloatArray:
    """Return log likelihoods of residuals, [M].

    Student's t where the variance is known from `dof` degrees of freedom.

    Parameters
    ----------
    residual : [M] weighted sums of squares
    variance : [M] of a point
    dof : [M] degrees of freedom behind it
    freedom : [M] points minus coefficients
    """
    tail = np.log1p(residual / (dof * variance))
    return -0.5 * (freedom * np.log(variance) + (dof + freedom) * tail)


def _log_between(
    centre: FloatArray, spread: FloatArray, low: FloatArray | float, high: FloatArray
) -> FloatArray:
    """Return the log probability of a normal variable between bounds, exact far in the tails."""
    below, above = (low - centre) / spread, (high - centre) / spread
    flipped = below > 0
    below, above = np.where(flipped, -above, below), np.where(flipped, -below, above)
    share = normal_share(above) - normal_share(below)
    far = share < _FAR_OUT
    found = np.log(np.maximum(share, _FAR_OUT))
    if far.any():
        below, most = log_normal_share(below[far]), log_normal_share(above[far])
        found[far] = most + np.log1p(-np.exp(np.minimum(below - most, -1e-12)))
    return np.asarray(found)
