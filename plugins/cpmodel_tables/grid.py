"""A table as it stands in a file: titles, cells, line numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from callpath_modeler.errors import InputError
from callpath_modeler.printable import printable, shortened
from callpath_modeler.readers.json_text import memory_of_json
from callpath_modeler.readers.unpacking import budget_of, packed_budget
from cpmodel_tables.columns import CHUNK, LEAST_OF_A_CELL, CellColumns, Cells, columns_of
from cpmodel_tables.text import COPY_IT_AGAIN, json_of, opened_text

PARAMETERS = ("params", "parameters")
"""Keys under which a line of JSON may hold its parameters together."""

HINT = (
    "a table has a column callpath, one per parameter, e.g. p, and one per metric, or metric "
    "and value"
)

_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})
_MANY = 1000
_MOST_COLUMNS = 20_000
_PARQUET_TEXT = ("string", "large_string")
_AT_ONCE = 1 << 20
"""Characters of JSON Lines that are taken apart together."""

_MOST_AT_ONCE = 1 << 28
"""Bytes of the values of lines that are taken apart together."""

_MANY_OBJECTS = msgspec.json.Decoder(dict[str, object])


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of a table.

    Attributes
    ----------
    path : the file
    columns : cells by title: text from CSV, any value from JSON, None = no value
    lines : [rows] line on which each row stands
    parameters : titles that the file itself says are parameters
    units : units by title, where the file says them elsewhere
    place : what `lines` counts
    is_result : True if the file is known to be a table of results, whatever its titles are
    creator : the tool that wrote the file, or ""
    """

    path: Path
    columns: Mapping[str, Sequence[object]]
    lines: NDArray[np.intp]
    parameters: Sequence[str] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    place: str = "line"
    is_result: bool = False
    creator: str = ""

    def error(self, row: int, message: str, hint: str = HINT) -> InputError:
        """Return an error about a row."""
        return InputError(f"{self.path}: {self.place} {self.lines[row]}: {message}", hint=hint)

    def numbers(self, title: str) -> NDArray[np.float64]:
        """Return a column as numbers, NaN where there is none.

        Raises
        ------
        InputError
            If a cell is neither a number nor empty.
        """
        cells = self.columns[title]
        values = as_numbers(cells)
        if values is None:
            row = next(k for k, cell in enumerate(cells) if as_numbers([cell]) is None)
            shown = shortened(repr(cells[row]), 40)
            mended = as_numbers([str(cells[row]).replace(",", ".")]) is not None
            hint = "write 1.5, not 1,5" if mended else "mend it, or leave it empty"
            raise self.error(row, f"{title}: {shown} is not a number", hint)
        return values

    def is_numeric(self, title: str) -> bool:
        """Tell whether a column is meant to hold numbers: at least half of its first cells do."""
        there = [cell for cell in self.columns[title][:_MANY] if not _is_missing(cell)]
        if as_numbers(there) is not None:
            return True
        return sum(as_numbers([cell]) is not None for cell in there) * 2 >= len(there)

    def is_empty(self, title: str) -> bool:
        """Tell whether no cell of a column holds anything."""
        return all(map(_is_missing, self.columns[title]))

    def texts_among_numbers(self, title: str) -> int:
        """Return how many cells of a column are neither numbers nor empty."""
        cells = self.columns[title]
        if as_numbers(cells) is not None:
            return 0
        return sum(as_numbers([cell]) is None for cell in cells)

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


def as_numbers(cells: Sequence[object]) -> NDArray[np.float64] | None:
    """Return cells as numbers, NaN for those that are empty; None if any is something else."""
    try:
        values = np.array(cells, np.float64)
    except (TypeError, ValueError, OverflowError):
        return _as_numbers_one_by_one(cells)
    return values if values.ndim == 1 else None


def _as_numbers_one_by_one(cells: Sequence[object]) -> NDArray[np.float64] | None:
    plain = [np.nan if _is_missing(cell) else cell for cell in cells]
    if not all(isinstance(cell, str | int | float) for cell in plain):
        return None
    try:
        return np.array([float(cell) for cell in plain])  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return None


def _is_missing(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in _MISSING)


def refuse_many(path: Path, columns: int) -> None:
    """Raise `InputError` for a table of more columns than anybody measures."""
    if columns > _MOST_COLUMNS:
        raise InputError(
            f"{path}: {columns} columns, more than {_MOST_COLUMNS}",
            hint="write one row per value, with columns metric and value",
        )


def without_rows(path: Path) -> InputError:
    """Return the error of a table that holds nothing but titles."""
    return InputError(f"{path}: a table without rows", hint=HINT)


