"""Actions of keys on the state of the browser."""

from __future__ import annotations

from callpath_modeler.errors import UsageError
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.outline import SHARED, Opening
from callpath_modeler.profile.view_request import Sort, find_node
from callpath_modeler.profile.views import ViewKind
from callpath_modeler.tui.search import SearchHits, search_view
from callpath_modeler.tui.state import State


class Session(State):
    """The state of a browser with the actions of keys.

    Parameters
    ----------
    forecast : values at a target, of one experiment or of two
    request : initial view; its filters of lines only apply to that view
    """

    # View

    def show(self, kind: ViewKind) -> None:
        """Show another view."""
        self.kind = kind
        self.found = SearchHits()
        self.refresh()

    def sort_next(self) -> None:
        """Order siblings by the next column."""
        sorts = self.forecast.sorts
        self.sort = sorts[(sorts.index(self.sort) + 1) % len(sorts)]
        self.refresh()

    def sort_by(self, sort: Sort) -> None:
        """Order siblings by a column; by the same column: reverse their order."""
        if sort is self.sort:
            self.turn_round()
        elif sort in self.forecast.sorts:
            self.sort, self.reverse = sort, False
            self.refresh()

    def turn_round(self) -> None:
        """Reverse the order of siblings."""
        self.reverse = not self.reverse
        self.refresh()

    def lead_with_other(self) -> None:
        """Switch between inclusive and exclusive values as the leading ones."""
        self.inclusive = not self.leads_inclusive
        self.refresh()

    def hide_or_show_small(self) -> None:
        """Hide nodes with a small share, or show them."""
        self.hides = not self.hides
        self.refresh()

    def filter(self, pattern: str) -> None:
        """Show only nodes that match a pattern; an empty pattern shows all.

        Raises
        ------
        UsageError
            If nothing matches; the state is then unchanged.
        """
        before, kept_before = self.pattern, self.kept_costs
        self.pattern, self.kept_costs = pattern, {}
        try:
            self.refresh()
        except UsageError:
            self.pattern, self.kept_costs = before, kept_before
            raise

    # The cursor

    def caller(self) -> None:
        """Go to the line above in the tree."""
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
            self.tree_cursor.open(self.node)
            self.refresh()

    def go_in(self) -> None:
        """Open the node under the cursor; if it is open, go to its first line."""
        if len(self.outline) and self.outline.is_open[self.cursor]:
            self.go(self.cursor + 1)
        else:
            self.open()

    def close(self) -> None:
        """Close the node under the cursor."""
        if len(self.outline) and self.outline.is_open[self.cursor]:
            self.tree_cursor.close(self.node)
            self.refresh()

    def go_out(self) -> None:
        """Close the node under the cursor; if it is closed, go to the node above."""
        if len(self.outline) and self.outline.is_open[self.cursor]:
            self.close()
        else:
            self.caller()

    def toggle(self) -> None:
        """Open or close the node under the cursor."""
        if len(self.outline) and self.outline.is_open[self.cursor]:
            self.close()
        else:
            self.open()

    def open_all(self) -> None:
        """Open the subtree of the node under the cursor."""
        if self.node != SHARED and len(self.outline):
            self.tree_cursor.forget_below(self.node)
            self.tree_cursor.told[self.node] = Opening.ALL
            self.refresh()

    def close_all(self) -> None:
        """Close the subtree of the node under the cursor; at the top of the view, also the node."""
        if self.node == SHARED or not len(self.outline):
            return
        node = self.node
        self.tree_cursor.forget_below(node)
        if self.tree_cursor.opens_below(node):
            self.tree_cursor.told[node] = Opening.CLOSED
        self.refresh()

    # Navigation

    def follow_hot_path(self) -> None:
        """Open the hot path below the cursor, and go to its end."""
        node = self.node
        self.open_hot(node if node != SHARED else ROOT)
        self.refresh()

    def zoom(self) -> None:
        """Show the view from the node under the cursor."""
        if self.node != SHARED and len(self.outline) and self.node != self.tree_cursor.start:
            self.tree_cursor.zooms.append(self.node)
            self.tree_cursor.open(self.node)
            self.refresh()

    def unzoom(self) -> None:
        """Show the view from the previous zoomed node, or from the whole program."""
        if self.tree_cursor.zooms:
            self.tree_cursor.zooms.pop()
            self.refresh()

    def search(self, text: str) -> int:
        """Find nodes whose name contains a text, go to the costliest, and return their number."""
        self.found = search_view(
            self.view,
            text,
            self.tree_cursor.start,
            self.forecast.decides,
            inclusive=self.leads_inclusive,
            chains=self.forecast.chains,
        )
        if len(self.found.nodes):
            self._reveal(self.found.go(0))
        return len(self.found.nodes)

    def next_match(self, step: int = 1) -> tuple[int, int]:
        """Go to the search hit after the cursor; return its number, from 1, and the number of hits.

        From a node that is no hit, it is the one after the last hit that was shown.
        """
        if not len(self.found.nodes):
            return 0, 0
        here = self.found.number(self.node)
        if here:
            self.found.at = here - 1
        self._reveal(self.found.go(step))
        return self.found.at + 1, len(self.found.nodes)

    def end_search(self) -> None:
        """Forget the search."""
        self.found = SearchHits()

    def go_to(self, callpath: str) -> None:
        """Go to a call path in the top-down view.

        Raises
        ------
        UsageError
            If there is no such call path; the state is then unchanged.
        """
        self.go_to_row(find_node(self._view_of(ViewKind.TOP_DOWN, self.forecast), callpath))

    def go_to_row(self, node: int) -> None:
        """Go to a call path in the top-down view, by its row."""
        self.show(ViewKind.TOP_DOWN)
        start, end = self.tree_cursor.start, self.view.tree.end
        if start != ROOT and not start <= node < end[start]:
            self.tree_cursor.zooms.clear()
        self._reveal(node)

    def _reveal(self, node: int) -> None:
        """Open the nodes above a node and go to it, even if it is hidden."""
        above = self.view.parent(node)
        while above != ROOT:
            if (
                not self.tree_cursor.opens_below(above)
                or self.tree_cursor.told.get(above) is Opening.CLOSED
            ):
                self.tree_cursor.open(above)
            above = self.view.parent(above)
        if self.kind is not ViewKind.TOP_DOWN:
            self.tree_cursor.zooms.clear()
        self.tree_cursor.node = node
        self.refresh()
        if self.node != node and self.hides:
            self.hides = False
            self.tree_cursor.node = node
            self.refresh()
        if self.node != node and self.pattern:
            self.filter("")
            self.select(node)
