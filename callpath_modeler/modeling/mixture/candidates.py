"""The hypotheses of each row that are worth a look, with their evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.deviations import Deviations
from callpath_modeler.modeling.mixture.evidence import (
    Slopes,
    bare_evidence,
    constant_evidence,
    likelihood,
    offset_evidence,
    pair_evidence,
    pair_volume,
    pairs,
    positive_evidence,
)
from callpath_modeler.modeling.mixture.hypotheses import Group, Hypotheses
from callpath_modeler.modeling.mixture.screen import (
    Data,
    Look,
    apart,
    pair_profile,
    typical_variance,
    worth,
)
from callpath_modeler.modeling.mixture.spread import EXACT_VARIANCE

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_PAIRS_KEPT = 40
_FEWEST_FOR_PAIRS = 5
_MISFIT_FOR_PAIRS = 1.0


@dataclass(frozen=True, slots=True)
class Candidates:
    """M hypotheses of n rows, under D deviations with L drifts, in no particular order.

    Attributes
    ----------
    row : [M] whose hypothesis
    chosen : [M] which hypothesis
    log_evidence : [D, M]; of each row against a level of its own
    coefficients : [L, 3, M] constant, first, second
    covariance : [L, 6, M] of the coefficients, without the variance of a point: cc, cf, cs, ff,
        fs, ss
    variance : [D, n] of a point
    """

    row: IntArray
    chosen: IntArray
    log_evidence: FloatArray
    coefficients: FloatArray
    covariance: FloatArray
    variance: FloatArray


@dataclass(frozen=True, slots=True)
class _Part:
    """Some candidates as in `Candidates`; what they leave, and what it does not depend on."""

    row: IntArray
    chosen: IntArray
    residual: FloatArray
    evidence: FloatArray
    size: FloatArray
    coefficients: FloatArray
    covariance: FloatArray


@dataclass(frozen=True, slots=True)
class _OneShape:
    """Rows and shapes to look at, [M], and roughly the variance of a point."""

    row: IntArray
    shape: IntArray
    variance: FloatArray
    known: Hypotheses

    def chosen(self, family: int) -> IntArray:
        return 1 + family * len(self.known.shapes) + self.shape


def _empty_part(row: IntArray, chosen: IntArray, drifts: int, size: int) -> _Part:
    shape = (drifts, len(row))
    return _Part(
        row,
        chosen,
        np.empty(shape),
        np.empty(shape),
        np.full(shape, float(size)),
        np.zeros((drifts, 3, len(row))),
        np.zeros((drifts, 6, len(row))),
    )


def candidates(
    data: Data,
    looks: list[Look],
    bound: FloatArray,
    known: Hypotheses,
    deviations: Deviations,
    log_prior: FloatArray,
) -> Candidates:
    """Find the candidates of each row, and their evidence.

    Parameters
    ----------
    data : n rows
    looks : at them, one per drift
    bound : [n, 1 + 3 S] of the hypotheses with at most one shape
    known : the hypotheses
    deviations : how measurements may differ from them
    log_prior : [H] of the hypotheses
    """
    best = bound.max(axis=1)
    chosen = worth(bound, best)
    chosen[:, 0] = True
    typical = typical_variance(looks[0], data)
    parts = [_constant_part(looks)]
    families = np.split(chosen[:, 1:], 3, axis=1)
    for make, worthy in zip((_positive_part, _offset_part, _bare_part), families, strict=True):
        row, shape = np.nonzero(worthy)
        parts.append(make(looks, _OneShape(row, shape, typical[row], known)))
    paired = _rows_for_pairs(looks[0], data) if len(known.first) else np.zeros(0, dtype=np.intp)
    if len(paired):
        parts.append(_pair_part(looks, paired, best, data, known, typical, log_prior))
    return _joined(parts, data, deviations)


def _constant_part(looks: list[Look]) -> _Part:
    rows = np.arange(len(looks[0].sums.mean))
    part = _empty_part(rows, np.zeros(len(rows), dtype=np.intp), len(looks), 1)
    for drift, seen in enumerate(looks):
        part.residual[drift] = seen.sums.total
        part.evidence[drift] = constant_evidence(seen.sums)
        part.coefficients[drift, 0] = seen.sums.mean
        part.covariance[drift, 0] = 1 / seen.sums.weight
    return part


def _slopes(part: _Part, drift: int, seen: Look, shape: IntArray) -> Slopes:
    sums, row = seen.sums, part.row
    flat = row * seen.slope.shape[1] + shape
    part.residual[drift] = seen.residual.ravel()[flat]
    return Slopes(
        sums.weight[row],
        sums.mean[row],
        sums.at.ravel()[flat],
        sums.square.ravel()[flat],
        seen.slope.ravel()[flat],
    )


def _write(part: _Part, drift: int, found: Slopes, slope: FloatArray) -> None:
    part.coefficients[drift, 0] = found.mean - slope * found.at
    part.coefficients[drift, 1] = slope
    covariance = part.covariance[drift]
    covariance[0], covariance[1], covariance[3] = found.covariance()


def _positive_part(looks: list[Look], one: _OneShape) -> _Part:
    part = _empty_part(one.row, one.chosen(0), len(looks), 2)
    for drift, seen in enumerate(looks):
        found = _slopes(part, drift, seen, one.shape)
        part.evidence[drift], slope = positive_evidence(found, one.variance)
        _write(part, drift, found, slope)
    return part


def _offset_part(looks: list[Look], one: _OneShape) -> _Part:
    part = _empty_part(one.row, one.chosen(1), len(looks), 2)
    table = one.known.table
    least, most = table.min(axis=1)[one.shape], table.max(axis=1)[one.shape]
    falling = (one.known.single_group == Group.FALLING)[one.shape]
    for drift, seen in enumerate(looks):
        found = _slopes(part, drift, seen, one.shape)
        part.evidence[drift], slope = offset_evidence(found, least, most, falling, one.variance)
        _write(part, drift, found, slope)
    return part


def _bare_part(looks: list[Look], one: _OneShape) -> _Part:
    """Return the candidates of one shape without a constant."""
    part = _empty_part(one.row, one.chosen(2), len(looks), 1)
    for drift, seen in enumerate(looks):
        found = _slopes(part, drift, seen, one.shape)
        level = found.weight * found.at
        square = found.square + level * found.at
        product = found.slope * found.square + level * found.mean
        slope = product / square
        whole = (seen.sums.total + seen.sums.weight * seen.sums.mean**2)[part.row]
        part.residual[drift] = np.maximum(whole - slope * product, 0.0)
        part.evidence[drift] = bare_evidence(found.mean, slope, square)
        part.coefficients[drift, 1], part.covariance[drift, 3] = slope, 1 / square
    return part


def _rows_for_pairs(seen: Look, data: Data) -> IntArray:
    """Return rows that one shape does not explain within their noise, and that allow two."""
    misfit = seen.residual.min(axis=1) / np.maximum(data.used - 2, 1)
    least = np.maximum(data.variance, EXACT_VARIANCE)
    return np.flatnonzero((data.used >= _FEWEST_FOR_PAIRS) & (misfit > _MISFIT_FOR_PAIRS * least))


def _pair_part(
    looks: list[Look],
    rows: IntArray,
    best: FloatArray,
    data: Data,
    known: Hypotheses,
    typical: FloatArray,
    log_prior: FloatArray,
) -> _Part:
    """Return the candidates of two shapes among some rows, and lift what is best by them."""
    few, start = data.take(rows), 1 + 3 * len(known.shapes)
    found, bound = [], np.full((len(rows), len(known.first)), -np.inf)
    for seen in looks:
        regression = pairs(
            seen.sums.take(rows), seen.weights[rows], known.table, known.first, known.second
        )
        found.append(regression)
        profile = pair_profile(regression.residual, regression.free, few)
        np.maximum(bound, pair_volume(regression) + profile, out=bound)
    bound += log_prior[start:]
    bound[apart([regression.residual for regression in found], _PAIRS_KEPT)] = -np.inf
    best[rows] = np.maximum(best[rows], bound.max(axis=1))
    here, which = np.nonzero(worth(bound, best[rows]))
    part = _empty_part(rows[here], start + which, len(looks), 3)
    for drift, regression in enumerate(found):
        one = regression.take(here, which)
        part.residual[drift] = one.residual
        part.evidence[drift] = pair_evidence(one, typical[part.row])
        part.size[drift] = np.where(one.free, 3, 2)
        part.coefficients[drift] = one.constant, one.first, one.second
        part.covariance[drift] = one.covariance
    return part


def _joined(parts: list[_Part], data: Data, deviations: Deviations) -> Candidates:
    """Put parts together and add the likelihood of what they leave, under every deviation."""
    row = np.concatenate([part.row for part in parts])
    residual, evidence, size, coefficients, covariance = (
        np.concatenate([getattr(part, name) for part in parts], axis=-1)
        for name in ("residual", "evidence", "size", "coefficients", "covariance")
    )
    used, dof = data.used[row], data.dof[row]
    # Without a point to spare only a constant or a slope can be told.
    evidence[:, used <= size[0] - (size[0] == 1)] = -np.inf
    freedom = np.maximum(used - size, 0.0)
    variance = data.variance + deviations.deviation[:, None] ** 2
    log_evidence = np.empty((len(variance), len(row)))
    for k, drift in enumerate(deviations.drift_of):
        log_evidence[k] = evidence[drift] + likelihood(
            residual[drift], variance[k, row], dof, freedom[drift]
        )
    top = np.full(len(data.values), -np.inf)
    np.maximum.at(top, row, log_evidence.max(axis=0))
    log_evidence -= top[row]
    return Candidates(
        row,
        np.concatenate([part.chosen for part in parts]),
        log_evidence,
        coefficients,
        covariance,
        variance,
    )
