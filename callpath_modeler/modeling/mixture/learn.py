"""What an application teaches of its call paths: which kinds of laws and deviations it has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_GROUP_STRENGTH = 10.0
_CLASS_STRENGTH = 150.0
_DEVIATION_STRENGTH = 60.0
"""Before they move, priors count as so many call paths: of kinds, of terms, of deviations."""

_ROUNDS = 10

DEVIATIONS_BESIDE_NOISE = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
_BESIDE_PRIOR = (0.4, 0.15, 0.15, 0.15, 0.1, 0.05)
DEVIATIONS_ALONE = (0.0, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
DRIFTS = (0.0, 4.0, 20.0)


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


def learn(
    log_evidence: FloatArray,
    chosen: IntArray,
    groups: IntArray,
    log_prior: FloatArray,
    deviation_prior: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Fit the priors to some rows by expectation maximisation, held by what was believed before.

    Parameters
    ----------
    log_evidence : [m, C, D] of each row's candidates under each deviation
    chosen : [m, C] which hypothesis each candidate is
    groups : [H] the group of each hypothesis
    log_prior : [H] of the hypotheses
    deviation_prior : [D] in logarithms

    Returns
    -------
    log_prior, deviation_prior : what to believe of this application
    """
    before, deviation_before = np.exp(log_prior), np.exp(deviation_prior)
    whole = np.bincount(groups, weights=before)
    within = before / np.where(whole > 0, whole, 1.0)[groups]
    for _ in range(_ROUNDS):
        joint = log_evidence + log_prior[chosen][:, :, None] + deviation_prior
        joint = np.exp(joint - joint.max(axis=(1, 2), keepdims=True))
        joint /= joint.sum(axis=(1, 2), keepdims=True)
        count = np.bincount(chosen.ravel(), joint.sum(axis=2).ravel(), minlength=len(groups))
        per_group = np.bincount(groups, weights=count) + _GROUP_STRENGTH * whole
        share = count + _CLASS_STRENGTH * within
        total = np.bincount(groups, weights=share)
        share = share / np.where(total > 0, total, 1.0)[groups]
        with np.errstate(divide="ignore"):
            log_prior = np.log(share * per_group[groups] / per_group.sum())
            seen = joint.sum(axis=(0, 1)) + _DEVIATION_STRENGTH * deviation_before
            deviation_prior = np.log(seen / seen.sum())
    return log_prior, deviation_prior
