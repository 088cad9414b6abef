"""Usual misfits of the models of a metric, the measure for rows without repetitions.

See docs/explanation/noise-and-bands.md, 'Status'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.constants.outcome import (
    EXACT_MISFIT,
    FEWEST_MISFITS,
    LEAST_MISFIT,
    MISFIT_DEVIATIONS,
    MOST_ROUNDED,
    OF_NORMAL,
    TIMES_MEDIAN_MISFIT,
)
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows, floor_of


@dataclass(frozen=True, slots=True)
class MisfitBaseline:
    """Usual misfits of the models of a metric, relative to the values.

    Attributes
    ----------
    most : misfit above which a row without repetitions is far from its model, unlike other rows
    exact : whether whole numbers are exact, because most rows of them follow laws to the last digit
    """

    most: float = np.inf
    exact: bool = True

    def exactly(self, data: ScaledRows) -> FloatArray:
        """Return the largest misfits of laws of exact values, root mean squares, [n]."""
        if not self.exact:
            return np.full(len(data.values), np.inf)
        squares = np.where(data.weight > 0, 1 / np.maximum(data.values, floor_of(data)) ** 2, 0.0)
        rounding = data.rounding * squares.sum(axis=1) / np.maximum(data.used, 1.0)
        return np.asarray(np.sqrt(EXACT_MISFIT**2 + MOST_ROUNDED * rounding))


def misfit_baseline(data: ScaledRows, fitted: FloatArray) -> MisfitBaseline:
    """Return the usual misfits of some rows, with `fitted` [n, K] from their models.

    Rows differ in their noise. So a misfit is unusual only if it exceeds the median misfit by more
    than the misfits of rows scatter.
    """
    if len(fitted) < FEWEST_MISFITS:
        return MisfitBaseline()
    used = data.weight > 0
    relative = (data.values - fitted) / np.maximum(data.values, floor_of(data))
    squares = np.where(used, relative**2, 0.0).sum(axis=1)
    exact = np.sqrt(squares / data.used) <= MisfitBaseline().exactly(data)
    left = np.log(np.maximum(squares / np.maximum(data.used - 2, 1.0), 1e-18)) / 2
    middle = float(np.median(left))
    scatter = OF_NORMAL * float(np.median(np.abs(left - middle)))
    most = np.exp(middle + MISFIT_DEVIATIONS * scatter)
    most = max(float(most), TIMES_MEDIAN_MISFIT * float(np.exp(middle)), LEAST_MISFIT)
    return MisfitBaseline(most, bool(exact.mean() >= 0.5))
