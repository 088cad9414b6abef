"""Which hypotheses of each row are worth a look: bounds instead of evidence, for all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.data import Data, floor_of, relative_weights
from callpath_modeler.modeling.mixture.deviations import Drift
from callpath_modeler.modeling.mixture.evidence import (
    LEAST,
    LEAST_LEVEL,
    LOG_2PI,
    SHARE_EDGE,
    TINY,
    Moments,
    all_pairs,
    constant_evidence,
    moments,
    pair_volume,
)
from callpath_modeler.modeling.mixture.hypotheses import Group, Hypotheses
from callpath_modeler.modeling.mixture.spread import EXACT_VARIANCE

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
SingleArray = npt.NDArray[np.float32]
NumberArray = FloatArray | SingleArray

_NEGLIGIBLE = 9.0
"""A hypothesis whose bound is by this much below the best, in nats, is left out."""

_ALIKE = 1e-12
"""Variation of a shape over the points of a row, squared and relative, that is rounding."""

_SMALLEST = np.float32(1e-37)
"""In single precision, what still has all its digits."""

_ROUNDING = 1e-12
"""A residual below it is rounding: what fits exactly under one drift does under all."""

_WITHIN = 3.0
"""A model differs from a measured value by this factor at most where weights are made of it."""

_UNEXPLAINED = 0.4
"""Of the variation, what a shape may leave and still weights are made of it."""

_BLOCK = 64
"""Rows whose pairs are regressed at once: what is needed for them stays in the cache."""

_FEWEST_FOR_PAIRS = 4
_MISFIT_FOR_PAIRS = 1.0


@dataclass(frozen=True, slots=True)
class Look:
    """All regressions on one shape under one drift.

    Attributes
    ----------
    weights : [n, K] of the points
    sums : of the rows
    slope, residual : [n, S] unconstrained, and the weighted sum of squares it leaves
    """

    weights: FloatArray
    sums: Moments
    slope: FloatArray
    residual: FloatArray


def look(data: Data, known: Hypotheses, fitted: FloatArray, drift: Drift) -> Look:
    """Regress all rows on all shapes; `fitted` [n, K] are the values that weights are made of."""
    weights = relative_weights(data, fitted, drift)
    sums = moments(data.values, weights, known.table)
    slope = sums.product / sums.square
    residual = slope * sums.product
    np.subtract(sums.total[:, None], residual, out=residual)
    return Look(weights, sums, slope, np.maximum(residual, 0.0, out=residual))


def typical_variance(seen: Look, data: Data) -> FloatArray:
    """Return a rough variance of a point, [n]: what the best hypothesis with one shape leaves."""
    left = seen.residual.min(axis=1) / np.maximum(data.used - 2, 1)
    return np.asarray(np.maximum(np.maximum(left, EXACT_VARIANCE), data.variance))


def bounds(looks: list[Look], data: Data, known: Hypotheses, log_prior: FloatArray) -> SingleArray:
    """Bound the evidence of hypotheses with at most one shape, prior included.

    The variance and the drift are those that suit each hypothesis best, and normal integrals over
    signs are bounded by what they are at the bound. Single precision is enough for a bound, and
    takes half the time.

    Returns
    -------
    ndarray [n, 1 + 3 S]
        In the order of `Hypotheses.log_prior`; -inf = left out.
    """
    first, size, used = looks[0], len(known.shapes), data.used
    bound = np.empty((len(used), 1 + 3 * size), dtype=np.float32)
    bound[:, 0] = constant_evidence(first.sums.weight, first.sums.mean)
    singles = [_Singles.of(seen) for seen in looks]
    variance = single(typical_variance(first, data)[:, None])
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        singles[0].write(bound, known, variance)
        bound += single(log_prior[: 1 + 3 * size])
    # What suits best leaves least.
    bound[:, 0] += profile(least([each.sums.total for each in looks]), data, used - 1)
    two = profile(least([each.left for each in singles]), data, used - 2)
    bound[:, 1 : 1 + size] += two
    bound[:, 1 + size : 1 + 2 * size] += two
    bound[:, 1 + 2 * size :] += profile(least([each.bare() for each in singles]), data, used - 1)
    far = apart([each.residual for each in looks], known.kept.shapes)
    # Where points are missing, a shape may be the same at all that are left.
    far |= singles[0].square <= _ALIKE * singles[0].about_zero + LEAST
    for family in np.split(bound[:, 1:], 3, axis=1):
        np.copyto(family, -np.inf, where=far)
    return bound


@dataclass(frozen=True, slots=True)
class _Singles:
    """Regressions on one shape in single precision, [n, S] or [n, 1]: enough for bounds.

    Attributes
    ----------
    weight, mean, at, square : as of `Moments`
    about_zero : weighted sum of squares of each shape about zero
    slope, constant, left : of the regressions; what they leave
    """

    weight: SingleArray
    mean: SingleArray
    at: SingleArray
    square: SingleArray
    about_zero: SingleArray
    slope: SingleArray
    constant: SingleArray
    left: SingleArray

    @classmethod
    def of(cls, seen: Look) -> _Singles:
        sums = seen.sums
        # Of a constant that is next to none single precision would leave nothing.
        constant = seen.slope * sums.at
        np.subtract(sums.mean[:, None], constant, out=constant)
        weight, mean = single(sums.weight[:, None]), single(sums.mean[:, None])
        at, square = single(sums.at), single(sums.square)
        about_zero = weight * at
        about_zero *= at
        about_zero += square
        left = single(seen.residual)
        return cls(weight, mean, at, square, about_zero, single(seen.slope), single(constant), left)

    def bare(self) -> SingleArray:
        """Return what each shape leaves without a constant."""
        # As a constant is forced to zero, residuals grow by its square over its variance.
        more = self.constant**2
        more *= self.weight
        more *= self.square
        more /= np.maximum(self.about_zero, _SMALLEST)
        more += self.left
        return more

    def write(self, bound: SingleArray, known: Hypotheses, variance: SingleArray) -> None:
        """Write the part of the bounds that depends on coefficients."""
        falling = known.single_group == Group.FALLING
        positive, offset, bare = np.split(bound[:, 1:], 3, axis=1)
        lowest = np.float32(LEAST_LEVEL) * self.mean
        # The models at both ends of a slope.
        level = np.maximum(self.constant + self.slope, lowest)
        edge = self.constant / np.maximum(self.at, np.float32(1e-9))
        below, beyond = np.minimum(self.slope, 0), np.minimum(edge, 0)
        sharpness = self.square / (2 * variance)
        volume = np.log(self.weight * self.square)
        volume *= np.float32(-0.5)
        volume += np.float32(LOG_2PI)
        share = np.maximum(self.constant / level, np.float32(SHARE_EDGE))
        np.subtract(volume, np.log(level**2 * np.sqrt(4 * share)), out=positive)
        positive -= sharpness * (below**2 + beyond**2)
        wrong = np.where(falling, self.slope - below, edge - beyond)
        far = np.where(falling, np.maximum(self.constant, lowest), level)
        np.subtract(volume, 2 * np.log(far), out=offset)
        offset -= sharpness * wrong**2
        product = self.slope * self.square + self.weight * self.at * self.mean
        ratio = np.maximum(product / self.about_zero, _SMALLEST)
        np.log(np.sqrt(self.about_zero) * ratio, out=bare)
        np.subtract(np.float32(0.5 * LOG_2PI), bare, out=bare)


def single(numbers: NumberArray) -> SingleArray:
    """Return numbers in single precision."""
    return np.asarray(numbers, dtype=np.float32)


def least(residuals: Sequence[NumberArray]) -> NumberArray:
    """Return the least under any drift: likelihoods fall with the residual."""
    return reduce(np.minimum, residuals)


def profile(residual: NumberArray, data: Data, freedom: FloatArray) -> SingleArray:
    """Bound the log likelihood from above, [n, ...]: under the variance that suits best.

    `freedom` [n] or [n, ...] are points minus coefficients.
    """
    shape = (-1,) + (1,) * (residual.ndim - 1)
    dof, noise = (single(column).reshape(shape) for column in (data.dof, data.variance))
    free = single(freedom).reshape(shape) if freedom.ndim == 1 else single(freedom)
    left = single(residual)
    variance = left / np.maximum(free, 1)
    np.maximum(variance, noise, out=variance)
    found = np.log(variance)
    found *= free
    variance *= dof
    left /= variance
    np.log1p(left, out=left)
    left *= dof + free
    found += left
    found *= np.float32(-0.5)
    return found


def apart(residuals: list[FloatArray], count: int) -> BoolArray:
    """Tell regressions, [n, S], that are not among the `count` best under any drift."""
    ratio = single(
        least([each / np.maximum(each.min(axis=1, keepdims=True), _ROUNDING) for each in residuals])
    )
    if ratio.shape[1] <= count:
        return np.zeros(ratio.shape, dtype=bool)
    return np.asarray(ratio > np.partition(ratio, count - 1, axis=1)[:, count - 1 : count])


def worth(bound: SingleArray, best: SingleArray) -> BoolArray:
    """Tell which hypotheses could matter; `best` [n] is the largest bound of each row."""
    return np.asarray(bound >= best[:, None] - np.float32(_NEGLIGIBLE))


@dataclass(frozen=True, slots=True)
class Chosen:
    """Hypotheses of n rows that are worth a look, beside the constant of each.

    Attributes
    ----------
    row, shape : [U] what to regress on one shape
    families : with positive coefficients, offset, without a constant: which of these, each
    pair_row, pair : [P] what to regress on two
    variance : [n] roughly that of a point
    fitted : [n, K] the values that weights were made of
    """

    row: IntArray
    shape: IntArray
    families: tuple[IntArray, ...]
    pair_row: IntArray
    pair: IntArray
    variance: FloatArray
    fitted: FloatArray


def screen(data: Data, known: Hypotheses, log_prior: FloatArray, drifts: Sequence[Drift]) -> Chosen:
    """Choose what is worth a look, whatever the drift.

    `log_prior` [H] is of the hypotheses; `drifts` are the extreme ones, none first.
    """
    fitted = rough_fit(data, known)
    looks = [look(data, known, fitted, drift) for drift in drifts]
    bound = bounds(looks, data, known, log_prior)
    best = bound.max(axis=1)
    pair_row = pair = np.zeros(0, dtype=np.intp)
    rows = rows_for_pairs(looks[0], data, known)
    if len(rows):
        of_pairs = pair_bounds(looks, rows, data, known, log_prior)
        best[rows] = np.maximum(best[rows], of_pairs.max(axis=1))
        which, pair = np.nonzero(worth(of_pairs, best[rows]))
        pair_row = rows[which]
    worthy = np.split(worth(bound[:, 1:], best), 3, axis=1)
    row, shape = np.nonzero(np.logical_or.reduce(worthy))
    families = tuple(np.flatnonzero(family[row, shape]) for family in worthy)
    variance = typical_variance(looks[0], data)
    return Chosen(row, shape, families, pair_row, pair, variance, fitted)


def rows_for_pairs(seen: Look, data: Data, known: Hypotheses) -> IntArray:
    """Return rows that one shape does not explain within their noise, and that allow two."""
    if not len(known.first):
        return np.zeros(0, dtype=np.intp)
    misfit = seen.residual.min(axis=1) / np.maximum(data.used - 2, 1)
    noise = np.maximum(data.variance, EXACT_VARIANCE)
    return np.flatnonzero((data.used >= _FEWEST_FOR_PAIRS) & (misfit > _MISFIT_FOR_PAIRS * noise))


def pair_bounds(
    looks: list[Look], rows: IntArray, data: Data, known: Hypotheses, log_prior: FloatArray
) -> SingleArray:
    """Bound the evidence of pairs of some rows, prior included, [rows, P]."""
    prior = single(log_prior[1 + 3 * len(known.shapes) :])
    bound = np.empty((len(rows), len(prior)), dtype=np.float32)
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        found = [
            all_pairs(
                seen.sums.take(some), seen.weights[some], known.table, known.first, known.second
            ).regressions()
            for seen in looks
        ]
        residuals = [each.residual.T.copy() for each in found]
        freedom = data.used[some, None] - np.where(found[0].free.T, 3, 2)
        block = profile(least(residuals), data.take(some), freedom)
        block += single(pair_volume(found[0]).T)
        block += prior
        np.copyto(block, -np.inf, where=apart(residuals, known.kept.pairs))
        bound[start : start + _BLOCK] = block
    return bound


def rough_fit(data: Data, known: Hypotheses) -> FloatArray:
    """Return what the best hypothesis with one shape says, [n, K]; good enough for weights.

    A constant, unless the shape leaves much less than it: noise would weigh noise.
    """
    seen = look(data, known, data.values, Drift(0.0))
    sums = seen.sums
    slope = np.clip(seen.slope, 0.0, sums.mean[:, None] / np.maximum(sums.at, TINY))
    residual = sums.total[:, None] - slope * (2 * sums.product - slope * sums.square)
    best = residual.argmin(axis=1)
    rows = np.arange(len(best))
    explains = residual[rows, best] < _UNEXPLAINED * sums.total
    slope = np.where(explains, slope[rows, best], 0.0)
    model = sums.mean - slope * sums.at[rows, best]
    return smoothed(data, model[:, None] + slope[:, None] * known.table[best])


def smoothed(data: Data, fitted: FloatArray) -> FloatArray:
    """Keep a model within reach of the values, so that one bad fit does not upset weights."""
    floor = floor_of(data)
    near = np.clip(fitted, data.values / _WITHIN, data.values * _WITHIN)
    return np.where(data.values > 0, near, np.maximum(fitted, floor))
