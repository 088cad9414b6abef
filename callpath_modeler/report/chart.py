"""Charts of one model in text: measured points, model, band, end of the data, target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.report.curve import Axes, Curve, spaced
from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle
from callpath_modeler.units import parameter_value

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
    edge = scale.column(curve.end_of_data)
    if curve.target is not None and curve.target > curve.end_of_data:
        for row in cells:
            if row[edge] in {" ", signs["band"]}:
                row[edge] = signs["edge"]
    for point, value in zip(curve.points, curve.measured, strict=True):
        if axes.shows(value):
            cells[scale.row(value)][scale.column(point)] = signs["point"]
    at_target = curve.at_target
    if curve.target is not None and at_target is not None and axes.shows(at_target[0]):
        cells[scale.row(at_target[0])][scale.column(curve.target)] = signs["target"]
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
