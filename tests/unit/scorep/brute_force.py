"""The seven reductions, value by value, as a reference for the streaming ones."""

from __future__ import annotations

import math
import statistics

import numpy as np

OVER = {
    "max": max,
    "min": min,
    "sum": math.fsum,
    "mean": lambda values: math.fsum(values) / len(values),
    "median": statistics.median,
    "geomean": lambda values: (
        0.0 if min(values) <= 0 else math.exp(math.fsum(map(math.log, values)) / len(values))
    ),
    "imbalance": lambda values: (
        max(values) * len(values) / math.fsum(values) if math.fsum(values) else math.nan
    ),
}


def longest_threads(machine, totals):
    """Return the column of the longest thread of each process, by the time of each column.

    The first thread is the longest one, unless another thread is 2 % longer.
    """
    found = []
    for columns in machine.columns():
        largest = max(totals[column] for column in columns)
        is_first = totals[columns[0]] >= 0.98 * largest
        found.append(columns[0] if is_first else max(columns, key=lambda column: totals[column]))
    return found


def reduce_longest(cells, machine, reduction, totals):
    """Reduce [rows, stored columns] to [rows], over the longest threads of processes."""
    chosen = longest_threads(machine, totals)
    return np.array([OVER[str(reduction)](row[chosen].tolist()) for row in cells])


def reduce(cells, machine, reduction, fold, *, on_gpu=False):
    """Reduce [rows, stored columns] to [rows], over the threads of processes or their streams."""
    processes = machine.stream_columns() if on_gpu else machine.columns()
    return np.array(
        [
            OVER[str(reduction)]([fold(row[columns].tolist()) for columns in processes])
            for row in cells
        ]
    )
