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
    count_as_one: float = 1.0,
) -> tuple[FloatArray, FloatArray]:
    """Fit the priors to some rows by expectation maximisation, held by what was believed before.

    Parameters
    ----------
    found : of some rows
    known : the hypotheses, with their kinds
    log_prior : [H] of the hypotheses
    deviation_prior : [D] in logarithms
    count_as_one : how many rows say as little as one: those that deviate alike

    Returns
    -------
    log_prior, deviation_prior : what to believe of this application
    """
    kinds, before, deviation_before = known.kinds, np.exp(log_prior), np.exp(deviation_prior)
    whole = np.bincount(kinds, weights=before, minlength=len(known.held))
    within = np.divide(1.0, whole, out=np.zeros_like(whole), where=whole > 0)
    of_hypothesis = known.held * count_as_one
    # What was not chosen by any row keeps its share of what is left of its kind.
    chosen = np.zeros(len(kinds), dtype=np.bool_)
    chosen[found.chosen] = True
    which = np.flatnonzero(chosen)
    place = (np.cumsum(chosen) - 1)[found.chosen]
    kind, alone = kinds[which], before[which]
    held = of_hypothesis[kind] * within[kind] * alone
    likely = np.exp(found.log_evidence)
    prior, deviation = alone, deviation_before
    for _ in range(_ROUNDS):
        # Probable as hypotheses and deviations are, and 1 in all per row.
        its = prior[place]
        share = its * (deviation @ likely)
        per_row = 1 / np.bincount(found.row, share)[found.row]
        said = share * per_row
        count = np.bincount(place, said, minlength=len(which))
        seen = deviation * (likely @ (its * per_row))
        seen += count_as_one * _DEVIATION_STRENGTH * deviation_before
        of_kind = np.bincount(kind, weights=count, minlength=len(whole))
        per_kind = of_kind + count_as_one * _KIND_STRENGTH * whole
        if known.fans is not None:
            # One of thousands suits any row: it would convince itself, which is no habit.
            by_one = np.zeros(len(which))
            np.maximum.at(by_one, place, said)
            count = np.asarray(count - by_one)
            of_kind = np.bincount(kind, weights=count, minlength=len(whole))
        factor = per_kind / per_kind.sum() / (of_kind + of_hypothesis)
        prior = (count + held) * factor[kind]
        deviation = seen / seen.sum()
    after = before * (of_hypothesis * within * factor)[kinds]
    after[which] = prior
    with np.errstate(divide="ignore"):
        return np.log(after), np.log(deviation)
