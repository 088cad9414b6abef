"""A view written out: which nodes get a line, which share one, and whether anything is lost.

Siblings that are small, too many or not asked for share one line, "... 14 more", unless that
would be the line of a single one that was asked for. So whatever is left out is still there: the
lines add up to the whole program, or to the node that the outline starts with, and `Outline.check`
tells whether they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.groups import Codes, Costs, Rows, Values
from callpath_modeler.profile.views import View, ViewKind

TOLERANCE = 1e-9
"""Largest error of a sum, relative to the sum of sizes: what rounding may do."""

SHARED = -2
"""Stands in place of a node where siblings share a line."""

_NOTHING: Rows = np.empty(0, np.intp)
_NO_NODE = np.iinfo(np.intp).max


@dataclass(frozen=True, slots=True, eq=False)
class OutlineLine:
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


class Opening(IntEnum):
    """What of a node is open."""

    CLOSED = 0
    OPEN = 1  # what is directly below it has lines
    ALL = 2  # so has everything further down


_CLOSED, _OPEN, _ALL = map(int, Opening)  # names of members are looked up slowly


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
    start : the node to begin with; `ROOT` = all that stand at the top
    openings : nodes that are open, or closed, whatever their level
    keep : one column, above zero for the call paths to show; None = all. Nodes without any have no
        line of their own
    order : what siblings are ordered by instead, [nodes] -> [nodes]; the largest come first
    reverse : the smallest come first
    most : from so many lines on nothing is opened
    """

    column: int = 0
    inclusive: bool = True
    least: float = 0.0
    top: int | None = None
    depth: int | None = None
    start: int = ROOT
    openings: Mapping[int, Opening] = field(default_factory=dict)
    keep: Costs | None = None
    order: Callable[[Rows], Values] | None = None
    reverse: bool = False
    most: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SumCheck:
    """Whether the lines of a view add up.

    Attributes
    ----------
    counted : [columns] what the lines add up to
    total : [columns] what the call paths add up to, or what the outline starts with
    holds : whether they are equal but for rounding
    """

    counted: Values
    total: Values
    holds: bool


@dataclass(frozen=True, eq=False)
class Outline:
    """The lines of a view, each below the one that it belongs to.

    Attributes
    ----------
    view : what is written out
    nodes : [lines] the node of each line, or `SHARED`
    depth : [lines] how many lines it is indented under
    is_closed : [lines] whether there are nodes below that have no line
    rests : the nodes of the lines that are shared, by line
    start : the node it begins with; `ROOT` = all that stand at the top
    """

    view: View
    nodes: Rows
    depth: Rows
    is_closed: NDArray[np.bool_]
    rests: Mapping[int, Rows]
    start: int = ROOT

    def __len__(self) -> int:
        return len(self.nodes)

    def line(self, place: int) -> OutlineLine:
        """Return one of the lines."""
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
    def is_open(self) -> NDArray[np.bool_]:
        """Tell which lines have lines below that belong to them, [lines]."""
        return np.append(self.depth[1:] > self.depth[:-1], False)[: len(self)]

    def above(self, place: int) -> int:
        """Return the line that a line is below, or -1."""
        before = np.flatnonzero(self.depth[:place] < self.depth[place])
        return int(before[-1]) if len(before) else -1

    def values(self, costs: Costs) -> tuple[Values, Values]:
        """Return exclusive and inclusive values, each [lines, columns]."""
        return self.values_of(np.arange(len(self)), costs)

    def values_of(self, places: Rows, costs: Costs) -> tuple[Values, Values]:
        """Return exclusive and inclusive values of some lines, each [places, columns]."""
        own = np.empty((len(places), costs.exclusive.shape[1]))
        whole = np.empty_like(own)
        single = self.nodes[places] != SHARED
        own[single], whole[single] = self.view.values(self.nodes[places[single]], costs)
        for k in np.flatnonzero(~single).tolist():
            own[k], whole[k] = self.view.together(self.rests[int(places[k])], costs)
        return own, whole

    def largest_of(self, places: Rows, codes: Codes) -> NDArray[np.integer]:
        """Return the largest code of some lines, [places]."""
        found = np.empty(len(places), codes.numbers.dtype)
        single = self.nodes[places] != SHARED
        found[single] = self.view.largest(self.nodes[places[single]], codes)
        for k in np.flatnonzero(~single).tolist():
            found[k] = self.view.largest(self.rests[int(places[k])], codes).max()
        return found

    @property
    def hidden(self) -> NDArray[np.intp]:
        """The call paths that have no line of their own, nor a function, file or module of theirs.

        Of bottom-up views only the top level counts: what is below apportions the same cost.
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
        """Add up what the lines stand for."""
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
    """Write out a view.

    Parameters
    ----------
    view : opened as far as the selection needs
    costs : the values that decide
    selection : what gets a line of its own
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
    """The nodes below one node, in order, and how far they are written.

    Attributes
    ----------
    nodes : those that have lines of their own
    is_closed : whether there are nodes below that have no line, [nodes]
    opened : places of those that are open, and whether all below them is
    rest : those that share a line
    depth : how many lines they are indented under
    at : the next to be written
    """

    nodes: Rows
    is_closed: NDArray[np.bool_]
    opened: Iterator[tuple[int, bool]]
    rest: Rows
    depth: int
    at: int = 0


