"""Lists to choose from: bookmarks and metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Key

from callpath_modeler.errors import CallpathModelerError, UsageError
from callpath_modeler.modeling import Centre, centre
from callpath_modeler.printable import printable
from callpath_modeler.profile.bookmarks import Bookmark, BookmarkFile
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.schema import Metric
from callpath_modeler.report.layout import Listing, ListingEntry, TextStyle, shorten, wrap
from callpath_modeler.tui.session import ARROWS
from callpath_modeler.tui.widgets import ChoiceScreen
from callpath_modeler.units import setting_text


class Bookmarks:
    """The bookmarks of an experiment.

    Parameters
    ----------
    file : their file; None = nothing can be kept
    """

    def __init__(self, file: BookmarkFile | None) -> None:
        self._file = file
        self.all: list[Bookmark] = []

    @property
    def place(self) -> str:
        """The path of the file."""
        return "" if self._file is None else str(self._file.path)

    def read(self) -> None:
        """Read the file again, because another browser may have changed it.

        Raises
        ------
        InputError
            If the file cannot be read.
        """
        self.all = [] if self._file is None else self._file.read()

    def rows(self, tree: CallTree) -> dict[int, str]:
        """Return the notes by call path."""
        return {row: mark.note for mark in self.all for row in tree.rows_of(mark.callpath)}

    def note(self, callpath: str) -> str:
        """Return the note of a call path; "" = none."""
        return next((mark.note for mark in self.all if mark.callpath == callpath), "")

    def add(self, callpath: str, note: str) -> None:
        """Add a bookmark, or change its note.

        Raises
        ------
        CallpathModelerError
            If the file cannot be read or written.
        """
        self._write(callpath, [Bookmark(callpath, note)])

    def remove(self, callpath: str) -> None:
        """Remove a bookmark; the errors are those of `add`."""
        self._write(callpath, [])

    def _write(self, callpath: str, new: Sequence[Bookmark]) -> None:
        if self._file is None:
            raise UsageError("bookmarks need an experiment with a path", hint="store it first")
        self.read()
        kept = [mark for mark in self.all if mark.callpath != callpath]
        self._file = self._file.write([*kept, *new])
        self.read()


class BookmarkList(ChoiceScreen):
    """The bookmarks; it returns the id of the chosen call path, "" for none.

    Parameters
    ----------
    bookmarks : the bookmarks
    tree : the call paths of the experiment
    remove : removes the bookmark of a call path
    style : characters of text
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x,delete", "remove"),
        Binding("q", "leave"),
    ]
    KEYS = "Enter  go to the call path   x  remove the bookmark   q  back"

    def __init__(
        self,
        bookmarks: Bookmarks,
        tree: CallTree,
        remove: Callable[[str], None],
        style: TextStyle,
    ) -> None:
        super().__init__(style)
        self.title = f"bookmarks in {bookmarks.place}"
        self._bookmarks = bookmarks
        self._tree = tree
        self._remove = remove

    def listing(self, width: int) -> Listing:
        """Return the list, laid out for a width in terminal cells."""
        say = self._line_style.say
        marks = self._bookmarks.all
        is_there = [bool(self._tree.rows_of(mark.callpath)) for mark in marks]
        room = max(20, width * 3 // 5)
        paths = [say(printable(mark.callpath)) for mark in marks]
        names = [shorten(path.split("/"), room, say("…")) for path in paths]
        left = max(map(cell_len, names), default=0)
        entries = []
        for mark, name, known in zip(marks, names, is_there, strict=True):
            about = say(printable(mark.note)) if known else "not in this experiment"
            line = f"{mark.id}  {set_cell_size(name, left)}  {about}"
            text = Text(set_cell_size(line, width), style="" if known else "dim")
            entries.append(ListingEntry([text], mark.callpath if known else ""))
        foot = [] if marks else [Text("no bookmarks: press B on a call path", style="dim")]
        return Listing([Text()], entries, foot)

    def action_remove(self) -> None:
        """Remove the bookmark under the cursor."""
        marks = self._bookmarks.all
        if marks:
            self._remove(marks[self._at].callpath)
            self._renew()


_LEAST_NAME = 12
"""Least width of names, in cells."""


@dataclass(frozen=True, slots=True)
class MetricTotal:
    """A metric with its value for the whole program.

    Attributes
    ----------
    metric : the metric
    total : sum over call paths of the centres of repetitions at one scale, or centre of the
        formula of the sums of runs, SI base units; NaN = it was not measured there
    """

    metric: Metric
    total: float


def metric_total(
    runs_of: Callable[[str], Experiment], name: str, at: Mapping[str, float], how: Centre
) -> MetricTotal | str:
    """Return the total of a metric, or the reason why no view can show the metric.

    Parameters
    ----------
    runs_of : returns the measured runs of a metric
    name : name of the metric
    at : values of parameters that select the runs of the total; a run without a parameter counts
    how : centre of the repetitions of a call path
    """
    try:
        experiment = runs_of(name)
        metric, values = experiment.metric(name), experiment.values(name)
        formula = experiment.formula(name)
    except CallpathModelerError as error:
        return error.message
    if not metric.additive and formula is None:
        return f"{name} does not add up over call paths"
    if not np.nan_to_num(values).any():
        return f"{name} is zero"
    here = [
        all(run.parameters.get(key, value) == value for key, value in at.items())
        for run in experiment.runs
    ]
    found = values[:, np.array(here, bool)]
    if np.isnan(found).all():
        return MetricTotal(metric, float("nan"))
    if formula is not None:
        parts = (experiment.values(part)[:, np.array(here, bool)] for part in formula.parts)
        found = formula.of([np.nansum(part, axis=0) for part in parts])[np.newaxis]
    return MetricTotal(metric, float(np.nansum(centre(found[:, np.newaxis], how))))


class MetricList(ChoiceScreen):
    """The metrics that views can show; it returns the name of the chosen one, "" for none.

    Letters are typed into a filter, so only arrows move.

    Parameters
    ----------
    names : names of metrics; their totals come later, with `add`
    shown : the metric on the screen
    at : values of parameters that select the runs of the totals
    style : characters of text
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *ARROWS,
        Binding("enter", "choose"),
        Binding("escape", "leave"),
    ]
    KEYS = "Enter  show the metric   letters  only metrics with these   Escape  back"

    def __init__(
        self, names: Sequence[str], shown: str, at: Mapping[str, float], style: TextStyle
    ) -> None:
        super().__init__(style)
        self._names = names
        self._shown = shown
        self._at_scale = dict(at)
        self._known: dict[str, MetricTotal | str] = {}
        self._typed = ""
        self._set_title()

    def add(self, name: str, found: MetricTotal | str) -> None:
        """Show the total of a metric, or leave it out and tell the reason."""
        chosen = self.chosen
        self._known[name] = found
        if self.is_mounted and self.is_current:  # it may have been left meanwhile
            self._renew()
            self._select(chosen)

    def _select(self, name: str) -> None:
        choices = [entry.choice for entry in self._listing.entries]
        if name in choices:
            self.action_move(choices.index(name) - self._at)

    def listing(self, width: int) -> Listing:
        """Return the list, laid out for a width in terminal cells."""
        say = self._line_style.say
        listed = [
            name
            for name in self._names
            if not isinstance(self._known.get(name), str)
            and self._typed.casefold() in name.casefold()
        ]
        totals = [self._total(name) for name in listed]
        where = setting_text(self._at_scale)
        heading = say(f"total at {where}" if where else "total")
        right = max(map(cell_len, [heading, *totals]))
        left = max(map(cell_len, ["metric", *listed]))
        left = max(_LEAST_NAME, min(left, width - right - 4))
        entries = []
        for name, total in zip(listed, totals, strict=True):
            line = f"{set_cell_size(say(name), left)}  {' ' * (right - cell_len(total))}{total}"
            found = self._known.get(name)
            about = found.metric.description if isinstance(found, MetricTotal) else ""
            if about and width - cell_len(line) > _LEAST_NAME:
                line += f"  {say(about)}"
            entries.append(ListingEntry([Text(set_cell_size(line, width))], name))
        reasons = [found for found in self._known.values() if isinstance(found, str)]
        foot = wrap(say(f"not listed: {'; '.join(reasons)}"), width) if reasons else []
        if not listed:
            foot = [Text(say(f"no metric contains {self._typed!r}") if self._typed else ""), *foot]
        head = [Text(f"{set_cell_size(' metric', left + 1)}  {heading:>{right}}", style="bold")]
        chosen = listed.index(self._shown) if self._shown in listed else 0
        return Listing(head, entries, [Text(row.plain, style="dim") for row in foot], chosen)

    def _total(self, name: str) -> str:
        found = self._known.get(name)
        if isinstance(found, MetricTotal):
            return self._line_style.amount(found.total, found.metric.unit)
        return self._line_style.say("…")

    def on_key(self, event: Key) -> None:
        """Add a letter to the filter, or remove the last one."""
        if event.key == "backspace":
            self._typed = self._typed[:-1]
        elif event.is_printable and event.character:
            self._typed += event.character
        else:
            return
        event.stop()
        chosen = self.chosen
        self._set_title()
        self._renew()
        self._select(chosen)

    def _set_title(self) -> None:
        self.title = f"metrics with {self._typed}" if self._typed else "metrics"
