"""The hypotheses of each row that are worth a look, with their evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.evidence import (
    Doubles,
    Moments,
    Singles,
    bare_evidence,
    constant_evidence,
    likelihood,
    moments,
    pair_evidence,
    pairs,
    single_evidence,
    singles,
)
from callpath_modeler.modeling.mixture.hypotheses import Group, Hypotheses
from callpath_modeler.modeling.mixture.learn import Deviations
from callpath_modeler.modeling.mixture.spread import EXACT_VARIANCE, Noise

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

_SINGLES_KEPT = 30
_PAIRS_KEPT = 40
_FEWEST_FOR_PAIRS = 5
_MISFIT_FOR_PAIRS = 1.0
_WITHIN = 3.0
"""A model differs from a measured value by this factor at most where weights are made of it."""


@dataclass(frozen=True, slots=True)
class Data:
    """Rows to fit, [n, K]; zero weight where a value is missing.

    Attributes
    ----------
    points : [K] ascending
    values : in units of the row
    weight : of the points, about 1
    variance, dof : [n] of the noise of a centre
    """

    points: FloatArray
    values: FloatArray
    weight: FloatArray
    variance: FloatArray
    dof: FloatArray


@dataclass(frozen=True, slots=True)
class Candidates:
    """The hypotheses of n rows that are worth a look, C each, under D deviations.

    Attributes
    ----------
    chosen : [n, C] which hypothesis
    log_evidence : [n, C, D]
    coefficients : [n, C, L, 3] constant, first, second, for each of L drifts
    covariance : [n, C, L, 6] of the coefficients, without the variance of a point: cc, cf, cs, ff,
        fs, ss
    variance : [n, D] of a point
    """

    chosen: IntArray
    log_evidence: FloatArray
    coefficients: FloatArray
    covariance: FloatArray
    variance: FloatArray


def data_of(points: FloatArray, noise: Noise, rows: IntArray | slice) -> tuple[Data, FloatArray]:
    """Return some rows, and the unit of each: its largest value."""
    weight = noise.weight[rows]
    values = np.where(weight > 0, noise.centre[rows], 0.0)
    unit = values.max(axis=1)
    values = values / unit[:, None]
    return Data(points, values, weight, noise.variance[rows], noise.dof[rows]), unit


def candidates(
    data: Data, known: Hypotheses, deviations: Deviations, fitted: FloatArray
) -> Candidates:
    """Find the candidates of each row, and their evidence.

    Parameters
    ----------
    data : n rows
    known : the hypotheses
    deviations : how measurements may differ from them
    fitted : [n, K] values that weights are made of: errors are relative
    """
    drifts = np.unique(deviations.drift)
    distance = np.log2(data.points[-1] / data.points)
    falling = known.single_group == Group.FALLING
    looks = []
    for drift in drifts:
        weights = _relative_weights(data, fitted, 1 + drift * distance)
        sums = moments(data.values, weights, known.table)
        looks.append(_Look(weights, sums, singles(sums, known.table, falling)))
    variance = data.variance[:, None] + deviations.deviation**2
    typical = np.maximum(_typical(looks[0], data), data.variance)
    kept = _best(np.stack([look.singles.residual for look in looks]), _SINGLES_KEPT)
    parts = [
        _constant_part(looks),
        *_single_parts(looks, kept, known, typical),
    ]
    points = (data.weight > 0).sum(axis=1).astype(np.float64)
    wanted = _rows_for_pairs(looks[0], data, points) if len(known.first) else None
    if wanted is not None and wanted.any():
        parts.append(_pair_part(looks, wanted, known, typical))
    return _joined(parts, data, deviations, drifts, variance, points)


def rough_fit(data: Data, known: Hypotheses) -> FloatArray:
    """Return what the best hypothesis with one shape says, [n, K]; good enough for weights."""
    weights = _relative_weights(data, data.values, np.ones(len(data.points)))
    sums = moments(data.values, weights, known.table)
    found = singles(sums, known.table, known.single_group == Group.FALLING)
    slope = _bounded(found.slope, found.positive)
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


@dataclass(frozen=True, slots=True)
class _Look:
    weights: FloatArray
    sums: Moments
    singles: Singles


@dataclass(frozen=True, slots=True)
class _Part:
    """Some candidates, as in `Candidates`; `residual`, `evidence` and `size` are [n, c, L]."""

    chosen: IntArray
    residual: FloatArray
    evidence: FloatArray
    coefficients: FloatArray
    covariance: FloatArray
    size: IntArray


def _relative_weights(data: Data, fitted: FloatArray, spread: FloatArray) -> FloatArray:
    """Weigh by 1 / (value**2 spread), [n, K]; the spread is normalised to a geometric mean of 1."""
    used = data.weight > 0
    points = np.maximum(used.sum(axis=1), 1)
    level = np.exp((used * np.log(spread)).sum(axis=1) / points)
    scale = np.maximum(fitted, floor_of(data))
    return np.asarray(data.weight / scale**2 / spread * level[:, None])


def _typical(look: _Look, data: Data) -> FloatArray:
    """Return a rough variance of a point, [n]: what the best hypothesis with one shape leaves."""
    freedom = np.maximum((data.weight > 0).sum(axis=1) - 2, 1)
    return np.asarray(np.maximum(look.singles.residual.min(axis=1) / freedom, EXACT_VARIANCE))


def _best(residual: FloatArray, count: int) -> IntArray:
    """Return the shapes that fit best under any drift, [n, c]; `residual` is [L, n, S]."""
    least = residual.min(axis=2, keepdims=True)
    ratio = (residual / (least + 1e-300)).min(axis=0)
    if ratio.shape[1] <= count:
        return np.broadcast_to(np.arange(ratio.shape[1]), ratio.shape).copy()
    return np.sort(np.argpartition(ratio, count - 1, axis=1)[:, :count], axis=1)


def _constant_part(looks: list[_Look]) -> _Part:
    n = len(looks[0].sums.mean)
    coefficients = np.zeros((n, 1, len(looks), 3))
    covariance = np.zeros((n, 1, len(looks), 6))
    for k, look in enumerate(looks):
        coefficients[:, 0, k, 0] = look.sums.mean
        covariance[:, 0, k, 0] = 1 / look.sums.weight
    return _Part(
        np.zeros((n, 1), dtype=np.intp),
        np.stack([look.sums.total[:, None] for look in looks], 2),
        np.stack([constant_evidence(look.sums)[:, None] for look in looks], 2),
        coefficients,
        covariance,
        np.ones((n, 1, len(looks)), dtype=np.intp),
    )


def _single_parts(
    looks: list[_Look], kept: IntArray, known: Hypotheses, typical: FloatArray
) -> list[_Part]:
    """Return the candidates of one shape: with positive coefficients, and offset."""
    rows = np.arange(len(kept))[:, None]
    n, c = kept.shape
    residual = np.empty((n, c, len(looks)))
    evidence = np.empty((2, n, c, len(looks)))
    coefficients = np.zeros((2, n, c, len(looks), 3))
    covariance = np.zeros((n, c, len(looks), 6))
    for k, look in enumerate(looks):
        some = look.singles
        sums = replace(
            look.sums,
            at=look.sums.at[rows, kept],
            square=look.sums.square[rows, kept],
            product=look.sums.product[rows, kept],
        )
        few = Singles(
            some.slope[rows, kept],
            some.residual[rows, kept],
            (some.positive[0][rows, kept], some.positive[1][rows, kept]),
            (some.offset[0][rows, kept], some.offset[1][rows, kept]),
        )
        residual[:, :, k] = few.residual
        evidence[0, :, :, k], evidence[1, :, :, k] = single_evidence(sums, few, typical)
        for family, bounds in enumerate((few.positive, few.offset)):
            slope = _bounded(few.slope, bounds)
            coefficients[family, :, :, k, 0] = sums.mean[:, None] - slope * sums.at
            coefficients[family, :, :, k, 1] = slope
        covariance[:, :, k, 0] = 1 / sums.weight[:, None] + sums.at**2 / sums.square
        covariance[:, :, k, 1] = -sums.at / sums.square
        covariance[:, :, k, 3] = 1 / sums.square
    size = np.full(residual.shape, 2)
    offset = 1 + len(known.shapes) + kept
    return [
        _Part(1 + kept, residual, evidence[0], coefficients[0], covariance, size),
        _Part(offset, residual, evidence[1], coefficients[1], covariance, size),
        _bare_part(looks, kept, known),
    ]


def _bare_part(looks: list[_Look], kept: IntArray, known: Hypotheses) -> _Part:
    """Return the candidates of one shape without a constant."""
    rows = np.arange(len(kept))[:, None]
    shape = (*kept.shape, len(looks))
    residual, evidence = np.empty(shape), np.empty(shape)
    coefficients, covariance = np.zeros((*shape, 3)), np.zeros((*shape, 6))
    for k, look in enumerate(looks):
        sums, at = look.sums, look.sums.at[rows, kept]
        weight, mean = sums.weight[:, None], sums.mean[:, None]
        square = sums.square[rows, kept] + weight * at**2
        product = sums.product[rows, kept] + weight * at * mean
        slope = product / square
        left = (sums.total + sums.weight * sums.mean**2)[:, None] - slope * product
        residual[:, :, k] = np.maximum(left, 0.0)
        evidence[:, :, k] = bare_evidence(sums, slope, square)
        coefficients[:, :, k, 1], covariance[:, :, k, 3] = slope, 1 / square
    chosen = 1 + 2 * len(known.shapes) + kept
    return _Part(chosen, residual, evidence, coefficients, covariance, np.ones(shape, dtype=int))


def _bounded(slope: FloatArray, bounds: tuple[FloatArray, FloatArray]) -> FloatArray:
    return np.minimum(np.maximum(slope, bounds[0]), bounds[1])


def _rows_for_pairs(look: _Look, data: Data, points: FloatArray) -> BoolArray:
    """Tell rows that one shape does not explain within their noise, and that allow two."""
    misfit = look.singles.residual.min(axis=1) / np.maximum(points - 2, 1)
    least = np.maximum(data.variance, EXACT_VARIANCE)
    return np.asarray((points >= _FEWEST_FOR_PAIRS) & (misfit > _MISFIT_FOR_PAIRS * least))


def _pair_part(
    looks: list[_Look], wanted: BoolArray, known: Hypotheses, typical: FloatArray
) -> _Part:
    """Return the candidates of two shapes; rows that need none have none that is possible."""
    n, rows = len(wanted), np.flatnonzero(wanted)
    found = [
        pairs(_rows_of(look.sums, rows), look.weights[rows], known.table, known.first, known.second)
        for look in looks
    ]
    kept = _best(np.stack([regression.residual for regression in found]), _PAIRS_KEPT)
    here = np.arange(len(rows))[:, None]
    c, count = kept.shape[1], len(looks)
    chosen = np.zeros((n, c), dtype=np.intp)
    chosen[rows] = 1 + 3 * len(known.shapes) + kept
    residual = np.ones((n, c, count))
    evidence = np.full((n, c, count), -np.inf)
    coefficients = np.zeros((n, c, count, 3))
    covariance = np.zeros((n, c, count, 6))
    size = np.full((n, c, count), 3)
    for k, regression in enumerate(found):
        few = _pairs_of(regression, here, kept)
        residual[rows, :, k] = few.residual
        evidence[rows, :, k] = pair_evidence(few, typical[rows])
        coefficients[rows, :, k] = np.stack([few.constant, few.first, few.second], 2)
        covariance[rows, :, k] = np.stack(few.covariance, 2)
        size[rows, :, k] = np.where(few.free, 3, 2)
    return _Part(chosen, residual, evidence, coefficients, covariance, size)


def _rows_of(sums: Moments, rows: IntArray) -> Moments:
    return Moments(
        sums.weight[rows],
        sums.mean[rows],
        sums.total[rows],
        sums.at[rows],
        sums.square[rows],
        sums.product[rows],
    )


def _pairs_of(found: Doubles, rows: IntArray, kept: IntArray) -> Doubles:
    def few(column: FloatArray) -> FloatArray:
        return column[rows, kept]

    return Doubles(
        few(found.constant),
        few(found.first),
        few(found.second),
        few(found.residual),
        tuple(few(column) for column in found.covariance),
        few(found.determinant),
        found.free[rows, kept],
    )


def _joined(
    parts: list[_Part],
    data: Data,
    deviations: Deviations,
    drifts: FloatArray,
    variance: FloatArray,
    points: FloatArray,
) -> Candidates:
    """Put parts together and add the likelihood of what they leave, under every deviation."""
    of_drift = np.searchsorted(drifts, deviations.drift)
    log_evidence = []
    for part in parts:
        freedom = np.maximum(points[:, None, None] - part.size, 0.0)
        enough = np.where(
            points[:, None] > part.size[:, :, 0] - (part.size[:, :, 0] == 1), 0.0, -np.inf
        )
        piece = np.empty((*part.chosen.shape, len(deviations.drift)))
        for k in range(len(drifts)):
            here = of_drift == k
            piece[:, :, here] = part.evidence[:, :, k, None] + likelihood(
                part.residual[:, :, k], variance[:, here], data.dof, freedom[:, :, k]
            )
        log_evidence.append(piece + enough[:, :, None])
    return Candidates(
        np.concatenate([part.chosen for part in parts], axis=1),
        np.concatenate(log_evidence, axis=1),
        np.concatenate([part.coefficients for part in parts], axis=1),
        np.concatenate([part.covariance for part in parts], axis=1),
        variance,
    )
