"""Scatter from day to day: centres of repetitions with their errors, and the scatter of records.

Repetitions of one day share its state of the machine. So they cannot show how much a call path
differs from day to day. A history of days shows it: how large it is, how long it lasts, and how
often a call path is far off. All centres and scatters here are robust: one value in twenty may be
anything.

See docs/explanation/noise-and-bands.md, 'From day to day'.

Arrays in, arrays out: [n] series, [T] records in their order, [R] repetitions; NaN = missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.days import (
    BIWEIGHT,
    BIWEIGHT_ROUNDS,
    CLIPPED,
    CLIPPED_SQUARE,
    FAR_OFF,
    LEAST_CHANCE,
    MOST_CORRELATED,
    MOST_OF_MIDDLE,
    MOST_POOLED_DOF,
    OF_FEW,
    OWN_RECORDS,
    POOLED_DOF,
    RECENT,
    SCALE_ROUNDS,
    SURE_CORRELATION,
    TAIL_POWER,
)
from callpath_modeler.modeling.constants.noise import MEDIAN_VARIANCE
from callpath_modeler.modeling.constants.outcome import OF_NORMAL
from callpath_modeler.modeling.distributions import polygammas
from callpath_modeler.modeling.repetitions import centred


def spread_of_repetitions(logs: FloatArray) -> FloatArray:
    """Return the usual standard deviation of repetitions, by the records so far, [n, T, K].

    Parameters
    ----------
    logs : [n, T, K, R] logarithms of values

    Returns
    -------
    FloatArray
        It belongs to a record and all earlier ones, so later records do not change it. It is
        refreshed whenever half as many more records are known. NaN = there are no repetitions.
    """
    rows, records, scales, repetitions = logs.shape
    off = np.sort(np.abs(logs - _nanmedian(logs)[..., None]), axis=-1)
    count = (~np.isnan(logs)).sum(axis=-1, keepdims=True)
    # The median of an odd number is one of them: its deviation of zero says nothing.
    off[..., :1] = np.where(count % 2 == 1, np.nan, off[..., :1])
    factors = np.full(repetitions + 1, OF_NORMAL)
    for number, factor in OF_FEW.items():
        factors[number : number + 1] = factor
    off = np.moveaxis(off * factors[count], 1, 2).reshape(rows, scales, -1)
    spread = np.full((rows, records, scales), np.nan)
    for first, last in refreshes(records):
        known = slice(max(0, first - RECENT) * repetitions, (first + 1) * repetitions)
        spread[:, first:last] = _nanmedian(off[..., known])[:, None]
    return spread


def refreshes(records: int, first: int = 0) -> list[tuple[int, int]]:
    """Return the parts [first, last) of records within which learnt numbers are the same."""
    parts, begin = [], first
    while begin < records:
        end = min(begin + max(1, min(begin // 2, 16)), records)
        parts.append((begin, end))
        begin = end
    return parts


def _nanmedian(values: FloatArray) -> FloatArray:
    """Return medians over the last axis; NaN = no value."""
    rows = values.reshape(1, -1, values.shape[-1])
    return centred(rows, "median").reshape(values.shape[:-1])


def centre_of_repetitions(logs: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the robust centres of repetitions, and the squared standard errors of the centres.

    The centre is Tukey's biweight about the median, whose scale is the usual spread. Repetitions
    far off have no weight, and the error is that of the others. So it is smaller than that of a
    median, and larger if the repetitions disagree.

    Parameters
    ----------
    logs : [..., R] logarithms of values; NaN = missing
    spread : [...] usual standard deviation of repetitions; NaN = not known

    References
    ----------
    Beaton and Tukey: The fitting of power series, meaning polynomials, illustrated on
    band-spectroscopic data (1974).
    """
    centre, there = _nanmedian(logs), ~np.isnan(logs)
    scale = np.nan_to_num(spread)[..., None]
    weight = there.astype(float)
    for _ in range(BIWEIGHT_ROUNDS):
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.minimum(np.abs(logs - centre[..., None]) / (BIWEIGHT * scale), 1.0)
        weight = np.where(there, (1.0 - np.nan_to_num(off) ** 2) ** 2, 0.0)
        total = weight.sum(axis=-1)
        sums = (weight * np.nan_to_num(logs)).sum(axis=-1)
        centre = np.where(total > 0, sums / np.maximum(total, 1e-9), centre)
    count = there.sum(axis=-1)
    error = np.where(count > 1, scale[..., 0] ** 2 / np.maximum(weight.sum(axis=-1), 0.5), 0.0)
    return centre, error


