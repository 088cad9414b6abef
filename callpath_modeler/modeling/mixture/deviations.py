"""Ways in which measurements may differ from a law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.evaluation import doublings

DEVIATIONS_BESIDE_NOISE = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
_BESIDE_PRIOR = (0.4, 0.15, 0.15, 0.15, 0.1, 0.05)
_WILD, _WILD_PRIOR = 1.0, 0.01
"""What measurements in several parameters may deviate by as well: protocols that change with the
size of messages are products of factors less often than laws in one parameter are laws."""
DEVIATIONS_ALONE = (0.0, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Drift:
    """How deviations grow towards small scales, which may follow another regime than large ones.

    Attributes
    ----------
    growth : of the variance per doubling of the distance to the largest point
    apart : whether the first point says next to nothing of the others
    """

    growth: float
    apart: bool = False

    def variances(self, points: FloatArray) -> FloatArray:
        """Return the variance at each point against that at the largest, [K]."""
        return np.asarray(variances((self,), points)[0])

    @property
    def of_first(self) -> float:
        """The variance at the first point, against what it is by its distance."""
        return _APART if self.apart else 1.0


def variances(drifts: Sequence[Drift], points: FloatArray) -> FloatArray:
    """Return the variances at each point under each drift against those at the largest, [L, K]."""
    growth = np.array([[drift.growth] for drift in drifts])
    return np.asarray(1 + growth * doublings(points))


DRIFTS = (Drift(0.0), Drift(10.0), Drift(100.0))
ALONE = Drift(10.0, apart=True)
"""For runs that begin with one process: it has none to talk to or to wait for."""

_APART = 1e5
_AS_A_RULE = 30.0
"""How probable it is that one process is of its own regime, against each other drift."""


@dataclass(frozen=True, slots=True)
class Deviations:
    """Ways in which measurements may differ from a law.

    The relative variance of a point is ``(noise + deviation**2) drift(point)``.

    Attributes
    ----------
    drifts : the different drifts, L; the first is none
    deviation, drift_of : [D] and which drift each has, in their order
    log_prior : [D]
    """

    drifts: tuple[Drift, ...]
    deviation: FloatArray
    drift_of: IntArray
    log_prior: FloatArray

    @property
    def extremes(self) -> tuple[Drift, ...]:
        """The drifts that all others are between."""
        return self.drifts[0], *self.drifts[len(DRIFTS) - 1 :]

    def steady(self) -> Deviations:
        """Return those without a drift; they come first."""
        few = self.drift_of == 0
        return Deviations(
            self.drifts[:1], self.deviation[few], self.drift_of[few], self.log_prior[few]
        )


def deviations(points: FloatArray, *, noise_known: bool) -> Deviations:
    """List the deviations over `points`, [K] ascending or [K, D].

    Without repetitions they stand for the noise as well.
    """
    sizes: tuple[float, ...] = DEVIATIONS_BESIDE_NOISE if noise_known else DEVIATIONS_ALONE
    prior = _BESIDE_PRIOR if noise_known else (1 / len(sizes),) * len(sizes)
    if noise_known and points.ndim > 1:
        sizes, prior = (*sizes, _WILD), (*prior, _WILD_PRIOR)
    drifts = (*DRIFTS, ALONE) if points.ndim == 1 and points[0] == 1 else DRIFTS
    cells = [
        (size, drift, share * (_AS_A_RULE if drifts[drift].apart else 1.0))
        for drift in range(len(drifts))
        for size, share in zip(sizes, prior, strict=True)
        # Noise alone does not drift, and what is wild everywhere is.
        if not drift or not noise_known or 0 < size < _WILD
    ]
    size, drift, share = (np.array(column) for column in zip(*cells, strict=True))
    return Deviations(drifts, size, drift, np.log(share / share.sum()))
