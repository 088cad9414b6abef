"""Measured values at a scale that was run: a centre with its confidence interval.

Few repetitions estimate their own noise badly. So the noise is estimated from all call paths of the
metric, as in a comparison of two experiments. Times differ by factors, so the statistics use
logarithms. The variance of a call path is shrunk towards that of all, but never below the variance
of its own repetitions. Sums over call paths are made run by run. A run that is slow as a
whole widens their intervals, and cancels in shares.

Without a repetition at any scale, the noise is the deviation of the measurements from the models.
A value that is zero in some runs has no logarithm there. Its interval follows from Student's t of
the runs themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.analysis.uncertain import Band
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import centre as centre_of
from callpath_modeler.modeling.constants.noise import EXACT_VARIANCE
from callpath_modeler.modeling.distributions import student_quantile
from callpath_modeler.modeling.mixture.scaled_rows import (
    Pool,
    RepetitionStats,
    noise_of,
    pooled,
    profile_of,
    row_spread,
)

_ROUNDING = 1e-9
"""Part of the cost of a program below which a rest is a rounding error."""


def deviation_of_models(fitted: Fitted, *, inclusive: bool) -> tuple[FloatArray, FloatArray]:
    """Return the deviations from the models, as the noise of unrepeated measurements.

    Parameters
    ----------
    inclusive : True for values that include callees

    Returns
    -------
    variance, dof : [call paths + 1], relative variance of one measurement and its degrees of
        freedom (Welch-Satterthwaite); the last entry belongs to the whole program
    """
    columns = deviation_addends(fitted)
    rows = fitted.experiment.tree.inclusive(columns) if inclusive else columns
    return deviation_of_sums(np.vstack([rows, columns.sum(axis=0)]))


def deviation_addends(fitted: Fitted, point: int = -1) -> FloatArray:
    """Return additive numbers for `deviation_of_sums` at a point, [call paths, 3]."""
    models, value = fitted.models, np.nan_to_num(fitted.measured[:, point])
    modelled = fitted.modelled
    if not modelled.any():
        return np.full((len(value), 3), np.nan)
    # A call path without a model deviates like most others.
    spread, dof = (
        np.where(modelled, x, np.median(x[modelled])) for x in (models.spread_at(value), models.dof)
    )
    squares = (spread * value) ** 2
    share = squares**2 / np.maximum(np.nan_to_num(dof), 1.0)
    return np.column_stack([value, squares, share])


def deviation_of_sums(added: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return relative variances and degrees of freedom of sums, from sums of addends [n, 3]."""
    whole, squares, share = added.T
    with np.errstate(divide="ignore", invalid="ignore"):
        return squares / whole**2, squares**2 / share


