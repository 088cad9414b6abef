"""Costs of the lines of call paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class LineCosts:
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
        return replace(self, exclusive=self.exclusive * factor)

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
