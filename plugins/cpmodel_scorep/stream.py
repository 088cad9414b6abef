"""Blocks of values in storage order, and the conversion of inclusive to exclusive values.

At most a few blocks are in memory, for any number of locations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, Int64Array, IntArray
from callpath_modeler.readers.reductions import BlockSink, Fold, PartOfReduction, Reducer, is_plain
from cpmodel_scorep.definitions import MetricKind
from cpmodel_scorep.metrics import StoredMetric
from cpmodel_scorep.rows import (
    Section,
    StoredRows,
    blocks,
    bounds_of_blocks,
    reordered,
    rows_of_block,
    sections_of,
    take,
)
from cpmodel_scorep.tree import TreeLayout

_SPARSE_PAYS = 64 << 20
"""Size of a metric, in bytes, from which importing SciPy for a sparse product saves time."""


def stored(
    rows: StoredRows, place: Int64Array, section: Section | None = None
) -> Iterator[tuple[Int64Array, FloatArray]]:
    """Yield stored blocks as pairs: rows of the call tree [k], and values [k x columns].

    Parameters
    ----------
    place : int64 [stored rows], row in the call tree; -1 = detached
    section : rows to read; None = all
    """
    for first, stop, block in blocks(rows, section):
        at = place[first:stop]
        if at.min() < 0:
            yield at[at >= 0], block[at >= 0]
        else:
            yield at, block


def reduce_stored(
    rows: StoredRows, place: Int64Array, reducer: BlockSink, section: Section
) -> None:
    """Reduce exclusive values that are stored as exclusive values."""
    for at, block in stored(rows, place, section):
        reducer.mark_missing(block)
        reducer.add(at, block)
        reducer.add_to_total(block)


class Families(Struct, frozen=True, eq=False):
    """Positions of inclusive rows, which are stored by family: by callees of one call path.

    Attributes
    ----------
    place : int64 [stored rows], row in the call tree; -1 = detached
    parent : int64 [stored rows], defined call path of the caller; -1 = root
    tree_row : int64 [defined call paths], row in the call tree
    stored_at : intp [defined call paths], stored row; -1 = not stored
    is_leaf : bool [stored rows], whether a call path has no stored callees
    """

    place: Int64Array
    parent: Int64Array
    tree_row: Int64Array
    stored_at: IntArray
    is_leaf: BoolArray

    @classmethod
    def of(cls, rows: StoredRows, layout: TreeLayout, order: Int64Array) -> Families:
        """Return the positions of `rows`.

        Parameters
        ----------
        order : defined call path of each row number, see `TreeLayout.enumeration`
        """
        path = order[rows.numbers]
        place, parent = layout.rows[path], layout.parents[path]
        stored_at = np.full(len(layout.parents), -1, np.intp)
        stored_at[path] = np.arange(len(path))
        has_callees = np.zeros(len(layout.parents) + 1, np.bool_)
        has_callees[parent[place >= 0]] = True
        return cls(place, parent, layout.rows, stored_at, (place >= 0) & ~has_callees[path])

    @property
    def begins(self) -> BoolArray:
        """Whether a family begins at a row, [stored rows]."""
        begins: BoolArray = np.diff(self.parent, prepend=-2) != 0
        return begins


def reduce_families(
    rows: StoredRows, families: Families, reducer: BlockSink, section: Section
) -> None:
    """Reduce the exclusive part of inclusive values in a section of whole families.

    One pass over the rows sums the callees. When a family is complete, the row of its caller is
    read. A family may extend over any number of blocks.
    """
    passed = _FamilyPass(rows, families, reducer)
    for first, stop in bounds_of_blocks(rows, section):
        passed.add(first, stop)
    passed.close(section[1])


class _FamilyPass:
    """Conversion of inclusive rows to exclusive ones.

    One buffer contains everything. Its first row is the sum of the family that the previous block
    left unfinished, as if it were a single callee. The block follows, then rows of callers from
    elsewhere, and finally a row of zeros for callers that are not stored.
    """

    def __init__(self, rows: StoredRows, families: Families, reducer: BlockSink) -> None:
        self._rows, self._families, self._reducer = rows, families, reducer
        count = len(rows.numbers)
        step = min(count, rows_of_block(rows.columns))
        self._buffer = np.empty((2 * step + 3, rows.columns))
        self._buffer[[0, -1]] = 0.0
        self._unfinished = -1
        sparse = count * rows.columns * 8 >= _SPARSE_PAYS
        self._remainders = _sparse_remainders if sparse else _plain_remainders

    def add(self, first: int, stop: int) -> None:
        """Process the stored rows from `first` to `stop`."""
        end, reducer = stop - first + 1, self._reducer
        place = self._families.place[first:stop]
        parent = self._families.parent[first:stop]
        block = self._buffer[1:end]
        self._rows.read(first, stop, block)
        if not is_plain(block):
            reducer.count_negative(block)
            reducer.mark_missing(block)
        counted = place >= 0
        if not counted.all():
            block[~counted] = 0.0
        roots = np.flatnonzero(counted & (parent < 0))
        if len(roots):
            reducer.add_to_total(block[roots])
        caller = np.concatenate(([self._unfinished], parent))
        starts = np.concatenate(([0], np.flatnonzero(caller[1:] != caller[:-1]) + 1))
        self._finish(caller[starts[:-1]], starts, first, stop)
        self._unfinished = int(caller[-1])
        # Each block is summed separately, because a single sum over thousands of callees loses
        # digits.
        last = starts[-1]
        total = np.add.reduce(self._buffer[max(1, last) : end], axis=0)
        self._buffer[0] = total if last else total + self._buffer[0]
        leaves = np.flatnonzero(self._families.is_leaf[first:stop])
        reducer.add(place[leaves], block[leaves])

    def close(self, stop: int) -> None:
        """Complete the last family, which ends before row `stop`."""
        self._finish(np.array([self._unfinished]), np.array([0, 1]), stop, stop)

    def _finish(self, callers: Int64Array, starts: IntArray, first: int, stop: int) -> None:
        """Reduce the exclusive values of callers [k] whose callees are complete.

        `starts` [k + 1] are positions in the buffer, which contains the stored rows from `first` to
        `stop`. Rows of callers within this range are not read again.
        """
        if not len(callers):
            return
        buffer, tree_row = self._buffer, self._families.tree_row
        wanted = (callers >= 0) & (tree_row[callers] >= 0)
        at = np.where(wanted, self._families.stored_at[callers], -1)
        # Position of each caller's own row in the buffer.
        own = np.where(at < 0, len(buffer) - 1, at - first + 1)
        outside = np.flatnonzero((at >= 0) & ((at < first) | (at >= stop)))
        outside = outside[np.argsort(at[outside])]
        free = stop - first + 1
        own[outside] = np.arange(free, free + len(outside))
        take(self._rows, at[outside], buffer[free : free + len(outside)])
        # Damaged values may be infinite. Results from them are treated as missing.
        with np.errstate(invalid="ignore", over="ignore"):
            left = self._remainders(buffer, starts, own)
        if not wanted.all():
            callers, own, left = callers[wanted], own[wanted], left[wanted]
        self._reducer.add(tree_row[callers], left, lambda rows: buffer[own[rows]])


def _plain_remainders(buffer: FloatArray, starts: IntArray, own: IntArray) -> FloatArray:
    """Return row `own[k]` minus the rows from `starts[k]` to `starts[k + 1]`, [k x columns]."""
    left = buffer[own]
    left -= np.add.reduceat(buffer[: starts[-1]], starts[:-1], axis=0)
    return left


def _sparse_remainders(buffer: FloatArray, starts: IntArray, own: IntArray) -> FloatArray:
    """Return the same by a single product with a matrix of ones and minus ones."""
    from scipy.sparse import csr_array

    n = len(own)
    # The own row comes last: sums from small to large values lose fewer digits.
    bounds = (starts + np.arange(n + 1)).astype(np.int32)
    is_own = np.zeros(bounds[-1], np.bool_)
    is_own[bounds[1:] - 1] = True
    places = np.empty(bounds[-1], np.int32)
    places[is_own] = own
    places[~is_own] = np.arange(starts[-1])
    signs = np.where(is_own, 1.0, -1.0)
    left: FloatArray = csr_array((signs, places, bounds), shape=(n, len(buffer))) @ buffer
    return left


def reduce_subtrees(
    rows: StoredRows, layout: TreeLayout, order: Int64Array, reducer: Reducer
) -> None:
    """Reduce the inclusive sums of exclusive values, from the last call path to the first.

    In this order, only callers of completed call paths need a pending sum: at most one row per
    level.
    """
    tree = layout.tree
    place = layout.rows[order[rows.numbers]]
    stored_at = np.full(len(tree), -1, np.intp)
    stored_at[place[place >= 0]] = np.flatnonzero(place >= 0)
    step = rows_of_block(rows.columns)
    pending: dict[int, FloatArray] = {}
    for stop in range(len(tree), 0, -step):
        first = max(0, stop - step)
        at = stored_at[first:stop]
        block = np.zeros((stop - first, rows.columns))
        known = np.flatnonzero(at >= 0)
        known = known[np.argsort(at[known])]
        block[known] = take(rows, at[known])
        reducer.mark_missing(block)
        block[np.isnan(block)] = 0.0
        callers = tree.parent[first:stop].tolist()
        for k in range(stop - first - 1, -1, -1):
            below = pending.pop(first + k, None)
            if below is not None:
                block[k] += below
            caller = callers[k]
            if caller >= 0:
                if caller in pending:
                    pending[caller] += block[k]
                else:
                    pending[caller] = block[k].copy()
        reducer.add_raw(np.arange(first, stop), block)


Visits = Callable[[Int64Array], FloatArray]
"""Function that returns the visits of call paths [k], by row in the call tree, [k x columns]."""


class MetricPass:
    """A pass over the stored rows of a metric. It keeps no state, so threads may share it.

    Attributes
    ----------
    stored : the metric
    sections : all sections of the rows, in order
    """

    def __init__(
        self, rows: StoredRows, layout: TreeLayout, stored: StoredMetric, visits: Visits | None
    ) -> None:
        order = layout.enumeration(stored.order)
        self.stored, self._visits = stored, visits
        self._families: Families | None = None
        if stored.additive and stored.kind is MetricKind.INCLUSIVE:
            if stored.order is not MetricKind.INCLUSIVE:
                by_family = layout.enumeration(MetricKind.INCLUSIVE)
                rows, order = reordered(rows, order, by_family), by_family
            self._families = Families.of(rows, layout, order)
            self._place = self._families.place
            self.sections = sections_of(rows, self._families.begins)
        else:
            self._place = layout.rows[order[rows.numbers]]
            self.sections = sections_of(rows)
        self._rows = rows

    def reduce_all(self, reducer: Reducer) -> None:
        """Reduce all rows."""
        for section in self.sections:
            self._reduce(reducer, section)
            reducer.end_section()

    def add_all(self, sink: BlockSink) -> None:
        """Add all exclusive values of an additive metric to `sink`, as one section."""
        self._add(sink, (0, len(self._place)))

    def parts(self, count: int) -> list[list[Section]]:
        """Return all sections in at most `count` parts of neighbouring ones."""
        bounds = np.linspace(0, len(self.sections), min(count, len(self.sections)) + 1)
        return [self.sections[first:stop] for first, stop in pairwise(bounds.astype(int).tolist())]

    def part(self, sections: Sequence[Section], reducer: Reducer) -> PartOfReduction:
        """Return the reduction of neighbouring sections by an empty `reducer`."""
        totals: list[FloatArray] = []
        for section in sections:
            self._reduce(reducer, section)
            total = reducer.end_section()
            if total is not None:
                totals.append(total)
        return reducer.part(totals)

    def _reduce(self, reducer: Reducer, section: Section) -> None:
        if self.stored.additive:
            self._add(reducer, section)
            return
        for at, block in stored(self._rows, self._place, section):
            reducer.mark_missing(block)
            if self.stored.fold is Fold.MIN:
                # The minimum over no visits is stored as zero.
                reached = block if self._visits is None else self._visits(at)
                np.copyto(block, np.nan, where=reached == 0)
            reducer.add_raw(at, block)

    def _add(self, sink: BlockSink, section: Section) -> None:
        if self._families is None:
            reduce_stored(self._rows, self._place, sink, section)
        else:
            reduce_families(self._rows, self._families, sink, section)


def visits_of(rows: StoredRows, layout: TreeLayout, order: Int64Array) -> Visits:
    """Return a function for the visits of call paths.

    Parameters
    ----------
    rows : stored rows of the visits
    order : defined call path of each row number, see `TreeLayout.enumeration`
    """
    stored_at = np.full(len(layout.tree) + 1, -1, np.intp)
    stored_at[layout.rows[order[rows.numbers]]] = np.arange(len(rows.numbers))

    def of(at: Int64Array) -> FloatArray:
        place = stored_at[at]
        known = np.flatnonzero(place >= 0)
        known = known[np.argsort(place[known])]
        if np.array_equal(known, np.arange(len(at))):
            return take(rows, place)
        found = np.zeros((len(at), rows.columns))
        found[known] = take(rows, place[known])
        return found

    return of
