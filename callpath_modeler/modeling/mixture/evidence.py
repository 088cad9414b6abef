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

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_TINY = 1e-300
_SHARE_EDGE = 1e-3
"""Shares nearer to one count as this: beyond it a constant cannot be told from none."""

_LOG_2PI = float(np.log(2 * np.pi))
_LEAST_LEVEL = 0.05
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


def moments(values: FloatArray, weights: FloatArray, table: FloatArray) -> Moments:
    """Sum up rows: `values`, `weights` [n, K], `table` [S, K]."""
    weight = weights.sum(axis=1)
    mean = (weights * values).sum(axis=1) / weight
    centred = values - mean[:, None]
    total = (weights * centred**2).sum(axis=1)
    at = weights @ table.T / weight[:, None]
    raw = weights @ (table**2).T
    square = np.maximum(raw - weight[:, None] * at**2, 1e-13 * raw + _TINY)
    product = (weights * centred) @ table.T
    return Moments(weight, mean, total, at, square, product)


@dataclass(frozen=True, slots=True)
class Singles:
    """Regressions on one shape each, [n, S]: ``f = mean + slope (x - at)``.

    Attributes
    ----------
    slope : unconstrained
    residual : weighted sum of squares
    positive, offset : lower and upper bound of the slope for both families, each ([n, S], [n, S])
    """

    slope: FloatArray
    residual: FloatArray
    positive: tuple[FloatArray, FloatArray]
    offset: tuple[FloatArray, FloatArray]


def singles(sums: Moments, table: FloatArray, falling: npt.NDArray[np.bool_]) -> Singles:
    """Regress every row on every shape of `table` [S, K]; `falling` [S] tells decreasing ones."""
    slope = sums.product / sums.square
    residual = np.maximum(sums.total[:, None] - slope * sums.product, 0.0)
    mean = sums.mean[:, None]
    least, most = table.min(axis=1), table.max(axis=1)
    # Positive coefficients: slope >= 0 and constant = mean - slope at >= 0.
    no_constant = mean / np.maximum(sums.at, _TINY)
    # Offset: beyond that, as long as the model is positive at every point.
    steepest = mean / np.maximum(sums.at - least, 1e-9)
    to_zero = -mean / np.maximum(most - sums.at, 1e-9)
    zero = np.zeros_like(slope)
    return Singles(
        slope,
        residual,
        (zero, no_constant),
        (np.where(falling, to_zero, no_constant), np.where(falling, 0.0, steepest)),
    )


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
    return 0.5 * (_LOG_2PI - np.log(sums.weight)) - np.log(np.maximum(sums.mean, _TINY))


def single_evidence(
    sums: Moments, found: Singles, variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return log evidences without likelihood of both families, each [n, S]; `variance` is [n]."""
    spread = np.sqrt(variance[:, None] / sums.square)
    base = _LOG_2PI - 0.5 * np.log(sums.weight[:, None] * sums.square)
    mean, slope = sums.mean[:, None], found.slope
    constant = mean - slope * sums.at
    level = np.maximum(constant, 0.0) + np.maximum(slope, 0.0) + _TINY
    share = np.clip(np.maximum(slope, 0.0) / level, 0.0, 1 - _SHARE_EDGE)
    positive = base - 2 * np.log(level) - np.log(2 * np.sqrt(1 - share))
    positive += _log_between(slope, spread, *found.positive)
    inside = np.clip(slope, *found.offset)
    far = np.where(found.offset[1] > 0, mean + inside * (1 - sums.at), mean - inside * sums.at)
    offset = base - 2 * np.log(np.maximum(far, _LEAST_LEVEL * mean))
    offset += _log_between(slope, spread, *found.offset)
    return positive, offset


def bare_evidence(sums: Moments, slope: FloatArray, square: FloatArray) -> FloatArray:
    """Return log evidences without likelihood of ``slope x``, [n, S]; `square` is sum w x**2."""
    return 0.5 * (_LOG_2PI - np.log(square)) - np.log(np.maximum(slope, _TINY * sums.mean[:, None]))


def pair_evidence(found: Doubles, variance: FloatArray) -> FloatArray:
    """Return log evidences of pairs without likelihood, [n, P]; `variance` is [n]."""
    level = found.constant + np.maximum(found.first, 0.0) + np.maximum(found.second, 0.0)
    spread = np.sqrt(variance)[:, None]
    evidence = np.where(found.free, 1.5, 1.0) * _LOG_2PI + np.log(2.0)
    evidence -= np.where(found.free, 3, 2) * np.log(level + _TINY) + 0.5 * np.log(found.determinant)
    cc, _, _, xx, _, zz = found.covariance
    for number, square in ((found.first, xx), (found.second, zz)):
        evidence += special.log_ndtr(number / (spread * np.sqrt(square)))
    with np.errstate(divide="ignore", invalid="ignore"):
        away = special.log_ndtr(found.constant / (spread * np.sqrt(cc)))
    evidence += np.where(found.free, away, 0.0)
    # Where a coefficient has to be zero, the pair is a hypothesis with one shape, which is there.
    return np.where((found.first > 0) & (found.second > 0), evidence, -np.inf)


def likelihood(
    residual: FloatArray, variance: FloatArray, dof: FloatArray, freedom: FloatArray
) -> FloatArray:
    """Return the log likelihood of residuals, [n, H, V].

    Student's t where the variance is known from `dof` degrees of freedom.

    Parameters
    ----------
    residual : [n, H] weighted sums of squares
    variance : [n, V] candidates for the variance of a point
    dof : [n] degrees of freedom behind them
    freedom : [n, H] points minus coefficients
    """
    d, v = freedom[:, :, None], variance[:, None, :]
    known = dof[:, None, None]
    return -0.5 * d * np.log(v) - 0.5 * (known + d) * np.log1p(residual[:, :, None] / (known * v))


def _log_between(
    centre: FloatArray, spread: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the log probability of a normal variable between bounds, exact far in the tails."""
    below, above = (low - centre) / spread, (high - centre) / spread
    flipped = below > 0
    below, above = np.where(flipped, -above, below), np.where(flipped, -below, above)
    most = special.log_ndtr(above)
    return most + np.log1p(-np.exp(np.minimum(special.log_ndtr(below) - most, -1e-12)))
