"""Reductions over processes that are read one by one, in the memory of a single process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.base import Reduced
from callpath_modeler.readers.reductions import Fold, Noticed, statistic_of_present
from cpmodel_hpctoolkit.names import Location, Processes


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Exclusive values of one location; NaN = unusable.

    Attributes
    ----------
    values : [call paths], or [k] with `rows`
    rows : [k] call paths of the values, ascending; all others are zero. None = all call paths
    """

    values: FloatArray
    rows: IntArray | None = None

    def of_all(self, call_paths: int) -> FloatArray:
        """Return one value per call path."""
        if self.rows is None:
            return self.values
        values = np.zeros(call_paths)
        values[self.rows] = self.values
        return values


Read = Callable[[Location], tuple[Column, float]]
"""Function that returns the values of a location, and its total."""

_HELD = 1 << 26
"""Maximum size of values in memory, in bytes, if a statistic needs all processes together."""
_TOGETHER = 1 << 18
"""Number of values of processes with few values that are added together."""


def reduce_processes(
    processes: Processes,
    read: Read,
    call_paths: int,
    fold: Fold,
    reduction: Reduction,
    longest: Sequence[int] = (),
    noticed: Noticed | None = None,
) -> Reduced:
    """Return values that are folded over threads, and then reduced over processes.

    Parameters
    ----------
    processes : locations of each process
    read : function that returns the values of a location
    call_paths : number of call paths
    fold : reduction from threads to a process
    longest : [processes] number of the longest thread of each process; needed if `fold` uses it
    noticed : counts of call paths that only other threads than the longest ones run
    """
    totals = np.empty((1, len(processes)))
    largest = np.empty(len(processes))
    threads = _Threads(processes, read, call_paths, fold, longest)
    if noticed is not None:
        threads.beside = np.zeros(call_paths), np.zeros(call_paths)
    beside = []
    if len(processes) > 1 and reduction is not Reduction.IMBALANCE:
        beside.append(_Running(call_paths, Reduction.IMBALANCE))
    if reduction is Reduction.MEDIAN:
        values = _by_blocks(threads, call_paths, totals, largest, beside)
    else:
        running = _Running(call_paths, reduction)
        for k in range(len(processes)):
            column, totals[0, k], largest[k] = threads.folded(k)
            for each in (running, *beside):
                each.add(column)
        values = running.result()
    if noticed is not None and threads.beside is not None:
        of_longest, of_others = threads.beside
        others = np.flatnonzero(of_longest == 0)
        noticed.add_others(others, of_others[others])
    uneven = beside[0].result().astype(np.float32) if beside else None
    with np.errstate(all="ignore"):
        total = float(statistic_of_present(totals, reduction)[0])
        # Counts are summed over threads. Only durations have a slowest process.
        run_time = float("nan") if fold is Fold.SUM else float(np.nanmax(largest))
        return Reduced(values, total, uneven, run_time)


@dataclass(slots=True)
class _Threads:
    """The threads of each process, and how they are folded; see `reduce_processes`.

    Attributes
    ----------
    beside : [call paths] largest values of the longest threads, and of the others; None = not
        needed
    """

    processes: Processes
    read: Read
    call_paths: int
    fold: Fold
    longest: Sequence[int]
    beside: tuple[FloatArray, FloatArray] | None = None

    def folded(self, number: int) -> tuple[Column, float, float]:
        """Return the values of a process, their total, and the largest total of a thread."""
        process = self.processes[number]
        column, total = self.read(process[0])
        largest = total
        self._note(number, 0, column)
        for thread, location in enumerate(process[1:], start=1):
            more, of_thread = self.read(location)
            largest = max(largest, of_thread)
            self._note(number, thread, more)
            if self.fold is Fold.LONGEST:
                if thread == self.longest[number]:
                    column, total = more, of_thread
                continue
            first, second, rows = _aligned(column, more, self.call_paths)
            if self.fold is Fold.MAX:
                column, total = Column(np.fmax(first, second), rows), largest
            else:
                column, total = Column(_added(first, second), rows), total + of_thread
        return column, total, largest

    def _note(self, process: int, thread: int, column: Column) -> None:
        """Note the values of a thread, for call paths that only other threads run."""
        if self.beside is None:
            return
        largest = self.beside[thread != self.longest[process]]
        rows = slice(None) if column.rows is None else column.rows
        largest[rows] = np.fmax(largest[rows], column.values)


def _aligned(
    first: Column, second: Column, call_paths: int
) -> tuple[FloatArray, FloatArray, IntArray | None]:
    """Return the values of both for the same call paths, and these."""
    if first.rows is None or second.rows is None:
        return first.of_all(call_paths), second.of_all(call_paths), None
    rows = np.union1d(first.rows, second.rows)
    one, other = np.zeros(len(rows)), np.zeros(len(rows))
    one[np.searchsorted(rows, first.rows)] = first.values
    other[np.searchsorted(rows, second.rows)] = second.values
    return one, other, rows


def _added(first: FloatArray, second: FloatArray) -> FloatArray:
    total: FloatArray = first + second
    if np.isnan(total).any():
        total = np.where(np.isnan(first), second, np.where(np.isnan(second), first, total))
    return total


