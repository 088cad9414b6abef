"""Regressions of every row on one shape, and the evidence of hypotheses.

A hypothesis with shapes x and z is the model ``f = c0 + c1 x (+ c2 z)``. Its errors are normal
with variance ``V / w_k`` at point k; the weights ``w`` are relative to the value. Least squares
give the coefficients. These may have any sign, except that constants of pairs are not negative. A
constant with a cost has to explain more than that. Laplace's method integrates likelihood times
prior over the coefficients, exactly up to the slope of the prior.

The residual sum of squares enters the likelihood. The determinant of the normal equations is the
cost of each coefficient. Normal integrals over the allowed signs are the cost of coefficients at
their bounds.

The prior has no scale. It is uniform in the logarithm of the level. The share of the level that
the shape has at its largest point is Beta(1, 1/2). With a decreasing shape, the share of the other
part is uniform in its logarithm: even a small part of the work that is not shared dominates at
large scales. See docs/explanation/hypotheses.md, 'Evidence'.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, Float32Array, FloatArray
from callpath_modeler.modeling.constants.evidence import (
    CONSTANT_FOLDS,
    FAR_OUT,
    LEAST,
    LEAST_LEVEL,
    LEAST_SHARE,
    LOG_2PI,
    PAIR_FOLDS,
    SHARE_EDGE,
    TINY,
)
from callpath_modeler.modeling.distributions import log_normal_share, normal_share

N = TypeVar("N", FloatArray, Float32Array)


class OneTermFits(Struct, frozen=True):
    """Regressions of rows on one shape each, [..., M]: ``f = mean + slope (x - at)``.

    Attributes
    ----------
    weight, mean, at, square : as in `Moments`
    slope : unconstrained slope
    """

    weight: FloatArray
    mean: FloatArray
    at: FloatArray
    square: FloatArray
    slope: FloatArray

    def covariance(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the covariance of constant and slope for a variance of 1 per point: cc, cf, ff."""
        per_square = 1 / self.square
        return 1 / self.weight + self.at**2 * per_square, -self.at * per_square, per_square


def occam_volume(share: N, known: N | float, folds: float) -> N:
    """Return the inverse prior of the share of a term with shared work.

    The prior is uniform in the logarithm of the share over `folds` powers of e. `known` is the
    standard error of the share, which replaces smaller shares.
    """
    return np.asarray(folds * np.maximum(np.maximum(share, known), LEAST_SHARE), share.dtype)


class InterceptPenalty(Struct, frozen=True):
    """Cost of a constant in a pair: it has to explain more than the range of its prior costs.

    A pair without a constant is a separate hypothesis, ``c1 x + c2 z``. Its evidence lacks one
    factor: the standard error of the constant relative to its possible size.

    Attributes
    ----------
    variance : [n] variance of a point by noise
    used : [n] number of points with a value
    tested : [..., n] or [..., 1] whether the constant of a pair has a cost
    shared : whether these are pairs with shared work, in which the share of a constant is uniform
        in its logarithm
    """

    variance: FloatArray
    used: FloatArray
    tested: BoolArray
    shared: bool = False

    def accepts(
        self, constant: FloatArray, spread: FloatArray, residual: FloatArray, level: FloatArray
    ) -> BoolArray:
        """Return which constants explain more than they cost, or cost nothing, [..., n].

        All arguments are [..., n]. `spread` is the variance of the constants for a variance of 1
        per point, `residual` the residual with constants, `level` the sum of the positive
        coefficients.
        """
        of_point = np.maximum(self.variance, residual / np.maximum(self.used - 3, 1.0))
        variance = np.maximum(spread * of_point, TINY)
        room = level
        if self.shared:
            room = level * occam_volume(constant / level, 0.0, PAIR_FOLDS)
        with np.errstate(over="ignore"):
            cost = np.log(room**2 / (2 * np.pi * variance))
        return np.asarray((constant**2 > variance * cost) | ~self.tested)


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
