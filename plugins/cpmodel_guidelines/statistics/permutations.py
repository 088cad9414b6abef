"""Error rates of many checks, also by permutations of mpiruns.

If a guideline just holds, both sides take equally long, and the labels left and right of the
mpiruns could be exchanged. So the test exchanges them, in the same way for all checks. That keeps
the correlation of message sizes and guidelines in an mpirun, whatever it is. A statistic is
compared with the distribution over permutations of the largest absolute statistic of all checks
(Westfall and Young: Resampling-based multiple testing, 1993). Both directions count, so the rate
also holds if the labels of all mpiruns are exchanged.

The statistic is Welch's t of logarithms of medians. Besides the checks, the family has the mean of
all checks of each guideline. The mean over sizes is computed inside each mpirun, so mpiruns remain
the units of repetition. It finds violations that are small and occur at all sizes.

A family is all checks of one answer. The family-wise error rate is the probability that any check
of the family is called violated by chance. The false discovery rate is the expected share of checks
called violated by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from math import comb

import numpy as np

from callpath_modeler.analysis.changes import false_discovery_rate
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from cpmodel_guidelines.statistics.two_sample_tests import midranks

_DRAWS = 1000
_MOST_DRAWS = 20_000
_PER_RATE = 20
"""Least number of permutations, times the error rate."""
_EXHAUSTIVE = 4000
"""Number of permutations up to which all of them are used."""
_AT_ONCE = 1 << 17
"""Statistics that are computed at a time; they fit into the cache of a processor."""
_LEAST_VARIANCE = 1e-18
_ROUNDING = 1e-9
_SEED = 20160926


@dataclass(frozen=True, slots=True, eq=False)
class PermutationTest:
    """Result of a test by permutations.

    Attributes
    ----------
    rate : [C] family-wise error rate at which each check is called violated; NaN = not tested
    means : [G] the same for the mean of each guideline
    difference, error : [G] mean logarithm of left over right of each guideline, and its standard
        error
    critical : statistic from which a check is called violated at the given error rate
    """

    rate: FloatArray
    means: FloatArray
    difference: FloatArray
    error: FloatArray
    critical: float


def smallest_rate(left: int, right: int) -> float:
    """Return the smallest family-wise error rate that numbers of mpiruns can show.

    Both directions count, so the permutation that exchanges both sides is as extreme as none.

    >>> round(smallest_rate(5, 5), 4), round(smallest_rate(3, 3), 4)
    (0.0079, 0.1)
    """
    return 2 / comb(left + right, left)


def permutation_test(
    left: FloatArray,
    right: FloatArray,
    can_break: BoolArray,
    guidelines: Sequence[IntArray],
    rate: float,
    *,
    by_ranks: bool = False,
) -> PermutationTest:
    """Return the error rates of checks and of guidelines.

    Parameters
    ----------
    left, right : [C, R] times of both sides in each mpirun; NaN = missing
    can_break : [C] whether a check belongs to the family
    guidelines : rows of the checks of each of G guidelines
    rate : family-wise error rate of the answer
    by_ranks : compare ranks of times instead of their logarithms
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        slots = np.log(np.concatenate([left, right], axis=1))
    slots[~np.isfinite(slots)] = np.nan
    width = left.shape[1]
    if by_ranks:
        slots = midranks(slots)
    counts = [(~np.isnan(half)).sum(axis=1) for half in (slots[:, :width], slots[:, width:])]
    pairs = [*zip(*(count.tolist() for count in counts), strict=True)]
    can_show = {pair: min(pair) > 1 and smallest_rate(*pair) <= rate for pair in {*pairs}}
    enough = np.array([can_show[pair] for pair in pairs], bool)
    tested = enough & can_break
    centred = slots - _row_means(slots)
    means = np.array([_mean_of(centred, rows[tested[rows]]) for rows in guidelines]).reshape(
        len(guidelines), slots.shape[1]
    )
    rows = np.concatenate([np.where(tested[:, None], centred, np.nan), means])
    labels = _Labels.of(rows, width, rate)
    observed, error = labels.observed(rows)
    largest = labels.largest(rows)
    known = np.isfinite(observed)
    found = np.full(len(rows), np.nan)
    # Rounding must not make the permutation that exchanges nothing smaller than itself.
    limit = observed[known] - _ROUNDING * np.maximum(1.0, np.abs(observed[known]))
    ordered = np.sort(largest)
    found[known] = (len(ordered) - np.searchsorted(ordered, limit, "left")) / max(len(ordered), 1)
    count = len(left)
    difference = observed[count:] * error[count:]
    critical = float(np.quantile(ordered, 1 - rate)) if len(ordered) else np.nan
    return PermutationTest(found[:count], found[count:], difference, error[count:], critical)


def _row_means(values: FloatArray) -> FloatArray:
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=1, keepdims=True)
    means: FloatArray = total / np.maximum(known.sum(axis=1, keepdims=True), 1)
    return means


