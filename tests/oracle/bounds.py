"""Upper bounds of the evidence of hypotheses, and the screening by them.

They cover all hypotheses at once. See docs/explanation/hypotheses.md, 'Screening'.

A fan is a shape with all terms of one parameter. With a free level at each value of that
parameter, the shape leaves no larger residual than with any of the terms. So one regression bounds
a whole fan. See docs/explanation/several-parameters.md, 'Pairs'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import (
    ALIKE,
    CONSTANT_FOLDS,
    LEAST_LEVEL,
    LOG_2PI,
    SHARE_EDGE,
    TINY,
    VARIES,
)
from callpath_modeler.modeling.constants.hypotheses import (
    EVEN,
    FALLS,
    FEWEST_FOR_PAIRS,
    OUT_OF_QUESTION,
    ROUNDING,
    SCATTERED,
    TIED,
    UNEXPLAINED,
)
from callpath_modeler.modeling.constants.noise import EXACT_VARIANCE
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses, HypothesisGroup, PairGroups
from callpath_modeler.modeling.mixture.regressions import constant_evidence, occam_volume
from callpath_modeler.modeling.mixture.residuals import (
    ScreenedHypotheses,
    promise_of_pairs,
    smoothed,
)
from callpath_modeler.modeling.mixture.scaled_rows import (
    Drift,
    ScaledRows,
    error_unit,
    relative_weights,
)
from oracle.regressions import Moments, all_pairs, intercept_penalty, moments, pair_volume


@dataclass(frozen=True, slots=True)
class OneTermRegressions:
    """Regressions of n rows on S shapes, one shape at a time, under one drift.

    Attributes
    ----------
    weights : [K, n] weights of the points
    sums : weighted sums of the rows
    slope, residual : [S, n] unconstrained slope, and weighted residual sum of squares
    """

    weights: FloatArray
    sums: Moments
    slope: FloatArray
    residual: FloatArray

    @property
    def constant(self) -> FloatArray:
        """Constants of the regressions, [S, n]."""
        return np.asarray(self.sums.mean - self.slope * self.sums.at)

    @property
    def about_zero(self) -> FloatArray:
        """Weighted sums of squares of the shapes about zero, [S, n]."""
        return np.asarray(self.sums.square + self.sums.weight * self.sums.at**2)

    @property
    def bare_slope(self) -> FloatArray:
        """Slopes without a constant, [S, n]."""
        product = self.sums.product + self.sums.weight * self.sums.at * self.sums.mean
        return np.asarray(product / np.maximum(self.about_zero, TINY))

    @property
    def bare_residual(self) -> FloatArray:
        """Residuals without a constant, [S, n].

        Forcing a constant to zero adds its square, divided by its variance.
        """
        of_constant = self.sums.weight * self.sums.square / np.maximum(self.about_zero, TINY)
        return np.asarray(self.residual + self.constant**2 * of_constant)


def regress(data: ScaledRows, hypotheses: Hypotheses, weights: FloatArray) -> OneTermRegressions:
    """Return the regressions of all rows on all shapes; `weights` [K, n] belong to the points."""
    sums = moments(data.values.T, weights, hypotheses.table)
    slope = sums.product / sums.square
    residual = np.maximum(sums.total - slope * sums.product, 0.0)
    return OneTermRegressions(weights, sums, slope, residual)


def typical_variance(regressions: OneTermRegressions, data: ScaledRows) -> FloatArray:
    """Return a rough variance of a point, [n].

    It is the mean squared residual of the best hypothesis with one shape, but at least the noise.
    """
    left = regressions.residual.min(axis=0) / np.maximum(data.used - 2, 1)
    return np.asarray(np.maximum(np.maximum(left, EXACT_VARIANCE), data.variance))


@dataclass(frozen=True, slots=True)
class Bounds:
    """Upper bounds of the log evidence of n rows, prior included.

    Attributes
    ----------
    constant : [n] bounds of constants
    singles : [3, S, n] bounds with positive coefficients, as an offset, without a constant;
        -inf = left out
    """

    constant: FloatArray
    singles: FloatArray

    @property
    def alone(self) -> FloatArray:
        """The largest bound of each row, [n]."""
        return np.asarray(np.maximum(self.constant, self.singles.max(axis=(0, 1))))

    def best(self, row: IntArray, others: FloatArray) -> FloatArray:
        """Return the largest bound of each row, [n], including `others` [M] of `row` [M]."""
        found = self.alone
        np.maximum.at(found, row, others)
        return found


def coefficient_bounds(
    found: OneTermRegressions, hypotheses: Hypotheses, variance: FloatArray
) -> FloatArray:
    """Return the part of the bounds that depends on the coefficients, [3, S, n].

    The normal integral over the allowed signs is at most exp(-z^2 / 2). Here z is the distance of
    the coefficient beyond its bound, in standard errors under `variance` [n].
    """
    sums, slope, constant = found.sums, found.slope, found.constant
    falling = (hypotheses.single_group == HypothesisGroup.FALLING)[:, None]
    lowest = LEAST_LEVEL * sums.mean
    # The value at the largest shape, and far beyond the points.
    level = np.maximum(constant + slope, lowest)
    far = np.where(falling, np.maximum(constant, lowest), level)
    determinant = sums.weight * sums.square
    steepest = constant / np.maximum(sums.at, 1e-9)
    known = np.sqrt(variance * (1 / sums.weight + sums.at**2 / sums.square)) / level
    rest = occam_volume(constant / level, known, CONSTANT_FOLDS)
    room = np.where(falling, rest**2, 4 * np.maximum(constant / level, SHARE_EDGE))
    beyond = np.minimum(slope, 0.0) ** 2 + np.minimum(steepest, 0.0) ** 2
    positive = LOG_2PI - _half_log(level**4 * room * determinant)
    positive -= 0.5 * beyond * sums.square / variance
    beyond = np.maximum(np.where(falling, slope, steepest), 0.0) ** 2
    offset = LOG_2PI - _half_log(far**4 * determinant) - 0.5 * beyond * sums.square / variance
    bare = np.maximum(found.bare_slope, lowest) ** 2 * found.about_zero
    return np.stack([positive, offset, LOG_2PI / 2 - _half_log(bare)])


def bounds(
    regressions: Sequence[OneTermRegressions],
    data: ScaledRows,
    hypotheses: Hypotheses,
    log_prior: FloatArray,
    variance: FloatArray,
) -> Bounds:
    """Return upper bounds of the evidence of hypotheses with at most one shape, prior included.

    Each hypothesis gets the variance and the drift that suit it best; the smallest residual belongs
    to that drift. Coefficients are those under the first drift, with the rough `variance` [n].
    """
    first, size, used = regressions[0], len(hypotheses.shapes), data.used
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found = coefficient_bounds(first, hypotheses, variance)
        found += log_prior[1 : 1 + 3 * size].reshape(3, size, 1)
    with_constant = [each.residual for each in regressions]
    found[:2] += profile_likelihood(least_residual(with_constant), data, used - 2)
    without = least_residual([each.bare_residual for each in regressions])
    found[2] += profile_likelihood(without, data, used - 1)
    # If points are missing, a shape may be constant over the remaining ones.
    constant = first.sums.square <= np.maximum(ALIKE * first.about_zero, TINY)
    left_out = below_the_best(with_constant, hypotheses.kept.shapes) | constant
    # Bounds that overflow are NaN.
    found = np.where(left_out | np.isnan(found), -np.inf, found)
    alone = constant_evidence(first.sums.weight, first.sums.mean) + log_prior[0]
    totals = least_residual([each.sums.total for each in regressions])
    return Bounds(alone + profile_likelihood(totals, data, used - 1), found)


def least_residual(residuals: Sequence[FloatArray]) -> FloatArray:
    """Return the smallest residual under any drift; the likelihood falls with the residual."""
    return np.asarray(np.minimum.reduce(residuals))


def profile_likelihood(residual: FloatArray, data: ScaledRows, freedom: FloatArray) -> FloatArray:
    """Return upper bounds of the log likelihood, [..., n], under the variance that suits best.

    `freedom` [n] or [..., n] is the number of points minus the number of coefficients.
    """
    variance = np.maximum(residual / np.maximum(freedom, 1.0), data.variance)
    tail = np.log1p(residual / (data.dof * variance))
    return np.asarray(-0.5 * (freedom * np.log(variance) + (data.dof + freedom) * tail))


def below_the_best(residuals: Sequence[FloatArray], count: int) -> BoolArray:
    """Return which regressions, [S, n], are not among the `count` best under any drift.

    Regressions that tie with the last one are among the best, so that rounding does not choose.
    """
    if len(residuals[0]) <= count:
        return np.zeros(residuals[0].shape, dtype=np.bool_)
    ratio = least_residual([each / np.maximum(each.min(axis=0), ROUNDING) for each in residuals])
    last = np.sort(ratio, axis=0)[count - 1]
    return np.asarray(ratio > (1 + TIED) * last)


def _half_log(square: FloatArray) -> FloatArray:
    return np.asarray(0.5 * np.log(np.maximum(square, TINY)))


def group_bounds(
    regressions: Sequence[OneTermRegressions],
    rows: IntArray,
    data: ScaledRows,
    fans: PairGroups,
    table: FloatArray,
    log_prior: FloatArray,
) -> FloatArray:
    """Return upper bounds of the log evidence of the pairs in each fan of some rows, [S D, n].

    They hold under any drift and lack the part that depends on coefficients. `log_prior` [P]
    belongs to all pairs, `table` [S, K] to the shapes.
    """
    few = data.take(rows)
    left = least_residual([residuals_beside(seen, rows, few, fans, table) for seen in regressions])
    likelihood = profile_likelihood(left, few, np.maximum(few.used - 3, 0.0))
    return np.asarray(likelihood + fans.likely(log_prior)[:, None])


def residuals_beside(
    regressions: OneTermRegressions,
    rows: IntArray,
    data: ScaledRows,
    fans: PairGroups,
    table: FloatArray,
) -> FloatArray:
    """Return the residual of each shape with any function of each parameter, [S D, n].

    `data` holds the rows `rows`. The coefficient of a shape is positive.
    """
    sums, weights = regressions.sums.take(rows), regressions.weights[:, rows]
    products = weights * (data.values.T - sums.mean)
    raw = sums.square + sums.weight * sums.at**2
    found = np.empty((len(table), len(fans.ends), len(rows)))
    for axis, levels in enumerate(fans.levels):
        square, product, total = raw.copy(), sums.product.copy(), sums.total.copy()
        for level in range(levels.max() + 1):
            here = levels == level
            weight = weights[here].sum(axis=0)
            per_weight = np.where(weight > 0, 1 / np.where(weight > 0, weight, 1.0), 0.0)
            at, value = table[:, here] @ weights[here], products[here].sum(axis=0)
            square -= at * at * per_weight
            product -= at * (value * per_weight)
            total -= value * value * per_weight
        varies = square > VARIES * raw
        slope = np.where(varies, np.maximum(product, 0.0) / np.where(varies, square, 1.0), 0.0)
        found[:, axis] = total - slope * product
    return np.maximum(found, 0.0).reshape(len(table) * len(fans.ends), len(rows))


def expand(bounds: FloatArray, best: float, fans: PairGroups) -> IntArray:
    """Return the pairs in the most promising fans of a row, which has the `bounds` [S D].

    Fans far below the `best` bound of other hypotheses are left out. If parameters varied one at a
    time, thousands of fans are equally promising; then the first of these are taken.
    """
    order = np.flatnonzero(bounds >= best - OUT_OF_QUESTION)
    if len(order) > fans.opened:
        promise = bounds[order]
        above = promise - np.partition(promise, -fans.opened)[-fans.opened]
        even = np.flatnonzero(np.abs(above) <= EVEN)
        sure = np.flatnonzero(above > EVEN)
        order = order[np.sort(np.append(sure, even[: fans.opened - len(sure)]))]
    shape, axis = np.divmod(order, len(fans.ends))
    size = (fans.ends - fans.begins)[axis]
    within = np.arange(size.sum()) - np.repeat(size.cumsum() - size, size)
    first = fans.start + shape * len(fans.terms) + fans.begins[axis]
    return np.asarray(np.repeat(first, size) + within)


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


def screen(
    data: ScaledRows, hypotheses: Hypotheses, log_prior: FloatArray, drifts: Sequence[Drift]
) -> ScreenedHypotheses:
    """Return as `residuals.screen`."""
    rough = rough_fit(data, hypotheses)
    unit = error_unit(data, rough)
    regressions = [
        regress(data, hypotheses, relative_weights(data, unit, drift).T) for drift in drifts
    ]
    variance = typical_variance(regressions[0], data)
    singles = bounds(regressions, data, hypotheses, log_prior, variance)
    pairs = pair_bounds(regressions, data, hypotheses, log_prior, rough, singles.alone)
    best = singles.best(pairs.row, pairs.bound)
    mean = smoothed(data, _mean_model(regressions[0], singles, pairs, best, hypotheses))
    scattered = variance > SCATTERED**2
    worthy = singles.singles >= best - hypotheses.kept.nats
    shape, row = np.nonzero(worthy.any(axis=0))
    pairs = pairs.take(pairs.bound >= best[pairs.row] - hypotheses.kept.nats)
    return ScreenedHypotheses(
        row,
        shape,
        tuple(np.flatnonzero(family[shape, row]) for family in worthy),
        pairs.row,
        pairs.pair,
        variance,
        np.where(scattered[:, None], rough, mean),
        np.flatnonzero(scattered),
    )


def _mean_model(
    regressed: OneTermRegressions,
    singles: Bounds,
    pairs: PairBounds,
    best: FloatArray,
    hypotheses: Hypotheses,
) -> FloatArray:
    """Return the mean of all models at the points, [n, K], weighted by exp(bound - best)."""
    sums = regressed.sums
    positive, offset, bare = np.exp(singles.singles - best)
    alone, of_pairs = np.exp(singles.constant - best), np.exp(pairs.bound - best[pairs.row])
    steepest = sums.mean / np.maximum(sums.at, 1e-9)
    # A model with one shape is mean + slope (x - at), where its signs allow the slope.
    slope = positive * np.clip(regressed.slope, 0.0, steepest) + offset * regressed.slope
    constant = ((positive + offset) * sums.mean - slope * sums.at).sum(axis=0) + alone * sums.mean
    slope = slope + bare * regressed.bare_slope
    weight = (positive + offset + bare).sum(axis=0) + alone
    np.add.at(weight, pairs.row, of_pairs)
    numbers = of_pairs * pairs.coefficients
    np.add.at(constant, pairs.row, numbers[0])
    for shapes, column in zip((hypotheses.first, hypotheses.second), numbers[1:], strict=True):
        np.add.at(slope, (shapes[pairs.pair], pairs.row), column)
    return np.asarray((hypotheses.table.T @ slope + constant) / weight).T


def rough_fit(data: ScaledRows, hypotheses: Hypotheses) -> FloatArray:
    """Return the best hypothesis with one shape at the points, [n, K], precise enough for weights.

    It is a constant unless the shape leaves much less unexplained. Otherwise noise would determine
    the weights.
    """
    unit = error_unit(data, data.values)
    regressed = regress(data, hypotheses, relative_weights(data, unit, Drift(0.0)).T)
    sums = regressed.sums
    slope = np.clip(regressed.slope, 0.0, sums.mean / np.maximum(sums.at, TINY))
    explained = slope * (2 * sums.product - slope * sums.square)
    best, rows = explained.argmax(axis=0), np.arange(len(data.values))
    enough = explained[best, rows] > (1 - UNEXPLAINED) * sums.total
    slope = np.where(enough, slope[best, rows], 0.0)
    away = hypotheses.table.T[:, best] - sums.at[best, rows]
    return smoothed(data, (sums.mean + slope * away).T)
