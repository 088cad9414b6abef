"""Noise, priors, centre of repetitions and outlying scales, learnt from some rows for all rows.

Runs on another partition of a machine, or on a busy one, are slower by one factor in all call
paths. Repetitions do not show it, because all are slower. Models of few terms cannot follow such
a factor at most scales. At the largest scale they can, by steeper growth or by a break. In several
parameters, one configuration may be off, or all with the largest value of one parameter. See
docs/explanation/noise-and-bands.md, 'One scale unlike the others'.

See docs/explanation/hypotheses.md, 'Priors that are learnt'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.hypotheses import CLASS_STRENGTH
from callpath_modeler.modeling.constants.noise import (
    CHUNK,
    CLOSE,
    FACTORS,
    FEWEST_LEARNING_ROWS,
    FEWEST_POINTS,
    FOLLOWS,
    HOPELESS,
    LEAST_IN_SUMS,
    LEAST_NATS,
    LOOKS_AT_SCALES,
    MOST_ERRING,
    MOST_LEARNT,
    MOST_OF_ALL,
    MOST_OF_SEVERAL,
    MOST_ROWS,
    MUCH_LESS,
    NEARLY_ALL,
    OF_ONE_LAW,
    OFF,
    REACH,
    SAMPLE,
    SUSPECT,
    TELLS,
)
from callpath_modeler.modeling.constants.outcome import FAR
from callpath_modeler.modeling.constants.several import PRIOR_OF_SUMS
from callpath_modeler.modeling.mixture.candidate_selection import select_candidates
from callpath_modeler.modeling.mixture.candidates import Candidates
from callpath_modeler.modeling.mixture.counting import Counting
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses, hypotheses
from callpath_modeler.modeling.mixture.posterior import (
    LogPriors,
    Posterior,
    far_tables,
    fitted_values,
    maximize_evidence,
    posterior,
)
from callpath_modeler.modeling.mixture.residuals import (
    MisfitBaseline,
    error_correlation,
    misfit_baseline,
    noise_by_scale,
)
from callpath_modeler.modeling.mixture.row_models import row_status
from callpath_modeler.modeling.mixture.scaled_rows import (
    Deviations,
    Noise,
    Pool,
    RepetitionStats,
    ScaledRows,
    SortedValues,
    data_of,
    deviations,
    error_unit,
    pooled,
    profile_of,
    repetition_stats,
    row_spread,
)
from callpath_modeler.modeling.model_columns import FitStatus
from callpath_modeler.modeling.products import Shape
from callpath_modeler.modeling.repetitions import Centre, centred, relative_efficiency
from callpath_modeler.modeling.terms import SearchSpace

if TYPE_CHECKING:
    from callpath_modeler.modeling.product_sums import ProductSpace

_FACTORS = REACH * np.linspace(-1, 1, FACTORS)
"""Logarithms of the factors that are tried: 1/30 to 30, times a power of 30."""


class ScaleOutlier(Struct, frozen=True):
    """The factor by which rows are off at some points, judged by all other points.

    Attributes
    ----------
    points : numbers of these points
    factor : logarithm of the most likely factor of the values there
    nats : log likelihood that the factor adds
    agreed : whether nearly all decided rows agree on the factor
    own : median relative variance of rows about their models by the other points
    """

    points: tuple[int, ...]
    factor: float
    nats: float
    agreed: bool
    own: float


def suspects_outlier(found: Posterior, hypotheses: Hypotheses, correlation: float) -> bool:
    """Return whether first models give a reason to test points."""
    breaks = hypotheses.outside[found.chosen]
    if hypotheses.fans is not None:
        follow = np.append(_followed(hypotheses) >= 0, False)
        breaks = breaks | follow[hypotheses.codes(found.chosen)].any(axis=1)
    share = float((found.weight * breaks).sum()) / max(len(found.variance), 1)
    return correlation > SUSPECT[0] or share > SUSPECT[1]


def _followed(hypotheses: Hypotheses) -> IntArray:
    """Return the point that each shape could fit alone, [S]; -1 = none.

    For a steep shape, this is the largest point.
    """
    square = hypotheses.table**2
    most = square.argmax(axis=1)
    alone = square.max(axis=1) > FOLLOWS * square.sum(axis=1)
    return np.where(alone, most, -1)


def suspect_points(
    data: ScaledRows, fitted: FloatArray, hypotheses: Hypotheses
) -> list[tuple[int, ...]]:
    """Return the points to test, alone or in groups.

    In one parameter, each point is tested. In several, the test covers points that a shape could
    fit alone, points with the worst fit by models, `fitted` [n, K], and all points with the largest
    value of one parameter.
    """
    points = data.points
    if points.ndim == 1:
        return [(point,) for point in range(len(points))]
    error = (data.values - fitted) / error_unit(data, fitted) / np.sqrt(data.variance)[:, None]
    worst = np.argsort(-np.abs(np.median(error, axis=0)), kind="stable")[:MOST_ERRING]
    alone = {*_followed(hypotheses).tolist(), *worst.tolist()} - {-1}
    ends = [np.flatnonzero(column == column.max()).tolist() for column in points.T]
    together = [tuple(end) for end in ends if 1 < len(end) <= len(points) // 2]
    return [(point,) for point in sorted(alone)] + together


def complete_rows(data: ScaledRows) -> ScaledRows | None:
    """Return some rows with values at all points; None if there are too few rows or points."""
    whole = np.flatnonzero((data.weight > 0).all(axis=1) & (data.values > 0).all(axis=1))
    if len(data.points) < FEWEST_POINTS or len(whole) < FEWEST_LEARNING_ROWS:
        return None
    most = MOST_ROWS if data.points.ndim == 1 else MOST_OF_SEVERAL
    return data.take(whole[:: -(-len(whole) // most)])


def without_points(data: ScaledRows, points: Sequence[int]) -> ScaledRows:
    """Return the rows without the values at `points`."""
    weight = data.weight.copy()
    weight[:, points] = 0.0
    return replace(data, weight=weight)


def at_other_points(data: ScaledRows, points: Sequence[int]) -> ScaledRows:
    """Return the rows at all points except `points`."""
    values, weight = (np.delete(column, points, axis=1) for column in (data.values, data.weight))
    where = np.delete(data.points, points, axis=0)
    return replace(data, points=where, values=values, weight=weight)


def estimate_scale_factor(
    found: Posterior, data: ScaledRows, hypotheses: Hypotheses, points: tuple[int, ...]
) -> ScaleOutlier:
    """Return the factor at `points` that rows have in common.

    Every row has a likelihood of its values there for each factor. The common factor is one that
    nearly all decided rows prefer to no factor, and that each of them finds likely. Call paths that
    break independently break by different factors.

    Parameters
    ----------
    found : posterior of the rows [n] by all other points
    data : the rows, with their values at `points`
    hypotheses : all hypotheses
    points : numbers of the points
    """
    errors = [_errors(found, data, hypotheses, point) for point in points]
    away, spread = (np.array(column) for column in zip(*errors, strict=True))
    factors = _FACTORS + REACH * np.round(np.nanmedian(np.append(away, 0.0)) / REACH)
    said = _likelihoods(found, away, spread, np.append(factors, 0.0))
    most = said.max(axis=1, keepdims=True)
    # A row whose likely candidates predict nothing above zero is not decided.
    said = np.subtract(said, most, out=np.zeros_like(said), where=np.isfinite(most))
    *together, none = np.maximum(said, HOPELESS).sum(axis=0)
    best = int(np.argmax(together))
    prefers = said[:, best] - said[:, -1]
    tells = np.abs(prefers) > TELLS
    agrees = (prefers > 0) & (said[:, best] > CLOSE)
    enough = NEARLY_ALL if data.points.ndim == 1 else MOST_OF_ALL
    agreed = tells.sum() >= FEWEST_LEARNING_ROWS and agrees[tells].mean() >= enough
    nats, own = float(together[best] - none), float(np.median(found.variance))
    return ScaleOutlier(points, float(factors[best]), nats, bool(agreed), own)


def stands_alone(odd: ScaleOutlier, others: Sequence[ScaleOutlier]) -> bool:
    """Return whether the other points, judged by each other, are much less off than the outlier.

    If runs of all scales are off by something, one of them is off most.
    """
    return all(abs(each.factor) <= MUCH_LESS * abs(odd.factor) for each in others)


def are_largest(points: FloatArray, some: Sequence[int]) -> bool:
    """Return whether the points `some` are the largest scale.

    In several parameters, they are all points with the largest value of one parameter, or the only
    point with the largest values of all.
    """
    scales = points.reshape(len(points), -1)
    at_end = scales == scales.max(axis=0)
    rest = np.delete(at_end, list(some), axis=0)
    return bool(at_end[list(some)].all() or (~rest.any(axis=0)).any())


def _errors(
    found: Posterior, data: ScaledRows, hypotheses: Hypotheses, point: int
) -> tuple[FloatArray, FloatArray]:
    """Return the error of each candidate at a point, and its standard deviation, [c].

    Both are logarithms; NaN where a candidate predicts nothing above zero.
    """
    there = np.append(hypotheses.table[:, point], 0.0)
    design = np.stack([np.ones(len(found.row)), *there[hypotheses.codes(found.chosen)].T])
    model = (found.coefficients * design).sum(axis=0)
    first, second = np.triu_indices(3)
    twice = np.where(first == second, 1.0, 2.0)[:, None]
    square = (twice * found.covariance * design[first] * design[second]).sum(axis=0)
    model = np.where(model > 0, model, np.nan)
    with np.errstate(over="ignore"):  # tiny models
        away = np.log(data.values[found.row, point] / model)
        # The square of a tiny model would be zero, so the model divides the root.
        spread = np.sqrt(np.maximum(square, 0.0)) / model
    return away, np.hypot(spread, np.sqrt(found.variance[found.row]))


def _likelihoods(
    found: Posterior, away: FloatArray, spread: FloatArray, factors: FloatArray
) -> FloatArray:
    """Return the log likelihood of the values at the points under all factors, [n, F].

    Errors are [P, c], of candidates at each of the points; an error at all points counts once.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # A mean of normal log densities is a normal log density.
        precise = spread**-2
        sharp = precise.mean(axis=0)
        centre = (away * precise).mean(axis=0) / sharp
        level = np.log(found.weight) - np.log(spread).mean(axis=0)
        level -= 0.5 * ((away - centre) ** 2 * precise).mean(axis=0)
        lost = ~np.isfinite(level + sharp * centre)
        level[lost], centre[lost], sharp[lost] = -np.inf, 0.0, 0.0
        each = centre[:, None] - factors
        each *= each
        each *= -0.5 * sharp[:, None]
        each += level[:, None]
    # Candidates are ordered by row.
    start = np.searchsorted(found.row, np.arange(len(found.variance)))
    most = np.maximum.reduceat(each, start, axis=0)
    each -= np.where(most == -np.inf, 0.0, most)[found.row]
    # Exponentials of less are slow, and are no part of a sum that contains 1.
    np.maximum(each, LEAST_NATS, out=each)
    np.exp(each, out=each)
    return np.asarray(np.log(np.add.reduceat(each, start, axis=0)) + most)


