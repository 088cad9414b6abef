"""The browser: keys change the session, and widgets draw it again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from callpath_modeler.analysis.pair_forecast import PairForecast
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.tui import panes
from callpath_modeler.tui.choices import BookmarkList
from callpath_modeler.tui.services import CommandAnswer
from callpath_modeler.tui.session import help_text
from callpath_modeler.tui.value_keys import ValueKeys
from callpath_modeler.tui.widgets import IsWanted, Pane, Panel, Prompt
from callpath_modeler.units import counted

_COPIED = 80
"""Width of a copied description that the screen has no room for, in cells."""


class Browser(ValueKeys):
    """The browser of an experiment, or of two.

    Parameters
    ----------
    session : the session at the start
    given : models, targets, files and commands of the experiment
    """

    # Keys

    def on_tree_table_chosen(self) -> None:
        """Open or close the node that was clicked."""
        self.action_do("toggle")

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
        if isinstance(self.session.forecast, PairForecast):
            self.say("colours show losses and gains of two experiments")
            return
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
        is_pair = isinstance(self.session.forecast, PairForecast)
        self._note(help_text(self.size.width - 2, is_pair=is_pair))

    def action_command(self) -> None:
        """Show and copy the command that prints this view."""
        shown = self.session.forecast
        known = shown.inputs.with_basis(predicted=self._predicted)
        text = self._given.command(self.session.view_request(), known, self.target)
        self._say_command(text)

    def _say_command(self, text: str) -> None:
        self.copy_to_clipboard(text)
        what = "prints this view. It is in the clipboard if the terminal supports that."
        self._note(f"{text}\n\n{what}")

    # Bookmarks

    @property
    def _callpath(self) -> str:
        """The call path under the cursor, as a bookmark names it; "" = several, or none."""
        session = self.session
        if session.kind is not ViewKind.TOP_DOWN or session.node < 0:
            return ""
        return session.forecast.tree.common_path(session.node)

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
        tree = self.session.forecast.tree
        listed = BookmarkList(self._bookmarks, tree, self._remove_bookmark, self._given.style)
        self.push_screen(listed, self._go_to_bookmark)

    def _remove_bookmark(self, callpath: str) -> None:
        self._attempt(lambda: self._bookmarks.remove(callpath), drawn=False)

    def _go_to_bookmark(self, callpath: str | None) -> None:
        self._mark_lines()
        self._come_back()
        rows = self.session.forecast.tree.rows_of(callpath) if callpath else []
        if rows:
            self.session.go_to_row(rows[0])
        self._renew()

    # Prompts

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key is active now; in a prompt, letters are text."""
        if action == "prompt":
            return len(self.screen_stack) == 1 and not self.query_one(Prompt).display
        return super().check_action(action, parameters)

    def action_prompt(self, what: str) -> None:
        """Open the prompt for a line of text."""
        if what == "pair" and self._other:
            self.say("two experiments are compared at one scale: d and an empty line show one")
            return
        if what == "note" and not self._callpath:
            self.say("a bookmark needs one call path of the top-down view: press 1")
            return
        begun = {
            "note": self._bookmarks.note(self._callpath),
            "filter": self.session.pattern,
            "pair": self._pair,
            "compare": self._other,
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
        if event.text or event.asked in {"filter", "note", "pair", "compare"}:
            self._attempt(lambda: answers[event.asked](event.text))

    def _search(self, text: str) -> None:
        count = self.session.search(text)
        self._message = "" if count else f"no name contains {text!r}"

    def _write(self, name: str) -> None:
        path = Path(name).expanduser()
        self._message = self._given.save(self.session.forecast, self.session.view_request(), path)

    # Panels

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
            answer = ask()
            if is_wanted():
                self._background.show(self._show_answer, answer)

        self._background.do(work, "answer")

    def _show_answer(self, answer: CommandAnswer) -> None:
        self.say("")
        panel = Panel(answer, self._say_command, self._given.style)
        self.push_screen(panel, self._go_to)

    def _go_to(self, callpath: str | None) -> None:
        self._come_back()
        if callpath:
            self._attempt(lambda: self.session.go_to(callpath))
