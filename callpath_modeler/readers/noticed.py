"""Counts of unusual values in a profile."""

from __future__ import annotations

from dataclasses import dataclass, field

from callpath_modeler.arrays import FloatArray, IntArray


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
