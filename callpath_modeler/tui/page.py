"""The visible part of a view as lines of text: names with their place in the tree, then values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from callpath_modeler.modeling import Growth
from callpath_modeler.profile.outline import SHARED
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.columns import has_maxima, ratio_text, value_titles
from callpath_modeler.report.layout import TextColumn, shorten
from callpath_modeler.report.outlined_view import title
from callpath_modeler.report.views import value_cells
from callpath_modeler.tui.session import Session
from callpath_modeler.units import percent, quantity, to_ascii

NAME_LEAST = 26
"""Columns that can go do, before names get less than this."""
_STEP = 2

_ORDER = (
    *("measured", "value", "band", "model", "maximum", "imbalance"),
    *("share", "growth", "excess", "trust", "other"),
)
"""Columns from left to right."""
_FIRST_TO_GO = (
    "imbalance",
    "maximum",
    "other",
    "excess",
    "growth",
    "measured",
    "trust",
    "model",
    "band",
    "share",
)

SIGNS = {"open": "▾", "closed": "▸", "leaf": " "}
ASCII_SIGNS = {"open": "-", "closed": "+", "leaf": " "}
_CONSTANT, _ROOT, _LINEAR = (Growth(Fraction(k, 2), 0) for k in range(3))
_HEAT = ("", "green", "yellow", "red", "bold red")
"""Styles of growth: none, slower than the square root, slower than linear, linear, faster."""


@dataclass(frozen=True, slots=True)
class Page:
    """Lines of a view that fit a width.

    Attributes
    ----------
    header : the titles of the columns
    lines : one per line of the view
    widths : how wide each column is, in terminal cells
    """

    header: Text
    lines: Sequence[Text]
    widths: Mapping[str, int]


def page(
    session: Session,
    first: int,
    count: int,
    width: int,
    *,
    ascii_only: bool = False,
    at_least: Mapping[str, int] | None = None,
) -> Page:
    """Lay out some lines of what a session shows.

    Parameters
    ----------
    first, count : which lines
    width : in terminal cells
    at_least : widths that columns had before, so that they do not jump
    """
    places = np.arange(first, min(first + count, len(session.outline)))
    columns = _columns(session, places, ascii_only=ascii_only)
    before = at_least or {}
    widths = {name: max(column.width, before.get(name, 0)) for name, column in columns.items()}
    shown = _shown(widths, width, kept="growth" if session.heat else "")
    room = width - sum(widths[name] + 1 for name in shown)
    say: Callable[[str], str] = to_ascii if ascii_only else str
    heading = shorten([title(session.outline)], room, say("…"))
    header = _line(
        heading, room, [(c.header, c, "") for c in _picked(columns, shown)], widths, shown
    )
    lines = []
    for k, place in enumerate(places.tolist()):
        cells = [
            (column.cells[k], column, column.styles[k] if column.styles else "")
            for column in _picked(columns, shown)
        ]
        name = _name(session, place, room, ascii_only=ascii_only)
        lines.append(_line(name, room, cells, widths, shown))
    return Page(header, lines, widths)


def _picked(columns: Mapping[str, TextColumn], shown: Sequence[str]) -> list[TextColumn]:
    return [columns[name] for name in shown]


def _columns(session: Session, places: np.ndarray, *, ascii_only: bool) -> dict[str, TextColumn]:
    say: Callable[[str], str] = to_ascii if ascii_only else str
    own, whole = session.values(places)
    inclusive = session.leads_inclusive
    cells = value_cells(session.forecast, own, whole, inclusive=inclusive, ascii_only=ascii_only)
    main = whole if inclusive else own
    if not session.forecast.has_bands:
        cells["band"] = replace(cells["band"], cells=["…"] * len(places))
    cells["share"] = TextColumn("share", [percent(share) for share in main.share.tolist()])
    both = zip(whole.excess.tolist(), own.excess.tolist(), strict=True)
    cells["excess"] = TextColumn(
        "excess incl/excl", [f"{percent(i)} / {percent(e)}" for i, e in both]
    )
    if not inclusive:
        cells |= _of_processes(session, places, ascii_only=ascii_only)
    if session.heat:
        heats = [_heat(session, code) for code in main.growth.tolist()]
        for name in ("growth", "value"):
            cells[name] = replace(cells[name], styles=[_HEAT[heat] for heat in heats])
        marks = [f"{text} {'!' * max(0, heat - 1)}" for text, heat in
                 zip(cells["growth"].cells, heats, strict=True)]  # fmt: skip
        cells["growth"] = replace(cells["growth"], cells=[mark.rstrip() for mark in marks])
    return {
        name: replace(cells[name], header=say(cells[name].header),
                      cells=[say(text) for text in cells[name].cells])
        for name in _ORDER if name in cells
    }  # fmt: skip


def _of_processes(
    session: Session, places: np.ndarray, *, ascii_only: bool
) -> dict[str, TextColumn]:
    """Return maxima over processes and the imbalance at the largest scale, as a ranking does.

    Lines of several call paths have none: the slowest processes of each may differ.
    """
    fitted, nodes = session.forecast.fitted, session.outline.nodes[places].tolist()
    maximum, imbalance = session.forecast.inputs.maxima_at_largest
    if not has_maxima(fitted, maximum):
        return {}
    alone: list[int | None] = []
    for node in nodes:
        rows = [] if node == SHARED else session.view.rows(node).tolist()
        alone.append(rows[0] if len(rows) == 1 else None)
    unit = fitted.metric.unit
    largest, _ = value_titles(session.forecast)
    return {
        "maximum": TextColumn(f"max {largest}", [
            "" if row is None else quantity(float(maximum[row]), unit, ascii_only=ascii_only)
            for row in alone
        ]),
        "imbalance": TextColumn("imbalance", [
            "" if row is None else ratio_text(float(imbalance[row])) for row in alone
        ]),
    }  # fmt: skip


def _heat(session: Session, code: int) -> int:
    """Tell how fast something grows: 0 not at all, to 4 faster than linear."""
    growth = session.forecast.inputs.growth_of(code)
    if growth is None:
        return 0
    return sum([growth > _CONSTANT, growth >= _ROOT, growth >= _LINEAR, growth > _LINEAR])


def _shown(widths: Mapping[str, int], width: int, *, kept: str) -> list[str]:
    """Return the columns that there is room for; `kept` goes last."""
    shown = [name for name in _ORDER if name in widths]
    for name in sorted(_FIRST_TO_GO, key=kept.__eq__):
        if width - sum(widths[n] + 1 for n in shown) >= NAME_LEAST:
            break
        if name in shown:
            shown.remove(name)
    return shown


def _name(session: Session, place: int, room: int, *, ascii_only: bool) -> str:
    """Return the name of a line, behind what says where it is in the tree."""
    outline, view = session.outline, session.view
    say: Callable[[str], str] = to_ascii if ascii_only else str
    depth = int(outline.depth[place])
    signs = ASCII_SIGNS if ascii_only else SIGNS
    kind = "open" if outline.is_open[place] else "closed" if outline.is_closed[place] else "leaf"
    indent = " " * (_STEP * depth)
    if len(indent) > room // 3:
        mark = f"({depth}) "
        indent = " " * max(0, room // 3 - len(mark)) + mark
    if outline.nodes[place] == SHARED:
        what = f"{say('…')} {len(outline.rests[place])} more"
        if session.hides and not session.pattern:
            what += f" below {percent(session.least)}"
    else:
        what = say(short_name(view.name(int(outline.nodes[place]))))
    head = f"{indent}{signs[kind]} "
    return head + shorten([what], max(4, room - cell_len(head)), say("…"))


def _line(
    name: str,
    room: int,
    cells: Sequence[tuple[str, TextColumn, str]],
    widths: Mapping[str, int],
    shown: Sequence[str],
) -> Text:
    line = Text(name + " " * max(0, room - cell_len(name)), no_wrap=True, overflow="crop")
    for (text, column, style), key in zip(cells, shown, strict=True):
        pad = " " * (widths[key] - cell_len(text))
        line.append(" ")
        line.append(pad + text if column.right else text + pad, style or None)
    return line
