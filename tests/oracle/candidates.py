"""Candidates of each row: regressions, covariances and evidence of the screened hypotheses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import ROUNDING, TINY
from callpath_modeler.modeling.mixture.candidates import Candidates
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses, HypothesisGroup
from callpath_modeler.modeling.mixture.regressions import (
    OneTermFits,
    bare_evidence,
    constant_evidence,
    likelihood,
    offset_evidence,
    positive_evidence,
)
from callpath_modeler.modeling.mixture.residuals import (
    ScreenedHypotheses,
    large_misfits,
    log_residuals,
)
from callpath_modeler.modeling.mixture.scaled_rows import (
    Deviations,
    Drift,
    ScaledRows,
    error_unit,
    relative_weights,
)
from oracle.regressions import PairSums, intercept_penalty, pair_evidence

_LITTLE = 1e-6
"""Residual, relative to the total sum of squares, that has too few digits as a difference."""

_OFFSET, _BARE = 1, 2
"""Numbers of the families with one shape: offset, without a constant; 0 = positive coefficients."""


class _Rows(Struct, frozen=True):
    """Input of the regressions of n rows under L drifts.

    Attributes
    ----------
    values, unit : [K, n] values, and the values that errors are relative to
    weights, products : [L, K, n] weights of the points; weights times values about their mean
    weight, mean, total : [L, n] as in `Moments`
    table : [S, K] shapes at the points
    """

    values: FloatArray
    unit: FloatArray
    weights: FloatArray
    products: FloatArray
    weight: FloatArray
    mean: FloatArray
    total: FloatArray
    table: FloatArray

    @classmethod
    def of(
        cls, data: ScaledRows, hypotheses: Hypotheses, fitted: FloatArray, drifts: Sequence[Drift]
    ) -> _Rows:
        unit = error_unit(data, fitted)
        weights = np.stack([relative_weights(data, unit, drift).T for drift in drifts])
        weight = weights.sum(axis=1)
        values = data.values.T
        mean = (weights * values).sum(axis=1) / weight
        centred = values - mean[:, None]
        products = weights * centred
        total = (products * centred).sum(axis=1)
        return cls(values, unit.T, weights, products, weight, mean, total, hypotheses.table)


class _Sums(Struct, frozen=True):
    """Sums of M rows with one shape each, [L, M].

    `away` [L, K, M] is the shape about its mean; `at`, `square` and `product` are as in `Moments`.
    """

    away: FloatArray
    at: FloatArray
    square: FloatArray
    product: FloatArray

    @classmethod
    def of(cls, rows: _Rows, weights: FloatArray, row: IntArray, shape: IntArray) -> _Sums:
        """Return the sums; `weights` [L, K, M] belong to the rows `row` [M]."""
        at_points = rows.table.T[:, shape]
        at = np.einsum("lkm,km->lm", weights, at_points) / rows.weight[:, row]
        away = at_points - at[:, None]
        square = np.maximum(np.einsum("lkm,lkm,lkm->lm", weights, away, away), TINY)
        product = np.einsum("lkm,km->lm", np.take(rows.products, row, axis=2), at_points)
        return cls(away, at, square, product)


class _Part(Struct, frozen=True):
    """Some candidates as in `Candidates`, with evidence that lacks the likelihood of the residuals.

    Attributes
    ----------
    row, chosen : [M] row and hypothesis of each candidate
    residual, evidence, size : [L, M] residual sum of squares; log evidence without the likelihood;
        number of coefficients
    coefficients, covariance : as in `Candidates`
    """

    row: IntArray
    chosen: IntArray
    residual: FloatArray
    evidence: FloatArray
    size: FloatArray
    coefficients: FloatArray
    covariance: FloatArray


def _part(
    row: IntArray,
    chosen: IntArray,
    residual: FloatArray,
    evidence: FloatArray,
    size: int | FloatArray,
    coefficients: dict[int, FloatArray],
    covariance: dict[int, FloatArray],
) -> _Part:
    """Return a part; coefficients and elements of their covariance by position, others zero."""
    numbers = np.zeros((len(residual), 3, len(row)))
    elements = np.zeros((len(residual), 6, len(row)))
    for place, column in coefficients.items():
        numbers[:, place] = column
    for place, column in covariance.items():
        elements[:, place] = column
    whole = np.broadcast_to(np.asarray(size, dtype=np.float64), residual.shape)
    return _Part(row, chosen, residual, evidence, whole, numbers, elements)


def candidates(
    data: ScaledRows,
    chosen: ScreenedHypotheses,
    hypotheses: Hypotheses,
    deviations: Deviations,
    *,
    absolute: bool = False,
) -> Candidates:
    """Return as `mixture.candidates.candidates`, or as `absolute_candidates` there."""
    found = _absolute(data, chosen, hypotheses, deviations)
    if not absolute:
        top = np.full(len(data.values), -np.inf)
        np.maximum.at(top, found.row, found.log_evidence.max(axis=0))
        found.log_evidence[:] -= top[found.row]
    return found


def _absolute(
    data: ScaledRows, chosen: ScreenedHypotheses, hypotheses: Hypotheses, deviations: Deviations
) -> Candidates:
    """Return candidates with absolute evidence."""
    rows = _Rows.of(data, hypotheses, chosen.fitted, deviations.drifts)
    parts = [_constant_part(rows), *_single_parts(rows, chosen, hypotheses)]
    if len(chosen.pair):
        parts.append(_pair_part(rows, data, chosen, hypotheses))
        # If p = 1 has no weight, any pair fits the other two points.
        apart = np.array([drift.apart for drift in deviations.drifts])
        parts[-1].evidence[np.ix_(apart, data.used[chosen.pair_row] <= 3)] = -np.inf
    return _joined(parts, rows, data, hypotheses, deviations)


def _constant_part(rows: _Rows) -> _Part:
    every = np.arange(rows.mean.shape[1])
    evidence = constant_evidence(rows.weight, rows.mean)
    return _part(every, 0 * every, rows.total, evidence, 1, {0: rows.mean}, {0: 1 / rows.weight})


def _single_parts(rows: _Rows, chosen: ScreenedHypotheses, hypotheses: Hypotheses) -> list[_Part]:
    """Return the candidates with one shape, one part per family."""
    sums = _Sums.of(rows, np.take(rows.weights, chosen.row, axis=2), chosen.row, chosen.shape)
    slope = sums.product / sums.square
    mean, total = rows.mean[:, chosen.row], rows.total[:, chosen.row]
    residual = total - slope * sums.product
    _sum_up_little(residual, total, rows, chosen.row, mean, (slope, sums.away))
    parts = []
    for family, which in enumerate(chosen.families):
        row, shape = chosen.row[which], chosen.shape[which]
        found = OneTermFits(
            rows.weight[:, row],
            rows.mean[:, row],
            *(column[:, which] for column in (sums.at, sums.square, slope)),
        )
        code = 1 + family * len(hypotheses.shapes) + shape
        if family == _BARE:
            parts.append(_bare_part(rows, found, row, code, sums.away[:, :, which]))
            continue
        falling = (hypotheses.single_group == HypothesisGroup.FALLING)[shape]
        if family == _OFFSET:
            table = hypotheses.table
            least, most = table.min(axis=1)[shape], table.max(axis=1)[shape]
            evidence, bounded = offset_evidence(found, least, most, falling, chosen.variance[row])
        else:
            evidence, bounded = positive_evidence(found, falling, chosen.variance[row])
        numbers = {0: found.mean - bounded * found.at, 1: bounded}
        elements = dict(zip((0, 1, 3), found.covariance(), strict=True))
        parts.append(_part(row, code, residual[:, which], evidence, 2, numbers, elements))
    return parts


def _bare_part(
    rows: _Rows, found: OneTermFits, row: IntArray, code: IntArray, away: FloatArray
) -> _Part:
    level = found.weight * found.at
    square = found.square + level * found.at
    forced = level * found.mean
    product = found.slope * found.square + forced
    # Values and shapes are positive, and so is their product; a tiny one is only rounding.
    slope = np.where(product > ROUNDING * forced, product, 0.0) / square
    whole = (rows.total + rows.weight * rows.mean**2)[:, row]
    residual = whole - slope * product
    _sum_up_little(residual, whole, rows, row, slope * found.at, (slope, away))
    evidence = bare_evidence(found.mean, slope, square)
    return _part(row, code, residual, evidence, 1, {1: slope}, {3: 1 / square})


def _pair_part(
    rows: _Rows, data: ScaledRows, chosen: ScreenedHypotheses, hypotheses: Hypotheses
) -> _Part:
    row, pair = chosen.pair_row, chosen.pair
    weights = np.take(rows.weights, row, axis=2)
    first, second = (
        _Sums.of(rows, weights, row, shapes[pair])
        for shapes in (hypotheses.first, hypotheses.second)
    )
    both = np.einsum("lkm,lkm,lkm->lm", weights, first.away, second.away)
    sums = PairSums(
        *(rows.weight[:, row], rows.mean[:, row], rows.total[:, row], first.at, second.at),
        *(first.square, both, second.square, first.product, second.product),
    )
    found = sums.regressions(intercept_penalty(data, row, pair, hypotheses))
    covariance = sums.covariance(found.free)
    level = found.constant + found.first * first.at + found.second * second.at
    terms = (found.first, first.away), (found.second, second.away)
    _sum_up_little(found.residual, sums.total, rows, row, level, *terms)
    return _part(
        row,
        1 + 3 * len(hypotheses.shapes) + pair,
        found.residual,
        pair_evidence(found, covariance, pair >= hypotheses.growing, chosen.variance[row]),
        np.where(found.free, 3.0, 2.0),
        dict(enumerate((found.constant, found.first, found.second))),
        dict(enumerate(covariance)),
    )


def _sum_up_little(
    residual: FloatArray,
    whole: FloatArray,
    rows: _Rows,
    row: IntArray,
    level: FloatArray,
    *terms: tuple[FloatArray, FloatArray],
) -> None:
    """Compute small residuals of the rows `row` [M], [L, M], from the errors at the points.

    A residual that is small compared with `whole` is a difference of large sums. Its rounding would
    decide between laws that fit exactly. Models are ``level + slope away + ...``, with `level` and
    slopes [L, M], `away` [L, K, M].
    """
    drift, which = np.nonzero(residual < _LITTLE * whole)
    whose = row[which]
    left = rows.values.T[whose] - level[drift, which, None]
    for slope, away in terms:
        left -= slope[drift, which, None] * away[drift, :, which]
    left *= left
    left *= rows.weights[drift, :, whose]
    residual[drift, which] = left.sum(axis=1)


def _joined(
    parts: list[_Part],
    rows: _Rows,
    data: ScaledRows,
    hypotheses: Hypotheses,
    deviations: Deviations,
) -> Candidates:
    """Return the candidates of all parts, with the likelihood of the residuals added."""
    row = np.concatenate([part.row for part in parts])
    chosen = np.concatenate([part.chosen for part in parts])
    residual, evidence, size, coefficients, covariance = (
        np.concatenate([getattr(part, name) for part in parts], axis=-1)
        for name in ("residual", "evidence", "size", "coefficients", "covariance")
    )
    residual = _misfits(residual, coefficients, rows, row, hypotheses.codes(chosen))
    used, dof = data.used[row], data.dof[row]
    # A law needs one point more than coefficients, except one coefficient on one point.
    evidence[:, used <= size[0] - (size[0] == 1)] = -np.inf
    freedom = np.maximum(used - size, 0.0)
    variance = data.variance[row]
    log_evidence = np.empty((len(deviations.deviation), len(row)))
    # The probability density of a point falls with its variance, wherever the point is.
    evidence -= np.log([[drift.of_first] for drift in deviations.drifts]) / 2
    for k, drift in enumerate(deviations.drift_of):
        whole = variance + deviations.deviation[k] ** 2
        np.add(
            evidence[drift],
            likelihood(residual[drift], whole, dof, freedom[drift]),
            out=log_evidence[k],
        )
    return Candidates(
        row,
        chosen,
        log_evidence,
        coefficients,
        covariance,
    )


def _misfits(
    residual: FloatArray, coefficients: FloatArray, rows: _Rows, row: IntArray, codes: IntArray
) -> FloatArray:
    """Return the residuals of candidates, [L, M]; large ones come from logarithms."""
    table = np.concatenate([rows.table, np.zeros((1, rows.table.shape[1]))]).T
    found = residual.copy()
    for left, numbers, weights in zip(found, coefficients, rows.weights, strict=True):
        relative = (weights * rows.unit**2).sum(axis=0)
        much = large_misfits(left, relative[row])
        constant, first, second = numbers[:, much]
        model = first * table[:, codes[much, 0]]
        model += second * table[:, codes[much, 1]]
        model += constant
        whose = row[much]
        left[much] *= log_residuals(
            rows.values[:, whose], model, weights[:, whose], rows.unit[:, whose]
        )
    return found
