"""Posterior of the hypotheses of each row, and priors learnt from the rows of an application.

See docs/explanation/hypotheses.md, 'Priors that are learnt'.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.noise import (
    BY_ONE,
    DEVIATION_STRENGTH,
    KIND_STRENGTH,
    LEARNING_ROUNDS,
)
from callpath_modeler.modeling.constants.outcome import (
    GROWTH_BEYOND,
    LESS_FAR,
    NEGLIGIBLE,
    PLACE_BESIDE,
)
from callpath_modeler.modeling.kernels import kernels
from callpath_modeler.modeling.mixture.candidates import Candidates, absolute_candidates
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses
from callpath_modeler.modeling.mixture.residuals import ScreenedHypotheses
from callpath_modeler.modeling.mixture.scaled_rows import Deviations, ScaledRows


class LogPriors(Struct, frozen=True):
    """Log priors of hypotheses [H], of deviations [D], and of all sums of products together."""

    hypotheses: FloatArray
    deviations: FloatArray
    sums: float = 0.0


class Posterior(Struct, frozen=True):
    """Posterior of M hypotheses of n rows, ordered by row and summed over deviations.

    Attributes
    ----------
    row, chosen : [M] row and number of each hypothesis
    weight : [M] probability, with a sum of 1 in each row
    coefficients : [3, M] constant, first and second coefficient
    covariance : [6, M] covariance of the coefficients
    variance, drift : [n] relative variance of a measured centre about the model at the largest
        point, and its growth per doubling of the distance from it
    """

    row: IntArray
    chosen: IntArray
    weight: FloatArray
    coefficients: FloatArray
    covariance: FloatArray
    variance: FloatArray
    drift: FloatArray

    def scaled(self, share: FloatArray) -> Posterior:
        """Return the posterior with the weights of each row multiplied by `share` [n]."""
        return structs.replace(self, weight=self.weight * share[self.row])

    def repeated(self, rows: IntArray) -> Posterior:
        """Return the posterior of `rows` [n] in this order; a row may occur more than once."""
        count = np.bincount(self.row, minlength=len(self.variance))
        end, size = count.cumsum(), count[rows]
        row = np.repeat(np.arange(len(rows)), size)
        shift = (end - count)[rows] - (size.cumsum() - size)
        which = np.arange(len(row)) + shift[row]
        return Posterior(
            row,
            self.chosen[which],
            self.weight[which],
            self.coefficients[:, which],
            self.covariance[:, which],
            self.variance[rows],
            self.drift[rows],
        )


def posterior(
    found: Candidates, data: ScaledRows, deviations: Deviations, beliefs: LogPriors
) -> Posterior:
    """Return the posterior of the candidates under the priors."""
    result: Posterior = kernels().posterior(found, data, deviations, beliefs)
    return result


def growth_beyond(deviations: Deviations) -> FloatArray:
    """Return the growth of deviations beyond the points under each drift, [L]."""
    return np.asarray(GROWTH_BEYOND * np.array([drift.growth for drift in deviations.drifts]))


def posterior_of_sums(
    found: Candidates, data: ScaledRows, deviations: Deviations, beliefs: LogPriors
) -> Posterior:
    """Return the same as `posterior`, of candidates with any number of coefficients."""
    joint = _joint_probability(found, beliefs)
    kept = np.flatnonzero(joint.sum(axis=0) > NEGLIGIBLE)
    kept = kept[np.argsort(found.row[kept], kind="stable")]
    joint, row = np.take(joint, kept, axis=1), found.row[kept]
    own, squares = data.variance[row], deviations.deviation**2
    weight = np.zeros(len(kept))
    coefficients = np.zeros((found.coefficients.shape[1], len(kept)))
    covariance = np.zeros((found.covariance.shape[1], len(kept)))
    variance, drifting, noise = np.zeros((3, len(data.values)))
    for k, grown in enumerate(growth_beyond(deviations)):
        here = np.flatnonzero(deviations.drift_of == k)
        of_drift = joint[here[0] : here[-1] + 1]
        share = of_drift.sum(axis=0)
        # The sums have the order of the coefficients, so that equal coefficients keep all digits.
        weight += share
        scatter = share * own + squares[here] @ of_drift
        coefficients += share * np.take(found.coefficients[k], kept, axis=1)
        covariance += scatter * np.take(found.covariance[k], kept, axis=1)
        part = np.bincount(row, scatter, minlength=len(variance))
        variance += part
        if grown:
            drifting += grown * part
            noise += grown * np.bincount(row, share, minlength=len(noise))
    return Posterior(
        row,
        found.chosen[kept],
        weight,
        coefficients / weight,
        covariance / weight,
        variance,
        # Only the deviation beyond the noise drifts.
        np.maximum(drifting - noise * data.variance, 0.0),
    )


def _joint_probability(found: Candidates, beliefs: LogPriors) -> FloatArray:
    """Return the joint probability of candidates and deviations, [D, M]; the sum per row is 1."""
    joint = np.exp(
        found.log_evidence + (beliefs.hypotheses[found.chosen] + beliefs.deviations[:, None])
    )
    total = np.bincount(found.row, joint.sum(axis=0))
    joint *= 1 / total[found.row]
    return np.asarray(joint)


def fitted_values(found: Posterior, hypotheses: Hypotheses) -> FloatArray:
    """Return the mean of the models of each row at the points, [n, K], weighted by probability."""
    result: FloatArray = kernels().fitted_values(found, hypotheses)
    return result


def values_at_points(found: Posterior, codes: IntArray, table: FloatArray) -> FloatArray:
    """Return the same as `fitted_values`, of candidates with any number of coefficients.

    The shapes are `codes` [M, T], -1 = none, of a `table` [S, K].
    """
    rows, size = len(found.variance), len(table) + 1
    constant, *numbers = found.coefficients * found.weight
    fitted = np.bincount(found.row, constant, minlength=rows)[:, None]
    total = np.zeros(rows * size)
    for number, code in zip(numbers, codes.T, strict=True):
        # The code -1 (no shape) selects the last column, which is left out.
        total += np.bincount(found.row * size + code % size, number, minlength=rows * size)
    return np.asarray(fitted + total.reshape(rows, size)[:, :-1] @ table)


def far_tables(points: FloatArray, hypotheses: Hypotheses, factor: float) -> FloatArray:
    """Return the shapes at multiples of the largest point, [F, S + 1]; zero for no shape.

    In one parameter there is one place. In several, the first place is far along all parameters,
    and one more place is far along each.
    """
    places = far_places(points, factor)
    table = hypotheses.shapes.table(places).T
    table[:, :-1] /= hypotheses.scale
    # An exponential may overflow to infinity, and zero times infinity is not zero.
    return np.asarray(np.minimum(table, np.finfo(float).max / 1e9))


def far_values(found: Posterior, codes: IntArray, far: FloatArray) -> FloatArray:
    """Return the predictions of candidates far beyond the points, [M].

    Parameters
    ----------
    found : the candidates
    codes : [M, T] their shapes, -1 = none
    far : a row of `far_tables`
    """
    constant, *numbers = found.coefficients
    parts = [number * far[code] for number, code in zip(numbers, codes.T, strict=True)]
    return np.asarray(sum(parts, start=constant))


def far_places(points: FloatArray, factor: float) -> FloatArray:
    """Return places beyond all points, [1] or [1 + D, D]."""
    if points.ndim == 1:
        return factor * points[-1:]
    # The distances differ, so that the parameters can be distinguished.
    less = LESS_FAR ** np.arange(points.shape[1])
    alone = np.where(np.eye(points.shape[1], dtype=bool), factor, PLACE_BESIDE)
    return np.asarray(points.max(axis=0) * np.concatenate([[factor**less], alone]))


def log_probability_of_all(
    found: Posterior,
    data: ScaledRows,
    fitted: FloatArray,
    variance: FloatArray,
    hypotheses: Hypotheses,
    ways: Deviations,
    beliefs: LogPriors,
) -> FloatArray:
    """Return the log probability of the values of rows under all hypotheses together, [n].

    It follows from the evidence of the most probable hypothesis of each row and its posterior
    probability. Points have the weights that follow from `fitted` [n, K], because only evidence
    with equal weights can be compared.

    Parameters
    ----------
    found : posterior of the rows
    data : n rows
    fitted : [n, K] values that errors are relative to
    variance : [n] rough variance of a point
    hypotheses, ways, beliefs : hypotheses, deviations, and their priors
    """
    best, of_each = evidence_of_best(found, data, fitted, variance, hypotheses, ways)
    together = np.logaddexp.reduce(of_each + beliefs.deviations[:, None], axis=0)
    return np.asarray(
        together + beliefs.hypotheses[found.chosen[best]] - np.log(found.weight[best])
    )


def evidence_of_best(
    found: Posterior,
    data: ScaledRows,
    fitted: FloatArray,
    variance: FloatArray,
    hypotheses: Hypotheses,
    ways: Deviations,
) -> tuple[IntArray, FloatArray]:
    """Return the place in `found` of a probable hypothesis of each row, [n], and its log evidence.

    Parameters are as for `log_probability_of_all`. The hypothesis is the most probable one that is
    possible: with the weights that follow from `fitted`, another one may need a coefficient that is
    not positive. The log evidence [P, n] is minus infinity if no hypothesis of a row is possible.
    """
    weight = found.weight.copy()
    best = _best(found.row, weight, len(found.variance))
    evidence = _evidence_of(found.chosen[best], data, fitted, variance, hypotheses, ways)
    lost = np.asarray(np.isneginf(evidence).all(axis=0))
    while lost.any():
        weight[best[lost]] = 0.0
        best[lost] = _best(found.row, weight, len(lost))[lost]
        rows = np.flatnonzero(lost)
        evidence[:, rows] = _evidence_of(
            found.chosen[best[rows]],
            data.take(rows),
            fitted[rows],
            variance[rows],
            hypotheses,
            ways,
        )
        lost &= np.isneginf(evidence).all(axis=0) & (weight[best] > 0)
    return best, evidence


def _best(row: IntArray, weight: FloatArray, rows: int) -> IntArray:
    """Return the place of the largest weight of each row, [rows]."""
    order = np.lexsort((weight, row))
    return np.asarray(order[np.searchsorted(row[order], np.arange(rows), side="right") - 1])


def _evidence_of(
    code: IntArray,
    data: ScaledRows,
    fitted: FloatArray,
    variance: FloatArray,
    hypotheses: Hypotheses,
    ways: Deviations,
) -> FloatArray:
    """Return the log evidence of one hypothesis, `code` [n], of each row, [P, n]."""
    size = len(hypotheses.shapes)
    single, pair = np.flatnonzero((code > 0) & (code <= 3 * size)), np.flatnonzero(code > 3 * size)
    family, shape = np.divmod(code[single] - 1, size)
    chosen = ScreenedHypotheses(
        single,
        shape,
        tuple(np.flatnonzero(family == each) for each in range(3)),
        pair,
        code[pair] - 1 - 3 * size,
        variance,
        fitted,
        np.zeros(0, dtype=np.intp),
    )
    every = absolute_candidates(data, chosen, hypotheses, ways)
    of_best = np.flatnonzero(every.chosen == code[every.row])
    of_best = of_best[np.argsort(every.row[of_best])]
    return np.array(every.log_evidence[:, of_best])


class PseudoCounts(Struct, frozen=True):
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
    prior, deviation, factor = _rounds(found, place, held, alone, LEARNING_ROUNDS)
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
