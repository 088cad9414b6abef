"""Sums over groups of call paths, for each thread."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from callpath_modeler.arrays import FloatArray, Int64Array, IntArray
from callpath_modeler.readers.base import ThreadSums
from callpath_modeler.readers.reductions import BlockSink, Columns, is_plain


class GroupSums(BlockSink):
    """Sums of blocks of exclusive values over groups of call paths, for each thread.

    Missing values count as zero.
    """

    def __init__(self, columns: Columns, group: IntArray, groups: int) -> None:
        super().__init__(columns)
        self._group = group
        self._sums = np.zeros((groups, columns.stored))

    def add(
        self,
        rows: Int64Array,
        block: FloatArray,
        within: Callable[[IntArray], FloatArray] | None = None,
    ) -> None:
        """Add the values of call paths, as described in `BlockSink.add`."""
        if not len(rows):
            return
        if not is_plain(block):
            self._clear(rows, block, within)
            block[np.isnan(block)] = 0.0
        group = self._group[rows]
        order = np.argsort(group, kind="stable")
        order = order[np.searchsorted(group[order], 0) :]
        if not len(order):
            return
        of_block = group[order]
        begins = np.flatnonzero(np.diff(of_block, prepend=-1))
        # Damaged values may be huge.
        with np.errstate(over="ignore"):
            self._sums[of_block[begins]] += np.add.reduceat(block[order], begins, axis=0)

    def result(self, scale: float = 1.0) -> ThreadSums:
        """Return the sums; no more blocks can be added.

        Parameters
        ----------
        scale : factor to SI base units
        """
        process, column = self._columns.threads_in_order
        is_sorted = np.array_equal(column, np.arange(self._columns.stored))
        # The sums may take most of the memory, so they are copied only if they must be.
        values = self._sums if is_sorted else self._sums[:, column]
        with np.errstate(over="ignore"):
            values *= scale
        return ThreadSums(values, process)
