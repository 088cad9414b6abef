"""A chart of one model in text: measured points, model, band, end of the data, target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.units import parameter_value, quantity

_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_BRAILLE = 0x2800
# Cells say what is there: later entries are drawn over earlier ones.
_UNICODE = {"band": "░", "edge": "┊", "point": "●", "target": "◆", "axis": "│", "tick": "┤"}
_ASCII = {"band": ":", "edge": "|", "point": "o", "target": "X", "axis": "|", "tick": "+"}


@dataclass(frozen=True, slots=True)
class Curve:
    """What a chart shows, all in base units.

    Attributes
    ----------
    points, measured : [K] and [K]; NaN = did not occur
    grid, value, low, high : [G] the model and its band from the first point to the target
    end_of_data : largest measured point
    target : point predicted, or None
    """

    points: NDArray[np.float64]
    measured: NDArray[np.float64]
    grid: NDArray[np.float64]
    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    end_of_data: float
    target: float | None


def draw(
    curve: Curve,
    unit: str,
    *,
    parameter: str = "p",
    width: int = 72,
    height: int = 14,
    linear: bool = False,
    ascii_only: bool = False,
) -> list[str]:
    """Draw a chart, log-log unless `linear`; ticks of the axis are the measured points.

    Parameters
    ----------
    width, height : of the plotting area, in terminal cells
    """
    signs = _ASCII if ascii_only else _UNICODE
    scale = _Scale.of(curve, linear=linear, width=width, height=height)
    cells = [[" "] * width for _ in range(height)]
    _fill_band(cells, curve, scale, signs["band"])
    _draw_line(cells, curve, scale, ascii_only=ascii_only)
    edge = scale.column(curve.end_of_data)
    if curve.target is not None and curve.target > curve.end_of_data:
        for row in cells:
            if row[edge] in {" ", signs["band"]}:
                row[edge] = signs["edge"]
    for point, value in zip(curve.points, curve.measured, strict=True):
        if scale.shows(value):
            cells[scale.row(value)][scale.column(point)] = signs["point"]
    if curve.target is not None:
        value = float(np.interp(curve.target, curve.grid, curve.value))
        if scale.shows(value):
            cells[scale.row(value)][scale.column(curve.target)] = signs["target"]
    lines = _with_axis(cells, scale, unit, signs, ascii_only=ascii_only)
    margin = len(lines[0]) - width
    corner, bar = ("+", "-") if ascii_only else ("└", "─")
    lines.append(" " * (margin - 1) + corner + bar * width)
    ticks = [*curve.points, *([] if curve.target is None else [curve.target])]
    lines.append(" " * margin + _ticks(ticks, scale, width) + f"  {parameter}")
    return [line.rstrip() for line in lines]


@dataclass(frozen=True, slots=True)
class _Scale:
    left: float
    right: float
    bottom: float
    top: float
    width: int
    height: int
    linear: bool

    @classmethod
    def of(cls, curve: Curve, *, linear: bool, width: int, height: int) -> _Scale:
        shown = np.concatenate([curve.measured, curve.value, curve.high, curve.low])
        shown = shown[np.isfinite(shown) & (shown >= 0 if linear else shown > 0)]
        peak = np.nanmax(np.concatenate([curve.measured, curve.value, [0.0]]))
        # A wild band, or a model that starts at zero, must not press the data into one line.
        shown = shown[shown <= 30 * peak] if peak > 0 else shown
        positive = curve.measured[curve.measured > 0]
        floor = positive.min() / 10 if len(positive) else peak / 1e6
        bottom = 0.0 if linear else max(shown.min(), floor) if len(shown) else 0.1
        top = shown.max() if len(shown) else 1.0
        if top <= bottom:
            bottom, top = (0.0, top * 1.5 or 1.0) if linear else (bottom / 1.5, bottom * 1.5)
        if not linear:
            bottom, top = bottom / 1.1, top * 1.1
        left = min(curve.points[0], curve.grid[0])
        return cls(left, float(curve.grid[-1]), bottom, top, width, height, linear)

    def shows(self, value: float) -> bool:
        return bool(np.isfinite(value)) and self.bottom <= value <= self.top

    def x(self, point: float) -> float:
        if self.right <= self.left:
            return 0.0
        if self.linear:
            return (point - self.left) / (self.right - self.left)
        return float(np.log(point / self.left) / np.log(self.right / self.left))

    def y(self, value: float) -> float:
        value = min(max(value, self.bottom), self.top)
        if self.linear:
            return (value - self.bottom) / (self.top - self.bottom)
        return float(np.log(value / self.bottom) / np.log(self.top / self.bottom))

    def dot(self, point: float, value: float) -> tuple[int, int]:
        """Return the row and column of a dot; a cell has four by two of them."""
        across, down = self.width * 2 - 1, self.height * 4 - 1
        column = min(across, max(0, round(self.x(point) * across)))
        return down - min(down, round(self.y(value) * down)), column

    def column(self, point: float) -> int:
        return self.dot(point, self.bottom)[1] // 2

    def row(self, value: float) -> int:
        return self.dot(self.left, value)[0] // 4

    def at(self, fraction: float) -> float:
        """Return the value at a height between 0 and 1."""
        if self.linear:
            return self.bottom + fraction * (self.top - self.bottom)
        return float(self.bottom * (self.top / self.bottom) ** fraction)


def _fill_band(cells: list[list[str]], curve: Curve, scale: _Scale, sign: str) -> None:
    columns = np.array([scale.column(point) for point in curve.grid])
    for column in np.unique(columns):
        here = columns == column
        low, high = curve.low[here].min(), curve.high[here].max()
        if not np.isfinite(low) or low > scale.top or high < scale.bottom:
            continue
        for row in range(scale.row(high), scale.row(low) + 1):
            cells[row][column] = sign


def _draw_line(cells: list[list[str]], curve: Curve, scale: _Scale, *, ascii_only: bool) -> None:
    width, height = scale.width, scale.height
    dots = np.zeros((height * 4, width * 2), bool)
    for point, value in zip(curve.grid, curve.value, strict=True):
        if scale.shows(value):
            dots[scale.dot(point, value)] = True
    blocks = dots.reshape(height, 4, width, 2).transpose(0, 2, 1, 3)
    codes = (blocks * _DOTS).sum(axis=(2, 3))
    for row, column in np.argwhere(codes > 0):
        cells[row][column] = "*" if ascii_only else chr(_BRAILLE + int(codes[row, column]))


def _with_axis(
    cells: list[list[str]], scale: _Scale, unit: str, signs: dict[str, str], *, ascii_only: bool
) -> list[str]:
    height = scale.height
    labelled = sorted({0, height // 4, height // 2, 3 * height // 4, height - 1})
    labels = {
        row: quantity(scale.at(1 - row / (height - 1)), unit, ascii_only=ascii_only)
        for row in labelled
    }
    margin = max(len(label) for label in labels.values())
    return [
        f"{labels.get(row, ''):>{margin}} {signs['tick' if row in labels else 'axis']}"
        + "".join(cells[row])
        for row in range(height)
    ]


def _ticks(points: Sequence[float], scale: _Scale, width: int) -> str:
    """Write the points under their columns; one that would touch its neighbour is left out."""
    line = [" "] * (width + 8)
    # The target first: of all ticks it is the one that must not go.
    order = [len(points) - 1, *range(len(points) - 1)]
    spans: list[tuple[int, int]] = []
    for i in order:
        text = parameter_value(points[i])
        start = max(0, min(scale.column(points[i]) - len(text) // 2, width + 8 - len(text)))
        if any(start <= b and a <= start + len(text) for a, b in spans):
            continue
        spans.append((start, start + len(text)))
        line[start : start + len(text)] = text
    return "".join(line).rstrip()
