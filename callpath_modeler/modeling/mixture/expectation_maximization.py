"""Priors of kinds, hypotheses and deviations, learnt from the call paths of an application.

See docs/explanation/hypotheses.md, 'Priors that are learnt'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.learning import (
    BY_ONE,
    DEVIATION_STRENGTH,
    KIND_STRENGTH,
    ROUNDS,
)
from callpath_modeler.modeling.mixture.candidates import Candidates
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses


@dataclass(frozen=True, slots=True)
class PseudoCounts:
    """Call paths that the initial priors count as, for the W hypotheses that rows have chosen.

    Attributes
    ----------
    kind : [W] kind of each hypothesis
    hypothesis : [W] pseudo-count of each hypothesis
    of_hypothesis : [kinds] sum over all hypotheses of a kind, chosen or not
    of_kind : [kinds] pseudo-count of each kind among the kinds
    deviation : [D] pseudo-count of each deviation
    by_one : largest count of the row with the most evidence for a hypothesis, in units of
        `hypothesis`. One of thousands of hypotheses suits any row, which would confirm itself
    """

    kind: IntArray
    hypothesis: FloatArray
    of_hypothesis: FloatArray
    of_kind: FloatArray
    deviation: FloatArray
    by_one: float


def maximize_evidence(
    found: Candidates,
    hypotheses: Hypotheses,
    log_prior: FloatArray,
    deviation_prior: FloatArray,
    count_as_one: float = 1.0,
) -> tuple[FloatArray, FloatArray]:
    """Return the priors that fit some rows best, by expectation maximisation.

    The initial priors count as call paths. Each hypothesis and each deviation is learnt separately.

    Parameters
    ----------
    found : candidates of some rows
    hypotheses : hypotheses with their kinds
    log_prior : [H] initial log priors of the hypotheses
    deviation_prior : [D] initial log priors of the deviations
    count_as_one : number of rows that count as one, because their errors are correlated

    Returns
    -------
    log_prior, deviation_prior : log priors for this application
    """
    found = found.by_row()
    kinds, before = hypotheses.kinds, np.exp(log_prior)
    whole = np.bincount(kinds, weights=before, minlength=len(hypotheses.strength)).astype(
        np.float64
    )
    within = np.divide(1.0, whole, out=np.zeros_like(whole), where=whole > 0)
    of_hypothesis = hypotheses.strength * count_as_one
    # A hypothesis that no row has chosen keeps its share of the rest of its kind.
    chosen = np.zeros(len(kinds), dtype=np.bool_)
    chosen[found.chosen] = True
    which = np.flatnonzero(chosen)
    place = (np.cumsum(chosen) - 1)[found.chosen]
    kind, alone = kinds[which], before[which]
    held = PseudoCounts(
        kind,
        of_hypothesis[kind] * within[kind] * alone,
        of_hypothesis,
        count_as_one * KIND_STRENGTH * whole,
        count_as_one * DEVIATION_STRENGTH * np.exp(deviation_prior),
        0.0 if hypotheses.fans is not None else BY_ONE,
    )
    prior, deviation, factor = _rounds(found, place, held, alone, ROUNDS)
    after = before * (of_hypothesis * within * factor)[kinds]
    after[which] = prior
    with np.errstate(divide="ignore"):
        return np.log(after), np.log(deviation)


def _rounds(
    found: Candidates, place: IntArray, pseudo: PseudoCounts, prior: FloatArray, count: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Run `count` rounds from the `prior` [W]; `place` [M] is the position of each candidate in it.

    Returns the priors of hypotheses [W] and of deviations [D], and for each kind the prior of a
    hypothesis per counted call path, [kinds].
    """
    likely, kind, kinds = np.exp(found.log_evidence), pseudo.kind, len(pseudo.of_kind)
    deviation = pseudo.deviation / pseudo.deviation.sum()
    factor = np.zeros(kinds)
    for _ in range(count):
        # Joint probabilities of hypotheses and deviations sum to 1 in each row.
        its = prior[place]
        share = its * (deviation @ likely)
        per_row = 1 / np.bincount(found.row, share)[found.row]
        said = share * per_row
        counts = np.bincount(place, said, minlength=len(prior))
        seen = deviation * (likely @ (its * per_row))
        seen += pseudo.deviation
        of_kind = np.bincount(kind, weights=counts, minlength=kinds)
        per_kind = of_kind + pseudo.of_kind
        most = np.zeros(len(prior))
        np.maximum.at(most, place, said)
        counts = np.asarray(counts - np.maximum(0, most - pseudo.by_one * pseudo.hypothesis))
        of_kind = np.bincount(kind, weights=counts, minlength=kinds)
        factor = per_kind / per_kind.sum() / (of_kind + pseudo.of_hypothesis)
        prior = (counts + pseudo.hypothesis) * factor[kind]
        deviation = seen / seen.sum()
    return prior, deviation, factor
