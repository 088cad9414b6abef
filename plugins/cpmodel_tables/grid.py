"""A table as it stands in a file: titles, cells, line numbers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.errors import InputError
from cpmodel_tables.text import COPY_IT_AGAIN, json_of

PARAMETERS = ("params", "parameters")
"""Keys under which a line of JSON may hold its parameters together."""

HINT = (
    "a table has a column callpath, one per parameter, e.g. p, and one per metric, or metric "
    "and value"
)

_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})
_ROWS = re.compile(r'\s*(\[\s*)?\{\s*"')
_MANY = 1000
_DELIMITERS = (",", "\t", ";")


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
    """

    path: Path
    columns: Mapping[str, Sequence[object]]
    lines: NDArray[np.intp]
    parameters: Sequence[str] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    place: str = "line"

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
            shown = repr(cells[row])
            shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
            raise self.error(row, f"{title}: {shown} is not a number", "mend it, or leave it empty")
        return values

    def is_numeric(self, title: str) -> bool:
        """Tell whether a column is meant to hold numbers: at least half of its first cells do."""
        there = [cell for cell in self.columns[title][:_MANY] if not _is_missing(cell)]
        if as_numbers(there) is not None:
            return True
        return sum(as_numbers([cell]) is not None for cell in there) * 2 >= len(there)

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


def of_delimited(path: Path, text: str) -> Grid:
    """Take delimited text apart: commas, tabs or semicolons; leading ``#`` lines are comments.

    Raises
    ------
    InputError
        If it has no rows, two columns of one title, or rows of another length.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    titles: list[str] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            if not any(cell.strip() for cell in row) or (not titles and row[0].startswith("#")):
                continue
            if not titles:
                titles = [title.strip() for title in row]
                continue
            if len(row) != len(titles):
                raise InputError(
                    f"{path}: line {reader.line_num}: {len(row)} fields, the header has "
                    f"{len(titles)}",
                    hint="put text that holds the delimiter in quotes",
                )
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as cause:
        raise InputError(f"{path}: line {reader.line_num}: {cause}", hint=HINT) from cause
    twice = next((title for k, title in enumerate(titles) if title in titles[:k]), None)
    if twice is not None:
        raise InputError(f"{path}: two columns are titled {twice!r}", hint="rename one")
    if not rows:
        raise InputError(f"{path}: a table without rows", hint=HINT)
    columns = dict(zip(titles, map(list, zip(*rows, strict=True)), strict=True))
    return Grid(path, columns, np.array(lines, np.intp))


def titles_of_delimited(text: str) -> list[str]:
    """Return the titles in the header of delimited text; none if it is no such text."""
    rows = csv.reader([_header(text)], delimiter=_delimiter(text))
    try:
        return [title.strip() for title in next(rows, [])]
    except csv.Error:
        return []


def _header(text: str) -> str:
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return next(lines, "")


def _delimiter(text: str) -> str:
    return max(_DELIMITERS, key=_header(text).count)


def of_json_lines(path: Path, text: str) -> Grid:
    """Take JSON Lines apart: an object per line.

    Raises
    ------
    InputError
        If a line is no object, or there is none.
    """
    rows: list[dict[str, object]] = []
    lines: list[int] = []
    # Not splitlines: JSON text may hold other line ends than these.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            rows.append(_object(path, number, line))
            lines.append(number)
    if not rows:
        raise InputError(f"{path}: a table without rows", hint=HINT)
    return of_rows(path, rows, lines)


def of_json(path: Path, text: str) -> Grid:
    """Take JSON apart: a list of objects, or an object that holds it as ``rows``.

    Raises
    ------
    InputError
        If it is neither.
    """
    document = json_of(path, text)
    units = document.get("units") if isinstance(document, dict) else None
    rows = document.get("rows") if isinstance(document, dict) else document
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path}: no list of JSON objects", hint=HINT)
    grid = of_rows(path, rows, range(1, len(rows) + 1))
    known = units if isinstance(units, dict) else {}
    known = {title: unit for title, unit in known.items() if isinstance(unit, str)}
    return replace(grid, units=known, place="row")


def is_json_of_rows(text: str) -> bool:
    """Tell by its beginning whether JSON holds rows about call paths."""
    return bool(_ROWS.match(text)) and '"callpath"' in text


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
    try:
        rows = pq.read_table(path).to_pylist()
    except (pa.ArrowException, OSError, ValueError, MemoryError) as cause:
        reason = str(cause).partition("\n")[0]
        raise InputError(f"{path}: no Parquet file: {reason}", hint=COPY_IT_AGAIN) from cause
    if not rows:
        raise InputError(f"{path}: a table without rows", hint=HINT)
    return replace(of_rows(path, rows, range(1, len(rows) + 1)), place="row")


def first_of_json_lines(text: str) -> Grid | None:
    """Return the first row of JSON Lines; None if it is no such text."""
    try:
        row = json_of(Path(), text.lstrip().partition("\n")[0])
    except InputError:
        return None
    return of_rows(Path(), [row], [1]) if isinstance(row, dict) else None


def of_rows(path: Path, rows: Sequence[Mapping[str, object]], lines: Sequence[int]) -> Grid:
    """Return the grid of rows that name their cells; parameters may be held in one of them."""
    flat: list[dict[str, object]] = []
    parameters: dict[str, None] = {}
    for row in rows:
        cells = dict(row)
        for key in PARAMETERS:
            held = cells.get(key)
            if isinstance(held, dict):
                del cells[key]
                parameters.update(dict.fromkeys(held))
                cells = {**held, **cells}
        flat.append(cells)
    titles = dict.fromkeys(title for cells in flat for title in cells)
    columns = {title: [cells.get(title) for cells in flat] for title in titles}
    return Grid(path, columns, np.array(lines, np.intp), tuple(parameters))


def _object(path: Path, number: int, line: str) -> dict[str, object]:
    row = json_of(path, line, number)
    if not isinstance(row, dict):
        raise InputError(f"{path}: line {number}: no JSON object", hint=HINT)
    return row
