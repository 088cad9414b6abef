"""A table of the lines of a view; only visible lines are made."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from callpath_modeler.profile.view_request import Sort
from callpath_modeler.profile.views import ViewKind
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.tui.keys import MOVES
from callpath_modeler.tui.page import SORT_OF, Page, page
from callpath_modeler.tui.session import Session

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
