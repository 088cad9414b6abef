"""Screens over the browser: a text, or a list to choose from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Click, Key, MouseScrollDown, MouseScrollUp
from textual.screen import ModalScreen
from textual.widgets import Static

from callpath_modeler.report.layout import TextStyle
from callpath_modeler.report.listing import Listing
from callpath_modeler.tui.keys import MOVES
from callpath_modeler.tui.services import CommandAnswer

_KEYS = "Enter  go to the call path   y  the command that prints this   q  back"
_MORE = "any key: more   q  back"


class Note(ModalScreen[None]):
    """A text over everything; any key shows its next part, and finally closes it.

    Parameters
    ----------
    text : plain text
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._rest = text.splitlines()

    def compose(self) -> ComposeResult:
        """Return the part of the screen."""
        yield Static(markup=False, id="note")

    def on_mount(self) -> None:
        """Show the first part."""
        self._turn()

    def on_key(self, event: Key) -> None:
        """Show the next part, or close; the key has no other effect."""
        event.stop()
        if not self.is_current:
            # It closed since the key was pressed, so the key is for the screen below.
            self.app.post_message(Key(event.key, event.character))
        elif self._rest and event.key not in ("q", "escape"):
            self._turn()
        else:
            self.dismiss()

    def _turn(self) -> None:
        """Show as many of the remaining lines as fit."""
        room = max(2, self.size.height - 1)
        shown = room if len(self._rest) <= room else room - 1
        text = Text("\n".join(self._rest[:shown]))
        self._rest = self._rest[shown:]
        if self._rest:
            text.append(f"\n{_MORE}", style="dim")
        self.query_one("#note", Static).update(text)

    def on_click(self) -> None:
        """Close."""
        if self.is_current:
            self.dismiss()


class ChoiceScreen(ModalScreen[str]):
    """A list over everything; it returns the chosen text, "" for none.

    Parameters
    ----------
    style : characters of text
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVES,
        Binding("enter", "choose"),
        Binding("escape", "leave"),
    ]

    KEYS = ""
    """Text of the last line: the keys."""

    def __init__(self, style: TextStyle) -> None:
        super().__init__()
        self._line_style = style
        self._listing = Listing([], [], [])
        self._at = 0
        self._top = 0
        self._lines: list[int] = []
        self._head = 0

    @abstractmethod
    def listing(self, width: int) -> Listing:
        """Return the list, laid out for a width in terminal cells."""

    def compose(self) -> ComposeResult:
        """Return the parts of the screen, from top to bottom."""
        yield Static(id="panel", markup=False)
        yield Static(id="panel-keys", markup=False)

    def on_resize(self) -> None:
        """Lay everything out again."""
        self._renew()

    def _renew(self) -> None:
        """Lay the list out again."""
        is_first = not self._listing.entries
        self._listing = self.listing(max(20, self.size.width - 2))
        at = self._listing.chosen if is_first else self._at
        self._at = max(0, min(at, len(self._listing.entries) - 1))
        self._draw()

    def _draw(self) -> None:
        say = self._line_style.say
        head = [Text(say(str(self.title)), style="bold"), *self._listing.head]
        room = self.size.height - 1
        if len(head) > room // 2:  # the last line of the head is directly above the columns
            head = [*head[: max(0, room // 2 - 1)], head[-1]]
        body, first, last = self._body()
        room -= len(head)
        end = len(body) if self._at == len(self._listing.entries) - 1 else last
        self._top = max(0, min(max(self._top, end - room), first))
        self._head = len(head)
        shown = [*head, *body[self._top : self._top + room]]
        self.query_one("#panel", Static).update(Text("\n").join(shown))
        keys = Text(say(f" {self.KEYS}")[: self.size.width], style="dim")
        self.query_one("#panel-keys", Static).update(keys)

    def _body(self) -> tuple[list[Text], int, int]:
        """Return the lines below the head, and the range of the chosen entry."""
        lines: list[Text] = []
        self._lines = []
        first = last = 0
        for k, entry in enumerate(self._listing.entries):
            here = k == self._at
            if here:
                first, last = len(lines), len(lines) + len(entry.lines)
            mark = (">" if self._line_style.ascii_only else "▌") if here else " "
            for line in entry.lines:
                lines.append(Text(mark) + line)
                lines[-1].stylize("reverse" if here else "")
                self._lines.append(k)
        return [*lines, *(Text(" ") + line for line in self._listing.foot)], first, last

    @property
    def chosen(self) -> str:
        """The text of the entry under the cursor; "" = there is none."""
        entries = self._listing.entries
        return entries[self._at].choice if entries else ""

    def action_move(self, step: int) -> None:
        """Choose another entry."""
        self._at = max(0, min(self._at + step, len(self._listing.entries) - 1))
        self._draw()

    def action_page(self, step: int) -> None:
        """Choose an entry one page away."""
        self.action_move(step * max(1, self.size.height // 2))

    def action_choose(self) -> None:
        """Return the text of the entry."""
        if not self.chosen:
            self.app.bell()
        elif self.is_current:  # a second key may come before it is closed
            self.dismiss(self.chosen)

    def action_leave(self) -> None:
        """Close."""
        if self.is_current:
            self.dismiss("")

    def on_click(self, event: Click) -> None:
        """Go to the clicked entry, or choose it if the cursor is already there."""
        line = event.screen_y - self._head + self._top
        if event.screen_y < self._head or line >= len(self._lines):
            return
        if self._lines[line] == self._at:
            self.action_choose()
        else:
            self.action_move(self._lines[line] - self._at)

    def on_mouse_scroll_down(self, _: MouseScrollDown) -> None:
        """Go to the next entry."""
        self.action_move(1)

    def on_mouse_scroll_up(self, _: MouseScrollUp) -> None:
        """Go to the entry before."""
        self.action_move(-1)


class Panel(ChoiceScreen):
    """The answer of another command; it returns the chosen call path, "" for none.

    Parameters
    ----------
    answer : the content
    say_command : shows and copies its command
    style : characters of text
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "command"), Binding("q", "leave")]
    KEYS = _KEYS

    def __init__(
        self, answer: CommandAnswer, say_command: Callable[[str], None], style: TextStyle
    ) -> None:
        super().__init__(style)
        self.title = answer.title
        self._answer = answer
        self._say_command = say_command

    def listing(self, width: int) -> Listing:
        """Return the list, laid out for a width in terminal cells."""
        return self._answer.listing(width)

    def action_command(self) -> None:
        """Show the command that prints this."""
        self._say_command(self._answer.command)
