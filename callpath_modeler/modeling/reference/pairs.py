"""Upper bounds of the evidence of pairs of shapes.

See docs/explanation/hypotheses.md, 'Screening'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import TINY
from callpath_modeler.modeling.constants.hypotheses import FALLS, FEWEST_FOR_PAIRS
from callpath_modeler.modeling.constants.noise import EXACT_VARIANCE
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses, PairGroups
from callpath_modeler.modeling.mixture.regressions import all_pairs, pair_volume
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows
from callpath_modeler.modeling.mixture.screening import intercept_penalty, promise_of_pairs
from callpath_modeler.modeling.reference.bounds import (
    OneTermRegressions,
    below_the_best,
    least_residual,
    profile_likelihood,
)
from callpath_modeler.modeling.reference.pair_groups import expand, group_bounds


@dataclass(frozen=True, slots=True)
class PairBounds:
    """M pairs of some rows, with bounds of their evidence.

    Attributes
    ----------
    row, pair : [M] row and number of each pair
    bound : [M] upper bound of the log evidence, prior included, as in `bounds`
    coefficients : [3, M] constant, first and second coefficient under the first drift
    """

    row: IntArray
    pair: IntArray
    bound: FloatArray
    coefficients: FloatArray

    def take(self, which: BoolArray) -> PairBounds:
        """Return the pairs that `which` marks."""
        return PairBounds(
            self.row[which], self.pair[which], self.bound[which], self.coefficients[:, which]
        )

    @classmethod
    def joined(cls, parts: Sequence[PairBounds]) -> PairBounds:
        """Return the pairs of all parts."""
        names = "row", "pair", "bound", "coefficients"
        return cls(*(np.concatenate([getattr(part, name) for part in parts], -1) for name in names))


def rows_for_pairs(
    regressions: OneTermRegressions,
    data: ScaledRows,
    hypotheses: Hypotheses,
    promise: float,
    fitted: FloatArray,
    best: FloatArray,
) -> IntArray:
    """Return the rows that no single shape fits exactly, and whose pairs may matter.

    `promise` comes from `promise_of_pairs`; `fitted` and `best` are as in `pair_bounds`.
    """
    misfit = regressions.residual.min(axis=0) / np.maximum(data.used - 2, 1)
    fewest = FEWEST_FOR_PAIRS + hypotheses.kept.frugal
    # The level is the largest value of the model. Pairs are assumed to fit to within the noise.
    level = np.maximum(fitted.max(axis=1), TINY)
    with np.errstate(divide="ignore"):
        volume = promise - 3 * np.log(level) - 1.5 * np.log(regressions.weights.min(axis=0))
    freedom = data.used - 3
    bound = volume + profile_likelihood(data.variance * freedom, data, freedom)
    near = (bound >= best - hypotheses.kept.nats) | (data.used <= FEWEST_FOR_PAIRS)
    near |= fitted[:, -1] < FALLS * level
    # A residual that is only rounding needs no second shape.
    return np.flatnonzero((data.used >= fewest) & (misfit > EXACT_VARIANCE) & near)


def pair_bounds(
    regressions: Sequence[OneTermRegressions],
    data: ScaledRows,
    hypotheses: Hypotheses,
    log_prior: FloatArray,
    fitted: FloatArray,
    best: FloatArray,
) -> PairBounds:
    """Return upper bounds of the evidence of the closest pairs with positive coefficients.

    Parameters
    ----------
    regressions : regressions under every drift
    data : n rows
    hypotheses : all hypotheses
    log_prior : [H] log priors of the hypotheses
    fitted : [n, K] rough fit
    best : [n] largest bound of hypotheses with at most one shape
    """
    prior = log_prior[1 + 3 * len(hypotheses.shapes) :]
    promise = promise_of_pairs(hypotheses, log_prior)
    rows = rows_for_pairs(regressions[0], data, hypotheses, promise, fitted, best)
    every = np.arange(len(hypotheses.products))
    if hypotheses.fans is None or not rows.size:
        return _regressed(regressions, rows, every, data, hypotheses, prior)[1]
    parts = []
    for row in rows[:, None]:
        its = _opened(regressions, row, data, hypotheses, hypotheses.fans, prior, best[row])
        parts.append(_regressed(regressions, row, its, data, hypotheses, prior)[1])
    return PairBounds.joined(parts)


def _opened(
    regressions: Sequence[OneTermRegressions],
    row: IntArray,
    data: ScaledRows,
    hypotheses: Hypotheses,
    fans: PairGroups,
    prior: FloatArray,
    best: FloatArray,
) -> IntArray:
    """Return the pairs of one row, `row` [1]: those tried with every row, and the best fans."""
    every = np.arange(len(hypotheses.products))
    of_pairs = _regressed(regressions, row, every, data, hypotheses, prior)[0]
    promise = group_bounds(regressions, row, data, fans, hypotheses.table, prior)[:, 0]
    most = of_pairs.max(initial=float(best[0]))
    return np.concatenate([every, expand(promise, float(most), fans)])


def _regressed(
    regressions: Sequence[OneTermRegressions],
    rows: IntArray,
    pairs: IntArray,
    data: ScaledRows,
    hypotheses: Hypotheses,
    prior: FloatArray,
) -> tuple[FloatArray, PairBounds]:
    """Return the regressions of `rows` on `pairs`.

    Returns
    -------
    ndarray [P, n]
        Bounds of all pairs with positive coefficients; -inf of all others.
    PairBounds
        The closest ones of these, where points are enough to show whether a pair fits.
    """
    some, first, second = data.take(rows), hypotheses.first[pairs], hypotheses.second[pairs]
    products = hypotheses.table[first] * hypotheses.table[second]
    price = intercept_penalty(data, rows, pairs[:, None], hypotheses)
    sums = [
        all_pairs(each.sums.take(rows), each.weights[:, rows], products, first, second)
        for each in regressions
    ]
    found = sums[0].regressions(price)
    kept = found.free | ~price.tested
    residuals = [found.residual, *(each.residual(kept) for each in sums[1:])]
    few = some.used <= FEWEST_FOR_PAIRS
    # If p = 1 has no weight, any pair fits the other two points.
    residuals[2:] = [np.where(few, residuals[0], each) for each in residuals[2:]]
    shared = (pairs >= hypotheses.growing)[:, None]
    size = np.where(found.free, 3, 2)
    # If shapes are equal at all points, rounding leaves any determinant; such pairs have no bound.
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = pair_volume(found, np.broadcast_to(shared, size.shape)) + prior[pairs, None]
    bound += profile_likelihood(least_residual(residuals), some, some.used - size)
    there = found.positive & np.isfinite(prior[pairs])[:, None]
    # One point more than coefficients is needed to show whether the pair fits.
    there &= (some.used > size) & (shared | ~few)
    left = [np.where(there, each, np.inf) for each in residuals]
    most = hypotheses.kept.pairs * data.values.shape[1]
    with np.errstate(invalid="ignore"):
        pair, which = np.nonzero(there & ~below_the_best(left, most))
    numbers = np.stack([found.constant, found.first, found.second])[:, pair, which]
    return np.where(found.positive, bound, -np.inf), PairBounds(
        rows[which], pairs[pair], bound[pair, which], numbers
    )
