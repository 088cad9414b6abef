"""The call tree: one row per call path, stored in columns."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from callpath_modeler.arrays import ByteArray, FloatArray, Int32Array, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.schema import PROGRAM, Region

_Number = TypeVar("_Number", np.integer, np.float64)

ROOT = -1
"""The parent of root call paths, which have no caller."""

NO_LINE = -1
"""The line of a call whose line is not known."""

_PROGRAM = PROGRAM.encode()
_SITE = re.compile(r":\d+(?:#\d+)?\Z")

ID_DIGITS = 7
"""Length of call-path ids; ids that collide are longer."""

_DIGEST_SIZE = 16


@dataclass(frozen=True)
class CallTree:
    """The call paths of a program, numbered in preorder.

    A call path is identified by its row. The subtree of row `i` is the slice from `i` to
    ``end[i]``. Therefore no function recurses, and the depth of the tree is not limited.

    Attributes
    ----------
    parent : int32 [n], row of the caller, or `ROOT`
    end : int32 [n], row after the last call path of the subtree
    region : int32 [n], index into `regions`
    annotation : int32 [n], index into `annotations`
    regions : distinct regions
    annotations : distinct suffixes of names: ``"[n=4]"`` for parameters of the call, ``"#2"`` for
        the second of two siblings with the same name, ``":31"`` for a call from line 31, if the
        caller has several calls of the function; the first entry is ``""``
    site : int32 [n], line of the call in the source of the caller, or -1 = not known
    """

    parent: Int32Array
    end: Int32Array
    region: Int32Array
    annotation: Int32Array
    regions: tuple[Region, ...]
    annotations: tuple[str, ...] = ("",)
    site: Int32Array = None  # type: ignore[assignment] # replaced before anybody sees it

    def __post_init__(self) -> None:
        if self.site is None:
            object.__setattr__(self, "site", _no_lines(len(self.parent)))

    @classmethod
    def from_parents(
        cls,
        parent: ArrayLike,
        region: ArrayLike,
        regions: Sequence[Region],
        annotation: ArrayLike | None = None,
        annotations: Sequence[str] = ("",),
        site: ArrayLike | None = None,
    ) -> CallTree:
        """Return the tree of n call paths with the given callers.

        Parameters
        ----------
        parent : [n] row of the caller, or `ROOT`; rows are in preorder
        region, annotation : [n] indices into `regions` and `annotations`; None = no annotations
        site : [n] line of the call in the source of the caller; -1 = not known; None = no lines

        Raises
        ------
        ValueError
            If the rows are not in preorder.
        """
        parents = _frozen(parent)
        notes = np.zeros(len(parents), np.int32) if annotation is None else annotation
        end = _frozen(subtree_ends(parents))
        numbers = _frozen(region), _frozen(notes)
        lines = _no_lines(len(parents)) if site is None else _frozen(site)
        return cls(parents, end, *numbers, tuple(regions), tuple(annotations), lines)

    @classmethod
    def from_columns(
        cls,
        columns: Int32Array,
        regions: Sequence[Region],
        annotations: Sequence[str],
        site: Int32Array | None = None,
    ) -> CallTree:
        """Return the tree with the given `columns`, [4, n], and lines of calls, [n].

        This is many times faster than `from_parents`.

        Raises
        ------
        ValueError
            If the rows are not in preorder, or if an index is out of range.
        """
        parent, end, region, annotation = (_frozen(column) for column in columns)
        if not _is_preorder(parent, end):
            raise ValueError("call paths are not in preorder")
        for column, known in ((region, regions), (annotation, annotations)):
            if len(column) and not 0 <= column.min() <= column.max() < len(known):
                raise ValueError("index of a region or annotation is out of range")
        if site is not None and site.shape != parent.shape:
            raise ValueError("lines of calls are not one for each call path")
        if site is not None and len(site) and site.min() < NO_LINE:
            raise ValueError("the line of a call is negative")
        lines = _no_lines(len(parent)) if site is None else _frozen(site)
        return cls(parent, end, region, annotation, tuple(regions), tuple(annotations), lines)

    @property
    def has_sites(self) -> bool:
        """Whether the line of any call is known."""
        return bool(len(self) and self.site.max() > NO_LINE)

    @property
    def columns(self) -> Int32Array:
        """Callers, ends, regions and annotations, [4, n]."""
        return np.stack([self.parent, self.end, self.region, self.annotation])

    def __len__(self) -> int:
        return len(self.parent)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the columns; the copy is read-only again."""
        site = self.site if self.has_sites else None
        return CallTree.from_columns, (self.columns, self.regions, self.annotations, site)

    def is_same_as(self, other: CallTree) -> bool:
        """Return whether another tree has the same call paths in the same rows."""
        if self is other:
            return True
        return (self.regions, self.annotations) == (other.regions, other.annotations) and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("parent", "region", "annotation", "site")
        )

    @property
    def roots(self) -> IntArray:
        """Rows without a caller."""
        return np.flatnonzero(self.parent == ROOT)

    def children(self, row: int) -> Iterator[int]:
        """Yield the callees of `row`, in order."""
        child = row + 1
        while child < self.end[row]:
            yield child
            child = int(self.end[child])

    def called_by(self, rows: ArrayLike) -> Int32Array:
        """Return the callees of `rows`, in order; all `rows` must have the same depth."""
        callers = np.atleast_1d(np.asarray(rows))
        callers = callers[self.end[callers] > callers + 1]
        if not len(callers):
            return np.empty(0, np.int32)
        level = self._levels[int(self._depth[callers[0]]) + 1]
        # For another type, NumPy would convert the whole level.
        begin, end = (
            np.searchsorted(level, ends.astype(level.dtype))
            for ends in (callers, self.end[callers])
        )
        count = end - begin
        place = np.arange(count.sum()) + np.repeat(begin - (count.cumsum() - count), count)
        return np.asarray(level[place])

    def name(self, row: int) -> str:
        """Return the last name of a call path: the region and its annotation."""
        region: Region = self.regions[self.region[row]]
        note: str = self.annotations[self.annotation[row]]
        return region.name + note

    def names(self, row: int) -> tuple[str, ...]:
        """Return the names from the root to `row`, without an artificial program root."""
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
        """Return call paths as text, like `path`, but faster for many rows.

        Parameters
        ----------
        rows : rows of the call paths
        spell : function that replaces `escape`; it is called once per distinct name
        """
        spelled = cache(escape if spell is None else spell)
        asked = np.asarray(rows, np.intp)
        distinct = np.unique(asked)
        code = self.region[distinct].astype(np.int64) * len(self.annotations)
        code += self.annotation[distinct]
        _, first, name = np.unique(code, return_index=True, return_inverse=True)
        names = [spelled(self.name(row)) for row in distinct[first].tolist()]
        written: dict[int, str] = {}
        program = spelled(PROGRAM)
        callers = self.parent[distinct].tolist()
        for row, caller, its in zip(distinct.tolist(), callers, name.tolist(), strict=True):
            above = written.get(caller)
            if above is None:
                above = program
                if caller != ROOT:
                    above = written[caller] = "/".join(map(spelled, self.names(caller)))
            # Paths do not contain an artificial program root.
            written[row] = (
                "/".join(map(spelled, self.names(row)))
                if above == program
                else f"{above}/{names[its]}"
            )
        return [written[row] for row in asked.tolist()]

    def depth(self) -> IntArray:
        """Return the number of callers above each call path, [n]."""
        ended = np.cumsum(np.bincount(self.end, minlength=len(self)))
        return np.arange(len(self)) - ended[: len(self)]

    def chosen(self, rows: ArrayLike) -> IntArray:
        """Return `rows` as an array of valid row numbers, [rows].

        Raises
        ------
        UsageError
            If an entry is not a row of the tree.
        """
        asked = np.atleast_1d(np.asarray(rows))
        is_whole = asked.dtype.kind in "iu" or not asked.size
        if asked.ndim > 1 or not is_whole or not ((asked >= 0) & (asked < len(self))).all():
            raise UsageError(
                f"no call path {rows!r}", hint=f"rows of the experiment, 0 to {len(self) - 1}"
            )
        return asked.astype(np.intp)

    def inclusive(self, exclusive: FloatArray) -> FloatArray:
        """Return the sums of `exclusive` [n, ...] over each subtree.

        The sums proceed level by level from the leaves. Differences of a running total would lose
        the digits of a small subtree next to a large one.
        """
        total = np.array(exclusive, order="F")
        for column in total.reshape(len(total), total[:1].size, order="F").T:
            for rows, start, callers in self._calls:
                column[callers] += np.add.reduceat(column[rows], start)
        return total

    def largest_below(self, numbers: NDArray[_Number]) -> NDArray[_Number]:
        """Return the largest of `numbers` [n] in each subtree, [n]."""
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
        """Number of callers above each call path, [n], as uint16 where it suffices."""
        depth = self.depth()
        # Small integers are sorted in linear time.
        return depth.astype(np.uint16) if depth.max() <= np.iinfo(np.uint16).max else depth

    @cached_property
    def _calls(self) -> list[tuple[Int32Array, IntArray, Int32Array]]:
        """Rows, starts of the callers' groups, and callers, for each level below the roots.

        The deepest level comes first. In preorder, the callees of one caller are adjacent in their
        level.
        """
        found = []
        for rows in reversed(self.levels()[1:]):
            parent = self.parent[rows]
            start = np.flatnonzero(np.diff(parent, prepend=ROOT))
            found.append((rows, start, parent[start]))
        return found

    def common_path(self, row: int) -> str:
        """Return the path whose hash is the id of a call path: it is the same in every build."""
        names: list[str] = []
        while row != ROOT:
            names.append(self._common_name(row))
            row = int(self.parent[row])
        if len(names) > 1 and names[-1] == PROGRAM:
            names.pop()
        return "/".join(reversed(names))

    def rows_of(self, common_path: str) -> list[int]:
        """Return the call paths with a path of `common_path`; usually there is one, or none."""
        programs = [row for row in self.roots.tolist() if self.name(row) == PROGRAM]
        starts = [*self.roots.tolist(), *(c for row in programs for c in self.children(row))]
        open_ends = [(row, 0) for row in starts]
        found = []
        while open_ends:
            row, begin = open_ends.pop()
            end = begin + len(name := self._common_name(row))
            if common_path[begin:end] != name:
                continue
            if end == len(common_path):
                found.append(row)
            elif common_path[end] == "/":
                open_ends += [(child, end + 1) for child in self.children(row)]
        return sorted(found)

    def _common_name(self, row: int) -> str:
        return self._spelled(self.region[row], self.annotation[row])

    def _spelled(self, region: int, annotation: int) -> str:
        """Return a name in a path, as it is in every build."""
        return escape(self.regions[region].common_name + self.annotations[annotation])

    def ids(self, rows: ArrayLike | None = None) -> list[str]:
        """Return a short id per call path: the first digits of the hash of its path.

        An id depends only on the path, so it is the same in every experiment. If several call paths
        share the first seven digits, their ids get as many more digits as needed to differ.

        Parameters
        ----------
        rows : rows of the call paths; None = all
        """
        digests = self._digests()
        alike, digits = _longer_ids(digests)
        asked = np.arange(len(self)) if rows is None else np.asarray(rows, np.intp)
        text, size = digests[asked, :_FEW].tobytes().hex(), 2 * _FEW
        ids = [text[start : start + ID_DIGITS] for start in range(0, len(text), size)]
        if len(alike):
            place = np.minimum(np.searchsorted(alike, asked), len(alike) - 1)
            for k in np.flatnonzero(alike[place] == asked).tolist():
                ids[k] = digests[asked[k]].tobytes().hex()[: digits[place[k]]]
        return ids

    def _digests(self) -> ByteArray:
        """Return the hash of each path, [n, bytes]."""
        code, name = np.unique(
            self.region.astype(np.int64) * len(self.annotations) + self.annotation,
            return_inverse=True,
        )
        pairs = (divmod(pair, len(self.annotations)) for pair in code.tolist())
        numbers: dict[bytes, int] = {}
        names = (self._spelled(region, note).encode() for region, note in pairs)
        number = np.array([numbers.setdefault(each, len(numbers)) for each in names], np.intp)
        # By its name, because profiles do not depend on models; only the inner loop is theirs.
        kernels = import_module("callpath_modeler.modeling.kernels").kernels()
        found: ByteArray = kernels.path_hashes(
            list(numbers), number[name], self.depth(), numbers.get(_PROGRAM, -1)
        )
        return found


