"""Deviations of measurements from a law beyond their noise, and drifts of the deviations.

See docs/explanation/noise-and-bands.md, 'Deviation and drift'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.noise import (
    AS_A_RULE,
    BESIDE_PRIOR,
    DEVIATIONS_ALONE,
    DEVIATIONS_BESIDE_NOISE,
    FIRST_APART,
    GROWTHS_OF_DRIFTS,
    WILD,
    WILD_PRIOR,
)
from callpath_modeler.modeling.evaluation import doublings


@dataclass(frozen=True, slots=True)
class Drift:
    """Growth of deviations towards small scales, which may follow another regime than large ones.

    Attributes
    ----------
    growth : growth of the variance per doubling of the distance from the largest point
    apart : whether the first point has almost no weight
    """

    growth: float
    apart: bool = False

    def variances(self, points: FloatArray) -> FloatArray:
        """Return the variance at each point relative to that at the largest one, [K]."""
        return np.asarray(variances((self,), points)[0])

    @property
    def of_first(self) -> float:
        """Factor of the variance at the first point, in addition to that of its distance."""
        return FIRST_APART if self.apart else 1.0


def variances(drifts: Sequence[Drift], points: FloatArray) -> FloatArray:
    """Return the variance at each point under each drift, relative to the largest point, [L, K]."""
    growth = np.array([[drift.growth] for drift in drifts])
    return np.asarray(1 + growth * doublings(points))


DRIFTS = tuple(map(Drift, GROWTHS_OF_DRIFTS))
"""Drifts that are tried. The first one stands for no drift."""
ALONE = Drift(GROWTHS_OF_DRIFTS[1], apart=True)
"""Drift for runs that begin with one process, which has no partner to talk to or to wait for."""


@dataclass(frozen=True, slots=True)
class Deviations:
    """The deviations of measurements from a law that are tried.

    The relative variance of a point is ``(noise + deviation**2) drift(point)``.

    Attributes
    ----------
    drifts : L distinct drifts; the first one is no drift
    deviation, drift_of : [D] relative deviation, and number of its drift in ascending order
    log_prior : [D] logarithm of the prior
    """

    drifts: tuple[Drift, ...]
    deviation: FloatArray
    drift_of: IntArray
    log_prior: FloatArray

    @property
    def extremes(self) -> tuple[Drift, ...]:
        """The drifts that bracket all others: none, the largest one, that of one process."""
        return self.drifts[0], *self.drifts[len(DRIFTS) - 1 :]

    def steady(self) -> Deviations:
        """Return the deviations without a drift; they come first."""
        few = self.drift_of == 0
        return Deviations(
            self.drifts[:1], self.deviation[few], self.drift_of[few], self.log_prior[few]
        )


def deviations(points: FloatArray, *, noise_known: bool) -> Deviations:
    """Return the deviations that are tried over `points`, [K] ascending or [K, D].

    Without repetitions the deviations include the noise.
    """
    sizes: tuple[float, ...] = DEVIATIONS_BESIDE_NOISE if noise_known else DEVIATIONS_ALONE
    prior = BESIDE_PRIOR if noise_known else (1 / len(sizes),) * len(sizes)
    if noise_known and points.ndim > 1:
        sizes, prior = (*sizes, WILD), (*prior, WILD_PRIOR)
    drifts = (*DRIFTS, ALONE) if points.ndim == 1 and points[0] == 1 else DRIFTS
    cells = [
        (size, drift, share * (AS_A_RULE if drifts[drift].apart else 1.0))
        for drift in range(len(drifts))
        for size, share in zip(sizes, prior, strict=True)
        # Noise alone does not drift, and the largest deviation is the same everywhere.
        if not drift or not noise_known or 0 < size < WILD
    ]
    size, drift, share = (np.array(column) for column in zip(*cells, strict=True))
    return Deviations(drifts, size, drift, np.log(share / share.sum()))
