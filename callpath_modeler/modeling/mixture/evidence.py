"""How well each hypothesis explains each row, integrated over its coefficients.

For a hypothesis with shapes x the model is ``f = c0 + c1 x (+ c2 z)`` with normal errors of
variance ``V / w_k`` at point k, weights ``w`` relative to the value itself. Least squares give the
coefficients, and the integral of likelihood times prior over them is the evidence (Laplace's
method, exact here up to the slope of the prior): the residual sum of squares enters the
likelihood, the determinant of the normal equations pays for each coefficient, and normal integrals
over the range of allowed signs pay for coefficients at their bounds. The prior has no scale: it is
uniform in the logarithm of the level, and Beta(1, 1/2) in the share of the level that the shape
makes up at its largest point.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
from scipy import special

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

TINY = 1e-300
LEAST = 1e-40
"""Of a level: its powers are still above zero."""

SHARE_EDGE = 1e-3
"""Shares nearer to one count as this: beyond it a constant cannot be told from none."""

LOG_2PI = float(np.log(2 * np.pi))
LEAST_LEVEL = 0.05
"""Of an offset hypothesis, whose level may be near zero, against the mean."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Weighted sums of n rows, about their weighted means; S shapes.

    Attributes
    ----------
    weight : [n] sum of weights
    mean : [n] weighted mean of the values
    total : [n] weighted sum of squares about it
    at : [n, S] weighted mean of each shape
    square : [n, S] weighted sum of squares of each shape about its mean
    product : [n, S] of each shape with the values
    """

    weight: FloatArray
    mean: FloatArray
    total: FloatArray
    at: FloatArray
    square: FloatArray
    product: FloatArray

    def take(self, rows: IntArray | npt.NDArray[np.bool_]) -> Moments:
        """Return some rows."""
        columns = (getattr(self, field.name)[rows] for field in fields(self))
        return Moments(*columns)


def moments(values: FloatArray, weights: FloatArray, table: FloatArray) -> Moments:
    """Sum up rows: `values`, `weights` [n, K], `table` [S, K]."""
    weight = weights.sum(axis=1)
    mean = (weights * values).sum(axis=1) / weight
    centred = values - mean[:, None]
    total = (weights * centred**2).sum(axis=1)
    at = weights @ table.T / weight[:, None]
    raw = weights @ (table**2).T
    square = np.maximum(raw - weight[:, None] * at**2, 1e-13 * raw + TINY)
    product = (weights * centred) @ table.T
    return Moments(weight, mean, total, at, square, product)


@dataclass(frozen=True, slots=True)
class Slopes:
    """Regressions of M (row, shape) on one shape each, [M]: ``f = mean + slope (x - at)``.

    Attributes
    ----------
    weight, mean, at, square : as of `Moments`
    slope : unconstrained
    """

    weight: FloatArray
    mean: FloatArray
    at: FloatArray
    square: FloatArray
    slope: FloatArray

    def covariance(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return that of constant and slope, without the variance of a point: cc, cf, ff."""
        per_square = 1 / self.square
        return 1 / self.weight + self.at**2 * per_square, -self.at * per_square, per_square


@dataclass(frozen=True, slots=True)
class Doubles:
    """Regressions on two shapes each, [n, P]: ``f = constant + first x + second z``.

    Attributes
    ----------
    constant, first, second : unconstrained coefficients
    residual : weighted sum of squares
    covariance : elements cc, cf, cs, ff, fs, ss of that of the coefficients, without the factor V
    determinant : of the normal equations
    free : whether the constant is free; where it would be negative it is left out
    """

    constant: FloatArray
    first: FloatArray
    second: FloatArray
    residual: FloatArray
    covariance: tuple[FloatArray, ...]
    determinant: FloatArray
    free: npt.NDArray[np.bool_]

    def take(self, rows: IntArray, which: IntArray) -> Doubles:
        """Return one regression each of some rows, [M]."""
        return Doubles(
            self.constant[rows, which],
            self.first[rows, which],
            self.second[rows, which],
            self.residual[rows, which],
            tuple(column[rows, which] for column in self.covariance),
            self.determinant[rows, which],
            self.free[rows, which],
        )


