"""Regressions of every row on shapes, one or two at a time, from the same few sums.

Coefficients may have any sign, but constants of pairs are not negative, and where there is a price
they pay it; what regressions are worth is for `evidence` to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
N = TypeVar("N", FloatArray, npt.NDArray[np.float32])

TINY = 1e-300
LEAST = 1e-40
"""Of a level: its powers are still above zero."""

NO_PART = 1e-9
"""Of a level, a coefficient that is zero but for rounding."""

CONSTANT_FOLDS, PAIR_FOLDS = 6.0, 12.0
"""Over how many powers of e the share of what is beside work that is shared is uniform, of a
constant alone and of whatever is beside it in pairs."""
_LEAST_SHARE = 1e-4
"""What a share below it counts as."""

_ALIKE = 1e-12
"""Variation of a shape over the points of a row, squared and relative, that is rounding."""
PARALLEL = 1e-10
"""Of the product of the squares of two shapes, what is left where these are one at all points."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Weighted sums of n rows, about their weighted means; S shapes.

    Attributes
    ----------
    weight : [n] sum of weights
    mean : [n] weighted mean of the values
    total : [n] weighted sum of squares about it
    at : [S, n] weighted mean of each shape
    square : [S, n] weighted sum of squares of each shape about its mean
    product : [S, n] of each shape with the values
    """

    weight: FloatArray
    mean: FloatArray
    total: FloatArray
    at: FloatArray
    square: FloatArray
    product: FloatArray

    def take(self, rows: IntArray) -> Moments:
        """Return some rows."""
        columns = (np.take(getattr(self, field.name), rows, axis=-1) for field in fields(self))
        return Moments(*columns)


def moments(values: FloatArray, weights: FloatArray, table: FloatArray) -> Moments:
    """Sum up rows: `values`, `weights` [K, n], `table` [S, K]."""
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


@dataclass(frozen=True, slots=True)
class OneTermFits:
    """Regressions of M (row, shape) on one shape each, [..., M]: ``f = mean + slope (x - at)``.

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
class TwoTermFits:
    """Regressions on two shapes each: ``f = constant + first x + second z``, all [...] alike.

    Attributes
    ----------
    constant, first, second : coefficients, of any sign but that the constant is not negative
    residual : weighted sum of squares
    determinant : of the normal equations of the coefficients that are free
    free : whether the constant is; elsewhere it is left out
    """

    constant: FloatArray
    first: FloatArray
    second: FloatArray
    residual: FloatArray
    determinant: FloatArray
    free: npt.NDArray[np.bool_]

    @property
    def positive(self) -> npt.NDArray[np.bool_]:
        """Whether both shapes have a part in it, by more than rounding.

        Where a coefficient has to be zero, the pair is a hypothesis with one shape, which is there.
        """
        least = np.abs(self.first)
        least += np.abs(self.second)
        least += self.constant
        least *= NO_PART
        return np.asarray((self.first > least) & (self.second > least))

    @classmethod
    def joined(cls, parts: Sequence[TwoTermFits]) -> TwoTermFits:
        """Return regressions on the pairs of all parts."""
        columns = (np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls))
        return cls(*columns)

    def take(self, which: tuple[IntArray, ...]) -> TwoTermFits:
        """Return some of them, [M]."""
        return TwoTermFits(*(getattr(self, field.name)[which] for field in fields(self)))


def occam_volume(share: N, known: N | float, folds: float) -> N:
    """Return the inverse of the prior of what is beside a decreasing shape, `known` so well."""
    return np.asarray(folds * np.maximum(np.maximum(share, known), _LEAST_SHARE), share.dtype)


@dataclass(frozen=True, slots=True)
class InterceptPenalty:
    """What a constant beside two shapes costs: it has to explain more than the room it takes.

    Without it a pair is a hypothesis of its own, ``c1 x + c2 z``, whose evidence has one factor
    less: how well the constant would be known against how large it could be.

    Attributes
    ----------
    variance : [n] of the noise of a point
    used : [n] how many points have a value
    asked : [..., n] or [..., 1] of which pairs
    shared : whether these are beside work that is shared, so that the share of a constant is
        uniform in its logarithm
    """

    variance: FloatArray
    used: FloatArray
    tested: npt.NDArray[np.bool_]
    shared: bool = False

    def accepts(
        self, constant: FloatArray, spread: FloatArray, residual: FloatArray, level: FloatArray
    ) -> npt.NDArray[np.bool_]:
        """Tell which constants are worth it or need not be, [..., n] as are all arguments.

        `spread` is their variance without that of a point, `residual` what is left with them,
        `level` the sum of the coefficients that are positive.
        """
        of_point = np.maximum(self.variance, residual / np.maximum(self.used - 3, 1.0))
        variance = np.maximum(spread * of_point, TINY)
        room = level
        if self.shared:
            room = level * occam_volume(constant / level, 0.0, PAIR_FOLDS)
        with np.errstate(over="ignore"):
            cost = np.log(room**2 / (2 * np.pi * variance))
        return np.asarray((constant**2 > variance * cost) | ~self.tested)


@dataclass(frozen=True, slots=True)
class PairSums:
    """What regressions on two shapes are made of; every column broadcasts against the others.

    Attributes
    ----------
    weight, mean, total : as of `Moments`
    at_x, at_z, xx, zz, x, z : as `at`, `square` and `product` there, of each shape
    xz : weighted sum of products of the shapes about their means
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
        """That of the two shapes about their means; kept above zero."""
        both = self.xx * self.zz
        found = self.xz**2
        np.subtract(both, found, out=found)
        both *= 1e-12
        np.maximum(both, TINY, out=both)
        return np.maximum(found, both, out=found)

    def residual(self, kept: npt.NDArray[np.bool_]) -> FloatArray:
        """Return what `regressions` leave, without their coefficients.

        Constants that are not `kept` are left out, as are those below zero.
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
        # The variance of the constant, of which the forced part is taken.
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
        """Regress on every pair; through the origin where a constant would be negative.

        And where it does not pay its `price`. Of two shapes that are one at all points, which
        rounding would tell apart, the first has no part.
        """
        determinant = self.determinant
        parallel = determinant <= PARALLEL * (self.xx * self.zz)
        # Where points are missing, a shape may be the same at all that are left.
        parallel |= self.xx <= _ALIKE * self.at_x * self.at_x * self.weight
        parallel |= self.zz <= _ALIKE * self.at_z * self.at_z * self.weight
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
        # As a constant is forced to zero, others follow by their covariance: a / p + b p has none.
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

    def covariance(self, free: npt.NDArray[np.bool_]) -> tuple[FloatArray, ...]:
        """Return that of the coefficients without the variance of a point: cc, cx, cz, xx, xz, zz.

        It is zero for a constant that is not `free`.
        """
        # Without a constant, sums are about zero.
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
    """Sum up for every pair of every row, [P, n]; `weights` [K, n], `products` [P, K] of shapes."""
    at_x, at_z = sums.at[first], sums.at[second]
    xz = products @ weights
    level = at_x * at_z
    level *= sums.weight
    xz -= level
    return PairSums(
        *(sums.weight, sums.mean, sums.total, at_x, at_z),
        *(sums.square[first], xz, sums.square[second], sums.product[first], sums.product[second]),
    )