def _mean_of(centred: FloatArray, rows: IntArray) -> FloatArray:
    """Return the mean over the checks of a guideline in each mpirun, [2 R]; NaN = one check."""
    if len(rows) < 2:
        return np.full(centred.shape[1], np.nan)
    known = ~np.isnan(centred[rows])
    count = known.sum(axis=0)
    total = np.where(known, centred[rows], 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """Permutations of the labels left and right.

    Attributes
    ----------
    keys : [B, 2 R] random keys, the same for all checks; empty = all permutations
    width : number of columns of the left side
    patterns : present columns of each pattern of missing values
    of_row : number of the pattern of each row; -1 = not tested
    """

    keys: FloatArray
    width: int
    patterns: tuple[BoolArray, ...]
    of_row: IntArray

    @classmethod
    def of(cls, rows: FloatArray, width: int, rate: float) -> _Labels:
        """Return the permutations for rows with their patterns of missing values."""
        present = ~np.isnan(rows)
        distinct, of_row = np.unique(present, axis=0, return_inverse=True)
        of_row = of_row.ravel().copy()
        patterns = tuple(distinct)
        few = [min(int(p[:width].sum()), int(p[width:].sum())) < 2 for p in patterns]
        of_row[np.array(few, bool)[of_row]] = -1
        used = {*of_row.tolist()} - {-1}
        draws = int(min(max(_DRAWS, _PER_RATE / rate), _MOST_DRAWS))
        if len(used) == 1:
            (only,) = used
            n, m = int(patterns[only][:width].sum()), int(patterns[only][width:].sum())
            if comb(n + m, n) <= max(draws, _EXHAUSTIVE):
                return cls(np.empty((0, rows.shape[1])), width, patterns, of_row)
        keys = np.random.default_rng(_SEED).random((draws, rows.shape[1]))
        # The first permutation exchanges nothing.
        keys[0] = np.arange(rows.shape[1]) / rows.shape[1]
        return cls(keys, width, patterns, of_row)

    def observed(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the statistic and the standard error of each row without any exchange."""
        found, error = np.full((2, len(rows)), np.nan)
        for number, pattern in enumerate(self.patterns):
            of = np.flatnonzero(self.of_row == number)
            if len(of):
                is_left = (np.arange(rows.shape[1]) < self.width)[pattern]
                t, e = _welch(rows[of][:, pattern], is_left[None].astype(float))
                found[of], error[of] = t[0], e[0]
        return found, error

    def largest(self, rows: FloatArray) -> FloatArray:
        """Return the largest absolute statistic of all rows in each permutation, [B]."""
        largest: FloatArray | None = None
        for number, pattern in enumerate(self.patterns):
            of = np.flatnonzero(self.of_row == number)
            if not len(of):
                continue
            labels = self._labels(pattern)
            step = max(1, _AT_ONCE // len(labels))
            for start in range(0, len(of), step):
                t, _ = _welch(rows[of[start : start + step]][:, pattern], labels)
                here = np.abs(t).max(axis=1)
                largest = here if largest is None else np.maximum(largest, here)
        return np.empty(0) if largest is None else largest

    def _labels(self, pattern: BoolArray) -> FloatArray:
        """Return which present values are on the left side in each permutation, [B, n]."""
        count, size = int(pattern[: self.width].sum()), int(pattern.sum())
        if not len(self.keys):
            chosen = np.array([*combinations(range(size), count)])
            labels = np.zeros((len(chosen), size))
            np.put_along_axis(labels, chosen, 1.0, axis=1)
            return labels
        order = np.argsort(self.keys[:, pattern], axis=1)
        labels = np.zeros(order.shape)
        np.put_along_axis(labels, order[:, :count], 1.0, axis=1)
        return labels


def _welch(values: FloatArray, labels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Welch's t and its standard error for each labelling and row, [B, C].

    Parameters
    ----------
    values : [C, n] centred values
    labels : [B, n] 1 = left
    """
    left = labels.sum(axis=1, keepdims=True)
    right = values.shape[1] - left
    total, squares = values.sum(axis=1), (values**2).sum(axis=1)
    of_left = labels @ values.T
    of_right = total - of_left
    squares_of_left = labels @ (values**2).T
    # The variance of a mean is a sum of squares about it, over n (n - 1).
    variance = (squares_of_left - of_left**2 / left) / (left * (left - 1))
    variance += (squares - squares_of_left - of_right**2 / right) / (right * (right - 1))
    # Cancellation leaves a rounding error that depends on the size of the values.
    error = np.sqrt(np.maximum(variance, np.maximum(_LEAST_VARIANCE, 1e-14 * squares)))
    return (of_left / left - of_right / right) / error, error


class Control(StrEnum):
    """Error rate that is controlled, and the method."""

    PERMUTATION = "permutation"  # family-wise, by permutations of mpiruns
    HOLM = "holm"  # family-wise, for any dependence of checks
    DISCOVERY = "bh"  # false discoveries, by Benjamini and Hochberg
    NONE = "none"  # each check on its own, as published


def adjusted(chance: FloatArray, control: Control, kinds: IntArray) -> FloatArray:
    """Return the error rate at which each check is called violated.

    Holm's method gives each kind of guideline the same part of the rate. Otherwise the many checks
    of splitting would hide all others.

    Parameters
    ----------
    chance : [C] p-values; NaN = no test
    control : any control except permutations
    kinds : [C] number of the kind of guideline

    Examples
    --------
    >>> chance, one = np.array([0.01, 0.04, 0.02]), np.zeros(3, int)
    >>> adjusted(chance, Control.HOLM, one).tolist()
    [0.03, 0.04, 0.04]
    """
    if control is Control.NONE:
        return chance
    if control is Control.DISCOVERY:
        return false_discovery_rate(chance)
    found = np.full(len(chance), np.nan)
    used = np.unique(kinds[~np.isnan(chance)])
    for kind in used:
        rows = kinds == kind
        found[rows] = np.minimum(len(used) * _holm(chance[rows]), 1.0)
    return found


def _holm(chance: FloatArray) -> FloatArray:
    tested = np.flatnonzero(~np.isnan(chance))
    order = tested[np.argsort(chance[tested], kind="stable")]
    rate = np.full(len(chance), np.nan)
    # Holm: A simple sequentially rejective multiple test procedure, 1979.
    times = np.arange(len(order), 0, -1)
    rate[order] = np.minimum(np.maximum.accumulate(chance[order] * times), 1.0)
    return rate
