"""The parts of the browser's screen, and how they are drawn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from threading import Thread
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Resize
from textual.widgets import Static

from callpath_modeler.analysis.answer import Answer
from callpath_modeler.analysis.uncertain import basis_of
from callpath_modeler.errors import CallpathModelerError
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.tui import panes
from callpath_modeler.tui.choices import Bookmarks
from callpath_modeler.tui.panes import PaneText
from callpath_modeler.tui.services import BrowserServices
from callpath_modeler.tui.session import BINDINGS, OF_MODELS, Session, line
from callpath_modeler.tui.tree_table import TreeTable
from callpath_modeler.tui.widgets import Background, IsWanted, Note, Pane, Prompt

AT_ONCE = 3_000
"""Number of call paths up to which predictions with bands are made before a key is answered."""

_REST = 0.03
"""Seconds on a node before its description is made, if that takes time."""
_BESIDE = 112
"""Width from which the pane is next to the table, in cells."""
_LOWEST_PANE = 18
"""Least height for a pane below the table, in lines."""


class BrowserFrame(App[None]):
    """The screen of the browser.

    Parameters
    ----------
    session : the session at the start
    given : models, targets, files and commands of the experiment
    """

    CSS_PATH: ClassVar[str] = "browser.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = BINDINGS

    def __init__(self, session: Session, given: BrowserServices) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self.session = session
        self.target = session.forecast.target
        self._predicted = session.forecast.inputs.predicted
        self._given = given
        self._message = given.message
        self._bookmarks = Bookmarks(given.bookmarks)
        self._described = (0, 0, 0)
        self._background = Background(self, self._complain)
        if isinstance(session.forecast, Answer):
            # Sums of measured values take as long as the widgets. Whoever needs them first waits.
            known = session.forecast.inputs
            Thread(target=lambda: (known.at_largest, known.at_base), daemon=True).start()

    def compose(self) -> ComposeResult:
        """Return the parts of the screen, from top to bottom."""
        yield Static(id="head", markup=False)
        with Container(id="main"):
            yield TreeTable(self.session, self._given.style)
            yield Pane(id="pane", markup=False)
        yield Static(id="status", markup=False)
        yield Prompt(id="prompt")
        yield Static(id="keys", markup=False)

    @property
    def table(self) -> TreeTable:
        """The table."""
        return self.query_one(TreeTable)

    # Drawing

    def on_resize(self, event: Resize) -> None:
        """Move the pane to the side with more room."""
        self._arrange(event.size.width, event.size.height)

    def _arrange(self, width: int, height: int) -> None:
        beside = width >= _BESIDE
        self.set_class(beside, "-beside")
        pane = self.query_one(Pane)
        pane.display = beside or height >= _LOWEST_PANE
        pane.styles.width = min(60, max(44, width * 2 // 5)) if beside else "100%"
        pane.styles.height = "100%" if beside else max(8, height // 3)
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        """Draw everything but the table."""
        width, style = self.size.width, self._given.style
        lines = panes.head(self.session, self.target, width, style=style)
        self.query_one("#head", Static).update(_joined(lines))
        said = panes.status(self.session, self._message, width, style=style)
        self.query_one("#status", Static).update(said)
        without = () if self.session.forecast.has_models else OF_MODELS
        known = line(width, other=self._other_basis, without=without, style=style)
        self.query_one("#keys", Static).update(known)
        self._draw_pane()

    def on_pane_resized(self) -> None:
        """Fill the pane again."""
        self._draw_pane()

    def _draw_pane(self) -> None:
        pane = self.query_one(Pane)
        report = panes.report_of(self.session, style=self._given.style)
        if report is None or not pane.display:
            pane.show(None)
            return
        width, height = pane.content_size
        beside = self.has_class("-beside")
        described = (id(report.view), len(report.nodes), int(report.nodes[0]))
        note = ""
        if self.session.kind is ViewKind.TOP_DOWN:
            note = self.session.bookmarked.get(self.session.node, "")
        again, self._described = described == self._described, described

        def made() -> PaneText | None:
            source = partial(panes.source_lines, files=self._given.sources)
            return panes.pane(report, width, height, beside=beside, source=source, note=note)

        if self._is_small:
            pane.show(made(), again=again)
            return

        def work(is_wanted: IsWanted) -> None:
            time.sleep(_REST)  # nodes that are passed while a key is held down are skipped
            if is_wanted():
                text = made()
                if is_wanted():
                    self._background.show(partial(pane.show, again=again), text)

        self._background.do(work, "pane")

    @property
    def _is_small(self) -> bool:
        """Whether everything is computed before a key is answered."""
        return len(self.session.forecast.tree) <= AT_ONCE

    @property
    def _other_basis(self) -> str:
        """The alternative to the present values at the target: measured or predicted."""
        was_run = self.session.forecast.has_models and self.session.forecast.inputs.was_run(
            self.target
        )
        return basis_of(self._predicted) if was_run else ""

    def _renew(self, *, anew: bool = True) -> None:
        self.table.renew(anew=anew)
        self._draw()

    def say(self, message: str) -> None:
        """Show a message until the next key."""
        self._message = message
        self._draw()

    def on_tree_table_moved(self) -> None:
        """Show the description of another node."""
        self._message = ""
        self._draw()

    def on_tree_table_ordered(self, event: TreeTable.Ordered) -> None:
        """Order by the column whose title was clicked, or reverse its order."""
        self._message = ""
        self.session.sort_by(event.sort)
        self._renew()

    def _note(self, text: str) -> None:
        note = Note(self._given.style.say(text))
        self.push_screen(note, lambda _: self._come_back())

    def _attempt(self, change: Callable[[], None], *, drawn: bool = True) -> None:
        """Make a change; an error of the user is shown, and leaves everything unchanged."""
        try:
            change()
        except CallpathModelerError as error:
            self._message = in_words(error)
        if drawn:
            self._renew()

    def _mark_lines(self) -> None:
        self.session.bookmarked = self._bookmarks.rows(self.session.forecast.tree)

    def _complain(self, error: CallpathModelerError) -> None:
        """Show an error, over everything if it does not fit one line."""
        text = in_words(error)
        fits = cell_len(text) < self.size.width
        self.say(text if fits else "")
        if not fits:
            self._note(text)

    @property
    def failure(self) -> CallpathModelerError | None:
        """The error that ended the browser: a column of a large store is broken."""
        return self._exception if isinstance(self._exception, CallpathModelerError) else None

    def _fatal_error(self) -> None:
        if self.failure is None:
            super()._fatal_error()
        else:
            self._close_messages_no_wait()  # whoever ran the browser shows the error

    def _come_back(self) -> None:
        """Lay out everything again after a panel, because the terminal may have a new size."""
        self.refresh_css(animate=False)
        self._arrange(*self.size)


def in_words(error: CallpathModelerError) -> str:
    """Return an error with its hint as one text."""
    return f"{error.message}{f' ({error.hint})' if error.hint else ''}"


def _joined(lines: Sequence[Text]) -> Text:
    return Text("\n").join(lines)
