"""What the browser shows, apart from how: view, target, order, filter, zoom, open nodes, cursor.

It knows no terminal, and can be said in words at any time (`State.view_request`): the same view
is what `cpmodel views` prints for these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from callpath_modeler.analysis.forecast import Forecast, NodeForecasts
from callpath_modeler.arrays import FloatArray
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.groups import Costs, Rows
from callpath_modeler.profile.hot_path import hot_path
from callpath_modeler.profile.outline import SHARED, Outline, Selection, SumCheck, outline
from callpath_modeler.profile.view_request import ViewRequest, columns_kept_by, node_path
from callpath_modeler.profile.views import View, ViewKind, open_view
from callpath_modeler.tui.search import SearchHits
from callpath_modeler.tui.tree_cursor import TreeCursor
from callpath_modeler.tui.view_lines import ViewLines

SHARE_HIDDEN = 0.01
"""Nodes below this share of the whole are hidden at first."""

MOST_LINES = 2_000
"""From so many lines on nothing is opened: nobody reads on, and a key is to take no time."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedForecast:
    """A forecast that is ready to be shown.

    Attributes
    ----------
    forecast : it
    lines : how the view is written out with it; None = it was not
    revision : of the session, as it was then
    """

    forecast: Forecast
    lines: Outline | None = None
    revision: int = -1


