"""Differences between two experiments at one scale, and measured ones with their significance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.common_noise import factors_of_runs, relative_to_others
from callpath_modeler.analysis.deviations import deviation_of_models
from callpath_modeler.analysis.measured import Sample, sample_at
from callpath_modeler.analysis.pairing import AlignedExperiment, ExperimentPair
from callpath_modeler.analysis.two_samples import (
    SampleComparison,
    compare_samples,
    false_discovery_rate,
)
from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array
from callpath_modeler.modeling import centre
from callpath_modeler.profile.metric_values import inclusive_values


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
    pair: ExperimentPair, scale: float, inclusive: bool, confidence: float
) -> Changes:
    """Return the measured differences at a common scale."""
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
    test = compare_samples(samples[0], samples[1], confidence)
    if pair.metric.is_time:
        shared = [factors_of_runs(side.values) for side in pair.sides]
        test = _or_relative(test, relative_to_others(views, shared, points, confidence))
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