class FittedPriors(Struct, frozen=True):
    """Everything that is learnt from some rows and used in the models of all rows.

    Attributes
    ----------
    points : [K] or [K, D] points, ascending
    pool : noise of repetitions, pooled over all rows
    cost : sum of all rows at the largest point, of the means of repetitions
    how : centre of the repetitions that is modelled
    efficiency : variance of this centre relative to that of a mean
    worth : [K] weight of the points by the errors of models, relative to that by repetitions
    odd : points at which all rows are off by one factor; None = there are none
    correlation : correlation between the errors of rows
    hypotheses, ways : hypotheses and deviations
    beliefs : learnt priors of both
    far : shapes far beyond the points, as returned by `far_tables`
    sums : products of which sums consist; None = no sums are tried
    baseline : usual misfits of the metric
    counting : noise of counts by chance; None = `pool` is the noise
    """

    points: FloatArray
    pool: Pool
    cost: float
    how: Centre
    efficiency: float
    worth: FloatArray
    odd: ScaleOutlier | None
    correlation: float
    hypotheses: Hypotheses
    ways: Deviations
    beliefs: LogPriors
    far: FloatArray
    sums: ProductSpace | None
    baseline: MisfitBaseline
    counting: Counting | None = None

    @property
    def terms(self) -> int:
        """Largest number of terms of a model."""
        return 2 if self.sums is None else len(self.sums.axes)

    def shape(self, code: int) -> Shape:
        """Return the shape of a code in the columns of models."""
        if self.sums is not None and code >= self.sums.start:
            return self.sums.product(code)
        return self.hypotheses.shapes[code]

    @property
    def off(self) -> float:
        """Log factor by which predictions may be off: that of the largest scale may persist."""
        if self.odd is None or not are_largest(self.points, self.odd.points):
            return 0.0
        return self.odd.factor

    @property
    def odd_scale(self) -> tuple[tuple[float | None, ...], float] | None:
        """The values of all parameters at the points that are off, and the factor there.

        A parameter with several values at these points has None.
        """
        if self.odd is None:
            return None
        odd = self.points[list(self.odd.points)].reshape(len(self.odd.points), -1)
        where = tuple(float(each[0]) if np.ptp(each) == 0 else None for each in odd.T)
        return where, float(np.exp(self.odd.factor))

    @property
    def grain(self) -> float:
        """Variance of one value by chance per unit of its expectation."""
        return 0.0 if self.counting is None else self.counting.grain * self.efficiency

    @property
    def in_common(self) -> float:
        """Correlation between the errors of predictions."""
        least = max(self.correlation, LEAST_IN_SUMS)
        if self.odd is None or not self.off:
            return least
        return max(least, 1 - float(self.worth[self.odd.points[-1]]))

    def noise(self, reps: RepetitionStats) -> Noise:
        """Return the noise of some rows."""
        if self.counting is None:
            found = self.pool.noise(reps, self.efficiency)
        else:
            found = self.counting.noise(self.points, reps, self.efficiency)
        if (self.worth == 1).all():
            return found
        return structs.replace(found, weight=found.weight * self.worth)


