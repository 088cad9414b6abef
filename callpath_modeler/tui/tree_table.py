"""The table of a view: its visible part as lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from callpath_modeler.analysis.answer import Answer
from callpath_modeler.analysis.node_values import NodeValues
from callpath_modeler.analysis.pair_forecast import NodeDifferences, PairForecast, ViewForecast
from callpath_modeler.modeling import Growth
from callpath_modeler.profile.outline import SHARED
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.profile.view_request import Sort
from callpath_modeler.report.layout import DEFAULT_STYLE, TextColumn, TextStyle, chain_text, shorten
from callpath_modeler.report.outlined_view import title
from callpath_modeler.report.ranking_columns import process_columns
from callpath_modeler.report.views_text import value_cells
from callpath_modeler.tui.session import MOVES, Session
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
    from callpath_modeler.report.difference_view import difference_cells

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


_HEADER = 1
"""Number of lines above the first line of the view."""
_MARK = 1
"""Width of the mark of the cursor, in cells."""


class TreeTable(ScrollView, can_focus=True):
    """The lines of a session's view, with a fixed header.

    Parameters
    ----------
    session : the session
    ascii_only : use ASCII characters only
    """

    BINDINGS: ClassVar[list[BindingType]] = [*MOVES]

    class Moved(Message):
        """Event: the cursor is on another line."""

    class Chosen(Message):
        """Event: the line under the cursor was chosen."""

    class Ordered(Message):
        """Event: the title of a column was chosen.

        Parameters
        ----------
        sort : the order of the column
        """

        def __init__(self, sort: Sort) -> None:
            super().__init__()
            self.sort = sort

    def __init__(self, session: Session, style: TextStyle) -> None:
        super().__init__()
        self.session = session
        self._line_style = style
        self._page: Page | None = None
        self._made_for: tuple[int, int] = (-1, -1)
        self._widths: dict[str, int] = {}

    def renew(self, *, anew: bool = True) -> None:
        """Show the current state of the session; with `anew`, columns may become narrower."""
        self._page = None
        if anew:
            self._widths = {}
        self.session.fill(self.size.height - _HEADER)
        self.virtual_size = Size(self.size.width, len(self.session.outline) + _HEADER)
        self._follow()
        self.refresh()

    def _follow(self) -> None:
        """Scroll as little as possible so that the cursor is visible."""
        room = max(1, self.size.height - _HEADER)
        cursor, top = self.session.cursor, self._top
        if cursor < top:
            top = cursor
        elif cursor >= top + room:
            top = cursor - room + 1
        self.scroll_to(y=top, animate=False, force=True, immediate=True)

    @property
    def _top(self) -> int:
        return round(self.scroll_offset.y)

    def on_resize(self, _: Resize) -> None:
        """Lay everything out again."""
        self.renew()

    def render_line(self, y: int) -> Strip:
        """Return one line of the screen."""
        width, style = self.size.width, self.rich_style
        made_for = (self._top, self.size.height)
        if self._page is None or made_for != self._made_for:
            self._page = self._laid_out(width)
            self._made_for = made_for
        if y < _HEADER:
            return self._strip(Text(" ") + self._page.header, width, style + Style(bold=True))
        place = self._top + y - _HEADER
        if y - _HEADER >= len(self._page.lines):
            return Strip.blank(width, style)
        here = place == self.session.cursor
        mark = "*" if self._is_bookmarked(place) else " "
        if here:
            mark = ">" if self._line_style.ascii_only else "▌"
        line = Text(mark) + self._page.lines[y - _HEADER]
        return self._strip(line, width, style + Style(reverse=True) if here else style)

    def _is_bookmarked(self, place: int) -> bool:
        session = self.session
        if session.kind is not ViewKind.TOP_DOWN:
            return False
        return int(session.outline.nodes[place]) in session.bookmarked

    def _laid_out(self, width: int) -> Page:
        made = page(
            self.session,
            self._top,
            max(0, self.size.height - _HEADER),
            width - 1,
            style=self._line_style,
            at_least=self._widths,
        )
        self._widths = dict(made.widths)
        return made

    def _strip(self, text: Text, width: int, style: Style) -> Strip:
        segments = [
            type(segment)(segment.text, style + segment.style if segment.style else style)
            for segment in text.render(self.app.console)
            if segment.text
        ]
        return Strip(segments).adjust_cell_length(width, style)

    def action_move(self, step: int) -> None:
        """Move the cursor."""
        self.session.go(self.session.cursor + step)
        self._follow()
        self.refresh()
        self.post_message(self.Moved())

    def action_page(self, step: int) -> None:
        """Move the cursor by a screen."""
        self.action_move(step * max(1, self.size.height - _HEADER - 1))

    def on_click(self, event: Click) -> None:
        """Go to the clicked line; a click on its sign, or a second click, opens or closes it.

        A click on a title orders by the column.
        """
        x, place = event.x - _MARK, self._top + event.y - _HEADER
        made = self._page
        if made is None or place >= len(self.session.outline):
            return
        if event.y < _HEADER:
            sort = SORT_OF.get(made.column_at(x))
            if sort is not None:
                self.post_message(self.Ordered(sort))
            return
        sign = made.signs[event.y - _HEADER]
        if place == self.session.cursor:
            self.post_message(self.Chosen())
        else:
            self.action_move(place - self.session.cursor)
            if sign <= x <= sign + 1:
                self.post_message(self.Chosen())