class _Writer:
    """Writes lines, a run of siblings at a time."""

    def __init__(self, view: View, costs: Costs, selection: Selection) -> None:
        self._view, self._costs, self._selection = view, costs, selection
        told = sorted(selection.openings.items())
        # A last one that no node is, so that there is one behind every node.
        self._told = np.array([*(node for node, _ in told), _NO_NODE])
        self._openings = np.array([*(opening for _, opening in told), Opening.CLOSED])
        self._nodes: list[Rows] = []
        self._depth: list[Rows] = []
        self._is_closed: list[NDArray[np.bool_]] = []
        self._rests: dict[int, Rows] = {}
        self._count = 0

    def top(self) -> _Siblings:
        """Return what stands at the top."""
        start = self._selection.start
        if start == ROOT:
            return self._siblings(self._view.roots, 0, inherited=False)
        return self._run(np.array([start]), _NOTHING, 0, inherited=False)

    def written(self) -> Outline:
        """Return what was written."""
        return Outline(
            self._view,
            np.concatenate([_NOTHING, *self._nodes]),
            np.concatenate([_NOTHING, *self._depth]),
            np.concatenate([_NOTHING.astype(bool), *self._is_closed]),
            self._rests,
            self._selection.start,
        )

    def advance(self, siblings: _Siblings) -> _Siblings | None:
        """Write up to the next node that is open, and return what is below it; None = all."""
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
        self._add(siblings.nodes[part], siblings.depth, siblings.is_closed[part])
        siblings.at = end

    def _add(self, nodes: Rows, depth: int, is_closed: NDArray[np.bool_]) -> None:
        self._nodes.append(nodes)
        self._depth.append(np.full(len(nodes), depth))
        self._is_closed.append(is_closed)
        self._count += len(nodes)

    def _siblings(self, nodes: Rows, depth: int, inherited: bool) -> _Siblings:
        """Choose and order siblings, the costliest first."""
        if not len(nodes):
            return self._run(nodes, nodes, depth, inherited)
        selection, view = self._selection, self._view
        own, whole = (values[:, 0] for values in view.values(nodes, self._costs))
        decides = whole if selection.inclusive else own
        size = np.abs(decides)
        if view.kind is ViewKind.TOP_DOWN:
            size = np.fmax(np.abs(own), np.abs(whole))  # callees may win back what it loses itself
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
        # A single one takes no more room with its name than without.
        alone = (~is_shown).nonzero()[0]
        alone = alone[is_kept[alone]] if len(alone) == 1 else alone[:0]
        is_shown[alone] = True
        shown, rest = np.concatenate([shown, alone]), nodes[~is_shown]
        if len(shown) > 1:
            worth = np.where(np.isnan(decides), -np.inf, decides)
            shown = shown[_order(worth[shown], nodes[shown], selection)]
        return self._run(nodes[shown], rest, depth, inherited, nodes[alone])

    def _run(
        self, nodes: Rows, rest: Rows, depth: int, inherited: bool, alone: Rows = _NOTHING
    ) -> _Siblings:
        """Tell which siblings are open; `alone` is closed unless told otherwise."""
        levels = self._selection.depth
        unless_told = _OPEN if levels is None or depth + 1 < levels else _CLOSED
        place = self._told.searchsorted(nodes)
        told = self._told[place] == nodes
        opening = np.where(told, self._openings[place], _ALL if inherited else unless_told)
        opening[np.isin(nodes, alone) & ~told] = _CLOSED
        opens_anything = self._view.has_children(nodes)
        is_closed = opens_anything & (opening == _CLOSED)
        opens = (opens_anything & (opening != _CLOSED)).nonzero()[0]
        opened = zip(opens.tolist(), (opening[opens] == _ALL).tolist(), strict=True)
        return _Siblings(nodes, is_closed, iter(opened), rest, depth)


def _order(worth: Values, nodes: Rows, selection: Selection) -> Rows:
    """Return in which order siblings come: by what is asked for, then by cost."""
    keys = [worth]
    if selection.order is not None:
        told = selection.order(nodes)
        keys.append(np.where(np.isnan(told), -np.inf, told) if not selection.reverse else told)
    if selection.reverse:
        # What has no value comes last either way.
        keys[-1] = -np.where(np.isneginf(keys[-1]) | np.isnan(keys[-1]), np.inf, keys[-1])
    order: Rows = np.lexsort([-key for key in keys])
    return order
