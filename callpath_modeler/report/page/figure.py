"""Charts as SVG: measured points, model, band, end of the data, target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.bands import basis_of
from callpath_modeler.report.curve import Axes, Curve, spaced, value_ticks
from callpath_modeler.report.page.markup import Html, joined, tag
from callpath_modeler.units import parameter_value, quantity

_WIDTH, _HEIGHT = 560, 290
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 22, 14, 40
_LETTER, _GAP = 7.5, 8
"""Width of a character, and least distance between labels."""


def figure(
    curve: Curve,
    unit: str,
    parameter: str,
    *,
    key: str,
    label: str,
    style: Html | None = None,
) -> Html:
    """Return a chart, log-log; ticks of the parameter are the measured points and the target.

    If all values are zero, the result is empty.

    Parameters
    ----------
    curve : the data
    unit : base unit of the values
    parameter : name of the horizontal axis
    key : prefix of the ids on the page
    label : description for screen readers
    style : styles of a separate picture; None = part of a page
    """
    if not curve.has_scale:
        return Html("")
    axes = Axes.of(curve)
    frame = _Frame(axes)
    parts = [
        style or "",
        tag("title", f"Measured values and model over {parameter}", id=f"{key}-title"),
        tag("desc", label, id=f"{key}-desc"),
        *_grid(frame, curve, unit),
        *_band(frame, curve),
        *_model(frame, curve),
        *_edge(frame, curve),
        *_points(frame, curve, unit, parameter),
        *_target(frame, curve, unit, parameter),
        *_ticks(frame, curve, parameter),
    ]
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        xmlns=None if style is None else "http://www.w3.org/2000/svg",
        class_=None if style is None else "cpmodel",
    )


def spark(curve: Curve) -> Html:
    """Return a chart as high as a line of text: points, model, band, target; no text."""
    if not curve.has_scale:
        return Html("")
    width, height, edge = 110, 26, 4
    frame = _Frame(Axes.of(curve), edge, width - edge, edge, height - edge)
    dots = (
        tag("circle", class_="point", r=1.8, cx=frame.x(point), cy=frame.y(value))
        for point, value in zip(curve.points.tolist(), curve.measured.tolist(), strict=True)
        if frame.axes.shows(value)
    )
    at = curve.at_target
    sign = ""
    if curve.target is not None and at is not None and frame.axes.shows(at[0]):
        place = frame.x(curve.target), frame.y(at[0])
        sign = tag("path", class_="target", d=_diamond(*place, reach=3.5))
    lines = joined(*_band(frame, curve), *_model(frame, curve))
    return tag(
        "svg",
        *(lines, *dots, sign),
        class_="spark",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        aria_hidden="true",
    )


def legend() -> Html:
    """Return the legend of all charts."""
    signs = (
        ("measured", tag("circle", class_="point", cx=14, cy=8, r=4)),
        ("model", tag("path", class_="model", d="M2 8H26")),
        ("beyond the data", tag("path", class_="model beyond", d="M2 8H26")),
        ("band", tag("path", class_="band", d="M2 2H26V14H2Z")),
        ("target", tag("path", class_="target", d=_diamond(14, 8))),
    )
    items = (
        tag("li", tag("svg", sign, viewBox="0 0 28 16", aria_hidden="true"), name)
        for name, sign in signs
    )
    return tag("ul", *items, class_="legend")


@dataclass(frozen=True, slots=True)
class _Frame:
    """The mapping of points of the plane to the drawing."""

    axes: Axes
    left: float = _LEFT
    right: float = _WIDTH - _RIGHT
    top: float = _TOP
    bottom: float = _HEIGHT - _BOTTOM

    def x(self, point: float) -> float:
        return round(self.left + self.axes.x(point) * (self.right - self.left), 1)

    def y(self, value: float) -> float:
        return round(self.bottom - self.axes.y(value) * (self.bottom - self.top), 1)


def _runs(is_shown: np.ndarray) -> Iterator[range]:
    """Yield the ranges of at least two adjacent points that are shown."""
    edges = np.flatnonzero(np.diff(is_shown.astype(np.int8), prepend=0, append=0))
    for start, end in edges.reshape(-1, 2).tolist():
        if end - start > 1:
            yield range(start, end)


def _line(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def _grid(frame: _Frame, curve: Curve, unit: str) -> Iterator[Html]:
    right = _WIDTH - _RIGHT
    for value in value_ticks(frame.axes.bottom, frame.axes.top):
        y = frame.y(value)
        yield tag("line", class_="grid", x1=_LEFT, x2=right, y1=y, y2=y)
        label = quantity(value, unit)
        yield tag("text", label, class_="tick end", x=_LEFT - 7, y=y + 4.5)
    for point in curve.points.tolist():
        x = frame.x(point)
        yield tag("line", class_="grid", x1=x, x2=x, y1=_HEIGHT - _BOTTOM, y2=_HEIGHT - _BOTTOM + 5)


def _band(frame: _Frame, curve: Curve) -> Iterator[Html]:
    axes, low, high = frame.axes, curve.low, curve.high
    with np.errstate(invalid="ignore"):
        is_shown = np.isfinite(low) & (low <= axes.top) & (high >= axes.bottom)
    for run in _runs(is_shown):
        above = [(frame.x(curve.grid[k]), frame.y(high[k])) for k in run]
        below = [(frame.x(curve.grid[k]), frame.y(low[k])) for k in reversed(run)]
        yield tag("path", class_="band", d=_line(above + below) + "Z")


def _model(frame: _Frame, curve: Curve) -> Iterator[Html]:
    axes, grid = frame.axes, curve.grid
    is_shown = (curve.value >= axes.bottom) & (curve.value <= axes.top)
    inside = grid <= curve.end_of_data
    # The part beyond the data starts where the other part ends.
    for part, kind in ((inside, "model"), (np.append(~inside[1:], not inside[-1]), "model beyond")):
        for run in _runs(is_shown & part):
            line = [(frame.x(grid[k]), frame.y(curve.value[k])) for k in run]
            yield tag("path", class_=kind, d=_line(line))


def _edge(frame: _Frame, curve: Curve) -> Iterator[Html]:
    if curve.target is None or curve.target <= curve.end_of_data:
        return
    x = frame.x(curve.end_of_data)
    yield tag("line", class_="edge", x1=x, x2=x, y1=_TOP, y2=_HEIGHT - _BOTTOM)
    room = _WIDTH - _RIGHT - x > len("end of the data") * _LETTER
    kind, at = ("tick start", x + 5) if room else ("tick end", x - 5)
    yield tag("text", "end of the data", class_=kind, x=at, y=_HEIGHT - _BOTTOM - 7)


def _points(frame: _Frame, curve: Curve, unit: str, parameter: str) -> Iterator[Html]:
    for point, value in zip(curve.points.tolist(), curve.measured.tolist(), strict=True):
        if frame.axes.shows(value):
            said = f"{parameter} = {parameter_value(point)}: {quantity(value, unit)}"
            at = {"cx": frame.x(point), "cy": frame.y(value)}
            yield tag("g", tag("title", said), tag("circle", class_="point", r=4.5, **at))


def _target(frame: _Frame, curve: Curve, unit: str, parameter: str) -> Iterator[Html]:
    at_target = curve.at_target
    if curve.target is None or at_target is None or not frame.axes.shows(at_target[0]):
        return
    value, low, high = at_target
    x, y = frame.x(curve.target), frame.y(value)
    basis = basis_of(curve.seen is not None)
    said = f"{parameter} = {parameter_value(curve.target)}: {quantity(value, unit)} {basis}"
    bar: Html | str = ""
    if np.isfinite(low):
        ends = {"y1": frame.y(low), "y2": frame.y(high)}
        bar = tag("line", class_="reach", x1=x, x2=x, **ends)
    sign = tag("path", class_="target", d=_diamond(x, y))
    yield tag("g", tag("title", said), joined(bar, sign))


def _diamond(x: float, y: float, reach: float = 6.5) -> str:
    corners = ((x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y))
    return _line([(round(a, 1), round(b, 1)) for a, b in corners]) + "Z"


def _ticks(frame: _Frame, curve: Curve, parameter: str) -> Iterator[Html]:
    """Yield the labels of points below the axis, without labels that would touch another."""
    labels = [(parameter_value(point), frame.x(point)) for point in curve.ticks]
    halves = [len(text) * _LETTER / 2 for text, _ in labels]
    spans = [(x - half, x + half) for (_, x), half in zip(labels, halves, strict=True)]
    for (text, x), half, has_room in zip(labels, halves, spaced(spans, _GAP), strict=True):
        if not has_room:
            continue
        over = x + half - _WIDTH
        yield tag("text", text, class_="tick middle", x=round(x - max(over, 0), 1),
                  y=_HEIGHT - _BOTTOM + 19)  # fmt: skip
    yield tag("text", parameter, class_="tick start name", x=_LEFT - 34, y=_HEIGHT - _BOTTOM + 19)
