"""Screening: the hypotheses of each row that may matter, and a rough fit.

See docs/explanation/hypotheses.md, 'Screening'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import Float32Array, FloatArray, IntArray
from callpath_modeler.modeling.compiled.library import compiled
from callpath_modeler.modeling.compiled.screening import screened
from callpath_modeler.modeling.mixture.bounds import (
    Bounds,
    OneTermFits32,
    as_float32,
    bounds,
    regress,
    typical_variance,
)
from callpath_modeler.modeling.mixture.deviations import Drift
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.pairs import Pairs, pair_bounds
from callpath_modeler.modeling.mixture.regressions import TINY
from callpath_modeler.modeling.mixture.scaled_rows import (
    ScaledRows,
    error_unit,
    floor_of,
    relative_weights,
)

_WITHIN = 3.0
"""Largest factor between fitted and measured value where weights come from fitted values."""

_UNEXPLAINED = 0.4
"""Share of the variation that a shape may leave unexplained if weights come from it."""

_MUCH = 0.1
"""Relative deviation of measurements from models above which weights are uncertain."""

_MOST_NUMBERS = 40_000
"""Rows times shapes that are screened together; their intermediate results stay in the cache."""


@dataclass(frozen=True, slots=True)
class ScreenedHypotheses:
    """Hypotheses of n rows that pass the screening, in addition to the constant of each row.

    Attributes
    ----------
    row, shape : [U] rows and shapes of the regressions on one shape
    families : positions among these with positive coefficients, as an offset, without a constant
    pair_row, pair : [P] rows and pairs of the regressions on two shapes
    variance : [n] rough variance of a point
    fitted : [n, K] values that errors are relative to
    scattered : rows for which these values are rough, as measurements are far from every model
    """

    row: IntArray
    shape: IntArray
    families: tuple[IntArray, ...]
    pair_row: IntArray
    pair: IntArray
    variance: FloatArray
    fitted: FloatArray
    scattered: IntArray

    def take(self, rows: IntArray) -> ScreenedHypotheses:
        """Return the hypotheses of some rows."""
        place = np.full(len(self.variance), -1)
        place[rows] = np.arange(len(rows))
        row, pair_row = place[self.row], place[self.pair_row]
        kept, kept_pairs = row >= 0, pair_row >= 0
        where = kept.cumsum() - 1
        return ScreenedHypotheses(
            row[kept],
            self.shape[kept],
            tuple(where[which[kept[which]]] for which in self.families),
            pair_row[kept_pairs],
            self.pair[kept_pairs],
            self.variance[rows],
            self.fitted[rows],
            np.flatnonzero(np.isin(rows, self.scattered)),
        )


def screen(
    data: ScaledRows, hypotheses: Hypotheses, log_prior: FloatArray, drifts: Sequence[Drift]
) -> ScreenedHypotheses:
    """Return the hypotheses that may matter under any drift.

    `log_prior` [H] belongs to the hypotheses; `drifts` are the extreme ones, no drift first.
    """
    if compiled():
        return _screened_in_c(data, hypotheses, log_prior, drifts)
    count, size = len(data.values), max(16, _MOST_NUMBERS // len(hypotheses.shapes))
    every = np.arange(count)
    parts = [
        _screened(data.take(every[start : start + size]), hypotheses, log_prior, drifts)
        for start in range(0, max(count, 1), size)
    ]
    return parts[0] if len(parts) == 1 else _one_after_another(parts)


def _screened_in_c(
    data: ScaledRows, hypotheses: Hypotheses, log_prior: FloatArray, drifts: Sequence[Drift]
) -> ScreenedHypotheses:
    found = screened(data, hypotheses, log_prior, drifts)
    return ScreenedHypotheses(
        found.row,
        found.shape,
        tuple(np.flatnonzero(found.families >> family & 1) for family in range(3)),
        found.pair_row,
        found.pair,
        found.variance,
        found.fitted,
        np.flatnonzero(found.variance > _MUCH**2),
    )


def _one_after_another(parts: list[ScreenedHypotheses]) -> ScreenedHypotheses:
    counts = [len(part.variance) for part in parts]
    before = np.cumsum([0, *counts[:-1]])
    singles = np.cumsum([0, *(len(part.row) for part in parts[:-1])])
    return ScreenedHypotheses(
        np.concatenate([part.row + start for part, start in zip(parts, before, strict=True)]),
        np.concatenate([part.shape for part in parts]),
        tuple(
            np.concatenate([which + start for which, start in zip(family, singles, strict=True)])
            for family in zip(*(part.families for part in parts), strict=True)
        ),
        np.concatenate([part.pair_row + start for part, start in zip(parts, before, strict=True)]),
        np.concatenate([part.pair for part in parts]),
        np.concatenate([part.variance for part in parts]),
        np.concatenate([part.fitted.T for part in parts], axis=1).T,
        np.concatenate([part.scattered + start for part, start in zip(parts, before, strict=True)]),
    )


def _screened(
    data: ScaledRows, hypotheses: Hypotheses, log_prior: FloatArray, drifts: Sequence[Drift]
) -> ScreenedHypotheses:
    fitted = rough_fit(data, hypotheses)
    unit = error_unit(data, fitted)
    looks = [regress(data, hypotheses, relative_weights(data, unit, drift).T) for drift in drifts]
    variance = typical_variance(looks[0], data)
    regressed, found = bounds(looks, data, hypotheses, log_prior, variance)
    pairs = pair_bounds(looks, data, hypotheses, log_prior, fitted, found.alone)
    best = found.best(pairs.row, pairs.bound)
    quiet = variance <= _MUCH**2
    better = smoothed(data, _averaged(regressed, found, pairs, best, hypotheses))
    best -= np.float32(hypotheses.kept.nats)
    worthy = found.singles >= best
    shape, row = np.nonzero(worthy.any(axis=0))
    families = tuple(np.flatnonzero(family[shape, row]) for family in worthy)
    pairs = pairs.take(pairs.bound >= best[pairs.row])
    return ScreenedHypotheses(
        row,
        shape,
        families,
        pairs.row,
        pairs.pair,
        variance,
        np.where(quiet[:, None], better, fitted),
        np.flatnonzero(~quiet),
    )


def _averaged(
    regressed: OneTermFits32,
    found: Bounds,
    pairs: Pairs,
    best: Float32Array,
    hypotheses: Hypotheses,
) -> FloatArray:
    """Return the mean of all models, [n, K], weighted by their bounds."""
    positive, offset, bare = np.exp(found.singles - best)
    alone = np.exp(found.constant - best)
    steepest = regressed.mean / np.maximum(regressed.at, np.float32(1e-9))
    slope = np.clip(regressed.slope, 0, steepest)
    slope *= positive
    slope += _shares(offset, regressed.slope)
    positive += offset
    weight = positive.sum(axis=0) + alone
    constant = weight * regressed.mean - (slope * regressed.at).sum(axis=0)
    weight += bare.sum(axis=0)
    slope += _shares(bare, regressed.bare_slope())
    of_pairs = np.exp(pairs.bound - best[pairs.row])
    numbers = of_pairs * pairs.coefficients * regressed.unit[pairs.row]
    np.add.at(weight, pairs.row, of_pairs)
    np.add.at(constant, pairs.row, as_float32(numbers[0]))
    for shapes, column in zip((hypotheses.first, hypotheses.second), numbers[1:], strict=True):
        np.add.at(slope, (shapes[pairs.pair], pairs.row), as_float32(column))
    fitted = hypotheses.table.T @ slope + constant
    return np.asarray(fitted / (weight * regressed.unit)).T


def _shares(weight: Float32Array, slope: Float32Array) -> Float32Array:
    """Return slopes times weights; a slope too large for single precision has no weight."""
    return np.multiply(weight, slope, where=weight > 0, out=np.zeros_like(weight))


def rough_fit(data: ScaledRows, hypotheses: Hypotheses) -> FloatArray:
    """Return the best hypothesis with one shape at the points, [n, K], precise enough for weights.

    It is a constant unless the shape leaves much less unexplained. Otherwise noise would determine
    the weights.
    """
    unit = error_unit(data, data.values)
    seen = regress(data, hypotheses, relative_weights(data, unit, Drift(0.0)).T)
    sums = seen.sums
    slope = np.clip(seen.slope, 0.0, sums.mean / np.maximum(sums.at, TINY))
    residual = sums.square * slope
    residual -= 2 * sums.product
    residual *= slope
    best = residual.argmin(axis=0)
    rows = np.arange(len(best))
    explains = -residual[best, rows] > (1 - _UNEXPLAINED) * sums.total
    slope = np.where(explains, slope[best, rows], 0.0)
    model = sums.mean - slope * sums.at[best, rows]
    return smoothed(data, (model + slope * hypotheses.table.T[:, best]).T)


def smoothed(data: ScaledRows, fitted: FloatArray) -> FloatArray:
    """Return fitted values within reach of measured ones, so that no bad fit distorts weights."""
    floor = floor_of(data)
    near = np.clip(fitted, data.values / _WITHIN, data.values * _WITHIN)
    return np.where(data.values > 0, near, np.maximum(fitted, floor))
