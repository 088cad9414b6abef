"""Noise, priors and centre of repetitions, learnt from some rows for the models of all rows.

See docs/explanation/hypotheses.md, 'Priors that are learnt'.
"""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.constants.hypotheses import CLASS_STRENGTH
from callpath_modeler.modeling.constants.learning import (
    CHUNK,
    LEAST_IN_SUMS,
    LOOKS_AT_SCALES,
    MOST_LEARNT,
    OF_ONE_LAW,
    OFF,
    SAMPLE,
)
from callpath_modeler.modeling.constants.outcome import FAR
from callpath_modeler.modeling.constants.several import PRIOR_OF_SUMS
from callpath_modeler.modeling.mixture.candidate_selection import select_candidates
from callpath_modeler.modeling.mixture.candidates import Candidates
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses, hypotheses
from callpath_modeler.modeling.mixture.outcome import row_status
from callpath_modeler.modeling.mixture.outlier_scale import (
    ScaleOutlier,
    are_largest,
    at_other_points,
    complete_rows,
    estimate_scale_factor,
    stands_alone,
    suspect_points,
    suspects_outlier,
    without_points,
)
from callpath_modeler.modeling.mixture.posterior import (
    LogPriors,
    Posterior,
    far_tables,
    fitted_values,
    maximize_evidence,
    posterior,
)
from callpath_modeler.modeling.mixture.repetition_noise import (
    Noise,
    Pool,
    RepetitionStats,
    pooled,
    profile_of,
    repetition_stats,
    row_spread,
)
from callpath_modeler.modeling.mixture.residuals import (
    MisfitBaseline,
    error_correlation,
    misfit_baseline,
    noise_by_scale,
)
from callpath_modeler.modeling.mixture.scaled_rows import (
    Deviations,
    ScaledRows,
    SortedValues,
    data_of,
    deviations,
)
from callpath_modeler.modeling.noise import Centre, centred, relative_efficiency
from callpath_modeler.modeling.products import Shape
from callpath_modeler.modeling.several.product_space import ProductSpace, product_space
from callpath_modeler.modeling.several.sums_of_products import FittedSums
from callpath_modeler.modeling.status import FitStatus
from callpath_modeler.modeling.terms import SearchSpace


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
    def in_common(self) -> float:
        """Correlation between the errors of predictions."""
        least = max(self.correlation, LEAST_IN_SUMS)
        if self.odd is None or not self.off:
            return least
        return max(least, 1 - float(self.worth[self.odd.points[-1]]))

    def noise(self, reps: RepetitionStats) -> Noise:
        """Return the noise of some rows."""
        found = self.pool.noise(reps, self.efficiency)
        if (self.worth == 1).all():
            return found
        return structs.replace(found, weight=found.weight * self.worth)


def estimate_priors(
    points: FloatArray, values: SortedValues, space: SearchSpace, how: Centre
) -> FittedPriors:
    """Return noise and priors, learnt from some of the rows."""
    known = _hypotheses(space, points)
    y, reps, pool = _overview(values, rows_per_chunk(known, SAMPLE, MOST_LEARNT))
    ways = deviations(points, noise_known=pool.is_known)
    far, sums = far_tables(points, known, FAR), product_space(space, known, points)
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


def _hypotheses(space: SearchSpace, points: FloatArray) -> Hypotheses:
    """Return the hypotheses in one parameter, or in several."""
    if points.ndim == 1:
        return hypotheses(space, points)
    from callpath_modeler.modeling.several.hypotheses import joint_hypotheses

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
