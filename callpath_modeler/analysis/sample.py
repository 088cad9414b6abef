"""Repetitions at one scale: a centre of each value, and its noise.

Times differ by factors, so the statistics use logarithms. A call path has few repetitions, and an
experiment has many call paths. So the variance of a call path is shrunk towards that of all, but
never below the variance of its own repetitions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.constants.noise import EXACT_VARIANCE
from callpath_modeler.modeling.distributions import student_quantile
from callpath_modeler.modeling.mixture.repetition_noise import (
    Pool,
    RepetitionStats,
    noise_of,
    pooled,
    profile_of,
    row_spread,
)

_CHUNK = 16_384
"""Rows that are processed at a time, because logarithms take as much memory as the values."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Repetitions of n values at one scale.

    Attributes
    ----------
    centre : [n] geometric mean; NaN = not measured, or only zeros
    count : [n] number of repetitions
    variance : [n] variance of the logarithm of one repetition; NaN = unknown
    dof : [n] degrees of freedom of `variance`
    """

    centre: FloatArray
    count: FloatArray
    variance: FloatArray
    dof: FloatArray

    @property
    def is_repeated(self) -> bool:
        """True if repetitions show the noise."""
        return not np.isnan(self.variance).all()

    def reach(self, confidence: float) -> FloatArray:
        """Return half the width of the confidence interval of a centre, in logarithms, [n].

        It follows from Student's t. It is 0 if repetitions agree at every scale, and NaN if the
        noise is not known.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt(self.variance / self.count)
            reach = student_quantile(self.dof, 0.5 + confidence / 2) * error
        return np.where(self.variance <= EXACT_VARIANCE, 0.0, reach)


def pool_of(values: FloatArray) -> Pool:
    """Return the pooled scatter of repetitions of `values` [n, K, R] over all points and rows."""
    parts = [row_spread(_in_logarithms(part)) for part in in_chunks(values)]
    raw, dof, size = (np.concatenate(column) for column in zip(*parts, strict=True))
    some = values[:: len(values) // _CHUNK + 1]
    return pooled(raw, dof, size, profile_of(_in_logarithms(some)))


def in_chunks(values: FloatArray) -> list[FloatArray]:
    """Return rows [n, ...] as at least one array, each small enough for intermediate results."""
    return np.array_split(values, len(values) // _CHUNK + 1)


def sample_at(values: FloatArray, point: int, pool: Pool | None = None) -> Sample:
    """Return the sample of repetitions at one point, with the noise of all points and rows.

    Parameters
    ----------
    values : [n, K, R]; NaN = missing. A zero has no logarithm and is treated as missing
    point : index of the point
    pool : noise of a larger set of rows; None = these rows are the set
    """
    within = _in_logarithms(values)
    noise = noise_of(within, 1.0) if pool is None else pool.noise(within, 1.0)
    count, squares = within.count, within.squares
    effective = count.sum(axis=1) / np.maximum((count > 0).sum(axis=1), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The weight of a point is by its repetitions and by how it scatters, against all points.
        steadiness = noise.weight[:, point] * effective / count[:, point]
        variance = noise.variance * np.maximum(effective, 1.0) / steadiness
        # One spike in a thousand runs is in no variance of others: what is seen here counts.
        own = squares[:, point] / np.maximum(count[:, point] - 1, 1.0)
    variance = np.where(noise.variance <= EXACT_VARIANCE, EXACT_VARIANCE, np.maximum(variance, own))
    if not noise.is_known:
        variance = np.full(len(values), np.nan)
    return Sample(within.centre[:, point], count[:, point], variance, noise.dof)


def _in_logarithms(values: FloatArray) -> RepetitionStats:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values > 0, np.log(values), np.nan)
    count = (~np.isnan(logs)).sum(axis=2).astype(np.float64)
    mean = np.where(count > 0, np.nansum(logs, axis=2) / np.maximum(count, 1.0), np.nan)
    squares = np.nansum((logs - mean[:, :, None]) ** 2, axis=2)
    return RepetitionStats(np.exp(mean), count, squares)
