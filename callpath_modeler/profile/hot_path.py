"""The hot path of a view: from the costliest node to its costliest child, and so on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.groups import Rows
from callpath_modeler.profile.views import View

HOT = 0.5
"""Smallest share of its parent's value that a node on the hot path has."""


def hot_path(
    view: View,
    worth: Callable[[Rows], FloatArray],
    start: int = ROOT,
    part: float = HOT,
    levels: int | None = None,
) -> list[int]:
    """Return the nodes of the hot path.

    The path continues to the costliest child, if the child has at least `part` of its parent's
    value.

    Parameters
    ----------
    view : the view
    worth : function from nodes [nodes] to their values [nodes]
    start : parent of the first node; `ROOT` = start with the costliest root
    part : smallest share of its parent's value that a node on the path has
    levels : maximum length of the path; None = no limit. In a bottom-up view of a recursive
        program, the path may be as long as the recursion is deep, with all call paths on every
        level

    Returns
    -------
    list of int
        The nodes without `start`. Empty if no value is above zero.
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
