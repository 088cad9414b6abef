"""Views as text and as tables: lines, names, hot path and sum check."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Generic, cast

import numpy as np
from rich.text import Text

from callpath_modeler.analysis.node_values import Columns
from callpath_modeler.analysis.pairing import Unmatched
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.profile.calltree import ROOT, CallTree, escape
from callpath_modeler.profile.groups import Costs, Rows
from callpath_modeler.profile.outline import Outline, OutlineLine, SumCheck, hot_path, outline
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.schema import PROGRAM
from callpath_modeler.profile.tree_views import Flat, View, ViewKind, open_view
from callpath_modeler.profile.view_request import ViewRequest, node_path
from callpath_modeler.report.layout import EXPERIMENT, Invocation, TextColumn, TextStyle, shorten
from callpath_modeler.report.table_formats import Cell, Table, text_table_of
from callpath_modeler.units import counted, percent

if TYPE_CHECKING:
    from callpath_modeler.analysis.node_values import NodeAnswer
    from callpath_modeler.analysis.pair_forecast import ViewForecast
    from callpath_modeler.diagnostics import Finding


NAMED = 60
"""Width of a call path in a sentence, in cells."""

TITLES = {
    ViewKind.TOP_DOWN: "call path",
    ViewKind.BOTTOM_UP: "function, then its callers",
}


class OutlinedView(ABC):
    """Values in one of the three views.

    Attributes
    ----------
    request : view, depth, filter and zoom
    command : command that shows another view of the same values; "" = none is proposed
    """

    request: ViewRequest
    command: ClassVar[str] = ""

    @property
    @abstractmethod
    def tree(self) -> CallTree:
        """The call paths."""

    @property
    @abstractmethod
    def costs(self) -> Costs:
        """The values; one column orders the lines."""

    @property
    def leads(self) -> Costs:
        """The values that the hot path follows, in one column."""
        return self.costs.only(self.column)

    def worth(self) -> Callable[[Rows], FloatArray]:
        """Return the function from nodes to the values that the hot path follows, each [nodes]."""
        costs, kind = self.leads, 1 if self.inclusive else 0
        return lambda nodes: self.view.values(nodes, costs)[kind][:, 0]

    @property
    def column(self) -> int:
        """The column that orders the lines."""
        return 0

    @property
    def whole(self) -> float:
        """100 % in that column."""
        return 1.0

    @cached_property
    def view(self) -> View:
        """The view."""
        return open_view(self.tree, self.request.kind, self.request.by)

    @property
    def inclusive(self) -> bool:
        """Whether lines are ordered by inclusive values."""
        return self.request.leads_inclusive

    @property
    def order(self) -> Callable[[Rows], FloatArray] | None:
        """The order of siblings, or None for the order of that column."""
        return None

    @cached_property
    def outline(self) -> Outline:
        """The nodes that have lines."""
        selection = self.request.selection(self.view, self.column, self.whole, order=self.order)
        return outline(self.view, self.costs, selection)

    @cached_property
    def check(self) -> SumCheck:
        """Whether the lines add up to the program, [columns]."""
        return self.outline.check(self.costs)

    @cached_property
    def hot(self) -> list[int]:
        """The nodes of the hot path."""
        start = self.outline.start
        path = hot_path(self.view, self.worth(), start, levels=self.request.hot_levels)
        return path if start == ROOT else [start, *path]

    @property
    def has_imbalance(self) -> bool:
        """Whether the imbalance of the program has a line."""
        return False

    @property
    def names_below(self) -> list[str]:
        """Names of the lines below those of nodes."""
        is_whole = self.outline.start == ROOT
        return [*["imbalance"] * (is_whole and self.has_imbalance), "total"]

    @abstractmethod
    def columns(self, style: TextStyle) -> list[TextColumn]:
        """Return the columns, with cells for the lines below."""

    @abstractmethod
    def sentences(self, style: TextStyle) -> list[str]:
        """Return the answer."""

    @abstractmethod
    def context(self, style: TextStyle) -> list[str]:
        """Return a description of the measurements."""

    @abstractmethod
    def notes(self, shown: Sequence[TextColumn], header: str, style: TextStyle) -> list[str]:
        """Return the notes below the table, given its columns and the header that fits."""

    @abstractmethod
    def table(self, findings: Sequence[Finding] = ()) -> Table:
        """Return a table with one row per line of the view; of `excess`, also per pair."""

    def text(self, style: TextStyle, invocation: Invocation = EXPERIMENT) -> list[Text]:
        """Return the view as text: the answer, the tree, and notes.

        Parameters
        ----------
        style : width, length of names, and characters of text
        invocation : command lines for the same experiment
        """
        columns = self.columns(style)
        body = self._lines(columns, style)
        notes = self.notes(columns, body[0].plain, style)
        if self.request.kind is ViewKind.TOP_DOWN and self.command:
            notes.append(invocation.hint(self.command, "--view bottom-up"))
        return style.answer(self.sentences(style), self.context(style), body, notes)

    def text_tables(self, style: TextStyle) -> list[Table]:
        """Return the table of `text`; paths replace the indentation of names."""
        columns, below = self.columns(style), self.names_below
        names = OutlineColumns(self.outline).paths(np.arange(len(self.outline)))
        return [text_table_of(columns, [*names, *below], title(self.outline))]

    def _lines(self, columns: Sequence[TextColumn], style: TextStyle) -> list[Text]:
        """Return a header, the lines of nodes, and those below."""
        outline, full = self.outline, style.full_names
        nodes = [(line.depth, line_name(outline, line, full=full)) for line in outline.lines]
        nodes += [(0, name) for name in self.names_below]
        return style.tree_table(columns, nodes, title=title(outline))

    @property
    def flags(self) -> TextColumn:
        """The column that marks the hot path."""
        marks = [">" * is_hot for is_hot in self.is_hot.tolist()]
        return TextColumn("", [*marks, *[""] * len(self.names_below)])

    @cached_property
    def is_hot(self) -> BoolArray:
        """Which lines are on the hot path, [lines]."""
        return np.isin(self.outline.nodes, self.hot)

    @property
    def culprit(self) -> tuple[int, str]:
        """The node and the name for a sentence; the hot path must not be empty.

        Bottom-up, it is a function and the caller; in other views, the end of the hot path.
        """
        by_caller = self.request.kind is ViewKind.BOTTOM_UP
        hot = self.hot[:2] if by_caller else self.hot
        names = short_names(self.view.name(node) for node in hot)
        return hot[-1], ", called by ".join(names) if by_caller else shorten(names, NAMED)


class ViewOfForecast(OutlinedView, Generic[Columns]):
    """A forecast of one or of two experiments in one of the three views.

    Attributes
    ----------
    forecast : the values of call paths
    """

    forecast: ViewForecast

    @property
    def tree(self) -> CallTree:
        """The call paths."""
        return self.forecast.tree

    @property
    def costs(self) -> Costs:
        """The values that decide on the size of lines."""
        return self.forecast.decides

    @property
    def whole(self) -> float:
        """The sum of these values."""
        return self.forecast.whole

    @cached_property
    def values(self) -> tuple[Columns, Columns]:
        """Exclusive and inclusive values, each [lines]."""
        return cast("NodeAnswer[Columns]", self.forecast).of_outline(self.outline)

    def worth(self) -> Callable[[Rows], FloatArray]:
        """Return the function from nodes to the values that the hot path follows, each [nodes]."""
        return lambda nodes: self.forecast.worth(self.view, nodes, inclusive=self.inclusive)

    @cached_property
    def check(self) -> SumCheck:
        """Whether the lines add up to the totals of the forecast."""
        return self.forecast.check(self.outline)

    @property
    def order(self) -> Callable[[Rows], FloatArray] | None:
        """The order of siblings, or None for the order of costs."""
        return self.forecast.sibling_order(self.view, self.request.sort, inclusive=self.inclusive)


def title(outline: Outline) -> str:
    """Return the heading of the column of names."""
    if isinstance(outline.view, Flat):
        return ", ".join("function" if by == "region" else str(by) for by in outline.view.by)
    return TITLES[outline.view.kind]


def view_header(shown: OutlinedView) -> dict[str, object]:
    """Return the fields of JSON that all views have: hot path, hidden call paths, sum check."""
    return {
        "hot_path": [shown.view.name(node) for node in shown.hot],
        "hidden_callpaths": len(shown.outline.hidden),
        "sum_check": {
            "lines": shown.check.counted.tolist(),
            "total": shown.check.total.tolist(),
            "holds": shown.check.holds,
        },
    }


def line_name(outline: Outline, line: OutlineLine, *, full: bool) -> str:
    """Return the name of a line; ``…`` behind it stands for what is below it."""
    if line.is_rest:
        return f"… {len(line.nodes)} more"
    name = outline.view.name(line.node)
    return (name if full else short_name(name)) + (" …" if line.is_closed else "")


def short_names(names: Iterable[str]) -> list[str]:
    """Return short names, without the name of an artificial root above other names."""
    short = [short_name(name) for name in names]
    return short[1:] if len(short) > 1 and short[0] == PROGRAM else short


class OutlineColumns:
    """Columns that identify the lines of an outline.

    ``path`` is the call path or, in other views, the names from the top. ``more`` counts the
    siblings that share a line. ``id`` has a value where a line is about one call path.

    Parameters
    ----------
    outline : the lines
    """

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        view = outline.view
        is_whole = outline.start == ROOT
        self._above = "" if is_whole else node_path(view, view.parent(outline.start))

    @cached_property
    def _parents(self) -> list[int]:
        """The line above each line in the tree; -1 = none."""
        last: list[int] = []
        parents = []
        for place, depth in enumerate(self._outline.depth.tolist()):
            del last[depth:]
            parents.append(last[-1] if last else -1)
            last.append(place)
        return parents

    def paths(self, lines: IntArray) -> list[str]:
        """Return the paths of some lines."""
        outline, view = self._outline, self._outline.view
        known: dict[int, str] = {}
        if view.kind is ViewKind.TOP_DOWN:
            own = [k for k in lines.tolist() if k not in outline.rests]
            known = dict(zip(own, view.tree.paths(outline.nodes[own]), strict=True))
        return [known.get(k) or self._path(k) for k in lines.tolist()]

    def _path(self, place: int) -> str:
        """Return the path of a line from those above it."""
        outline, view, names = self._outline, self._outline.view, list[str]()
        while place >= 0:
            line = outline.line(place)
            if not line.is_rest and view.kind is ViewKind.TOP_DOWN:
                return "/".join([view.tree.path(line.node), *reversed(names)])
            names.append("..." if line.is_rest else escape(view.name(line.node)))
            place = self._parents[place]
        return "/".join([*[self._above] * bool(self._above), *reversed(names)])

    def cells(self, lines: IntArray) -> dict[str, list[Cell]]:
        """Return the columns of some lines."""
        view, shown = self._outline.view, [self._outline.line(k) for k in lines.tolist()]
        rows = [[row for n in one.nodes.tolist() for row in view.rows(n).tolist()] for one in shown]
        ids = iter(view.tree.ids([of[0] for of in rows if len(of) == 1]))
        return {
            "view": [str(view.kind)] * len(shown),
            "path": [*self.paths(lines)],
            "depth": [line.depth for line in shown],
            "more": [len(line.nodes) if line.is_rest else 0 for line in shown],
            "id": [f"@{next(ids)}" if len(of) == 1 else None for of in rows],
            "callpaths": [len(of) for of in rows],
        }


def node_columns(outline: Outline) -> dict[str, list[Cell]]:
    """Return the columns of `OutlineColumns` of all lines."""
    return OutlineColumns(outline).cells(np.arange(len(outline)))


def sum_check_text(
    outline: Outline, check: SumCheck, amounts: Sequence[str], whole: str = "the total"
) -> str:
    """Say whether the lines add up, and how many call paths have no line of their own.

    Parameters
    ----------
    outline : the lines
    check : result of the comparison
    amounts : sum of the lines and sum of the call paths
    whole : name of the sum of the call paths
    """
    counts, total = amounts
    hidden = len(outline.hidden)
    whose = "its" if hidden == 1 else "their"
    rest = f"; {counted(hidden, 'call path')} without {whose} own line" if hidden else ""
    if outline.start != ROOT:
        whole = f"{whole} of the zoomed node"
    if check.holds:
        return f"sum check: the lines add up to {whole}, {total}{rest}"
    return f"SUM CHECK FAILED: the lines add up to {counts}, not to {whole}, {total}: report this"


_LISTED = 5
"""Number of subtrees of a side that are listed."""


def unmatched_lines(
    parted: Unmatched,
    tree: CallTree,
    unit: str,
    heading: Callable[[bool, str, str], str],
    *,
    style: TextStyle,
) -> list[str]:
    """Return the costliest subtrees of each side, those of the new side first.

    Parameters
    ----------
    parted : the subtrees
    tree : call tree of both sides
    unit : unit of costs
    heading : function that returns the heading of a side, from whether it is the new one, the
        number of call paths, and their share
    style : characters of text
    """
    lines = []
    for is_new in (True, False):
        mine = np.flatnonzero(parted.is_new == is_new)
        if not len(mine):
            continue
        count, share = int(parted.callpaths[mine].sum()), float(parted.share[mine].sum())
        lines.append(heading(is_new, counted(count, "call path"), percent(share)))
        for place in mine[:_LISTED]:
            cost = style.amount(float(parted.cost[place]), unit)
            path = shorten(short_names(tree.names(int(parted.rows[place]))), NAMED)
            lines.append(f"  {cost:>8}  {percent(float(parted.share[place])):>5}  {path}")
        if len(mine) > _LISTED:
            rest = percent(float(parted.share[mine[_LISTED:]].sum()))
            lines.append(f"  ... and {len(mine) - _LISTED} more places, {rest}")
    return lines


def unmatched_json(
    parted: Unmatched, tree: CallTree, sides: tuple[str, str]
) -> list[dict[str, object]]:
    """Return the subtrees as JSON; `sides` names the base and the new side."""
    columns = (parted.rows, parted.is_new, parted.cost, parted.share, parted.callpaths)
    return [
        {
            "callpath": tree.path(row),
            "occurs": sides[is_new],
            "cost": cost,
            "share": share,
            "callpaths": count,
        }
        for row, is_new, cost, share, count in zip(*(c.tolist() for c in columns), strict=True)
    ]
