"""Reductions over processes that are read one by one, in the memory of a single process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.base import Reduced
from callpath_modeler.readers.reductions import Fold, Noticed, statistic_of_present
from cpmodel_hpctoolkit.locations import Location, Processes

Read = Callable[[Location], tuple[FloatArray, float]]
"""Function that returns the exclusive values of a location, [call paths], NaN = unusable, and its
total.
"""

_HELD = 1 << 26
"""Maximum size of values in memory, in bytes, if a statistic needs all processes together."""


def reduce_processes(
    processes: Processes, read: Read, call_paths: int, fold: Fold, reduction: Reduction
) -> Reduced:
    """Return values that are folded over threads, and then reduced over processes.

    Parameters
    ----------
    processes : locations of each process
    read : function that returns the values of a location
    call_paths : number of call paths
    fold : reduction from threads to a process
    """
    totals = np.empty((1, len(processes)))
    beside = []
    if len(processes) > 1 and reduction is not Reduction.IMBALANCE:
        beside.append(_Running(call_paths, Reduction.IMBALANCE))
    if reduction is Reduction.MEDIAN:
        values = _by_blocks(processes, read, call_paths, fold, totals, beside)
    else:
        running = _Running(call_paths, reduction)
        for k, process in enumerate(processes):
            column, totals[0, k] = _folded(process, read, fold)
            for each in (running, *beside):
                each.add(column)
        values = running.result()
    uneven = beside[0].result().astype(np.float32) if beside else None
    with np.errstate(all="ignore"):
        total = float(statistic_of_present(totals, reduction)[0])
        # Counts are summed over threads. Only durations have a slowest process.
        run_time = float(np.nanmax(totals)) if fold is Fold.MAX else float("nan")
        return Reduced(values, total, uneven, run_time)


def _folded(process: tuple[Location, ...], read: Read, fold: Fold) -> tuple[FloatArray, float]:
    values, total = read(process[0])
    for thread in process[1:]:
        more, of_thread = read(thread)
        if fold is Fold.MAX:
            values, total = np.fmax(values, more), max(total, of_thread)
        else:
            values, total = _added(values, more), total + of_thread
    return values, total


def _added(first: FloatArray, second: FloatArray) -> FloatArray:
    total: FloatArray = first + second
    if np.isnan(total).any():
        total = np.where(np.isnan(first), second, np.where(np.isnan(second), first, total))
    return total


class _Running:
    """Intermediate results over the processes until now, [call paths] each."""

    def __init__(self, call_paths: int, reduction: Reduction) -> None:
        self._reduction = reduction
        self._present = np.zeros(call_paths)
        self._sum = np.zeros(call_paths)
        self._extreme = np.full(call_paths, np.nan)

    def add(self, column: FloatArray) -> None:
        """Add the values of a process."""
        if self._reduction in {Reduction.MAX, Reduction.IMBALANCE}:
            np.fmax(self._extreme, column, out=self._extreme)
        elif self._reduction is Reduction.MIN:
            np.fmin(self._extreme, column, out=self._extreme)
        if self._reduction in {Reduction.MAX, Reduction.MIN}:
            return
        present = ~np.isnan(column)
        self._present += present
        with np.errstate(divide="ignore"):
            addend = np.log(column) if self._reduction is Reduction.GEOMEAN else column
        self._sum += np.where(present, addend, 0.0)

    def result(self) -> FloatArray:
        """Return the reduced values; NaN = no process has a value."""
        with np.errstate(all="ignore"):
            match self._reduction:
                case Reduction.SUM:
                    return np.where(self._present > 0, self._sum, np.nan)
                case Reduction.MEAN:
                    return self._sum / self._present
                case Reduction.GEOMEAN:
                    return np.exp(self._sum / self._present)
                case Reduction.IMBALANCE:
                    return self._extreme / (self._sum / self._present)
                case _:
                    return self._extreme


def _by_blocks(
    processes: Processes,
    read: Read,
    call_paths: int,
    fold: Fold,
    totals: FloatArray,
    beside: Sequence[_Running],
) -> FloatArray:
    """Return the medians. Everything is read once for each block of call paths.

    Parameters
    ----------
    beside : other results that get all processes in the same pass
    """
    values = np.empty(call_paths)
    for first, stop in _blocks(call_paths, len(processes)):
        block = np.empty((stop - first, len(processes)))
        for k, process in enumerate(processes):
            column, totals[0, k] = _folded(process, read, fold)
            block[:, k] = column[first:stop]
            for each in beside if first == 0 else ():
                each.add(column)
        values[first:stop] = statistic_of_present(block, Reduction.MEDIAN)
    return values


def _blocks(call_paths: int, processes: int) -> Iterator[tuple[int, int]]:
    step = max(1, _HELD // (8 * max(1, processes)))
    for first in range(0, call_paths, step):
        yield first, min(first + step, call_paths)


def clear(values: FloatArray, noise: FloatArray | float, noticed: Noticed) -> None:
    """Replace negative values by zero, and unusable ones by NaN, in place; count both.

    Parameters
    ----------
    values : [call paths]
    noise : [call paths] or one for all, maximum size of negative values by rounding
    """
    unusable = ~np.isfinite(values)
    if unusable.any():
        noticed.not_finite += int(np.count_nonzero(unusable))
        values[unusable] = np.nan
    below = np.flatnonzero(values < -np.abs(noise))
    if len(below):
        noticed.negative += len(below)
        row = int(below[np.argmin(values[below])])
        if values[row] < noticed.worst:
            noticed.worst, noticed.worst_row = float(values[row]), row
    np.maximum(values, 0.0, out=values)
