"""Charts of models: their data, and their text.

Charts of the terminal, of pages and of papers are drawn from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.measured import Measured
from callpath_modeler.analysis.predict import predict_sum
from callpath_modeler.arrays import FloatArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle
from callpath_modeler.units import parameter_value

_BANDED = 16
"""Largest number of call paths whose curve has a band; beyond it, only the target has one."""
_FEW_DECADES = 2.0
"""Axes of more decades have ticks at powers of ten only."""
_MOST_TICKS = 6
"""Largest number of powers of ten that have a tick."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The data of a chart, in base units.

    Attributes
    ----------
    points, measured : [K] and [K]; NaN = did not occur
    grid, value, low, high : [G] the model and its band from the first point to the target
    end_of_data : largest measured point
    target : the target, or None
    seen : measured value at the target with its interval, if it is the answer; else None
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
        """Whether any value is above zero; without one, a chart has no height."""
        seen = [] if self.seen is None else self.seen
        shown = np.concatenate([self.measured, self.value, self.high, seen])
        return bool((shown > 0).any())

    @property
    def at_target(self) -> tuple[float, float, float] | None:
        """Value, low and high at the target, measured or from the model; None without a target."""
        if self.target is None or self.seen is not None:
            return self.seen
        at = int(np.argmin(np.abs(self.grid - self.target)))
        value = float(np.interp(self.target, self.grid, self.value))
        return value, float(self.low[at]), float(self.high[at])

    @property
    def edge(self) -> float | None:
        """The end of the data, if the target is beyond it."""
        is_beyond = self.target is not None and self.target > self.end_of_data
        return self.end_of_data if is_beyond else None

    def points_on(self, axes: Axes) -> list[tuple[float, float]]:
        """Return the measured points on the chart."""
        pairs = zip(self.points.tolist(), self.measured.tolist(), strict=True)
        return [(point, value) for point, value in pairs if axes.shows(value)]

    def target_on(self, axes: Axes) -> tuple[float, float, float, float] | None:
        """Return the target, the value there, and the ends of its band, if it is on the chart."""
        at = self.at_target
        if self.target is None or at is None or not axes.shows(at[0]):
            return None
        return self.target, *at

    @property
    def ticks(self) -> list[float]:
        """Measured points and the target, those first whose labels must not give way."""
        points = self.points.tolist()
        return [*([] if self.target is None else [self.target]), *points[-1:], *points[:-1]]


def spaced(spans: Sequence[tuple[float, float]], gap: float) -> list[bool]:
    """Tell which labels have room: those that are at least `gap` away from all earlier ones."""
    taken: list[tuple[float, float]] = []
    found = []
    for left, right in spans:
        has_room = all(right + gap <= start or end + gap <= left for start, end in taken)
        taken += [(left, right)] * has_room
        found.append(has_room)
    return found


def value_ticks(bottom: float, top: float) -> list[float]:
    """Return round values between two, as many as there is room for, on a logarithmic axis."""
    decades = math.log10(top / bottom)
    first, last = math.floor(math.log10(bottom)), math.ceil(math.log10(top))
    if decades > _FEW_DECADES:
        apart = math.ceil(decades / _MOST_TICKS)
        candidates = [10.0**k for k in range(first, last + 1) if k % apart == 0]
    else:
        steps = (1.0, 2.0, 5.0) if decades > 1 else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
        candidates = [size * 10.0**k for k in range(first, last + 1) for size in steps]
    found = [value for value in candidates if bottom <= value <= top]
    if len(found) > 1:
        return found
    power = 10.0 ** math.floor(math.log10((top - bottom) / 2))
    step = max((k * power for k in (2, 5) if 2 * k * power <= top - bottom), default=power)
    return [step * k for k in range(math.ceil(bottom / step), math.floor(top / step) + 1)]


