"""Screening: the hypotheses of each row that may matter, and a rough fit.

See docs/explanation/hypotheses.md, 'Screening'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.screening import WITHIN
from callpath_modeler.modeling.kernels import kernels
from callpath_modeler.modeling.mixture.deviations import Drift
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows, floor_of


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
    result: ScreenedHypotheses = kernels().screen(data, hypotheses, log_prior, drifts)
    return result


def smoothed(data: ScaledRows, fitted: FloatArray) -> FloatArray:
    """Return fitted values within reach of measured ones, so that no bad fit distorts weights."""
    floor = floor_of(data)
    near = np.clip(fitted, data.values / WITHIN, data.values * WITHIN)
    return np.where(data.values > 0, near, np.maximum(fitted, floor))
