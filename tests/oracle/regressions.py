"""Regressions of every row on one or two shapes, and the evidence of pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import (
    ALIKE,
    LEAST,
    LOG_2,
    LOG_2PI,
    NO_PART,
    PAIR_FOLDS,
    PARALLEL,
    TINY,
)
from callpath_modeler.modeling.distributions import log_normal_share
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses
from callpath_modeler.modeling.mixture.regressions import InterceptPenalty, occam_volume
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows


def intercept_penalty(
    data: ScaledRows, rows: IntArray, pairs: IntArray, hypotheses: Hypotheses
) -> InterceptPenalty:
    """Return the cost of the constants of `pairs`, [..., n or 1], in the rows `rows` [n]."""
    frugal = hypotheses.kept.frugal
    asked = pairs >= (0 if frugal else hypotheses.growing)
    return InterceptPenalty(data.variance[rows], data.used[rows], asked, shared=not frugal)


class Moments(Struct, frozen=True):
    """Weighted sums of n rows and S shapes, about their weighted means.

    Attributes
    ----------
    weight : [n] sum of weights
    mean : [n] weighted mean of the values
    total : [n] weighted sum of squares of the values about their mean
    at : [S, n] weighted mean of each shape
    square : [S, n] weighted sum of squares of each shape about its mean
    product : [S, n] weighted sum of products of each shape with the values
    """

    weight: FloatArray
    mean: FloatArray
    total: FloatArray
    at: FloatArray
    square: FloatArray
    product: FloatArray

    def take(self, rows: IntArray) -> Moments:
        """Return the sums of some rows."""
        columns = (
            np.take(getattr(self, field.name), rows, axis=-1) for field in structs.fields(self)
        )
        return Moments(*columns)


def moments(values: FloatArray, weights: FloatArray, table: FloatArray) -> Moments:
    """Return the sums of rows with `values` and `weights` [K, n], and shapes `table` [S, K]."""
    weight = weights.sum(axis=0)
    mean = (weights * values).sum(axis=0) / weight
    centred = values - mean
    weighted = weights * centred
    total = (weighted * centred).sum(axis=0)
    at = table @ (weights / weight)
    raw = (table**2) @ weights
    square = at * at
    square *= weight
    np.subtract(raw, square, out=square)
    raw *= 1e-13
    raw += TINY
    np.maximum(square, raw, out=square)
    return Moments(weight, mean, total, at, square, table @ weighted)


class TwoTermFits(Struct, frozen=True):
    """Regressions on two shapes: ``f = constant + first x + second z``; all attributes are [...].

    Attributes
    ----------
    constant, first, second : coefficients of any sign, except that the constant is not negative
    residual : weighted residual sum of squares
    determinant : determinant of the normal equations of the free coefficients
    free : whether the constant is free; elsewhere it is left out
    """

    constant: FloatArray
    first: FloatArray
    second: FloatArray
    residual: FloatArray
    determinant: FloatArray
    free: BoolArray

    @property
    def positive(self) -> BoolArray:
        """Whether both coefficients are positive by more than rounding.

        A pair with a coefficient of zero is a hypothesis with one shape, which is tried separately.
        """
        least = np.abs(self.first)
        least += np.abs(self.second)
        least += self.constant
        least *= NO_PART
        return np.asarray((self.first > least) & (self.second > least))

    @classmethod
    def joined(cls, parts: Sequence[TwoTermFits]) -> TwoTermFits:
        """Return the regressions of all parts."""
        columns = (np.concatenate([getattr(p, f.name) for p in parts]) for f in structs.fields(cls))
        return cls(*columns)

    def take(self, which: tuple[IntArray, ...]) -> TwoTermFits:
        """Return the regressions at the positions `which`, [M]."""
        return TwoTermFits(*(getattr(self, field.name)[which] for field in structs.fields(self)))


class PairSums(Struct, frozen=True):
    """Sums for regressions on two shapes; all attributes broadcast against each other.

    Attributes
    ----------
    weight, mean, total : as in `Moments`
    at_x, at_z, xx, zz, x, z : `at`, `square` and `product` of `Moments` for each of both shapes
    xz : weighted sum of products of both shapes about their means
    """

    weight: FloatArray
    mean: FloatArray
    total: FloatArray
    at_x: FloatArray
    at_z: FloatArray
    xx: FloatArray
    xz: FloatArray
    zz: FloatArray
    x: FloatArray
    z: FloatArray

    @property
    def determinant(self) -> FloatArray:
        """Determinant of the normal matrix of both shapes about their means, kept above zero."""
        both = self.xx * self.zz
        found = self.xz**2
        np.subtract(both, found, out=found)
        both *= 1e-12
        np.maximum(both, TINY, out=both)
        return np.maximum(found, both, out=found)

    def residual(self, kept: BoolArray) -> FloatArray:
        """Return the residuals of `regressions`, without the coefficients.

        Constants that are not `kept` are left out, as are negative ones.
        """
        determinant = self.determinant
        x, z = self.x * self.zz, self.z * self.xx
        x -= self.z * self.xz
        z -= self.x * self.xz
        forced = self.at_x * x
        forced += self.at_z * z
        forced /= determinant
        np.subtract(self.mean, forced, out=forced)
        np.minimum(forced, 0.0, out=forced, where=kept)
        x *= self.x
        z *= self.z
        x += z
        x /= determinant
        # The variance of the constant, which divides the square of the forced part.
        z = self.at_x * self.zz
        z -= 2 * self.at_z * self.xz
        z *= self.at_x
        z += self.at_z * self.at_z * self.xx
        z /= determinant
        z += 1 / self.weight
        forced *= forced
        forced /= z
        forced += self.total
        forced -= x
        return np.maximum(forced, 0.0, out=forced)

    def regressions(self, price: InterceptPenalty) -> TwoTermFits:
        """Return the regressions on every pair.

        A constant is left out if it would be negative or does not pay its `price`. If two shapes
        are equal at all points, only rounding would distinguish them; then the first coefficient is
        zero.
        """
        determinant = self.determinant
        parallel = determinant <= PARALLEL * (self.xx * self.zz)
        # If points are missing, a shape may be constant over the remaining ones.
        parallel |= self.xx <= ALIKE * self.at_x * self.at_x * self.weight
        parallel |= self.zz <= ALIKE * self.at_z * self.at_z * self.weight
        inverse = 1 / determinant
        first = (self.x * self.zz - self.z * self.xz) * inverse
        second = (self.z * self.xx - self.x * self.xz) * inverse
        constant = self.mean - self.at_x * first
        constant -= self.at_z * second
        residual = self.total - first * self.x
        residual -= second * self.z
        # Covariances of the constant with all three coefficients.
        cx = (self.at_z * self.xz - self.at_x * self.zz) * inverse
        cz = (self.at_x * self.xz - self.at_z * self.xx) * inverse
        cc = 1 / self.weight - self.at_x * cx
        cc -= self.at_z * cz
        free = constant > 0
        if price.tested.any():
            level = np.maximum(first, 0.0) + np.maximum(second, 0.0) + np.maximum(constant, 0.0)
            level += LEAST
            free &= price.accepts(constant, cc, residual, level)
        # Forcing a constant to zero, as in a / p + b p, changes the others by their covariance.
        forced = np.where(free, 0.0, constant)
        residual += forced * (forced / cc)
        forced /= cc
        first -= forced * cx
        second -= forced * cz
        normal = self.weight / inverse
        np.multiply(normal, cc, out=normal, where=~free)
        np.copyto(first, 0.0, where=parallel)
        return TwoTermFits(
            np.where(free, constant, 0.0),
            first,
            second,
            np.maximum(residual, 0.0, out=residual),
            normal,
            free,
        )

    def covariance(self, free: BoolArray) -> tuple[FloatArray, ...]:
        """Return the covariance for a variance of 1 per point: cc, cx, cz, xx, xz, zz.

        It is zero for a constant that is not `free`.
        """
        # Without a constant, the sums are about zero instead of the mean.
        level = np.where(free, 0.0, self.weight)
        xx, zz = self.xx + level * self.at_x**2, self.zz + level * self.at_z**2
        xz = self.xz + level * self.at_x * self.at_z
        determinant = np.maximum(xx * zz - xz**2, 1e-12 * xx * zz)
        xx, xz, zz = zz / determinant, -xz / determinant, xx / determinant
        cx = np.where(free, -(self.at_x * xx + self.at_z * xz), 0.0)
        cz = np.where(free, -(self.at_x * xz + self.at_z * zz), 0.0)
        cc = np.where(free, 1 / self.weight - self.at_x * cx - self.at_z * cz, 0.0)
        return cc, cx, cz, xx, xz, zz


def all_pairs(
    sums: Moments, weights: FloatArray, products: FloatArray, first: IntArray, second: IntArray
) -> PairSums:
    """Return the sums of every pair and row, [P, n].

    `weights` [K, n] belong to the points; `products` [P, K] are the products of both shapes.
    """
    at_x, at_z = sums.at[first], sums.at[second]
    xz = products @ weights
    level = at_x * at_z
    level *= sums.weight
    xz -= level
    return PairSums(
        *(sums.weight, sums.mean, sums.total, at_x, at_z),
        *(sums.square[first], xz, sums.square[second], sums.product[first], sums.product[second]),
    )


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
