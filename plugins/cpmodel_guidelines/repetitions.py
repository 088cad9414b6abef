"""Repetitions whose extremes count no more than their neighbours.

Calls of MPI are disturbed now and then, and then they take several times as long: five disturbed
ones in a hundred hide a violation of ten percent from means. Trimmed means do not see them (Yuen:
The two-sample trimmed t for unequal population variances, Biometrika 61(1), 1974).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

_TRIMMED = 0.2
"""Of the repetitions, that are left out at either end; of fewer than five none is."""


@dataclass(frozen=True, slots=True, eq=False)
class WinsorisedRepetitions:
    """Repetitions without extremes.

    Attributes
    ----------
    values : [n, K, R] those at either end replaced by the next ones; NaN = missing
    centre : [n, K] geometric means of the others
    per_variance : [n, K] variance of the logarithm of a centre over that of one of `values`
    per_dof : [n, K] its degrees of freedom, over those of `values`
    """

    values: Values
    centre: Values
    per_variance: Values
    per_dof: Values


def winsorised(values: Values) -> WinsorisedRepetitions:
    """Tame repetitions [n, K, R]; NaN = missing, and so is zero, which has no logarithm."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.sort(np.where(values > 0, np.log(values), np.nan), axis=2)
    count = (~np.isnan(logs)).sum(axis=2)
    cut = np.floor(_TRIMMED * count + 1e-9).astype(np.intp)
    place = np.arange(values.shape[2])
    last = np.maximum(count - 1 - cut, 0)[..., None]
    inside = np.minimum(np.maximum(place, cut[..., None]), last)
    tamed = np.take_along_axis(logs, inside, axis=2)
    tamed = np.where(place < count[..., None], tamed, np.nan)
    kept = (place >= cut[..., None]) & (place <= last) & (count > 0)[..., None]
    left = np.maximum(count - 2 * cut, 1)
    centre = np.where(count > 0, np.where(kept, logs, 0.0).sum(axis=2) / left, np.nan)
    # Without any cut these are one over the number, and one.
    freedom, before = np.maximum(left - 1, 1), np.maximum(count - 1, 1)
    return WinsorisedRepetitions(
        np.exp(tamed), np.exp(centre), before / (left * freedom), freedom / before
    )
