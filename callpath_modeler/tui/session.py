"""What the browser shows, apart from how: view, target, order, filter, zoom, open nodes, cursor.

A session knows no terminal. It changes when it is told to, and what it shows can be said in words
at any time (`Session.wanted`): the same view is what `cpmodel views` prints for these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from callpath_modeler.analysis.forecast import Forecast, Foreseen
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.groups import Costs, Rows, Values
from callpath_modeler.profile.outline import SHARED, Opening, Outline, Selection, SumCheck, outline
from callpath_modeler.profile.views import View, ViewKind, hot_path, open_view
from callpath_modeler.profile.wanted import Sort, Wanted, kept, node_path
from callpath_modeler.tui.place import Place

SHARE_HIDDEN = 0.01
"""Nodes below this share of the whole are hidden at first."""

MOST_LINES = 2_000
"""From so many lines on nothing is opened: nobody reads on, and a key is to take no time."""


class Session:
    """The state of a browser.

    Parameters
    ----------
    forecast : what is shown, at a target
    wanted : how to begin; what it says of the lines of one view, it says of that view alone
    """

    def __init__(self, forecast: Forecast, wanted: Wanted | None = None) -> None:
        wanted = wanted or Wanted(least=SHARE_HIDDEN)
        self.forecast = forecast
        self.kind = wanted.kind
        self.by = wanted.by
        self.inclusive = wanted.inclusive
        self.least = wanted.least or SHARE_HIDDEN
        self.hides = wanted.least > 0
        self.sort = wanted.sort
        self.reverse = wanted.reverse
        self.pattern = wanted.keep
        self.heat = False
        self._places: dict[ViewKind, Place] = {}
        self._views: dict[ViewKind, View] = {}
        self._found: list[int] = []
        self._found_at = 0
        self.cursor = 0
        self.outline: Outline
        self._begin()

    def _begin(self) -> None:
        self._kept: dict[ViewKind, Costs] = {}
        self.refresh()

    # What is shown

    @property
    def place(self) -> Place:
        """Where one is in the current view; a view is opened at its hot path."""
        if self.kind not in self._places:
            if self.kind not in self._views:
                tree = self.forecast.fitted.experiment.tree
                self._views[self.kind] = open_view(tree, self.kind, self.by)
            self._places[self.kind] = Place(self._views[self.kind])
            self._open_hot(ROOT)
        return self._places[self.kind]

    def prepare(self, kind: ViewKind, made: Forecast) -> None:
        """Make a view and sum up a forecast for it, so that it is there at once when asked for."""
        if kind not in self._views:
            self._views[kind] = open_view(made.fitted.experiment.tree, kind, self.by)
        view, known = self._views[kind], made.known
        view.has_children(view.roots)
        for costs in (made.value, made.decides, made.widths, known.at_largest, known.at_base):
            if costs is not None:
                view.values(view.roots, costs)
        wanted = replace(self.shortly(), kind=kind)

        def worth(nodes: Rows) -> Values:
            return view.values(nodes, made.decides)[1 if wanted.leads_inclusive else 0][:, 0]

        hot_path(view, worth, levels=wanted.hot_levels)

    @property
    def view(self) -> View:
        """The current view."""
        return self.place.view

    @property
    def leads_inclusive(self) -> bool:
        """Whether inclusive values lead."""
        return self.shortly().leads_inclusive

    def shortly(self) -> Wanted:
        """Return what is shown, but not which nodes are open."""
        return Wanted(
            kind=self.kind,
            by=self.by,
            inclusive=self.inclusive,
            least=self.least if self.hides else 0.0,
            keep=self.pattern,
            sort=self.sort,
            reverse=self.reverse,
        )

    def wanted(self) -> Wanted:
        """Return what is shown, in words."""
        opened, closed = self.place.in_words(self.outline)
        start = self.place.start
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

    def values(self, places: Rows) -> tuple[Foreseen, Foreseen]:
        """Return exclusive and inclusive values of lines; those that were asked for are kept."""
        missing = [place for place in places.tolist() if place not in self._values]
        if missing:
            found = self.forecast.of_outline(self.outline, np.array(missing))
            self._values |= zip(missing, zip(*map(_rows_of, found), strict=True), strict=True)
        kept = [self._values[place] for place in places.tolist()]
        own, whole = (_columns_of([row[kind] for row in kept]) for kind in (0, 1))
        return own, whole

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
        place = self.place
        self.outline = outline(place.view, self.forecast.decides, self._selection())
        self._values: dict[int, tuple[tuple[float, ...], tuple[float, ...]]] = {}
        self._select(place.node, place.above)

    def _selection(self) -> Selection:
        place, wanted = self.place, self.shortly()
        inclusive = wanted.leads_inclusive
        return Selection(
            inclusive=inclusive,
            least=wanted.least * self.forecast.whole,
            depth=1,
            start=place.start,
            openings=self.place.openings(),
            keep=self._keep(),
            order=self.forecast.order(place.view, self.sort, inclusive=inclusive),
            reverse=self.reverse,
            most=MOST_LINES,
        )

    def _keep(self) -> Costs | None:
        """Return what the filter keeps of the current view."""
        if not self.pattern:
            return None
        if self.kind not in self._kept:
            self._kept[self.kind] = kept(self.view, self.pattern)
        return self._kept[self.kind]

    def retarget(self, forecast: Forecast) -> None:
        """Show another forecast, of the same models at another target or with bands, or another.

        Where call paths are others, everything begins anew.
        """
        same = _alike(forecast.fitted.experiment.tree, self.forecast.fitted.experiment.tree)
        self.forecast = forecast
        if not same:
            self._places, self._views = {}, {}
            self._found = []
        self.refresh()

    def show(self, kind: ViewKind) -> None:
        """Show another view."""
        self.kind = kind
        self._found = []
        self.refresh()

    def sort_next(self) -> None:
        """Order siblings by the next column."""
        sorts = list(Sort)
        self.sort = sorts[(sorts.index(self.sort) + 1) % len(sorts)]
        self.refresh()

    def turn_round(self) -> None:
        """Order siblings the other way round."""
        self.reverse = not self.reverse
        self.refresh()

    def lead_with_other(self) -> None:
        """Let inclusive values lead instead of exclusive ones, or the other way round."""
        self.inclusive = not self.leads_inclusive
        self.refresh()

    def hide_or_show_small(self) -> None:
        """Hide what is small, or show it."""
        self.hides = not self.hides
        self.refresh()

    def filter(self, pattern: str) -> None:
        """Give lines to what matches a pattern only; an empty one is no filter.

        Raises
        ------
        UsageError
            If nothing matches; then nothing has changed.
        """
        before, kept_before = self.pattern, self._kept
        self.pattern, self._kept = pattern, {}
        try:
            self.refresh()
        except UsageError:
            self.pattern, self._kept = before, kept_before
            raise

    # The cursor

    def go(self, line: int) -> None:
        """Put the cursor on a line, or the nearest that there is."""
        self.cursor = min(max(line, 0), max(len(self.outline) - 1, 0))
        place = self.place
        place.node, place.above = self.node, ROOT
        if place.node == SHARED and len(self.outline):
            above = self.outline.above(self.cursor)
            place.above = int(self.outline.nodes[above]) if above >= 0 else ROOT

    def _select(self, node: int, above: int = ROOT) -> None:
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

    def caller(self) -> None:
        """Go to the line that this one is below."""
        above = self.outline.above(self.cursor) if len(self.outline) else -1
        if above >= 0:
            self.go(above)

    # Opening and closing

    @property
    def can_open(self) -> bool:
        """Whether the line under the cursor has lines to open."""
        return self.node != SHARED and bool(self.outline.is_closed[self.cursor])

    def open(self) -> None:
        """Open the node under the cursor."""
        if self.can_open:
            self.place.open(self.node)
            self.refresh()

    def go_in(self) -> None:
        """Open the node under the cursor; go to the first line below one that is open."""
        if len(self.outline) and self.outline.is_open[self.cursor]:
            self.go(self.cursor + 1)
        else:
            self.open()

    def close(self) -> None:
        """Close the node under the cursor."""
        if len(self.outline) and self.outline.is_open[self.cursor]:
            self.place.close(self.node)
            self.refresh()

    def go_out(self) -> None:
        """Close the node under the cursor; go to the one above where nothing is open."""
        if len(self.outline) and self.outline.is_open[self.cursor]:
            self.close()
        else:
            self.caller()

    def toggle(self) -> None:
        """Open what is closed, close what is open."""
        if len(self.outline) and self.outline.is_open[self.cursor]:
            self.close()
        else:
            self.open()

    def open_all(self) -> None:
        """Open everything below the node under the cursor."""
        if self.node != SHARED and len(self.outline):
            self.place.forget_below(self.node)
            self.place.told[self.node] = Opening.ALL
            self.refresh()

    def close_all(self) -> None:
        """Close everything below the node under the cursor, and at the top of the view the node."""
        if self.node == SHARED or not len(self.outline):
            return
        node = self.node
        self.place.forget_below(node)
        if self.place.opens_below(node):
            self.place.told[node] = Opening.CLOSED
        self.refresh()

    # Ways through the tree

    def _worth(self, nodes: Rows) -> Values:
        """Return what the hot path follows, [nodes]; NaN for what is filtered out."""
        values = self.view.values(nodes, self.forecast.decides)[1 if self.leads_inclusive else 0][
            :, 0
        ]
        keep = self._keep()
        if keep is None:
            return values
        return np.where(self.view.values(nodes, keep)[0][:, 0] > 0, values, np.nan)

    def _open_hot(self, start: int) -> None:
        levels = self.shortly().hot_levels
        path = hot_path(self.view, self._worth, start, levels=levels)
        if path:
            for node in [start, *path[:-1]][start == ROOT :]:
                self.place.open(node)
            self.place.node = path[-1]

    def follow_hot_path(self) -> None:
        """Open the hot path below the cursor, and go to its end."""
        node = self.node
        self._open_hot(node if node != SHARED else ROOT)
        self.refresh()

    def zoom(self) -> None:
        """Begin with the node under the cursor."""
        if self.node != SHARED and len(self.outline) and self.node != self.place.start:
            self.place.zooms.append(self.node)
            self.place.open(self.node)
            self.refresh()

    def unzoom(self) -> None:
        """Begin with the node that was zoomed into before, or with the whole program."""
        if self.place.zooms:
            self.place.zooms.pop()
            self.refresh()

    def search(self, text: str) -> int:
        """Find nodes whose name contains a text; return how many, and go to the costliest."""
        self._found = self._matching(text.casefold())
        self._found_at = 0
        if self._found:
            self._reveal(self._found[0])
        return len(self._found)

    def _matching(self, text: str) -> list[int]:
        view, tree = self.view, self.forecast.fitted.experiment.tree
        if view.kind is ViewKind.TOP_DOWN:
            regions = np.array([text in region.name.casefold() for region in tree.regions], bool)
            nodes = np.flatnonzero(regions[tree.region]) if len(tree) else np.empty(0, np.intp)
        else:
            known = [n for n in view.roots.tolist() if text in view.name(n).casefold()]
            nodes = np.array(known, np.intp)
        if self.place.start != ROOT and view.kind is ViewKind.TOP_DOWN:
            start = self.place.start
            nodes = nodes[(nodes >= start) & (nodes < tree.end[start])]
        if not len(nodes):
            return []
        own, whole = view.values(nodes, self.forecast.decides)
        decides = np.nan_to_num((whole if self.leads_inclusive else own)[:, 0], nan=-1.0)
        found: list[int] = nodes[np.argsort(-decides, kind="stable")].tolist()
        return found

    def next_match(self, step: int = 1) -> tuple[int, int]:
        """Go to another node that was found; return which, from 1, and of how many."""
        if not self._found:
            return 0, 0
        self._found_at = (self._found_at + step) % len(self._found)
        self._reveal(self._found[self._found_at])
        return self._found_at + 1, len(self._found)

    def _reveal(self, node: int) -> None:
        """Open what is above a node and go to it, whatever hides it."""
        above = self.view.parent(node)
        while above != ROOT:
            if not self.place.opens_below(above) or self.place.told.get(above) is Opening.CLOSED:
                self.place.open(above)
            above = self.view.parent(above)
        if self.kind is not ViewKind.TOP_DOWN:
            self.place.zooms.clear()
        self.place.node = node
        self.refresh()
        if self.node != node and self.hides:
            self.hides = False
            self.place.node = node
            self.refresh()
        if self.node != node and self.pattern:
            self.filter("")
            self._select(node)


def _rows_of(values: Foreseen) -> list[tuple[float, ...]]:
    columns = [getattr(values, column.name).tolist() for column in fields(Foreseen)]
    return list(zip(*columns, strict=True))


def _columns_of(rows: Sequence[tuple[float, ...]]) -> Foreseen:
    table = np.array(rows, float).reshape(len(rows), len(fields(Foreseen)))
    whole_numbers = {"growth": np.int16, "trust": np.int8}
    return Foreseen(
        **{
            column.name: table[:, k].astype(whole_numbers.get(column.name, np.float64))
            for k, column in enumerate(fields(Foreseen))
        }
    )


def _alike(one: CallTree, other: CallTree) -> bool:
    """Tell whether two trees have the same call paths in the same rows."""
    if one is other:
        return True
    return one.regions == other.regions and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("parent", "region", "annotation")
    )
