"""Evidence of a change of the mean in a series, valid at any number of looks.

The evidence is the Bayes factor of two means against one, with an unknown variance (Gönen,
Johnson, Lu and Westfall: The Bayesian two-sample t test, 2005). Its expectation is 1 if the values
are normal and nothing changed, at every time a reader stops looking (Hendriksen, de Heide and
Grünwald: Optional stopping with Bayes factors, 2021). So an average of such factors exceeds 1/a at
any time with a probability of at most a (Ville's inequality). The average is over all records at
which the series may have changed, and its weights add up to at most 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.distributions import student_quantile

SPREADS = (1.0, 10.0, 100.0, 1000.0)
"""Variances of the size of a change, in variances of one value; they have equal weights."""

_LEAST_BEFORE = 2
"""Fewest values before a change."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Running sums of series, from which the mean and scatter of any part follow.

    Attributes
    ----------
    columns : [n, T + 1, 4] number of values before a record, their sum, the sum of squares, and the
        sum of their squared errors
    """

    columns: FloatArray

    @classmethod
    def of(cls, values: FloatArray, errors: FloatArray) -> Sums:
        """Return the sums of series [n, T]; NaN = missing."""
        filled, there = np.nan_to_num(values), ~np.isnan(values)
        columns = np.stack([there, filled, filled**2, np.where(there, errors, 0.0)], axis=-1)
        return cls(np.pad(np.cumsum(columns, axis=1), ((0, 0), (1, 0), (0, 0))))

    def of_row(self, row: int) -> Sums:
        """Return the sums of one series."""
        return Sums(self.columns[[row]])

    def before(self, records: IntArray) -> FloatArray:
        """Return the sums of the values before some records [n, w], [n, w, 4]."""
        return np.asarray(self.columns[np.arange(len(records))[:, None], records])


def _moments(sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return number, mean and squared deviations of the values whose sums are given."""
    count, total, squares = np.moveaxis(sums[..., :3], -1, 0)
    mean = total / np.maximum(count, 1.0)
    return count, mean, np.maximum(squares - count * mean**2, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """Comparisons of the values before and after possible changes, [n, w]; NaN = too few values.

    Attributes
    ----------
    difference : mean after minus mean before
    t : difference over its standard error
    dof : degrees of freedom
    size : effective number of values, of which the standard error is that of a mean
    """

    difference: FloatArray
    t: FloatArray
    dof: FloatArray
    size: FloatArray

    def take(self, rows: IntArray | slice) -> Splits:
        """Return the comparisons of some series."""
        return Splits(self.difference[rows], self.t[rows], self.dof[rows], self.size[rows])


def splits(
    sums: Sums, start: IntArray, change: IntArray, end: IntArray, least_after: int, least_sd: float
) -> Splits:
    """Return the comparisons of series before and after possible changes.

    Parameters
    ----------
    sums : running sums of series
    start : [n, w] first record before each change
    change : [n, w] first record after it
    end : [n, w] number of records that are compared
    least_after : fewest values after a change
    least_sd : standard deviation below which values do not count as scattered
    """
    first, middle, last = (sums.before(each) for each in (start, change, end))
    before, mean_before, squares_before = _moments(middle - first)
    after, mean_after, squares_after = _moments(last - middle)
    by_repetitions = (last - first)[..., 3] / np.maximum(before + after, 1.0)
    enough = (before >= _LEAST_BEFORE) & (after >= least_after)
    dof = np.where(enough, before + after - 2.0, np.nan)
    size = np.where(enough, before * after / np.maximum(before + after, 1.0), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        # Odd repetitions show in single records before they move the centre of one.
        scatter = np.maximum((squares_before + squares_after) / dof, by_repetitions)
        variance = scatter + least_sd**2
        difference = np.where(enough, mean_after - mean_before, np.nan)
        return Splits(difference, difference / np.sqrt(variance / size), dof, size)


def log_factors(t: FloatArray, dof: FloatArray, size: FloatArray) -> FloatArray:
    """Return the logarithm of the Bayes factor of a change; NaN becomes minus infinity.

    Parameters
    ----------
    t, dof, size : as in `Splits`, any shape
    """
    found = np.full(t.shape, -np.inf)
    with np.errstate(invalid="ignore"):
        for spread in SPREADS:
            wider = 1.0 + spread * size
            gain = np.log1p(t**2 / dof) - np.log1p(t**2 / (dof * wider))
            found = np.logaddexp(found, (dof + 1.0) / 2.0 * gain - 0.5 * np.log(wider))
    return np.where(np.isnan(t), -np.inf, found - np.log(len(SPREADS)))


def largest_log_factors(found: Splits) -> FloatArray:
    """Return bounds of the log Bayes factors, [n, w], which are much faster to compute."""
    with np.errstate(invalid="ignore"):
        bound = (found.dof + 1.0) / 2.0 * np.log1p(found.t**2 / found.dof)
    return np.where(np.isnan(bound), -np.inf, bound)


def crowd(found: Splits, few: float) -> FloatArray:
    """Return by how much all series deviate more than chance explains, [w]; at least 1.

    A share `few` of the series, and at least one of several, may deviate by any amount; none may
    if the share is 0. The others are an empirical null distribution (Efron: Large-scale
    simultaneous hypothesis testing, 2004): an event of many series at once is no change of one of
    them.

    Parameters
    ----------
    found : comparisons of all series
    few : share of the series that may change together; 0 = none may change
    """
    t, there = found.t, ~np.isnan(found.t)
    count = there.sum(axis=0)
    most = np.maximum(count - 1, 0)
    on_their_own = np.minimum(np.maximum(np.floor(few * count), few > 0), most)
    ordered = np.sort(np.where(there, np.abs(t), -1.0), axis=0)  # missing ones come first
    seen = ordered[len(t) - 1 - on_their_own.astype(int), np.arange(t.shape[1])]
    share = 1.0 - (on_their_own if few else 0.5) / np.maximum(count, 1) / 2.0
    dof = np.where(there, found.dof, 1.0).max(axis=0, initial=1.0)
    return np.asarray(np.maximum(seen / student_quantile(dof, share), 1.0))


def record_weights(number: int) -> FloatArray:
    """Return weights of the records at which a series may have changed, [number].

    The weights of all records to come add up to 1, and decrease little faster than 1/number.
    """
    return _telescoped(np.arange(1.0, number + 1.0))


def _telescoped(k: FloatArray) -> FloatArray:
    return np.asarray(1.0 / np.log2(k + 1.0) - 1.0 / np.log2(k + 2.0))


def series_weights(first: IntArray, cost: FloatArray) -> FloatArray:
    """Return the share of each series in the false-alarm rate, [n].

    Series that were there earlier have larger shares, and so have costlier ones among them. The
    shares add up to at most 1, even with those of series that appear later.

    Parameters
    ----------
    first : [n] first record of each series
    cost : [n] cost in this record, e.g. in seconds
    """
    shares = np.empty(len(cost))
    shares[np.lexsort((-cost, first))] = _telescoped(np.arange(1.0, len(cost) + 1.0))
    return shares
