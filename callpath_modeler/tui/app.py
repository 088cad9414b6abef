"""The browser: keys become changes of the session, and what it shows is drawn again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import Resize
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from callpath_modeler.analysis.forecast import Forecast, Known, forecast
from callpath_modeler.errors import CallpathModelerError
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.views import ViewKind
from callpath_modeler.profile.wanted import Wanted
from callpath_modeler.tui import panes
from callpath_modeler.tui.memory import give_back
from callpath_modeler.tui.session import Session
from callpath_modeler.tui.tree_table import TreeTable
from callpath_modeler.units import counted, to_ascii

AT_ONCE = 3_000
"""So many call paths are predicted with their bands before a key is answered."""

_REST = 0.03
"""Seconds on a node before there is a pane for it, where that takes time."""
_BESIDE = 112
"""From this many cells on, the pane is beside the table."""
_LOWEST_PANE = 18
"""In fewer lines there is no pane below the table."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the browser is given by who starts it.

    Attributes
    ----------
    models_of : makes the models of another metric
    target_of : reads a target as it is typed
    command : writes the command that prints a view at a target, of a metric
    save : writes a view to a file, and returns what to say of it
    ascii_only : use no character beyond ASCII
    message : what to say at first
    """

    models_of: Callable[[str], Fitted]
    target_of: Callable[[str, Fitted], float]
    command: Callable[[Wanted, float, str], str]
    save: Callable[[Forecast, Wanted, Path], str]
    ascii_only: bool = False
    message: str = ""


class Pane(Static):
    """What there is to know of a node; it says when it has another size."""

    class Resized(Message):
        """The pane has another size."""

    def on_resize(self) -> None:
        """Say so."""
        self.post_message(self.Resized())


class _Note(ModalScreen[None]):
    """A text over everything; any key closes it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Show the text as it is."""
        yield Static(self._text, markup=False, id="note")

    def on_key(self) -> None:
        """Close."""
        self.dismiss()

    def on_click(self) -> None:
        """Close."""
        self.dismiss()


def _keys(*pairs: tuple[str, str]) -> list[BindingType]:
    return [Binding(keys, action) for keys, action in pairs]


class Browser(App[None]):
    """Browse an experiment.

    Parameters
    ----------
    session : what is shown first
    given : what it needs of its surroundings
    """

    CSS_PATH: ClassVar[str] = "browser.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = _keys(
        ("q,ctrl+c,ctrl+q", "quit"),
        ("right,l", "do('go_in')"),
        ("left,h", "do('go_out')"),
        ("enter", "do('toggle')"),
        ("e", "do('open')"),
        ("E", "do('open_all')"),
        ("c", "do('close')"),
        ("C", "do('close_all')"),
        ("u", "do('caller')"),
        ("H", "do('follow_hot_path')"),
        ("z", "do('zoom')"),
        ("backspace", "do('unzoom')"),
        ("1", "show('top-down')"),
        ("2", "show('bottom-up')"),
        ("3", "show('flat')"),
        ("s", "do('sort_next')"),
        ("S", "do('turn_round')"),
        ("i", "do('lead_with_other')"),
        ("full_stop", "do('hide_or_show_small')"),
        ("g", "heat"),
        ("m", "metric"),
        ("left_square_bracket", "target(0.5)"),
        ("right_square_bracket", "target(2.0)"),
        ("t", "prompt('target')"),
        ("slash", "prompt('search')"),
        ("n", "found(1)"),
        ("N", "found(-1)"),
        ("f", "prompt('filter')"),
        ("w", "prompt('write')"),
        ("y", "command"),
        ("question_mark", "help"),
        ("escape", "leave_prompt"),
    )

    def __init__(self, session: Session, given: Surroundings) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self.session = session
        self.target = session.forecast.target
        self._given = given
        self._message = given.message
        self._asked = ""

    def compose(self) -> ComposeResult:
        """Make the parts of the screen, from top to bottom."""
        yield Static(id="head", markup=False)
        with Container(id="main"):
            yield TreeTable(self.session, ascii_only=self._given.ascii_only)
            yield Pane(id="pane", markup=False)
        yield Static(id="status", markup=False)
        yield Input(id="prompt")
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        """Begin; bands that were not waited for are made now."""
        # One thread for targets and one for panes: what is no longer wanted soon makes room, and
        # memory that threads keep for themselves does not add up.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max_workers=2))
        self.table.focus()
        self.query_one("#prompt").display = False
        self.set_class(self._given.ascii_only, "-ascii")
        shown = self.session.forecast
        if not shown.has_bands:
            self._foresee(shown.known, self.target)

    @property
    def table(self) -> TreeTable:
        """The table."""
        return self.query_one(TreeTable)

    # What is drawn

    def on_resize(self, event: Resize) -> None:
        """Put the pane where there is room for it."""
        self._arrange(event.size.width, event.size.height)

    def _arrange(self, width: int, height: int) -> None:
        beside = width >= _BESIDE
        self.set_class(beside, "-beside")
        pane = self.query_one("#pane", Static)
        pane.display = beside or height >= _LOWEST_PANE
        pane.styles.width = min(60, max(44, width * 2 // 5)) if beside else "100%"
        pane.styles.height = "100%" if beside else max(8, height // 3)
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        """Draw everything but the table."""
        width, plain = self.size.width, self._given.ascii_only
        lines = panes.head(self.session, self.target, width, ascii_only=plain)
        self.query_one("#head", Static).update(_joined(lines))
        said = panes.status(self.session, self._message, width, ascii_only=plain)
        self.query_one("#status", Static).update(said)
        self.query_one("#keys", Static).update(panes.keys(width, ascii_only=plain))
        self._draw_pane()

    def on_pane_resized(self) -> None:
        """Fill the pane as it is now."""
        self._draw_pane()

    def _draw_pane(self) -> None:
        pane = self.query_one("#pane", Static)
        if not pane.display:
            return
        report = panes.report_of(self.session, ascii_only=self._given.ascii_only)
        if report is None:
            pane.update("")
            return
        width, height = pane.content_size
        beside = self.has_class("-beside")

        def made() -> Text:
            source = panes.source_about
            return _joined(panes.pane(report, width, height, beside=beside, source=source))

        if self._is_small:
            pane.update(made())
        else:
            self._in_a_thread(lambda: self._work_on_pane(made), "pane")

    def _work_on_pane(self, made: Callable[[], Text]) -> None:
        worker = get_current_worker()
        time.sleep(_REST)  # whoever holds a key down is not interested in what lies on the way
        if not worker.is_cancelled:
            text = made()
            if not worker.is_cancelled:
                self.call_from_thread(self.query_one("#pane", Static).update, text)

    @property
    def _is_small(self) -> bool:
        """Whether everything is done at once, before a key is answered."""
        return len(self.session.forecast.known.modelled) <= AT_ONCE

    def _renew(self, *, anew: bool = True) -> None:
        self.table.renew(anew=anew)
        self._draw()

    def say(self, message: str) -> None:
        """Show a message until the next key."""
        self._message = message
        self._draw()

    def on_tree_table_moved(self) -> None:
        """Show what there is to know of another node."""
        self._message = ""
        self._draw()

    def on_tree_table_chosen(self) -> None:
        """Open or close what was clicked."""
        self.action_do("toggle")

    # Keys

    def action_do(self, what: str) -> None:
        """Let the session do something."""
        self._message = ""
        node, at_rest = self.session.node, self.session.node < 0 and len(self.session.outline) > 0
        getattr(self.session, what)()
        if at_rest and what in {"open", "go_in", "toggle", "open_all", "zoom"}:
            key = "f changes the filter" if self.session.pattern else ". shows what is small"
            self._message = f"several nodes share this line: {key}"
        if what == "open_all" and self.session.is_cut:
            self._message = f"opened up to {counted(len(self.session.outline), 'line')}: zoom in"
        if what == "follow_hot_path" and self.session.node == node:
            self._message = "no single node below has most of this one"
        self._renew()

    def action_show(self, kind: str) -> None:
        """Show another view."""
        self._message = ""
        self._attempt(lambda: self.session.show(ViewKind(kind)))

    def action_heat(self) -> None:
        """Mark how fast things grow, or stop it."""
        self.session.heat = not self.session.heat
        self._renew()

    def action_found(self, step: int) -> None:
        """Go to the next or previous node that was found."""
        number, count = self.session.next_match(step)
        self._message = f"{number} of {count} found" if count else "nothing was searched for: /"
        self._renew()

    def action_help(self) -> None:
        """Show all keys."""
        self._note(panes.HELP)

    def action_command(self) -> None:
        """Show and copy the command that prints this view."""
        metric = self.session.forecast.fitted.metric.name
        text = self._given.command(self.session.wanted(), self.target, metric)
        self.copy_to_clipboard(text)
        self._note(f"{text}\n\nprints this view (copied, where the terminal allows it)")

    def _note(self, text: str) -> None:
        self.push_screen(_Note(to_ascii(text) if self._given.ascii_only else text))

    def _attempt(self, change: Callable[[], None]) -> bool:
        """Change something; what a user did wrong is said, and nothing has changed then."""
        try:
            change()
        except CallpathModelerError as error:
            self._message = f"{error.message}{f' ({error.hint})' if error.hint else ''}"
            self._renew()
            return False
        self._renew()
        return True

    def _in_a_thread(self, work: Callable[[], None], group: str) -> None:
        """Do something while what is on the screen stays; the latest of a group counts."""
        self.run_worker(work, group=group, exclusive=True, thread=True)

    # The target and the metric

    def action_target(self, factor: float) -> None:
        """Multiply the target."""
        if np.isfinite(self.target):
            self._attempt(lambda: self._retarget(f"{self.target * factor:.17g}"))
        else:
            self.say("at infinity: t types a target")

    def _retarget(self, text: str) -> None:
        self.target = self._given.target_of(text, self.session.forecast.fitted)
        self._message = ""
        self._foresee(self.session.forecast.known, self.target)

    def _foresee(self, known: Known, target: float) -> None:
        """Predict at a target: at once, or in a worker while what was there stays."""
        if len(known.modelled) <= AT_ONCE:
            self._show_forecast(forecast(known, target))
        else:
            self._in_a_thread(lambda: self._work(known, target), "target")

    def _work(self, known: Known, target: float) -> None:
        worker = get_current_worker()

        def is_wanted() -> bool:
            return self.is_running and not worker.is_cancelled

        shown = self.session.forecast
        made = shown
        if shown.known is not known or shown.target != target:
            made = forecast(known, target, bands=False)
            self._show_prepared(made, is_wanted)
        for kind in ViewKind:
            if is_wanted() and known is self.session.forecast.known:
                self.session.prepare(kind, made)
        give_back()
        complete = made.with_bands(is_wanted) if is_wanted() else None
        if complete is not None:
            self._show_prepared(complete, is_wanted)
        give_back()

    def _show_prepared(self, made: Forecast, is_wanted: Callable[[], bool]) -> None:
        if is_wanted():
            self.session.prepare(self.session.kind, made)
            self.call_from_thread(self._show_forecast, made)

    def _show_forecast(self, made: Forecast) -> None:
        self.session.retarget(made)
        self._renew(anew=False)

    def action_metric(self) -> None:
        """Show the next metric that views can show."""
        experiment = self.session.forecast.fitted.experiment
        known = [name for name, why in experiment.declared.items() if not why]
        now = self.session.forecast.fitted.metric.name
        at = known.index(now) if now in known else -1
        others = [*known[at + 1 :], *known[: max(at, 0)]]
        if not others:
            self.say(f"there is no metric but {now}")
            return
        self.say(f"{others[0]}: working …")
        self._in_a_thread(lambda: self._change_metric(others), "target")

    def _change_metric(self, names: Sequence[str]) -> None:
        skipped: list[str] = []
        for name in names:
            try:
                known = Known(self._given.models_of(name))
                made = forecast(known, self.target, bands=len(known.modelled) <= AT_ONCE)
            except CallpathModelerError as error:
                skipped.append(error.message)
                continue
            self.call_from_thread(self._show_metric, made, skipped)
            return
        self.call_from_thread(self.say, skipped[-1])

    def _show_metric(self, made: Forecast, skipped: Sequence[str]) -> None:
        name = made.fitted.metric.name
        self._message = f"{name}; left out: {'; '.join(skipped)}" if skipped else name
        self.session.retarget(made)
        self._renew()
        if not made.has_bands:
            self._foresee(made.known, made.target)

    # Prompts

    def action_prompt(self, what: str) -> None:
        """Ask for a line of text."""
        titles = {
            "target": f"target {self.session.forecast.fitted.parameter} = (a number, or inf)",
            "search": "search for a name",
            "filter": "filter: a pattern of call paths, e.g. main/**/MPI_*; empty shows all",
            "write": "write the view to: NAME.txt, .csv, .json, .md ...",
        }
        self._asked = what
        prompt = self.query_one("#prompt", Input)
        prompt.placeholder = titles[what]
        prompt.value = self.session.pattern if what == "filter" else ""
        prompt.display = True
        self.query_one("#status").display = False
        prompt.focus()

    def action_leave_prompt(self) -> None:
        """Ask no more."""
        self.query_one("#prompt").display = False
        self.query_one("#status").display = True
        self.table.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do what was asked for."""
        text, asked = event.value.strip(), self._asked
        self.action_leave_prompt()
        self._message = ""
        if asked == "filter":
            self._attempt(lambda: self.session.filter(text))
        elif text:
            answers: dict[str, Callable[[str], None]] = {
                "target": self._retarget,
                "search": self._search,
                "write": self._write,
            }
            self._attempt(lambda: answers[asked](text))

    def _search(self, text: str) -> None:
        count = self.session.search(text)
        more = "; n N next, previous" if count > 1 else ""
        self._message = f"{count} found{more}" if count else f"no name contains {text!r}"

    def _write(self, name: str) -> None:
        path = Path(name).expanduser()
        self._message = self._given.save(self.session.forecast, self.session.wanted(), path)


def _joined(lines: Sequence[Text]) -> Text:
    return Text("\n").join(lines)
