"""What was searched for in a view, and where one is among what was found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.views import View, ViewKind


@dataclass(slots=True)
class SearchHits:
    """Nodes, the costliest first.

    Attributes
    ----------
    nodes : they
    at : which of them one is at
    """

    nodes: list[int]
    at: int = 0

    def go(self, step: int) -> int:
        """Go on, from the last to the first; return the node."""
        self.at = (self.at + step) % len(self.nodes)
        return self.nodes[self.at]


def search_view(
    view: View, text: str, start: int, decides: Costs, *, inclusive: bool
) -> SearchHits:
    """Find nodes whose name contains a text: call paths, or functions at the top of the view.

    Parameters
    ----------
    text : upper and lower case are the same
    start : in the top-down view, look below this node; `ROOT` = everywhere
    decides, inclusive : the column by which nodes are ordered
    """
    tree, text = view.tree, text.casefold()
    if view.kind is ViewKind.TOP_DOWN:
        named = np.array([text in region.name.casefold() for region in tree.regions], bool)
        nodes = np.flatnonzero(named[tree.region]) if len(tree) else np.empty(0, np.intp)
        if start != ROOT:
            nodes = nodes[(nodes >= start) & (nodes < tree.end[start])]
    else:
        known = [n for n in view.roots.tolist() if text in view.name(n).casefold()]
        nodes = np.array(known, np.intp)
    if not len(nodes):
        return SearchHits([])
    cost = view.values(nodes, decides)[1 if inclusive else 0][:, 0]
    order = np.argsort(-np.nan_to_num(cost, nan=-1.0), kind="stable")
    return SearchHits(nodes[order].tolist())
