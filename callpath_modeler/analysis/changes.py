"""Differences between two experiments with their significance, and the noise that a run shares.

Logarithms are compared with Welch's test (The generalization of Student's problem when several
different population variances are involved, 1947). Among many call paths, some differences appear
by chance. The false discovery rate keeps their share below a limit (Benjamini and Hochberg:
Controlling the false discovery rate, 1995).

It hides the change of one call path. So call paths are also compared relative to all others: the
factor of each run is taken out of its repetitions, and the factor of the new experiment out of the
difference. Both are weighted medians, which a few changed call paths do not move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.days import ScatterOfDays
from callpath_modeler.analysis.measured import Sample, deviation_of_models, sample_at
from callpath_modeler.analysis.pairing import AlignedExperiment, ExperimentPair
from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array
from callpath_modeler.modeling import centre
from callpath_modeler.modeling.constants.noise import EXACT
from callpath_modeler.modeling.distributions import (
    normal_quantile,
    normal_share,
    student_quantile,
    student_share,
)
from callpath_modeler.profile.groups import inclusive_values

Band = tuple[FloatArray, FloatArray, FloatArray]
"""Predicted values, and the lower and upper ends of their bands, each [n]."""

_LEAST_ERROR = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class SampleComparison:
    """Difference of new and base, [n]; NaN = one of the two has no value.

    Attributes
    ----------
    difference : logarithm of new over base
    low, high : its confidence interval; NaN = the noise is not known
    p : probability of a difference of this size, or larger, by chance
    """

    difference: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray


def compare_samples(base: Sample, new: Sample, confidence: float) -> SampleComparison:
    """Return the comparison of two samples; if one was repeated, its noise is used for both."""
    shared = base.is_repeated != new.is_repeated
    if shared:
        known = base if base.is_repeated else new
        base, new = (
            structs.replace(s, variance=known.variance, dof=known.dof) for s in (base, new)
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.log(new.centre) - np.log(base.centre)
        parts = [sample.variance / sample.count for sample in (base, new)]
        error = np.sqrt(parts[0] + parts[1])
        dof = (parts[0] + parts[1]) ** 2 / (parts[0] ** 2 / base.dof + parts[1] ** 2 / new.dof)
    if shared:
        dof = base.dof
    error = np.maximum(error, _LEAST_ERROR)
    reach = student_quantile(dof, 0.5 + confidence / 2) * error
    p = 2 * student_share(dof, -np.abs(difference) / error)
    return _test(difference, reach, reach, p)


def compare_bands(base: Band, new: Band, confidence: float) -> SampleComparison:
    """Return the comparison of two predictions.

    The band of a ratio is that of the difference of logarithms. It uses the distances of each band
    that point towards the other (Zou and Donner: Construction of confidence limits about effect
    measures, 2008). The distance of zero from it, in half-widths, gives the probability.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        before, after = ([np.log(edge) for edge in side] for side in (base, new))
        difference = after[0] - before[0]
        down = np.hypot(after[0] - after[1], before[2] - before[0])
        up = np.hypot(after[2] - after[0], before[0] - before[1])
        error = np.where(difference > 0, down, up) / normal_quantile(0.5 + confidence / 2)
        p = 2 * normal_share(-np.abs(difference) / np.maximum(error, _LEAST_ERROR))
    return _test(difference, down, up, p)


def _test(
    difference: FloatArray, down: FloatArray, up: FloatArray, p: FloatArray
) -> SampleComparison:
    """Return a comparison; differences within rounding errors are zero."""
    finite = np.isfinite(difference)
    p = np.where((np.abs(difference) <= EXACT) & ~np.isnan(p), 1.0, p)
    # A prediction of zero is infinitely far from others, and has no interval.
    with np.errstate(invalid="ignore"):
        columns = (difference, difference - down, difference + up, p)
    return SampleComparison(*(np.where(finite, column, np.nan) for column in columns))


