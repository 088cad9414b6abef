"""Contents, names, markup and charts of the page."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from callpath_modeler.analysis.answer import Answer, Ranking
from callpath_modeler.analysis.cause import Cause
from callpath_modeler.analysis.expectations.check_result import Check
from callpath_modeler.analysis.uncertain import basis_of
from callpath_modeler.arrays import IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.report.curve import Axes, Curve, spaced, value_ticks
from callpath_modeler.report.efficiency_text import EfficiencyView
from callpath_modeler.report.layout import Invocation, TextColumn, cut, shorten
from callpath_modeler.report.ranking_text import distinct_names
from callpath_modeler.studies.isoefficiency import Isoefficiency
from callpath_modeler.studies.process_profile import ProcessProfile
from callpath_modeler.support.atomic import Fingerprint
from callpath_modeler.units import parameter_value, quantity

_NOT_HTML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_VOID = frozenset({"br", "col", "input", "link", "meta", "circle", "line", "path", "polygon"})
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

Attribute = str | float | bool | None


class Html(str):
    """Markup, in contrast to plain text."""

    __slots__ = ()


def escaped(text: str) -> Html:
    """Return text as markup; characters that HTML forbids become replacement characters."""
    if isinstance(text, Html):
        return text
    return Html(html.escape(_NOT_HTML.sub(_REPLACEMENT, text)))


def tag(name: str, /, *children: str, **attributes: Attribute) -> Html:
    """Return an element.

    Parameters
    ----------
    name : name of the element
    children : text, which is escaped, and markup, which is not
    attributes : ``class_`` is class, ``aria_label`` is aria-label; True = an attribute without a
        value; None and False = no attribute
    """
    pairs = (
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_value(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    start = f"<{name}{''.join(pairs)}>"
    if name in _VOID:
        return Html(start if name in {"br", "col", "input", "link", "meta"} else start[:-1] + "/>")
    return Html(f"{start}{joined(*children)}</{name}>")


def joined(*children: str) -> Html:
    """Return text and markup, concatenated."""
    return Html("".join(map(escaped, children)))


def _value(value: str | float) -> str:
    return escaped(value) if isinstance(value, str) else f"{value:g}"


def number(value: float, text: str) -> Html:
    """Return a number as formatted text, with the full value for programs."""
    return tag("data", text, value=repr(float(value)))


def table(
    header: list[Html],
    rows: list[Html],
    *,
    caption: str,
    foot: tuple[Html, ...] = (),
    narrow: bool = False,
) -> Html:
    """Return a table that scrolls sideways where it is wider than the screen.

    Parameters
    ----------
    header : cells of the head
    rows, foot : rows
    caption : description for screen readers
    narrow : the table rarely scrolls, so the tab key skips it
    """
    whole = tag(
        "table",
        tag("caption", caption, class_="unseen"),
        tag("thead", tag("tr", *header)),
        tag("tbody", *rows),
        tag("tfoot", *foot) if foot else "",
    )
    if narrow:
        return tag("div", whole, class_="wide")
    return scrolling(caption, whole)


def scrolling(name: str, content: Html) -> Html:
    """Return content that scrolls sideways, also by keyboard."""
    return tag("div", content, class_="wide", role="region", tabindex="0", aria_label=name)


def head(text: str, *, right: bool = False, kind: str = "") -> Html:
    """Return the head of a column; `kind` is its class for styles."""
    return tag("th", text, scope="col", class_=_classes(right, kind))


def cell(content: str, *, right: bool = False, kind: str = "") -> Html:
    """Return a cell."""
    return tag("td", content, class_=_classes(right, kind))


def _classes(right: bool, kind: str) -> str | None:
    return " ".join(["n"] * right + [kind] * bool(kind)) or None


def plain_table(rows: list[tuple[str, ...]], caption: str) -> Html:
    """Return a table of texts; its first row is the head, its first column names the rows."""
    first, *others = rows
    body = [
        tag("tr", tag("th", one[0], scope="row"), *(cell(text) for text in one[1:]))
        for one in others
    ]
    return table([head(text) for text in first], body, caption=caption, narrow=True)


def columns_table(
    columns: Sequence[TextColumn], paths: Sequence[str] = (), *, caption: str
) -> Html:
    """Return columns with cells as text as a table, whose first column is call paths, if any."""
    heads = [head(column.header, right=column.right) for column in columns]
    rows = []
    for k in range(len(columns[0].cells)):
        cells = [
            cell(text := column.cells[k], right=column.right, kind=text * (text == "NO"))
            for column in columns
        ]
        rows.append(tag("tr", *map(cell, paths[k : k + 1]), *cells))
    first = [head("call path")] * bool(paths)
    return table([*first, *heads], rows, caption=caption)


def pairs(items: list[tuple[str, str]]) -> Html:
    """Return a list of terms and their descriptions."""
    return tag("dl", *(tag("div", tag("dt", word), tag("dd", text)) for word, text in items))


_ROOM = 90
"""Longest call path, in characters; longer ones lose names in the middle."""
_FULL = 600
"""Longest full call path, in characters: call chains can be 50,000 calls deep."""


def shortened(names: Sequence[str]) -> str:
    """Return a call path; long ones lose names in the middle."""
    return shorten([cut(name, _ROOM) for name in names], _ROOM)


class CallPathLinks:
    """Names of call paths.

    Parameters
    ----------
    tree : the call paths
    cards : the call paths with cards
    """

    def __init__(self, tree: CallTree, cards: IntArray) -> None:
        self._tree = tree
        self._cards = {int(row) for row in cards}

    def mark(self, row: int) -> str:
        """Return the id of a call path that commands accept."""
        return f"@{self._tree.id_of(row)}"

    def anchor(self, row: int) -> str:
        """Return the id of the card of a call path."""
        return f"c-{self._tree.id_of(row)}"

    def link(self, row: int, content: str) -> Html:
        """Return content that links to the card of a call path, if it has one."""
        if row not in self._cards:
            return escaped(content)
        return tag("a", content, href=f"#{self.anchor(row)}")

    def paths(self, rows: IntArray) -> list[Html]:
        """Return call paths in lines that may break after each slash.

        Function names are short, and long paths lose names in the middle. Paths that look the same
        are followed by their ids.
        """
        named = distinct_names(self._tree, rows, full=False)
        texts = [shortened(names) for names in named]
        count = Counter(texts)
        pairs = zip(rows.tolist(), texts, strict=True)
        return [self._path(row, text, alike=count[text] > 1) for row, text in pairs]

    def _path(self, row: int, text: str, *, alike: bool) -> Html:
        full = self._tree.path(row)
        told = None if full == text else cut(full, _FULL)
        parts = Html("<wbr>").join(escaped(part) for part in text.replace("/", "/\0").split("\0"))
        beside = tag("span", f" {self.mark(row)}", class_="aside") if alike else ""
        return joined(tag("code", Html(parts), title=told), beside)


@dataclass(frozen=True, slots=True, eq=False)
class Provenance:
    """The origin of a page, without a date: the same inputs give the same page.

    Attributes
    ----------
    command : the command that repeats the page
    listing : the command that lists all call paths
    invocation : command lines for the same experiment
    versions : versions of programs, by name
    inputs : the files that were read
    configuration : the configuration files
    """

    command: str
    listing: str
    invocation: Invocation
    versions: Sequence[tuple[str, str]]
    inputs: Sequence[Fingerprint]
    configuration: Sequence[Fingerprint] = ()


@dataclass(frozen=True, slots=True, eq=False)
class PageContent:
    """The content of a page.

    Attributes
    ----------
    ranking : the ranking
    forecast : the same predictions in views; None for a metric that does not add up over call paths
    check : results of expectations; None = no expectations
    findings : data quality findings
    making : the origin of the page; None = it was made by a library, without a command
    top : number of call paths with cards
    efficiency : factors of parallel efficiency, or the reason why there are none; "" = no section
    isoefficiency : problem sizes that keep an efficiency; None = no section
    causes : why these call paths grow, by row, where that is known
    processes : values of the processes at the largest scale, by row, where they are known
    no_processes : reason why there are no values of processes; "" = there are some, or none are
        wanted
    """

    ranking: Ranking
    forecast: Answer | None
    check: Check | None
    findings: Sequence[Finding]
    making: Provenance | None
    top: int
    efficiency: EfficiencyView | str = ""
    isoefficiency: Isoefficiency | None = None
    causes: Mapping[int, Cause] = field(default_factory=dict)
    processes: Mapping[int, ProcessProfile] = field(default_factory=dict)
    no_processes: str = ""


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
    frame = PlotArea(axes)
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
    frame = PlotArea(Axes.of(curve), edge, width - edge, edge, height - edge)
    dots = (
        tag("circle", class_="point", r=1.8, cx=frame.x(point), cy=frame.y(value))
        for point, value in curve.points_on(frame.axes)
    )
    sign = ""
    if (at := curve.target_on(frame.axes)) is not None:
        sign = tag("path", class_="target", d=_diamond(frame.x(at[0]), frame.y(at[1]), reach=3.5))
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
class PlotArea:
    """The mapping of points of the plane to the drawing."""

    axes: Axes
    left: float = _LEFT
    right: float = _WIDTH - _RIGHT
    top: float = _TOP
    bottom: float = _HEIGHT - _BOTTOM

    def x(self, point: float) -> float:
        """Return the horizontal place of a point."""
        return round(self.left + self.axes.x(point) * (self.right - self.left), 1)

    def y(self, value: float) -> float:
        """Return the vertical place of a value."""
        return round(self.bottom - self.axes.y(value) * (self.bottom - self.top), 1)


def _runs(is_shown: np.ndarray) -> Iterator[range]:
    """Yield the ranges of at least two adjacent points that are shown."""
    edges = np.flatnonzero(np.diff(is_shown.astype(np.int8), prepend=0, append=0))
    for start, end in edges.reshape(-1, 2).tolist():
        if end - start > 1:
            yield range(start, end)


def outline(points: Sequence[tuple[float, float]]) -> str:
    """Return the path of a line through points."""
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def value_grid(
    frame: PlotArea, values: Sequence[float], label: Callable[[float], str]
) -> Iterator[Html]:
    """Yield a horizontal line with a label for each value."""
    for value in values:
        y = frame.y(value)
        yield tag("line", class_="grid", x1=frame.left, x2=frame.right, y1=y, y2=y)
        yield tag("text", label(value), class_="tick end", x=frame.left - 7, y=y + 4.5)


def _grid(frame: PlotArea, curve: Curve, unit: str) -> Iterator[Html]:
    values = value_ticks(frame.axes.bottom, frame.axes.top)
    yield from value_grid(frame, values, lambda value: quantity(value, unit))
    for point in curve.points.tolist():
        x = frame.x(point)
        yield tag("line", class_="grid", x1=x, x2=x, y1=_HEIGHT - _BOTTOM, y2=_HEIGHT - _BOTTOM + 5)


def _band(frame: PlotArea, curve: Curve) -> Iterator[Html]:
    axes, low, high = frame.axes, curve.low, curve.high
    with np.errstate(invalid="ignore"):
        is_shown = np.isfinite(low) & (low <= axes.top) & (high >= axes.bottom)
    for run in _runs(is_shown):
        above = [(frame.x(curve.grid[k]), frame.y(high[k])) for k in run]
        below = [(frame.x(curve.grid[k]), frame.y(low[k])) for k in reversed(run)]
        yield tag("path", class_="band", d=outline(above + below) + "Z")


def _model(frame: PlotArea, curve: Curve) -> Iterator[Html]:
    axes, grid = frame.axes, curve.grid
    is_shown = (curve.value >= axes.bottom) & (curve.value <= axes.top)
    inside = grid <= curve.end_of_data
    # The part beyond the data starts where the other part ends.
    for part, kind in ((inside, "model"), (np.append(~inside[1:], not inside[-1]), "model beyond")):
        for run in _runs(is_shown & part):
            line = [(frame.x(grid[k]), frame.y(curve.value[k])) for k in run]
            yield tag("path", class_=kind, d=outline(line))


def _edge(frame: PlotArea, curve: Curve) -> Iterator[Html]:
    if curve.edge is None:
        return
    x = frame.x(curve.edge)
    yield tag("line", class_="edge", x1=x, x2=x, y1=_TOP, y2=_HEIGHT - _BOTTOM)
    room = _WIDTH - _RIGHT - x > len("end of the data") * _LETTER
    kind, at = ("tick start", x + 5) if room else ("tick end", x - 5)
    yield tag("text", "end of the data", class_=kind, x=at, y=_HEIGHT - _BOTTOM - 7)


def _points(frame: PlotArea, curve: Curve, unit: str, parameter: str) -> Iterator[Html]:
    for point, value in curve.points_on(frame.axes):
        said = f"{parameter} = {parameter_value(point)}: {quantity(value, unit)}"
        circle = tag("circle", class_="point", r=4.5, cx=frame.x(point), cy=frame.y(value))
        yield tag("g", tag("title", said), circle)


def _target(frame: PlotArea, curve: Curve, unit: str, parameter: str) -> Iterator[Html]:
    at = curve.target_on(frame.axes)
    if at is None:
        return
    target, value, low, high = at
    x, y = frame.x(target), frame.y(value)
    basis = basis_of(curve.seen is not None)
    said = f"{parameter} = {parameter_value(target)}: {quantity(value, unit)} {basis}"
    bar: Html | str = ""
    if np.isfinite(low):
        ends = {"y1": frame.y(low), "y2": frame.y(high)}
        bar = tag("line", class_="reach", x1=x, x2=x, **ends)
    sign = tag("path", class_="target", d=_diamond(x, y))
    yield tag("g", tag("title", said), joined(bar, sign))


def _diamond(x: float, y: float, reach: float = 6.5) -> str:
    corners = ((x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y))
    return outline([(round(a, 1), round(b, 1)) for a, b in corners]) + "Z"


def _ticks(frame: PlotArea, curve: Curve, parameter: str) -> Iterator[Html]:
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
