"""Columns of cells that are collected many rows at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from msgspec import structs

from callpath_modeler.input_limits import InputLimits, Work
from callpath_modeler.numerals import decimal_of
from callpath_modeler.readers.unpacking import Budget

Cells = Mapping[str, Sequence[object]]
"""Columns of equal length, by title."""

ONE_ROW_PER_VALUE = "write one row per value, with columns metric and value"

CHUNK = 1 << 12
"""Number of rows that are collected together, so that they stay in the cache."""

LEAST_OF_A_CELL, _OBJECT = 16, 60
"""Memory of a list entry, including the spare room of the list, and of its object, in bytes."""

_FEW, _MANY = 1 << 10, 1 << 18
"""Limits of the texts of a column that are stored once: for numbers, and for other texts."""


_PACKED = 3
"""So many bytes of a text a byte of a packed table counts as; equal texts pack to few bytes."""


def limits_of(path: Path, budget: Budget | None) -> InputLimits:
    """Return the limits for a table; `budget` is that of a packed one."""
    limits = InputLimits.of(path)
    return limits if budget is None else structs.replace(limits, size=_PACKED * limits.size)


class CellColumns:
    """CellColumns that grow. Equal texts are stored once, because tables repeat call paths often.

    Attributes
    ----------
    cells : columns by title, in order of appearance; None = no value
    rows : number of rows

    Parameters
    ----------
    limits : limit of the number of cells, of rows times columns
    budget : memory limit of a packed file for its cells
    """

    def __init__(self, limits: InputLimits, budget: Budget | None = None) -> None:
        self._limits, self._budget, self._memory = limits, budget, 0
        self.cells: dict[str, list[object]] = {}
        self.rows = 0
        self._known: dict[str, dict[object, object]] = {}

    def extend(self, columns: Cells, rows: int) -> None:
        """Append `rows` rows, given as columns of that length."""
        titles = self.cells.keys() | columns.keys()
        self._limits.check(Work.TABLE, len(titles) * (self.rows + rows), ONE_ROW_PER_VALUE)
        for title in columns:
            if title not in self.cells:
                self.cells[title] = [None] * self.rows
                self._known[title] = {}
        for title, cells in self.cells.items():
            found = columns.get(title)
            shared = [None] * rows if found is None else self._shared(title, found)
            cells.extend(shared)
            if self._budget is not None:
                self._memory += LEAST_OF_A_CELL * rows + _new_memory(shared)
                self._budget.check_memory(self._memory)
        self.rows += rows
        # The number of each row is stored as well.
        self._memory += LEAST_OF_A_CELL * rows

    def _shared(self, title: str, cells: Sequence[object]) -> Sequence[object]:
        known = self._known[title]
        if len(known) >= _FEW and is_number(cells[0]):
            return cells
        kept = known.setdefault if len(known) < _MANY else known.get
        return [kept(cell, cell) if type(cell) is str else cell for cell in cells]


def _new_memory(cells: Sequence[object]) -> int:
    """Return the approximate memory of the objects in cells, in bytes; equal objects count once."""
    distinct = {id(cell): cell for cell in cells}.values()
    return sum(_OBJECT + (len(cell) if isinstance(cell, str) else 0) for cell in distinct)


def is_number(cell: object) -> bool:
    """Return whether one cell is a number; an array for each would take three times as long."""
    try:
        _ = decimal_of(cell) if isinstance(cell, str) else float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def columns_of(rows: Sequence[Mapping[str, object]], limits: InputLimits) -> Cells:
    """Return the columns of rows that name their cells; None = no value.

    Raises
    ------
    InputError
        If there are too many cells, of rows times columns.
    """
    titles = dict.fromkeys(chain.from_iterable(rows))
    limits.check(Work.TABLE, len(titles) * len(rows), ONE_ROW_PER_VALUE)
    return {title: [row.get(title) for row in rows] for title in titles}
