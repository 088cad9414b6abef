"""Upper bounds of the evidence of pairs of shapes.

See docs/explanation/hypotheses.md, 'Screening'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, Float32Array, FloatArray, IntArray
from callpath_modeler.modeling.mixture.bounds import (
    OneTermRegressions,
    as_float32,
    below_the_best,
    least_residual,
    profile_likelihood,
)
from callpath_modeler.modeling.mixture.evidence import LOG_2, LOG_2PI, pair_volume
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.pair_groups import expand, group_bounds
from callpath_modeler.modeling.mixture.regressions import (
    PARALLEL,
    TINY,
    InterceptPenalty,
    PairSums,
    TwoTermFits,
    all_pairs,
)
from callpath_modeler.modeling.mixture.repetition_noise import EXACT_VARIANCE
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows

_BLOCK = 64
"""Rows whose pairs are bounded together."""

_NUMBERS = 16_000
"""Rows times pairs that are summed together; their intermediate results stay in the cache."""

_FEWEST_FOR_PAIRS = 3
"""Points needed for pairs with shared work in one parameter; all other pairs need one more."""

_FALLS = 0.5
"""Ratio of the last to the largest value below which the pairs of a row are always tried.

With shared work even the smallest shares are probable.
"""

_NOT_THERE = 1e20
"""More than any residual."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """M pairs of some rows, with bounds of their evidence.

    Attributes
    ----------
    row, pair : row and number of each pair
    bound : upper bound of the log evidence, prior included, as in `bounds`
    coefficients : [3, M] constant, first and second coefficient under the first drift
    """

    row: IntArray
    pair: IntArray
    bound: Float32Array
    coefficients: FloatArray

    def take(self, which: IntArray | BoolArray) -> Pairs:
        """Return the pairs at the positions `which`."""
        return Pairs(
            self.row[which],
            self.pair[which],
            self.bound[which],
            self.coefficients[:, which],
        )


def promise_of_pairs(hypotheses: Hypotheses, log_prior: FloatArray) -> float:
    """Return an upper bound of the log evidence of pairs with a constant, without the likelihood.

    It includes the prior, for a level and weights of all points of 1. In several parameters there
    are too many points for a useful bound, and it is infinite.
    """
    if hypotheses.fans is not None:
        return np.inf
    points, first, second = hypotheses.table.shape[1], hypotheses.first, hypotheses.second
    mean = hypotheses.table.mean(axis=1)
    square = (hypotheses.table**2).sum(axis=1) - points * mean**2
    both = square[first] * square[second]
    determinant = (
        both - (hypotheses.products.sum(axis=1) - points * mean[first] * mean[second]) ** 2
    )
    volume = -0.5 * np.log(points * np.maximum(determinant, PARALLEL * both))
    of_pairs = log_prior[1 + 3 * len(hypotheses.shapes) :]
    return float((of_pairs + volume).max(initial=-np.inf) + 1.5 * LOG_2PI + LOG_2)


def rows_for_pairs(
    regressions: OneTermRegressions,
    data: ScaledRows,
    hypotheses: Hypotheses,
    promise: float,
    fitted: FloatArray,
    best: Float32Array,
) -> IntArray:
    """Return the rows that no single shape fits exactly, and whose pairs may matter.

    `promise` comes from `promise_of_pairs`; `fitted` and `best` are as in `pair_bounds`.
    """
    misfit = regressions.residual.min(axis=0) / np.maximum(data.used - 2, 1)
    fewest = _FEWEST_FOR_PAIRS + hypotheses.kept.frugal
    # The level is the largest value of the model. Pairs are assumed to fit to within the noise.
    level = np.maximum(fitted.max(axis=1), TINY)
    with np.errstate(divide="ignore"):
        volume = promise - 3 * np.log(level)
        volume -= 1.5 * np.log(regressions.weights.min(axis=0))
    freedom = data.used - 3
    bound = as_float32(volume) + profile_likelihood(data.variance * freedom, data, freedom)
    near = (bound >= best - np.float32(hypotheses.kept.nats)) | (data.used <= _FEWEST_FOR_PAIRS)
    near |= fitted[:, -1] < _FALLS * level
    # A residual that is only rounding needs no second shape.
    return np.flatnonzero((data.used >= fewest) & (misfit > EXACT_VARIANCE) & near)


def pair_bounds(
    regressions: list[OneTermRegressions],
    data: ScaledRows,
    hypotheses: Hypotheses,
    log_prior: FloatArray,
    fitted: FloatArray,
    best: Float32Array,
) -> Pairs:
    """Return upper bounds of the evidence of the pairs that may have positive coefficients.

    `fitted` [n, K] is a rough fit; `best` [n] is the largest bound of hypotheses with at most one
    shape.
    """
    prior = log_prior[1 + 3 * len(hypotheses.shapes) :]
    promise = promise_of_pairs(hypotheses, log_prior)
    rows = rows_for_pairs(regressions[0], data, hypotheses, promise, fitted, best)
    parts = []
    for start in range(0, max(len(rows), 1), _BLOCK):
        block = rows[start : start + _BLOCK]
        regressed = _regressed(regressions, block, data, hypotheses)
        if hypotheses.fans is None or not block.size:
            parts.append(_bounded(regressed, block, data, hypotheses, prior))
        else:
            parts += _bounded_with_fans(
                regressed, regressions, block, data, hypotheses, prior, best
            )
    names = "row", "pair", "bound", "coefficients"
    return Pairs(*(np.concatenate([getattr(part, name) for part in parts], -1) for name in names))


@dataclass(frozen=True, slots=True)
class _Regressed:
    """Regressions of n rows on the pairs `which` [P], [P, n].

    Attributes
    ----------
    which : numbers of the pairs
    found : regressions under the first drift
    residuals : residuals under every drift
    """

    which: IntArray
    found: TwoTermFits
    residuals: list[FloatArray]

    def bounds(
        self,
        pair: IntArray,
        which: IntArray,
        row: IntArray,
        data: ScaledRows,
        growing: int,
        prior: FloatArray,
    ) -> Float32Array:
        """Return upper bounds of the evidence at `pair` and `which`, [M], of the rows `row`."""
        here = self.found.take((pair, which))
        freedom = data.used[row] - np.where(here.free, 3, 2)
        left = least_residual([each[pair, which] for each in self.residuals])
        number = self.which[pair]
        bound = as_float32(pair_volume(here, number >= growing) + prior[number])
        bound += profile_likelihood(left, data.take(row), freedom)
        return bound

    def before(self, other: _Regressed, row: int) -> _Regressed:
        """Return the regressions of one row here, followed by its regressions in `other`."""
        residuals = zip(self.residuals, other.residuals, strict=True)
        every = np.arange(len(self.which))
        return _Regressed(
            np.concatenate([self.which, other.which]),
            TwoTermFits.joined([self.found.take((every[:, None], np.array([row]))), other.found]),
            [np.concatenate([one[:, row : row + 1], two]) for one, two in residuals],
        )


def _bounded(
    regressed: _Regressed,
    rows: IntArray,
    data: ScaledRows,
    hypotheses: Hypotheses,
    prior: FloatArray,
) -> Pairs:
    """Return the closest pairs with bounds of their evidence."""
    positive = regressed.found.positive & np.isfinite(prior[regressed.which])[:, None]
    used = data.used[rows]
    # One point more than coefficients is needed to show whether the pair fits.
    positive &= used > np.where(regressed.found.free, 3, 2)
    positive &= (regressed.which >= hypotheses.growing)[:, None] | (used > _FEWEST_FOR_PAIRS)
    residuals = [np.where(positive, each, _NOT_THERE) for each in regressed.residuals]
    pair, which = np.nonzero(
        positive & ~below_the_best(residuals, hypotheses.kept.pairs * data.values.shape[1])
    )
    row, here = rows[which], regressed.found.take((pair, which))
    bound = regressed.bounds(pair, which, row, data, hypotheses.growing, prior)
    coefficients = np.array([here.constant, here.first, here.second])
    return Pairs(row, regressed.which[pair], bound, coefficients)


def _bounded_with_fans(
    regressed: _Regressed,
    regressions: list[OneTermRegressions],
    rows: IntArray,
    data: ScaledRows,
    hypotheses: Hypotheses,
    prior: FloatArray,
    best: Float32Array,
) -> list[Pairs]:
    """Return the closest pairs, including those of the most promising fans, with their bounds."""
    fans, parts = hypotheses.fans, []
    assert fans is not None
    promise = group_bounds(regressions, rows, data, fans, hypotheses.table, prior)
    for place, row in enumerate(rows):
        pair = np.flatnonzero(regressed.found.positive[:, place])
        every = 0 * pair
        of_pairs = regressed.bounds(
            pair, every + place, every + row, data, hypotheses.growing, prior
        )
        here = rows[place : place + 1]
        which = expand(promise[:, place], float(of_pairs.max(initial=best[row])), fans)
        price = intercept_penalty(data, here, which[:, None], hypotheses)
        found = _found(_pair_sums(regressions, row, which, hypotheses), price)
        both = regressed.before(_Regressed(which, *found), place)
        parts.append(_bounded(both, here, data, hypotheses, prior))
    return parts


def _pair_sums(
    regressions: list[OneTermRegressions], row: int, pairs: IntArray, hypotheses: Hypotheses
) -> list[PairSums]:
    """Return the sums of one row for some pairs, [P, 1], under every drift."""
    first, second, one = hypotheses.first[pairs], hypotheses.second[pairs], np.array([row])
    products = hypotheses.table[first] * hypotheses.table[second]
    return [
        all_pairs(seen.sums.take(one), seen.weights[:, one], products, first, second)
        for seen in regressions
    ]


def intercept_penalty(
    data: ScaledRows, rows: IntArray, pairs: IntArray, hypotheses: Hypotheses
) -> InterceptPenalty:
    """Return the cost of the constants of `pairs`, [..., n or 1], in the rows `rows` [n]."""
    frugal = hypotheses.kept.frugal
    asked = pairs >= (0 if frugal else hypotheses.growing)
    return InterceptPenalty(data.variance[rows], data.used[rows], asked, shared=not frugal)


def _found(sums: list[PairSums], price: InterceptPenalty) -> tuple[TwoTermFits, list[FloatArray]]:
    """Return the regressions under the first drift, and the residuals under every drift."""
    found = sums[0].regressions(price)
    kept = found.free | ~price.tested
    return found, [found.residual, *(each.residual(kept) for each in sums[1:])]


def _regressed(
    regressions: list[OneTermRegressions], rows: IntArray, data: ScaledRows, hypotheses: Hypotheses
) -> _Regressed:
    """Return the regressions of rows on all pairs that are tried with every row."""
    seen = [(each.sums.take(rows), each.weights[:, rows]) for each in regressions]
    found, left, count = [], [], len(hypotheses.products)
    size = max(1, _NUMBERS // max(len(rows), 1))
    for start in range(0, max(count, 1), size):
        part = slice(start, min(start + size, count))
        products, first, second = (
            hypotheses.products[part],
            hypotheses.first[part],
            hypotheses.second[part],
        )
        sums = [all_pairs(*each, products, first, second) for each in seen]
        every = np.arange(count)[part, None]
        one, of_drifts = _found(sums, intercept_penalty(data, rows, every, hypotheses))
        found.append(one)
        left.append(of_drifts)
    residuals = [np.concatenate(each) for each in zip(*left, strict=True)]
    few = data.used[rows] <= _FEWEST_FOR_PAIRS
    for each in residuals[2:]:
        # If p = 1 has no weight, any pair fits the other two points.
        each[:, few] = residuals[0][:, few]
    return _Regressed(np.arange(count), TwoTermFits.joined(found), residuals)