_FEW = (ID_DIGITS + 1) // 2
"""Number of first bytes of a hash that have the digits of most ids."""


def _longer_ids(digests: ByteArray) -> tuple[IntArray, list[int]]:
    """Return the rows that share their first seven digits with others, and their ids' lengths."""
    # Seven digits are 28 bits.
    first = digests[:, :_FEW].copy().view(">u4")[:, 0].astype(np.uint32) >> 4
    ordered = np.sort(first)
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(shared):
        return np.empty(0, np.intp), []
    place = np.minimum(np.searchsorted(shared, first), len(shared) - 1)
    rows = np.flatnonzero(shared[place] == first)
    hashes = [digest.tobytes().hex() for digest in digests[rows]]
    alike = sorted({*hashes})
    common = [0, *(_common_digits(a, b) for a, b in pairwise(alike)), 0]
    digits = {
        digest: max(ID_DIGITS, 1 + max(before, after))
        for digest, (before, after) in zip(alike, pairwise(common), strict=True)
    }
    return rows, [digits[digest] for digest in hashes]


def short_id(common_path: str) -> str:
    """Return the first digits of the hash of a path; ids with equal ones are longer."""
    return _path_hash(common_path.encode()).hexdigest()[:ID_DIGITS]


def _path_hash(path: bytes) -> hashlib.blake2b:
    return hashlib.blake2b(path, digest_size=_DIGEST_SIZE)


