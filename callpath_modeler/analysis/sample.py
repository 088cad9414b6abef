"""What the repetitions at one scale say: a centre of each value, and how well it is known.

Times differ by factors, so it is logarithms that scatter. One call path has few repetitions and an
experiment has many call paths, so its variance is shrunk towards that of all, but never below what
its own repetitions show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.modeling.distributions import student_quantile
from callpath_modeler.modeling.mixture.repetition_noise import (
    EXACT_VARIANCE,
    Pool,
    RepetitionStats,
    noise_of,
    pooled,
    profile_of,
    row_spread,
)
from callpath_modeler.profile.groups import Values

_CHUNK = 16_384
"""Rows that are looked at together: logarithms take as much memory as what they are of."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """What repetitions at one scale say of n values.

    Attributes
    ----------
    centre : [n] geometric mean; NaN = not measured, or nothing but zeros
    count : [n] repetitions it is made of
    variance : [n] variance of the logarithm of one repetition; NaN = unknown
    dof : [n] degrees of freedom of `variance`
    """

    centre: Values
    count: Values
    variance: Values
    dof: Values

    @property
    def is_repeated(self) -> bool:
        """Whether repetitions tell anything of noise."""
        return not np.isnan(self.variance).all()

    def reach(self, confidence: float) -> Values:
        """Return how far the interval of a centre reaches to either side, in logarithms, [n].

        By Student's t. It is 0 where repetitions agree at every scale, and NaN where nothing is
        known of noise.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt(self.variance / self.count)
            reach = student_quantile(self.dof, 0.5 + confidence / 2) * error
        return np.where(self.variance <= EXACT_VARIANCE, 0.0, reach)


def pool_of(values: Values) -> Pool:
    """Sum up how repetitions of `values` [n, K, R] scatter over all points and rows."""
    parts = [row_spread(_in_logarithms(part)) for part in in_chunks(values)]
    raw, dof, size = (np.concatenate(column) for column in zip(*parts, strict=True))
    some = values[:: len(values) // _CHUNK + 1]
    return pooled(raw, dof, size, profile_of(_in_logarithms(some)))


def in_chunks(values: Values) -> list[Values]:
    """Divide rows [n, ...] among as many arrays as keep what is made of one small; at least one."""
    return np.array_split(values, len(values) // _CHUNK + 1)


def sample_at(values: Values, point: int, pool: Pool | None = None) -> Sample:
    """Sum up the repetitions at one point, with the noise of all points and rows in mind.

    Parameters
    ----------
    values : [n, K, R]; NaN = missing. A zero has no logarithm and counts as missing, too: what
        costs nothing is as good as absent
    point : which of the K
    pool : the noise of the rows that these are among; None = they are all
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


def _in_logarithms(values: Values) -> RepetitionStats:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values > 0, np.log(values), np.nan)
    count = (~np.isnan(logs)).sum(axis=2).astype(np.float64)
    mean = np.where(count > 0, np.nansum(logs, axis=2) / np.maximum(count, 1.0), np.nan)
    squares = np.nansum((logs - mean[:, :, None]) ** 2, axis=2)
    return RepetitionStats(np.exp(mean), count, squares)
