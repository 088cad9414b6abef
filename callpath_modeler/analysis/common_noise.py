"""Noise that all call paths of a run share, e.g. by the clock, other jobs, or the placement.

It hides the change of one call path. So call paths are also compared relative to all others: the
factor of each run is taken out of its repetitions, and the factor of the new experiment out of the
difference. Both are weighted medians, which a few changed call paths do not move.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.measured import Sample, sample_at
from callpath_modeler.analysis.two_samples import SampleComparison, compare_samples
from callpath_modeler.arrays import FloatArray

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
) -> SampleComparison | None:
    """Return the comparison of call paths relative to the change that all share.

    Parameters
    ----------
    values : [n, K, R] of base, and of new; NaN = missing
    shared : factors of the runs of base, and of new; see `factors_of_runs`
    points : point of base, and of new
    confidence : confidence of the intervals

    Returns
    -------
    SampleComparison or None
        None if neither was repeated, or if too few call paths have values in both.
    """
    samples = [
        sample_at(own / factors, point)
        for own, factors, point in zip(values, shared, points, strict=True)
    ]
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
    return np.asarray(1 / np.maximum(variance + np.median(variance), np.finfo(float).tiny))


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
