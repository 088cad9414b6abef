"""Predictions with bands, and mixtures of two-piece log-normal distributions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.compiled import bands
from callpath_modeler.modeling.compiled.library import compiled

_LEAST_SPREAD = 1e-9
"""Smallest standard deviation of the logarithm."""
_STEPS = 80
"""Largest number of steps of Newton's method."""
_SETTLED = 1e-10
"""Step of the logarithm of a quantile at which Newton's method ends; the error is far smaller."""


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Predictions of n rows at m targets, with prediction intervals.

    Attributes
    ----------
    value, low, high : ndarray [n, m]
        Value and ends of the interval, in the unit of the metric; ``0 <= low <= value <= high``;
        NaN without a model.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Distributions of n rows at m targets: mixtures of C two-piece log-normal distributions.

    Attributes
    ----------
    centre : ndarray [n, C, m]
        Prediction of each hypothesis, in the unit of the metric.
    below, above : ndarray [n, C, m]
        Standard deviations of the logarithm on either side.
    weight : ndarray [n, C]
        Probabilities; 0 = no such hypothesis.
    """

    centre: FloatArray
    below: FloatArray
    above: FloatArray
    weight: FloatArray

    def exceedance(self, value: npt.ArrayLike) -> FloatArray:
        """Return the probability to exceed `value`, which broadcasts against [n, m]; [n, m]."""
        if compiled():
            parts = self.centre, self.below, self.above, self.weight
            return bands.exceedance(parts, np.asarray(value, dtype=np.float64))
        with np.errstate(divide="ignore"):
            return self._exceedance_of_log(np.log(np.atleast_1d(value)))

    def _exceedance_of_log(self, log: FloatArray) -> FloatArray:
        from scipy import special

        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.log(self.centre) - log[..., None, :]
        # If prediction and threshold are both zero, neither exceeds the other.
        distance = np.where(np.isnan(distance), 0.0, distance)
        spread = np.where(distance > 0, self.below, self.above)
        share = special.ndtr(distance / np.maximum(spread, _LEAST_SPREAD))
        return np.asarray(np.einsum("nc,ncm->nm", self.weight, share))

    def quantile(self, probability: float) -> FloatArray:
        """Return a quantile, [n, m]."""
        found: FloatArray = self.quantiles([probability])[0]
        return found

    def quantiles(self, probabilities: npt.ArrayLike) -> FloatArray:
        """Return the quantiles at [k] probabilities, [k, n, m]."""
        asked = np.asarray(probabilities, dtype=np.float64)
        if compiled():
            parts = self.centre, self.below, self.above, self.weight
            return bands.quantiles(parts, asked)
        return np.stack([self._quantile(probability) for probability in asked.tolist()])

    def _quantile(self, probability: float) -> FloatArray:
        rows, parts, columns = self.centre.shape
        shape = rows * columns, parts
        centre, below, above = (
            column.transpose(0, 2, 1).reshape(shape)
            for column in (self.centre, self.below, self.above)
        )
        weight = np.repeat(self.weight, columns, axis=0)
        there = weight > 0
        usable = (np.isfinite(centre) & (centre > 0) | ~there).all(axis=1) & there.any(axis=1)
        nothing = np.where(there, centre, 0.0).max(axis=1, initial=0.0) == 0
        found = np.where(nothing, 0.0, np.inf)
        logs = np.log(np.where(there, centre, 1.0)[usable])
        below, above = (np.fmax(each[usable], _LEAST_SPREAD) for each in (below, above))
        found[usable] = np.exp(_quantile(logs, below, above, weight[usable], probability))
        return found.reshape(rows, columns)

    def band(self, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper end of the band, each [n, m]."""
        tail = (1 - confidence) / 2
        return self.quantile(tail), self.quantile(1 - tail)


def _quantile(
    centre: FloatArray,
    below: FloatArray,
    above: FloatArray,
    weight: FloatArray,
    probability: float,
) -> FloatArray:
    """Return a quantile of n mixtures of C two-piece normal distributions [n, C], [n].

    Newton's method runs on the scale on which a normal distribution is a straight line. The
    quantile of the mixture lies between the smallest and the largest quantile of all parts, and so
    do the steps. If the steps do not become smaller, because they go to and fro about a bend, the
    interval is halved.
    """
    from scipy import special

    deviates = special.ndtri(probability)
    each = centre + deviates * (below if deviates < 0 else above)
    low = np.where(weight > 0, each, np.inf).min(axis=1)
    high = np.where(weight > 0, each, -np.inf).max(axis=1)
    at = np.clip(_apart_quantile(centre, below, above, weight, probability), low, high)
    found, left = at.copy(), np.arange(len(at))
    last, before = np.full((2, len(at)), np.inf)
    for _ in range(_STEPS):
        distance = at[:, None] - centre
        spread = np.where(distance < 0, below, above)
        distance /= spread
        share = np.einsum("nc,nc->n", weight, special.ndtr(distance))
        density = np.einsum("nc,nc->n", weight, np.exp(-0.5 * distance**2) / spread)
        short = share < probability
        low, high = np.where(short, at, low), np.where(short, high, at)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            here = special.ndtri(share)
            after = at + (deviates - here) * np.exp(-0.5 * here**2) / density
            good = (after >= low) & (after <= high) & (np.abs(after - at) <= before / 2)
            after = np.where(good, after, (low + high) / 2)
            # At a probability of 0 or 1 all quantiles are infinite.
            before, last = last, np.abs(after - at)
            going = (last > _SETTLED) & (high - low > _SETTLED)
        found[left] = after
        if not going.any():
            break
        left, at, low, high = left[going], after[going], low[going], high[going]
        last, before = last[going], before[going]
        centre, below, above, weight = (column[going] for column in (centre, below, above, weight))
    return found


def _apart_quantile(
    centre: FloatArray,
    below: FloatArray,
    above: FloatArray,
    weight: FloatArray,
    probability: float,
) -> FloatArray:
    """Return the quantiles as if the parts did not overlap, [n]."""
    from scipy import special

    order = np.argsort(centre, axis=1)
    ordered = np.take_along_axis(weight, order, axis=1)
    running = ordered.cumsum(axis=1)
    place = np.minimum((running < probability).sum(axis=1), centre.shape[1] - 1)[:, None]
    part = np.take_along_axis(order, place, axis=1)
    its = np.take_along_axis(weight, part, axis=1)
    before = np.take_along_axis(running, place, axis=1) - its
    with np.errstate(divide="ignore", invalid="ignore"):
        deviates = special.ndtri(np.clip((probability - before) / its, 1e-9, 1 - 1e-9))
    below, above = (np.take_along_axis(column, part, axis=1) for column in (below, above))
    start = np.take_along_axis(centre, part, axis=1)
    return np.asarray(np.nan_to_num(start + deviates * np.where(deviates < 0, below, above))[:, 0])
