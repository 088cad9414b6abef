"""What a chart of call paths shows, and where: measured points, model, band, axes.

Both the terminal's charts and those of pages are drawn from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.predict import predict_sum
from callpath_modeler.arrays import FloatArray
from callpath_modeler.fitted import Fitted

_BANDED = 16
"""Of more call paths together, a curve has a band at the target alone."""


@dataclass(frozen=True, slots=True)
class Curve:
    """What a chart shows, all in base units.

    Attributes
    ----------
    points, measured : [K] and [K]; NaN = did not occur
    grid, value, low, high : [G] the model and its band from the first point to the target
    end_of_data : largest measured point
    target : point that is asked about, or None
    seen : value, low and high of what was measured there, if that is the answer
    """

    points: FloatArray
    measured: FloatArray
    grid: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    end_of_data: float
    target: float | None
    seen: tuple[float, float, float] | None = None

    @property
    def has_scale(self) -> bool:
        """Whether anything is above zero: nothing else says how high a chart is to be."""
        seen = [] if self.seen is None else self.seen
        shown = np.concatenate([self.measured, self.value, self.high, seen])
        return bool((shown > 0).any())

    @property
    def at_target(self) -> tuple[float, float, float] | None:
        """Value, low and high at the target: measured, or else the model's; None without one."""
        if self.target is None or self.seen is not None:
            return self.seen
        at = int(np.argmin(np.abs(self.grid - self.target)))
        value = float(np.interp(self.target, self.grid, self.value))
        return value, float(self.low[at]), float(self.high[at])


@dataclass(frozen=True, slots=True)
class Axes:
    """Which part of the plane a chart shows, log-log unless `linear`.

    Attributes
    ----------
    left, right : ends of the parameter
    bottom, top : ends of the values
    """

    left: float
    right: float
    bottom: float
    top: float
    linear: bool

    @classmethod
    def of(cls, curve: Curve, *, linear: bool = False) -> Axes:
        """Return axes on which all of a curve that has a scale has room, and hides no other."""
        seen = [] if curve.seen is None else curve.seen
        shown = np.concatenate([curve.measured, curve.value, curve.high, curve.low, seen])
        shown = shown[np.isfinite(shown) & (shown >= 0 if linear else shown > 0)]
        peak = np.nanmax(np.concatenate([curve.measured, curve.value, [0.0]]))
        # A wild band, or a model that starts at zero, must not press the data into one line.
        shown = shown[shown <= 30 * peak] if peak > 0 else shown
        positive = curve.measured[curve.measured > 0]
        floor = positive.min() / 10 if len(positive) else peak / 1e6
        bottom, top = 0.0 if linear else max(shown.min(), floor), shown.max()
        if top <= bottom:
            bottom, top = bottom / 1.5, bottom * 1.5
        if not linear:
            bottom, top = bottom / 1.1, top * 1.1
        left = min(curve.points[0], curve.grid[0])
        return cls(float(left), float(curve.grid[-1]), float(bottom), float(top), linear)

    def shows(self, value: float) -> bool:
        """Tell whether a value is on the chart."""
        return bool(np.isfinite(value)) and self.bottom <= value <= self.top

    def x(self, point: float) -> float:
        """Return how far to the right a point is, 0 to 1."""
        if self.right <= self.left:
            return 0.0
        if self.linear:
            return (point - self.left) / (self.right - self.left)
        return float(np.log(point / self.left) / np.log(self.right / self.left))

    def y(self, value: float) -> float:
        """Return how far up a value is, 0 to 1; what is off the chart is at its edge."""
        value = min(max(value, self.bottom), self.top)
        if self.linear:
            return (value - self.bottom) / (self.top - self.bottom)
        return float(np.log(value / self.bottom) / np.log(self.top / self.bottom))

    def at(self, fraction: float) -> float:
        """Return the value at a height between 0 and 1."""
        if self.linear:
            return self.bottom + fraction * (self.top - self.bottom)
        return float(self.bottom * (self.top / self.bottom) ** fraction)


def curve_of(
    fitted: Fitted,
    rows: NDArray[np.integer],
    target: float,
    *,
    count: int,
    linear: bool = False,
    banded: bool = True,
    seen: tuple[float, float, float] | None = None,
) -> Curve:
    """Return the chart of what some call paths cost together, up to the target.

    Parameters
    ----------
    count : points at which the curve is evaluated
    seen : what was measured at the target with its interval, if that is the answer
    linear : whether these are evenly spaced, else by equal factors
    banded : whether it has a band, which takes long where call paths are many
    """
    last = float(fitted.points[-1])
    end = max(last, target) if np.isfinite(target) else last
    start = min(float(fitted.points[0]), end)
    grid = np.linspace(start, end, count) if linear else np.geomspace(start, end, count)
    if banded:
        value, low, high = predict_sum(fitted, rows, grid)
    else:
        value = fitted.models.sum_values(rows[fitted.modelled[rows]], grid)
        low = high = np.full(count, np.nan)
    measured = measured_of(fitted, rows)
    return Curve(
        points=fitted.points,
        # What was measured elsewhere is not on this curve.
        measured=measured if fitted.held == fitted.measured_at else measured * np.nan,
        grid=grid,
        value=value,
        low=low,
        high=high,
        end_of_data=last,
        target=target if np.isfinite(target) else None,
        seen=seen,
    )


def sketch(
    fitted: Fitted,
    rows: NDArray[np.integer],
    target: float,
    at_target: tuple[float, float, float],
    *,
    measured: bool,
    count: int,
) -> Curve:
    """Return the chart of some call paths at once, however many they are.

    Parameters
    ----------
    at_target : value, low and high at the target; of many call paths, there is no other band
    measured : whether these are measured
    count : points at which the curve is evaluated
    """
    banded = int(fitted.modelled[rows].sum()) <= _BANDED
    seen = at_target if measured else None
    curve = curve_of(fitted, rows, target, count=count, banded=banded, seen=seen)
    if banded or curve.target is None or measured:
        return curve
    low, high = curve.low.copy(), curve.high.copy()
    at = int(np.argmin(np.abs(curve.grid - target)))
    _, low[at], high[at] = at_target
    return replace(curve, low=low, high=high)


def measured_of(fitted: Fitted, rows: NDArray[np.integer]) -> FloatArray:
    """Return what some call paths cost together at each point, [K]; NaN = none occurred."""
    total = np.full(len(fitted.points), np.nan)
    for point in range(len(total)):  # one after the other: of many call paths, all are large
        values = fitted.measured[rows, point]
        if not np.isnan(values).all():
            total[point] = np.nansum(values)
    return total
