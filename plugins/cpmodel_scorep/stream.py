"""Blocks of values in tree order of their storage, inclusive ones made exclusive on the way.

Nothing here holds more than a few blocks, however many locations a profile has.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cpmodel_scorep.reduce import Block, Reducer
from cpmodel_scorep.rows import Rows, blocks, take
from cpmodel_scorep.tree import Layout

_SPARSE_PAYS = 16 << 20  # bytes of a metric from which a sparse product repays its import


def stored(
    rows: Rows, layout: Layout, order: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], Block]]:
    """Yield blocks as stored, as (rows of the call tree [k], values [k x columns]).

    Parameters
    ----------
    order : which defined call path each row number means, see `Layout.enumeration`
    """
    place = layout.rows[order[rows.numbers]]
    for first, stop in blocks(rows):
        block, at = rows.read(first, stop), place[first:stop]
        if at.min() < 0:
            block, at = block[at >= 0], at[at >= 0]
        yield at, block


def reduce_stored(rows: Rows, layout: Layout, order: NDArray[np.int64], reducer: Reducer) -> None:
    """Reduce exclusive values that are stored as such."""
    for at, block in stored(rows, layout, order):
        reducer.mark_missing(block)
        reducer.add(at, block)
        reducer.add_to_total(block)


def reduce_families(
    rows: Rows, others: Rows, layout: Layout, order: NDArray[np.int64], reducer: Reducer
) -> int:
    """Reduce the exclusive part of inclusive values.

    Inclusive rows are stored family by family: the callees of one call path lie together.
    One pass over the file sums them up, and the row of the caller is fetched when its family
    is complete. A family may reach over any number of blocks.

    Parameters
    ----------
    rows, others : the same rows, opened twice, because reading invalidates a block
    order : which defined call path each row number means, see `Layout.enumeration`

    Returns
    -------
    Number of stored values below zero
    """
    families = _Families(rows, others, layout, order, reducer)
    for first, stop in blocks(rows):
        families.add(first, stop)
    families.close()
    return families.below_zero


class _Families:
    def __init__(
        self, rows: Rows, others: Rows, layout: Layout, order: NDArray[np.int64], reducer: Reducer
    ) -> None:
        path = order[rows.numbers]
        n = len(layout.parents)
        self._rows, self._others, self._reducer = rows, others, reducer
        self._place = layout.rows[path]
        self._parent = layout.parents[path]
        self._tree_row = layout.rows
        self._stored_at = np.full(n, -1, np.intp)
        self._stored_at[path] = np.arange(len(path))
        counted = self._place >= 0
        self._all_counted = bool(counted.all())
        has_callees = np.zeros(n + 1, np.bool_)
        has_callees[self._parent[counted]] = True
        self._is_leaf = counted & ~has_callees[path]
        # Values with callees are kept out of the family sums of detached call paths.
        self._root_total = counted & (self._parent < 0)
        self._carry: Block | None = None
        self._carried = -1
        self._sum = _family_sums if len(path) * rows.columns * 8 < _SPARSE_PAYS else _sparse_sums
        self.below_zero = 0

    def add(self, first: int, stop: int) -> None:
        """Take in the stored rows from `first` to `stop`."""
        block = self._rows.read(first, stop)
        reducer = self._reducer
        if np.fmin.reduce(block, axis=None) < 0:
            self.below_zero += int(np.count_nonzero(block < 0))
        reducer.mark_missing(block)
        roots = self._root_total[first:stop]
        if roots.any():
            reducer.add_to_total(block[roots])
        parent = self._parent[first:stop]
        starts = np.flatnonzero(np.diff(parent, prepend=parent[0] - 1))
        callers = parent[starts]
        weights = None if self._all_counted else (self._place[first:stop] >= 0).astype(float)
        sums = self._sum(block, starts, weights)
        if self._carry is not None and callers[0] == self._carried:
            sums[0] += self._carry[0]
        elif self._carry is not None:
            self._finish(np.array([self._carried]), self._carry, first, block)
        self._finish(callers[:-1], sums[:-1], first, block)
        self._carry, self._carried = sums[-1:].copy(), int(callers[-1])
        leaf = self._is_leaf[first:stop]
        reducer.add(self._place[first:stop][leaf], block[leaf])

    def close(self) -> None:
        """Finish the last family."""
        if self._carry is not None:
            nothing = np.empty((0, self._rows.columns))
            self._finish(np.array([self._carried]), self._carry, 0, nothing)

    def _finish(self, callers: NDArray[np.int64], sums: Block, first: int, block: Block) -> None:
        """Reduce what is left of callers when the sums of their callees are known.

        `block` holds the stored rows from `first` on; callers found there are not read again.
        """
        wanted = (callers >= 0) & (self._tree_row[callers] >= 0)
        if not wanted.all():
            callers, sums = callers[wanted], sums[wanted]
        at = self._stored_at[callers]
        own = np.empty(sums.shape)
        inside = (at >= first) & (at < first + len(block))
        own[inside] = block[at[inside] - first]
        outside = np.flatnonzero(~inside)
        outside = outside[np.argsort(at[outside])]
        absent = int(np.searchsorted(at[outside], 0))
        own[outside[:absent]] = 0.0
        if absent < len(outside):
            own[outside[absent:]] = take(self._others, at[outside[absent:]])
        if self._reducer.noticed.not_finite:
            own[~np.isfinite(own)] = np.nan
        # The sums are not needed any more, and a fresh block would cost page faults.
        np.subtract(own, sums, out=sums)
        self._reducer.add(self._tree_row[callers], sums, own)


def _family_sums(
    block: Block, starts: NDArray[np.intp], weights: NDArray[np.float64] | None
) -> Block:
    weighted = block if weights is None else block * weights[:, np.newaxis]
    return np.add.reduceat(weighted, starts, axis=0)


def _sparse_sums(
    block: Block, starts: NDArray[np.intp], weights: NDArray[np.float64] | None
) -> Block:
    from scipy.sparse import csr_array

    n = len(block)
    ones = np.ones(n) if weights is None else weights
    bounds = np.append(starts, n)
    sums: Block = csr_array((ones, np.arange(n), bounds), shape=(len(starts), n)) @ block
    return sums


def reduce_subtrees(rows: Rows, layout: Layout, order: NDArray[np.int64], reducer: Reducer) -> None:
    """Reduce the inclusive sums of exclusive values, from the last call path to the first.

    Going backwards, sums are pending for callers of finished call paths only: one row per
    level at most.
    """
    tree = layout.tree
    place = layout.rows[order[rows.numbers]]
    stored_at = np.full(len(tree), -1, np.intp)
    stored_at[place[place >= 0]] = np.flatnonzero(place >= 0)
    step = max(1, (1 << 21) // (8 * rows.columns))
    pending: dict[int, Block] = {}
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