def false_discovery_rate(p: FloatArray) -> FloatArray:
    """Return the smallest false discovery rate at which each difference is significant.

    Parameters
    ----------
    p : [n] probabilities by chance; NaN = no test
    """
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    share = p[order] * len(order) / np.arange(1, len(order) + 1)
    rate = np.full(len(p), np.nan)
    rate[order] = np.minimum(np.minimum.accumulate(share[::-1])[::-1], 1.0)
    return rate


LEAST_CALL_PATHS = 8
"""Fewest call paths that are compared with each other: half of fewer may change together."""

_MOST = 4_096
"""Largest number of call paths that the factor of a run is computed from, the costliest ones."""
_MEDIAN = 1.2533
"""Standard error of a median relative to that of a mean, of normal errors."""
_PASSES = 3


def relative_to_others(
    values: Sequence[FloatArray],
    shared: Sequence[FloatArray],
    points: Sequence[int],
    confidence: float,
    widen: Callable[[Sequence[Sample]], Sequence[Sample]] | None = None,
) -> SampleComparison | None:
    """Return the comparison of call paths relative to the change that all share.

    Parameters
    ----------
    values : [n, K, R] of base, and of new; NaN = missing
    shared : factors of the runs of base, and of new; see `factors_of_runs`
    points : point of base, and of new
    confidence : confidence of the intervals
    widen : function that adds other noise than that of repetitions; None = there is none

    Returns
    -------
    SampleComparison or None
        None if neither was repeated, or if too few call paths have values in both.
    """
    samples = [
        sample_at(own / factors, point)
        for own, factors, point in zip(values, shared, points, strict=True)
    ]
    samples = samples if widen is None else [*widen(samples)]
    if not any(sample.is_repeated for sample in samples):
        return None
    before, after = samples
    found = compare_samples(before, after, confidence)
    error = _error(before, after)
    known = np.isfinite(found.difference) & np.isfinite(error)
    if known.sum() < LEAST_CALL_PATHS:
        return None
    weight = _weights(error[known] ** 2)
    change = float(_weighted_medians(found.difference[known, None], weight)[0])
    # The error of the common change is an error of each comparison with it.
    doubt = _MEDIAN * float(np.sqrt(np.sum((weight * error[known]) ** 2))) / float(weight.sum())
    variance = before.variance + doubt**2 * before.count
    moved = structs.replace(before, centre=before.centre * np.exp(change), variance=variance)
    return compare_samples(moved, after, confidence)


def factors_of_runs(values: FloatArray) -> FloatArray:
    """Return the factor that all call paths share in each run, [K, R]; 1 = not known.

    Parameters
    ----------
    values : [n, K, R] exclusive values; NaN = missing
    """
    cost = np.nansum(values, axis=(1, 2))
    rows = np.argsort(-cost, kind="stable")[:_MOST]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values[rows] > 0, np.log(values[rows]), np.nan)
    count = (~np.isnan(logs)).sum(axis=2, keepdims=True)
    mean = np.nansum(logs, axis=2, keepdims=True) / np.maximum(count, 1)
    deviation = np.where(count > 1, logs - mean, np.nan).reshape(len(rows), -1)
    return np.exp(shared_deviations(deviation)).reshape(values.shape[1:])


def shared_deviations(deviation: FloatArray, least: int = LEAST_CALL_PATHS) -> FloatArray:
    """Return the deviation that all call paths share in each run, [m]; 0 = not known.

    Parameters
    ----------
    deviation : [n, m] logarithms of values over their usual ones; NaN = missing
    least : fewest call paths that are compared with each other
    """
    deviation = deviation[~np.isnan(deviation).all(axis=1)]
    shared = np.zeros(deviation.shape[1])
    if len(deviation) >= least:
        weight = np.ones(len(deviation))
        for _ in range(_PASSES):
            shared = _weighted_medians(deviation, weight)
            weight = _weights(np.nanmean((deviation - shared) ** 2, axis=1))
    return shared


