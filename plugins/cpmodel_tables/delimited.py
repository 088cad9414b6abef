"""Delimited text: CSV, TSV, and spreadsheets with semicolons."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from callpath_modeler.errors import InputError
from callpath_modeler.printable import csv_text, shortened
from callpath_modeler.readers.base import ColumnChoices
from callpath_modeler.support.input_limits import packed_budget
from cpmodel_tables.column_roles import with_choices
from cpmodel_tables.dialects import Dialect, dialect_of, further_tables, rows_of
from cpmodel_tables.grid import (
    CHUNK,
    HINT,
    CellColumns,
    Grid,
    as_numbers,
    limits_of,
    refuse_many,
    without_rows,
)
from cpmodel_tables.layout import is_table, may_be_table
from cpmodel_tables.number_columns import with_numbers
from cpmodel_tables.part_columns import with_processes_of_grid
from cpmodel_tables.special_rows import with_callers, with_merged_cells, without_footers
from cpmodel_tables.text import first_text, opened_text
from cpmodel_tables.wide_tables import with_long_rows, with_titles_in_rows

_MOST_NAMED = 5
_MOST_IDLE = 1 << 20
"""Maximum number of consecutive empty rows, or of comment lines above the header."""


_SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", " ": "runs of spaces", "|": "bars"}


def of_delimited(path: Path, choices: ColumnChoices | None = None) -> Grid:
    """Return the table in delimited text: commas, tabs, semicolons or bars.

    Leading lines that begin with ``#`` are comments.

    Parameters
    ----------
    path : the file
    choices : roles of columns that the user states

    Raises
    ------
    UsageError
        If a column of `choices` does not exist.
    InputError
        If there are no rows, two columns have one title, rows differ in length, or the text has
        several tables of measurements.
    """
    dialect = dialect_of(first_text(path), is_table)
    table = _Delimited(path)
    with opened_text(path, newline="") as text:
        try:
            for row, line in rows_of(text, dialect):
                table.add(row, line)
        except csv.Error as cause:
            table.gather()
            raise InputError(f"{path}: {cause}", hint=HINT) from cause
    grid = table.grid(dialect, choices)
    _refuse_several(path, dialect, list(grid.columns))
    return grid


def _refuse_several(path: Path, dialect: Dialect, titles: list[str]) -> None:
    """Raise `InputError` if a text has several tables of measurements.

    Parameters
    ----------
    titles : titles of the table that was read
    """
    if not dialect.in_bars and dialect.titles is None:
        return
    with opened_text(path, newline="") as text:
        lines = further_tables(text, dialect, is_table if is_table(titles) else may_be_table)
    if lines:
        shown = ", ".join(map(str, lines[:_MOST_NAMED])) + ", ..." * (len(lines) > _MOST_NAMED)
        raise InputError(
            f"{path}: {1 + len(lines)} tables of measurements; the further ones begin at line "
            f"{shown}",
            hint="write each table to a file of its own",
        )


class _Delimited:
    """Rows of delimited text; the first one is the header."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._titles: list[str] = []
        self._header = 0
        self._is_padded = False
        budget = packed_budget(path)
        self._columns = CellColumns(limits_of(path, budget), budget)
        self._idle = 0
        self._lines = array("q")
        self._waiting: list[list[str]] = []
        self._numbers: list[int] = []

    def add(self, row: list[str], line: int) -> None:
        """Add a row."""
        self._waiting.append(row)
        self._numbers.append(line)
        if len(self._waiting) == CHUNK:
            self.gather()

    def gather(self) -> None:
        """Move the waiting rows to the columns."""
        rows, lines = self._waiting, self._numbers
        self._waiting, self._numbers = [], []
        given = len(rows)
        # A row whose first cell has a text is not empty. This avoids a check of all cells.
        if not self._titles or not all(row and row[0].strip() for row in rows):
            kept = [k for k, row in enumerate(rows) if any(map(str.strip, row))]
            if not self._titles:
                kept = self._behind_header(rows, kept, lines)
            rows, lines = [rows[k] for k in kept], [lines[k] for k in kept]
        self._idle = 0 if rows else self._idle + given
        if self._idle > _MOST_IDLE:
            raise InputError(
                f"{self._path}: more than {_MOST_IDLE} consecutive rows are empty or comments",
                hint="remove them",
            )
        if not rows:
            return
        if self._is_padded:
            rows = [[*map(str.strip, row)] for row in rows]
        if {*map(len, rows)} != {len(self._titles)}:
            kept = [k for k, row in enumerate(rows) if not self._is_comment(row)]
            rows, lines = [rows[k] for k in kept], [lines[k] for k in kept]
            if {*map(len, rows)} - {len(self._titles)}:
                self._refuse_lengths(rows, lines)
            if not rows:
                return
        cells = (
            [csv_text(cell) if cell[:1] == "'" else cell for cell in column]
            for column in zip(*rows, strict=True)
        )
        self._columns.extend(dict(zip(self._titles, cells, strict=True)), len(rows))
        self._lines.extend(lines)

    def _behind_header(
        self, rows: Sequence[list[str]], kept: list[int], lines: Sequence[int]
    ) -> list[int]:
        """Take the titles from the first row in `kept`, and return the other rows."""
        for place, first in enumerate(kept):
            if not rows[first][0].startswith("#"):
                refuse_many(self._path, len(rows[first]))
                below = rows[kept[place + 1]] if place + 1 < len(kept) else []
                self._titles, headers = _titles_of([*map(str.strip, rows[first])], below)
                self._header = lines[first]
                _refuse_untitled(self._path, self._titles)
                # Aligned columns pad their texts with blanks.
                self._is_padded = any(title != title.strip() for title in rows[first])
                refuse_twice(self._path, self._titles)
                return kept[place + headers :]
        return []

    def grid(self, dialect: Dialect, choices: ColumnChoices | None) -> Grid:
        """Return the whole table."""
        self.gather()
        if not self._lines:
            raise without_rows(self._path)
        lines = np.array(self._lines, np.intp)
        grid = Grid(self._path, self._columns.cells, lines, layout=self._layout(dialect))
        grid = with_choices(with_titles_in_rows(grid), choices)
        grid = with_callers(with_merged_cells(without_footers(grid)))
        return with_long_rows(with_processes_of_grid(with_numbers(grid)))

    def _layout(self, dialect: Dialect) -> dict[str, str]:
        """Return the separator and the places of titles and rows."""
        separator = _SEPARATORS.get(dialect.delimiter, dialect.delimiter)
        titles = f"line {self._header}"
        if dialect.titles is not None:
            titles = f"line {dialect.first - 1}" if dialect.first > 1 else "the last comment above"
        rows = f"{len(self._lines)}, in lines {self._lines[0]} to {self._lines[-1]}"
        return {
            "separator": "bars, as in Markdown" if dialect.in_bars else separator,
            "titles": titles,
            "rows": rows,
        }

    def _is_comment(self, row: Sequence[str]) -> bool:
        """Return whether a row of another length is a comment."""
        return len(row) != len(self._titles) and row[0].lstrip().startswith(("#", "%"))

    def _refuse_lengths(self, rows: Sequence[list[str]], lines: Sequence[int]) -> None:
        wanted = len(self._titles)
        k = next(k for k, row in enumerate(rows) if len(row) != wanted)
        raise InputError(
            f"{self._path}: line {lines[k]}: {len(rows[k])} fields, but the header has {wanted}",
            hint='put text and numbers that contain the delimiter in quotes, e.g. "4,25"',
        )