def deviation_of_shares(part: FloatArray, whole: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return relative variances and degrees of freedom of shares, from sums of addends.

    The part and the rest of the program deviate independently.

    Parameters
    ----------
    part : [n, 3] sums of addends over the parts
    whole : [3] sum over the program
    """
    rest = np.maximum(whole - part, 0.0)
    (of_part, dof), (of_rest, dof_rest) = deviation_of_sums(part), deviation_of_sums(rest)
    is_all = rest[:, 0] <= _ROUNDING * whole[0]
    of_rest, dof_rest = np.where(is_all, 0.0, of_rest), np.where(is_all, 1.0, dof_rest)
    both = of_part + of_rest
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = both**2 / (of_part**2 / dof + of_rest**2 / dof_rest)
        share = part[:, 0] / whole[0]
    return (1 - share) ** 2 * both, freedom


_CHUNK = 16_384
"""Rows that are processed at a time, because logarithms take as much memory as the values."""


class Sample(Struct, frozen=True, eq=False):
    """Repetitions of n values at one scale.

    Attributes
    ----------
    centre : [n] geometric mean; NaN = not measured, or only zeros
    count : [n] number of repetitions
    variance : [n] variance of the logarithm of one repetition; NaN = unknown
    dof : [n] degrees of freedom of `variance`
    """

    centre: FloatArray
    count: FloatArray
    variance: FloatArray
    dof: FloatArray

    @property
    def is_repeated(self) -> bool:
        """True if repetitions show the noise."""
        return not np.isnan(self.variance).all()

    def reach(self, confidence: float) -> FloatArray:
        """Return half the width of the confidence interval of a centre, in logarithms, [n].

        It follows from Student's t. It is 0 if repetitions agree at every scale, and NaN if the
        noise is not known.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt(self.variance / self.count)
            reach = student_quantile(self.dof, 0.5 + confidence / 2) * error
        return np.where(self.variance <= EXACT_VARIANCE, 0.0, reach)


def pool_of(values: FloatArray) -> Pool:
    """Return the pooled scatter of repetitions of `values` [n, K, R] over all points and rows."""
    parts = [row_spread(_in_logarithms(part)) for part in in_chunks(values)]
    raw, dof, size = (np.concatenate(column) for column in zip(*parts, strict=True))
    some = values[:: len(values) // _CHUNK + 1]
    return pooled(raw, dof, size, profile_of(_in_logarithms(some)))


def in_chunks(values: FloatArray) -> list[FloatArray]:
    """Return rows [n, ...] as at least one array, each small enough for intermediate results."""
    return np.array_split(values, len(values) // _CHUNK + 1)


def sample_at(values: FloatArray, point: int, pool: Pool | None = None) -> Sample:
    """Return the sample of repetitions at one point, with the noise of all points and rows.

    Parameters
    ----------
    values : [n, K, R]; NaN = missing. A zero has no logarithm and is treated as missing
    point : index of the point
    pool : noise of a larger set of rows; None = these rows are the set
    """
    within = _in_logarithms(values)
    noise = noise_of(within, 1.0) if pool is None else pool.noise(within, 1.0)
    count, squares = within.count, within.squares
    effective = count.sum(axis=1) / np.maximum((count > 0).sum(axis=1), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The weight of a point is by its repetitions and by how it scatters, against all points.
        steadiness = noise.weight[:, point] * effective / count[:, point]
        variance = noise.variance * np.maximum(effective, 1.0) / steadiness
        # One spike in a thousand runs is in no variance of others: what is seen here counts.
        own = squares[:, point] / np.maximum(count[:, point] - 1, 1.0)
    variance = np.where(noise.variance <= EXACT_VARIANCE, EXACT_VARIANCE, np.maximum(variance, own))
    if not noise.is_known:
        variance = np.full(len(values), np.nan)
    return Sample(within.centre[:, point], count[:, point], variance, noise.dof)


def _in_logarithms(values: FloatArray) -> RepetitionStats:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values > 0, np.log(values), np.nan)
    count = (~np.isnan(logs)).sum(axis=2).astype(np.float64)
    mean = np.where(count > 0, np.nansum(logs, axis=2) / np.maximum(count, 1.0), np.nan)
    squares = np.nansum((logs - mean[:, :, None]) ** 2, axis=2)
    return RepetitionStats(np.exp(mean), count, squares)


Sums = Callable[[FloatArray], FloatArray]
"""Sums over some call paths of values [call paths, ...]; NaN = none of them occurs."""

_MOST = 1000
"""Largest number of repetitions that is recommended."""


@dataclass(frozen=True, eq=False)
class Measured:
    """Measured values at the scales of the models.

    Attributes
    ----------
    fitted : the models
    """

    fitted: Fitted

    @property
    def runs(self) -> FloatArray:
        """Values of every run, [call paths, K, R]; NaN = did not occur, or no such run."""
        return self.fitted.runs

    @cached_property
    def _pool(self) -> Pool:
        return pool_of(self.runs)

    @cached_property
    def _totals(self) -> FloatArray:
        """Totals of the program, [1, K, R]; NaN = no such run."""
        return sum_over(self.runs)[None]

    @cached_property
    def is_repeated(self) -> bool:
        """True if any scale was repeated. The repetitions then show the noise."""
        return self._pool.is_known

    def deviations(self, point: int) -> FloatArray | None:
        """Return additive numbers for the noise at a point, [call paths, 3].

        None = repetitions show the noise, or there are no models.
        """
        if self.is_repeated or not self.fitted.modelled.any():
            return None
        return deviation_addends(self.fitted, point)

    @cached_property
    def _pool_of_shares(self) -> Pool:
        return pool_of(_ratio(self.runs, self._totals))

    def point(self, target: float) -> int | None:
        """Return the index of the point at a target; None = it was not run, so models predict."""
        return self._points.get(target)

    @cached_property
    def _points(self) -> dict[float, int]:
        """Index of each point that was run, by its scale."""
        fitted = self.fitted
        if fitted.held != fitted.measured_at:
            return {}
        return {scale: k for k, scale in enumerate(fitted.points.tolist())}

    @cached_property
    def occurs(self) -> BoolArray:
        """True where a call path occurs, [call paths, K]."""
        return np.asarray(~np.isnan(self.fitted.measured))

    def repetitions(self, point: int) -> int:
        """Return the number of runs of a point."""
        return len(self.totals(point))

    def totals(self, point: int) -> FloatArray:
        """Return the total of each run of a point, [runs]."""
        totals = self._totals[0, point]
        return np.asarray(totals[~np.isnan(totals)])

    def deciding_repetitions(
        self, point: int, found: tuple[float, float, float], bound: float
    ) -> int | None:
        """Return the number of repetitions that would show on which side of a bound a centre lies.

        It assumes the present centre and scatter. Intervals narrow with the square root of the
        number of repetitions.

        Parameters
        ----------
        point : index of the point
        found : value, lower and upper end there
        bound : the bound inside the interval

        Returns
        -------
        int or None
            None if the number is unrealistic.
        """
        value, low, high = found
        if not (bound > 0 and 0 < low < high):
            return None
        beside, reach = abs(np.log(bound / value)), np.log(high / low) / 2
        if beside <= reach * np.sqrt(self.repetitions(point) / _MOST):
            return None
        return int(np.ceil(self.repetitions(point) * (reach / beside) ** 2))

    def values(self, sums: Sums, point: int, confidence: float) -> Band:
        """Return measured values with confidence intervals at a point.

        Parameters
        ----------
        sums : sums over some call paths
        point : index of the point
        confidence : confidence of the intervals

        Returns
        -------
        Band
            Centres of the sums with intervals; NaN = not measured. NaN ends = the noise is not
            known.
        """
        band = self._without_limit(sums, point, confidence)
        high = np.minimum(band.high, self.most(point, confidence))
        return Band(band.value, band.low, high, band.measured)

    def _without_limit(self, sums: Sums, point: int, confidence: float) -> Band:
        """Return the values whose intervals may end above that of the total."""
        centre = sums(self.fitted.measured[:, point])
        own = self.deviations(point)
        noise = None if own is None else sums(own)
        band = self.interval(centre, sums(self.runs), point, confidence, noise)
        return within(band, *np.moveaxis(sums(self.ends_of_call_paths(point, confidence)), -1, 0))

    def most(self, point: int, confidence: float) -> float:
        """Return the upper end of the total, which no call path exceeds; inf = not known."""
        if not self.fitted.metric.additive:
            return np.inf
        return float(np.nan_to_num(self.total(point, confidence).high[0], nan=np.inf))

    def total(self, point: int, confidence: float) -> Band:
        """Return the sum over all call paths at a point with its confidence interval, [1]."""
        key = point, confidence
        if key not in self._intervals_of_totals:
            self._intervals_of_totals[key] = self._without_limit(
                lambda columns: sum_over(columns)[None], point, confidence
            )
        return self._intervals_of_totals[key]

    @cached_property
    def _intervals_of_totals(self) -> dict[tuple[int, float], Band]:
        """Results of `total` so far."""
        return {}

    def ends_of_call_paths(self, point: int, confidence: float) -> FloatArray:
        """Return the ends of the interval of each call path at a point, [call paths, 2].

        NaN = did not occur. Ends that are not known are 0 and infinity.
        """
        key = point, confidence
        if key not in self._ends:
            centre = np.asarray(self.fitted.measured[:, point])
            band = self.interval(centre, self.runs, point, confidence, self.deviations(point))
            is_there = ~np.isnan(centre)
            low = np.where(is_there, np.nan_to_num(band.low), np.nan)
            high = np.where(is_there, np.nan_to_num(band.high, nan=np.inf), np.nan)
            self._ends[key] = np.column_stack([low, high])
        return self._ends[key]

    @cached_property
    def _ends(self) -> dict[tuple[int, float], FloatArray]:
        """Results of `ends_of_call_paths` so far."""
        return {}

    def interval(
        self,
        centre: FloatArray,
        runs: FloatArray,
        point: int,
        confidence: float,
        deviations: FloatArray | None = None,
    ) -> Band:
        """Return measured values with confidence intervals at a point, from their runs.

        Parameters
        ----------
        centre, runs : [n] and [n, K, R] sums of the centres there, and of the values of all runs
        deviations : [n, 3] sums of `deviations`; None = it is None
        """
        noises: list[FloatArray | None] = [None] * len(in_chunks(centre))
        if deviations is not None:
            noises = [*in_chunks(np.column_stack(deviation_of_sums(deviations)))]
        parts = [
            _interval(*part, point, self._pool, confidence)
            for part in zip(in_chunks(centre), in_chunks(runs), noises, strict=True)
        ]
        ends = zip(*((part.value, part.low, part.high) for part in parts), strict=True)
        value, low, high = (np.concatenate(column) for column in ends)
        return Band(value, low, high, ~np.isnan(value))

    def everywhere(self, sums: Sums, confidence: float) -> Band:
        """Return measured values at all points, [n, K], as `values` does."""
        found = [self.values(sums, k, confidence) for k in range(len(self.fitted.points))]
        columns = zip(*((band.value, band.low, band.high) for band in found), strict=True)
        value, low, high = (np.stack(column, axis=-1) for column in columns)
        return Band(value, low, high, ~np.isnan(value))

    def shares(
        self, sums: Sums, point: int, confidence: float, whole: FloatArray | None = None
    ) -> Band:
        """Return shares of the program, as `values` does, each from the share in every run.

        Parameters
        ----------
        whole : [K, R] costs of the program in every run; None = sums over all call paths
        """
        column = self.fitted.measured[:, point]
        if whole is None:
            whole, total = self._totals, sum_over(column)
        else:
            total = centre_of(whole[None], self.fitted.models.aggregate)[0, point]
        centre = _ratio(sums(column), total)
        shares, noise = _ratio(sums(self.runs), whole), None
        own = self.deviations(point)
        if own is not None:
            noise = np.column_stack(deviation_of_shares(sums(own), own.sum(axis=0)))
        found = _interval(centre, shares, noise, point, self._pool_of_shares, confidence)
        return Band(found.value, found.low, np.minimum(found.high, 1.0), found.measured)


def within(band: Band, low: FloatArray, high: FloatArray) -> Band:
    """Return intervals of sums that do not exceed the sums of the ends of their call paths.

    A sum is at most as uncertain as its call paths are together. The pool of all call paths may say
    otherwise, if most of them are small and scatter.

    Parameters
    ----------
    band : intervals of n sums
    low, high : [n] sums of the ends of the intervals of their call paths
    """
    return Band(band.value, np.maximum(band.low, low), np.minimum(band.high, high), band.measured)


def _interval(
    centre: FloatArray,
    runs: FloatArray,
    noise: FloatArray | None,
    point: int,
    pool: Pool,
    confidence: float,
) -> Band:
    """Return centres with intervals at a point.

    Parameters
    ----------
    centre, runs : [n] and [n, K, R]
    noise : [n, 2] variance and degrees of freedom if no point was repeated; None = from the pool,
        if that knows it
    """
    if noise is None and not pool.is_known:
        unknown = np.full_like(centre, np.nan)
        return Band(centre, unknown, unknown, ~np.isnan(centre))
    here = runs[:, point]
    sample = sample_at(runs, point, pool)
    if noise is not None:
        sample = structs.replace(sample, variance=noise[:, 0], dof=noise[:, 1])
    reach = sample.reach(confidence)
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = centre * np.exp(-reach), centre * np.exp(reach)
    has_zeros = (here <= 0).any(axis=1)
    if has_zeros.any():
        # Of a value that is zero now and then, logarithms say nothing.
        side = _reach_of_mean(here, confidence)
        low = np.where(has_zeros, np.maximum(centre - side, 0.0), low)
        high = np.where(has_zeros, centre + side, high)
    return Band(centre, low, high, ~np.isnan(centre))


def _reach_of_mean(runs: FloatArray, confidence: float) -> FloatArray:
    """Return half the width of the confidence interval of means of runs [n, R], by Student's t.

    It is 0 if all runs agree.
    """
    count = (~np.isnan(runs)).sum(axis=1)
    mean = np.nansum(runs, axis=1) / np.maximum(count, 1)
    squares = np.nansum((runs - mean[:, None]) ** 2, axis=1)
    freedom = np.maximum(count - 1.0, 1.0)
    error = np.sqrt(squares / freedom / np.maximum(count, 1))
    return np.asarray(student_quantile(freedom, 0.5 + confidence / 2) * error)


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(part / whole)


def sum_over(values: FloatArray) -> FloatArray:
    """Return sums of columns; NaN = none of the call paths occurs.

    Parameters
    ----------
    values : [call paths] or [call paths, n], or [call paths, K, R] with repetitions, which are
        completed by `with_means_of_repetitions`
    """
    found = np.asarray(values.sum(axis=0))
    lacking = np.isnan(found)
    if lacking.any():
        if values.ndim > 2:
            values = with_means_of_repetitions(values)
        some = values[..., lacking]
        found[lacking] = np.where(np.isnan(some).all(axis=0), np.nan, np.nansum(some, axis=0))
    return found


def with_means_of_repetitions(values: FloatArray) -> FloatArray:
    """Return values [call paths, ..., R] whose unknown ones are the mean of the repetitions.

    A call path without a value in one run, but with values in repetitions of this run, is not
    known. A sum over call paths without it would be too small. A run without any value stays.
    """
    unknown = np.isnan(values)
    unknown &= ~unknown.all(axis=-1, keepdims=True) & ~unknown.all(axis=0)
    if not unknown.any():
        return values
    count = (~np.isnan(values)).sum(axis=-1, keepdims=True)
    mean = np.nansum(values, axis=-1, keepdims=True) / np.maximum(count, 1)
    return np.where(unknown, mean, values)