class State:
    """What is shown, and where one is in it; keys change it (`session.Session`).

    Parameters
    ----------
    forecast : what is shown, at a target
    request : how to begin; what it says of the lines of one view, it says of that view alone
    """

    def __init__(self, forecast: Forecast, request: ViewRequest | None = None) -> None:
        request = request or ViewRequest(least=SHARE_HIDDEN)
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
        self._cursors: dict[ViewKind, TreeCursor] = {}
        self._views: dict[ViewKind, View] = {}
        self.kept_costs: dict[ViewKind, Costs] = {}
        self.found = SearchHits([])
        self._revision = 0
        self.cursor = 0
        self.outline: Outline
        self.refresh()

    # What is shown

    @property
    def tree_cursor(self) -> TreeCursor:
        """Where one is in the current view; a view is opened at its hot path."""
        if self.kind not in self._cursors:
            self._cursors[self.kind] = TreeCursor(self._view_of(self.kind, self.forecast))
            self.open_hot(ROOT)
        return self._cursors[self.kind]

    def _view_of(self, kind: ViewKind, made: Forecast) -> View:
        if kind not in self._views:
            self._views[kind] = open_view(made.fitted.experiment.tree, kind, self.by)
        return self._views[kind]

    def prepare(self, kind: ViewKind, made: Forecast) -> PreparedForecast:
        """Make a view and sum up a forecast for it, so that it is there at once when asked for.

        This may be done in another thread than everything else.
        """
        view, known = self._view_of(kind, made), made.inputs
        view.has_children(view.roots)
        for codes in known.growth:
            view.largest(view.roots, codes)
        bands = [made.bands.costs] if made.bands is not None else []
        for costs in (
            made.value,
            made.modelled,
            made.predicted,
            made.decides,
            made.at_base,
            known.at_largest,
            *bands,
        ):
            view.values(view.roots, costs)
        wanted = replace(self.shortly(), kind=kind)

        def worth(nodes: Rows) -> FloatArray:
            return view.values(nodes, made.decides)[1 if wanted.leads_inclusive else 0][:, 0]

        hot_path(view, worth, levels=wanted.hot_levels)
        revision, place = self._revision, self._cursors.get(kind)
        if kind is not self.kind or place is None or place.view is not view:
            return PreparedForecast(made)
        return PreparedForecast(made, outline(view, made.decides, self._selection(made)), revision)

    @property
    def view(self) -> View:
        """The current view."""
        return self.tree_cursor.view

    @property
    def leads_inclusive(self) -> bool:
        """Whether inclusive values lead."""
        return self.shortly().leads_inclusive

    def shortly(self) -> ViewRequest:
        """Return what is shown, but not which nodes are open."""
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
        """Return what is shown, in words."""
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
        """Whether there are so many lines that not everything was opened."""
        return len(self.outline) >= MOST_LINES

    def values(self, places: Rows) -> tuple[NodeForecasts, NodeForecasts]:
        """Return exclusive and inclusive values of lines."""
        return self._lines.values(places)

    def check(self) -> SumCheck:
        """Tell whether the lines add up."""
        return self.forecast.check(self.outline)

    @property
    def node(self) -> int:
        """The node under the cursor; `SHARED` where siblings share the line."""
        return int(self.outline.nodes[self.cursor]) if len(self.outline) else SHARED

    # Changes of what is shown

    def refresh(self) -> None:
        """Write the view out again; the cursor stays on its node, or goes to one above it."""
        view = self.tree_cursor.view
        self._show_lines(outline(view, self.forecast.decides, self._selection(self.forecast)))

    def _show_lines(self, lines: Outline) -> None:
        self._revision += 1
        self.outline = lines
        self._lines = ViewLines(self.forecast, lines)
        self.select(self.tree_cursor.node, self.tree_cursor.above)

    def _selection(self, made: Forecast) -> Selection:
        place, wanted = self.tree_cursor, self.shortly()
        inclusive = wanted.leads_inclusive
        return Selection(
            inclusive=inclusive,
            least=wanted.least * made.whole,
            depth=1,
            start=place.start,
            openings=self.tree_cursor.openings(),
            keep=self._keep(),
            order=made.order(place.view, self.sort, inclusive=inclusive),
            reverse=self.reverse,
            most=MOST_LINES,
        )

    def _keep(self) -> Costs | None:
        """Return what the filter keeps of the current view."""
        if not self.pattern:
            return None
        if self.kind not in self.kept_costs:
            self.kept_costs[self.kind] = columns_kept_by(self.view, self.pattern)
        return self.kept_costs[self.kind]

    def retarget(self, ready: PreparedForecast) -> None:
        """Show another forecast, of the same models at another target or with bands, or another.

        Where call paths are others, everything begins anew.
        """
        tree = self.forecast.fitted.experiment.tree
        self.forecast = ready.forecast
        if not tree.is_same_as(ready.forecast.fitted.experiment.tree):
            self._cursors, self._views = {}, {}
            self.found = SearchHits([])
        elif ready.lines is not None and ready.revision == self._revision:
            self._show_lines(ready.lines)
            return
        self.refresh()

    # The cursor

    def go(self, line: int) -> None:
        """Put the cursor on a line, or the nearest that there is."""
        self.cursor = min(max(line, 0), max(len(self.outline) - 1, 0))
        place = self.tree_cursor
        place.node, place.above = self.node, ROOT
        if place.node == SHARED and len(self.outline):
            above = self.outline.above(self.cursor)
            place.above = int(self.outline.nodes[above]) if above >= 0 else ROOT

    def select(self, node: int, above: int = ROOT) -> None:
        """Put the cursor on a node, or the nearest above it that has a line.

        Parameters
        ----------
        above : where the node is `SHARED`, the one that the siblings are below
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
        """Return what the hot path follows, [nodes]; NaN for what is filtered out."""
        values = self.view.values(nodes, self.forecast.decides)[1 if self.leads_inclusive else 0][
            :, 0
        ]
        keep = self._keep()
        if keep is None:
            return values
        return np.where(self.view.values(nodes, keep)[0][:, 0] > 0, values, np.nan)

    def open_hot(self, start: int) -> None:
        """Open the hot path below a node, and have the cursor at its end next."""
        levels = self.shortly().hot_levels
        path = hot_path(self.view, self._worth, start, levels=levels)
        if path:
            for node in [start, *path[:-1]][start == ROOT :]:
                self.tree_cursor.open(node)
            self.tree_cursor.node = path[-1]
