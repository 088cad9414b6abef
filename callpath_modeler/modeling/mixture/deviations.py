"""Ways in which measurements may differ from a law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

DEVIATIONS_BESIDE_NOISE = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
_BESIDE_PRIOR = (0.4, 0.15, 0.15, 0.15, 0.1, 0.05)
DEVIATIONS_ALONE = (0.0, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
DRIFTS = (0.0, 10.0, 100.0)


@dataclass(frozen=True, slots=True)
class Deviations:
    """Ways in which measurements may differ from a law.

    The relative variance of a point is ``(noise + deviation**2) (1 + drift log2(p_max / p))``:
    small scales may follow another regime than large ones, which are what is extrapolated.

    Attributes
    ----------
    deviation, drift : [D]
    log_prior : [D]
    """

    deviation: FloatArray
    drift: FloatArray
    log_prior: FloatArray

    @property
    def drifts(self) -> FloatArray:
        """The different drifts, [L], ascending."""
        return np.unique(self.drift)

    @property
    def drift_of(self) -> IntArray:
        """Which of them each deviation has, [D]."""
        return np.searchsorted(self.drifts, self.drift)

    def steady(self) -> Deviations:
        """Return those without a drift; they come first."""
        few = self.drift == 0
        return Deviations(self.deviation[few], self.drift[few], self.log_prior[few])


def deviations(*, noise_known: bool) -> Deviations:
    """List the deviations; without repetitions they stand for the noise as well."""
    sizes: tuple[float, ...] = DEVIATIONS_BESIDE_NOISE if noise_known else DEVIATIONS_ALONE
    prior = _BESIDE_PRIOR if noise_known else (1 / len(sizes),) * len(sizes)
    cells = [
        (size, drift, share / len(DRIFTS))
        for drift in DRIFTS
        for size, share in zip(sizes, prior, strict=True)
        # Noise alone does not drift.
        if size or not drift or not noise_known
    ]
    size, drift, share = (np.array(column) for column in zip(*cells, strict=True))
    return Deviations(size, drift, np.log(share / share.sum()))
