"""The three views of a call tree: top-down, bottom-up and flat.

A view is a forest of numbered nodes. A node represents a set of call paths:

- top-down: one call path; its children are its callees
- bottom-up: all call paths that end in one function; its children are the callers of the function
- flat: all call paths of a module, file or function, for all callers

The value of a node is the value of this group of call paths (`profile.groups`). For recursive
functions, inclusive values contain only the outermost calls.

A view contains no values. Callers pass values of any metric or scale, predictions, or excess, so
one view serves them all. Nodes are created on demand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.groups import (
    Codes,
    Costs,
    Grouping,
    Groups,
    Rows,
    functions,
    level,
    outermost,
    sums,
)
from callpath_modeler.profile.schema import PROGRAM

_KEPT = 4
"""Number of groups of siblings whose call paths are kept; there may be 10^6 of them."""


class ViewKind(StrEnum):
    """Arrangement of call paths."""

    TOP_DOWN = "top-down"
    BOTTOM_UP = "bottom-up"
    FLAT = "flat"


class View(ABC):
    """A forest of nodes, numbered in the order of their creation."""

    kind: ViewKind

    def __init__(self, tree: CallTree) -> None:
        self.tree = tree

    @property
    @abstractmethod
    def roots(self) -> Rows:
        """Nodes without a parent."""

    @abstractmethod
    def children(self, node: int) -> Rows:
        """Return the children of `node`; repeated calls return the same numbers."""

    @abstractmethod
    def has_children(self, nodes: Rows) -> BoolArray:
        """Return True for nodes with children, [nodes], without creating the children."""

    @abstractmethod
    def parent(self, node: int) -> int:
        """Return the parent, or `ROOT`."""

    @abstractmethod
    def name(self, node: int) -> str:
        """Return the name of the function, file or module."""

    @abstractmethod
    def rows(self, node: int) -> Rows:
        """Return the call paths of `node`, ascending."""

    def values(self, nodes: Rows, costs: Costs) -> tuple[FloatArray, FloatArray]:
        """Return exclusive and inclusive values, each [nodes, columns].

        NaN = none of the node's call paths occurred.
        """
        own, whole = self._sums(nodes, costs.addends)
        return costs.of_sums(own), costs.of_sums(whole)

    @abstractmethod
    def _sums(self, nodes: Rows, costs: Costs) -> tuple[FloatArray, FloatArray]:
        """Return exclusive and inclusive sums, each [nodes, columns]."""

    def names(self, node: int) -> tuple[str, ...]:
        """Return the names from the top of the view to `node`."""
        names: list[str] = []
        while node != ROOT:
            names.append(self.name(node))
            node = self.parent(node)
        return tuple(reversed(names))

    def alphabetical(self, nodes: Rows) -> FloatArray:
        """Return sort keys of nodes by name, [nodes]; the first name has the largest key."""
        place = {name: k for k, name in enumerate(sorted(map(self.name, nodes.tolist())))}
        return np.array([-place[self.name(node)] for node in nodes.tolist()], float)

    @abstractmethod
    def largest(self, nodes: Rows, codes: Codes) -> NDArray[np.integer]:
        """Return the largest code of each node's call paths, [nodes]."""

    def together(self, nodes: Rows, costs: Costs) -> tuple[FloatArray, FloatArray]:
        """Return the values of several siblings as a single group, each [columns].

        The inclusive values of siblings overlap if one of them calls another, so their sum is too
        large.
        """
        own, whole = self._sums_together(nodes, costs.addends)
        return costs.of_sums(own), costs.of_sums(whole)

    @abstractmethod
    def _sums_together(self, nodes: Rows, costs: Costs) -> tuple[FloatArray, FloatArray]:
        """Return the sums of several siblings as a single group, each [columns]."""


class TopDown(View):
    """The call tree itself: a node is a call path, and its number is the row."""

    kind = ViewKind.TOP_DOWN

    @property
    def roots(self) -> Rows:
        """Call paths without a caller."""
        return self.tree.roots

    def children(self, node: int) -> Rows:
        """Return the callees of `node`."""
        return self.tree.callees(node)

    def has_children(self, nodes: Rows) -> BoolArray:
        """Return True for call paths with callees, [nodes]."""
        return self.tree.end[nodes] > nodes + 1

    def parent(self, node: int) -> int:
        """Return the caller, or `ROOT`."""
        return int(self.tree.parent[node])

    def name(self, node: int) -> str:
        """Return the region name and annotation."""
        return self.tree.name(node)

    def rows(self, node: int) -> Rows:
        """Return the call path of `node`, [1]."""
        return np.array([node])

    def _sums(self, nodes: Rows, costs: Costs) -> tuple[FloatArray, FloatArray]:
        return costs.exclusive[nodes], costs.inclusive[nodes]

    def largest(self, nodes: Rows, codes: Codes) -> NDArray[np.integer]:
        """Return the codes of the call paths, [nodes]."""
        return codes.numbers[nodes]

    def _sums_together(self, nodes: Rows, costs: Costs) -> tuple[FloatArray, FloatArray]:
        # The subtrees of siblings do not overlap.
        start = np.zeros(1, np.intp)
        return sums(costs.exclusive, nodes, start)[0], sums(costs.inclusive, nodes, start)[0]