def _weights(variance: FloatArray) -> FloatArray:
    """Return weights by precision; none is much larger than that of a typical call path."""
    return np.asarray(1 / np.maximum(variance + np.median(variance), EXACT**2))


def _error(before: Sample, after: Sample) -> FloatArray:
    """Return the standard error of the logarithm of new over base; the noise of one serves both."""
    variances = [
        np.where(np.isnan(own.variance), other.variance, own.variance)
        for own, other in ((before, after), (after, before))
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(variances[0] / before.count + variances[1] / after.count))


def _weighted_medians(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the weighted median of each column [n, m]; 0 = the column has no value."""
    order = np.argsort(values, axis=0)  # NaN comes last
    ordered = np.take_along_axis(values, order, axis=0)
    running = np.cumsum(np.where(np.isnan(ordered), 0.0, weight[order]), axis=0)
    place = np.argmax(running >= running[-1] / 2, axis=0)
    return np.asarray(np.nan_to_num(ordered[place, np.arange(values.shape[1])]))


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Differences at one scale: of each call path and, last, of the whole program, [n + 1].

    The cost of the whole program is its run time if both experiments record it, else the sum of
    its call paths.

    Attributes
    ----------
    at : value of the parameter, and fixed values of the others
    base, new : costs in the unit of the metric; NaN = does not occur, or no prediction
    change : new minus base; a call path that does not occur costs nothing
    relative, low, high : change over base with its interval, if both have costs
    p : probability of a difference of this size, or larger, by chance
    rate : false discovery rate if this difference is the least significant one shown
    mark : 1 = new is significantly worse, -1 = better, 0 = no significant difference
    sums : sums of the call paths in base and in new; NaN = the metric does not add up
    """

    at: Mapping[str, float]
    base: FloatArray
    new: FloatArray
    change: FloatArray
    relative: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray
    rate: FloatArray
    mark: Int8Array
    sums: tuple[float, float]

    @property
    def scale(self) -> float:
        """Value of the parameter."""
        return next(iter(self.at.values()))


def measured_changes(
    pair: ExperimentPair,
    scale: float,
    inclusive: bool,
    confidence: float,
    days: ScatterOfDays | None = None,
) -> Changes:
    """Return the measured differences at a common scale.

    Parameters
    ----------
    pair : the two experiments
    scale : value of the parameter
    inclusive : True = inclusive values
    confidence : confidence of intervals
    days : scatter from day to day that both experiments have; None = not known
    """
    samples, costs, views, points, sums = [], [], [], [], []
    for k, side in enumerate(pair.sides):
        point = int(np.searchsorted(side.points, scale))
        rows = side.values
        if inclusive:
            rows = pair.runs[k].inclusive.reshape(rows.shape)
        views.append(rows)
        points.append(point)
        run_times = side.run_times if pair.has_run_times else None
        whole = _total(pair, side.values) if run_times is None else run_times
        samples.append(sample_at(np.concatenate([rows, whole]), point))
        # Models and `cpmodel rank` use the same centres, and sums of centres.
        own = centre(side.values[:, [point]], pair.centre)
        view = inclusive_values(pair.tree, own) if inclusive else own
        total = _total(pair, own)
        sums.append(float(total[0, 0]))
        if run_times is not None:
            total = centre(run_times[:, [point]], pair.centre)
        costs.append(np.concatenate([view, total])[:, 0])
    if not any(sample.is_repeated for sample in samples):
        samples = [
            _unrepeated(sample, side, inclusive, of_run_time=pair.has_run_times)
            for sample, side in zip(samples, pair.sides, strict=True)
        ]
    widen = None
    if days is not None:
        # The history knows no sums of subtrees, so these have the usual scatter.
        every = np.arange(len(pair.tree))
        names = [""] * len(every) if inclusive else pair.tree.paths(every)
        samples = days.widened(samples, names, scale, relative=False)
        widen = partial(days.widened, callpaths=names, scale=scale, relative=True)
    test = compare_samples(samples[0], samples[1], confidence)
    if pair.metric.is_time:
        shared = [factors_of_runs(side.values) for side in pair.sides]
        relative = relative_to_others(views, shared, points, confidence, widen)
        test = _or_relative(test, relative)
    at = {pair.parameter: scale, **pair.line.measured_at}
    return changes_of(at, costs[0], costs[1], test, confidence, (sums[0], sums[1]))


def _or_relative(test: SampleComparison, relative: SampleComparison | None) -> SampleComparison:
    """Return a test of call paths alone, or relative to the others if that is more certain.

    The probability of the better one of two tests is doubled (Bonferroni). The whole program is
    compared alone, because nothing is beside it.
    """
    if relative is None:
        return test
    # A call path that changed less than the others did not become better.
    agrees = np.sign(relative.difference) == np.sign(test.difference[:-1])
    other = np.where(agrees, relative.p, 1.0)
    p = np.minimum(2 * np.fmin(test.p[:-1], other), 1.0)
    return replace(test, p=np.append(np.where(np.isnan(test.p[:-1]), np.nan, p), test.p[-1]))


def _total(pair: ExperimentPair, exclusive: FloatArray) -> FloatArray:
    """Return the sums of exclusive values [n, ...], [1, ...]; NaN = nothing was measured."""
    total = np.full((1, *exclusive.shape[1:]), np.nan)
    if pair.metric.additive:
        ran = ~np.isnan(exclusive).all(axis=0)
        total[0, ran] = np.nansum(exclusive, axis=0)[ran]
    return total


def _unrepeated(
    sample: Sample, side: AlignedExperiment, inclusive: bool, *, of_run_time: bool
) -> Sample:
    """Return the sample with the deviations from models as its noise."""
    if side.fitted is None:
        return sample
    variance, dof = deviation_of_models(side.fitted, inclusive=inclusive)
    if of_run_time and side.fitted.run_time is not None:
        whole = deviation_of_models(side.fitted.run_time, inclusive=False)
        variance, dof = (
            np.append(column[:-1], of_program[-1])
            for column, of_program in zip((variance, dof), whole, strict=True)
        )
    of_rows = [side.spread(column[:-1]) for column in (variance, dof)]
    return structs.replace(
        sample,
        variance=np.append(of_rows[0], variance[-1]),
        dof=np.append(of_rows[1], dof[-1]),
    )


def change_of(base: FloatArray, new: FloatArray) -> FloatArray:
    """Return new minus base, of the shape of both; what does not occur costs nothing.

    NaN = neither has a cost.
    """
    change: FloatArray = np.nan_to_num(new) - np.nan_to_num(base)
    return np.where(np.isnan(base) & np.isnan(new), np.nan, change)


def changes_of(
    at: Mapping[str, float],
    base: FloatArray,
    new: FloatArray,
    test: SampleComparison,
    confidence: float,
    sums: tuple[float, float],
) -> Changes:
    """Return the differences of costs [n + 1] with their significance by a test of each."""
    change = change_of(base, new)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative = np.where((base > 0) & (new > 0), new / base - 1.0, np.nan)
        low, high = np.expm1(test.low), np.expm1(test.high)
    rate = false_discovery_rate(test.p)
    is_shown = np.nan_to_num(rate, nan=1.0) <= 1 - confidence
    mark = marks_of(change, test, is_shown)
    return Changes(at, base, new, change, relative, low, high, test.p, rate, mark, sums)


def marks_of(change: FloatArray, test: SampleComparison, is_shown: BoolArray) -> Int8Array:
    """Return the signs of changes that are shown, as `Changes.mark`.

    Repetitions may say one thing and their centres another: then nothing is shown.
    """
    agrees = np.sign(change) == np.sign(test.difference)
    return np.where(is_shown & agrees, np.sign(change), 0).astype(np.int8)
