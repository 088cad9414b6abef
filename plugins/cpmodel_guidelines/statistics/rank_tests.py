"""One-sided tests of two samples, as PGMPI publishes them.

Both tests ask whether the left sample is greater. Neither knows other checks: error rates of many
checks are the matter of `adjustment`.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.distributions import normal_share


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
    return np.array([_rank_sum(*_present(*pair)) for pair in zip(left, right, strict=True)])


def _rank_sum(left: FloatArray, right: FloatArray) -> float:
    n, m = len(left), len(right)
    if not n or not m:
        return np.nan
    both = np.concatenate([left, right])
    u = float(midranks(both[None])[0][:n].sum()) - n * (n + 1) / 2
    _, ties = np.unique(both, return_counts=True)
    total = n + m
    variance = n * m / 12 * (total + 1 - float((ties**3 - ties).sum()) / (total * (total - 1)))
    if variance <= 0:
        return np.nan
    return float(normal_share(-(u - n * m / 2 - 0.5) / np.sqrt(variance)))


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
    return np.where(np.isnan(values), np.nan, ranks)


def _present(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    return left[~np.isnan(left)], right[~np.isnan(right)]
