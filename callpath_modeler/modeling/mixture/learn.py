"""What an application teaches of its call paths: which kinds of laws and deviations it has."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.candidates import Candidates

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_GROUP_STRENGTH = 10.0
_CLASS_STRENGTH = 150.0
_DEVIATION_STRENGTH = 30.0
"""Before they move, priors count as so many call paths: of kinds, of terms, of deviations."""

_ROUNDS = 10


def learn(
    found: Candidates,
    groups: IntArray,
    log_prior: FloatArray,
    deviation_prior: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Fit the priors to some rows by expectation maximisation, held by what was believed before.

    Parameters
    ----------
    found : of some rows
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
        joint = joint_probability(found, log_prior, deviation_prior)
        count = np.bincount(found.chosen, joint.sum(axis=0), minlength=len(groups))
        per_group = np.bincount(groups, weights=count) + _GROUP_STRENGTH * whole
        share = count + _CLASS_STRENGTH * within
        total = np.bincount(groups, weights=share)
        share = share / np.where(total > 0, total, 1.0)[groups]
        seen = joint.sum(axis=1) + _DEVIATION_STRENGTH * deviation_before
        with np.errstate(divide="ignore"):
            log_prior = np.log(share * per_group[groups] / per_group.sum())
            deviation_prior = np.log(seen / seen.sum())
    return log_prior, deviation_prior


def joint_probability(
    found: Candidates, log_prior: FloatArray, deviation_prior: FloatArray
) -> FloatArray:
    """Return the probability of each candidate under each deviation, [D, M]; 1 in all per row."""
    joint = np.exp(found.log_evidence + (log_prior[found.chosen] + deviation_prior[:, None]))
    total = np.bincount(found.row, joint.sum(axis=0))
    joint *= 1 / total[found.row]
    return np.asarray(joint)
