"""One-sided tests of two samples: Welch's test, and the two tests that PGMPI publishes.

All tests ask whether the left sample is greater. They know no other checks: error rates of many
checks are the matter of `adjustment`.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.distributions import normal_share, student_quantile, student_share

_LEAST_VARIANCE = 1e-24
"""Variance of logarithms up to which times are equal."""
_MOST_EXACT = 2500
"""Number of pairs of mpiruns up to which the distribution of ranks is counted."""


def welch_chances(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return p-values of Welch's test of the means of logarithms, one-sided.

    Each check has its own variances. Variances that are pooled over checks would be too small where
    mpiruns have two typical times.

    Parameters
    ----------
    left, right : [C, R] times of mpiruns; NaN = missing

    Returns
    -------
    [C] p-values; NaN if a side has fewer than two times, or no side scatters
    """
    difference, variance, dof = _welch(left, right)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = difference / np.sqrt(variance)
    tested = variance > _LEAST_VARIANCE
    found = np.full(len(left), np.nan)
    found[tested] = student_share(dof[tested], -t[tested])
    return found


def two_sided(greater: FloatArray, less: FloatArray) -> FloatArray:
    """Return two-sided p-values from those of both one-sided tests; NaN = no test."""
    found: FloatArray = np.minimum(2 * np.minimum(greater, less), 1.0)
    return found


