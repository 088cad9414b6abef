"""State of the browser: view, target, order, filter, zoom, open nodes, cursor.

It does not depend on a terminal. `State.view_request` describes it as a request, for which
`cpmodel views` prints the same view.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from callpath_modeler.analysis.node_values import NodeValues
from callpath_modeler.analysis.pair_forecast import NodeDifferences, ViewForecast
from callpath_modeler.arrays import FloatArray
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.groups import Costs, Rows
from callpath_modeler.profile.outline import (
    SHARED,
    Opening,
    Outline,
    Selection,
    SumCheck,
    hot_path,
    outline,
)
from callpath_modeler.profile.tree_views import View, ViewKind, open_view
from callpath_modeler.profile.view_request import ALL_BELOW, ViewRequest, columns_kept_by, node_path


@dataclass(slots=True)
class SearchHits:
    """Nodes that a search found, the costliest first.

    Attributes
    ----------
    text : the text; "" = no search
    nodes : the nodes
    at : number of the present hit
    """

    text: str = ""
    nodes: Rows = field(default_factory=lambda: np.empty(0, np.intp))
    at: int = 0

    def go(self, step: int) -> int:
        """Advance by `step`, from the last hit to the first, and return the node."""
        self.at = (self.at + step) % len(self.nodes)
        return int(self.nodes[self.at])

    def number(self, node: int) -> int:
        """Return the number of a hit, from 1; 0 = the node is none."""
        found = np.flatnonzero(self.nodes == node)
        return int(found[0]) + 1 if len(found) else 0

    def part(self, name: str) -> tuple[int, int]:
        """Return the start and the end of the first match in a name; (0, 0) = no match."""
        lower = name.casefold()
        start = lower.find(self.text.casefold()) if self.text else -1
        if start < 0:
            return 0, 0
        # The lower case of some letters is longer than the letters.
        return (start, start + len(self.text)) if len(lower) == len(name) else (0, len(name))


def search_view(
    view: View,
    text: str,
    start: int,
    decides: Costs,
    *,
    inclusive: bool,
    chains: Mapping[int, Sequence[str]],
) -> SearchHits:
    """Return the nodes whose name contains a text: call paths, or functions at the top of the view.

    Parameters
    ----------
    view : the view
    text : text in any case
    start : in the top-down view, search below this node; `ROOT` = everywhere
    decides, inclusive : the column that orders the nodes
    chains : names of folded call paths, which also match, by the call path below them
    """
    tree, typed, text = view.tree, text, text.casefold()
    if view.kind is ViewKind.TOP_DOWN:

        def contains(name: str) -> bool:
            return text in name.casefold()

        named = np.array([contains(region.name) for region in tree.regions], bool)
        matches = named[tree.region] if len(tree) else np.empty(0, bool)
        matches[[row for row, names in chains.items() if any(map(contains, names))]] = True
        nodes = np.flatnonzero(matches)
        if start != ROOT:
            nodes = nodes[(nodes >= start) & (nodes < tree.end[start])]
    else:
        known = [n for n in view.roots.tolist() if text in view.name(n).casefold()]
        nodes = np.array(known, np.intp)
    if not len(nodes):
        return SearchHits()
    cost = view.values(nodes, decides)[1 if inclusive else 0][:, 0]
    order = np.argsort(-np.nan_to_num(cost, nan=-1.0), kind="stable")
    return SearchHits(typed, nodes[order])


@dataclass(slots=True, eq=False)
class TreeCursor:
    """Position in one of the views.

    Attributes
    ----------
    view : the view
    told : nodes that were opened or closed
    zooms : nodes that were zoomed into; the last is the top node
    node : the node under the cursor; `SHARED` = siblings that share a line below `above`
    above : the node above it
    """

    view: View
    told: dict[int, Opening] = field(default_factory=dict)
    zooms: list[int] = field(default_factory=list)
    node: int = ROOT
    above: int = ROOT

    @property
    def start(self) -> int:
        """The top node of the view."""
        return self.zooms[-1] if self.zooms else ROOT

    def openings(self) -> dict[int, Opening]:
        """Return the open nodes, relative to the top node."""
        told, start = self.told, self.start
        if start != ROOT and start not in told and self.opens_below(start):
            return {**told, start: Opening.ALL}
        return dict(told)

    def opens_below(self, node: int) -> bool:
        """Return whether a node is open because a node above it is open with its whole subtree."""
        told, node = self.told, self.view.parent(node)
        while node != ROOT:
            if node in told:
                return told[node] is Opening.ALL
            node = self.view.parent(node)
        return False

    def open(self, node: int) -> None:
        """Open a node; with its subtree if it was closed within an open subtree."""
        told = self.told
        if self.opens_below(node):
            told.pop(node, None)
        elif told.get(node) is not Opening.ALL:
            told[node] = Opening.OPEN

    def close(self, node: int) -> None:
        """Close a node."""
        if self.opens_below(node):
            self.told[node] = Opening.CLOSED
        else:
            self.told.pop(node, None)

    def forget_below(self, top: int) -> None:
        """Forget openings of a node and its subtree."""
        told = self.told
        for node in list(told):
            above = node
            while above not in {top, ROOT}:
                above = self.view.parent(above)
            if above == top:
                del told[node]

    def in_words(self, outline: Outline) -> tuple[list[str], list[str]]:
        """Return the paths of open nodes, and of nodes that are closed within an open subtree."""
        told, view = self.openings(), self.view
        opened, closed = [], []
        nodes, is_open = outline.nodes, outline.is_open
        has_open_child = np.zeros(len(nodes), bool)
        trail: list[int] = []
        for place, depth in enumerate(outline.depth.tolist()):
            del trail[depth:]
            if is_open[place] and trail:
                has_open_child[trail[-1]] = True
            trail.append(place)
        for place in np.flatnonzero(nodes != SHARED).tolist():
            node = int(nodes[place])
            opening = told.get(node)
            if opening is Opening.ALL:
                opened.append(node_path(view, node, short=True) + ALL_BELOW)
            elif opening is Opening.CLOSED and self.opens_below(node):
                closed.append(node_path(view, node, short=True))
            elif is_open[place] and not has_open_child[place] and not self.opens_below(node):
                opened.append(node_path(view, node, short=True))
        return opened, closed


SHARE_HIDDEN = 0.01
"""Nodes with a smaller share of the total are hidden at first."""

MOST_LINES = 2_000
"""Number of lines from which nothing is opened, so that keys are answered at once."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedForecast:
    """A forecast that is ready for the screen.

    Attributes
    ----------
    forecast : the values
    lines : the lines of the view with these predictions; None = not computed
    revision : revision of the session at that time
    """

    forecast: ViewForecast
    lines: Outline | None = None
    revision: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class FilledView:
    """A view whose open nodes fill a screen.

    Attributes
    ----------
    lines : number of lines of the screen
    hot, told : open nodes of the hot path alone, and after the screen was filled
    """

    lines: int
    hot: Mapping[int, Opening]
    told: Mapping[int, Opening]


