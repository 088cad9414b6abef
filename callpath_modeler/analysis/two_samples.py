"""Comparison of two groups of repetitions, call path by call path.

Logarithms are compared with Welch's test (The generalization of Student's problem when several
different population variances are involved, 1947). Among many call paths, some differences appear
by chance. The false discovery rate keeps their share below a limit (Benjamini and Hochberg:
Controlling the false discovery rate, 1995).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.measured import Sample
from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.constants.noise import EXACT
from callpath_modeler.modeling.distributions import (
    normal_quantile,
    normal_share,
    student_quantile,
    student_share,
)

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
