"""Noise of counts by chance, such as samples of a profiler.

The variance of such a count is its expectation. So its relative noise differs between scales, and
repetitions of a small count may agree by chance. See docs/explanation/noise-and-bands.md, 'Counts
by chance'.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.modeling.constants.noise import (
    EXACT,
    EXACT_VARIANCE,
    FEWEST_COUNTED,
    FEWEST_OF_ROW,
    FEWEST_ROWS,
    GRAINS,
    LEAST_EXPECTED,
    LEAST_TICKS,
    MOST_DOF,
    MOST_QUIET,
    QUIET,
    ROUNDS,
    SMALL,
    STEEPEST_NOISE,
)
from callpath_modeler.modeling.mixture.scaled_rows import (
    Noise,
    Pool,
    RepetitionStats,
    pooled,
    row_spread,
)


class Counting(Struct, frozen=True):
    """Noise of rows that count by chance.

    The variance of a value with the expectation m is ``grain m + level m**2``, times a factor of
    the row.

    Attributes
    ----------
    grain : variance by chance per unit of the expectation, in the unit of the metric
    level : relative variance of the noise beside counting
    pool : noise of the rows, in units of this variance
    """

    grain: float
    level: float
    pool: Pool

    @classmethod
    def of(
        cls,
        points: FloatArray,
        y: FloatArray,
        reps: RepetitionStats,
        fitted: Callable[[], FloatArray],
    ) -> Self | None:
        """Return the noise of counts by chance; None = these rows do not count by chance.

        Parameters
        ----------
        points : [K] ascending
        y : [n, K, R] repetitions of some rows
        reps : statistics of their means
        fitted : returns values of models of the rows, [n, K]; without repetitions their residuals
            are the noise
        """
        tick = tick_of(y)
        if not tick or points.ndim > 1:
            return None
        freedom = np.maximum(reps.count - 1, 0.0)
        repeated, mean = bool(freedom.any()), expected(points, reps, tick)
        if repeated:
            squares = np.nansum((y - reps.centre[..., None]) ** 2, axis=2)
        else:
            mean = _closer(reps, mean, np.maximum(fitted(), LEAST_EXPECTED * tick))
            squares = np.where(reps.count > 0, (reps.centre - mean) ** 2, 0.0)
            # The residuals of a usual model, with two coefficients, are smaller than the noise.
            used = np.maximum(reps.count.sum(axis=1, keepdims=True), 1.0)
            freedom = reps.count * np.maximum(1 - 2 / used, 0.0)
        grain, level = _components(mean, squares, freedom, tick)
        low, high = (tick * end for end in GRAINS)
        if not low <= grain <= high or _are_quiet(squares, mean * grain, freedom, tick / mean):
            return None
        one = Pool(True, np.ones(len(points)), MOST_DOF)
        found = cls(grain, level, one)
        if not repeated:
            return found
        ratios = found._in_units(points, reps)[0]
        return structs.replace(found, pool=pooled(*row_spread(ratios), one.profile))

    def noise(self, points: FloatArray, reps: RepetitionStats, efficiency: float) -> Noise:
        """Return the noise of some rows, as `Pool.noise`.

        The variance is that at the largest value of a row, where the weight is about 1.
        """
        ratios, relative = self._in_units(points, reps)
        largest = np.nan_to_num(reps.centre).max(axis=1, initial=0.0)
        of_largest = self.level + self.grain / np.where(largest > 0, largest, np.inf)
        found = self.pool.noise(ratios, efficiency)
        raw, dof, _ = row_spread(reps)
        spread = np.where(dof > 0, np.sqrt(raw), np.nan)
        return structs.replace(
            found,
            variance=np.maximum(found.variance * of_largest, EXACT_VARIANCE),
            weight=found.weight * of_largest[:, None] / relative,
            spread=spread,
        )

    def _in_units(
        self, points: FloatArray, reps: RepetitionStats
    ) -> tuple[RepetitionStats, FloatArray]:
        """Return statistics in units of the variance of counts, and this relative variance."""
        mean = expected(points, reps, self.grain)
        relative = self.level + self.grain / mean
        scale = (np.nan_to_num(reps.centre) / mean) ** 2 / relative
        # Repetitions that agree by chance are not exact.
        least = QUIET * np.maximum(reps.count - 1, 0.0)
        return structs.replace(reps, squares=np.maximum(reps.squares * scale, least)), relative


def tick_of(y: FloatArray) -> float:
    """Return the number whose small multiples are all values of `y`, with any unit; 0 = none.

    Large values are not checked, because their digits may be rounded.
    """
    values = np.unique(y[(y > 0) & (y < np.inf)])
    if not values.size:
        return 0.0
    for part in range(1, LEAST_TICKS):
        tick = float(values[0]) / part
        ticks = values[values < SMALL * tick] / tick
        if len(ticks) < FEWEST_COUNTED:
            return 0.0
        if (np.abs(ticks - np.rint(ticks)) <= 1 / SMALL).all():
            return tick
    return 0.0


def expected(points: FloatArray, reps: RepetitionStats, tick: float) -> FloatArray:
    """Return expectations of the values of rows at their points, [n, K].

    They follow the power law with the largest likelihood of counts by chance (Poisson regression),
    so that a value which is small by chance gets no large weight.
    """
    x = np.log2(points)
    count = reps.count
    centre = np.where(count > 0, np.nan_to_num(reps.centre), 0.0)
    used = np.maximum(count.sum(axis=1, keepdims=True), 1.0)
    away = x - (count @ x)[:, None] / used
    level = np.maximum((count * centre).sum(axis=1, keepdims=True) / used, LEAST_EXPECTED * tick)
    slope = np.zeros_like(level)
    for _ in range(ROUNDS):
        shape = np.exp2(slope * away)
        # The level that is most likely for a slope has a closed form.
        whole = np.maximum((count * shape).sum(axis=1, keepdims=True), np.finfo(float).tiny)
        level = (count * centre).sum(axis=1, keepdims=True) / whole
        level = np.maximum(level, LEAST_EXPECTED * tick)
        mean = level * shape
        weight = count * mean
        middle = (weight * away).sum(axis=1, keepdims=True)
        middle = middle / np.maximum(weight.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        bend = (weight * (away - middle) ** 2).sum(axis=1, keepdims=True)
        step = (count * (centre - mean) * (away - middle)).sum(axis=1, keepdims=True)
        step = step / np.maximum(bend, np.finfo(float).tiny) / np.log(2)
        slope = np.clip(slope + np.clip(step, -1, 1), -STEEPEST_NOISE, STEEPEST_NOISE)
    return np.asarray(np.maximum(mean, LEAST_EXPECTED * tick))


def _closer(reps: RepetitionStats, one: FloatArray, other: FloatArray) -> FloatArray:
    """Return for each row the expectations with the smaller residuals, [n, K].

    First models may give some points of noisy rows no weight.
    """
    used = reps.count > 0
    squares = (
        np.where(used, (reps.centre - mean) ** 2 / mean, 0.0).sum(axis=1) for mean in (one, other)
    )
    return np.where(np.less(*squares)[:, None], one, other)


def _components(
    mean: FloatArray, squares: FloatArray, freedom: FloatArray, tick: float
) -> tuple[float, float]:
    """Return the variance by chance per unit, and the relative variance beside it.

    The squares have the expectation ``freedom (grain mean + level mean**2)``. Weights are inverse
    variances of the squares of counts by chance, whose fourth moment is that of the distribution.
    """
    grain, level = tick, 0.0
    one, two = freedom * mean, freedom * mean**2
    for _ in range(ROUNDS):
        variance = grain * mean + level * mean**2
        spread = freedom * variance * (variance + tick**2 / 2)
        weight = np.divide(1.0, spread, out=np.zeros_like(mean), where=freedom > 0)
        aa, ab, bb = (
            (weight * left * right).sum() for left, right in ((one, one), (one, two), (two, two))
        )
        a, b = (weight * one * squares).sum(), (weight * two * squares).sum()
        whole = aa * bb - ab**2
        level = max(float((aa * b - ab * a) / whole), 0.0) if whole > EXACT * aa * bb else 0.0
        grain = max(float((a - level * ab) / aa), EXACT * tick) if aa > 0 else 0.0
    return grain, level


def _are_quiet(
    squares: FloatArray, variance: FloatArray, freedom: FloatArray, size: FloatArray
) -> bool:
    """Return whether many rows vary less than counts by chance, or few can be judged."""
    tells = freedom * (size < 1 / LEAST_EXPECTED)
    total = tells.sum(axis=1)
    ratio = np.divide(squares, variance, out=np.zeros_like(squares), where=tells > 0).sum(axis=1)
    decided = total >= FEWEST_OF_ROW
    if decided.sum() < FEWEST_ROWS:
        return True
    quiet: BoolArray = ratio[decided] < QUIET * total[decided]
    return bool(quiet.mean() > MOST_QUIET)