def welch_interval(
    left: FloatArray, right: FloatArray, confidence: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean logarithm of left over right, with the ends of Welch's interval.

    Parameters
    ----------
    left, right : [C, R] values of mpiruns; NaN = missing
    confidence : level of the intervals

    Returns
    -------
    [C] each; ends are NaN if a side has fewer than two values
    """
    difference, variance, dof = _welch(left, right)
    dof = np.where(variance > 0, dof, 1.0)
    known = np.isfinite(dof) & np.isfinite(variance)
    reach = np.full(len(variance), np.nan)
    quantile = student_quantile(dof[known], 0.5 + confidence / 2)
    reach[known] = quantile * np.sqrt(variance[known])
    return difference, difference - reach, difference + reach


def _welch(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the difference of mean logarithms, its variance, and degrees of freedom, [C] each."""
    means, parts, shares = [], [], []
    for side in (left, right):
        with np.errstate(divide="ignore", invalid="ignore"):
            count, mean, variance = moments(np.where(side > 0, np.log(side), np.nan))
            part = variance / count
            shares.append(part**2 / (count - 1))
        means.append(mean)
        parts.append(part)
    variance = parts[0] + parts[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return means[0] - means[1], variance, variance**2 / (shares[0] + shares[1])


def mean_chances(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return p-values of means of logarithms, one-sided, that ranks have to confirm.

    Medians of mpiruns often have two typical times, such as one for each placement. If one side
    gets the fast mpiruns by chance, each side hardly scatters, and Welch's p-value can be a million
    times too small. So the larger p-value of Welch's test and of the exact test of ranks counts,
    which is valid for any distribution.

    Parameters
    ----------
    left, right : [C, R] times of mpiruns; NaN = missing

    Returns
    -------
    [C] p-values; NaN if Welch's test is NaN
    """
    return np.maximum(welch_chances(left, right), exact_rank_chances(left, right))


def exact_rank_chances(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return p-values of the exact test of ranks by Mann and Whitney, one-sided.

    Equal values do not count as slower, so the test is also valid with ties. With very many
    mpiruns, the normal approximation is used.

    Parameters
    ----------
    left, right : [C, R] values of mpiruns; NaN = missing

    Returns
    -------
    [C] p-values; NaN if a sample is empty

    Examples
    --------
    >>> high, low = np.arange(6.0, 11.0), np.arange(1.0, 6.0)
    >>> exact_rank_chances(high[None], low[None]).round(4)
    array([0.004])
    """
    if left.shape[1] * right.shape[1] > _MOST_EXACT:
        return rank_sum_chances(left, right)
    wins = (left[:, :, None] > right[:, None, :]).sum(axis=(1, 2))
    n, m = ((~np.isnan(side)).sum(axis=1) for side in (left, right))
    found = np.full(len(left), np.nan)
    for pair in {*zip(n.tolist(), m.tolist(), strict=True)}:
        if min(pair):
            rows = (n == pair[0]) & (m == pair[1])
            found[rows] = _shares_of_wins(*pair)[wins[rows]]
    return found


@lru_cache(maxsize=64)
def _shares_of_wins(n: int, m: int) -> FloatArray:
    """Return the probability of at least u wins among n m pairs, for u = 0 ... n m."""
    # Numbers of arrangements are the coefficients of a Gaussian binomial.
    counts = [1] + [0] * (n * m)
    for i in range(1, m + 1):
        for u in range(n * m, n + i - 1, -1):
            counts[u] -= counts[u - n - i]
        for u in range(i, n * m + 1):
            counts[u] += counts[u - i]
    whole, tail = sum(counts), [*accumulate(reversed(counts))][::-1]
    return np.array([each / whole for each in tail])


def moments(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the number, the mean and the variance of the values of each row, [C] each.

    Parameters
    ----------
    values : [C, n]; NaN = missing

    Returns
    -------
    the mean of no value, and the variance of fewer than two, are NaN
    """
    known = ~np.isnan(values)
    count = known.sum(axis=1).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(known, values, 0.0).sum(axis=1) / count
        squares = np.where(known, (values - mean[:, None]) ** 2, 0.0).sum(axis=1)
        return count, mean, np.where(count > 1, squares / (count - 1), np.nan)


def rank_sum_chances(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return p-values of Wilcoxon's rank-sum test, one-sided.

    The test uses the normal approximation with corrections for continuity and ties, as
    ``wilcox.test(exact=FALSE, alternative="greater")`` of R does.

    Parameters
    ----------
    left, right : [C, R] values of mpiruns; NaN = missing

    Returns
    -------
    [C] p-values; NaN if a sample is empty, or all values are equal

    Examples
    --------
    >>> high, low = np.arange(6.0, 11.0), np.arange(1.0, 6.0)
    >>> rank_sum_chances(high[None], low[None]).round(4)
    array([0.0061])
    """
    ranks, ties = _ranked(np.concatenate([left, right], axis=1))
    n, m = ((~np.isnan(side)).sum(axis=1) for side in (left, right))
    total = n + m
    u = np.nansum(ranks[:, : left.shape[1]], axis=1) - n * (n + 1) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
        z = (u - n * m / 2 - 0.5) / np.sqrt(variance)
    known = (n > 0) & (m > 0) & (variance > 0)
    found = np.full(len(left), np.nan)
    found[known] = normal_share(-z[known])
    return found


def smirnov_chances(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return p-values of the test of Kolmogorov and Smirnov, one-sided, by its limit.

    The published code names it as the alternative (``ks.test(alternative="less", exact=FALSE)``).

    Parameters
    ----------
    left, right : [C, R] values of mpiruns; NaN = missing

    Returns
    -------
    [C] p-values; NaN if a sample is empty
    """
    return np.array([_smirnov(*_present(*pair)) for pair in zip(left, right, strict=True)])


def _smirnov(left: FloatArray, right: FloatArray) -> float:
    n, m = len(left), len(right)
    if not n or not m:
        return np.nan
    left, right = np.sort(left), np.sort(right)
    both = np.concatenate([left, right])
    below = np.searchsorted(right, both, "right") / m - np.searchsorted(left, both, "right") / n
    distance = max(float(below.max()), 0.0)
    return float(np.exp(-2.0 * distance**2 * n * m / (n + m)))


def midranks(values: FloatArray) -> FloatArray:
    """Return the ranks of the values of each row, from 1; equal values share their mean rank.

    Parameters
    ----------
    values : [C, n]; NaN = missing, with rank NaN
    """
    return _ranked(values)[0]


def _ranked(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the ranks of each row, and the sum of t**3 - t over its groups of t equal values."""
    order = np.argsort(values, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    place = np.arange(values.shape[1])
    is_first = np.ones(values.shape, bool)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    is_last = np.ones(values.shape, bool)
    is_last[:, :-1] = is_first[:, 1:]
    first = np.maximum.accumulate(np.where(is_first, place, 0), axis=1)
    last = np.where(is_last, place, values.shape[1] - 1)
    last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=1)
    size = (last - first + 1).astype(float)
    ties = np.where(np.isnan(ordered), 0.0, size**2 - 1).sum(axis=1)
    return np.where(np.isnan(values), np.nan, ranks), ties


def _present(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    return left[~np.isnan(left)], right[~np.isnan(right)]
