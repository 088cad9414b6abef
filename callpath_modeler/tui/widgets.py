"""What is around the table: a pane, and a line to type in."""

from __future__ import annotations

from textual.message import Message
from textual.widgets import Input, Static

_TITLES = {
    "target": "target {parameter} = (a number, or inf)",
    "search": "search for a name",
    "filter": "filter: a pattern of call paths, e.g. main/**/MPI_*; empty shows all",
    "compare": "compare with another experiment, measured before: its path",
    "check": "expectations: the path of a file .toml",
    "write": "write the view to: NAME.txt, .csv, .json, .md ...",
}
"""What a line says that waits to be typed in."""


class Pane(Static):
    """What there is to know of a node; it says when it has another size."""

    class Resized(Message):
        """The pane has another size."""

    def on_resize(self) -> None:
        """Say so."""
        self.post_message(self.Resized())


class Prompt(Input):
    """Asks for one thing at a time, and is not to be seen otherwise."""

    class Answered(Message):
        """Something was typed.

        Parameters
        ----------
        asked : what was asked for
        text : what was typed, without blanks around it
        """

        def __init__(self, asked: str, text: str) -> None:
            super().__init__()
            self.asked = asked
            self.text = text

    def on_mount(self) -> None:
        """Hide."""
        self.display = False

    def ask(self, what: str, parameter: str, text: str = "") -> None:
        """Ask for something.

        Parameters
        ----------
        what : target, search, filter, compare, check or write
        parameter : that targets are along
        text : what is there to begin with
        """
        self._asked = what
        self.placeholder = _TITLES[what].format(parameter=parameter)
        self.value = text
        self.display = True
        self.screen.set_focus(self)  # now: `focus` would let keys pass that were typed meanwhile

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Pass on what was typed."""
        event.stop()
        self.post_message(self.Answered(self._asked, event.value.strip()))
