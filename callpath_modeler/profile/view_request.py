r"""View requests: the view, its depth, filter and order, as text.

The command line and the browser share these texts. A node is identified by its path: the names from
the top of the view, joined by ``/``; a slash in a name is written ``\/``. A bottom-up path begins
with the function, and its callers follow. A short name, as in patterns, suffices if no sibling has
the same one. In a top-down view, the id of a call path, ``@3f9a2c1``, also identifies a node.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import UsageError, did_you_mean
from callpath_modeler.profile.calltree import ROOT, escape
from callpath_modeler.profile.groups import Costs, Grouping, Rows
from callpath_modeler.profile.outline import Opening, Selection
from callpath_modeler.profile.pattern import find_one, matched, short_name
from callpath_modeler.profile.schema import PROGRAM
from callpath_modeler.profile.tree_views import View, ViewKind

CALLERS = 3
"""Default number of levels of a bottom-up view: a function and two levels of callers."""

ALL_BELOW = "/**"
"""Suffix of the path of a node whose whole subtree is open."""


class Sort(StrEnum):
    """Sort key of siblings."""

    VALUE = "value"  # predicted value at the target
    MEASURED = "measured"  # value at the largest scale
    HIGH = "high"  # upper end of the band: the worst case
    EXCESS = "excess"
    GROWTH = "growth"
    TRUST = "trust"
    NAME = "name"
    # Of two experiments:
    DIFFERENCE = "difference"  # new minus base
    RATIO = "ratio"  # new over base
    NEW = "new"
    BASE = "base"


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """A view, and the selection of its nodes.

    Attributes
    ----------
    kind : top-down, bottom-up or flat
    by : levels of a flat view
    inclusive : True: siblings are ordered by inclusive values; None = only in a top-down view
    depth : number of levels; None = all, or `CALLERS` in a bottom-up view
    top : maximum number of siblings; a single remaining one is added; None = all
    least : share of the total that a node needs for its own line; a single smaller sibling gets a
        line, too
    zoom : path of the first node; "" = the whole program
    keep : pattern of the call paths to show; "" = all
    opened : paths of open nodes; their parents are open, too. With ``/**`` after a path, the whole
        subtree is open. The default of `depth` is then 1
    closed : paths of closed nodes
    sort : sort key of siblings
    reverse : True: the smallest comes first
    most : number of lines from which on no further node is opened; None = no limit
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
        """True if siblings are ordered by inclusive values."""
        return self.kind is ViewKind.TOP_DOWN if self.inclusive is None else self.inclusive

    @property
    def hot_levels(self) -> int | None:
        """Maximum length of the hot path; None = no limit."""
        return CALLERS if self.kind is ViewKind.BOTTOM_UP else None

    def start(self, view: View) -> int:
        """Return the first node, or `ROOT`.

        Raises
        ------
        UsageError
            If no node has the path.
        """
        return find_node(view, self.zoom) if self.zoom else ROOT

    def selection(
        self,
        view: View,
        column: int,
        whole: float = 1.0,
        order: Callable[[Rows], FloatArray] | None = None,
    ) -> Selection:
        """Return the rules that decide which nodes get their own line.

        Parameters
        ----------
        view : the view
        column : column of values that decides on size and order
        whole : value that is 100 % for `least`
        order : function from nodes [nodes] to sort keys [nodes]; None = order by value

        Raises
        ------
        UsageError
            If no node has a given path, or if the pattern matches no call path.
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
    """Return one column, above zero for the call paths that a pattern keeps in a view.

    These are the matching call paths; in a top-down view, their callers and subtrees, too.

    Raises
    ------
    UsageError
        If no call path matches.
    """
    tree = view.tree
    mask = matched(tree, pattern)
    if view.kind is ViewKind.TOP_DOWN:
        count = np.concatenate([[0], np.cumsum(mask)])
        leads_to_any = count[tree.end] > count[:-1]
        # In preorder, a row is below an earlier match if the match's subtree has not ended yet.
        reached = np.maximum.accumulate(np.where(mask, tree.end, 0))
        mask = leads_to_any | (np.arange(len(tree)) < reached)
    column = mask.astype(np.float64)[:, None]
    return Costs(column, column)


def node_path(view: View, node: int, *, short: bool = False) -> str:
    """Return the path of a node, as for `find_node`.

    Parameters
    ----------
    view : the view
    node : the node
    short : use short names where they are unique among siblings
    """
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
        names.pop()  # paths do not contain an artificial program root
    return "/".join(reversed(names))


def _spellings(name: str) -> tuple[str, str]:
    return name, short_name(name)


def find_node(view: View, path: str) -> int:
    """Return the node with the given path.

    Raises
    ------
    UsageError
        If no node has the path.
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
    """Return the nodes where a path begins; an artificial program root is not part of a path."""
    roots = view.roots
    programs = [node for node in roots.tolist() if view.name(node) == PROGRAM]
    if view.kind is not ViewKind.TOP_DOWN or name == PROGRAM or not programs:
        return roots
    return np.concatenate([roots, *(view.children(node) for node in programs)])


def _not_found(view: View, path: str, name: str, nodes: Rows) -> UsageError:
    known = [short_name(view.name(node)) for node in nodes.tolist()]
    hint = did_you_mean(name, known) or "the column 'path' of `-f csv` lists all paths"
    return UsageError(f"{path!r}: the {view.kind} view has no {name!r} at this position", hint=hint)
