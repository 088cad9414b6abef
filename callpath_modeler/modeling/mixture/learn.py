"""What an application teaches of its call paths: which kinds of laws and deviations it has."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.candidates import Candidates
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses

FloatArray = npt.NDArray[np.float64]

_KIND_STRENGTH = 10.0
_DEVIATION_STRENGTH = 30.0
"""Before they move, priors count as so many call paths: of kinds, of deviations."""

_ROUNDS = 10


def learn(
    found: Candidates,
    known: Hypotheses,
    log_prior: FloatArray,
    deviation_prior: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Fit the priors to some rows by expectation maximisation, held by what was believed before.

    Parameters
    ----------
    found : of some rows
    known : the hypotheses, with their kinds
    log_prior : [H] of the hypotheses
    deviation_prior : [D] in logarithms

    Returns
    -------
    log_prior, deviation_prior : what to believe of this application
    """
    kinds, held = known.kinds, known.held[known.kinds]
    before, deviation_before = np.exp(log_prior), np.exp(deviation_prior)
    whole = np.bincount(kinds, weights=before)
    within = before / np.where(whole > 0, whole, 1.0)[kinds]
    for _ in range(_ROUNDS):
        joint = joint_probability(found, log_prior, deviation_prior)
        count = np.bincount(found.chosen, joint.sum(axis=0), minlength=len(kinds))
        per_kind = np.bincount(kinds, weights=count) + _KIND_STRENGTH * whole
        share = count + held * within
        total = np.bincount(kinds, weights=share)
        share = share / np.where(total > 0, total, 1.0)[kinds]
        seen = joint.sum(axis=1) + _DEVIATION_STRENGTH * deviation_before
        with np.errstate(divide="ignore"):
            log_prior = np.log(share * per_kind[kinds] / per_kind.sum())
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