def of_json_lines(path: Path) -> Grid:
    """Take JSON Lines apart: an object per line.

    Raises
    ------
    InputError
        If a line is no object, or there is none.
    """
    columns, parameters, lines = CellColumns(packed_budget(path)), dict[str, None](), array("q")
    first = 1
    # Not universal: JSON text may hold other line ends than these.
    with opened_text(path, newline="\n") as text:
        while some := text.read(_AT_ONCE):
            some += text.readline()
            if memory_of_json(some) > _MOST_AT_ONCE:
                raise InputError(f"{path}: line {first}: holds too much for a row", hint=HINT)
            end = first + some.count("\n") + (not some.endswith("\n"))
            rows = _objects(path, some, first, end, lines)
            columns.extend(_flat(columns_of(rows), parameters), len(rows))
            first = end
    if not columns.rows:
        raise without_rows(path)
    return Grid(path, columns.cells, np.array(lines, np.intp), tuple(parameters))


def _objects(
    path: Path, text: str, first: int, end: int, lines: array[int]
) -> list[dict[str, object]]:
    """Return the objects in lines of JSON from number `first` to `end`, and note their `lines`."""
    try:
        rows = _MANY_OBJECTS.decode_lines(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        # It takes no NaN, and does not say which line is wrong.
        rows = []
    if len(rows) == end - first:
        lines.extend(range(first, end))
        return rows
    rows = []
    for number, line in enumerate(text.split("\n"), first):
        if line.strip():
            row = json_of(path, line, number)
            if not isinstance(row, dict):
                raise InputError(f"{path}: line {number}: no JSON object", hint=HINT)
            rows.append(row)
            lines.append(number)
    return rows


def is_parquet(path: Path) -> bool:
    """Tell whether a file begins like Parquet."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


def of_parquet(path: Path) -> Grid:
    """Read a Parquet file.

    Raises
    ------
    InputError
        If it is damaged, or pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as cause:
        raise InputError(
            f"{path}: parquet needs pyarrow", hint="pip install 'callpath-modeler[parquet]'"
        ) from cause
    # A column of one value takes a few bytes, whatever its length.
    budget = budget_of(path)
    columns, parameters = CellColumns(budget), dict[str, None]()
    try:
        with pq.ParquetFile(path) as file:
            budget.check_memory(
                LEAST_OF_A_CELL * file.metadata.num_rows * file.metadata.num_columns
            )
            groups = (file.metadata.row_group(k) for k in range(file.metadata.num_row_groups))
            budget.check_memory(max((group.total_byte_size for group in groups), default=0))
            for batch in file.iter_batches(1 << 16):
                _add_batch(columns, parameters, batch)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as cause:
        reason = printable(str(cause).partition("\n")[0])
        raise InputError(f"{path}: no Parquet file: {reason}", hint=COPY_IT_AGAIN) from cause
    return _counted(path, columns, parameters)


def _add_batch(columns: CellColumns, parameters: dict[str, None], batch: Any) -> None:
    """Append rows of Parquet: a text that comes again, and numbers, without one object each."""
    cells = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = str(column.type)
        if kind in _PARQUET_TEXT:
            coded = column.dictionary_encode()
            words = [*coded.dictionary.to_pylist(), None]
            cells[name] = [words[k] for k in coded.indices.fill_null(len(words) - 1).to_pylist()]
        else:
            cells[name] = column.to_pylist()
    columns.extend(_flat(cells, parameters), batch.num_rows)


def first_of_json_lines(text: str) -> Grid | None:
    """Return the first row of JSON Lines; None if it is no such text."""
    try:
        row = json_of(Path(), text.lstrip().partition("\n")[0])
    except InputError:
        return None
    return of_rows(Path(), [row]) if isinstance(row, dict) else None


def of_rows(path: Path, rows: Sequence[dict[str, object]]) -> Grid:
    """Return the grid of rows that name their cells; parameters may be held in one of them.

    Raises
    ------
    InputError
        If there are none.
    """
    columns, parameters = CellColumns(), dict[str, None]()
    for first in range(0, len(rows), CHUNK):
        some = rows[first : first + CHUNK]
        columns.extend(_flat(columns_of(some), parameters), len(some))
    return _counted(path, columns, parameters)


def _flat(columns: Cells, parameters: dict[str, None]) -> Cells:
    """Put parameters that cells hold together beside the other columns, and note their names."""
    for key in PARAMETERS:
        is_held = [isinstance(cell, dict) for cell in columns.get(key, ())]
        if not any(is_held):
            continue
        cells = list(zip(columns[key], is_held, strict=True))
        inner = columns_of([cell if held else {} for cell, held in cells])  # type: ignore[misc]
        parameters |= dict.fromkeys(inner)
        others = {title: rest for title, rest in columns.items() if title != key}
        if not all(is_held):
            others[key] = [None if held else cell for cell, held in cells]
        for title in inner.keys() & others.keys():
            # What stands in the row itself counts.
            both = zip(others[title], inner[title], strict=True)
            others[title] = [within if cell is None else cell for cell, within in both]
        columns = {**inner, **others}
    return columns


def _counted(path: Path, columns: CellColumns, parameters: Iterable[str]) -> Grid:
    """Return the grid of rows that are counted from 1."""
    if not columns.rows:
        raise without_rows(path)
    lines = np.arange(1, columns.rows + 1)
    return Grid(path, columns.cells, lines, tuple(parameters), place="row")
