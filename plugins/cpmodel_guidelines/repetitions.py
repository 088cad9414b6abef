"""Trimmed means of repetitions.

System noise sometimes makes an MPI call several times slower. If 5 of 100 calls are disturbed, a
plain mean can hide a violation of 10 %. Trimmed means ignore such calls (Yuen: The two-sample
trimmed t for unequal population variances, Biometrika 61(1), 1974).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray

_TRIMMED = 0.2
"""Share of the repetitions that is cut off at each end. Fewer than five repetitions stay whole."""


@dataclass(frozen=True, slots=True, eq=False)
class WinsorisedRepetitions:
    """Repetitions without outliers.

    Attributes
    ----------
    values : [n, K, R] winsorised: cut-off values are replaced by the nearest kept one; NaN =
        missing
    centre : [n, K] geometric mean of the kept values
    per_variance : [n, K] variance of the logarithm of `centre`, over the variance of one of
        `values`
    per_dof : [n, K] degrees of freedom of that variance, over the degrees of freedom of `values`
    """

    values: FloatArray
    centre: FloatArray
    per_variance: FloatArray
    per_dof: FloatArray


def winsorised(values: FloatArray) -> WinsorisedRepetitions:
    """Return repetitions [n, K, R] without outliers.

    A value is missing if it is NaN or not positive.
    """
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
    # If nothing is cut off, the ratios are 1 / count and 1.
    freedom, before = np.maximum(left - 1, 1), np.maximum(count - 1, 1)
    return WinsorisedRepetitions(
        np.exp(tamed), np.exp(centre), before / (left * freedom), freedom / before
    )
