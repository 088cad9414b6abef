"""Widgets around the table: a pane, and a prompt."""

from __future__ import annotations

from rich.text import Text
from textual.events import MouseScrollDown, MouseScrollUp
from textual.message import Message
from textual.widgets import Input, Static

from callpath_modeler.tui.panes import PaneText

_WHEEL = 3
"""Lines that one step of the mouse wheel scrolls."""

_TITLES = {
    "target": "target {parameter} = (a number, or inf)",
    "search": "search for a name",
    "filter": "filter: a pattern of call paths, e.g. main/**/MPI_*; empty shows all",
    "compare": "compare with an earlier experiment: its path; empty shows this one alone",
    "pair": "compare scales by excess work, e.g. 8,128 or 8,64 8,128; "
    "with a target: 8,128 4096; empty shows all",
    "check": "check expectations: path of the .toml file",
    "note": "note of the bookmark; it may be empty",
    "write": "write the view to: NAME.txt, .csv, .json, .md ...",
}
"""Texts of the empty prompt."""


class Pane(Static):
    """The description of a node; it reports changes of its size."""

    class Resized(Message):
        """Event: the pane has another size."""

    shown: PaneText | None = None
    """The description."""
    first: int = 0
    """The first line on the screen, below the title."""

    def on_resize(self) -> None:
        """Post the event."""
        self.post_message(self.Resized())

    def show(self, shown: PaneText | None, *, again: bool = False) -> None:
        """Show a description, from its first line on.

        Parameters
        ----------
        shown : the description; None = nothing
        again : keep the first line, because the description is of the same node
        """
        self.shown = shown
        self.scroll_lines(0 if again else -self.first)

    def scroll_lines(self, count: int) -> None:
        """Scroll down by a number of lines; below zero: up."""
        shown = self.shown
        self.first = 0 if shown is None else max(0, min(self.first + count, shown.furthest))
        self.update("" if shown is None else Text("\n").join(shown.part(self.first)))

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Scroll down."""
        event.stop()
        self.scroll_lines(_WHEEL)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Scroll up."""
        event.stop()
        self.scroll_lines(-_WHEEL)


class Prompt(Input):
    """A line to type in, hidden unless it is needed."""

    class Answered(Message):
        """Event: a line was typed.

        Parameters
        ----------
        asked : subject of the prompt
        text : the line, without surrounding blanks
        """

        def __init__(self, asked: str, text: str) -> None:
            super().__init__()
            self.asked = asked
            self.text = text

    def on_mount(self) -> None:
        """Hide."""
        self.display = False

    def ask(self, what: str, parameter: str, text: str = "") -> None:
        """Open the prompt.

        Parameters
        ----------
        what : target, search, filter, compare, pair, check, note or write
        parameter : parameter of the target
        text : initial text
        """
        self._asked = what
        self.placeholder = _TITLES[what].format(parameter=parameter)
        self.value = text
        self.display = True
        self.screen.set_focus(
            self
        )  # at once, because `focus` would lose keys that are typed meanwhile

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Post the typed line."""
        event.stop()
        self.post_message(self.Answered(self._asked, event.value.strip()))
