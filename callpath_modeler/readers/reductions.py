"""Reductions over locations: first the threads of a process, then the processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from callpath_modeler.arrays import BoolArray, Float32Array, FloatArray, Int64Array, IntArray
from callpath_modeler.profile.schema import Reduction


@dataclass(slots=True)
class Noticed:
    """Counts of unusual values, updated while blocks are added.

    Attributes
    ----------
    not_finite : number of values that are NaN or infinite
    negative : number of exclusive values that are negative beyond rounding
    stored_negative : number of stored values that are negative
    worst, worst_row : lowest negative value, and its row in the call tree
    others : largest time of a thread in each call path that only other threads than the longest
        ones run, by its row
    """

    not_finite: int = 0
    negative: int = 0
    stored_negative: int = 0
    worst: float = 0.0
    worst_row: int = -1
    others: dict[int, float] = field(default_factory=dict)

    def add_others(self, rows: IntArray, largest: FloatArray) -> None:
        """Count call paths in which no longest thread of a process has time.

        Parameters
        ----------
        rows : [k] their rows in the call tree
        largest : [k] largest time of a thread in each; 0 and NaN = no thread has time
        """
        used = largest > 0
        self.others |= dict(zip(rows[used].tolist(), largest[used].tolist(), strict=True))

    def add(self, later: Noticed) -> None:
        """Add the counts of rows that come later in the file."""
        self.not_finite += later.not_finite
        self.negative += later.negative
        self.stored_negative += later.stored_negative
        if later.worst < self.worst:
            self.worst, self.worst_row = later.worst, later.worst_row
        self.others |= later.others


Place = slice | IntArray

_NOISE = 1e-9
"""Relative difference of inclusive values below which it is rounding."""

_INFINITE = np.float64(np.inf).view(np.uint64)

_THE_VALUE_ITSELF = frozenset(
    (Reduction.MAX, Reduction.MIN, Reduction.SUM, Reduction.MEAN, Reduction.MEDIAN)
)
"""Reductions that leave a single value as it is, to the last digit."""


OF_THE_FIRST = 0.02
"""Relative difference of the totals of two threads that clocks and samples explain."""


class Fold(Enum):
    """Statistic over the threads of a process.

    Attributes
    ----------
    LONGEST : the value of the longest thread, so that call paths add up to the time of this thread
    MAX, SUM, MIN : statistic of each call path on its own
    """

    LONGEST = "longest"
    MAX = "max"
    SUM = "sum"
    MIN = "min"


class Columns(Struct, frozen=True):
    """The columns of a block of values that belong to processes.

    Attributes
    ----------
    stored : number of columns of a block, including unused ones
    processes : number of processes
    threads : largest number of threads in a process
    layers : for the first, second, ... thread: the processes that have such a thread, and its
        columns
    longest : intp [processes] column of the longest thread of each process; None = not known
    """

    stored: int
    processes: int
    threads: int
    layers: tuple[tuple[Place, Place], ...]
    longest: IntArray | None = None

    @property
    def threads_in_order(self) -> tuple[IntArray, IntArray]:
        """Process and column of every thread, each [threads], in order of the processes."""
        of_layers = [
            (np.arange(self.processes)[processes], np.arange(self.stored)[columns])
            for processes, columns in self.layers
        ]
        process, column = (np.concatenate(each) for each in zip(*of_layers, strict=True))
        order = np.argsort(process, kind="stable")
        return process[order], column[order]

    @property
    def used(self) -> Place:
        """Columns of a block that belong to processes."""
        return _place(np.sort(self.threads_in_order[1]), self.stored)

    @classmethod
    def of(cls, process: NDArray[np.integer]) -> Columns:
        """Return the columns of locations.

        Parameters
        ----------
        process : [columns] number of the process of each column; negative = the column is not used

        Raises
        ------
        ValueError
            If no column is used.
        """
        counting = np.flatnonzero(process >= 0)
        if not len(counting):
            raise ValueError("no location is a thread of a process")
        called, number = np.unique(process[counting], return_inverse=True)
        by_process = np.argsort(number, kind="stable")
        columns, number = counting[by_process], number[by_process]
        first = np.searchsorted(number, np.arange(len(called)))
        thread = np.arange(len(number)) - first[number]
        threads = int(thread.max()) + 1
        layers = tuple(
            (_place(number[thread == t], len(called)), _place(columns[thread == t], len(process)))
            for t in range(threads)
        )
        return cls(len(process), len(called), threads, layers)

    def with_longest(self, totals: FloatArray) -> Columns:
        """Return the same columns, with the longest thread of each process.

        This thread gives the time of its process, because threads run side by side. The first
        thread calls the others and MPI. Therefore it is the longest one, unless another thread is
        clearly longer. Otherwise clocks and samples would decide it.

        Parameters
        ----------
        totals : [stored columns] time of each thread; NaN = not known
        """
        process, column = self.threads_in_order
        known = np.nan_to_num(totals)[column]
        begins = np.flatnonzero(np.diff(process, prepend=-1))
        # The stable order keeps the first of equal threads in front.
        order = np.lexsort((-known, process))
        longest, first = order[begins], begins
        is_first = known[first] >= (1 - OF_THE_FIRST) * known[longest]
        return structs.replace(self, longest=column[np.where(is_first, first, longest)])

    def of_processes(self, is_used: BoolArray) -> Columns:
        """Return the columns of some processes, [processes] = True, in blocks of the same width."""
        process, column = self.threads_in_order
        number = np.full(self.stored, -1, np.intp)
        number[column] = np.where(is_used[process], process, -1)
        longest = None if self.longest is None else self.longest[is_used]
        return structs.replace(Columns.of(number), longest=longest)

    def fold(self, block: FloatArray, how: Fold) -> FloatArray:
        """Return one value per process, [rows, processes].

        The result is a view of `block` if each process has one thread.

        Parameters
        ----------
        block : [rows, stored columns]; NaN = missing
        how : statistic over the threads of a process

        Raises
        ------
        ValueError
            If the longest threads are needed, but not known.
        """
        processes, columns = self.layers[0]
        if len(self.layers) == 1:
            return block[:, columns]
        if how is Fold.LONGEST:
            if self.longest is None:
                raise ValueError("the longest thread of each process is not known")
            return block[:, self.longest]
        combine = _combine(how)
        folded = np.array(block[:, columns])
        for processes, columns in self.layers[1:]:
            folded[:, processes] = combine(folded[:, processes], block[:, columns])
        return folded


def _combine(how: Fold) -> Callable[[FloatArray, FloatArray], FloatArray]:
    match how:
        case Fold.MAX:
            return np.fmax
        case Fold.MIN:
            return np.fmin
        case _:
            return _add


def _add(first: FloatArray, second: FloatArray) -> FloatArray:
    total: FloatArray = first + second
    if np.isnan(np.add.reduce(total, axis=None)):
        total = np.where(np.isnan(first), second, np.where(np.isnan(second), first, total))
    return total


class PartOfReduction(Struct, frozen=True, eq=False):
    """The result of a `Reducer` for some call paths, which `Reducer.join` adds to another one.

    Attributes
    ----------
    rows : int64 [k] rows in the call tree
    values : float64 [k]
    imbalance : float32 [k], or None as in `Reducer`
    totals : the totals of locations, float64 [columns], of each section that has one
    noticed : counts of invalid values
    """

    rows: Int64Array
    values: FloatArray
    imbalance: Float32Array | None
    totals: Sequence[FloatArray]
    noticed: Noticed


class BlockSink:
    """A reduction that takes blocks of exclusive values, and counts the invalid ones.

    Attributes
    ----------
    noticed : counts of invalid values in the columns of processes
    """

    def __init__(self, columns: Columns) -> None:
        self.noticed = Noticed()
        self._columns = columns
        self._used = columns.used

    def count_negative(self, stored: FloatArray) -> None:
        """Count the negative values in the columns of processes of a stored block."""
        self.noticed.stored_negative += int(np.count_nonzero(stored[:, self._used] < 0))

    def add(
        self,
        rows: Int64Array,
        block: FloatArray,
        within: Callable[[IntArray], FloatArray] | None = None,
    ) -> None:
        """Add the values of call paths.

        Parameters
        ----------
        rows : [k] rows in the call tree
        block : [k, columns] values, which are changed in place; NaN = missing
        within : function from indices of rows in `block` to the inclusive values from which `block`
            was computed
        """
        raise NotImplementedError

    def add_to_total(self, block: FloatArray) -> None:
        """Add the values of call paths [k, columns] to the total of each location."""

    def end_section(self) -> FloatArray | None:
        """Add the total of a section of the rows to that of all.

        Sections depend on the file alone. So every division of the work at their ends gives the
        same totals to the last bit.

        Returns
        -------
        The total of each location in the section, [columns]; None = there is none
        """
        return None

    def mark_missing(self, block: FloatArray) -> None:
        """Replace infinite values of a block by NaN, and count both."""
        if is_plain(block):
            return
        bad = ~np.isfinite(block)
        self.noticed.not_finite += int(np.count_nonzero(bad[:, self._used]))
        block[bad] = np.nan

    def _clear(
        self,
        rows: Int64Array,
        block: FloatArray,
        within: Callable[[IntArray], FloatArray] | None,
    ) -> None:
        """Replace negative values by zero, and infinite values by NaN."""
        odd = np.flatnonzero(np.maximum.reduce(block.view(np.uint64), axis=1) >= _INFINITE)
        values = block[odd]
        values[~np.isfinite(values)] = np.nan
        own = values[:, self._used]
        limit = 0.0 if within is None else -_NOISE * np.abs(within(odd)[:, self._used])
        count = int(np.count_nonzero(own < limit))
        if count:
            self.noticed.negative += count
            low = np.fmin.reduce(own, axis=1)
            k = int(np.nanargmin(low))
            if low[k] < self.noticed.worst:
                self.noticed.worst, self.noticed.worst_row = float(low[k]), int(rows[odd[k]])
        # Unlike a mask, this keeps NaN.
        block[odd] = np.maximum(values, 0.0)


class Reducer(BlockSink):
    """Reducer of blocks of exclusive values to one value per call path, and to a total.

    Attributes
    ----------
    reduction : statistic over processes
    values : [call paths], filled by `add`; call paths without a stored row are zero
    imbalance : [call paths] the largest over the mean of the processes; NaN = not added. None for a
        single process, or if the reduction is the imbalance
    noticed : counts of invalid values
    """

    def __init__(
        self,
        call_paths: int,
        columns: Columns,
        fold: Fold,
        reduction: Reduction,
        *,
        absent: float = 0.0,
    ) -> None:
        super().__init__(columns)
        if reduction is Reduction.IMBALANCE:
            absent = np.nan
        self.values = np.full(call_paths, absent)
        self.imbalance: Float32Array | None = None
        if columns.processes > 1 and reduction is not Reduction.IMBALANCE:
            self.imbalance = np.full(call_paths, np.nan, np.float32)
        self._fold = fold
        self.reduction = reduction
        self._total = np.zeros(columns.stored)
        self._of_section: FloatArray | None = None
        self._rows: list[Int64Array] = []

    def add(
        self,
        rows: Int64Array,
        block: FloatArray,
        within: Callable[[IntArray], FloatArray] | None = None,
    ) -> None:
        """Add the values of call paths, as described in `BlockSink.add`."""
        if not len(rows):
            return
        plain = is_plain(block)
        if not plain:
            self._clear(rows, block, within)
        folded = self._columns.fold(block, self._fold)
        values = self.values[rows] = self._statistic(block, folded, missing=not plain)
        self._rows.append(rows)
        if self._fold is Fold.LONGEST and self._columns.threads > 1:
            others = np.flatnonzero(~(folded > 0).any(axis=1))
            largest = np.fmax.reduce(block[others][:, self._columns.used], axis=1)
            self.noticed.add_others(rows[others], largest)
        if self.imbalance is not None:
            self.imbalance[rows] = imbalance(folded, values, self.reduction, missing=not plain)

    def add_raw(self, rows: Int64Array, block: FloatArray) -> None:
        """Add values that may be negative; NaN = missing."""
        folded = self._columns.fold(block, self._fold)
        self._rows.append(rows)
        self.values[rows] = self._statistic(block, folded, missing=not is_plain(block))

    def add_to_total(self, block: FloatArray) -> None:
        """Add the values of call paths [k, columns] to the total of each location."""
        total = np.add.reduce(block, axis=0)
        if np.isnan(total).any():
            total = np.nansum(block, axis=0)
        if self._of_section is None:
            self._of_section = total
        else:
            self._of_section += total

    def end_section(self) -> FloatArray | None:
        """Add the total of a section to that of all, as described in `BlockSink.end_section`."""
        of_section, self._of_section = self._of_section, None
        if of_section is not None:
            self._total += of_section
        return of_section

    def part(self, totals: Sequence[FloatArray]) -> PartOfReduction:
        """Return the values that were added.

        Parameters
        ----------
        totals : totals of the sections, as `end_section` returned them
        """
        rows = np.concatenate([np.empty(0, np.int64), *self._rows])
        uneven = None if self.imbalance is None else self.imbalance[rows]
        return PartOfReduction(rows, self.values[rows], uneven, totals, self.noticed)

    def join(self, part: PartOfReduction) -> None:
        """Add a part of another reducer; parts come in the order of their sections."""
        self.values[part.rows] = part.values
        if self.imbalance is not None and part.imbalance is not None:
            self.imbalance[part.rows] = part.imbalance
        for total in part.totals:
            self._total += total
        self.noticed.add(part.noticed)

    def total(self) -> float:
        """Return the total, with the same reduction as the values."""
        self.end_section()
        block = self._total[np.newaxis]
        folded = self._columns.fold(block, self._fold)
        return float(self._statistic(block, folded, missing=False)[0])

    def largest_total(self) -> float:
        """Return the largest total of a process; for durations, this is the run time."""
        self.end_section()
        fold = Fold.MAX if self._fold is Fold.LONGEST else self._fold
        return float(self._columns.fold(self._total[np.newaxis], fold).max())

    def _statistic(self, block: FloatArray, folded: FloatArray, *, missing: bool) -> FloatArray:
        with np.errstate(all="ignore"):
            values = statistic(folded, self.reduction)
            if missing:
                partly = np.flatnonzero(np.isnan(np.add.reduce(block, axis=1)))
                values[partly] = statistic_of_present(folded[partly], self.reduction)
        return values


def imbalance(
    folded: FloatArray, values: FloatArray, reduction: Reduction, *, missing: bool
) -> FloatArray:
    """Return the largest over the mean of each row of `folded`, [k].

    Parameters
    ----------
    folded : [k, processes]
    values : [k] result of `reduction`, so that the maximum or the mean is not computed again
    reduction : the reduction that computed `values`
    missing : True if `folded` contains NaN
    """
    with np.errstate(all="ignore"):
        if missing:
            return statistic_of_present(folded, Reduction.IMBALANCE)
        if reduction is Reduction.MAX:
            # This is faster than `np.add.reduce`, and exact enough for single precision.
            return np.asarray(values * folded.shape[1] / np.einsum("ij->i", folded))
        if reduction in {Reduction.MEAN, Reduction.SUM}:
            processes = folded.shape[1] if reduction is Reduction.SUM else 1
            return np.asarray(np.maximum.reduce(folded, axis=1) * processes / values)
        return statistic(folded, Reduction.IMBALANCE)


def is_plain(block: FloatArray) -> bool:
    """Return whether no value is negative, infinite or NaN.

    The bits of non-negative numbers have the order of the numbers. Infinity and NaN are larger, and
    a sign bit is larger than all of them. Therefore one maximum over the bits suffices.
    """
    return bool(np.maximum.reduce(block.view(np.uint64), axis=None, initial=0) < _INFINITE)


def statistic(block: FloatArray, reduction: Reduction) -> FloatArray:
    """Return the reduction of each row of `block` [k, processes], [k].

    All values must be finite. The imbalance of a row of zeros is NaN.
    """
    processes = block.shape[1]
    result: FloatArray
    match reduction:
        case Reduction.MAX:
            result = np.maximum.reduce(block, axis=1)
        case Reduction.MIN:
            result = np.minimum.reduce(block, axis=1)
        case Reduction.SUM:
            result = np.add.reduce(block, axis=1)
        case Reduction.MEAN:
            result = np.add.reduce(block, axis=1) / processes
        case Reduction.MEDIAN:
            low, high = (processes - 1) // 2, processes // 2
            ordered = np.partition(block, sorted({low, high}), axis=1)
            result = (ordered[:, low] + ordered[:, high]) / 2
        case Reduction.GEOMEAN:
            result = np.exp(np.add.reduce(np.log(block), axis=1) / processes)
        case Reduction.IMBALANCE:
            mean = np.add.reduce(block, axis=1) / processes
            result = np.maximum.reduce(block, axis=1) / mean
    return result


def statistic_of_present(block: FloatArray, reduction: Reduction) -> FloatArray:
    """Return the reduction of the values that are not NaN in each row of `block`, [k].

    NaN = all values of the row are NaN.
    """
    if block.shape[1] == 1 and reduction in _THE_VALUE_ITSELF:
        return block[:, 0].copy()
    absent = np.isnan(block)
    present = block.shape[1] - np.count_nonzero(absent, axis=1)
    some = np.maximum(present, 1)
    result: FloatArray
    match reduction:
        case Reduction.MAX:
            result = np.fmax.reduce(block, axis=1)
        case Reduction.MIN:
            result = np.fmin.reduce(block, axis=1)
        case Reduction.SUM:
            result = np.add.reduce(np.where(absent, 0.0, block), axis=1)
        case Reduction.MEAN:
            result = np.add.reduce(np.where(absent, 0.0, block), axis=1) / some
        case Reduction.MEDIAN:
            # Sorting puts NaN last.
            ordered, rows = np.sort(block, axis=1), np.arange(len(block))
            result = (ordered[rows, (present - 1) // 2] + ordered[rows, present // 2]) / 2
        case Reduction.GEOMEAN:
            logarithms = np.log(np.where(absent, 1.0, block))
            result = np.exp(np.add.reduce(logarithms, axis=1) / some)
        case Reduction.IMBALANCE:
            mean = np.add.reduce(np.where(absent, 0.0, block), axis=1) / some
            result = np.fmax.reduce(block, axis=1) / mean
    result[present == 0] = np.nan
    return result


def _place(places: IntArray, total: int) -> Place:
    """Return `places` as a slice if they are evenly spaced, because slices need no copy."""
    if len(places) == 1:
        return slice(int(places[0]), int(places[0]) + 1)
    steps = np.diff(places)
    if np.all(steps == steps[0]) and steps[0] > 0:
        start, step = int(places[0]), int(steps[0])
        return slice(start, min(total, start + step * (len(places) - 1) + 1), step)
    return places
