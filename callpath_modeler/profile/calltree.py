"""The call tree: one row per call path, stored in columns."""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from callpath_modeler.arrays import BoolArray, FloatArray, Int32Array, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.schema import GROUP, PROGRAM, Region

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

_MANY = 8
"""If more than one call path in so many was asked for its id, all are hashed, each name once."""

_ASKED = "asked"
"""Attribute of a tree with the number of call paths that were asked for their ids."""

_PACKED, _KEPT = "packed", 1 << 20
"""Attribute of a tree with its pickled columns, and their largest size in bytes to be kept."""


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

    def __repr__(self) -> str:
        return f"<CallTree of {len(self)} call paths through {len(self.regions)} regions>"

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
    def in_groups(self) -> BoolArray:
        """Which call paths are groups of processes, or below them, [n]."""
        is_group = np.array([region.role == GROUP for region in self.regions], np.bool_)
        found = np.zeros(len(self), np.bool_)
        # Most trees have none, and tables ask for each of their blocks.
        for row in np.flatnonzero(is_group[self.region]).tolist() if is_group.any() else ():
            found[row : self.end[row]] = True
        return found

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
        """Pickle the columns; the copy is read-only again, and copies of one tree are one tree.

        Thousands of small profiles of one program mostly have one tree, which then takes neither
        time nor memory for each of them.
        """
        site = self.site if self.has_sites else None
        content = self.__dict__.get(_PACKED)
        if content is None:
            content = pickle.dumps((self.columns, self.regions, self.annotations, site), protocol=5)
            if len(content) <= _KEPT:
                self.__dict__[_PACKED] = content
        return _unpacked, (hashlib.sha256(content).digest(), content)

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

    def callees(self, row: int) -> Int32Array:
        """Return the callees of `row`, in order, as a view of the tree."""
        end = int(self.end[row])
        if end == row + 1:
            return np.empty(0, np.int32)
        level = self._levels[int(self._depth[row]) + 1]
        # For another type, NumPy would convert the whole level.
        begin, stop = level.searchsorted(np.array([row, end], level.dtype)).tolist()
        return level[begin:stop]

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
        return asked.astype(np.intp, copy=False)

    def inclusive(self, exclusive: FloatArray) -> FloatArray:
        """Return the sums of `exclusive` [n, ...] over each subtree.

        The sums proceed level by level from the leaves. Differences of a running total would lose
        the digits of a small subtree next to a large one.
        """
        total = np.array(exclusive, order="F")
        for column in total.reshape(len(total), total[:1].size, order="F").T:
            for rows, start, callers in self._calls:
                sums = np.add.reduceat(column.take(rows), start)
                column.put(callers, column.take(callers) + sums)
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
        levels = self.levels()
        if not levels:
            return []
        caller = self.parent.take(np.concatenate(levels))
        begins = np.flatnonzero(caller[1:] != caller[:-1]) + 1
        stops = np.cumsum([len(rows) for rows in levels])
        # Roots have no caller, so each further level begins with another caller.
        groups = np.split(begins, np.searchsorted(begins, stops[:-1]))[1:]
        return [
            (rows, group - stop, caller.take(group))
            for rows, stop, group in zip(levels[1:], stops[:-1].tolist(), groups, strict=True)
        ][::-1]

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
        asked = np.arange(len(self)) if rows is None else np.asarray(rows, np.intp)
        alike, digits = self.long_ids
        # Tables ask for the ids of one block after the other.
        known = vars(self)
        known[_ASKED] = known.get(_ASKED, 0) + len(asked)
        if "_hashes" in known or _MANY * known[_ASKED] > len(self):
            text = self._hashes[asked].tobytes().hex()
        else:
            paths = (self.common_path(row).encode() for row in asked.tolist())
            text = "".join(_path_hash(path).hexdigest() for path in paths)
        size = 2 * _DIGEST_SIZE
        ids = [text[start : start + ID_DIGITS] for start in range(0, len(text), size)]
        if len(alike):
            place = np.minimum(np.searchsorted(alike, asked), len(alike) - 1)
            for k in np.flatnonzero(alike[place] == asked).tolist():
                ids[k] = text[size * k : size * k + int(digits[place[k]])]
        return ids

    def id_of(self, row: int) -> str:
        """Return the id of a call path."""
        return self.ids([row])[0]

    @cached_property
    def long_ids(self) -> Int32Array:
        """The rows with ids of more than seven digits, in order, and their digits, [2, m]."""
        return _long_ids(self._hashes)

    def know_long_ids(self, found: Int32Array) -> None:
        """Take the `long_ids` of a stored tree, so that no call path is hashed to find them.

        Raises
        ------
        ValueError
            If they are no rows in order with numbers of digits.
        """
        rows, digits = found
        if not ((rows[:-1] < rows[1:]).all() and (rows >= 0).all() and (rows < len(self)).all()):
            raise ValueError("the rows of long ids are not call paths in order")
        if not ((digits > ID_DIGITS) & (digits <= 2 * _DIGEST_SIZE)).all():
            raise ValueError("the number of digits of an id is out of range")
        vars(self)["long_ids"] = found

    @cached_property
    def _hashes(self) -> NDArray[np.uint8]:
        """The hash of each path, [n, bytes]."""
        # The hash of a callee continues a copy of its caller's state, so each name is hashed once
        # and no path is built as text.
        code, of_row = np.unique(
            self.region.astype(np.int64) * len(self.annotations) + self.annotation,
            return_inverse=True,
        )
        pairs = (divmod(pair, len(self.annotations)) for pair in code.tolist())
        names = [self._spelled(region, note).encode() for region, note in pairs]
        below = [b"/" + name for name in names]
        found, size = bytearray(_DIGEST_SIZE * len(self)), _DIGEST_SIZE
        stack: list[hashlib.blake2b | None] = []
        pairs_of_rows = zip(of_row.tolist(), self.depth().tolist(), strict=True)
        for row, (name, depth) in enumerate(pairs_of_rows):
            del stack[depth:]
            above = stack[-1] if stack else None
            if above is None:
                state = _path_hash(names[name])
            else:
                state = above.copy()
                state.update(below[name])
            found[size * row : size * (row + 1)] = state.digest()
            stack.append(state if stack or names[name] != _PROGRAM else None)
        return np.frombuffer(found, np.uint8).reshape(len(self), size)