def _product_space(
    space: SearchSpace, known: Hypotheses, points: FloatArray
) -> ProductSpace | None:
    """Return the products of factors of several parameters, which one parameter does not need."""
    if points.ndim == 1:
        return None
    from callpath_modeler.modeling.product_sums import product_space

    return product_space(space, known, points)


def estimate_priors(
    points: FloatArray, values: SortedValues, space: SearchSpace, how: Centre
) -> FittedPriors:
    """Return noise and priors, learnt from some of the rows."""
    known = _hypotheses(space, points)
    y, reps, pool = _overview(values, rows_per_chunk(known, SAMPLE, MOST_LEARNT))
    ways = deviations(points, noise_known=pool.is_known)
    far, sums = far_tables(points, known, FAR), _product_space(space, known, points)
    odds = log(PRIOR_OF_SUMS / (1 - PRIOR_OF_SUMS))
    before = LogPriors(known.log_prior, ways.log_prior, odds)
    even = np.ones(len(points))
    with np.errstate(over="ignore"):
        cost = float(np.nansum(centred(values.y[:, values.order[-1:]], "mean")))
    setting = FittedPriors(
        *(points, pool, cost, how, 1.0, even, None, 0.0),
        *(known, ways, before, far, sums, MisfitBaseline()),
    )
    if not len(y):
        return setting
    setting = _with_counting(setting, y, reps)
    ways, before = setting.ways, setting.beliefs
    setting, seen = _by_errors(setting, reps)
    efficiency = _efficiency(y, seen.noise, seen.fitted * seen.unit[:, None], how)
    its = misfit_baseline(seen.data, seen.fitted)
    setting = structs.replace(setting, efficiency=efficiency, baseline=its)
    data, found, beliefs = seen.data, seen.found, seen.beliefs
    # In several parameters, means teach the priors equally well, and evaluation takes long.
    again = how != "mean" and points.ndim == 1
    if again:
        data = _positive(setting, y)
        found = select_candidates(data, known.for_habits, ways, before)
    if again or setting.correlation > OF_ONE_LAW:
        beliefs = _beliefs(found, len(data.values), known, before, setting.correlation)
    return structs.replace(setting, beliefs=beliefs)


