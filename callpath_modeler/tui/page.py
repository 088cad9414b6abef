"""The visible part of a view as lines of text: indented names, then values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from callpath_modeler.analysis.answer import Answer
from callpath_modeler.analysis.node_values import NodeValues
from callpath_modeler.analysis.pair_forecast import NodeDifferences, PairForecast, ViewForecast
from callpath_modeler.modeling import Growth
from callpath_modeler.profile.outline import SHARED
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.view_request import Sort
from callpath_modeler.profile.views import ViewKind
from callpath_modeler.report.layout import DEFAULT_STYLE, TextColumn, TextStyle, chain_text, shorten
from callpath_modeler.report.outlined_view import title
from callpath_modeler.report.value_columns import process_columns
from callpath_modeler.report.views import value_cells
from callpath_modeler.tui.session import Session
from callpath_modeler.units import percent

NAME_LEAST = 26
"""Least width of names, in cells; optional columns are dropped first."""
_STEP = 2

_ORDER = (
    *("at_common", "base", "new", "difference", "ratio", "interval", "own_difference"),
    *("measured", "value", "band", "model", "maximum", "imbalance"),
    *("share", "growth", "excess", "loss", "own_loss", "trust", "other"),
)
"""Columns from left to right."""
_FIRST_TO_GO = (
    "imbalance",
    "maximum",
    "other",
    "excess",
    "growth",
    "measured",
    "model",
    "band",
    "share",
    "trust",
)

_FIRST_TO_GO_OF_TWO = (
    *("imbalance", "maximum", "other", "band", "share"),
    *("base", "own_loss"),
)
"""The same of a comparison of two scales, which keeps its excess work."""

_FIRST_TO_GO_OF_PAIR = "own_difference", "interval", "growth", "at_common"
"""The same of two experiments, which keep both values, difference and ratio."""

SORT_OF = {
    "name": Sort.NAME,
    "base": Sort.BASE,
    "new": Sort.NEW,
    "difference": Sort.DIFFERENCE,
    "ratio": Sort.RATIO,
    "measured": Sort.MEASURED,
    "value": Sort.VALUE,
    "share": Sort.VALUE,
    "band": Sort.HIGH,
    "growth": Sort.GROWTH,
    "excess": Sort.EXCESS,
    "loss": Sort.EXCESS,
    "own_loss": Sort.EXCESS,
    "trust": Sort.TRUST,
}
"""The order that a click on the title of a column chooses."""

SIGNS = {"open": "▾", "closed": "▸", "leaf": " "}
ASCII_SIGNS = {"open": "-", "closed": "+", "leaf": " "}
_CONSTANT, _ROOT, _LINEAR = (Growth(Fraction(k, 2), 0) for k in range(3))
_HEAT = ("", "green", "yellow", "red", "bold red")
"""Styles of growth: none, slower than the square root, slower than linear, linear, faster."""
_FOUND = "bold underline"
"""Style of the part of a name that the search found; it needs no colour."""


@dataclass(frozen=True, slots=True)
class Page:
    """Lines of a view that fit a width.

    Attributes
    ----------
    header : titles of the columns
    lines : one per line of the view
    widths : width of each column, in terminal cells
    starts : first cell of each shown column, by name; ``"name"`` is the column of names
    signs : cell of the sign that opens and closes, one per line
    """

    header: Text
    lines: Sequence[Text]
    widths: Mapping[str, int]
    starts: Mapping[str, int]
    signs: Sequence[int]

    def column_at(self, x: int) -> str:
        """Return the name of the column at a cell."""
        return max(self.starts, key=lambda name: (self.starts[name] <= x, self.starts[name]))


def page(
    session: Session,
    first: int,
    count: int,
    width: int,
    *,
    style: TextStyle = DEFAULT_STYLE,
    at_least: Mapping[str, int] | None = None,
) -> Page:
    """Return some lines of the current view.

    Parameters
    ----------
    session : the session
    first, count : first line, and number of lines
    width : width in terminal cells
    style : width, length of names, and characters of text
    at_least : earlier widths of columns, so that columns do not jump
    """
    places = np.arange(first, min(first + count, len(session.outline)))
    columns = _columns(session, places, style=style)
    before = at_least or {}
    widths = {name: max(column.width, before.get(name, 0)) for name, column in columns.items()}
    kept = "growth" if session.heat else ""
    shown = _shown(widths, width, _first_to_go(session.forecast), kept=kept)
    room = width - sum(widths[name] + 1 for name in shown)
    say = style.say
    heading = shorten([title(session.outline)], room, say("…"))
    header = _line(
        heading, room, [(c.header, c, "") for c in _picked(columns, shown)], widths, shown
    )
    starts, at = {"name": 0}, room
    for name in shown:
        starts[name], at = at, at + 1 + widths[name]
    lines, signs = [], []
    for k, place in enumerate(places.tolist()):
        cells = [
            (column.cells[k], column, column.styles[k] if column.styles else "")
            for column in _picked(columns, shown)
        ]
        indent, name = _name(session, place, room, style=style)
        signs.append(len(indent) - 2)
        line = _line(indent + name, room, cells, widths, shown)
        start, end = _match(session, place, name)
        if end:
            line.stylize(_FOUND, len(indent) + start, len(indent) + end)
        lines.append(line)
    return Page(header, lines, widths, starts, signs)


def _picked(columns: Mapping[str, TextColumn], shown: Sequence[str]) -> list[TextColumn]:
    return [columns[name] for name in shown]


def _first_to_go(forecast: ViewForecast) -> Sequence[str]:
    if isinstance(forecast, PairForecast):
        return _FIRST_TO_GO_OF_PAIR
    return _FIRST_TO_GO_OF_TWO if forecast.is_comparison else _FIRST_TO_GO


def _columns(session: Session, places: np.ndarray, *, style: TextStyle) -> dict[str, TextColumn]:
    """Return the columns of lines by name, from left to right."""
    own, whole = session.values(places)
    if isinstance(own, NodeDifferences) and isinstance(whole, NodeDifferences):
        cells = _of_pair(session, places, own, whole, style=style)
    else:
        assert isinstance(own, NodeValues), "the browser shows one experiment"
        assert isinstance(whole, NodeValues), "the browser shows one experiment"
        cells = _of_forecast(session, places, own, whole, style=style)
    return {
        name: replace(cells[name], header=style.say(cells[name].header),
                      cells=[style.say(text) for text in cells[name].cells])
        for name in _ORDER if name in cells
    }  # fmt: skip


def _of_pair(
    session: Session,
    places: np.ndarray,
    own: NodeDifferences,
    whole: NodeDifferences,
    *,
    style: TextStyle,
) -> dict[str, TextColumn]:
    """Return the columns of two experiments."""
    from callpath_modeler.report.difference_columns import difference_cells

    forecast, inclusive = session.forecast, session.leads_inclusive
    assert isinstance(forecast, PairForecast), "the browser compares two experiments"
    rows = session.outline.single_rows(places)
    return difference_cells(forecast, own, whole, rows, inclusive=inclusive, style=style)


def _of_forecast(
    session: Session,
    places: np.ndarray,
    own: NodeValues,
    whole: NodeValues,
    *,
    style: TextStyle,
) -> dict[str, TextColumn]:
    """Return the columns of one experiment."""
    forecast, inclusive = session.forecast, session.leads_inclusive
    assert isinstance(forecast, Answer), "the browser shows one experiment"
    cells = value_cells(forecast, own, whole, inclusive=inclusive, style=style)
    main = whole if inclusive else own
    if not forecast.has_bands and "band" in cells:
        cells["band"] = replace(cells["band"], cells=["…"] * len(places))
    is_additive = forecast.fitted.metric.additive
    if is_additive:
        cells["share"] = TextColumn("share", [percent(share) for share in main.share.tolist()])
    has_models = is_additive and not forecast.fitted.is_measured_only
    both = zip(whole.excess.tolist(), own.excess.tolist(), strict=True)
    if has_models:
        cells["excess"] = TextColumn(
            "excess incl/excl", [f"{percent(i)} / {percent(e)}" for i, e in both]
        )
    if not inclusive:
        rows = session.outline.single_rows(places)
        cells |= process_columns(forecast, rows, style=style)
    if session.heat and has_models:
        heats = [_heat(forecast, code) for code in main.growth.tolist()]
        for name in ("growth", "value"):
            cells[name] = replace(cells[name], styles=[_HEAT[heat] for heat in heats])
        marks = [f"{text} {'!' * max(0, heat - 1)}" for text, heat in
                 zip(cells["growth"].cells, heats, strict=True)]  # fmt: skip
        cells["growth"] = replace(cells["growth"], cells=[mark.rstrip() for mark in marks])
    return cells


def _heat(forecast: Answer, code: int) -> int:
    """Return the speed of a growth, from 0 (none) to 4 (faster than linear)."""
    growth = forecast.inputs.growth_of(code)
    if growth is None:
        return 0
    return sum([growth > _CONSTANT, growth >= _ROOT, growth >= _LINEAR, growth > _LINEAR])


def _shown(
    widths: Mapping[str, int], width: int, first_to_go: Sequence[str], *, kept: str
) -> list[str]:
    """Return the columns that fit; `kept` is dropped last."""
    shown = [name for name in _ORDER if name in widths]
    for name in sorted(first_to_go, key=kept.__eq__):
        if width - sum(widths[n] + 1 for n in shown) >= NAME_LEAST:
            break
        if name in shown:
            shown.remove(name)
    return shown


def _match(session: Session, place: int, name: str) -> tuple[int, int]:
    """Return the part of the name on the screen that the search found; (0, 0) = none.

    If the match is in a part that the screen leaves out, it is the whole name.
    """
    node = int(session.outline.nodes[place])
    if node == SHARED or not session.found.text:
        return 0, 0
    start, end = session.found.part(name)
    names = (*_chain(session, node), session.view.name(node))
    if end or not any(session.found.part(each)[1] for each in names):
        return start, end
    return 0, len(name)


def _name(session: Session, place: int, room: int, *, style: TextStyle) -> tuple[str, str]:
    """Return the position of a line in the tree, and its name."""
    outline, view = session.outline, session.view
    say = style.say
    depth = int(outline.depth[place])
    signs = ASCII_SIGNS if style.ascii_only else SIGNS
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
        node = int(outline.nodes[place])
        names = [say(short_name(name)) for name in (*_chain(session, node), view.name(node))]
        head = f"{indent}{signs[kind]} "
        return head, chain_text(names, max(4, room - cell_len(head)), say("…"))
    head = f"{indent}{signs[kind]} "
    return head, shorten([what], max(4, room - cell_len(head)), say("…"))


def _chain(session: Session, node: int) -> Sequence[str]:
    """Return the names of the folded call paths above a node."""
    top_down = session.kind is ViewKind.TOP_DOWN
    return session.forecast.chains.get(node, ()) if top_down else ()


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