def _titles_of(first: Sequence[str], below: Sequence[str]) -> tuple[list[str], int]:
    """Return the titles, and the number of their rows: two, if the first row repeats a title.

    Further columns without a title get blanks as titles, so that they differ.
    """
    number = 1
    titles = [*first]
    texts = [cell.strip() for cell in below]
    repeats = len({*titles}) < len(titles) and len(texts) == len(titles)
    if repeats and any(texts) and all(as_numbers([text]) is None for text in filter(None, texts)):
        above = ""
        for k, title in enumerate(titles):
            above = title or (above if texts[k] else "")
            titles[k] = " ".join(filter(None, (above, texts[k])))
        number = 2
    blanks = 0
    for k, title in enumerate(titles):
        if not title:
            titles[k] = " " * blanks
            blanks += 1
    return [csv_text(title) for title in titles], number


def _refuse_untitled(path: Path, titles: Sequence[str]) -> None:
    """Raise `InputError` if the first row has numbers only, so that the columns have no titles."""
    cells = titles if len(titles) > 1 else titles[0].split()
    if len(cells) > 1 and all(cells) and as_numbers(cells) is not None:
        what = f"{path}: the columns have no titles"
        raise InputError(what, hint="write titles above the numbers, e.g. p time")


def refuse_twice(path: Path, titles: Sequence[str]) -> None:
    """Raise `InputError` if two columns have the same title."""
    seen: set[str] = set()
    for title in titles:
        if title in seen:
            what = f"{path}: two columns have the title {shortened(title)!r}"
            raise InputError(what, hint="rename one")
        seen.add(title)


def titles_of_delimited(text: str, *, in_bars: bool = True) -> list[str]:
    """Return the titles of a table in text; none if the text is no table.

    Parameters
    ----------
    in_bars : whether the lines of the table may stand between bars, as in Markdown
    """
    dialect = dialect_of(text, is_table)
    if dialect.in_bars and not in_bars:
        return []
    lines = text.splitlines(keepends=True)
    if dialect.delimiter != " " and not dialect.in_bars:
        lines = lines[dialect.first - 1 :]
        lines = [line for line in lines if line.strip() and line[:1] != "#"][:1]
        dialect = replace(dialect, first=1)
    try:
        titles = next((row for row, _ in rows_of(lines, dialect) if row), [])
    except csv.Error:
        return []
    return [csv_text(title.strip()) for title in titles]
