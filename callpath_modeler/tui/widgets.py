"""Widgets around the table: a pane, and a prompt."""

from __future__ import annotations

from textual.message import Message
from textual.widgets import Input, Static

_TITLES = {
    "target": "target {parameter} = (a number, or inf)",
    "search": "search for a name",
    "filter": "filter: a pattern of call paths, e.g. main/**/MPI_*; empty shows all",
    "compare": "compare with an earlier experiment: its path",
    "pair": "compare scales by excess work, e.g. 8,128 or 8,64 8,128; "
    "with a target: 8,128 4096; empty shows all",
    "check": "check expectations: path of the .toml file",
    "write": "write the view to: NAME.txt, .csv, .json, .md ...",
}
"""Texts of the empty prompt."""


class Pane(Static):
    """The description of a node; it reports changes of its size."""

    class Resized(Message):
        """Event: the pane has another size."""

    def on_resize(self) -> None:
        """Post the event."""
        self.post_message(self.Resized())


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
        what : target, search, filter, compare, pair, check or write
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