LineValues = NodeValues | NodeDifferences
"""Values of lines in one experiment, or in two."""


class ViewLines:
    """The lines of a view.

    Parameters
    ----------
    forecast : the values of call paths
    outline : the lines
    """

    def __init__(self, forecast: ViewForecast, outline: Outline) -> None:
        self.outline = outline
        self._forecast = forecast
        self._known: dict[int, tuple[tuple[Any, ...], tuple[Any, ...]]] = {}
        self._kind: type[NodeValues] | type[NodeDifferences] = NodeValues
        self._types: dict[str, np.dtype[Any]] = {}

    def values(self, places: Rows) -> tuple[LineValues, LineValues]:
        """Return exclusive and inclusive values of lines; computed values are kept."""
        missing = [place for place in places.tolist() if place not in self._known]
        if missing or not self._types:
            found = self._forecast.of_outline(self.outline, np.array(missing, np.intp))
            self._kind = type(found[0])
            self._types = {name: getattr(found[0], name).dtype for name in self._kind.COLUMNS}
            rows = (_rows_of(each) for each in found)
            self._known |= zip(missing, zip(*rows, strict=True), strict=True)
        kept = [self._known[place] for place in places.tolist()]
        own, whole = (self._columns_of([row[kind] for row in kept]) for kind in (0, 1))
        return own, whole

    def _columns_of(self, rows: Sequence[tuple[Any, ...]]) -> LineValues:
        columns = zip(*rows, strict=True) if rows else ((),) * len(self._types)
        return self._kind.of_columns(
            {
                name: np.array(column, dtype)
                for (name, dtype), column in zip(self._types.items(), columns, strict=True)
            }
        )


def _rows_of(values: LineValues) -> list[tuple[Any, ...]]:
    return list(zip(*(getattr(values, name).tolist() for name in values.COLUMNS), strict=True))


