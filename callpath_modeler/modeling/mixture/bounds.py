"""Bounds of the evidence of hypotheses with at most one shape: cheap, for all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

import numpy as np
import numpy.typing as npt

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

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
SingleArray = npt.NDArray[np.float32]
NumberArray = FloatArray | SingleArray
N = TypeVar("N", FloatArray, SingleArray)

_ALIKE = 1e-12
"""Variation of a shape over the points of a row, squared and relative, that is rounding."""

_TIED = 1e-5
"""What residuals that are equal but for rounding differ by, relatively, at most."""

SMALLEST = np.float32(1e-37)
"""In single precision, what still has all its digits."""


_ROUNDING = 1e-12
"""A residual below it is rounding: what fits exactly under one drift does under all."""


@dataclass(frozen=True, slots=True)
class OneTermRegressions:
    """All regressions of n rows on one of S shapes each, under one drift.

    Attributes
    ----------
    weights : [K, n] of the points
    sums : of the rows
    slope, residual : [S, n] unconstrained, and the weighted sum of squares it leaves
    """

    weights: FloatArray
    sums: Moments
    slope: FloatArray
    residual: FloatArray


def regress(data: ScaledRows, hypotheses: Hypotheses, weights: FloatArray) -> OneTermRegressions:
    """Regress all rows on all shapes; `weights` [K, n] are those of the points."""
    sums = moments(data.values.T, weights, hypotheses.table)
    slope = sums.product / sums.square
    residual = slope * sums.product
    np.subtract(sums.total, residual, out=residual)
    return OneTermRegressions(weights, sums, slope, np.maximum(residual, 0.0, out=residual))


def typical_variance(regressions: OneTermRegressions, data: ScaledRows) -> FloatArray:
    """Return a rough variance of a point, [n]: what the best hypothesis with one shape leaves."""
    left = regressions.residual.min(axis=0) / np.maximum(data.used - 2, 1)
    return np.asarray(np.maximum(np.maximum(left, EXACT_VARIANCE), data.variance))


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of the evidence of n rows, prior included.

    Attributes
    ----------
    constant : [n] of constants
    singles : [3, S, n] with positive coefficients, offset, without a constant; -inf = left out
    """

    constant: SingleArray
    singles: SingleArray

    @property
    def alone(self) -> SingleArray:
        """The largest of each row, [n]."""
        return np.asarray(np.maximum(self.constant, self.singles.max(axis=(0, 1))))

    def best(self, row: IntArray, others: SingleArray) -> SingleArray:
        """Return the largest of each row, [n], with `others` [M] of `row` [M] in mind."""
        found = self.alone
        np.maximum.at(found, row, others)
        return np.asarray(found)


