"""Counts of invalid values in a profile."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Noticed:
    """Counts of invalid values, updated while blocks are added.

    Attributes
    ----------
    not_finite : number of values that are NaN or infinite
    negative : number of exclusive values that are negative beyond rounding
    stored_negative : number of stored values that are negative
    worst, worst_row : lowest negative value, and its row in the call tree
    """

    not_finite: int = 0
    negative: int = 0
    stored_negative: int = 0
    worst: float = 0.0
    worst_row: int = -1

    def add(self, later: Noticed) -> None:
        """Add the counts of rows that come later in the file."""
        self.not_finite += later.not_finite
        self.negative += later.negative
        self.stored_negative += later.stored_negative
        if later.worst < self.worst:
            self.worst, self.worst_row = later.worst, later.worst_row