def risk_of_majorities(logs: FloatArray, centre: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the variance of centres because most repetitions of a record may be odd, [n, T].

    Repetitions that are odd now and then, independently, are sometimes the majority. A robust
    centre then is theirs. How often that happens follows from the share of odd repetitions of a
    call path at all scales so far.

    Parameters
    ----------
    logs : [n, T, K, R] logarithms of values
    centre, spread : [n, T, K] centres of repetitions, and their usual standard deviation
    """
    rows, records, _, repetitions = logs.shape
    there = ~np.isnan(logs)
    off = np.where(there, np.abs(logs - centre[..., None]), 0.0)
    odd = off > BIWEIGHT * np.nan_to_num(spread, nan=np.inf)[..., None]
    counts = [np.cumsum(each.sum(axis=(2, 3)), axis=1) for each in (there, odd, odd * off)]
    number, odds, sums = counts
    share = odds / np.maximum(number, 1)
    usual = np.maximum(there.sum(axis=3).max(axis=(1, 2), initial=1), 1)[:, None]
    chance = np.zeros((rows, records))
    for k in range(1, repetitions + 1):
        ways = np.array([math.comb(int(each), k) for each in usual[:, 0]], float)[:, None]
        term = ways * share**k * (1.0 - share) ** np.maximum(usual - k, 0)
        chance += np.where((2 * k > usual) & (k <= usual), term, 0.0)
    return np.asarray(chance * (sums / np.maximum(odds, 1)) ** 2)


def precision_of_scales(levels: FloatArray, errors: FloatArray) -> FloatArray:
    """Return how much each scale of a call path can tell, [n, K]: the inverse variance of a record.

    Differences of successive records show the scatter, because a change of the level is in one of
    them only. Repetitions show it before records do.

    Parameters
    ----------
    levels : [n, T, K] logarithms of records
    errors : [n, T, K] their squared standard errors by repetitions

    Returns
    -------
    FloatArray
        0 = the scale is missing in most records of this call path.
    """
    there = ~np.isnan(levels)
    steps = np.moveaxis(np.abs(np.diff(levels, axis=1)), 1, -1)
    number = (~np.isnan(steps)).sum(axis=-1)
    seen = np.nan_to_num((OF_NORMAL * _nanmedian(steps)) ** 2 / 2.0) if steps.size else 0.0
    known = there.sum(axis=1)
    error = np.where(there, errors, 0.0).sum(axis=1) / np.maximum(known, 1)
    with np.errstate(invalid="ignore"):
        extra = np.maximum(np.where(number > 0, seen - error, np.nan), 0.0)
    expected = error + np.nan_to_num(_nanmedian(extra.T))
    variance = (POOLED_DOF * expected + number * seen) / (POOLED_DOF + number)
    usual = known >= 0.5 * np.maximum(known.max(axis=1, keepdims=True), 1)
    # A level without any scatter must not take all the weight.
    least = np.maximum(1e-6, 1e-4 * variance.max(axis=1, keepdims=True))
    return np.where(usual & (known > 0), 1.0 / (variance + least), 0.0)


def usual_levels(levels: FloatArray) -> FloatArray:
    """Return the median levels of records [n, T, K], [n, K]; NaN = no record."""
    return _nanmedian(np.moveaxis(levels, 1, -1))


def without_odd_scales(levels: FloatArray, usual: FloatArray, precision: FloatArray) -> FloatArray:
    """Return levels [n, T, K] in which scales far off from the other ones are clipped.

    All scales of a record share its day. So a scale that alone is far off, e.g. because two of its
    three repetitions were disturbed, says nothing about the day. The middle of the scales is their
    median, weighted by precision; of two, it is the one nearer to the usual level.

    Parameters
    ----------
    levels : [n, T, K] logarithms of records
    usual : [n, K] usual levels, about which scales are compared
    precision : [n, K] as `precision_of_scales` tells
    """
    usual = usual[:, None]
    off = levels - usual
    order = np.argsort(off, axis=2)  # NaN comes last
    ordered = np.take_along_axis(off, order, axis=2)
    part = precision / np.maximum(precision.sum(axis=1, keepdims=True), 1e-300)
    # No scale decides alone.
    part = np.minimum(part, MOST_OF_MIDDLE)
    weight = np.take_along_axis(np.broadcast_to(part[:, None], off.shape), order, axis=2)
    running = np.cumsum(np.where(np.isnan(ordered), 0.0, weight), axis=2)
    half = running[..., -1:] / 2.0
    low, high = (
        np.take_along_axis(ordered, np.argmax(reached, axis=2)[..., None], axis=2)
        for reached in (running >= half * (1 - 1e-9), running > half * (1 + 1e-9))
    )
    middle = np.where(np.abs(low) < np.abs(high), low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(precision > 0, 1.0 / precision, 0.0)
        of_middle = (part**2 * variance).sum(axis=1) / np.maximum(part.sum(axis=1), 1e-300) ** 2
        limit = FAR_OFF * np.sqrt(variance + MEDIAN_VARIANCE * of_middle[:, None])[:, None]
    return np.asarray(usual + np.clip(off, middle - limit, middle + limit))


@dataclass(frozen=True, slots=True, eq=False)
class DayScatter:
    """The scatter of series from record to record.

    Attributes
    ----------
    centre : [n] usual level since the last change; NaN = no record
    sd : [n] standard deviation of a record
    correlation : [n] correlation from one record to the next
    dof : [n] degrees of freedom of `sd`
    error : [n] usual squared standard error of a record by its repetitions
    deviation : [n, T] deviations of records in units of `sd`; NaN = missing
    every : deviations of all series in ascending order, for each block of series
    """

    centre: FloatArray
    sd: FloatArray
    correlation: FloatArray
    dof: FloatArray
    error: FloatArray
    deviation: FloatArray
    every: tuple[FloatArray, ...]

    @classmethod
    def joined(cls, blocks: Sequence[DayScatter]) -> DayScatter:
        """Return the scatter of blocks of equally many series, each with tails of its own."""

        def columns(of: Callable[[DayScatter], FloatArray]) -> FloatArray:
            return np.concatenate([of(each) for each in blocks])

        return cls(
            columns(lambda each: each.centre),
            columns(lambda each: each.sd),
            columns(lambda each: each.correlation),
            columns(lambda each: each.dof),
            columns(lambda each: each.error),
            columns(lambda each: each.deviation),
            tuple(every for each in blocks for every in each.every),
        )

    def take(self, row: int) -> DayScatter:
        """Return the scatter of one series."""
        some = slice(row, row + 1)
        return DayScatter(
            self.centre[some],
            self.sd[some],
            self.correlation[some],
            self.dof[some],
            self.error[some],
            self.deviation[some],
            (self._every(row),),
        )

    def _every(self, row: int) -> FloatArray:
        return self.every[row * len(self.every) // len(self.sd)]

    def tail(self, row: int, deviations: FloatArray, sign: float) -> FloatArray:
        """Return how often a record of a series is at least so far off by chance, [m].

        It is the share of the records of all series (Vovk, Gammerman and Shafer: Algorithmic
        learning in a random world, 2005), together with that of the own ones. Beyond the largest
        deviation that was seen, it falls with a power.

        Parameters
        ----------
        row : number of the series
        deviations : [m] in units of `sd`, in the direction of `sign`
        sign : 1 = upwards, -1 = downwards
        """
        every = self._every(row)
        every = every if sign > 0 else -every[::-1]
        own = np.sort(sign * self.deviation[row][~np.isnan(self.deviation[row])])
        of_all, of_own = (len(each) - np.searchsorted(each, deviations) for each in (every, own))
        pooled = (1.0 + of_all) / (len(every) + 1.0)
        shared = (OWN_RECORDS * pooled + of_own) / (OWN_RECORDS + len(own))
        largest = max(float(every[-1]), CLIPPED) if len(every) else CLIPPED
        beyond = np.maximum(deviations / largest, 1.0) ** -TAIL_POWER
        return np.asarray(np.minimum(np.where(of_own > 0, shared, pooled) * beyond, 1.0))


def learnt_scatter(
    values: FloatArray, errors: FloatArray, segment: IntArray, least_sd: float
) -> DayScatter:
    """Return the scatter of series from record to record, by all records.

    Parameters
    ----------
    values : [n, T] levels
    errors : [n, T] squared standard errors by repetitions
    segment : [n, T] number of the level of each record; each one has a centre of its own
    least_sd : smallest standard deviation
    """
    off, centre = _about_centres(values, segment)
    there = ~np.isnan(off)
    number = there.sum(axis=1)
    error = np.where(there, errors, 0.0).sum(axis=1) / np.maximum(number, 1)
    levels = _number_of_levels(segment, there)
    own_dof = np.maximum(number - levels, 0.0)
    variance = _clipped_variance(off, own_dof)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = _correlations(off / np.sqrt(variance)[:, None], number)
    variance = variance * own_dof / np.maximum(_independent(correlation, number), 1e-9)
    pooled, shared = _pooled_variance(variance, error, own_dof)
    total = np.maximum(own_dof + shared, 1.0)
    mixed = (own_dof * variance + shared * pooled) / total
    # Odd repetitions show before they are the majority of a record.
    sd = np.sqrt(np.maximum(mixed, error) + least_sd**2)
    deviation = off / sd[:, None]
    every = np.sort(deviation[there])
    return DayScatter(centre, sd, correlation, total, error, deviation, (every,))


def _about_centres(values: FloatArray, segment: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the deviations from the median of each level, and the newest median."""
    off, centre = np.full(values.shape, np.nan), np.full(len(values), np.nan)
    if not values.size:
        return off, centre
    cuts: dict[bytes, list[int]] = {}
    for row, key in enumerate(np.ascontiguousarray(segment)):
        cuts.setdefault(key.tobytes(), []).append(row)
    for rows in cuts.values():
        numbers = segment[rows[0]]
        for number in np.unique(numbers):
            part = np.ix_(np.array(rows), np.flatnonzero(numbers == number))
            centre[rows] = _nanmedian(values[part])
            off[part] = values[part] - centre[rows][:, None]
    return off, centre


def _number_of_levels(segment: IntArray, there: BoolArray) -> IntArray:
    """Return the number of different levels with a value, [n]."""
    if not segment.shape[1]:
        return np.zeros(len(segment), np.intp)
    begins = np.diff(segment, axis=1, prepend=segment[:, :1] - 1) != 0
    return np.where(there.any(axis=1), begins.sum(axis=1), 0)


def _clipped_variance(off: FloatArray, dof: FloatArray) -> FloatArray:
    """Return robust variances about centres, [n] (Huber's proposal 2)."""
    there, number = ~np.isnan(off), (~np.isnan(off)).sum(axis=1)
    variance = np.nan_to_num((OF_NORMAL * _nanmedian(np.abs(off))) ** 2) if off.size else 0.0
    variance = np.broadcast_to(variance, number.shape)
    squares = np.where(there, np.nan_to_num(off) ** 2, 0.0)
    lost = number / np.maximum(dof, 1.0) / CLIPPED_SQUARE
    for _ in range(SCALE_ROUNDS):
        clipped = np.minimum(squares, CLIPPED**2 * variance[:, None])
        variance = clipped.sum(axis=1) / np.maximum(number, 1) * lost
    return np.asarray(variance)


def _pooled_variance(
    variance: FloatArray, error: FloatArray, dof: FloatArray
) -> tuple[FloatArray, float]:
    """Return the variance that all series together suggest for each, [n], and its weight.

    The weight is in degrees of freedom. It is large if the variances of all series have one ratio
    to the errors by repetitions, or are equal if there are no repetitions (Smyth: Linear models and
    empirical Bayes methods, 2004).
    """
    known = (dof > 0) & (variance > 0)
    base = error if (error[known] > 0).all() else np.ones(len(error))
    if known.sum() < 2:
        is_repeated = bool((error > 0).any())
        return np.where(error > 0, error, 0.0), POOLED_DOF * is_repeated
    half = dof[known] / 2.0
    first, second, _ = polygammas(half)
    logs = np.log(variance[known] / base[known]) - first + np.log(half)
    middle = float(np.median(logs))
    scale = OF_NORMAL * float(np.median(np.abs(logs - middle)))
    clipped = np.clip(logs, middle - CLIPPED * scale, middle + CLIPPED * scale)
    spread = max(scale**2, float(np.var(clipped)))
    # Half the weight is the inverse of the trigamma function, which is 1/x + 1/(2 x^2) for large x.
    real = max(spread - float(second.mean()), 1.0 / MOST_POOLED_DOF)
    weight = min(2.0 * (0.5 + 1.0 / real), MOST_POOLED_DOF)
    return np.asarray(base * np.exp(middle)), weight


def _independent(correlation: FloatArray, number: IntArray) -> FloatArray:
    """Return by what to divide sums of squares about means of correlated records, [n]."""
    size, rho = np.maximum(number, 1).astype(float), correlation
    geometric = rho * (1.0 - rho**size) / (1.0 - rho)
    sums = 2.0 * rho / (1.0 - rho) - 2.0 * geometric / (size * (1.0 - rho))
    return np.asarray(np.where(number > 1, size - 1.0 - sums, 0.0))


def _correlations(deviation: FloatArray, number: IntArray) -> FloatArray:
    """Return correlations from record to record, [n].

    None is smaller than that of all series together, because all share one machine. The noise of
    single records hides part of it, which the correlation over two records shows.
    """
    clipped = np.clip(np.nan_to_num(deviation), -CLIPPED, CLIPPED)
    known = (number > 3) & (clipped != 0).any(axis=1)
    if not known.any():
        return np.zeros(len(deviation))
    size = np.maximum(number, 1).astype(float)
    raw, next_one = (_lagged(clipped, size, known, lag) for lag in (1, 2))
    weight = np.where(known, size, 0.0)
    pooled, over_two = ((weight * each).sum() / weight.sum() for each in (raw, next_one))
    if pooled > SURE_CORRELATION / np.sqrt(weight.sum()):
        pooled = max(pooled, over_two / pooled)
    pooled = float(np.clip(pooled, 0.0, MOST_CORRELATED))
    chance = np.maximum(1.0 - pooled**2, LEAST_CHANCE) / size
    seen = float((weight * (raw - pooled) ** 2).sum() / weight.sum())
    real = max(seen - float((weight * chance).sum() / weight.sum()), 0.0)
    own = pooled + real / np.maximum(real + chance, 1e-12) * (raw - pooled)
    return np.asarray(np.clip(np.maximum(own, pooled), 0.0, MOST_CORRELATED))


def _lagged(clipped: FloatArray, size: FloatArray, known: BoolArray, lag: int) -> FloatArray:
    """Return correlations over some records, [n]; 0 = not known."""
    square = (clipped**2).sum(axis=1)
    product = (clipped[:, lag:] * clipped[:, :-lag]).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The mean is estimated, so that products are too small (Kendall 1954).
        raw = (product / square * size / (size - lag) + 1.0 / size) / np.maximum(
            1.0 - 3.0 / size, 0.25
        )
    return np.where(known, np.clip(raw, -1.0, MOST_CORRELATED), 0.0)