class State:
    """The state of the browser; keys change it (`session.Session`).

    Parameters
    ----------
    forecast : values at a target, of one experiment or of two
    request : initial view; its filters of lines only apply to that view
    """

    def __init__(self, forecast: ViewForecast, request: ViewRequest | None = None) -> None:
        request = request or ViewRequest(least=SHARE_HIDDEN, sort=forecast.usual_sort)
        self.forecast = forecast
        self.kind = request.kind
        self.by = request.by
        self.inclusive = request.inclusive
        self.least = request.least or SHARE_HIDDEN
        self.hides = request.least > 0
        self.sort = request.sort
        self.reverse = request.reverse
        self.pattern = request.keep
        self.heat = False
        self.bookmarked: dict[int, str] = {}
        self._cursors: dict[ViewKind, TreeCursor] = {}
        self._views: dict[ViewKind, View] = {}
        self._filled: FilledView | None = None
        self.kept_costs: dict[ViewKind, Costs] = {}
        self.found = SearchHits()
        self._revision = 0
        self.cursor = 0
        self.outline: Outline
        self.refresh()

    # View

    @property
    def tree_cursor(self) -> TreeCursor:
        """The position in the current view; a new view is open at its hot path."""
        if self.kind not in self._cursors:
            self._cursors[self.kind] = TreeCursor(self._view_of(self.kind, self.forecast))
            self.open_hot(ROOT)
        return self._cursors[self.kind]

    def _view_of(self, kind: ViewKind, made: ViewForecast) -> View:
        if kind not in self._views:
            self._views[kind] = open_view(made.tree, kind, self.by)
        return self._views[kind]

    def prepare(self, kind: ViewKind, made: ViewForecast) -> PreparedForecast:
        """Return a view with the sums of a forecast, so that it can be shown at once later.

        It may run in another thread.
        """
        view = self._view_of(kind, made)
        view.has_children(view.roots)
        made.sum_up(view)
        wanted = replace(self.shortly(), kind=kind)

        def worth(nodes: Rows) -> FloatArray:
            return made.worth(view, nodes, inclusive=wanted.leads_inclusive)

        hot_path(view, worth, levels=wanted.hot_levels)
        revision, place = self._revision, self._cursors.get(kind)
        is_known = place is not None and place.view is view
        if self.pattern and kind is not self.kind:
            return PreparedForecast(made)
        # A view that was never shown opens at its hot path, as it will when a key shows it.
        there, cursors = copy(self), {kind: place} if is_known else {}
        vars(there).update(kind=kind, forecast=made, _cursors=cursors)
        lines = outline(view, made.decides, there.selection(made))
        made.of_outline(lines, np.array([*lines.rests], np.intp))
        is_shown = kind is self.kind and is_known
        return PreparedForecast(made, lines, revision) if is_shown else PreparedForecast(made)

    @property
    def view(self) -> View:
        """The current view."""
        return self.tree_cursor.view

    @property
    def leads_inclusive(self) -> bool:
        """Whether inclusive values lead."""
        return self.shortly().leads_inclusive

    def shortly(self) -> ViewRequest:
        """Return the request of the view without open nodes."""
        return ViewRequest(
            kind=self.kind,
            by=self.by,
            inclusive=self.inclusive,
            least=self.least if self.hides else 0.0,
            keep=self.pattern,
            sort=self.sort,
            reverse=self.reverse,
        )

    def view_request(self) -> ViewRequest:
        """Return the request of the view."""
        opened, closed = self.tree_cursor.in_words(self.outline)
        start = self.tree_cursor.start
        return replace(
            self.shortly(),
            depth=1,
            zoom=node_path(self.view, start, short=True) if start != ROOT else "",
            opened=tuple(opened),
            closed=tuple(closed),
            most=MOST_LINES if self.is_cut else None,
        )

    @property
    def is_cut(self) -> bool:
        """Whether the limit of lines kept nodes closed."""
        return len(self.outline) >= MOST_LINES

    def values(self, places: Rows) -> tuple[LineValues, LineValues]:
        """Return exclusive and inclusive values of lines."""
        return self._lines.values(places)

    def check(self) -> SumCheck:
        """Return whether the lines add up."""
        return self.forecast.check(self.outline)

    @property
    def node(self) -> int:
        """The node under the cursor; `SHARED` if siblings share the line."""
        return int(self.outline.nodes[self.cursor]) if len(self.outline) else SHARED

    # Changes of the view

    def refresh(self) -> None:
        """Write the lines again; the cursor stays on its node, or goes to a node above it."""
        view = self.tree_cursor.view
        self._show_lines(outline(view, self.forecast.decides, self.selection(self.forecast)))

    def _show_lines(self, lines: Outline) -> None:
        self._revision += 1
        self.outline = lines
        self._lines = ViewLines(self.forecast, lines)
        self.select(self.tree_cursor.node, self.tree_cursor.above)

    def selection(self, made: ViewForecast) -> Selection:
        """Return which lines of the view show which values."""
        place, wanted = self.tree_cursor, self.shortly()
        inclusive = wanted.leads_inclusive
        return Selection(
            inclusive=inclusive,
            least=wanted.least * made.whole,
            depth=1,
            start=place.start,
            openings=self.tree_cursor.openings(),
            keep=self._keep(),
            order=made.sibling_order(place.view, self.sort, inclusive=inclusive),
            reverse=self.reverse,
            most=MOST_LINES,
        )

    def _keep(self) -> Costs | None:
        """Return the costs of the nodes that match the filter."""
        if not self.pattern:
            return None
        if self.kind not in self.kept_costs:
            self.kept_costs[self.kind] = columns_kept_by(self.view, self.pattern)
        return self.kept_costs[self.kind]

    def retarget(self, ready: PreparedForecast) -> None:
        """Show another forecast: of another target, with bands, or of another metric.

        If the call paths differ, the state starts from the beginning.
        """
        tree = self.forecast.tree
        self.forecast = ready.forecast
        if not tree.is_same_as(ready.forecast.tree):
            self._cursors, self._views, self._filled = {}, {}, None
            self.found = SearchHits()
        elif ready.lines is not None and ready.revision == self._revision:
            self._show_lines(ready.lines)
            return
        self.refresh()

    # The cursor

    def go(self, line: int) -> None:
        """Move the cursor to a line, or to the nearest one."""
        self.cursor = min(max(line, 0), max(len(self.outline) - 1, 0))
        place = self.tree_cursor
        place.node, place.above = self.node, ROOT
        if place.node == SHARED and len(self.outline):
            above = self.outline.above(self.cursor)
            place.above = int(self.outline.nodes[above]) if above >= 0 else ROOT

    def select(self, node: int, above: int = ROOT) -> None:
        """Move the cursor to a node, or to the nearest node above it that has a line.

        Parameters
        ----------
        node : the node
        above : if the node is `SHARED`, the node above the siblings
        """
        nodes = self.outline.nodes
        if node == SHARED:
            for line in self.outline.rests:
                over = self.outline.above(line)
                if (int(nodes[over]) if over >= 0 else ROOT) == above:
                    self.go(line)
                    return
            node = above
        while node != ROOT:
            found = np.flatnonzero(nodes == node)
            if len(found):
                self.go(int(found[0]))
                return
            node = self.view.parent(node)
        self.go(0)

    # The hot path

    def _worth(self, nodes: Rows) -> FloatArray:
        """Return the values that the hot path follows, [nodes]; NaN = filtered out."""
        values = self.forecast.worth(self.view, nodes, inclusive=self.leads_inclusive)
        keep = self._keep()
        if keep is None:
            return values
        return np.where(self.view.values(nodes, keep)[0][:, 0] > 0, values, np.nan)

    def fill(self, lines: int) -> None:
        """Open the costliest nodes of the top-down view until it has as many lines as the screen.

        The hot path may be a single line. Once somebody opens or closes a node, nothing is filled.

        Parameters
        ----------
        lines : number of lines on the screen
        """
        if self.kind is not ViewKind.TOP_DOWN or lines <= 0:
            return
        place, filled = self.tree_cursor, self._filled
        if filled is None:
            filled = FilledView(0, dict(place.told), dict(place.told))
        if place.zooms or place.told != filled.told or lines == filled.lines:
            return
        node, above = place.node, place.above
        if len(place.told) != len(filled.hot):
            # Nobody changed the view of another screen, so it begins again at the hot path.
            place.told.clear()
            place.told.update(filled.hot)
            self.refresh()
        for _ in range(lines):
            closed = np.flatnonzero(self.outline.is_closed & (self.outline.nodes != SHARED))
            if len(self.outline) >= lines or not len(closed):
                break
            nodes = self.outline.nodes[closed]
            inclusive = self.view.values(nodes, self.forecast.decides)[1][:, 0]
            place.open(int(nodes[np.argmax(np.nan_to_num(inclusive, nan=-1.0))]))
            self.refresh()
        self.select(node, above)
        self._filled = FilledView(lines, filled.hot, dict(place.told))

    def open_hot(self, start: int) -> None:
        """Open the hot path below a node; the cursor goes to its end."""
        levels = self.shortly().hot_levels
        path = hot_path(self.view, self._worth, start, levels=levels)
        if path:
            for node in [start, *path[:-1]][start == ROOT :]:
                self.tree_cursor.open(node)
            self.tree_cursor.node = path[-1]
