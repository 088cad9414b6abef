"""Processes and threads of records, as columns of a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from callpath_modeler.arrays import IntArray
from cpmodel_caliper.contents import Contents


class RecordLocations:
    """Columns of values: one for each thread of each process with a record.

    Attributes
    ----------
    columns : number of columns; each process has at least one
    threads : largest number of threads of a process; 0 = unknown
    """

    def __init__(self, contents: Contents, ranks: Sequence[int], *, per_process: bool) -> None:
        count = len(contents.node)
        process = np.zeros(count, np.intp)
        if per_process and ranks:
            # Records without a rank were excluded before if others have one.
            known = [ranks[0] if rank is None else rank for rank in contents.rank]
            process = np.searchsorted(ranks, known).astype(np.intp)
        self._processes = max(1, len(ranks))
        numbers = contents.thread
        # Records without a thread belong to the first thread.
        first = min(numbers.values(), default=0)
        thread = np.zeros(count, np.intp)
        if numbers:
            known_threads = [numbers.get(k, first) for k in range(count)]
            thread = np.unique(known_threads, return_inverse=True)[1]
        width = int(thread.max(initial=0)) + 1
        of_all = np.arange(self._processes) * width
        used, column = np.unique(np.append(process * width + thread, of_all), return_inverse=True)
        self._of_record = column[:count].astype(np.intp)
        self.columns = len(used)
        self._starts = np.flatnonzero(np.diff(used // width, prepend=-1))
        self.threads = int(np.bincount(used // width).max()) if numbers else 0

    def of(self, records: IntArray) -> IntArray:
        """Return the column of each record."""
        return self._of_record[records]

    @property
    def process(self) -> IntArray:
        """Number of the process of each column, ascending, [columns]."""
        starts = np.zeros(self.columns, np.intp)
        starts[self._starts] = 1
        return np.cumsum(starts) - 1