def without_site(annotation: str) -> str:
    """Return an annotation without the line of the call, which comes last.

    >>> without_site("[n=4]#2:31"), without_site("#2")
    ('[n=4]#2', '#2')
    """
    found = _SITE.search(annotation)
    return annotation[: found.start()] if found else annotation


def escape(name: str) -> str:
    r"""Return a region name with each slash as ``\/``, so that ``/`` can join call paths."""
    return name.replace("/", "\\/")


def subtree_ends(parent: Int32Array) -> Int32Array:
    """Return the row after each subtree, [n].

    Parameters
    ----------
    parent : [n] row of the caller, or `ROOT`; rows are in preorder

    Raises
    ------
    ValueError
        If the rows are not in preorder.
    """
    row = np.arange(len(parent))
    if ((parent < row) & (parent >= ROOT)).all():
        end = nodes_after(parent).astype(np.int32)
        if _is_preorder(parent, end):
            return end
    raise ValueError("call paths are not in preorder")


def nodes_after(parent: NDArray[np.integer]) -> IntArray:
    """Return the node after the subtree of each node, [n]: a sibling of it or of a caller.

    Parameters
    ----------
    parent : [n] caller, or `ROOT`; siblings have the order of their numbers

    Returns
    -------
    ndarray
        [n]; n = the subtree is the last one.
    """
    count = len(parent)
    by_caller = np.argsort(parent, kind="stable")
    callers = parent[by_caller]
    following = np.full(count + 1, -1, np.intp)
    has_next = np.flatnonzero(callers[:-1] == callers[1:])
    following[by_caller[has_next]] = by_caller[has_next + 1]
    following[count] = count
    # The last callee of a caller is followed by what follows the caller. Each step doubles the
    # number of callers that are skipped.
    above = np.append(np.where(parent == ROOT, count, parent), count)
    node = np.where(following < 0, above, np.arange(count + 1))
    while (following[node] < 0).any():
        node = node[node]
    return following[node][:-1]


def _is_preorder(parent: Int32Array, end: Int32Array) -> bool:
    """Return whether rows are in preorder and `end` is the result of `subtree_ends`."""
    n = len(parent)
    row = np.arange(n, dtype=np.int32)
    called = np.flatnonzero(parent != ROOT)
    caller = parent[called]
    if not (((caller >= 0) & (caller < called)).all() and ((row < end) & (end <= n)).all()):
        return False
    # The subtrees of the callees fill the rows between a call path and its end.
    size = end - row
    below = np.bincount(caller, size[called], minlength=n)
    inside = (end[called] <= end[caller]).all() and (called < end[caller]).all()
    return bool(inside and (below == size - 1).all() and size[parent == ROOT].sum() == n)


def _no_lines(count: int) -> Int32Array:
    """Return `NO_LINE` for each call path, without memory for each."""
    return np.broadcast_to(np.int32(NO_LINE), count)


def _frozen(values: ArrayLike) -> Int32Array:
    column = np.array(values, dtype=np.int32)
    column.flags.writeable = False
    return column


def _common_digits(first: str, second: str) -> int:
    return next((k for k, (a, b) in enumerate(zip(first, second, strict=True)) if a != b), 0)
