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
    likely = np.exp(found.log_evidence)
    prior, deviation = before, deviation_before
    for _ in range(_ROUNDS):
        # Probable as hypotheses and deviations are, and 1 in all per row.
        its = prior[found.chosen]
        share = its * (deviation @ likely)
        per_row = 1 / np.bincount(found.row, share)[found.row]
        count = np.bincount(found.chosen, share * per_row, minlength=len(kinds))
        seen = deviation * (likely @ (its * per_row)) + _DEVIATION_STRENGTH * deviation_before
        per_kind = np.bincount(kinds, weights=count) + _KIND_STRENGTH * whole
        held_too = count + held * within
        total = np.bincount(kinds, weights=held_too)
        prior = held_too / np.where(total > 0, total, 1.0)[kinds]
        prior *= per_kind[kinds] / per_kind.sum()
        deviation = seen / seen.sum()
    with np.errstate(divide="ignore"):
        return np.log(prior), np.log(deviation)
