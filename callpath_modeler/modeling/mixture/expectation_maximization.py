"""What an application teaches of its call paths: which kinds of laws and deviations it has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.compiled import expectation_maximization as in_c
from callpath_modeler.modeling.compiled.library import compiled
from callpath_modeler.modeling.mixture.candidates import Candidates
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_KIND_STRENGTH = 10.0
_DEVIATION_STRENGTH = 30.0
"""Before they move, priors count as so many call paths: of kinds, of deviations."""
_TERM_STRENGTH = 15.0
"""As how many call paths the same shape beside others counts, before what is beside it teaches."""
_BY_ONE = 10.0
"""The call path that says most of a hypothesis counts for so many times what that is held by: what
is one in a million would be one in a thousand for whomever it suits."""

_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class PseudoCounts:
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


def maximize_evidence(
    found: Candidates,
    hypotheses: Hypotheses,
    log_prior: FloatArray,
    deviation_prior: FloatArray,
    count_as_one: float = 1.0,
) -> tuple[FloatArray, FloatArray]:
    """Fit the priors to some rows by expectation maximisation, held by what was believed before.

    Along one parameter twice: what shapes beside others have in common is learnt first.

    Parameters
    ----------
    found : of some rows
    hypotheses : the hypotheses, with their kinds
    log_prior : [H] of the hypotheses
    deviation_prior : [D] in logarithms
    count_as_one : how many rows say as little as one: those that deviate alike

    Returns
    -------
    log_prior, deviation_prior : what to believe of this application
    """
    found = found.by_row()
    after, deviation, counts = _learnt(found, hypotheses, log_prior, deviation_prior, count_as_one)
    if hypotheses.fans is None:  # Pairs of several parameters are too many.
        log_prior = _as_common(hypotheses, log_prior, counts, count_as_one * _TERM_STRENGTH)
        after, deviation, _ = _learnt(found, hypotheses, log_prior, deviation_prior, count_as_one)
    return after, deviation


def _learnt(
    found: Candidates,
    hypotheses: Hypotheses,
    log_prior: FloatArray,
    deviation_prior: FloatArray,
    count_as_one: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Learn how probable each hypothesis and deviation is by itself, of `found`, row by row.

    Returns what `maximize_evidence` does, and as how many rows each hypothesis was seen, [H].
    """
    kinds, before, deviation_before = hypotheses.kinds, np.exp(log_prior), np.exp(deviation_prior)
    whole = np.bincount(kinds, weights=before, minlength=len(hypotheses.strength)).astype(
        np.float64
    )
    within = np.divide(1.0, whole, out=np.zeros_like(whole), where=whole > 0)
    of_hypothesis = hypotheses.strength * count_as_one
    # What was not chosen by any row keeps its share of what is left of its kind.
    chosen = np.zeros(len(kinds), dtype=np.bool_)
    chosen[found.chosen] = True
    which = np.flatnonzero(chosen)
    place = (np.cumsum(chosen) - 1)[found.chosen]
    kind, alone = kinds[which], before[which]
    held = PseudoCounts(
        kind,
        of_hypothesis[kind] * within[kind] * alone,
        of_hypothesis,
        count_as_one * _KIND_STRENGTH * whole,
        count_as_one * _DEVIATION_STRENGTH * deviation_before,
        0.0 if hypotheses.fans is not None else _BY_ONE,
    )
    go_round = in_c.rounds if compiled() else _rounds
    prior, deviation, factor = go_round(found, place, held, alone, _ROUNDS)
    after, counts = before * (of_hypothesis * within * factor)[kinds], np.zeros(len(kinds))
    after[which] = prior
    counts[which] = np.maximum(0.0, prior / factor[kind] - held.hypothesis)
    with np.errstate(divide="ignore"):
        return np.log(after), np.log(deviation), counts


def _as_common(
    hypotheses: Hypotheses, log_prior: FloatArray, counts: FloatArray, held: float
) -> FloatArray:
    """Weigh hypotheses by how often their shapes were seen in others; kinds as probable as before.

    A pair is one of hundreds, and hardly two call paths teach the same; but p beside 1/p and beside
    p^(-2/3) is the same p. What one shape is without another is learnt by itself.

    Parameters
    ----------
    log_prior : [H]
    counts : [H] as how many rows each was seen
    held : how often a shape counts as seen as often as expected
    """
    prior, kinds, none = np.exp(log_prior), hypotheses.kinds, len(hypotheses.shapes)
    shapes = hypotheses.every_code % (none + 1)
    free = (shapes[:, 1] < none) | hypotheses.outside
    counts, likely = np.where(free, counts, 0.0), np.where(free, prior, 0.0)
    expected = likely * _of_kinds(hypotheses, counts, likely)
    factor = np.ones(len(kinds))
    for its in shapes.T:
        seen, awaited = (
            np.bincount(shapes.ravel(), np.repeat(each, 2))[its] - each
            for each in (counts, expected)
        )
        factor *= np.where(its < none, (seen + held) / (awaited + held), 1.0)
    after = np.where(free, prior * factor, prior)
    after *= _of_kinds(hypotheses, prior, after)
    with np.errstate(divide="ignore"):
        return np.log(after)


def _of_kinds(hypotheses: Hypotheses, many: FloatArray, few: FloatArray) -> FloatArray:
    """Return how many times `few` [H] are `many` [H], of all of its kind, for each hypothesis."""
    above, below = (np.bincount(hypotheses.kinds, each) for each in (many, few))
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)[hypotheses.kinds]


def _rounds(
    found: Candidates, place: IntArray, pseudo: PseudoCounts, prior: FloatArray, count: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Go round `count` times, from a `prior` [W] of hypotheses, whose `place` [M] candidates have.

    Returns what is believed of hypotheses [W] and of deviations [D], and what is left of kinds for
    each call path that a hypothesis is held by, [kinds].
    """
    likely, kind, kinds = np.exp(found.log_evidence), pseudo.kind, len(pseudo.of_kind)
    deviation = pseudo.deviation / pseudo.deviation.sum()
    factor = np.zeros(kinds)
    for _ in range(count):
        # Probable as hypotheses and deviations are, and 1 in all per row.
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
