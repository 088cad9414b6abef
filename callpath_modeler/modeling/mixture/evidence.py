"""Evidence of hypotheses: the likelihood of a row, integrated over the coefficients.

A hypothesis with shapes x and z is the model ``f = c0 + c1 x (+ c2 z)``. Its errors are normal
with variance ``V / w_k`` at point k; the weights ``w`` are relative to the value. Least squares
give the coefficients. Laplace's method integrates likelihood times prior over them, exactly up to
the slope of the prior.

The residual sum of squares enters the likelihood. The determinant of the normal equations is the
cost of each coefficient. Normal integrals over the allowed signs are the cost of coefficients at
their bounds.

The prior has no scale. It is uniform in the logarithm of the level. The share of the level that
the shape has at its largest point is Beta(1, 1/2). With a decreasing shape, the share of the other
part is uniform in its logarithm: even a small part of the work that is not shared dominates at
large scales. See docs/explanation/hypotheses.md, 'Evidence'.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.modeling.constants.evidence import (
    CONSTANT_FOLDS,
    FAR_OUT,
    LEAST,
    LEAST_LEVEL,
    LOG_2,
    LOG_2PI,
    PAIR_FOLDS,
    SHARE_EDGE,
    TINY,
)
from callpath_modeler.modeling.distributions import log_normal_share, normal_share
from callpath_modeler.modeling.mixture.regressions import OneTermFits, TwoTermFits, occam_volume


def constant_evidence(weight: FloatArray, mean: FloatArray) -> FloatArray:
    """Return the log evidence of constants without the likelihood; arguments as in `Moments`."""
    return np.asarray(0.5 * (LOG_2PI - np.log(weight)) - np.log(np.maximum(mean, TINY)))


def positive_evidence(
    found: OneTermFits, falling: BoolArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return log evidences with positive coefficients, without the likelihood, and slopes, [M].

    `falling` [M] marks decreasing shapes; `variance` [M] is a rough variance of a point.
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
    falling: BoolArray,
    variance: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return as `positive_evidence`, for positive models with a negative coefficient.

    `least` and `most` [M] are the extremes of the shapes at the points; `falling` [M] marks
    decreasing shapes.
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
    """Return log evidences of ``slope x`` without the likelihood, [M]; `square` is sum w x**2."""
    return 0.5 * (LOG_2PI - np.log(square)) - np.log(np.maximum(slope, LEAST_LEVEL * mean))


def pair_volume(
    found: TwoTermFits,
    falling: BoolArray,
    known: tuple[FloatArray | float, FloatArray | float] = (0.0, 0.0),
) -> FloatArray:
    """Return upper bounds of the log evidence of pairs without the likelihood, shaped like `found`.

    `falling` marks pairs with a decreasing shape. `known` are the standard errors of their constant
    and of their second coefficient.
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
    falling: BoolArray,
    variance: FloatArray,
) -> FloatArray:
    """Return log evidences of pairs without the likelihood, [M].

    `falling` is as in `pair_volume`; `variance` [M] is a rough variance of a point.
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

    The likelihood is Student's t, because the variance has `dof` degrees of freedom.

    Parameters
    ----------
    residual : [M] weighted residual sums of squares
    variance : [M] variance of a point
    dof : [M] degrees of freedom of that variance
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
    far = share < FAR_OUT
    found = np.log(np.maximum(share, FAR_OUT))
    if far.any():
        below, most = log_normal_share(below[far]), log_normal_share(above[far])
        found[far] = most + np.log1p(-np.exp(np.minimum(below - most, -1e-12)))
    return np.asarray(found)