@dataclass(frozen=True, slots=True, eq=False)
class _Family:
    """The children of one node.

    Attributes
    ----------
    parent : the parent node
    depth : number of nodes above the children
    first : number of the first child
    groups : one group per child
    """

    parent: int
    depth: int
    first: int
    groups: Groups


class _Grouped(View):
    """A view whose nodes are groups of call paths; a group is divided when its node is opened."""

    def __init__(self, tree: CallTree) -> None:
        super().__init__(tree)
        self._families: list[_Family] = []
        self._firsts: list[int] = []
        self._children: dict[int, Rows] = {}
        self._making = Lock()
        # Caches by the first node of a family, or by several siblings. An entry lives as long as
        # its costs or codes.
        self._known: WeakKeyDictionary[Costs, dict[int, tuple[FloatArray, FloatArray]]]
        self._known = WeakKeyDictionary()
        self._largest: WeakKeyDictionary[Codes, dict[int, NDArray[np.integer]]]
        self._largest = WeakKeyDictionary()
        self._known_together: WeakKeyDictionary[Costs, dict[bytes, tuple[FloatArray, FloatArray]]]
        self._known_together = WeakKeyDictionary()
        self._outer_of: dict[bytes, Rows] = {}

    @abstractmethod
    def _divide(self, node: int, depth: int) -> Groups | None:
        """Return the groups of the children of `node`, at `depth`, or of the roots for `ROOT`."""

    @abstractmethod
    def _label(self, depth: int, key: int) -> str:
        """Return the name of a group."""

    @property
    def roots(self) -> Rows:
        """Nodes without a parent."""
        return self.children(ROOT)

    def children(self, node: int) -> Rows:
        """Return the children of `node`."""
        known = self._children.get(node)
        if known is None:
            with self._making:  # a view may be prepared in one thread while another shows it
                known = self._children.get(node)
                if known is None:
                    known = self._children[node] = self._make(node)
        return known

    def _make(self, node: int) -> Rows:
        depth = 0 if node == ROOT else self._find(node)[0].depth + 1
        groups = self._divide(node, depth) if len(self.tree) else None
        if groups is None:
            return np.empty(0, np.intp)
        last = self._families[-1] if self._families else None
        first = last.first + len(last.groups) if last else 0
        self._families.append(_Family(node, depth, first, groups))
        self._firsts.append(first)
        return np.arange(first, first + len(groups))

    def _find(self, node: int) -> tuple[_Family, int]:
        family = self._families[bisect_right(self._firsts, node) - 1]
        return family, node - family.first

    def parent(self, node: int) -> int:
        """Return the parent, or `ROOT`."""
        return self._find(node)[0].parent

    def name(self, node: int) -> str:
        """Return the name of the function, file or module."""
        family, index = self._find(node)
        return self._label(family.depth, int(family.groups.key[index]))

    def rows(self, node: int) -> Rows:
        """Return the call paths of `node`, ascending."""
        family, index = self._find(node)
        return family.groups.rows[family.groups.part(index)]

    def _by_family(self, nodes: Rows) -> Iterator[tuple[_Family, Rows, Rows]]:
        """Yield each family, its members' positions in `nodes`, and their indices in the family."""
        # An open view has many families, so for few nodes the time must not depend on their number.
        if len(nodes) < len(self._firsts):
            known = (bisect_right(self._firsts, node) - 1 for node in nodes.tolist())
            family = np.fromiter(known, np.intp, len(nodes))
        else:
            family = np.searchsorted(self._firsts, nodes, side="right") - 1
        order = np.argsort(family, kind="stable")
        starts = np.flatnonzero(np.diff(family[order], prepend=-2)).tolist()
        for start, end in pairwise([*starts, len(order)]):
            here = order[start:end]
            found = self._families[family[here[0]]]
            yield found, here, nodes[here] - found.first

    def _sums(self, nodes: Rows, costs: Costs) -> tuple[FloatArray, FloatArray]:
        own = np.empty((len(nodes), costs.exclusive.shape[1]))
        whole = np.empty_like(own)
        sums = self._known.setdefault(costs, {})
        for family, here, index in self._by_family(nodes):
            if family.first not in sums:
                sums[family.first] = family.groups.values(costs)
            own[here], whole[here] = (part[index] for part in sums[family.first])
        return own, whole

    def largest(self, nodes: Rows, codes: Codes) -> NDArray[np.integer]:
        """Return the largest code of each group, [nodes]."""
        found = np.empty(len(nodes), codes.numbers.dtype)
        known = self._largest.setdefault(codes, {})
        for family, here, index in self._by_family(nodes):
            if family.first not in known:
                known[family.first] = family.groups.largest(codes.numbers)
            found[here] = known[family.first][index]
        return found

    def _sums_together(self, nodes: Rows, costs: Costs) -> tuple[FloatArray, FloatArray]:
        known = self._known_together.setdefault(costs, {})
        # The arrays differ between calls, but often contain the same nodes.
        key = blake2b(np.asarray(nodes, np.int64).tobytes(), digest_size=16).digest()
        if key not in known:
            first = np.zeros(1, np.intp)
            own = sums(self._sums(nodes, costs)[0], np.arange(len(nodes)), first)[0]
            known[key] = own, sums(costs.inclusive, self._outermost(nodes, key), first)[0]
        return known[key]

    def _outermost(self, nodes: Rows, key: bytes) -> Rows:
        """Return the call paths of several siblings that have no caller among these call paths."""
        outer = self._outer_of.get(key)
        if outer is None:
            is_there = np.zeros(len(self.tree), bool)
            for family, _, index in self._by_family(nodes):
                is_there[family.groups.members(index)] = True
            rows = np.flatnonzero(is_there).astype(np.int32)
            outer = rows[outermost(self.tree, rows)]
            # Columns of values follow each other, and so do targets.
            if len(self._outer_of) == _KEPT:
                self._outer_of.clear()
            self._outer_of[key] = outer
        return outer


