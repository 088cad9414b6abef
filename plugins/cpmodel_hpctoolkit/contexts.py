"""Conversion of calling contexts, with loops and lines, to a call tree of functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.arrays import BoolArray, FloatArray, Int32Array, Int64Array, IntArray
from callpath_modeler.profile.calltree import NO_LINE, CallTree
from callpath_modeler.profile.schema import Region

STATEMENT = "statement"
"""Role of regions of lines."""

_LAST_LINE = 2**31 - 1
_DENSE = 4
"""Largest number per entry up to which a table of all numbers finds the distinct ones."""


@dataclass(frozen=True, slots=True)
class Detail:
    """The parts of a call tree besides functions.

    Attributes
    ----------
    loops : loops are call paths
    call_sites : calls of one function from several lines are several call paths
    lines : lines are call paths, with the file as their region and the role `STATEMENT`
    """

    loops: bool = False
    call_sites: bool = False
    lines: bool = False


@dataclass(frozen=True, slots=True)
class Contexts:
    """Calling contexts of a database; callers come before callees.

    Attributes
    ----------
    parent : [n], number of the context above; -1 = none
    depth : [n], number of contexts above
    called : [n], True for functions, including inlined ones; other contexts are parts of a function
    loop : [n], True for loops
    region : [n], index into `regions`, for functions and loops only
    regions : distinct regions
    line : [n], line in the source, for statements and call sites; 0 = not known, or another kind
    file : [n], index into `files`, for the same contexts
    files : distinct source files
    """

    parent: Int64Array
    depth: Int64Array
    called: BoolArray
    loop: BoolArray
    region: Int64Array
    regions: tuple[Region, ...]
    line: Int64Array
    file: Int64Array
    files: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.parent)


@dataclass(frozen=True, slots=True)
class Layout:
    """The call tree, and the positions of contexts in it.

    Attributes
    ----------
    tree : call paths
    row : [contexts], call path of a context, or of the function that contains it
    """

    tree: CallTree
    row: Int64Array


@dataclass(frozen=True, slots=True)
class Collapsed(Layout):
    """The positions of contexts, with those that are call paths.

    Attributes
    ----------
    node : [contexts], whether a context is a separate call path
    above : [contexts], call path that calls or encloses the call path in `row`; -1 = none
    """

    node: BoolArray
    above: Int64Array


def collapse(contexts: Contexts, detail: Detail) -> Collapsed:
    """Return the call tree of functions, and of the other parts that `detail` names.

    Other contexts become part of the enclosing call path.
    """
    node = contexts.called | (contexts.parent < 0)
    if detail.loops:
        node |= contexts.loop
    region, regions = contexts.region, contexts.regions
    if detail.lines:
        is_line = _has_line(contexts) & ~node
        node |= is_line
        region = np.where(is_line, contexts.file + len(regions), region)
        regions = (*regions, *(Region(each, file=each, role=STATEMENT) for each in contexts.files))
    around, level = _around(contexts, node)
    site = np.full(len(contexts), NO_LINE)
    if detail.call_sites:
        site = _sites(contexts, node)
    if detail.lines:
        site = np.where(is_line, contexts.line, site)
    # Pairs of region and line, numbered in this order.
    lines, line = distinct_of(site - NO_LINE)
    lines += NO_LINE
    kinds, kind = distinct_of(region * len(lines) + line)
    row = np.full(len(contexts), -1, np.int64)
    parents, found, sizes = [], [], []
    total, distinct = 0, len(kinds)
    for members in _by_value(np.where(node, level, -1)):
        above = np.where(around[members] >= 0, row[around[members]], -1)
        keys, place = np.unique((above + 1) * distinct + kind[members], return_inverse=True)
        row[members] = total + place
        parents.append(keys // distinct - 1)
        found.append(keys % distinct)
        sizes.append(len(keys))
        total += len(keys)
    parent, chosen = np.concatenate(parents), kinds[np.concatenate(found)]
    place, end = _preorder(parent, sizes)
    order = np.empty(total, np.intp)
    order[place] = np.arange(total)
    callers = np.where(parent >= 0, place[parent], -1)
    tree = CallTree(
        _column(callers[order]),
        _column(end[order]),
        _column(chosen[order] // len(lines)),
        _column(np.zeros(total)),
        regions,
        site=_column(lines[chosen[order] % len(lines)]),
    )
    row = np.where(node, row, row[around])
    return Collapsed(tree, place[row], node, tree.parent[place[row]].astype(np.int64))


def distinct_of(numbers: Int64Array) -> tuple[Int64Array, IntArray]:
    """Return the distinct numbers, ascending, and the place of each number among them.

    It is `numpy.unique`, which takes longer for very many and for very few numbers.
    """
    if len(numbers) and numbers.min() >= 0 and numbers.max() <= _DENSE * len(numbers):
        occurs = np.zeros(numbers.max() + 1, bool)
        occurs[numbers] = True
        return np.flatnonzero(occurs), (occurs.cumsum() - 1)[numbers]
    order = numbers.argsort(kind="stable")
    ascending = numbers[order]
    begins = np.ones(len(numbers), bool)
    np.not_equal(ascending[1:], ascending[:-1], out=begins[1:])
    place = np.empty(len(numbers), np.intp)
    place[order] = begins.cumsum() - 1
    return ascending[begins], place


def _sites(contexts: Contexts, node: BoolArray) -> Int64Array:
    """Return the line of the call of each function, [contexts], or `NO_LINE`."""
    line = np.where(_has_line(contexts) & ~node, contexts.line, NO_LINE)
    site = np.full(len(contexts), NO_LINE)
    for members in _by_value(contexts.depth)[1:]:
        parents = contexts.parent[members]
        site[members] = line[parents]
        # Instructions between a line and a call have no line of their own.
        inherits = ~node[members] & (line[members] == NO_LINE)
        line[members] = np.where(inherits, line[parents], line[members])
    return np.where(contexts.called, site, NO_LINE)


def _has_line(contexts: Contexts) -> BoolArray:
    return np.asarray((contexts.line > 0) & (contexts.line <= _LAST_LINE), np.bool_)


def _around(contexts: Contexts, node: BoolArray) -> tuple[Int64Array, Int64Array]:
    """Return the nearest node above each context, -1 = none, and the number of nodes above."""
    around = np.full(len(contexts), -1, np.int64)
    level = np.zeros(len(contexts), np.int64)
    for members in _by_value(contexts.depth)[1:]:
        parents = contexts.parent[members]
        around[members] = np.where(node[parents], parents, around[parents])
        level[members] = level[parents] + node[parents]
    return around, level


def _by_value(values: Int64Array) -> list[IntArray]:
    """Return the positions of 0, 1, etc. in `values`; negative values are ignored."""
    # Small integers are sorted in linear time.
    is_small = values.max(initial=0) <= np.iinfo(np.int16).max
    keys = np.maximum(values, -1).astype(np.int16) if is_small else values
    order = np.argsort(keys, kind="stable")
    order = order[np.searchsorted(values[order], 0) :]
    return np.split(order, np.cumsum(np.bincount(values[order]))[:-1])


def _preorder(parent: Int64Array, sizes: list[int]) -> tuple[Int64Array, Int64Array]:
    """Return the preorder row of each node, and the row after its subtree.

    Parameters
    ----------
    parent : [n], nodes level by level, in each level in the order of their parents
    sizes : number of nodes in each level
    """
    stops = np.cumsum(sizes).tolist()
    levels = [slice(stop - size, stop) for stop, size in zip(stops, sizes, strict=True)]
    below = np.ones(len(parent), np.int64)
    for level in reversed(levels[1:]):
        np.add.at(below, parent[level], below[level])
    place = np.empty(len(parent), np.int64)
    for level in levels:
        before = np.cumsum(below[level]) - below[level]
        callers = parent[level]
        first = np.searchsorted(callers, callers)
        start = np.where(callers >= 0, place[callers] + 1, 0)
        place[level] = start + before - before[first]
    return place, place + below


def _column(values: NDArray[np.signedinteger] | FloatArray) -> Int32Array:
    column = values.astype(np.int32)
    column.flags.writeable = False
    return column
