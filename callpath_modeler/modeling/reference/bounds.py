"""Upper bounds of the evidence of hypotheses with at most one shape.

They cover all hypotheses at once. See docs/explanation/hypotheses.md, 'Screening'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import (
    ALIKE,
    CONSTANT_FOLDS,
    LEAST_LEVEL,
    LOG_2PI,
    SHARE_EDGE,
    TINY,
)
from callpath_modeler.modeling.constants.hypotheses import ROUNDING, TIED
from callpath_modeler.modeling.constants.noise import EXACT_VARIANCE
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses, HypothesisGroup
from callpath_modeler.modeling.mixture.regressions import (
    Moments,
    constant_evidence,
    moments,
    occam_volume,
)
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows


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

    @property
    def constant(self) -> FloatArray:
        """Constants of the regressions, [S, n]."""
        return np.asarray(self.sums.mean - self.slope * self.sums.at)

    @property
    def about_zero(self) -> FloatArray:
        """Weighted sums of squares of the shapes about zero, [S, n]."""
        return np.asarray(self.sums.square + self.sums.weight * self.sums.at**2)

    @property
    def bare_slope(self) -> FloatArray:
        """Slopes without a constant, [S, n]."""
        product = self.sums.product + self.sums.weight * self.sums.at * self.sums.mean
        return np.asarray(product / np.maximum(self.about_zero, TINY))

    @property
    def bare_residual(self) -> FloatArray:
        """Residuals without a constant, [S, n].

        Forcing a constant to zero adds its square, divided by its variance.
        """
        of_constant = self.sums.weight * self.sums.square / np.maximum(self.about_zero, TINY)
        return np.asarray(self.residual + self.constant**2 * of_constant)


def regress(data: ScaledRows, hypotheses: Hypotheses, weights: FloatArray) -> OneTermRegressions:
    """Return the regressions of all rows on all shapes; `weights` [K, n] belong to the points."""
    sums = moments(data.values.T, weights, hypotheses.table)
    slope = sums.product / sums.square
    residual = np.maximum(sums.total - slope * sums.product, 0.0)
    return OneTermRegressions(weights, sums, slope, residual)


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

    constant: FloatArray
    singles: FloatArray

    @property
    def alone(self) -> FloatArray:
        """The largest bound of each row, [n]."""
        return np.asarray(np.maximum(self.constant, self.singles.max(axis=(0, 1))))

    def best(self, row: IntArray, others: FloatArray) -> FloatArray:
        """Return the largest bound of each row, [n], including `others` [M] of `row` [M]."""
        found = self.alone
        np.maximum.at(found, row, others)
        return found


def coefficient_bounds(
    found: OneTermRegressions, hypotheses: Hypotheses, variance: FloatArray
) -> FloatArray:
    """Return the part of the bounds that depends on the coefficients, [3, S, n].

    The normal integral over the allowed signs is at most exp(-z^2 / 2). Here z is the distance of
    the coefficient beyond its bound, in standard errors under `variance` [n].
    """
    sums, slope, constant = found.sums, found.slope, found.constant
    falling = (hypotheses.single_group == HypothesisGroup.FALLING)[:, None]
    lowest = LEAST_LEVEL * sums.mean
    # The value at the largest shape, and far beyond the points.
    level = np.maximum(constant + slope, lowest)
    far = np.where(falling, np.maximum(constant, lowest), level)
    determinant = sums.weight * sums.square
    steepest = constant / np.maximum(sums.at, 1e-9)
    known = np.sqrt(variance * (1 / sums.weight + sums.at**2 / sums.square)) / level
    rest = occam_volume(constant / level, known, CONSTANT_FOLDS)
    room = np.where(falling, rest**2, 4 * np.maximum(constant / level, SHARE_EDGE))
    beyond = np.minimum(slope, 0.0) ** 2 + np.minimum(steepest, 0.0) ** 2
    positive = LOG_2PI - _half_log(level**4 * room * determinant)
    positive -= 0.5 * beyond * sums.square / variance
    beyond = np.maximum(np.where(falling, slope, steepest), 0.0) ** 2
    offset = LOG_2PI - _half_log(far**4 * determinant) - 0.5 * beyond * sums.square / variance
    bare = np.maximum(found.bare_slope, lowest) ** 2 * found.about_zero
    return np.stack([positive, offset, LOG_2PI / 2 - _half_log(bare)])


def bounds(
    regressions: Sequence[OneTermRegressions],
    data: ScaledRows,
    hypotheses: Hypotheses,
    log_prior: FloatArray,
    variance: FloatArray,
) -> Bounds:
    """Return upper bounds of the evidence of hypotheses with at most one shape, prior included.

    Each hypothesis gets the variance and the drift that suit it best; the smallest residual belongs
    to that drift. Coefficients are those under the first drift, with the rough `variance` [n].
    """
    first, size, used = regressions[0], len(hypotheses.shapes), data.used
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found = coefficient_bounds(first, hypotheses, variance)
        found += log_prior[1 : 1 + 3 * size].reshape(3, size, 1)
    with_constant = [each.residual for each in regressions]
    found[:2] += profile_likelihood(least_residual(with_constant), data, used - 2)
    without = least_residual([each.bare_residual for each in regressions])
    found[2] += profile_likelihood(without, data, used - 1)
    # If points are missing, a shape may be constant over the remaining ones.
    constant = first.sums.square <= np.maximum(ALIKE * first.about_zero, TINY)
    left_out = below_the_best(with_constant, hypotheses.kept.shapes) | constant
    # Bounds that overflow are NaN.
    found = np.where(left_out | np.isnan(found), -np.inf, found)
    alone = constant_evidence(first.sums.weight, first.sums.mean) + log_prior[0]
    totals = least_residual([each.sums.total for each in regressions])
    return Bounds(alone + profile_likelihood(totals, data, used - 1), found)


def least_residual(residuals: Sequence[FloatArray]) -> FloatArray:
    """Return the smallest residual under any drift; the likelihood falls with the residual."""
    return np.asarray(np.minimum.reduce(residuals))


def profile_likelihood(residual: FloatArray, data: ScaledRows, freedom: FloatArray) -> FloatArray:
    """Return upper bounds of the log likelihood, [..., n], under the variance that suits best.

    `freedom` [n] or [..., n] is the number of points minus the number of coefficients.
    """
    variance = np.maximum(residual / np.maximum(freedom, 1.0), data.variance)
    tail = np.log1p(residual / (data.dof * variance))
    return np.asarray(-0.5 * (freedom * np.log(variance) + (data.dof + freedom) * tail))


def below_the_best(residuals: Sequence[FloatArray], count: int) -> BoolArray:
    """Return which regressions, [S, n], are not among the `count` best under any drift.

    Regressions that tie with the last one are among the best, so that rounding does not choose.
    """
    if len(residuals[0]) <= count:
        return np.zeros(residuals[0].shape, dtype=np.bool_)
    ratio = least_residual([each / np.maximum(each.min(axis=0), ROUNDING) for each in residuals])
    last = np.sort(ratio, axis=0)[count - 1]
    return np.asarray(ratio > (1 + TIED) * last)


def _half_log(square: FloatArray) -> FloatArray:
    return np.asarray(0.5 * np.log(np.maximum(square, TINY)))
