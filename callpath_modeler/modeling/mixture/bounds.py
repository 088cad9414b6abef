"""Upper bounds of the evidence of hypotheses with at most one shape.

They are cheap and cover all hypotheses at once. See docs/explanation/hypotheses.md, 'Screening'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

import numpy as np

from callpath_modeler.arrays import BoolArray, Float32Array, FloatArray, IntArray
from callpath_modeler.modeling.mixture.evidence import (
    LEAST_LEVEL,
    LOG_2PI,
    SHARE_EDGE,
    constant_evidence,
)
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses, HypothesisGroup
from callpath_modeler.modeling.mixture.regressions import (
    CONSTANT_FOLDS,
    Moments,
    moments,
    occam_volume,
)
from callpath_modeler.modeling.mixture.repetition_noise import EXACT_VARIANCE
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows

NumberArray = FloatArray | Float32Array
N = TypeVar("N", FloatArray, Float32Array)

_ALIKE = 1e-12
"""Relative squared variation of a shape over the points of a row that is only rounding."""

_TIED = 1e-5
"""Largest relative difference of residuals that are equal except for rounding."""

SMALLEST = np.float32(1e-37)
"""Smallest number that keeps all its digits in single precision."""


_ROUNDING = 1e-12
"""Residual below which only rounding remains: an exact fit under one drift is exact under all."""


@dataclass(frozen=True, slots=True)
class OneTermRegressions:
    """Regressions of n rows on S shapes, one shape at a time, under one drift.

    Attributes
    ----------
    weights : [K, n] weights of the points
    sums : weighted sums of the rows
    slope, residual : [S, n] unconstrained slope, and weighted residual sum of squares
    """

    weights: FloatArray
    sums: Moments
    slope: FloatArray
    residual: FloatArray


def regress(data: ScaledRows, hypotheses: Hypotheses, weights: FloatArray) -> OneTermRegressions:
    """Return the regressions of all rows on all shapes; `weights` [K, n] belong to the points."""
    sums = moments(data.values.T, weights, hypotheses.table)
    slope = sums.product / sums.square
    residual = slope * sums.product
    np.subtract(sums.total, residual, out=residual)
    return OneTermRegressions(weights, sums, slope, np.maximum(residual, 0.0, out=residual))


def typical_variance(regressions: OneTermRegressions, data: ScaledRows) -> FloatArray:
    """Return a rough variance of a point, [n].

    It is the mean squared residual of the best hypothesis with one shape, but at least the noise.
    """
    left = regressions.residual.min(axis=0) / np.maximum(data.used - 2, 1)
    return np.asarray(np.maximum(np.maximum(left, EXACT_VARIANCE), data.variance))


@dataclass(frozen=True, slots=True)
class Bounds:
    """Upper bounds of the log evidence of n rows, prior included.

    Attributes
    ----------
    constant : [n] bounds of constants
    singles : [3, S, n] bounds with positive coefficients, as an offset, without a constant;
        -inf = left out
    """

    constant: Float32Array
    singles: Float32Array

    @property
    def alone(self) -> Float32Array:
        """The largest bound of each row, [n]."""
        return np.asarray(np.maximum(self.constant, self.singles.max(axis=(0, 1))))

    def best(self, row: IntArray, others: Float32Array) -> Float32Array:
        """Return the largest bound of each row, [n], including `others` [M] of `row` [M]."""
        found = self.alone
        np.maximum.at(found, row, others)
        return np.asarray(found)


@dataclass(frozen=True, slots=True)
class OneTermFits32:
    """Regressions on one shape in single precision, [S, n], which is sufficient for bounds.

    Coefficients are in units of the standard error that the mean has if the variance of a point
    is 1. This unit is 1 / sqrt(weight).

    Attributes
    ----------
    unit, mean : [n] factor to this unit, sqrt(weight); weighted mean of the values in this unit
    at : weighted mean of the shape
    scatter : weighted mean square of the shape about its mean
    about_zero : weighted mean square of the shape about zero
    slope, constant : coefficients of the regressions
    left : weighted residual sums of squares
    """

    unit: Float32Array
    mean: Float32Array
    at: Float32Array
    scatter: Float32Array
    about_zero: Float32Array
    slope: Float32Array
    constant: Float32Array
    left: Float32Array

    @classmethod
    def of(cls, regressions: OneTermRegressions) -> OneTermFits32:
        """Return `regressions` in single precision."""
        sums, unit = regressions.sums, np.sqrt(regressions.sums.weight)
        mean, slope = sums.mean * unit, regressions.slope * unit
        # A constant near zero would lose its digits in single precision.
        constant = slope * sums.at
        np.subtract(mean, constant, out=constant)
        at, scatter = as_float32(sums.at), as_float32(sums.square / sums.weight)
        about_zero = at * at
        about_zero += scatter
        np.maximum(about_zero, SMALLEST, out=about_zero)
        numbers = (as_float32(each) for each in (slope, constant, regressions.residual))
        return cls(as_float32(unit), as_float32(mean), at, scatter, about_zero, *numbers)

    def bare(self) -> Float32Array:
        """Return the residual of each shape without a constant."""
        # Forcing a constant to zero adds its square, divided by its variance, to the residual.
        more = self.constant * self.constant
        more *= self.scatter
        more /= self.about_zero
        more += self.left
        return more

    def bare_slope(self) -> Float32Array:
        """Return the slopes without a constant."""
        # The shape replaces the constant.
        slope = self.constant * self.at
        slope /= self.about_zero
        slope += self.slope
        return slope

    def volumes(self, hypotheses: Hypotheses, variance: Float32Array) -> Float32Array:
        """Return the part of the bounds that depends on the coefficients, [3, S, n]."""
        found = np.empty((3, *self.slope.shape), dtype=np.float32)
        falling = np.flatnonzero(hypotheses.single_group == HypothesisGroup.FALLING)
        positive, offset, bare = found
        lowest = np.float32(LEAST_LEVEL) * self.mean
        # The level at the largest shape, and the distances of the slope from its bounds.
        level = self.constant + self.slope
        np.maximum(level, lowest, out=level)
        edge = self.constant / np.maximum(self.at, np.float32(1e-9))
        below, beyond = np.minimum(self.slope, 0), np.minimum(edge, 0)
        sharpness = self.scatter * (np.float32(-0.5) / variance)
        scatter = np.maximum(self.scatter, SMALLEST)
        far = level.copy()
        far[falling] = np.maximum(self.constant[falling], lowest)
        far *= far
        far *= far
        far *= scatter
        _half_log(np.maximum(far, SMALLEST, out=far), LOG_2PI, out=offset)
        edge -= beyond
        edge[falling] = self.slope[falling] - below[falling]
        edge *= edge
        edge *= sharpness
        offset += edge
        of_constant = self.constant / level
        spread = np.sqrt(variance * self.about_zero[falling] / scatter[falling])
        rest = occam_volume(of_constant[falling], spread / level[falling], CONSTANT_FOLDS)
        np.maximum(of_constant, np.float32(SHARE_EDGE), out=of_constant)
        of_constant *= 4
        of_constant[falling] = rest * rest
        level *= level
        level *= level
        level *= of_constant
        level *= scatter
        _half_log(np.maximum(level, SMALLEST, out=level), LOG_2PI, out=positive)
        below *= below
        beyond *= beyond
        below += beyond
        below *= sharpness
        positive += below
        slope = self.bare_slope()
        np.maximum(slope, lowest, out=slope)
        slope *= slope
        slope *= self.about_zero
        _half_log(np.maximum(slope, SMALLEST, out=slope), LOG_2PI / 2, out=bare)
        return found


def bounds(
    regressions: list[OneTermRegressions],
    data: ScaledRows,
    hypotheses: Hypotheses,
    log_prior: FloatArray,
    variance: FloatArray,
) -> tuple[OneTermFits32, Bounds]:
    """Return upper bounds of the evidence of hypotheses with at most one shape, prior included.

    Each hypothesis gets the variance and the drift that suit it best. The normal integral over the
    allowed signs is bounded by exp(-z^2 / 2). Here z is the distance of the coefficient beyond the
    bound in standard errors under `variance` [n]. Single precision is sufficient for a bound and
    takes half the time.

    Returns
    -------
    OneTermFits32
        Regressions under the first drift.
    Bounds
        Bounds under the drifts that suit best.
    """
    first, size, used = regressions[0], len(hypotheses.shapes), data.used
    singles = [OneTermFits32.of(seen) for seen in regressions]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found = singles[0].volumes(hypotheses, as_float32(variance))
        found += as_float32(log_prior[1 : 1 + 3 * size]).reshape(3, size, 1)
    # The drift that suits best leaves the smallest residual.
    found[:2] += profile_likelihood(least_residual([each.left for each in singles]), data, used - 2)
    found[2] += profile_likelihood(
        least_residual([each.bare() for each in singles]), data, used - 1
    )
    far = below_the_best([each.left for each in singles], hypotheses.kept.shapes)
    if not (data.weight > 0).all():
        # If points are missing, a shape may be constant over the remaining ones.
        far |= singles[0].scatter <= _ALIKE * singles[0].about_zero
    # Bounds that overflow are NaN; their hypotheses are left out.
    np.copyto(found, -np.inf, where=far | np.isnan(found))
    alone = as_float32(constant_evidence(first.sums.weight, first.sums.mean) + log_prior[0])
    alone += profile_likelihood(
        least_residual([seen.sums.total for seen in regressions]), data, used - 1
    )
    return singles[0], Bounds(alone, found)


def as_float32(numbers: NumberArray) -> Float32Array:
    """Return numbers in single precision; numbers that are too large become infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(numbers, dtype=np.float32)


