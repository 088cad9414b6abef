"""Values of one metric of all runs, reduced over processes, and costs of lines of call paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from callpath_modeler.arrays import Float32Array, FloatArray, IntArray
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import Metric, Reduction


@dataclass(frozen=True, slots=True)
class MetricValues:
    """One metric of all runs.

    Attributes
    ----------
    metric : the metric
    exclusive : [call paths, runs], SI base units; NaN = the call path did not occur
    total : [runs] inclusive value of the program, measured separately; NaN = not recorded
    imbalance : [call paths, runs] exclusive imbalance: the largest over the mean of the processes;
        1 = balanced, NaN = not known; None = not known for any run
    run_time : [runs] of a duration: the inclusive time of the program on the slowest process,
        for every reduction; NaN = not recorded; None = not recorded for any run
    """

    metric: Metric
    exclusive: FloatArray
    total: FloatArray
    imbalance: Float32Array | None = None
    run_time: FloatArray | None = None

    def of_runs(self, chosen: IntArray) -> MetricValues:
        """Return the values of some runs."""
        return MetricValues(
            self.metric,
            self.exclusive[:, chosen],
            self.total[chosen],
            None if self.imbalance is None else self.imbalance[:, chosen],
            None if self.run_time is None else self.run_time[chosen],
        )

    def of_rows(self, chosen: IntArray) -> MetricValues:
        """Return the values of some call paths; those of the program stay."""
        imbalance = None if self.imbalance is None else self.imbalance[chosen]
        return replace(self, exclusive=self.exclusive[chosen], imbalance=imbalance)

    def means(self, reduction: Reduction) -> FloatArray:
        """Return means over processes, [call paths, runs], from maxima and imbalance.

        If either is not known, the values are returned as they are.
        """
        if reduction is Reduction.MAX and self.imbalance is not None:
            return self.exclusive / np.nan_to_num(self.imbalance, nan=1.0)
        return self.exclusive


def inclusive_values(tree: CallTree, exclusive: FloatArray) -> FloatArray:
    """Return sums over subtrees [n, ...]; a call path that did not occur stays NaN."""
    missing = np.isnan(exclusive)
    if not missing.any():
        return tree.inclusive(exclusive)
    total = tree.inclusive(np.where(missing, 0.0, exclusive))
    total[tree.inclusive((~missing).astype(np.float64)) == 0] = np.nan
    return total


class LineCosts(Struct, frozen=True, eq=False):
    """One metric of the lines of one run.

    A line of a function that several call paths call has an entry for each of them. Entries of the
    same call path and line are added.

    Attributes
    ----------
    row : [entries] call path
    file : [entries] index into `files`
    line : [entries] line in the source, from 1
    files : source files, as the profile names them
    exclusive : [entries] exclusive cost of the line in this call path; NaN = not known
    """

    row: NDArray[np.integer]
    file: NDArray[np.integer]
    line: NDArray[np.integer]
    files: tuple[str, ...]
    exclusive: FloatArray

    def scaled(self, factor: float) -> LineCosts:
        """Return the costs in another unit."""
        return structs.replace(self, exclusive=self.exclusive * factor)

    def moved(self, place: IntArray) -> LineCosts:
        """Return the costs on another call tree.

        Parameters
        ----------
        place : [call paths] new row of each call path; negative = it is excluded
        """
        row = place[self.row]
        kept = row >= 0
        return LineCosts(
            row[kept], self.file[kept], self.line[kept], self.files, self.exclusive[kept]
        )

    def of_rows(self, rows: NDArray[np.integer]) -> dict[tuple[str, int], float]:
        """Return the sums over some call paths, by file and line."""
        chosen = np.isin(self.row, rows) & ~np.isnan(self.exclusive)
        places = zip(self.file[chosen].tolist(), self.line[chosen].tolist(), strict=True)
        sums: dict[tuple[str, int], float] = {}
        for (file, line), cost in zip(places, self.exclusive[chosen].tolist(), strict=True):
            place = self.files[file], line
            sums[place] = sums.get(place, 0.0) + cost
        return sums


RunLines = Mapping[str, LineCosts]
"""Costs of the lines of one run, by metric name."""
