"""The lines of a view, the check of their sum, and the hot path.

Siblings share one line, "... 14 more", if they are small, too many or not selected. A single
selected sibling gets its own line instead. Nothing is lost: the lines add up to the whole program,
or to the start node of the outline. `Outline.check` verifies the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.groups import Codes, Costs, Rows
from callpath_modeler.profile.tree_views import View, ViewKind

TOLERANCE = 1e-9
"""Largest rounding error of a sum, relative to the sum of absolute values."""

SHARED = -2
"""Node number of a line that siblings share."""

_NOTHING: Rows = np.empty(0, np.intp)
_NO_NODE = np.iinfo(np.intp).max


@dataclass(frozen=True, slots=True, eq=False)
class OutlineLine:
    """One line of a view.

    Attributes
    ----------
    nodes : [1] the node; or the siblings that share this line
    depth : indentation level; 0 at the top
    is_rest : True if siblings share the line
    is_closed : True if the node has children, and none of them has a line
    """

    nodes: Rows
    depth: int
    is_rest: bool
    is_closed: bool

    @property
    def node(self) -> int:
        """Node of a line that is not shared."""
        return int(self.nodes[0])


class Opening(IntEnum):
    """State of a node in an outline."""

    CLOSED = 0
    OPEN = 1  # the children have lines
    ALL = 2  # the whole subtree has lines


_CLOSED, _OPEN, _ALL = map(int, Opening)  # access to enum members is slow


@dataclass(frozen=True, slots=True)
class Selection:
    """Rules that decide which nodes get their own line.

    Attributes
    ----------
    column : column of values that decides on size and order
    inclusive : True: siblings are ordered by inclusive values; False: by exclusive values
    least : minimum size of a node. The size is the absolute value that determines the order; in a
        top-down view, the larger of the absolute exclusive and inclusive values
    top : maximum number of siblings, the largest ones; None = all
    depth : number of levels; None = all
    start : first node; `ROOT` = all roots
    openings : state of individual nodes, which takes precedence over `depth`
    keep : one column, above zero for the selected call paths; None = all. A node without selected
        call paths gets no line of its own
    order : function from nodes [nodes] to sort keys [nodes], largest first; None = order by value
    reverse : True: the smallest comes first
    most : number of lines from which on no further node is opened; None = no limit
    """

    column: int = 0
    inclusive: bool = True
    least: float = 0.0
    top: int | None = None
    depth: int | None = None
    start: int = ROOT
    openings: Mapping[int, Opening] = field(default_factory=dict)
    keep: Costs | None = None
    order: Callable[[Rows], FloatArray] | None = None
    reverse: bool = False
    most: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SumCheck:
    """Comparison of the sum of the lines with the total.

    Attributes
    ----------
    counted : [columns] sum of the lines
    total : [columns] sum of all call paths, or value of the start node
    holds : True if both are equal within `TOLERANCE`
    """

    counted: FloatArray
    total: FloatArray
    holds: bool


@dataclass(frozen=True, eq=False)
class Outline:
    """The lines of a view, each after its parent line.

    Attributes
    ----------
    view : the view
    nodes : [lines] node of each line, or `SHARED`
    depth : [lines] indentation level
    is_closed : [lines] True if the node has children, and none of them has a line
    rests : nodes of the shared lines, by line number
    start : first node; `ROOT` = all roots
    """

    view: View
    nodes: Rows
    depth: Rows
    is_closed: BoolArray
    rests: Mapping[int, Rows]
    start: int = ROOT

    def __len__(self) -> int:
        return len(self.nodes)

    def line(self, place: int) -> OutlineLine:
        """Return the line at a position."""
        rest = self.rests.get(place)
        nodes = self.nodes[place : place + 1] if rest is None else rest
        return OutlineLine(
            nodes, int(self.depth[place]), rest is not None, bool(self.is_closed[place])
        )

    @cached_property
    def lines(self) -> tuple[OutlineLine, ...]:
        """All lines, in order."""
        return tuple(self.line(place) for place in range(len(self)))

    @cached_property
    def is_open(self) -> BoolArray:
        """True for lines with child lines, [lines]."""
        return np.append(self.depth[1:] > self.depth[:-1], False)[: len(self)]

    def above(self, place: int) -> int:
        """Return the position of the parent line, or -1."""
        before = np.flatnonzero(self.depth[:place] < self.depth[place])
        return int(before[-1]) if len(before) else -1

    def values(self, costs: Costs) -> tuple[FloatArray, FloatArray]:
        """Return exclusive and inclusive values, each [lines, columns]."""
        return self.values_of(np.arange(len(self)), costs)

    def values_of(self, places: Rows, costs: Costs) -> tuple[FloatArray, FloatArray]:
        """Return exclusive and inclusive values of some lines, each [places, columns]."""
        own = np.empty((len(places), costs.exclusive.shape[1]))
        whole = np.empty_like(own)
        single = self.nodes[places] != SHARED
        own[single], whole[single] = self.view.values(self.nodes[places[single]], costs)
        for k in np.flatnonzero(~single).tolist():
            own[k], whole[k] = self.view.together(self.rests[int(places[k])], costs)
        return own, whole

    def largest_of(self, places: Rows, codes: Codes) -> NDArray[np.integer]:
        """Return the largest code of the lines at `places`, [places]."""
        found = np.empty(len(places), codes.numbers.dtype)
        single = self.nodes[places] != SHARED
        found[single] = self.view.largest(self.nodes[places[single]], codes)
        for k in np.flatnonzero(~single).tolist():
            found[k] = self.view.largest(self.rests[int(places[k])], codes).max()
        return found

    def single_rows(self, places: Rows | None = None) -> list[int | None]:
        """Return the call path of each line, or of those at `places`; None = several."""
        nodes = self.nodes if places is None else self.nodes[places]
        rows = [[] if n == SHARED else self.view.rows(n)[:2].tolist() for n in nodes.tolist()]
        return [each[0] if len(each) == 1 else None for each in rows]

    @property
    def hidden(self) -> IntArray:
        """Call paths without a line of their own, ascending.

        In flat and bottom-up views, the line of the top-level node suffices: the lower levels
        divide the same cost further.
        """
        tree, hidden = self.view.tree, np.zeros(len(self.view.tree) + 1, np.intp)
        if self.view.kind is ViewKind.TOP_DOWN:
            closed = self.nodes[self.is_closed]
            shared = np.concatenate([np.empty(0, np.intp), *self.rests.values()])
            np.add.at(hidden, np.concatenate([closed + 1, shared]), 1)
            np.add.at(hidden, tree.end[np.concatenate([closed, shared])], -1)
            return np.flatnonzero(np.cumsum(hidden))
        for place, nodes in self.rests.items():
            if self.depth[place] == 0:
                for node in nodes.tolist():
                    hidden[self.view.rows(node)] = 1
        return np.flatnonzero(hidden)

    def check(self, costs: Costs) -> SumCheck:
        """Return the sum of the lines and the total to compare it with."""
        top_down = self.view.kind is ViewKind.TOP_DOWN
        own, whole = (np.where(np.isnan(v), 0.0, v) for v in self.values(costs))
        if top_down:
            is_last = self.is_closed | (self.nodes == SHARED)
            parts = np.where(is_last[:, None], whole, own)
        else:
            parts = own[self.depth == 0]
        counted, total = parts.sum(axis=0), costs.total
        if self.start != ROOT:
            of_start = self.view.values(np.array([self.start]), costs)
            total = np.nan_to_num(of_start[1 if top_down else 0][0], posinf=np.inf, neginf=-np.inf)
        size = np.nansum(np.abs(costs.exclusive), axis=0)
        with np.errstate(invalid="ignore"):  # both may be infinite
            equal = (np.abs(counted - total) <= TOLERANCE * size) | (counted == total)
        return SumCheck(counted, total, bool(equal.all()))


def outline(view: View, costs: Costs, selection: Selection) -> Outline:
    """Return the lines of a view.

    Parameters
    ----------
    view : the view; nodes are created as needed
    costs : values that decide on size and order
    selection : rules that decide which nodes get their own line
    """
    writer = _Writer(view, costs.only(selection.column), selection)
    waiting = [writer.top()]
    while waiting:
        deeper = writer.advance(waiting[-1])
        if deeper is None:
            waiting.pop()
        else:
            waiting.append(deeper)
    return writer.written()


@dataclass(slots=True)
class _Siblings:
    """The children of one node, in order, and the progress of writing them.

    Attributes
    ----------
    nodes : siblings with their own line
    is_closed : [nodes] True if the node has children, and none of them has a line
    opened : positions of open nodes, with True if their whole subtree is open
    rest : siblings that share a line
    depth : indentation level
    at : position of the next sibling to write
    """

    nodes: Rows
    is_closed: BoolArray
    opened: Iterator[tuple[int, bool]]
    rest: Rows
    depth: int
    at: int = 0


class _Writer:
    """Writer of lines, one group of siblings after the other."""

    def __init__(self, view: View, costs: Costs, selection: Selection) -> None:
        self._view, self._costs, self._selection = view, costs, selection
        told = sorted(selection.openings.items())
        # The sentinel gives every search a result.
        self._told = np.array([*(node for node, _ in told), _NO_NODE])
        self._openings = np.array([*(opening for _, opening in told), Opening.CLOSED])
        self._nodes: list[Rows] = []
        self._depth: list[int] = []
        self._sizes: list[int] = []
        self._is_closed: list[BoolArray] = []
        self._rests: dict[int, Rows] = {}
        self._count = 0

    def top(self) -> _Siblings:
        """Return the roots, or the start node."""
        start = self._selection.start
        if start == ROOT:
            return self._siblings(self._view.roots, 0, inherited=False)
        return self._run(np.array([start]), _NOTHING, 0, inherited=False)

    def written(self) -> Outline:
        """Return the finished outline."""
        return Outline(
            self._view,
            np.concatenate([_NOTHING, *self._nodes]),
            np.repeat(np.array(self._depth, np.intp), self._sizes),
            np.concatenate([_NOTHING.astype(bool), *self._is_closed]),
            self._rests,
            self._selection.start,
        )

    def advance(self, siblings: _Siblings) -> _Siblings | None:
        """Write lines up to the next open node and return its children, or None after the last."""
        most = self._selection.most
        for place, all_below in siblings.opened:
            if most is not None and self._count + place - siblings.at >= most:
                siblings.is_closed[place] = True
                continue
            node = int(siblings.nodes[place])
            self._write(siblings, place + 1)
            return self._siblings(self._view.children(node), siblings.depth + 1, all_below)
        self._write(siblings, len(siblings.nodes))
        if len(siblings.rest):
            self._rests[self._count] = siblings.rest
            self._add(np.array([SHARED]), siblings.depth, np.zeros(1, bool))
        return None

    def _write(self, siblings: _Siblings, end: int) -> None:
        part = slice(siblings.at, end)
        if siblings.at < end:
            self._add(siblings.nodes[part], siblings.depth, siblings.is_closed[part])
        siblings.at = end

    def _add(self, nodes: Rows, depth: int, is_closed: BoolArray) -> None:
        self._nodes.append(nodes)
        self._depth.append(depth)
        self._sizes.append(len(nodes))
        self._is_closed.append(is_closed)
        self._count += len(nodes)

    def _siblings(self, nodes: Rows, depth: int, inherited: bool) -> _Siblings:
        """Return selected siblings in order, the costliest first."""
        if not len(nodes):
            return self._run(nodes, nodes, depth, inherited)
        selection, view = self._selection, self._view
        own, whole = (values[:, 0] for values in view.values(nodes, self._costs))
        decides = whole if selection.inclusive else own
        if selection.keep is None and selection.least <= 0 and selection.top is None:
            return self._run(self._ordered(nodes, decides), _NOTHING, depth, inherited)
        size = np.abs(decides)
        if view.kind is ViewKind.TOP_DOWN:
            # Values of callees may have the opposite sign.
            size = np.fmax(np.abs(own), np.abs(whole))
        is_kept = np.ones(len(nodes), bool)
        if selection.keep is not None:
            is_kept = view.values(nodes, selection.keep)[0][:, 0] > 0
        is_shown = is_kept & (size >= selection.least) if selection.least > 0 else is_kept.copy()
        shown = is_shown.nonzero()[0]
        if selection.top is not None and selection.top < len(shown):
            largest = np.argsort(-size[shown], kind="stable")
            shown = np.sort(shown[largest[: selection.top]])
            is_shown[:] = False
            is_shown[shown] = True
        # A single remaining sibling needs one line in any case.
        alone = (~is_shown).nonzero()[0]
        alone = alone[is_kept[alone]] if len(alone) == 1 else alone[:0]
        is_shown[alone] = True
        shown, rest = np.concatenate([shown, alone]), nodes[~is_shown]
        ordered = self._ordered(nodes[shown], decides[shown])
        return self._run(ordered, rest, depth, inherited, nodes[alone])

    def _ordered(self, nodes: Rows, decides: FloatArray) -> Rows:
        """Return siblings in order, from the values that decide."""
        if len(nodes) < 2:
            return nodes
        worth = np.where(np.isnan(decides), -np.inf, decides)
        return nodes[_order(worth, nodes, self._selection)]

    def _run(
        self, nodes: Rows, rest: Rows, depth: int, inherited: bool, alone: Rows = _NOTHING
    ) -> _Siblings:
        """Return siblings and their states; `alone` is closed unless `openings` opens it."""
        levels = self._selection.depth
        unless_told = _OPEN if levels is None or depth + 1 < levels else _CLOSED
        place = self._told.searchsorted(nodes)
        told = self._told[place] == nodes
        opening = np.where(told, self._openings[place], _ALL if inherited else unless_told)
        if len(alone):
            opening[np.isin(nodes, alone) & ~told] = _CLOSED
        opens_anything = self._view.has_children(nodes)
        opening[~opens_anything] = _CLOSED
        opens = opening.nonzero()[0]
        is_closed = opens_anything & (opening == _CLOSED)
        opened = zip(opens.tolist(), (opening[opens] == _ALL).tolist(), strict=True)
        return _Siblings(nodes, is_closed, iter(opened), rest, depth)


def _order(worth: FloatArray, nodes: Rows, selection: Selection) -> Rows:
    """Return the order of siblings: by the sort keys of the selection, then by cost."""
    keys = [worth]
    if selection.order is not None:
        told = selection.order(nodes)
        keys.append(np.where(np.isnan(told), -np.inf, told) if not selection.reverse else told)
    if selection.reverse:
        # Nodes without a value come last in both directions.
        keys[-1] = -np.where(np.isneginf(keys[-1]) | np.isnan(keys[-1]), np.inf, keys[-1])
    order: Rows = np.lexsort([-key for key in keys])
    return order


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