def least_residual(residuals: Sequence[N]) -> N:
    """Return the smallest residual under any drift; the likelihood falls with the residual."""
    return reduce(np.minimum, residuals)


def profile_likelihood(
    residual: NumberArray, data: ScaledRows, freedom: FloatArray
) -> Float32Array:
    """Return upper bounds of the log likelihood, [..., n], under the variance that suits best.

    `freedom` [n] or [..., n] is the number of points minus the number of coefficients.
    """
    dof, noise, free = (as_float32(column) for column in (data.dof, data.variance, freedom))
    given = as_float32(residual)
    variance = given / np.maximum(free, 1)
    np.maximum(variance, noise, out=variance)
    found = np.log(variance)
    found *= free
    variance *= dof
    left = given / variance
    np.log1p(left, out=left)
    left *= dof + free
    found += left
    found *= np.float32(-0.5)
    return found


def below_the_best(residuals: Sequence[NumberArray], count: int) -> BoolArray:
    """Return which regressions, [S, n], are not among the `count` best under any drift.

    Regressions that tie with the last one are among the best, so that rounding does not choose.
    """
    if len(residuals[0]) <= count:
        return np.zeros(residuals[0].shape, dtype=bool)
    ratio = least_residual(
        [as_float32(each / np.maximum(each.min(axis=0), _ROUNDING)) for each in residuals]
    )
    last = np.partition(ratio.T, count - 1, axis=1)[:, count - 1]
    return np.asarray(ratio > np.float32(1 + _TIED) * last)


def _half_log(square: Float32Array, most: float, *, out: Float32Array) -> None:
    """Write ``most - log(square) / 2`` to `out`."""
    np.log(square, out=out)
    out *= np.float32(-0.5)
    out += np.float32(most)