class BottomUp(_Grouped):
    """Functions, and below each function its callers, up to the start of the program.

    Regions with the same name, in files with the same name, are one function, also if their lines
    differ. An artificial program root is not a caller.
    """

    kind = ViewKind.BOTTOM_UP

    def __init__(self, tree: CallTree) -> None:
        super().__init__(tree)
        self._functions, self._names = functions(tree.regions)
        self._is_called: dict[int, BoolArray] = {}

    @cached_property
    def _caller(self) -> Rows:
        """Caller of each call path; `ROOT` also for callees of an artificial program root."""
        program = [k for k, region in enumerate(self.tree.regions) if region.name == PROGRAM]
        if not program:
            return self.tree.parent
        caller = self.tree.parent.copy()
        is_program = np.isin(self.tree.region, program) & (caller == ROOT)
        caller[(caller != ROOT) & is_program[caller]] = ROOT
        return caller

    def _divide(self, node: int, depth: int) -> Groups | None:  # noqa: ARG002 - all levels alike
        if node == ROOT:
            rows: Rows = np.arange(len(self.tree), dtype=np.int32)
            at = rows
        else:
            rows, at = self.rows(node), self._callers(node)
            rows, at = rows[at != ROOT], at[at != ROOT]
        if not len(rows):
            return None
        return Groups.of(self.tree, rows, at, self._functions[self.tree.region[at]])

    def _callers(self, node: int) -> Rows:
        """Return the caller for each call path of `node`."""
        family, index = self._find(node)
        return self._caller[family.groups.at[family.groups.part(index)]]

    def _label(self, depth: int, key: int) -> str:  # noqa: ARG002 - all levels alike
        return self._names[key]

    def has_children(self, nodes: Rows) -> BoolArray:
        """Return True for nodes with callers, [nodes]."""
        found = np.empty(len(nodes), bool)
        for family, here, index in self._by_family(nodes):
            if family.first not in self._is_called:
                is_called = family.groups.largest(self._caller, at=True) != ROOT
                self._is_called[family.first] = is_called
            found[here] = self._is_called[family.first][index]
        return found


class Flat(_Grouped):
    """Modules, files and functions, each with its cost summed over all callers.

    Parameters
    ----------
    tree : the call tree
    by : levels of the view, the first at the top
    """

    kind = ViewKind.FLAT

    def __init__(self, tree: CallTree, by: Sequence[Grouping] = (Grouping.REGION,)) -> None:
        super().__init__(tree)
        self.by = tuple(by)
        self._levels = [level(tree.regions, grouping) for grouping in self.by]

    def _divide(self, node: int, depth: int) -> Groups | None:
        if depth == len(self._levels):
            return None
        rows = np.arange(len(self.tree), dtype=np.int32) if node == ROOT else self.rows(node)
        return Groups.of(self.tree, rows, rows, self._levels[depth][0][self.tree.region[rows]])

    def _label(self, depth: int, key: int) -> str:
        return self._levels[depth][1][key]

    def has_children(self, nodes: Rows) -> BoolArray:
        """Return True for nodes above the last level, [nodes]."""
        last = len(self._levels) - 1
        found = np.empty(len(nodes), bool)
        for family, here, _ in self._by_family(nodes):
            found[here] = family.depth < last
        return found


def open_view(tree: CallTree, kind: ViewKind, by: Sequence[Grouping] = (Grouping.REGION,)) -> View:
    """Return a view of `tree`; `by` contains the levels of a flat view."""
    if kind is ViewKind.FLAT:
        return Flat(tree, by)
    return TopDown(tree) if kind is ViewKind.TOP_DOWN else BottomUp(tree)