class _Running:
    """Intermediate results over the processes until now, [call paths] each.

    Of a process with few values, only these are added. There may be 10^4 processes with 10^6 call
    paths, so zeros of all these processes are added together at the end.
    """

    def __init__(self, call_paths: int, reduction: Reduction) -> None:
        self._reduction = reduction
        self._present = np.zeros(call_paths)
        self._sum = np.zeros(call_paths)
        self._extreme = np.full(call_paths, np.nan)
        self._few = 0  # number of processes with few values
        self._told = np.zeros(call_paths, np.int64)  # number of these that have a value here
        self._waiting: list[Column] = []
        self._held = 0

    def add(self, column: Column) -> None:
        """Add the values of a process."""
        if column.rows is not None:
            self._few += 1
            self._waiting.append(column)
            self._held += len(column.values)
            if self._held > _TOGETHER:
                self._add_waiting()
            return
        self._add_waiting()
        values = column.values
        if self._reduction in {Reduction.MAX, Reduction.IMBALANCE}:
            np.fmax(self._extreme, values, out=self._extreme)
        elif self._reduction is Reduction.MIN:
            np.fmin(self._extreme, values, out=self._extreme)
        if self._reduction in {Reduction.MAX, Reduction.MIN}:
            return
        present, addend = self._addend(values)
        self._present += present
        self._sum += addend

    def _addend(self, values: FloatArray) -> tuple[BoolArray, FloatArray]:
        present = ~np.isnan(values)
        with np.errstate(divide="ignore"):
            addend = np.log(values) if self._reduction is Reduction.GEOMEAN else values
        return present, np.where(present, addend, 0.0)

    def _add_waiting(self) -> None:
        """Add processes with few values, one after the other."""
        if not self._waiting:
            return
        rows = np.concatenate([column.rows for column in self._waiting if column.rows is not None])
        values = np.concatenate([column.values for column in self._waiting])
        self._waiting, self._held = [], 0
        call_paths = len(self._told)
        self._told += np.bincount(rows, minlength=call_paths)
        if self._reduction in {Reduction.MAX, Reduction.IMBALANCE}:
            np.fmax.at(self._extreme, rows, values)
        elif self._reduction is Reduction.MIN:
            np.fmin.at(self._extreme, rows, values)
        if self._reduction in {Reduction.MAX, Reduction.MIN}:
            return
        present, addend = self._addend(values)
        self._present += np.bincount(rows, present, call_paths)
        np.add.at(self._sum, rows, addend)

    def _add_zeros(self) -> None:
        """Add the zeros of processes with few values."""
        self._add_waiting()
        zeros = self._few - self._told
        self._few, self._told = 0, np.zeros_like(self._told)
        self._present += zeros
        some = zeros > 0
        if self._reduction in {Reduction.MAX, Reduction.IMBALANCE}:
            self._extreme[some] = np.fmax(self._extreme[some], 0.0)
        elif self._reduction is Reduction.MIN:
            self._extreme[some] = np.fmin(self._extreme[some], 0.0)
        if self._reduction is Reduction.GEOMEAN:
            self._sum[some] = -np.inf

    def result(self) -> FloatArray:
        """Return the reduced values; NaN = no process has a value."""
        self._add_zeros()
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
    threads: _Threads,
    call_paths: int,
    totals: FloatArray,
    largest: FloatArray,
    beside: Sequence[_Running],
) -> FloatArray:
    """Return the medians. Everything is read once for each block of call paths.

    Parameters
    ----------
    beside : other results that get all processes in the same pass
    """
    values, processes = np.empty(call_paths), len(threads.processes)
    for first, stop in _blocks(call_paths, processes):
        block = np.empty((stop - first, processes))
        for k in range(processes):
            column, totals[0, k], largest[k] = threads.folded(k)
            block[:, k] = column.of_all(call_paths)[first:stop]
            for each in beside if first == 0 else ():
                each.add(column)
        values[first:stop] = statistic_of_present(block, Reduction.MEDIAN)
    return values


def _blocks(call_paths: int, processes: int) -> Iterator[tuple[int, int]]:
    step = max(1, _HELD // (8 * max(1, processes)))
    for first in range(0, call_paths, step):
        yield first, min(first + step, call_paths)


def clear(column: Column, noise: FloatArray | float, noticed: Noticed) -> None:
    """Replace negative values by zero, and unusable ones by NaN, in place; count both.

    Parameters
    ----------
    column : the values, [k]
    noise : [k] or one for all, maximum size of negative values by rounding
    """
    values = column.values
    unusable = ~np.isfinite(values)
    if np.count_nonzero(unusable):
        noticed.not_finite += int(np.count_nonzero(unusable))
        values[unusable] = np.nan
    below = np.flatnonzero(values < -np.abs(noise))
    if len(below):
        noticed.negative += len(below)
        row = int(below[np.argmin(values[below])])
        if values[row] < noticed.worst:
            call_path = row if column.rows is None else int(column.rows[row])
            noticed.worst, noticed.worst_row = float(values[row]), call_path
    np.maximum(values, 0.0, out=values)