@dataclass(frozen=True, slots=True)
class OneTermFits32:
    """Regressions on one shape in single precision, [S, n]: enough for bounds.

    Coefficients are in units of what the mean is known to for a point's variance of one; that is
    the root of the weight of a row.

    Attributes
    ----------
    unit, mean : [n] that unit; the weighted mean in it
    at : weighted mean of the shape
    scatter : weighted mean square of the shape about it
    about_zero : that about zero
    slope, constant : of the regressions
    left : what they leave
    """

    unit: SingleArray
    mean: SingleArray
    at: SingleArray
    scatter: SingleArray
    about_zero: SingleArray
    slope: SingleArray
    constant: SingleArray
    left: SingleArray

    @classmethod
    def of(cls, regressions: OneTermRegressions) -> OneTermFits32:
        """Scale down what was seen."""
        sums, unit = regressions.sums, np.sqrt(regressions.sums.weight)
        mean, slope = sums.mean * unit, regressions.slope * unit
        # Of a constant that is next to none single precision would leave nothing.
        constant = slope * sums.at
        np.subtract(mean, constant, out=constant)
        at, scatter = as_float32(sums.at), as_float32(sums.square / sums.weight)
        about_zero = at * at
        about_zero += scatter
        np.maximum(about_zero, SMALLEST, out=about_zero)
        numbers = (as_float32(each) for each in (slope, constant, regressions.residual))
        return cls(as_float32(unit), as_float32(mean), at, scatter, about_zero, *numbers)

    def bare(self) -> SingleArray:
        """Return what each shape leaves without a constant."""
        # As a constant is forced to zero, residuals grow by its square over its variance.
        more = self.constant * self.constant
        more *= self.scatter
        more /= self.about_zero
        more += self.left
        return more

    def bare_slope(self) -> SingleArray:
        """Return the slopes without a constant."""
        # The shape makes up for what the constant was.
        slope = self.constant * self.at
        slope /= self.about_zero
        slope += self.slope
        return slope

    def volumes(self, hypotheses: Hypotheses, variance: SingleArray) -> SingleArray:
        """Return the part of the bounds that depends on coefficients, [3, S, n]."""
        found = np.empty((3, *self.slope.shape), dtype=np.float32)
        falling = np.flatnonzero(hypotheses.single_group == HypothesisGroup.FALLING)
        positive, offset, bare = found
        lowest = np.float32(LEAST_LEVEL) * self.mean
        # The models at both ends of a slope.
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
    """Bound the evidence of hypotheses with at most one shape, prior included.

    The variance and the drift are those that suit each hypothesis best, and normal integrals over
    signs, under `variance` [n], are bounded by what they are at the bound. Single precision is
    enough for a bound, and takes half the time.

    Returns
    -------
    Singles
        The regressions under the first drift.
    Bounds
        Under the drifts that suit best.
    """
    first, size, used = regressions[0], len(hypotheses.shapes), data.used
    singles = [OneTermFits32.of(seen) for seen in regressions]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found = singles[0].volumes(hypotheses, as_float32(variance))
        found += as_float32(log_prior[1 : 1 + 3 * size]).reshape(3, size, 1)
    # What suits best leaves least.
    found[:2] += profile_likelihood(least_residual([each.left for each in singles]), data, used - 2)
    found[2] += profile_likelihood(
        least_residual([each.bare() for each in singles]), data, used - 1
    )
    far = below_the_best([each.left for each in singles], hypotheses.kept.shapes)
    if not (data.weight > 0).all():
        # Where points are missing, a shape may be the same at all that are left.
        far |= singles[0].scatter <= _ALIKE * singles[0].about_zero
    # What overflows is no number, and not worth a look.
    np.copyto(found, -np.inf, where=far | np.isnan(found))
    alone = as_float32(constant_evidence(first.sums.weight, first.sums.mean) + log_prior[0])
    alone += profile_likelihood(
        least_residual([seen.sums.total for seen in regressions]), data, used - 1
    )
    return singles[0], Bounds(alone, found)


def as_float32(numbers: NumberArray) -> SingleArray:
    """Return numbers in single precision; what is too large for it is infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(numbers, dtype=np.float32)


def least_residual(residuals: Sequence[N]) -> N:
    """Return the least under any drift: likelihoods fall with the residual."""
    return reduce(np.minimum, residuals)


def profile_likelihood(residual: NumberArray, data: ScaledRows, freedom: FloatArray) -> SingleArray:
    """Bound the log likelihood from above, [..., n]: under the variance that suits best.

    `freedom` [n] or [..., n] are points minus coefficients.
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
    """Tell regressions, [S, n], that are not among the `count` best under any drift.

    Rounding does not choose among equals: all that are as good as the last one are among the best.
    """
    if len(residuals[0]) <= count:
        return np.zeros(residuals[0].shape, dtype=bool)
    ratio = least_residual(
        [as_float32(each / np.maximum(each.min(axis=0), _ROUNDING)) for each in residuals]
    )
    last = np.partition(ratio.T, count - 1, axis=1)[:, count - 1]
    return np.asarray(ratio > np.float32(1 + _TIED) * last)


def _half_log(square: SingleArray, most: float, *, out: SingleArray) -> None:
    """Write ``most - log(square) / 2``."""
    np.log(square, out=out)
    out *= np.float32(-0.5)
    out += np.float32(most)
