"""The browser: keys change the session, and widgets draw it again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
from rich.cells import cell_len
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Resize
from textual.widgets import Static

from callpath_modeler.analysis.forecast import Forecast, forecast
from callpath_modeler.analysis.forecast_inputs import ForecastInputs
from callpath_modeler.analysis.target_costs import basis_of
from callpath_modeler.errors import CallpathModelerError
from callpath_modeler.profile.views import ViewKind
from callpath_modeler.report.answer import at_text
from callpath_modeler.report.measured_only import wanted
from callpath_modeler.tui import keys, panes
from callpath_modeler.tui.background import Background, IsWanted
from callpath_modeler.tui.bookmark_list import BookmarkList, Bookmarks
from callpath_modeler.tui.metrics import MetricList, MetricTotal, metric_total
from callpath_modeler.tui.panes import PaneText
from callpath_modeler.tui.progressive_forecast import forecast_progressively
from callpath_modeler.tui.screens import Note, Panel
from callpath_modeler.tui.services import BrowserServices, CommandAnswer
from callpath_modeler.tui.session import Session
from callpath_modeler.tui.state import PreparedForecast
from callpath_modeler.tui.tree_table import TreeTable
from callpath_modeler.tui.widgets import Pane, Prompt
from callpath_modeler.units import counted

AT_ONCE = 3_000
"""Number of call paths up to which predictions with bands are made before a key is answered."""

_REST = 0.03
"""Seconds on a node before its description is made, if that takes time."""
_BESIDE = 112
"""Width from which the pane is next to the table, in cells."""
_LOWEST_PANE = 18
"""Least height for a pane below the table, in lines."""
_COPIED = 80
"""Width of a copied description that the screen has no room for, in cells."""


class Browser(App[None]):
    """The browser of an experiment.

    Parameters
    ----------
    session : the session at the start
    given : models, targets, files and commands of the experiment
    """

    CSS_PATH: ClassVar[str] = "browser.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = keys.BINDINGS

    def __init__(self, session: Session, given: BrowserServices) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self.session = session
        self.target = session.forecast.target
        self._predicted = session.forecast.inputs.predicted
        self._given = given
        self._pair = given.pair
        self._target_of_all = self.target
        self._message = given.message
        self._bookmarks = Bookmarks(given.bookmarks)
        self._described = (0, 0, 0)
        self._totals: dict[str, MetricTotal | str] = {}
        self._totals_at: dict[str, float] = {}
        self._background = Background(self)

    def compose(self) -> ComposeResult:
        """Return the parts of the screen, from top to bottom."""
        yield Static(id="head", markup=False)
        with Container(id="main"):
            yield TreeTable(self.session, self._given.style)
            yield Pane(id="pane", markup=False)
        yield Static(id="status", markup=False)
        yield Prompt(id="prompt")
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        """Start the threads, and compute bands that are still missing."""
        self._background.start()
        self.table.focus()
        self.set_class(self._given.style.ascii_only, "-ascii")
        self._attempt(self._bookmarks.read, drawn=False)
        self._mark_lines()
        shown = self.session.forecast
        if not shown.has_bands:
            self._foresee(shown.inputs, self.target)

    def on_unmount(self) -> None:
        """End the threads."""
        self._background.end()

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
        without = keys.OF_MODELS if self.session.forecast.fitted.is_measured_only else ()
        known = keys.line(width, other=self._other_basis, without=without, style=style)
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
        return len(self.session.forecast.inputs.modelled) <= AT_ONCE

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

    def on_tree_table_chosen(self) -> None:
        """Open or close the node that was clicked."""
        self.action_do("toggle")

    def on_tree_table_ordered(self, event: TreeTable.Ordered) -> None:
        """Order by the column whose title was clicked, or reverse its order."""
        self._message = ""
        self.session.sort_by(event.sort)
        self._renew()

    # Keys

    def action_do(self, what: str) -> None:
        """Call a method of the session."""
        self._message = ""
        node, at_rest = self.session.node, self.session.node < 0 and len(self.session.outline) > 0
        getattr(self.session, what)()
        if at_rest and what in {"open", "go_in", "toggle", "open_all", "zoom"}:
            key = (
                "f changes the filter"
                if self.session.pattern
                else ". shows nodes with a small share"
            )
            self._message = f"several nodes share this line: {key}"
        if what == "open_all" and self.session.is_cut:
            lines = counted(len(self.session.outline), "line")
            self._message = f"opened up to the limit of {lines}: zoom in"
        if what == "follow_hot_path" and self.session.node == node:
            self._message = "no single callee has most of the cost of this node"
        self._renew()

    def action_show(self, kind: str) -> None:
        """Show another view."""
        self._message = ""
        self._attempt(lambda: self.session.show(ViewKind(kind)))

    def action_heat(self) -> None:
        """Switch the marks of growth on or off."""
        self.session.heat = not self.session.heat
        self._renew()

    def action_found(self, step: int) -> None:
        """Go to the next or previous search hit."""
        _, count = self.session.next_match(step)
        self._message = "" if count else "there is no search yet: press /"
        self._renew()

    def action_scroll(self, pages: int) -> None:
        """Scroll the description by pages; a line of the page before stays."""
        pane = self.query_one(Pane)
        if pane.shown is not None:
            pane.scroll_lines(pages * max(1, pane.shown.room - 1))

    def action_copy(self) -> None:
        """Copy the description."""
        text = self._description()
        self.copy_to_clipboard(text)
        lines = counted(text.count("\n") + 1, "line")
        self.say(f"{lines} of the description are in the clipboard if the terminal supports that")

    def _description(self) -> str:
        """Return the description of the node as text, also if the screen has no room for it."""
        shown = self.query_one(Pane).shown
        if shown is not None:
            return shown.text
        report = panes.report_of(self.session, style=self._given.style)
        made = report and panes.pane(report, _COPIED, _COPIED, beside=True)
        return made.text if made else ""

    def action_help(self) -> None:
        """Show all keys."""
        self._note(keys.help_text(self.size.width - 2))

    def action_command(self) -> None:
        """Show and copy the command that prints this view."""
        known = self.session.forecast.inputs.asking(predicted=self._predicted)
        self._say_command(self._given.command(self.session.view_request(), known, self.target))

    def _say_command(self, text: str) -> None:
        self.copy_to_clipboard(text)
        self._note(
            f"{text}\n\nprints this view. It is in the clipboard if the terminal supports that."
        )

    def _note(self, text: str) -> None:
        note = Note(self._given.style.say(text))
        self.push_screen(note, lambda _: self._come_back())

    def _attempt(self, change: Callable[[], None], *, drawn: bool = True) -> None:
        """Make a change; an error of the user is shown, and leaves everything unchanged."""
        try:
            change()
        except CallpathModelerError as error:
            self._message = _in_words(error)
        if drawn:
            self._renew()

    # Bookmarks

    def _mark_lines(self) -> None:
        tree = self.session.forecast.fitted.experiment.tree
        self.session.bookmarked = self._bookmarks.rows(tree)

    @property
    def _callpath(self) -> str:
        """The call path under the cursor, as a bookmark names it; "" = several, or none."""
        session = self.session
        if session.kind is not ViewKind.TOP_DOWN or session.node < 0:
            return ""
        return session.forecast.fitted.experiment.tree.common_path(session.node)

    def _bookmark(self, note: str) -> None:
        """Bookmark the call path under the cursor."""
        self._bookmarks.add(self._callpath, note)
        self._mark_lines()
        self._message = f"bookmark kept in {self._bookmarks.place}"

    def action_bookmarks(self) -> None:
        """Show a list of the bookmarks."""
        self._message = ""
        self._attempt(self._bookmarks.read)
        if self._message:
            return
        tree = self.session.forecast.fitted.experiment.tree
        listed = BookmarkList(self._bookmarks, tree, self._remove_bookmark, self._given.style)
        self.push_screen(listed, self._go_to_bookmark)

    def _remove_bookmark(self, callpath: str) -> None:
        self._attempt(lambda: self._bookmarks.remove(callpath), drawn=False)

    def _go_to_bookmark(self, callpath: str | None) -> None:
        self._mark_lines()
        self._come_back()
        rows = self.session.forecast.fitted.experiment.tree.rows_of(callpath) if callpath else []
        if rows:
            self.session.go_to_row(rows[0])
        self._renew()

    # The target and the metric

    def action_target(self, factor: float) -> None:
        """Multiply the target."""
        if self.session.forecast.fitted.is_measured_only:
            self.say(wanted(self.session.forecast.fitted, "press b"))
        elif np.isfinite(self.target):
            self._attempt(lambda: self._retarget(f"{self.target * factor:.17g}"))
        else:
            self.say("the target is infinity: press t to type another")

    def _retarget(self, text: str) -> None:
        self.target = self._given.target_of(text, self.session.forecast.fitted)
        self._message = ""
        self._foresee(self.session.forecast.inputs, self.target)

    @property
    def _other_basis(self) -> str:
        """The alternative to the present values at the target: measured or predicted."""
        known = self.session.forecast.inputs
        if known.fitted.is_measured_only or known.measured.point(self.target) is None:
            return ""
        return basis_of(self._predicted)

    def action_basis(self) -> None:
        """Switch between measured and predicted values at a target that was measured."""
        known, other = self.session.forecast.inputs, self._other_basis
        if known.fitted.is_measured_only:
            self.say(wanted(known.fitted, "press b"))
            return
        if not other:
            at = at_text(known.fitted, self.target)
            self.say(f"{at} was not run at least twice, so values are predicted")
            return
        self._predicted = not self._predicted
        self._message = f"values are {other}; p shows {self._other_basis} values"
        self._foresee(known, self.target)

    def _foresee(self, inputs: ForecastInputs, target: float) -> None:
        """Predict at a target, at once or in a thread while the screen stays."""
        inputs = inputs.asking(predicted=self._predicted)
        if len(inputs.modelled) <= AT_ONCE:
            self._show_forecast(PreparedForecast(forecast(inputs, target)))
            return

        def work(is_wanted: IsWanted) -> None:
            for ready in forecast_progressively(self.session, inputs, target, is_wanted):
                self._background.show(self._show_forecast, ready)
                del ready  # bands take long, and the previous predictions need much memory

        self._background.do(work, "target")

    def _show_forecast(self, ready: PreparedForecast) -> None:
        self.session.retarget(ready)
        self._renew(anew=False)

    def _compare_scales(self, text: str) -> None:
        """Compare pairs of scales, ``8,64 8,128``, without models, or with them at a last number.

        An empty text shows all scales again.
        """
        text = ",".join(part.strip() for part in text.split(","))
        if not text and not self._pair:
            self._message = ""
            return
        name = self.session.forecast.fitted.metric.name
        self._message = "working …"

        def work(_: IsWanted) -> None:
            try:
                known = ForecastInputs(
                    self._given.models_of(name, text), predicted=self._predicted and not text
                )
                ends, typed = known.fitted.points, text.split()[-1:]
                target = float(ends[-1]) if known.fitted.is_measured_only else self._target_of_all
                if typed and "," not in typed[0]:
                    target = self._given.target_of(typed[0], known.fitted)
                made = forecast(known, target, bands=self._is_small)
            except CallpathModelerError as error:
                self._background.show(self._complain, _in_words(error))
                return
            self._background.show(self._show_scales, made, text)

        self._background.do(work, "target")

    def _show_scales(self, made: Forecast, pair: str) -> None:
        if not self._pair and not self.session.forecast.fitted.is_measured_only:
            self._target_of_all = self.target
        self._pair, self.target = pair, made.target
        self._message = ""
        self.session.sort = made.usual_sort
        self.session.retarget(PreparedForecast(made))
        self._mark_lines()
        self._renew()
        if not made.has_bands:
            self._foresee(made.inputs, made.target)

    def action_metric(self) -> None:
        """Show a list of the metrics, whose totals come one by one."""
        fitted = self.session.forecast.fitted
        shown = fitted.metric.name
        names = [name for name, why in fitted.experiment.declared.items() if not why]
        if names in ([], [shown]):
            self.say(f"{shown} is the only metric")
            return
        at = dict(fitted.measured_at)
        if not fitted.has_unknown_scale:
            at[fitted.parameter] = float(fitted.points[-1])
        how = fitted.models.aggregate
        listed = MetricList(names, shown, at, self._given.style)
        if self._totals_at != at:
            self._totals, self._totals_at = {}, at
        for name in names:
            if name in self._totals:
                listed.add(name, self._totals[name])

        def work(is_wanted: IsWanted) -> None:
            for name in names:
                if not is_wanted() or not listed.is_attached:
                    return
                if name not in self._totals:
                    found = metric_total(self._given.runs_of, name, at, how)
                    self._totals[name] = found
                    self._background.show(listed.add, name, found)

        self.push_screen(listed, self._choose_metric)
        self._background.do(work, "answer")

    def _choose_metric(self, name: str | None) -> None:
        self._come_back()
        if not name or name == self.session.forecast.fitted.metric.name:
            return
        self.say(f"{name}: working …")
        bands = self._is_small

        def work(_: IsWanted) -> None:
            try:
                known = ForecastInputs(
                    self._given.models_of(name, self._pair), predicted=self._predicted
                )
                made = forecast(known, self.target, bands=bands)
            except CallpathModelerError as error:
                self._background.show(self._complain, _in_words(error))
                return
            self._background.show(self._show_metric, made)

        self._background.do(work, "target")

    def _show_metric(self, made: Forecast) -> None:
        self._message = made.fitted.metric.name
        self.session.retarget(PreparedForecast(made))
        self._mark_lines()
        self._renew()
        if not made.has_bands:
            self._foresee(made.inputs, made.target)

    # Prompts

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key is active now; in a prompt, letters are text."""
        if action == "prompt":
            return len(self.screen_stack) == 1 and not self.query_one(Prompt).display
        return super().check_action(action, parameters)

    def action_prompt(self, what: str) -> None:
        """Open the prompt for a line of text."""
        if what == "note" and not self._callpath:
            self.say("a bookmark needs one call path of the top-down view: press 1")
            return
        begun = {
            "note": self._bookmarks.note(self._callpath),
            "filter": self.session.pattern,
            "pair": self._pair,
            "check": self._given.expectations,
        }
        self.query_one("#status").display = False
        parameter = self.session.forecast.fitted.parameter
        self.query_one(Prompt).ask(what, parameter, begun.get(what, ""))

    def action_escape(self) -> None:
        """Close the prompt, or end the search."""
        if self.query_one("#prompt").display:
            self._leave_prompt()
        else:
            self.session.end_search()
            self._message = ""
            self._renew(anew=False)

    def _leave_prompt(self) -> None:
        """Close the prompt."""
        self.query_one("#prompt").display = False
        self.query_one("#status").display = True
        self.table.focus()

    def on_prompt_answered(self, event: Prompt.Answered) -> None:
        """Apply the text from the prompt."""
        self._leave_prompt()
        self._message = ""
        answers: dict[str, Callable[[str], None]] = {
            "target": self._retarget,
            "search": self._search,
            "filter": self.session.filter,
            "compare": self._compare,
            "check": self._check,
            "write": self._write,
            "note": self._bookmark,
            "pair": self._compare_scales,
        }
        if event.text or event.asked in {"filter", "note", "pair"}:
            self._attempt(lambda: answers[event.asked](event.text))

    def _search(self, text: str) -> None:
        count = self.session.search(text)
        self._message = "" if count else f"no name contains {text!r}"

    def _write(self, name: str) -> None:
        path = Path(name).expanduser()
        self._message = self._given.save(self.session.forecast, self.session.view_request(), path)

    # Panels

    def _compare(self, name: str) -> None:
        shown, inclusive = self.session.forecast, self.session.leads_inclusive
        self._answer(lambda: self._given.compare(name, shown, inclusive), f"{name}: comparing …")

    def _check(self, name: str) -> None:
        shown = self.session.forecast
        self._answer(lambda: self._given.check(name, shown), f"{name}: checking …")

    def action_processes(self) -> None:
        """Show the values of the processes of the node under the cursor."""
        session = self.session
        if session.node < 0:
            self.say("several nodes share this line: . shows nodes with a small share")
            return
        shown, inclusive = session.forecast, session.leads_inclusive
        names = session.view.names(session.node)
        rows = session.view.rows(session.node).astype(np.intp)
        ask = self._given.processes
        self._answer(lambda: ask(names, rows, shown, inclusive), f"{names[-1]}: reading ranks …")
        self._draw()

    def _answer(self, ask: Callable[[], CommandAnswer], meanwhile: str) -> None:
        """Compute an answer in a thread, and show it in a panel."""
        self._message = meanwhile

        def work(is_wanted: IsWanted) -> None:
            try:
                answer = ask()
            except CallpathModelerError as error:
                self._background.show(self._complain, _in_words(error))
                return
            if is_wanted():
                self._background.show(self._show_answer, answer)

        self._background.do(work, "answer")

    def _complain(self, text: str) -> None:
        """Show an error, over everything if it does not fit one line."""
        fits = cell_len(text) < self.size.width
        self.say(text if fits else "")
        if not fits:
            self._note(text)

    def _show_answer(self, answer: CommandAnswer) -> None:
        self.say("")
        panel = Panel(answer, self._say_command, self._given.style)
        self.push_screen(panel, self._go_to)

    def _come_back(self) -> None:
        """Lay out everything again after a panel, because the terminal may have a new size."""
        self.refresh_css(animate=False)
        self._arrange(*self.size)

    def _go_to(self, callpath: str | None) -> None:
        self._come_back()
        if callpath:
            self._attempt(lambda: self.session.go_to(callpath))


def _in_words(error: CallpathModelerError) -> str:
    return f"{error.message}{f' ({error.hint})' if error.hint else ''}"


def _joined(lines: Sequence[Text]) -> Text:
    return Text("\n").join(lines)