@dataclass(frozen=True, slots=True)
class Axes:
    """The visible part of the plane, log-log unless `linear`.

    Attributes
    ----------
    left, right : limits of the parameter
    bottom, top : limits of the values
    linear : whether the axes are linear
    """

    left: float
    right: float
    bottom: float
    top: float
    linear: bool

    @classmethod
    def of(cls, curve: Curve, *, linear: bool = False, beside: FloatArray | None = None) -> Axes:
        """Return axes that show all measured points of a curve that has a scale.

        `beside` are further values to show.
        """
        seen = [] if curve.seen is None else curve.seen
        others = np.empty(0) if beside is None else beside.ravel()
        shown = np.concatenate([curve.measured, curve.value, curve.high, curve.low, seen, others])
        shown = shown[np.isfinite(shown) & (shown >= 0 if linear else shown > 0)]
        peak = np.nanmax(np.concatenate([curve.measured, curve.value, [0.0]]))
        # A very wide band, or a model that starts at zero, must not flatten the data.
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
        """Return whether a value is on the chart."""
        return bool(np.isfinite(value)) and self.bottom <= value <= self.top

    def x(self, point: float) -> float:
        """Return the horizontal position of a point, from 0 (left) to 1 (right)."""
        if self.right <= self.left:
            return 0.0
        if self.linear:
            return (point - self.left) / (self.right - self.left)
        return float(np.log(point / self.left) / np.log(self.right / self.left))

    def y(self, value: float) -> float:
        """Return the vertical position of a value, from 0 to 1; outside values are at the edge."""
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
    """Return the chart of the summed cost of call paths, up to the target.

    Parameters
    ----------
    fitted : the models
    rows : call paths
    target : value of the parameter
    count : number of points at which the curve is evaluated
    linear : space these points evenly, else by equal factors
    banded : compute the band, which is slow for many call paths
    seen : measured value at the target with its interval, if it is the answer; else None
    """
    last = float(fitted.points[-1])
    end = max(last, target) if np.isfinite(target) else last
    start = min(float(fitted.points[0]), target)
    grid = np.linspace(start, end, count) if linear else np.geomspace(start, end, count)
    if start < target < end:
        # Between two points of the curve, nothing is known of the band.
        grid[int(np.argmin(np.abs(grid[1:-1] - target))) + 1] = target
    if banded:
        value, low, high = predict_sum(fitted, rows, grid)
    else:
        value = fitted.models.sum_values(rows[fitted.modelled[rows]], grid)
        low = high = np.full(count, np.nan)
    measured = measured_of(fitted, rows)
    return Curve(
        points=fitted.points,
        # Measurements at other values of the held parameters are not on this curve.
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
    """Return a chart of call paths without the cost of computing bands of sums.

    Parameters
    ----------
    fitted : the models
    rows : call paths
    target : value of the parameter
    at_target : value, low and high at the target; for several call paths, the only band
    measured : whether `at_target` was measured
    count : number of points at which the curve is evaluated
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


def repetitions_of(fitted: Fitted, rows: NDArray[np.integer]) -> FloatArray:
    """Return what some call paths cost together in each run of each point, [K, R].

    NaN where none of them occurred, or there is no such run.
    """
    runs = Measured(fitted).runs[rows]
    total = np.where(np.isnan(runs).all(axis=0), np.nan, np.nansum(runs, axis=0))
    return total if fitted.held == fitted.measured_at else total * np.nan


def measured_of(fitted: Fitted, rows: NDArray[np.integer]) -> FloatArray:
    """Return the summed measured cost of call paths at each point, [K]; NaN = none occurred."""
    total = np.full(len(fitted.points), np.nan)
    for point in range(len(total)):  # one after the other: of many call paths, all are large
        values = fitted.measured[rows, point]
        if not np.isnan(values).all():
            total[point] = np.nansum(values)
    return total


_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_BRAILLE = 0x2800
# Names of what a cell can show, in drawing order: later entries cover earlier ones.
_UNICODE = {"band": "░", "edge": "┊", "point": "●", "target": "◆", "axis": "│", "tick": "┤"}
_ASCII = {"band": ":", "edge": "|", "point": "o", "target": "X", "axis": "|", "tick": "+"}


def draw(
    curve: Curve,
    unit: str,
    *,
    parameter: str = "p",
    width: int = 72,
    height: int = 14,
    linear: bool = False,
    style: TextStyle = DEFAULT_STYLE,
) -> list[str]:
    """Return the lines of a chart, log-log unless `linear`.

    The ticks of the axis are the measured points.

    Parameters
    ----------
    curve : the data
    unit : base unit of the values
    parameter : name of the axis
    width, height : size of the plotting area, in terminal cells
    linear : use linear axes
    style : width, length of names, and characters of text

    Returns
    -------
    list of str
        Empty if all values are zero.
    """
    if not curve.has_scale:
        return []
    signs = _ASCII if style.ascii_only else _UNICODE
    axes = Axes.of(curve, linear=linear)
    scale = _Cells(axes, width, height)
    cells = [[" "] * width for _ in range(height)]
    _fill_band(cells, curve, scale, signs["band"])
    _draw_line(cells, curve, scale, style=style)
    if curve.edge is not None:
        edge = scale.column(curve.edge)
        for row in cells:
            if row[edge] in {" ", signs["band"]}:
                row[edge] = signs["edge"]
    for point, value in curve.points_on(axes):
        cells[scale.row(value)][scale.column(point)] = signs["point"]
    if (at := curve.target_on(axes)) is not None:
        cells[scale.row(at[1])][scale.column(at[0])] = signs["target"]
    lines = _with_axis(cells, scale, unit, signs, style=style)
    margin = len(lines[0]) - width
    corner, bar = ("+", "-") if style.ascii_only else ("└", "─")
    lines.append(" " * (margin - 1) + corner + bar * width)
    lines.append(" " * margin + _ticks(curve, scale, width) + f"  {parameter}")
    return [line.rstrip() for line in lines]


@dataclass(frozen=True, slots=True)
class _Cells:
    """The mapping of points of a chart to a grid of terminal cells."""

    axes: Axes
    width: int
    height: int

    def dot(self, point: float, value: float) -> tuple[int, int]:
        """Return the row and column of a dot; a cell has four rows and two columns of dots."""
        across, down = self.width * 2 - 1, self.height * 4 - 1
        column = min(across, max(0, _nearest(self.axes.x(point) * across)))
        return down - min(down, _nearest(self.axes.y(value) * down)), column

    def column(self, point: float) -> int:
        return self.dot(point, self.axes.bottom)[1] // 2

    def row(self, value: float) -> int:
        return self.dot(self.axes.left, value)[0] // 4


def _nearest(place: float) -> int:
    """Return the nearest whole number, rounded such that the last digits do not decide ties."""
    return round(round(place, 6))


def _fill_band(cells: list[list[str]], curve: Curve, scale: _Cells, sign: str) -> None:
    columns = np.array([scale.column(point) for point in curve.grid])
    for column in np.unique(columns):
        here = columns == column
        low, high = curve.low[here].min(), curve.high[here].max()
        if not np.isfinite(low) or low > scale.axes.top or high < scale.axes.bottom:
            continue
        for row in range(scale.row(high), scale.row(low) + 1):
            cells[row][column] = sign


def _draw_line(cells: list[list[str]], curve: Curve, scale: _Cells, *, style: TextStyle) -> None:
    width, height = scale.width, scale.height
    dots = np.zeros((height * 4, width * 2), bool)
    for point, value in zip(curve.grid, curve.value, strict=True):
        if scale.axes.shows(value):
            dots[scale.dot(point, value)] = True
    blocks = dots.reshape(height, 4, width, 2).transpose(0, 2, 1, 3)
    codes = (blocks * _DOTS).sum(axis=(2, 3))
    for row, column in np.argwhere(codes > 0):
        cells[row][column] = "*" if style.ascii_only else chr(_BRAILLE + int(codes[row, column]))


def _with_axis(
    cells: list[list[str]], scale: _Cells, unit: str, signs: dict[str, str], *, style: TextStyle
) -> list[str]:
    height = scale.height
    labelled = sorted({0, height // 4, height // 2, 3 * height // 4, height - 1})
    labels = {row: style.amount(scale.axes.at(1 - row / (height - 1)), unit) for row in labelled}
    margin = max(len(label) for label in labels.values())
    return [
        f"{labels.get(row, ''):>{margin}} {signs['tick' if row in labels else 'axis']}"
        + "".join(cells[row])
        for row in range(height)
    ]


def _ticks(curve: Curve, scale: _Cells, width: int) -> str:
    """Return the labels of points under their columns, without labels that would touch."""
    line = [" "] * (width + 8)
    spans, texts = [], [parameter_value(point) for point in curve.ticks]
    for point, text in zip(curve.ticks, texts, strict=True):
        start = max(0, min(scale.column(point) - len(text) // 2, width + 8 - len(text)))
        spans.append((start, start + len(text)))
    for (start, end), text, has_room in zip(spans, texts, spaced(spans, 1), strict=True):
        if has_room:
            line[start:end] = text
    return "".join(line).rstrip()
