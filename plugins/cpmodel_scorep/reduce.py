"""Reductions over processes, a block of call paths at a time: pure arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.profile.schema import Reduction
from cpmodel_scorep.columns import Columns, Fold

Block = NDArray[np.float64]

_NOISE = 1e-9
"""Differences of inclusive values below this share of them are rounding, not cost."""


@dataclass(slots=True)
class Noticed:
    """What was wrong with values, counted while they stream by.

    Attributes
    ----------
    not_finite : values that are NaN or infinite
    negative : exclusive values below zero beyond rounding
    worst, worst_row : the lowest of them, and its row in the call tree
    """

    not_finite: int = 0
    negative: int = 0
    worst: float = 0.0
    worst_row: int = -1


class Reducer:
    """Reduces blocks of exclusive values to one value per call path, and to a total.

    Attributes
    ----------
    values : [call paths], filled as blocks come in; call paths without a stored row are zero
    noticed : see there
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
        if reduction is Reduction.IMBALANCE:
            absent = np.nan
        self.values = np.full(call_paths, absent)
        self.noticed = Noticed()
        self._columns = columns
        self._fold = fold
        self._reduction = reduction
        self._total = np.zeros(columns.stored)

    def add(self, rows: NDArray[np.int64], block: Block, within: Block | None = None) -> None:
        """Take in the values of call paths; `block` is changed in place, NaN is missing.

        Parameters
        ----------
        rows : [k], rows in the call tree
        block : [k x columns]
        within : [k x columns], inclusive values that `block` is the remainder of
        """
        if not len(rows):
            return
        with np.errstate(over="ignore", invalid="ignore"):
            missing = bool(np.isnan(np.add.reduce(block, axis=None)))
        if np.fmin.reduce(block, axis=None) < 0:
            self._clear_negative(rows, block, within)
        self.values[rows] = self._statistic(block, missing=missing)

    def add_raw(self, rows: NDArray[np.int64], block: Block) -> None:
        """Take in values that may be negative and may be NaN where there is nothing to say."""
        self.values[rows] = self._statistic(block, missing=bool(np.isnan(block).any()))

    def add_to_total(self, block: Block) -> None:
        """Add the values of call paths [k x columns] to the total of each location."""
        total = np.add.reduce(block, axis=0)
        if np.isnan(total).any():
            total = np.nansum(block, axis=0)
        self._total += total

    def total(self) -> float:
        """Return the total, reduced like the values."""
        return float(self._statistic(self._total[np.newaxis], missing=False)[0])

    def mark_missing(self, block: Block) -> None:
        """Make infinite values of a stored block NaN and count both."""
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(np.add.reduce(block, axis=None)):
                return
        bad = ~np.isfinite(block)
        self.noticed.not_finite += int(np.count_nonzero(bad))
        block[bad] = np.nan

    def _clear_negative(self, rows: NDArray[np.int64], block: Block, within: Block | None) -> None:
        real = block < 0 if within is None else block < -_NOISE * np.abs(within)
        count = int(np.count_nonzero(real))
        if count:
            self.noticed.negative += count
            low = np.fmin.reduce(block, axis=1)
            k = int(np.nanargmin(low))
            if low[k] < self.noticed.worst:
                self.noticed.worst, self.noticed.worst_row = float(low[k]), int(rows[k])
        # Unlike a mask, this leaves NaN alone and needs no second block.
        np.maximum(block, 0.0, out=block)

    def _statistic(self, block: Block, *, missing: bool) -> NDArray[np.float64]:
        folded = self._columns.fold(block, self._fold)
        with np.errstate(all="ignore"):
            if missing:
                return statistic_of_present(folded, self._reduction)
            return statistic(folded, self._reduction)


def statistic(block: Block, reduction: Reduction) -> NDArray[np.float64]:
    """Reduce each row of `block` [k x processes]; all values are finite.

    The imbalance of a row of zeros is NaN.
    """
    processes = block.shape[1]
    result: NDArray[np.float64]
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


def statistic_of_present(block: Block, reduction: Reduction) -> NDArray[np.float64]:
    """Reduce what is not NaN in each row of `block` [k x processes]; NaN if nothing is."""
    result = np.full(len(block), np.nan)
    for k, row in enumerate(block):
        present = row[~np.isnan(row)]
        if len(present):
            result[k] = statistic(present[np.newaxis], reduction)[0]
    return result