def _with_counting(setting: FittedPriors, y: FloatArray, reps: RepetitionStats) -> FittedPriors:
    """Return the setting with the noise of counts by chance, if rows are such counts."""

    def fitted() -> FloatArray:
        first = _first_models(setting, reps)
        return first.fitted * first.unit[:, None]

    found = Counting.of(setting.points, y, reps, fitted)
    if found is None:
        return setting
    ways = deviations(setting.points, noise_known=True)
    pool, beliefs = structs.replace(setting.pool, is_known=True), setting.beliefs
    beliefs = structs.replace(beliefs, deviations=ways.log_prior)
    return structs.replace(setting, counting=found, ways=ways, pool=pool, beliefs=beliefs)


def _hypotheses(space: SearchSpace, points: FloatArray) -> Hypotheses:
    """Return the hypotheses in one parameter, or in several."""
    if points.ndim == 1:
        return hypotheses(space, points)
    from callpath_modeler.modeling.products_of_factors import joint_hypotheses

    return joint_hypotheses(space, points)


class _FirstModels(Struct, frozen=True):
    """First models of some rows, made of the means of their repetitions.

    `of_sums` [n] is the probability of all sums of products, which are not among the candidates.
    """

    noise: Noise
    data: ScaledRows
    unit: FloatArray
    found: Candidates
    beliefs: LogPriors
    believed: Posterior
    fitted: FloatArray
    of_sums: FloatArray


