"""The hot path: the costliest node, and of what is below it the costliest again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.groups import Rows, Values
from callpath_modeler.profile.views import View

HOT = 0.5
"""A callee is on the hot path if it has at least this part of its caller's value."""


def hot_path(
    view: View,
    worth: Callable[[Rows], Values],
    start: int = ROOT,
    part: float = HOT,
    levels: int | None = None,
) -> list[int]:
    """Follow the costliest node down, as long as it has most of what is above it.

    Parameters
    ----------
    worth : [nodes] -> [nodes], what is followed
    start : the node to begin below; `ROOT` = the costliest at the top
    part : the least part of its parent's value that a node on the path has
    levels : most nodes of the path; None = to the end, which bottom-up may be as far as
        recursion goes, with all call paths on every level

    Returns
    -------
    The nodes of the path without `start`; none where nothing is worth more than zero.
    """
    path: list[int] = []
    least = 0.0 if start == ROOT else part * float(worth(np.array([start]))[0])
    node = start
    while levels is None or len(path) < levels:
        nodes = view.children(node) if node != ROOT else view.roots
        if not len(nodes):
            break
        values = worth(nodes)
        values = np.where(np.isnan(values), -np.inf, values)
        best = int(np.argmax(values))
        if not values[best] > 0 or values[best] < least:
            break
        node, least = int(nodes[best]), part * float(values[best])
        path.append(node)
    return path
