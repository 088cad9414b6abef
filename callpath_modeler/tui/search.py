"""Search in a view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.groups import Costs, Rows
from callpath_modeler.profile.views import View, ViewKind


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
