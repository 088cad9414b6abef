"""A view written out: which nodes get a line, which share one, and whether anything is lost.

Siblings that are small or too many share one line, "... 14 more", so whatever is left out is
still there: the lines add up to the whole program, and `Outline.check` tells whether they do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.groups import Costs, Grouping, Rows, Values
from callpath_modeler.profile.views import View, ViewKind

TOLERANCE = 1e-9
"""Largest error of a sum, relative to the sum of sizes: what rounding may do."""

CALLERS = 3
"""Levels of a bottom-up view that are written out unless told: a function, and two of callers."""


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One line of a view.

    Attributes
    ----------
    nodes : [1] the node; or the siblings that share this line
    depth : how many lines it is indented under
    is_rest : whether siblings share it
    is_closed : whether there are nodes below that have no line
    """

    nodes: Rows
    depth: int
    is_rest: bool
    is_closed: bool

    @property
    def node(self) -> int:
        """The node of a line that has one."""
        return int(self.nodes[0])


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which view, and how much of it.

    Attributes
    ----------
    kind : which of the three views
    by : the levels of a flat view
    inclusive : whether siblings are ordered by inclusive values; None = top-down only
    depth : so many levels; None = all, but of the callers, who are many, three
    top : so many siblings at most; None = all
    least : a node needs this share of the whole for a line of its own
    """

    kind: ViewKind = ViewKind.TOP_DOWN
    by: tuple[Grouping, ...] = (Grouping.REGION,)
    inclusive: bool | None = None
    depth: int | None = None
    top: int | None = None
    least: float = 0.0

    def selection(self, column: int, whole: float = 1.0) -> Selection:
        """Return what gets a line, where `column` decides and 100 % of it is `whole`."""
        top_down = self.kind is ViewKind.TOP_DOWN
        depth = CALLERS if self.kind is ViewKind.BOTTOM_UP and self.depth is None else self.depth
        inclusive = top_down if self.inclusive is None else self.inclusive
        return Selection(column, inclusive, self.least * whole, self.top, depth)

    @property
    def hot_levels(self) -> int | None:
        """How far the hot path is followed: to its end, but only so many callers up."""
        return CALLERS if self.kind is ViewKind.BOTTOM_UP else None


@dataclass(frozen=True, slots=True)
class Selection:
    """What gets a line of its own.

    Attributes
    ----------
    column : the column of values that decides
    inclusive : whether lines are ordered by inclusive values, else by exclusive ones
    least : a node needs this size, in what siblings are ordered by or, top-down, in either
    top : so many siblings at most, the largest
    depth : so many levels; None = all
    """

    column: int = 0
    inclusive: bool = True
    least: float = 0.0
    top: int | None = None
    depth: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SumCheck:
    """Whether the lines of a view add up to the program.

    Attributes
    ----------
    counted : [columns] what the lines add up to
    total : [columns] what the call paths add up to
    holds : whether they are equal but for rounding
    """

    counted: Values
    total: Values
    holds: bool


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """The lines of a view, each below the one that it belongs to.

    Attributes
    ----------
    view : what is written out
    lines : in order
    """

    view: View
    lines: tuple[Line, ...]

    def values(self, costs: Costs) -> tuple[Values, Values]:
        """Return exclusive and inclusive values, each [lines, columns]."""
        own = np.empty((len(self.lines), costs.exclusive.shape[1]))
        whole = np.empty_like(own)
        is_rest = np.array([line.is_rest for line in self.lines], bool)
        nodes = np.array([line.node for line in self.lines if not line.is_rest], np.intp)
        own[~is_rest], whole[~is_rest] = self.view.values(nodes, costs)
        for place in np.flatnonzero(is_rest):
            own[place], whole[place] = self.view.together(self.lines[place].nodes, costs)
        return own, whole

    @property
    def hidden(self) -> NDArray[np.intp]:
        """The call paths that have no line of their own, nor a function, file or module of theirs.

        Of bottom-up views only the top level counts: what is below apportions the same cost.
        """
        tree, top_down = self.view.tree, self.view.kind is ViewKind.TOP_DOWN
        hidden = np.zeros(len(tree) + 1, np.intp)
        for line in self.lines:
            if top_down and (line.is_rest or line.is_closed):
                np.add.at(hidden, line.nodes + line.is_closed, 1)
                np.add.at(hidden, tree.end[line.nodes], -1)
            elif line.is_rest and line.depth == 0:
                for node in line.nodes.tolist():
                    hidden[self.view.rows(node)] = 1
        return np.flatnonzero(np.cumsum(hidden) if top_down else hidden)

    def check(self, costs: Costs) -> SumCheck:
        """Add up what the lines stand for."""
        own, whole = (np.where(np.isnan(v), 0.0, v) for v in self.values(costs))
        if self.view.kind is ViewKind.TOP_DOWN:
            is_last = [line.is_rest or line.is_closed for line in self.lines]
            parts = np.where(np.array(is_last, bool)[:, None], whole, own)
        else:
            parts = own[[line.depth == 0 for line in self.lines]]
        counted, total = parts.sum(axis=0), costs.total
        size = np.nansum(np.abs(costs.exclusive), axis=0)
        with np.errstate(invalid="ignore"):  # both may be infinite
            equal = (np.abs(counted - total) <= TOLERANCE * size) | (counted == total)
        return SumCheck(counted, total, bool(equal.all()))


def outline(view: View, costs: Costs, selection: Selection) -> Outline:
    """Write out a view.

    Parameters
    ----------
    view : opened as far as the selection needs
    costs : the values that decide
    selection : what gets a line of its own
    """
    lines: list[Line] = []
    costs = costs.only(selection.column)
    waiting = [_siblings(view, ROOT, 0, costs, selection)]
    while waiting:
        line = next(waiting[-1], None)
        if line is None:
            waiting.pop()
            continue
        lines.append(line)
        if not (line.is_rest or line.is_closed):
            waiting.append(_siblings(view, line.node, line.depth + 1, costs, selection))
    return Outline(view, tuple(lines))


def _siblings(
    view: View, parent: int, depth: int, costs: Costs, selection: Selection
) -> Iterator[Line]:
    """Yield the lines of the nodes below `parent`, the costliest first."""
    nodes = view.roots if parent == ROOT else view.children(parent)
    if not len(nodes):
        return
    own, whole = (values[:, 0] for values in view.values(nodes, costs))
    decides = whole if selection.inclusive else own
    size = np.abs(decides)
    if view.kind is ViewKind.TOP_DOWN:
        size = np.fmax(np.abs(own), np.abs(whole))  # callees may win back what it loses itself
    size, worth = np.nan_to_num(size), np.where(np.isnan(decides), -np.inf, decides)
    shown = np.flatnonzero(size >= selection.least)
    if selection.top is not None and selection.top < len(shown):
        largest = np.argsort(-size[shown], kind="stable")
        shown = shown[largest[: selection.top]]
    shown = shown[np.argsort(-worth[shown], kind="stable")]
    is_closed = np.zeros(len(shown), bool)
    if selection.depth is not None and depth + 1 >= selection.depth:
        is_closed = view.has_children(nodes[shown])
    for node, closed in zip(nodes[shown], is_closed.tolist(), strict=True):
        yield Line(np.array([node]), depth, is_rest=False, is_closed=closed)
    rest = np.setdiff1d(nodes, nodes[shown])
    if len(rest):
        yield Line(rest, depth, is_rest=True, is_closed=False)
