"""What models of a metric leave as a rule: without repetitions nothing else tells too much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows, floor_of

FloatArray = npt.NDArray[np.float64]

_FEWEST_ROWS = 10
_LEAST = 0.1
_TIMES = 3.0
_DEVIATIONS = 2.5
_OF_NORMAL = 1.4826
"""Standard deviation of a normal distribution against its median absolute deviation."""

_EXACT_MISFIT = 1e-3
_MOST_ROUNDED = 3.0
"""The square of a half against the variance of what is rounded."""


@dataclass(frozen=True, slots=True)
class MisfitBaseline:
    """What models of a metric leave as a rule, relative to the values.

    Attributes
    ----------
    most : above it a row without repetitions is far from its model, as others are not
    exact : whether whole numbers are exact: most rows of them follow laws to the last digit
    """

    most: float = np.inf
    exact: bool = True

    def exactly(self, data: ScaledRows) -> FloatArray:
        """Return what laws of exact values leave at most, root mean squares, [n]."""
        if not self.exact:
            return np.full(len(data.values), np.inf)
        squares = np.where(data.weight > 0, 1 / np.maximum(data.values, floor_of(data)) ** 2, 0.0)
        rounding = data.rounding * squares.sum(axis=1) / np.maximum(data.used, 1.0)
        return np.asarray(np.sqrt(_EXACT_MISFIT**2 + _MOST_ROUNDED * rounding))


def misfit_baseline(data: ScaledRows, fitted: FloatArray) -> MisfitBaseline:
    """Tell what some rows leave, of which models say `fitted` [n, K].

    Rows differ by themselves in how noisy they are. So what is far from a model has to be far from
    what rows leave in the middle, by as much as they scatter.
    """
    if len(fitted) < _FEWEST_ROWS:
        return MisfitBaseline()
    used = data.weight > 0
    relative = (data.values - fitted) / np.maximum(data.values, floor_of(data))
    squares = np.where(used, relative**2, 0.0).sum(axis=1)
    exact = np.sqrt(squares / data.used) <= MisfitBaseline().exactly(data)
    left = np.log(np.maximum(squares / np.maximum(data.used - 2, 1.0), 1e-18)) / 2
    middle = float(np.median(left))
    scatter = _OF_NORMAL * float(np.median(np.abs(left - middle)))
    most = np.exp(middle + _DEVIATIONS * scatter)
    most = max(float(most), _TIMES * float(np.exp(middle)), _LEAST)
    return MisfitBaseline(most, bool(exact.mean() >= 0.5))