def pairs(
    sums: Moments, weights: FloatArray, table: FloatArray, first: IntArray, second: IntArray
) -> Doubles:
    """Regress every row on every pair of shapes."""
    weight, mean = sums.weight[:, None], sums.mean[:, None]
    at_x, at_z = sums.at[:, first], sums.at[:, second]
    raw_xz = weights @ (table[first] * table[second]).T
    centred = (
        sums.square[:, first],
        raw_xz - weight * at_x * at_z,
        sums.square[:, second],
        sums.product[:, first],
        sums.product[:, second],
    )
    b, c, inverse, determinant = _two_by_two(*centred)
    constant = mean - at_x * b - at_z * c
    residual = sums.total[:, None] - b * centred[3] - c * centred[4]
    xx, xz, zz = inverse
    cx, cz = -(at_x * xx + at_z * xz), -(at_x * xz + at_z * zz)
    cc = 1 / weight - at_x * cx - at_z * cz
    free = constant > 0
    # Through the origin, where a constant would be negative: a / p + b p has none.
    raw = (
        centred[0] + weight * at_x**2,
        raw_xz,
        centred[2] + weight * at_z**2,
        centred[3] + weight * at_x * mean,
        centred[4] + weight * at_z * mean,
    )
    b0, c0, (xx0, xz0, zz0), determinant0 = _two_by_two(*raw)
    residual0 = (sums.total + sums.weight * sums.mean**2)[:, None] - b0 * raw[3] - c0 * raw[4]
    return Doubles(
        np.where(free, constant, 0.0),
        np.where(free, b, b0),
        np.where(free, c, c0),
        np.maximum(np.where(free, residual, residual0), 0.0),
        (
            np.where(free, cc, 0.0),
            np.where(free, cx, 0.0),
            np.where(free, cz, 0.0),
            np.where(free, xx, xx0),
            np.where(free, xz, xz0),
            np.where(free, zz, zz0),
        ),
        np.where(free, weight * determinant, determinant0),
        free,
    )


def _two_by_two(
    xx: FloatArray, xz: FloatArray, zz: FloatArray, x: FloatArray, z: FloatArray
) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray, FloatArray], FloatArray]:
    """Solve normal equations; return both coefficients, the inverse and the determinant."""
    determinant = np.maximum(xx * zz - xz**2, 1e-12 * xx * zz)
    inverse = zz / determinant, -xz / determinant, xx / determinant
    return x * inverse[0] + z * inverse[1], x * inverse[1] + z * inverse[2], inverse, determinant


def constant_evidence(sums: Moments) -> FloatArray:
    """Return the log evidence of constants without likelihood, [n]."""
    return 0.5 * (LOG_2PI - np.log(sums.weight)) - np.log(np.maximum(sums.mean, TINY))


def positive_evidence(found: Slopes, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log evidences without likelihood where coefficients are positive, and the slopes, [M].

    `variance` [M] is roughly that of a point.
    """
    mean, slope = found.mean, found.slope
    no_constant = mean / np.maximum(found.at, TINY)
    constant = mean - slope * found.at
    growing = np.maximum(slope, 0.0)
    level = np.maximum(constant, 0.0) + growing + LEAST
    share = np.clip(growing / level, 0.0, 1 - SHARE_EDGE)
    evidence = LOG_2PI - 0.5 * np.log(found.weight * found.square * level**4 * (4 * (1 - share)))
    spread = np.sqrt(variance / found.square)
    evidence += _log_between(slope, spread, 0.0, no_constant)
    return evidence, np.minimum(growing, no_constant)


def offset_evidence(
    found: Slopes,
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
    return 0.5 * (LOG_2PI - np.log(square)) - np.log(np.maximum(slope, TINY * mean))


def pair_volume(found: Doubles) -> FloatArray:
    """Bound log evidences of pairs without likelihood from above; of the shape of `found`."""
    level = found.constant + np.maximum(found.first, 0.0) + np.maximum(found.second, 0.0) + LEAST
    volume = np.where(found.free, 1.5, 1.0) * LOG_2PI + np.log(2.0)
    volume -= 0.5 * np.log(np.where(found.free, level**6, level**4) * found.determinant)
    # Where a coefficient has to be zero, the pair is a hypothesis with one shape, which is there.
    return np.where((found.first > 0) & (found.second > 0), volume, -np.inf)


def pair_evidence(found: Doubles, variance: FloatArray) -> FloatArray:
    """Return log evidences of pairs without likelihood, [M]; so is `variance`, of a point."""
    evidence = pair_volume(found)
    spread = np.sqrt(variance)
    cc, _, _, xx, _, zz = found.covariance
    for number, square in ((found.first, xx), (found.second, zz)):
        evidence += special.log_ndtr(number / (spread * np.sqrt(square)))
    with np.errstate(divide="ignore", invalid="ignore"):
        away = special.log_ndtr(found.constant / (spread * np.sqrt(cc)))
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
    most = special.log_ndtr(above)
    return most + np.log1p(-np.exp(np.minimum(special.log_ndtr(below) - most, -1e-12)))
