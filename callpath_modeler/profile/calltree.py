"""The call tree: one row per call path, held in columns."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from callpath_modeler.arrays import FloatArray, Int32Array, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.schema import PROGRAM, Region

ROOT = -1
"""The parent of a call path that nothing calls."""

_PROGRAM = PROGRAM.encode()

ID_DIGITS = 7
"""Shortest call-path id; colliding ids are longer."""


@dataclass(frozen=True)
class CallTree:
    """The call paths of a program, numbered in preorder.

    A call path is named by its row. Because rows are in preorder, the call paths
    below row `i` are exactly the rows from `i + 1` up to `end[i]`, so subtrees are
    slices and nothing here recurses, however deep the program went.

    Attributes
    ----------
    parent : int32 [n], row of the caller, or `ROOT`
    end : int32 [n], row after the last call path of the subtree
    region : int32 [n], index into `regions`
    annotation : int32 [n], index into `annotations`
    regions : the distinct regions
    annotations : what is said of a call path beside its region: ``"[n=4]"`` for parameters of
        the call, ``"#2"`` for the second of two siblings of one name; the first is ``""``
    """

    parent: Int32Array
    end: Int32Array
    region: Int32Array
    annotation: Int32Array
    regions: tuple[Region, ...]
    annotations: tuple[str, ...] = ("",)

    @classmethod
    def from_parents(
        cls,
        parent: ArrayLike,
        region: ArrayLike,
        regions: Sequence[Region],
        annotation: ArrayLike | None = None,
        annotations: Sequence[str] = ("",),
    ) -> CallTree:
        """Build a tree from the caller of each call path.

        Parameters
        ----------
        parent : [n] row of the caller or `ROOT`; callers come before callees, in preorder
        region, annotation : [n] indices into `regions` and `annotations`

        Raises
        ------
        ValueError
            If the rows are not in preorder.
        """
        parents = _frozen(parent)
        notes = np.zeros(len(parents), np.int32) if annotation is None else annotation
        end = _frozen(subtree_ends(parents))
        numbers = _frozen(region), _frozen(notes)
        return cls(parents, end, *numbers, tuple(regions), tuple(annotations))

    @classmethod
    def from_columns(
        cls, columns: Int32Array, regions: Sequence[Region], annotations: Sequence[str]
    ) -> CallTree:
        """Build a tree from its `columns`, [4, n]: many times faster than from callers alone.

        Raises
        ------
        ValueError
            If the rows are not in preorder, or a column refers to what is not there.
        """
        parent, end, region, annotation = (_frozen(column) for column in columns)
        if not _is_preorder(parent, end):
            raise ValueError("call paths are not in preorder")
        for column, known in ((region, regions), (annotation, annotations)):
            if len(column) and not 0 <= column.min() <= column.max() < len(known):
                raise ValueError("numbers beyond its names")
        return cls(parent, end, region, annotation, tuple(regions), tuple(annotations))

    @property
    def columns(self) -> Int32Array:
        """Return callers, ends, regions and annotations, [4, n]."""
        return np.stack([self.parent, self.end, self.region, self.annotation])

    def __len__(self) -> int:
        return len(self.parent)

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled as columns, which are read-only again at the other end."""
        return CallTree.from_columns, (self.columns, self.regions, self.annotations)

    def is_same_as(self, other: CallTree) -> bool:
        """Tell whether another tree has the same call paths in the same rows."""
        if self is other:
            return True
        return (self.regions, self.annotations) == (other.regions, other.annotations) and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("parent", "region", "annotation")
        )

    @property
    def roots(self) -> IntArray:
        """Rows that nothing calls."""
        return np.flatnonzero(self.parent == ROOT)

    def children(self, row: int) -> Iterator[int]:
        """Yield the call paths that `row` calls directly, in order."""
        child = row + 1
        while child < self.end[row]:
            yield child
            child = int(self.end[child])

    def called_by(self, rows: ArrayLike) -> Int32Array:
        """Return the call paths that any of `rows`, of one depth, call directly, in order."""
        callers = np.atleast_1d(np.asarray(rows))
        callers = callers[self.end[callers] > callers + 1]
        if not len(callers):
            return np.empty(0, np.int32)
        level = self._levels[int(self._depth[callers[0]]) + 1]
        # Numbers of the level's own type: others would have the whole level converted.
        begin, end = (
            np.searchsorted(level, ends.astype(level.dtype))
            for ends in (callers, self.end[callers])
        )
        count = end - begin
        place = np.arange(count.sum()) + np.repeat(begin - (count.cumsum() - count), count)
        return np.asarray(level[place])

    def name(self, row: int) -> str:
        """Return the region name and annotation that `row` ends in."""
        region: Region = self.regions[self.region[row]]
        note: str = self.annotations[self.annotation[row]]
        return region.name + note

    def names(self, row: int) -> tuple[str, ...]:
        """Return the names from the root to `row`; an artificial program root is left out."""
        names: list[str] = []
        while row != ROOT:
            names.append(self.name(row))
            row = int(self.parent[row])
        if len(names) > 1 and names[-1] == PROGRAM:
            names.pop()
        return tuple(reversed(names))

    def path(self, row: int) -> str:
        r"""Return the call path as text: names joined by ``/``, a slash in a name as ``\/``."""
        return "/".join(escape(name) for name in self.names(row))

    def paths(self, rows: ArrayLike, spell: Callable[[str], str] | None = None) -> list[str]:
        """Return some call paths as text, each as `path` does; many are put together from few.

        Parameters
        ----------
        spell : writes a name in place of `escape`; it is asked once for each different name
        """
        spelled = cache(escape if spell is None else spell)
        asked = np.asarray(rows, np.intp).tolist()
        written: dict[int, str] = {}
        program = spelled(PROGRAM)
        for row in sorted(set(asked)):
            above = written.get(int(self.parent[row]), program)
            # What calls all others is no part of their paths.
            written[row] = (
                "/".join(map(spelled, self.names(row)))
                if above == program
                else f"{above}/{spelled(self.name(row))}"
            )
        return [written[row] for row in asked]

    def depth(self) -> IntArray:
        """Return how many callers lie above each call path, [n]."""
        ended = np.cumsum(np.bincount(self.end, minlength=len(self)))
        return np.arange(len(self)) - ended[: len(self)]

    def chosen(self, rows: ArrayLike) -> IntArray:
        """Return the rows of call paths that a caller chose, [rows].

        Raises
        ------
        UsageError
            If one is no row of the tree.
        """
        asked = np.atleast_1d(np.asarray(rows))
        is_whole = asked.dtype.kind in "iu" or not asked.size
        if asked.ndim > 1 or not is_whole or not ((asked >= 0) & (asked < len(self))).all():
            raise UsageError(
                f"no call path {rows!r}", hint=f"rows of the experiment, 0 to {len(self) - 1}"
            )
        return asked.astype(np.intp)

    def inclusive(self, exclusive: FloatArray) -> FloatArray:
        """Sum `exclusive` [n, ...] over each subtree.

        Sums run level by level from the leaves, not over a running total of the whole
        tree, so a small subtree keeps its digits next to a large one.
        """
        total = np.array(exclusive, order="F")
        for column in total.reshape(len(total), total[:1].size, order="F").T:
            for rows, start, callers in self._calls:
                column[callers] += np.add.reduceat(column[rows], start)
        return total

    def largest_below(self, numbers: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the largest of `numbers` [n] in each subtree."""
        largest = numbers.copy()
        for rows, start, callers in self._calls:
            below = np.maximum.reduceat(largest[rows], start)
            largest[callers] = np.maximum(largest[callers], below)
        return largest

    def levels(self) -> list[Int32Array]:
        """Return the rows of each depth, roots first."""
        return self._levels

    @cached_property
    def _levels(self) -> list[Int32Array]:
        if not len(self):
            return []
        order = np.argsort(self._depth, kind="stable").astype(np.int32)
        return np.split(order, np.cumsum(np.bincount(self._depth))[:-1])

    @cached_property
    def _depth(self) -> NDArray[np.integer]:
        """How many callers lie above each call path, [n], in the smallest integers there are."""
        depth = self.depth()
        # Small integers are sorted in linear time.
        return depth.astype(np.uint16) if depth.max() <= np.iinfo(np.uint16).max else depth

    @cached_property
    def _calls(self) -> list[tuple[Int32Array, IntArray, Int32Array]]:
        """Each level below the roots, the deepest first: rows, where callers' begin, callers.

        In preorder, what one call path calls stands together in its level.
        """
        found = []
        for rows in reversed(self.levels()[1:]):
            parent = self.parent[rows]
            start = np.flatnonzero(np.diff(parent, prepend=ROOT))
            found.append((rows, start, parent[start]))
        return found

    def ids(self) -> list[str]:
        """Return a short id per call path: the first digits of the hash of its path.

        Ids depend on the path alone, so they are the same in every experiment; only where two
        call paths share the first seven digits do both carry as many as tell them apart.
        """
        digests = self._digests()
        count = Counter(digest[:ID_DIGITS] for digest in digests)
        alike = sorted({digest for digest in digests if count[digest[:ID_DIGITS]] > 1})
        shared = [0, *(_common_digits(a, b) for a, b in pairwise(alike)), 0]
        needed = {
            digest: max(ID_DIGITS, 1 + max(before, after))
            for digest, (before, after) in zip(alike, pairwise(shared), strict=False)
        }
        return [digest[: needed.get(digest, ID_DIGITS)] for digest in digests]

    def _digests(self) -> list[str]:
        # A copy of the caller's hash state goes on with the callee's name, so each name is
        # hashed once and no path is ever spelled out.
        digests: list[str] = []
        stack: list[tuple[int, hashlib.blake2b | None]] = []
        names: dict[tuple[int, int], bytes] = {}
        columns = (column.tolist() for column in (self.region, self.annotation, self.end))
        for row, (region, note, end) in enumerate(zip(*columns, strict=True)):
            while stack and stack[-1][0] <= row:
                stack.pop()
            if (name := names.get((region, note))) is None:
                spelled = self.regions[region].common_name + self.annotations[note]
                name = names[region, note] = escape(spelled).encode()
            if above := stack[-1][1] if stack else None:
                state = above.copy()
                state.update(b"/" + name)
            else:
                state = hashlib.blake2b(name, digest_size=16)
            digests.append(state.hexdigest())
            stack.append((end, state if stack or name != _PROGRAM else None))
        return digests


def escape(name: str) -> str:
    r"""Write a slash inside a region name as ``\/`` so that ``/`` can join call paths."""
    return name.replace("/", "\\/")


def subtree_ends(parent: Int32Array) -> Int32Array:
    """Return the row after each subtree, for parents given in preorder, [n]."""
    n = len(parent)
    end = np.empty(n, np.int32)
    open_rows: list[int] = []
    for row, caller in enumerate(parent.tolist()):
        while open_rows and open_rows[-1] != caller:
            end[open_rows.pop()] = row
        if caller != ROOT and not open_rows:
            raise ValueError(f"call path {row} is not in preorder")
        open_rows.append(row)
    end[open_rows] = n
    return end


def _is_preorder(parent: Int32Array, end: Int32Array) -> bool:
    """Tell whether rows are in preorder, and `end` is what `subtree_ends` returns."""
    n = len(parent)
    row = np.arange(n, dtype=np.int32)
    called = np.flatnonzero(parent != ROOT)
    caller = parent[called]
    if not (((caller >= 0) & (caller < called)).all() and ((row < end) & (end <= n)).all()):
        return False
    # All below a row are between it and its end, and as many as there is room for.
    size = end - row
    below = np.bincount(caller, size[called], minlength=n)
    inside = (end[called] <= end[caller]).all() and (called < end[caller]).all()
    return bool(inside and (below == size - 1).all() and size[parent == ROOT].sum() == n)


def _frozen(values: ArrayLike) -> Int32Array:
    column = np.array(values, dtype=np.int32)
    column.flags.writeable = False
    return column


def _common_digits(first: str, second: str) -> int:
    return next((k for k, (a, b) in enumerate(zip(first, second, strict=True)) if a != b), 0)
