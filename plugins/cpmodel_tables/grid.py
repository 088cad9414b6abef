"""Raw tables of a file: titles, cells and line numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import structs

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import InputError
from callpath_modeler.printable import printable, shortened
from callpath_modeler.support.input_limits import (
    Budget,
    InputLimits,
    Work,
    budget_of,
    memory_of_json,
    packed_budget,
)
from callpath_modeler.units import are_plain, decimal_of
from cpmodel_tables.text import COPY_IT_AGAIN, json_of, opened_text

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


PARAMETERS = ("params", "parameters")
"""Keys of JSON Lines that may contain all parameters as an object."""

HINT = (
    "a table has a column callpath, one per parameter, e.g. p, and one per metric, or metric "
    "and value"
)

_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})
_MANY_CELLS = 1000
_MOST_COLUMNS = 20_000
_PARQUET_TEXT = ("string", "large_string")
_AT_ONCE = 1 << 20
"""Number of characters of JSON Lines that are decoded together."""

_MOST_AT_ONCE = 1 << 28
"""Number of bytes of values that are decoded together."""

_MANY_OBJECTS = msgspec.json.Decoder(dict[str, object])


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of a table.

    Attributes
    ----------
    path : file of the table
    columns : cells by title: text from CSV, any value from JSON; None = no value
    lines : [rows] line number of each row
    parameters : titles that the file declares as parameters
    units : units by title that the file states elsewhere
    place : unit of `lines`, such as a line or a row
    is_result : whether the file is known to be a table of results, for any titles
    creator : tool that wrote the file, or ""
    has_lists : whether rows are values of lists, whose numbers are those of no run
    derived : how columns were computed that the file does not have, by title
    time, repetition : titles of the columns with these roles, as the user states; None = not stated
    scales : titles of the columns that are parameters, as the user states
    dropped : titles of columns that the user drops
    layout : properties of the layout, such as the separator, with their values
    """

    path: Path
    columns: Mapping[str, Sequence[object]]
    lines: IntArray
    parameters: Sequence[str] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    place: str = "line"
    is_result: bool = False
    creator: str = ""
    has_lists: bool = False
    derived: Mapping[str, str] = field(default_factory=dict)
    time: str | None = None
    repetition: str | None = None
    scales: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    layout: Mapping[str, str] = field(default_factory=dict)
    _numeric: dict[str, bool] = field(default_factory=dict, init=False, repr=False, compare=False)
    _parsed: dict[str, FloatArray | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def error(self, row: int, message: str, hint: str = HINT) -> InputError:
        """Return an error about a row."""
        return InputError(f"{self.path}: {self.place} {self.lines[row]}: {message}", hint=hint)

    def numbers(self, title: str) -> FloatArray:
        """Return a column as numbers, [rows]; NaN = empty.

        Raises
        ------
        InputError
            If a cell is neither a number nor empty.
        """
        cells, values = self.columns[title], self.parsed(title)
        if values is None:
            row = next(k for k, cell in enumerate(cells) if as_numbers([cell]) is None)
            shown = shortened(repr(cells[row]), 40)
            mended = as_numbers([str(cells[row]).replace(",", ".")]) is not None
            hint = "write 1.5, not 1,5" if mended else "correct the cell, or leave it empty"
            raise self.error(row, f"{title}: {shown} is not a number", hint)
        return values

    def parsed(self, title: str) -> FloatArray | None:
        """Return a column as numbers, [rows], NaN = empty; None if a cell has another text."""
        if title not in self._parsed:
            values = as_numbers(self.columns[title])
            if values is not None:
                values.setflags(write=False)
            self._parsed[title] = values
        return self._parsed[title]

    def is_numeric(self, title: str) -> bool:
        """Return whether at least half of the first cells of a column are numbers."""
        if self._parsed.get(title) is not None:
            return True
        if title not in self._numeric:
            there = [cell for cell in self.columns[title][:_MANY_CELLS] if not _is_missing(cell)]
            is_known = title in self._parsed and len(self.columns[title]) <= _MANY_CELLS
            found = not is_known and as_numbers(there) is not None
            found = found or sum(map(is_number, there)) * 2 >= len(there)
            self._numeric[title] = found
        return self._numeric[title]

    def is_empty(self, title: str) -> bool:
        """Return whether all cells of a column are empty."""
        return all(map(_is_missing, self.columns[title]))

    def texts_among_numbers(self, title: str) -> int:
        """Return how many cells of a column are neither numbers nor empty."""
        cells = self.columns[title]
        if self.parsed(title) is not None:
            return 0
        return sum(not (_is_missing(cell) or is_number(cell)) for cell in cells)

    def texts(self, title: str) -> list[str]:
        """Return a column as text.

        Raises
        ------
        InputError
            If a cell is empty.
        """
        cells = self.columns[title]
        for row, cell in enumerate(cells):
            if cell is None or cell == "":
                raise self.error(row, f"no {title}")
        return [cell if isinstance(cell, str) else str(cell) for cell in cells]


def as_numbers(cells: Sequence[object]) -> FloatArray | None:
    """Return cells as numbers, NaN = empty; None if a cell is neither a number nor empty."""
    if not are_plain([cell for cell in cells if isinstance(cell, str)]):
        return _as_numbers_one_by_one(cells)
    try:
        values = np.array(cells, np.float64)
    except (TypeError, ValueError, OverflowError):
        return _as_numbers_one_by_one(cells)
    return values if values.ndim == 1 else None


def _as_numbers_one_by_one(cells: Sequence[object]) -> FloatArray | None:
    plain = [np.nan if _is_missing(cell) else cell for cell in cells]
    if not all(isinstance(cell, str | int | float) for cell in plain):
        return None
    try:
        return np.array(
            [decimal_of(cell) if isinstance(cell, str) else float(cell) for cell in plain]  # type: ignore[arg-type]
        )
    except (ValueError, OverflowError):
        return None


def _is_missing(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in _MISSING)


def refuse_many(path: Path, columns: int) -> None:
    """Raise `InputError` if a table has too many columns, for measurements or for its size."""
    if columns > _MOST_COLUMNS:
        raise InputError(
            f"{path}: {columns} columns, but at most {_MOST_COLUMNS} can be read",
            hint=ONE_ROW_PER_VALUE,
        )
    InputLimits.of(path).check(Work.TITLES, columns, ONE_ROW_PER_VALUE)


def without_rows(path: Path) -> InputError:
    """Return the error for a table that has titles but no rows."""
    return InputError(f"{path}: the table has no rows", hint=HINT)


def of_json_lines(path: Path) -> Grid:
    """Return the table in JSON Lines, with one object per line.

    Raises
    ------
    InputError
        If a line is not an object, or there are no lines.
    """
    budget = packed_budget(path)
    limits = limits_of(path, budget)
    columns, parameters = CellColumns(limits, budget), dict[str, None]()
    lines = array("q")
    first = 1
    # JSON text may contain other line separators, so only "\n" ends a line.
    with opened_text(path, newline="\n") as text:
        while some := text.read(_AT_ONCE):
            some += text.readline()
            if memory_of_json(some) > _MOST_AT_ONCE:
                raise InputError(f"{path}: line {first}: too long for a row", hint=HINT)
            end = first + some.count("\n") + (not some.endswith("\n"))
            rows = _objects(path, some, first, end, lines)
            columns.extend(_flat(columns_of(rows, limits), parameters, limits), len(rows))
            first = end
    if not columns.rows:
        raise without_rows(path)
    return Grid(path, columns.cells, np.array(lines, np.intp), tuple(parameters))


def _objects(
    path: Path, text: str, first: int, end: int, lines: array[int]
) -> list[dict[str, object]]:
    """Return the objects in lines `first` to `end` of JSON Lines, and append their line numbers."""
    try:
        rows = _MANY_OBJECTS.decode_lines(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        # This decoder rejects NaN, and does not name the line of an error.
        rows = []
    if len(rows) == end - first:
        lines.extend(range(first, end))
        return rows
    rows = []
    for number, line in enumerate(text.split("\n"), first):
        if line.strip():
            row = json_of(path, line, number)
            if not isinstance(row, dict):
                raise InputError(f"{path}: line {number}: not a JSON object", hint=HINT)
            rows.append(row)
            lines.append(number)
    return rows


def is_parquet(path: Path) -> bool:
    """Return whether a file begins like Parquet."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


def of_parquet(path: Path) -> Grid:
    """Return the table in a Parquet file.

    Raises
    ------
    InputError
        If the file is damaged, or pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as cause:
        raise InputError(
            f"{path}: reading Parquet needs pyarrow", hint="pip install 'callpath-modeler[parquet]'"
        ) from cause
    # A column with a single value takes few bytes in the file, for any number of rows.
    budget = budget_of(path)
    limits = limits_of(path, budget)
    columns, parameters = CellColumns(limits, budget), dict[str, None]()
    try:
        with pq.ParquetFile(path) as file:
            count = file.metadata.num_rows * file.metadata.num_columns
            limits.check(Work.TABLE, count, ONE_ROW_PER_VALUE)
            budget.check_memory(LEAST_OF_A_CELL * count)
            groups = (file.metadata.row_group(k) for k in range(file.metadata.num_row_groups))
            budget.check_memory(max((group.total_byte_size for group in groups), default=0))
            for batch in file.iter_batches(1 << 16):
                _add_batch(columns, parameters, batch, limits)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as cause:
        reason = printable(str(cause).partition("\n")[0])
        raise InputError(f"{path}: not a Parquet file: {reason}", hint=COPY_IT_AGAIN) from cause
    return _counted(path, columns, parameters)


def _add_batch(
    columns: CellColumns, parameters: dict[str, None], batch: Any, limits: InputLimits
) -> None:
    """Append a batch of Parquet rows, without one object for each number or repeated text."""
    cells = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = str(column.type)
        if kind in _PARQUET_TEXT:
            coded = column.dictionary_encode()
            words = [*coded.dictionary.to_pylist(), None]
            cells[name] = [words[k] for k in coded.indices.fill_null(len(words) - 1).to_pylist()]
        else:
            cells[name] = column.to_pylist()
    columns.extend(_flat(cells, parameters, limits), batch.num_rows)


def first_of_json_lines(text: str) -> Grid | None:
    """Return the first row of JSON Lines; None if the text is in another format."""
    try:
        row = json_of(Path(), text.lstrip().partition("\n")[0])
    except InputError:
        return None
    return of_rows(Path(), [row]) if isinstance(row, dict) else None


def of_rows(path: Path, rows: Sequence[dict[str, object]]) -> Grid:
    """Return the table of rows that name their cells; one cell may contain all parameters.

    Raises
    ------
    InputError
        If there are no rows.
    """
    limits = limits_of(path, packed_budget(path))
    columns, parameters = CellColumns(limits), dict[str, None]()
    for first in range(0, len(rows), CHUNK):
        some = rows[first : first + CHUNK]
        columns.extend(_flat(columns_of(some, limits), parameters, limits), len(some))
    return _counted(path, columns, parameters)


def _flat(columns: Cells, parameters: dict[str, None], limits: InputLimits) -> Cells:
    """Return columns with nested parameters unpacked, and add their names to `parameters`."""
    for key in PARAMETERS:
        is_held = [isinstance(cell, dict) for cell in columns.get(key, ())]
        if not any(is_held):
            continue
        cells = list(zip(columns[key], is_held, strict=True))
        objects = [cell if held else {} for cell, held in cells]
        inner = columns_of(objects, limits)  # type: ignore[arg-type]
        parameters |= dict.fromkeys(inner)
        others = {title: rest for title, rest in columns.items() if title != key}
        if not all(is_held):
            others[key] = [None if held else cell for cell, held in cells]
        for title in inner.keys() & others.keys():
            # A value in the row itself has precedence.
            both = zip(others[title], inner[title], strict=True)
            others[title] = [within if cell is None else cell for cell, within in both]
        columns = {**inner, **others}
    return columns


def _counted(path: Path, columns: CellColumns, parameters: Iterable[str]) -> Grid:
    """Return the table of rows that are numbered from 1."""
    if not columns.rows:
        raise without_rows(path)
    lines = np.arange(1, columns.rows + 1)
    return Grid(path, columns.cells, lines, tuple(parameters), place="row")
