"""Position in a view: the cursor, open nodes, zoomed nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.outline import SHARED, Opening, Outline
from callpath_modeler.profile.view_request import ALL_BELOW, node_path
from callpath_modeler.profile.views import View


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
