"""Which hypotheses of each row are worth a look, and roughly what they say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.compiled.library import compiled
from callpath_modeler.modeling.compiled.screening import screened
from callpath_modeler.modeling.mixture.bounds import (
    Bounds,
    OneTermFits32,
    SingleArray,
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

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

_WITHIN = 3.0
"""A model differs from a measured value by this factor at most where weights are made of it."""

_UNEXPLAINED = 0.4
"""Of the variation, what a shape may leave and still weights are made of it."""

_MUCH = 0.1
"""A relative deviation of measurements from models which makes weights uncertain."""

_MOST_NUMBERS = 40_000
"""Rows times shapes that are screened at once: what is needed for them stays in the cache."""


@dataclass(frozen=True, slots=True)
class ScreenedHypotheses:
    """Hypotheses of n rows that are worth a look, beside the constant of each.

    Attributes
    ----------
    row, shape : [U] what to regress on one shape
    families : with positive coefficients, offset, without a constant: which of these, each
    pair_row, pair : [P] what to regress on two
    variance : [n] roughly that of a point
    fitted : [n, K] the values that weights are to be made of
    scattered : of which rows these are rough, since measurements are far from any model
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
        """Return what was chosen of some rows."""
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
    """Choose what is worth a look, whatever the drift.

    `log_prior` [H] is of the hypotheses; `drifts` are the extreme ones, none first.
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
    regressed: OneTermFits32, found: Bounds, pairs: Pairs, best: SingleArray, hypotheses: Hypotheses
) -> FloatArray:
    """Return the mean of all models, [n, K], each as probable as its bound says."""
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


def _shares(weight: SingleArray, slope: SingleArray) -> SingleArray:
    """Return slopes as often as they weigh; one too large for single precision has no weight."""
    return np.multiply(weight, slope, where=weight > 0, out=np.zeros_like(weight))


def rough_fit(data: ScaledRows, hypotheses: Hypotheses) -> FloatArray:
    """Return what the best hypothesis with one shape says, [n, K]; good enough for weights.

    A constant, unless the shape leaves much less than it: noise would weigh noise.
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
    """Keep a model within reach of the values, so that one bad fit does not upset weights."""
    floor = floor_of(data)
    near = np.clip(fitted, data.values / _WITHIN, data.values * _WITHIN)
    return np.where(data.values > 0, near, np.maximum(fitted, floor))
