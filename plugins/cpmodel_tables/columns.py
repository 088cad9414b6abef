"""Columns of cells, gathered many rows at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from callpath_modeler.readers.unpacking import Budget

Cells = Mapping[str, Sequence[object]]
"""Cells by title: columns of one length."""

CHUNK = 1 << 12
"""Rows that are gathered together: they stay in the cache."""

LEAST_OF_A_CELL, _OBJECT = 16, 60
"""Bytes of a cell in its list, which is made longer than it is, and of what it points to."""

_FEW, _MANY = 1 << 10, 1 << 18
"""So many texts of a column are kept once: of numbers, which are rarely alike, and of others."""


class CellColumns:
    """Columns that grow. A text that comes again is kept once: tables repeat call paths a lot.

    Attributes
    ----------
    cells : by title, in the order in which titles come up; None = no value
    rows : how many there are

    Parameters
    ----------
    budget : of a packed file, whose cells may not take more memory than that
    """

    def __init__(self, budget: Budget | None = None) -> None:
        self._budget, self._memory = budget, 0
        self.cells: dict[str, list[object]] = {}
        self.rows = 0
        self._known: dict[str, dict[object, object]] = {}

    def extend(self, columns: Cells, rows: int) -> None:
        """Append `rows` rows, given by columns of that length."""
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
        # Of each row its number is kept as well.
        self._memory += LEAST_OF_A_CELL * rows

    def _shared(self, title: str, cells: Sequence[object]) -> Sequence[object]:
        known = self._known[title]
        if len(known) >= _FEW and _is_number(cells[0]):
            return cells
        kept = known.setdefault if len(known) < _MANY else known.get
        return [kept(cell, cell) if type(cell) is str else cell for cell in cells]


def _new_memory(cells: Sequence[object]) -> int:
    """Return about what the cells take beside their list, each text or number once."""
    distinct = {id(cell): cell for cell in cells}.values()
    return sum(_OBJECT + (len(cell) if isinstance(cell, str) else 0) for cell in distinct)


def _is_number(cell: object) -> bool:
    try:
        float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def columns_of(rows: Sequence[Mapping[str, object]]) -> Cells:
    """Return the columns of rows that name their cells; None = no value."""
    titles = dict.fromkeys(chain.from_iterable(rows))
    return {title: [row.get(title) for row in rows] for title in titles}