def _by_errors(setting: FittedPriors, reps: RepetitionStats) -> tuple[FittedPriors, _FirstModels]:
    """Return first models, and estimates that use their errors where repetitions show nothing."""
    seen, told = _first_models(setting, reps), setting.pool.is_known
    correlation = error_correlation(seen.data, seen.fitted, noise_known=told)
    setting = structs.replace(setting, correlation=correlation)
    odd = _odd_one(setting, seen)
    if odd is not None:
        worth, points = np.ones(len(setting.points)), list(odd.points)
        # Points that are off together have the weight of one point.
        worth[points] = odd.own / (odd.own + len(points) * odd.factor**2)
        setting = structs.replace(setting, correlation=0.0, worth=worth, odd=odd)
        seen = _first_models(setting, reps)
        others = at_other_points(seen.data, points), np.delete(seen.fitted, points, axis=1)
        correlation = error_correlation(*others, noise_known=told)
        return structs.replace(setting, correlation=correlation), seen
    if setting.points.ndim > 1:
        return setting, seen
    for _ in range(0 if told else LOOKS_AT_SCALES):
        worth = 1 / noise_by_scale(seen.data, seen.fitted, correlation)
        if np.array_equal(worth, setting.worth):
            break
        setting = structs.replace(setting, worth=worth)
        seen = _first_models(setting, reps)
    return setting, seen


def _odd_one(setting: FittedPriors, first: _FirstModels) -> ScaleOutlier | None:
    """Return the points at which all rows are off by the same factor, or None."""
    without_sums = first.believed.scaled(1 - first.of_sums)
    suspect = suspects_outlier(without_sums, setting.hypotheses, setting.correlation)
    rows = complete_rows(first.data.take(first.of_sums < 0.5)) if suspect else None
    if rows is None:
        return None
    every = suspect_points(first.data, first.fitted, setting.hypotheses)
    found = [_apart(setting, rows, points) for points in every]
    odd = max(found, key=lambda each: each.agreed * each.nats)
    if not odd.agreed:
        return None
    rest = [points for points in every if not {*points} & {*odd.points}]
    others = [_apart(setting, rows, points, odd.points) for points in rest]
    return odd if stands_alone(odd, others) else None


def _apart(
    setting: FittedPriors, rows: ScaledRows, points: tuple[int, ...], left_out: tuple[int, ...] = ()
) -> ScaleOutlier:
    """Return the scale factor at `points`, judged by all other points that are not left out."""
    known, ways, before = setting.hypotheses, setting.ways, setting.beliefs
    some = without_points(rows, [*points, *left_out])
    believed = posterior(select_candidates(some, known, ways, before), some, ways, before)
    return estimate_scale_factor(believed, rows, known, points)


