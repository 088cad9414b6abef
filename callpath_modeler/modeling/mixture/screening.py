"""Screening: the hypotheses of each row that may matter, a rough fit, and limits of pairs.

See docs/explanation/hypotheses.md, 'Screening'.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import LOG_2, LOG_2PI, PARALLEL
from callpath_modeler.modeling.constants.hypotheses import WITHIN
from callpath_modeler.modeling.kernels import kernels
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.regressions import InterceptPenalty
from callpath_modeler.modeling.mixture.scaled_rows import Drift, ScaledRows, floor_of


class ScreenedHypotheses(Struct, frozen=True):
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
    result: ScreenedHypotheses = kernels().screen(data, hypotheses, log_prior, drifts)
    return result


def smoothed(data: ScaledRows, fitted: FloatArray) -> FloatArray:
    """Return fitted values within reach of measured ones, so that no bad fit distorts weights."""
    floor = floor_of(data)
    near = np.clip(fitted, data.values / WITHIN, data.values * WITHIN)
    return np.where(data.values > 0, near, np.maximum(fitted, floor))


def promise_of_pairs(hypotheses: Hypotheses, log_prior: FloatArray) -> float:
    """Return an upper bound of the log evidence of pairs with a constant, without the likelihood.

    It includes the prior, for a level and weights of all points of 1. In several parameters there
    are too many points for a useful bound, and it is infinite.
    """
    if hypotheses.fans is not None:
        return np.inf
    points, first, second = hypotheses.table.shape[1], hypotheses.first, hypotheses.second
    mean = hypotheses.table.mean(axis=1)
    square = (hypotheses.table**2).sum(axis=1) - points * mean**2
    both = square[first] * square[second]
    determinant = (
        both - (hypotheses.products.sum(axis=1) - points * mean[first] * mean[second]) ** 2
    )
    volume = -0.5 * np.log(points * np.maximum(determinant, PARALLEL * both))
    of_pairs = log_prior[1 + 3 * len(hypotheses.shapes) :]
    return float((of_pairs + volume).max(initial=-np.inf) + 1.5 * LOG_2PI + LOG_2)


def intercept_penalty(
    data: ScaledRows, rows: IntArray, pairs: IntArray, hypotheses: Hypotheses
) -> InterceptPenalty:
    """Return the cost of the constants of `pairs`, [..., n or 1], in the rows `rows` [n]."""
    frugal = hypotheses.kept.frugal
    asked = pairs >= (0 if frugal else hypotheses.growing)
    return InterceptPenalty(data.variance[rows], data.used[rows], asked, shared=not frugal)
