"""Which hypotheses of each row are worth a look: bounds instead of evidence, for all at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.evaluation import doublings
from callpath_modeler.modeling.mixture.evidence import (
    LEAST,
    LEAST_LEVEL,
    LOG_2PI,
    SHARE_EDGE,
    TINY,
    Moments,
    moments,
)
from callpath_modeler.modeling.mixture.hypotheses import Group, Hypotheses
from callpath_modeler.modeling.mixture.spread import EXACT_VARIANCE, Noise

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

_NEGLIGIBLE = 9.0
"""A hypothesis whose bound is by this much below the best, in nats, is left out."""

_ALIKE = 1e-12
"""Variation of a shape over the points of a row, squared and relative, that is rounding."""

_ROUNDING = 1e-12
"""A residual below it is rounding: what fits exactly under one drift does under all."""

_SHAPES_KEPT = 30

_WITHIN = 3.0
"""A model differs from a measured value by this factor at most where weights are made of it."""


@dataclass(frozen=True, slots=True)
class Data:
    """Rows to fit, [n, K]; zero weight where a value is missing.

    Attributes
    ----------
    points : [K] ascending, or [K, D] of several parameters
    values : in units of the row
    weight : of the points, about 1
    variance, dof : [n] of the noise of a centre
    """

    points: FloatArray
    values: FloatArray
    weight: FloatArray
    variance: FloatArray
    dof: FloatArray

    def take(self, rows: IntArray | BoolArray) -> Data:
        """Return some rows."""
        return Data(
            self.points, self.values[rows], self.weight[rows], self.variance[rows], self.dof[rows]
        )

    @property
    def used(self) -> FloatArray:
        """How many points have a value, [n]."""
        return np.asarray((self.weight > 0).sum(axis=1), dtype=np.float64)


def data_of(points: FloatArray, noise: Noise, rows: IntArray | slice) -> tuple[Data, FloatArray]:
    """Return some rows, and the unit of each: its largest value."""
    weight = noise.weight[rows]
    values = np.where(weight > 0, noise.centre[rows], 0.0)
    unit = values.max(axis=1)
    values = values / unit[:, None]
    return Data(points, values, weight, noise.variance[rows], noise.dof[rows]), unit


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


def look(data: Data, known: Hypotheses, fitted: FloatArray, drift: float) -> Look:
    """Regress all rows on all shapes; `fitted` [n, K] are the values that weights are made of."""
    weights = _relative_weights(data, fitted, 1 + drift * doublings(data.points))
    sums = moments(data.values, weights, known.table)
    slope = sums.product / sums.square
    residual = np.maximum(sums.total[:, None] - slope * sums.product, 0.0)
    return Look(weights, sums, slope, residual)


def typical_variance(seen: Look, data: Data) -> FloatArray:
    """Return a rough variance of a point, [n]: what the best hypothesis with one shape leaves."""
    left = seen.residual.min(axis=1) / np.maximum(data.used - 2, 1)
    return np.asarray(np.maximum(np.maximum(left, EXACT_VARIANCE), data.variance))


def bounds(looks: list[Look], data: Data, known: Hypotheses, log_prior: FloatArray) -> FloatArray:
    """Bound the evidence of hypotheses with at most one shape, prior included.

    The variance is the one that suits each hypothesis best, and normal integrals over signs are
    bounded by what they are at the bound.

    Returns
    -------
    ndarray [n, 1 + 3 S]
        In the order of `Hypotheses.log_prior`, under the drift that suits best; -inf = left out.
    """
    first, used = looks[0], data.used[:, None]
    sums = first.sums
    size = len(known.shapes)
    bound = np.empty((len(data.values), 1 + 3 * size))
    variance = typical_variance(first, data)[:, None]
    bound[:, 0] = 0.5 * (LOG_2PI - np.log(sums.weight)) - np.log(np.maximum(sums.mean, TINY))
    _bound_slopes(bound, first, known, variance)
    bound += log_prior[: 1 + 3 * size]
    whole = bound + _profiles(first, data, used)
    for other in looks[1:]:
        np.maximum(whole, bound + _profiles(other, data, used), out=whole)
    far = apart([each.residual for each in looks], _SHAPES_KEPT)
    whole[:, 1:].reshape(-1, 3, size)[np.broadcast_to(far[:, None], (len(far), 3, size))] = -np.inf
    return whole


def _bound_slopes(bound: FloatArray, seen: Look, known: Hypotheses, variance: FloatArray) -> None:
    size, sums, slope = len(known.shapes), seen.sums, seen.slope
    mean, weight = sums.mean[:, None], sums.weight[:, None]
    falling = known.single_group == Group.FALLING
    constant = mean - slope * sums.at
    level = np.maximum(mean + slope * (1 - sums.at), LEAST_LEVEL * mean)
    sharpness = 0.5 * sums.square / variance
    volume = LOG_2PI - 0.5 * np.log(weight * sums.square)
    share = np.maximum(constant / level, SHARE_EDGE)
    edge = constant / np.maximum(sums.at, 1e-9)
    positive, offset, bare = (bound[:, 1 + k * size : 1 + (k + 1) * size] for k in range(3))
    below, beyond = np.minimum(slope, 0.0), np.minimum(edge, 0.0)
    positive[:] = volume - 2 * np.log(level) - 0.5 * np.log(4 * share)
    positive -= sharpness * (below**2 + beyond**2)
    wrong = np.where(falling, slope - below, edge - beyond)
    far = np.where(falling, mean - slope * sums.at, level)
    offset[:] = volume - 2 * np.log(np.maximum(far, LEAST_LEVEL * mean)) - sharpness * wrong**2
    square, product = raw_sums(sums)
    ratio = np.maximum(product / square, LEAST)
    bare[:] = 0.5 * (LOG_2PI - np.log(square)) - np.log(ratio)
    # Where points are missing, a shape may be the same at all that are left.
    level_only = sums.square <= _ALIKE * square + LEAST
    for family in (positive, offset, bare):
        family[level_only] = -np.inf


def raw_sums(sums: Moments) -> tuple[FloatArray, FloatArray]:
    """Return weighted sums of squares and products of the shapes about zero, [n, S]."""
    level = sums.weight[:, None] * sums.at
    return sums.square + level * sums.at, sums.product + level * sums.mean[:, None]


def _profiles(seen: Look, data: Data, used: FloatArray) -> FloatArray:
    sums = seen.sums
    size = seen.slope.shape[1]
    found = np.empty((len(used), 1 + 3 * size))
    square, product = raw_sums(sums)
    raw_total = (sums.total + sums.weight * sums.mean**2)[:, None]
    bare = np.maximum(raw_total - product**2 / square, 0.0)
    two = _profile(seen.residual, data, used - 2)
    found[:, :1] = _profile(sums.total[:, None], data, used - 1)
    found[:, 1 : 1 + size] = two
    found[:, 1 + size : 1 + 2 * size] = two
    found[:, 1 + 2 * size :] = _profile(bare, data, used - 1)
    return found


def _profile(residual: FloatArray, data: Data, freedom: FloatArray) -> FloatArray:
    """Bound the log likelihood from above: under the variance that suits best.

    Single precision is enough for a bound, and takes half the time.
    """
    dof, noise, free = (
        column.astype(np.float32)
        for column in (data.dof[:, None], data.variance[:, None], np.asarray(freedom))
    )
    left = residual.astype(np.float32)
    variance = np.maximum(left / np.maximum(free, 1), noise)
    tail = np.log1p(left / (dof * variance))
    return np.asarray(-0.5 * (free * np.log(variance) + (dof + free) * tail), dtype=np.float64)


def apart(residuals: list[FloatArray], count: int) -> BoolArray:
    """Tell regressions, [n, S], that are not among the `count` best under any drift.

    Many that fit somewhat worse would together outweigh the few that fit.
    """
    ratios = [each / np.maximum(each.min(axis=1, keepdims=True), _ROUNDING) for each in residuals]
    ratio = np.minimum.reduce(ratios)
    if ratio.shape[1] <= count:
        return np.zeros(ratio.shape, dtype=bool)
    return np.asarray(ratio > np.partition(ratio, count - 1, axis=1)[:, count - 1 : count])


def worth(bound: FloatArray, best: FloatArray) -> BoolArray:
    """Tell which hypotheses could matter; `best` [n] is the largest bound of each row."""
    return np.asarray(bound >= best[:, None] - _NEGLIGIBLE)


def pair_profile(residual: FloatArray, free: BoolArray, data: Data) -> FloatArray:
    """Bound the log likelihood of pairs, [n, P]."""
    return _profile(residual, data, data.used[:, None] - np.where(free, 3, 2))


def rough_fit(data: Data, known: Hypotheses) -> FloatArray:
    """Return what the best hypothesis with one shape says, [n, K]; good enough for weights."""
    seen = look(data, known, data.values, 0.0)
    sums = seen.sums
    most = sums.mean[:, None] / np.maximum(sums.at, TINY)
    slope = np.clip(seen.slope, 0.0, most)
    residual = sums.total[:, None] - slope * (2 * sums.product - slope * sums.square)
    best = residual.argmin(axis=1)
    rows = np.arange(len(best))
    model = sums.mean - slope[rows, best] * sums.at[rows, best]
    return smoothed(data, model[:, None] + slope[rows, best, None] * known.table[best])


def smoothed(data: Data, fitted: FloatArray) -> FloatArray:
    """Keep a model within reach of the values, so that one bad fit does not upset weights."""
    floor = floor_of(data)
    near = np.clip(fitted, data.values / _WITHIN, data.values * _WITHIN)
    return np.where(data.values > 0, near, np.maximum(fitted, floor))


def floor_of(data: Data) -> FloatArray:
    """Return the least value that counts in relative terms, [n, 1]: a zero is as precise as it."""
    positive = np.where(data.values > 0, data.values, np.inf).min(axis=1)
    return np.asarray(np.maximum(positive, 0.01)[:, None])


def _relative_weights(data: Data, fitted: FloatArray, spread: FloatArray) -> FloatArray:
    """Weigh by 1 / (value**2 spread), [n, K]; the spread is normalised to a geometric mean of 1."""
    used = data.weight > 0
    level = np.exp((used @ np.log(spread)) / np.maximum(used.sum(axis=1), 1))
    scale = np.maximum(fitted, floor_of(data))
    return np.asarray(data.weight / scale**2 / spread * level[:, None])
