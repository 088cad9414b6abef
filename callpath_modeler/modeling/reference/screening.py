"""The hypotheses of each row that may matter, and the values that errors are relative to.

See docs/explanation/hypotheses.md, 'Screening'.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.constants.evidence import TINY
from callpath_modeler.modeling.constants.hypotheses import SCATTERED, UNEXPLAINED
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.scaled_rows import (
    Drift,
    ScaledRows,
    error_unit,
    relative_weights,
)
from callpath_modeler.modeling.mixture.screening import ScreenedHypotheses, smoothed
from callpath_modeler.modeling.reference.bounds import (
    Bounds,
    OneTermRegressions,
    bounds,
    regress,
    typical_variance,
)
from callpath_modeler.modeling.reference.pairs import PairBounds, pair_bounds


def screen(
    data: ScaledRows, hypotheses: Hypotheses, log_prior: FloatArray, drifts: Sequence[Drift]
) -> ScreenedHypotheses:
    """Return as `screening.screen`."""
    rough = rough_fit(data, hypotheses)
    unit = error_unit(data, rough)
    regressions = [
        regress(data, hypotheses, relative_weights(data, unit, drift).T) for drift in drifts
    ]
    variance = typical_variance(regressions[0], data)
    singles = bounds(regressions, data, hypotheses, log_prior, variance)
    pairs = pair_bounds(regressions, data, hypotheses, log_prior, rough, singles.alone)
    best = singles.best(pairs.row, pairs.bound)
    mean = smoothed(data, _mean_model(regressions[0], singles, pairs, best, hypotheses))
    scattered = variance > SCATTERED**2
    worthy = singles.singles >= best - hypotheses.kept.nats
    shape, row = np.nonzero(worthy.any(axis=0))
    pairs = pairs.take(pairs.bound >= best[pairs.row] - hypotheses.kept.nats)
    return ScreenedHypotheses(
        row,
        shape,
        tuple(np.flatnonzero(family[shape, row]) for family in worthy),
        pairs.row,
        pairs.pair,
        variance,
        np.where(scattered[:, None], rough, mean),
        np.flatnonzero(scattered),
    )


def _mean_model(
    regressed: OneTermRegressions,
    singles: Bounds,
    pairs: PairBounds,
    best: FloatArray,
    hypotheses: Hypotheses,
) -> FloatArray:
    """Return the mean of all models at the points, [n, K], weighted by exp(bound - best)."""
    sums = regressed.sums
    positive, offset, bare = np.exp(singles.singles - best)
    alone, of_pairs = np.exp(singles.constant - best), np.exp(pairs.bound - best[pairs.row])
    steepest = sums.mean / np.maximum(sums.at, 1e-9)
    # A model with one shape is mean + slope (x - at), where its signs allow the slope.
    slope = positive * np.clip(regressed.slope, 0.0, steepest) + offset * regressed.slope
    constant = ((positive + offset) * sums.mean - slope * sums.at).sum(axis=0) + alone * sums.mean
    slope = slope + bare * regressed.bare_slope
    weight = (positive + offset + bare).sum(axis=0) + alone
    np.add.at(weight, pairs.row, of_pairs)
    numbers = of_pairs * pairs.coefficients
    np.add.at(constant, pairs.row, numbers[0])
    for shapes, column in zip((hypotheses.first, hypotheses.second), numbers[1:], strict=True):
        np.add.at(slope, (shapes[pairs.pair], pairs.row), column)
    return np.asarray((hypotheses.table.T @ slope + constant) / weight).T


def rough_fit(data: ScaledRows, hypotheses: Hypotheses) -> FloatArray:
    """Return the best hypothesis with one shape at the points, [n, K], precise enough for weights.

    It is a constant unless the shape leaves much less unexplained. Otherwise noise would determine
    the weights.
    """
    unit = error_unit(data, data.values)
    regressed = regress(data, hypotheses, relative_weights(data, unit, Drift(0.0)).T)
    sums = regressed.sums
    slope = np.clip(regressed.slope, 0.0, sums.mean / np.maximum(sums.at, TINY))
    explained = slope * (2 * sums.product - slope * sums.square)
    best, rows = explained.argmax(axis=0), np.arange(len(data.values))
    enough = explained[best, rows] > (1 - UNEXPLAINED) * sums.total
    slope = np.where(enough, slope[best, rows], 0.0)
    away = hypotheses.table.T[:, best] - sums.at[best, rows]
    return smoothed(data, (sums.mean + slope * away).T)