def _first_models(setting: FittedPriors, reps: RepetitionStats) -> _FirstModels:
    """Return models of the means of some rows, with priors that are learnt from these rows."""
    known, ways, before = setting.hypotheses, setting.ways, setting.beliefs
    noise = setting.noise(reps)
    data, unit = data_of(setting.points, noise)
    found = select_candidates(data, known.for_habits, ways, before)
    sums = None
    if setting.sums is not None:
        from callpath_modeler.modeling.sums_of_products import FittedSums

        believed = posterior(found, data, ways, before)
        sums = FittedSums.of(believed, data, setting.sums, known, ways)
    seen = found if sums is None else sums.as_one(found, believed, known, ways, before)
    beliefs = _beliefs(seen, len(unit), known, before, setting.correlation)
    believed = posterior(found, data, ways, beliefs)
    fitted, of_sums = fitted_values(believed, known), np.zeros(len(unit))
    more = None if sums is None else sums.candidates(believed, known, ways, beliefs)
    if setting.sums is not None and more is not None:
        # All rows that follow a law which two terms cannot fit have the same errors. These errors
        # do not come from the runs.
        fitted[more.rows] = more.fitted(setting.sums, known, setting.far)
        of_sums[more.rows] = more.share
    return _FirstModels(noise, data, unit, found, beliefs, believed, fitted, of_sums)


def rows_per_chunk(known: Hypotheses, most: int, together: int) -> int:
    """Return the number of rows, up to `most`, that have `together` hypotheses in total."""
    return max(16, min(most, together // known.compared))


def _overview(values: SortedValues, count: int) -> tuple[FloatArray, RepetitionStats, Pool]:
    """Return up to `count` rows to learn from, the means of these rows, and the pooled noise.

    The rows are spread evenly over all sizes. They are the same for every order of the rows.
    """
    raw, dof, size, digest = np.zeros((4, len(values)))
    usable = np.zeros(len(values), dtype=bool)
    for part in values.chunks(CHUNK):
        ordered = values[part]
        reps = repetition_stats(ordered, "mean")
        usable[part] = row_status(ordered, reps) == FitStatus.OK
        raw[part], dof[part], size[part] = row_spread(reps)
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = np.sqrt(np.arange(2.0, 2 + len(values.order)))
            digest[part] = np.where(reps.count > 0, reps.centre, 0.0) @ numbers
    rows = np.flatnonzero(usable)
    order = np.argsort(size[rows])
    if not np.diff(size[rows[order]]).all():
        order = np.lexsort((digest[rows], size[rows]))
    some = values[rows[order[:: max(-(-len(order) // count), 1)]]]
    means = repetition_stats(some, "mean")
    return some, means, pooled(raw[rows], dof[rows], size[rows], profile_of(means))


def _efficiency(y: FloatArray, means: Noise, fitted: FloatArray, how: Centre) -> float:
    """Return the efficiency of a centre, from residuals about models of means."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = y / fitted[:, :, None]
        # Residuals are not noise where the model misses the mean by more than the noise.
        off = np.abs(means.centre / fitted - 1) > OFF * np.sqrt(means.variance)[:, None]
    ratio[off] = np.nan
    return relative_efficiency(ratio[np.isfinite(ratio) & (ratio > 0)], y.shape[2], how)


def _positive(setting: FittedPriors, y: FloatArray) -> ScaledRows:
    """Return the rows whose centres can be fitted.

    A centre may be zero or negative although the mean is positive.
    """
    reps = repetition_stats(y, setting.how)
    usable = (np.nan_to_num(reps.centre) >= 0).all(axis=1) & (row_spread(reps)[2] > 0)
    return data_of(setting.points, setting.noise(reps.take(np.flatnonzero(usable))))[0]


def _beliefs(
    found: Candidates,
    rows: int,
    hypotheses: Hypotheses,
    before: LogPriors,
    correlation: float = 0.0,
) -> LogPriors:
    """Return priors that are learnt from some rows; rows with correlated errors count less."""
    if not rows:
        return before
    of_runs = max(0.0, correlation - OF_ONE_LAW) / (1 - OF_ONE_LAW)
    count_as_one = 1 + (rows - 1) * of_runs
    kinds, prior = hypotheses, before.hypotheses
    if (found.chosen == len(prior)).any():
        # All sums together are one more hypothesis, of a kind of its own.
        kinds = replace(
            hypotheses,
            kinds=np.append(hypotheses.kinds, len(hypotheses.strength)),
            strength=np.append(hypotheses.strength, CLASS_STRENGTH),
        )
        whole = np.logaddexp(0.0, before.sums)
        prior = np.append(prior, before.sums) - whole
    learnt, ways = maximize_evidence(found, kinds, prior, before.deviations, count_as_one)
    if len(learnt) > len(before.hypotheses):
        return LogPriors(learnt[:-1], ways, float(learnt[-1]))
    return LogPriors(learnt, ways, before.sums)
