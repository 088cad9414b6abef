r"""Which view, and how much of it, in words: what the command line says and a browser shows.

Nodes go by their path: the names from the top of the view, joined by ``/``, a slash in a name
written ``\/``. Bottom-up that is the function first, then who calls it. Names may be short, as in
patterns, where no sibling has the same; top-down, ``@3f9a2c1`` is a call path, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from callpath_modeler.errors import UsageError, did_you_mean
from callpath_modeler.profile.calltree import ROOT, escape
from callpath_modeler.profile.groups import Costs, Grouping, Rows, Values
from callpath_modeler.profile.outline import Opening, Selection
from callpath_modeler.profile.pattern import find_one, match, short_name, unmatched
from callpath_modeler.profile.schema import PROGRAM
from callpath_modeler.profile.views import View, ViewKind

CALLERS = 3
"""Levels of a bottom-up view that are written out unless told: a function, and two of callers."""

ALL_BELOW = "/**"
"""Behind the path of a node that is open with everything below it."""


class Sort(StrEnum):
    """What siblings are ordered by."""

    VALUE = "value"  # predicted value at the target
    MEASURED = "measured"  # value at the largest scale
    HIGH = "high"  # upper end of the band: the worst case
    EXCESS = "excess"
    GROWTH = "growth"
    TRUST = "trust"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """Which view, and how much of it.

    Attributes
    ----------
    kind : which of the three views
    by : the levels of a flat view
    inclusive : whether siblings are ordered by inclusive values; None = top-down only
    depth : so many levels; None = all, but of the callers, who are many, three
    top : so many siblings at most, and one more where it is the last; None = all
    least : a node needs this share of the whole for a line of its own, unless it is the only one
        of its siblings that has not
    zoom : path of the node to begin with; "" = the whole program
    keep : pattern of the call paths to show; "" = all
    opened : paths of nodes that are open, and so what is above them; ``/**`` behind a path: with
        everything below. Then one level is open beside them unless `depth` says more
    closed : paths of nodes that are not
    sort, reverse : what siblings are ordered by, and whether the smallest come first
    most : from so many lines on nothing is opened; None = no limit
    """

    kind: ViewKind = ViewKind.TOP_DOWN
    by: tuple[Grouping, ...] = (Grouping.REGION,)
    inclusive: bool | None = None
    depth: int | None = None
    top: int | None = None
    least: float = 0.0
    zoom: str = ""
    keep: str = ""
    opened: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    sort: Sort = Sort.VALUE
    reverse: bool = False
    most: int | None = None

    @property
    def leads_inclusive(self) -> bool:
        """Whether siblings are ordered by inclusive values."""
        return self.kind is ViewKind.TOP_DOWN if self.inclusive is None else self.inclusive

    @property
    def hot_levels(self) -> int | None:
        """How far the hot path is followed: to its end, but only so many callers up."""
        return CALLERS if self.kind is ViewKind.BOTTOM_UP else None

    def start(self, view: View) -> int:
        """Return the node to begin with, or `ROOT`.

        Raises
        ------
        UsageError
            If there is none of that path.
        """
        return find_node(view, self.zoom) if self.zoom else ROOT

    def selection(
        self,
        view: View,
        column: int,
        whole: float = 1.0,
        order: Callable[[Rows], Values] | None = None,
    ) -> Selection:
        """Return what gets a line, where `column` decides and 100 % of it is `whole`.

        Raises
        ------
        UsageError
            If a path or pattern names nothing.
        """
        depth = self.depth
        if depth is None and self.opened:
            depth = 1
        elif depth is None and self.kind is ViewKind.BOTTOM_UP:
            depth = CALLERS
        return Selection(
            column=column,
            inclusive=self.leads_inclusive,
            least=self.least * whole,
            top=self.top,
            depth=depth,
            start=self.start(view),
            openings=self._openings(view),
            keep=columns_kept_by(view, self.keep) if self.keep else None,
            order=order,
            reverse=self.reverse,
            most=self.most,
        )

    def _openings(self, view: View) -> dict[int, Opening]:
        found: dict[int, Opening] = {}
        for path in self.opened:
            node = find_node(view, path.removesuffix(ALL_BELOW))
            found[node] = Opening.ALL if path.endswith(ALL_BELOW) else found.get(node, Opening.OPEN)
            node = view.parent(node)
            while node != ROOT:
                found.setdefault(node, Opening.OPEN)
                node = view.parent(node)
        return found | {find_node(view, path): Opening.CLOSED for path in self.closed}


def columns_kept_by(view: View, pattern: str) -> Costs:
    """Return what of a view a pattern of call paths keeps: one column, above zero for those.

    Top-down these are the call paths that match, who calls them, and what they call; else those
    that match.

    Raises
    ------
    UsageError
        If none matches.
    """
    tree = view.tree
    mask = match(tree, pattern)
    if not mask.any():
        raise unmatched(tree, pattern)
    if view.kind is ViewKind.TOP_DOWN:
        count = np.concatenate([[0], np.cumsum(mask)])
        leads_to_any = count[tree.end] > count[:-1]
        # In preorder, a row is below an earlier match if that one's subtree has not ended yet.
        reached = np.maximum.accumulate(np.where(mask, tree.end, 0))
        mask = leads_to_any | (np.arange(len(tree)) < reached)
    column = mask.astype(np.float64)[:, None]
    return Costs(column, column)


def node_path(view: View, node: int, *, short: bool = False) -> str:
    """Return the path by which `find_node` finds a node; `short`: in short names where these do."""
    names: list[str] = []
    while node != ROOT:
        name, above = view.name(node), view.parent(node)
        brief = short_name(name) if short else name
        if brief != name:
            siblings = view.roots if above == ROOT else view.children(above)
            alike = [n for n in siblings.tolist() if brief in _spellings(view.name(n))]
            name = brief if len(alike) == 1 else name
        names.append(escape(name))
        node = above
    if view.kind is ViewKind.TOP_DOWN and len(names) > 1 and names[-1] == PROGRAM:
        names.pop()  # an artificial program root is no part of the paths that people write
    return "/".join(reversed(names))


def _spellings(name: str) -> tuple[str, str]:
    return name, short_name(name)


def find_node(view: View, path: str) -> int:
    """Return the node of a view that a path names.

    Raises
    ------
    UsageError
        If there is none.
    """
    if path.startswith("@") and view.kind is ViewKind.TOP_DOWN:
        return find_one(view.tree, path)
    names = [part.replace("\\/", "/") for part in re.split(r"(?<!\\)/", path.strip("/"))]
    nodes, node = _at_the_top(view, names[0]), ROOT
    for name in names:
        found = [n for n in nodes.tolist() if name in _spellings(view.name(n))]
        found = [n for n in found if view.name(n) == name] or found
        if not found:
            raise _not_found(view, path, name, nodes)
        node = found[0]
        nodes = view.children(node)
    return node


def _at_the_top(view: View, name: str) -> Rows:
    """Return where a path begins: an artificial program root is no part of it."""
    roots = view.roots
    programs = [node for node in roots.tolist() if view.name(node) == PROGRAM]
    if view.kind is not ViewKind.TOP_DOWN or name == PROGRAM or not programs:
        return roots
    return np.concatenate([roots, *(view.children(node) for node in programs)])


def _not_found(view: View, path: str, name: str, nodes: Rows) -> UsageError:
    known = [short_name(view.name(node)) for node in nodes.tolist()]
    hint = did_you_mean(name, known) or "the column 'path' of -f csv has all paths"
    return UsageError(f"{path!r}: no {name!r} there in the {view.kind} view", hint=hint)
