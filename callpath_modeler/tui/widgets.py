"""Widgets around the table, screens over the browser, and work in threads."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Click, Key, MouseScrollDown, MouseScrollUp
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Static
from textual.worker import Worker, get_current_worker

from callpath_modeler.errors import CallpathModelerError
from callpath_modeler.report.layout import Listing, TextStyle
from callpath_modeler.tui.panes import PaneText
from callpath_modeler.tui.services import CommandAnswer
from callpath_modeler.tui.session import MOVES

IsWanted = Callable[[], bool]
"""Returns whether the result of a thread is still needed."""


class Background:
    """The threads of an application.

    Parameters
    ----------
    app : the application
    complain : shows an error that ends some work
    """

    def __init__(self, app: App[None], complain: Callable[[CallpathModelerError], None]) -> None:
        self._app = app
        self._complain = complain
        self._waiting: dict[str, list[Callable[[IsWanted], None]]] = {}
        self._threads = _Threads()

    def start(self) -> None:
        """Start the threads."""
        # One thread each for targets, panes and answers: cancelled work soon ends, and few threads
        # keep little memory for themselves.
        self._threads.start(3)

    def end(self) -> None:
        """Let idle threads end, without waiting for busy ones."""
        self._threads.end()

    def do(self, work: Callable[[IsWanted], None], group: str) -> None:
        """Start some work; earlier work of the same group is cancelled."""
        # Textual's workers stay in memory until garbage collection, so they must not hold the data.
        self._waiting.get(group, []).clear()
        waiting = self._waiting[group] = [work]

        async def done() -> None:
            worker = get_current_worker()

            def is_wanted() -> bool:
                return self._app.is_running and not worker.is_cancelled

            def begin() -> None:
                if not (waiting and is_wanted()):
                    return
                try:
                    waiting.pop()(is_wanted)
                except CallpathModelerError as error:
                    self.show(self._complain, error)

            await asyncio.wrap_future(self._threads.submit(begin))

        _: Worker[None] = self._app.run_worker(done, group=group, exclusive=True)

    def show(self, shown: Callable[..., object], *what: Any) -> None:
        """Show the result of a thread and return when it is shown; do nothing after the end."""
        if self._app.is_running:
            self._app.call_from_thread(shown, *what)


class _Threads:
    """Threads that do not delay the end of the program, unlike those of `concurrent.futures`.

    A user who quits while a large experiment is read wants to leave at once.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Future[None], Callable[[], None]] | None] = SimpleQueue()
        self._threads: list[Thread] = []

    def start(self, count: int) -> None:
        self._threads = [Thread(target=self._serve, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        for _ in self._threads:
            self._queue.put(None)

    def submit(self, work: Callable[[], None]) -> Future[None]:
        future: Future[None] = Future()
        self._queue.put((future, work))
        return future

    def _serve(self) -> None:
        while (given := self._queue.get()) is not None:
            future, work = given
            if future.set_running_or_notify_cancel():
                try:
                    work()
                except BaseException as error:  # noqa: BLE001 - the waiting caller gets it
                    future.set_exception(error)
                else:
                    future.set_result(None)
            del given, future, work  # the next item may come much later


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
