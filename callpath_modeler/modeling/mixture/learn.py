"""What an application teaches of its call paths: which kinds of laws and deviations it has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.compiled import learn as in_c
from callpath_modeler.modeling.compiled.library import compiled
from callpath_modeler.modeling.mixture.candidates import Candidates
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_KIND_STRENGTH = 10.0
_DEVIATION_STRENGTH = 30.0
"""Before they move, priors count as so many call paths: of kinds, of deviations."""
_BY_ONE = 10.0
"""The call path that says most of a hypothesis counts for so many times what that is held by: what
is one in a million would be one in a thousand for whomever it suits."""

_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Held:
    """What is counted before any row is, of the W hypotheses that rows have chosen.

    Attributes
    ----------
    kind : [W] of which kind each is
    hypothesis : [W] as how many call paths each counts
    of_hypothesis : [kinds] as how many all of a kind do, chosen or not
    of_kind : [kinds] as how many the kind does, against others
    deviation : [D] as how many deviations do
    by_one : for how many times `hypothesis` the row that says most of one counts, at most: one of
        thousands suits any row, which would convince itself, and is no habit
    """

    kind: IntArray
    hypothesis: FloatArray
    of_hypothesis: FloatArray
    of_kind: FloatArray
    deviation: FloatArray
    by_one: float


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
    found = found.by_row()
    kinds, before, deviation_before = known.kinds, np.exp(log_prior), np.exp(deviation_prior)
    whole = np.bincount(kinds, weights=before, minlength=len(known.held)).astype(np.float64)
    within = np.divide(1.0, whole, out=np.zeros_like(whole), where=whole > 0)
    of_hypothesis = known.held * count_as_one
    # What was not chosen by any row keeps its share of what is left of its kind.
    chosen = np.zeros(len(kinds), dtype=np.bool_)
    chosen[found.chosen] = True
    which = np.flatnonzero(chosen)
    place = (np.cumsum(chosen) - 1)[found.chosen]
    kind, alone = kinds[which], before[which]
    held = Held(
        kind,
        of_hypothesis[kind] * within[kind] * alone,
        of_hypothesis,
        count_as_one * _KIND_STRENGTH * whole,
        count_as_one * _DEVIATION_STRENGTH * deviation_before,
        0.0 if known.fans is not None else _BY_ONE,
    )
    go_round = in_c.rounds if compiled() else _rounds
    prior, deviation, factor = go_round(found, place, held, alone, _ROUNDS)
    after = before * (of_hypothesis * within * factor)[kinds]
    after[which] = prior
    with np.errstate(divide="ignore"):
        return np.log(after), np.log(deviation)


def _rounds(
    found: Candidates, place: IntArray, held: Held, prior: FloatArray, count: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Go round `count` times, from a `prior` [W] of hypotheses, whose `place` [M] candidates have.

    Returns what is believed of hypotheses [W] and of deviations [D], and what is left of kinds for
    each call path that a hypothesis is held by, [kinds].
    """
    likely, kind, kinds = np.exp(found.log_evidence), held.kind, len(held.of_kind)
    deviation = held.deviation / held.deviation.sum()
    factor = np.zeros(kinds)
    for _ in range(count):
        # Probable as hypotheses and deviations are, and 1 in all per row.
        its = prior[place]
        share = its * (deviation @ likely)
        per_row = 1 / np.bincount(found.row, share)[found.row]
        said = share * per_row
        counts = np.bincount(place, said, minlength=len(prior))
        seen = deviation * (likely @ (its * per_row))
        seen += held.deviation
        of_kind = np.bincount(kind, weights=counts, minlength=kinds)
        per_kind = of_kind + held.of_kind
        most = np.zeros(len(prior))
        np.maximum.at(most, place, said)
        counts = np.asarray(counts - np.maximum(0, most - held.by_one * held.hypothesis))
        of_kind = np.bincount(kind, weights=counts, minlength=kinds)
        factor = per_kind / per_kind.sum() / (of_kind + held.of_hypothesis)
        prior = (counts + held.hypothesis) * factor[kind]
        deviation = seen / seen.sum()
    return prior, deviation, factor