_copies: WeakValueDictionary[bytes, CallTree] = WeakValueDictionary()
"""Trees that were unpickled and are in use, by the hash of their pickled columns."""


def _unpacked(key: bytes, content: bytes) -> CallTree:
    """Return the tree of pickled columns; `key` is their hash."""
    known = _copies.get(key)
    if known is None:
        columns, regions, annotations, site = pickle.loads(content)  # noqa: S301 - our own
        known = CallTree.from_columns(columns, regions, annotations, site)
        _copies[key] = known
    return known


def _long_ids(hashes: NDArray[np.uint8]) -> Int32Array:
    """Return the rows whose ids need more than seven digits, and how many they need, [2, m]."""
    # Seven digits are 28 bits.
    first = hashes[:, :4].copy().view(">u4")[:, 0].astype(np.uint32) >> 4
    ordered = np.sort(first)
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(shared):
        return np.empty((2, 0), np.int32)
    place = np.minimum(np.searchsorted(shared, first), len(shared) - 1)
    rows = np.flatnonzero(shared[place] == first)
    mine = [each.tobytes().hex() for each in hashes[rows]]
    alike = sorted({*mine})
    common = [0, *(_common_digits(a, b) for a, b in pairwise(alike)), 0]
    digits = {
        each: 1 + max(before, after)
        for each, (before, after) in zip(alike, pairwise(common), strict=True)
    }
    found = np.array([rows, [digits[each] for each in mine]], np.int32)
    # Call paths of the same path share their id, which need not be longer for that.
    return found[:, found[1] > ID_DIGITS]


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
    if not ((parent >= ROOT) & (parent < row) & (row < end) & (end <= n)).all():
        return False
    # A subtree is inside that of its caller, and a root ends somewhere before the end of all rows.
    # `take` is twice as fast as an index.
    limit = np.append(end, np.int32(n)).take(parent)
    # A subtree with further rows begins with a callee. Where it ends, its caller either ends, too,
    # or has its next callee. So every row has one place, which its caller and `end` determine.
    begins = (parent[1:] == row[:-1]) | (end[:-1] == row[1:])
    follows = np.append(parent, np.int32(ROOT)).take(end) == parent
    return bool((end <= limit).all() and begins.all() and (follows | (end == limit)).all())


def _no_lines(count: int) -> Int32Array:
    """Return `NO_LINE` for each call path, without memory for each."""
    return np.broadcast_to(np.int32(NO_LINE), count)


def _frozen(values: ArrayLike) -> Int32Array:
    column = np.array(values, dtype=np.int32)
    column.flags.writeable = False
    return column


def _common_digits(first: str, second: str) -> int:
    return next((k for k, (a, b) in enumerate(zip(first, second, strict=True)) if a != b), 0)
