"""What is around the table: a pane, and a line to type in."""

from __future__ import annotations

from textual.message import Message
from textual.widgets import Input, Static


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

    def ask(self, what: str, title: str, text: str = "") -> None:
        """Ask for something.

        Parameters
        ----------
        title : stands there as long as nothing is typed
        text : what is there to begin with
        """
        self._asked = what
        self.placeholder = title
        self.value = text
        self.display = True
        self.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Pass on what was typed."""
        event.stop()
        self.post_message(self.Answered(self._asked, event.value.strip()))
