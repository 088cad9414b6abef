"""Tables of SQLite databases of unknown origin, read as columns of integers.

A database is a program: views, triggers, virtual tables and generated columns run code of its
author. So only plain tables are read, whose columns are stored. A page of a damaged file may occur
many times in a table, so the number of rows and the steps of SQLite are limited by the file's size.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import numpy as np

from callpath_modeler.arrays import Int64Array
from callpath_modeler.errors import MalformedError

MISSING = int(np.iinfo(np.int64).min)
"""Number that stands for NULL, and for a value of another type than a number."""

_BLOCK = 1 << 14
"""Number of rows that are read together."""
_LONGEST_TEXT = 4_096
_LARGEST_VALUE = 1 << 24
"""Largest text or blob in bytes that SQLite may load."""
_MOST_TABLES = 2_000
_SMALLEST_ROW = 4
"""Bytes of the smallest row in a file: its length, its number, its header, and its first value."""
_STEPS = 100
"""Instructions of SQLite for each byte of a file, which a complete pass over all tables takes."""
_FEWEST_STEPS = 50_000_000
_PER_REPORT = 100_000


class Database:
    """A database that is open for reading.

    Attributes
    ----------
    tables : names of the stored columns of each plain table
    wrong : number of values of another type than a number, where numbers are expected
    """

    def __init__(self, connection: sqlite3.Connection, size: int) -> None:
        self.wrong = 0
        self._connection = connection
        self._most_rows = max(1, size // _SMALLEST_ROW)
        self.tables: Mapping[str, frozenset[str]] = {
            name: columns for name in self._plain_tables() if (columns := self._columns(name))
        }
        self._texts: dict[int, str] = {}

    def has(self, table: str, *columns: str) -> bool:
        """Return whether a table with these columns exists."""
        return table in self.tables and self.tables[table].issuperset(columns)

    def blocks(self, table: str, columns: Sequence[str]) -> Iterator[list[Int64Array]]:
        """Yield blocks of rows of a table: each column as int64, [rows].

        NULL, texts, blobs and columns that the table lacks become `MISSING`.

        Raises
        ------
        MalformedError
            If the table has more rows than its file can hold.
        """
        known = self.tables.get(table, frozenset())
        if known.intersection(columns):
            for rows in self._rows(table, columns, known):
                yield self._columns_of(chain.from_iterable(rows), len(columns), len(rows))

    def blocks_with_text(
        self, table: str, columns: Sequence[str], text: str
    ) -> Iterator[tuple[list[Int64Array], list[object]]]:
        """Yield blocks of rows as `blocks` does, and the values of a column of texts."""
        known = self.tables.get(table, frozenset())
        if known.intersection(columns):
            for rows in self._rows(table, columns, known, (text,) if text in known else ()):
                width = len(columns)
                numbers = chain.from_iterable(row[:width] for row in rows)
                texts = [_shortened(row[-1]) if len(row) > width else None for row in rows]
                yield self._columns_of(numbers, width, len(rows)), texts

    def records(self, table: str, columns: Sequence[str], most: int) -> list[tuple[object, ...]]:
        """Return the first rows of a small table, with texts of a bounded length."""
        known = self.tables.get(table, frozenset())
        if not known.issuperset(columns):
            return []
        found: list[tuple[object, ...]] = []
        for rows in self._rows(table, (), known, columns):
            found += [tuple(map(_shortened, row)) for row in rows]
            if len(found) >= most:
                break
        return found[:most]

    def entry(self, table: str, name: str, longest: int) -> str:
        """Return the first value of a name in a table of names and values; "" = there is none.

        Parameters
        ----------
        table : name of the table, which is no text of a file
        longest : number of characters after which the value is cut
        """
        if not self.tables.get(table, frozenset()).issuperset({"name", "value"}):
            return ""
        query = f'SELECT substr(value, 1, ?) FROM "{table}" WHERE name = ? LIMIT 1'  # noqa: S608
        row = self._connection.execute(query, (longest, name)).fetchone()
        return row[0] if row and isinstance(row[0], str) else ""

    def string(self, number: int) -> str:
        """Return a text of the table StringIds; "" = there is none."""
        if number not in self._texts:
            row = None
            if self.has("StringIds", "id", "value"):
                query = "SELECT substr(value, 1, ?) FROM main.StringIds WHERE id = ?"
                row = self._connection.execute(query, (_LONGEST_TEXT, number)).fetchone()
            self._texts[number] = row[0] if row and isinstance(row[0], str) else ""
        return self._texts[number]

    def _plain_tables(self) -> list[str]:
        query = "SELECT name, sql FROM main.sqlite_master WHERE type = 'table' AND rootpage > 0"
        rows = self._connection.execute(query).fetchmany(_MOST_TABLES)
        return [name for name, sql in rows if isinstance(name, str) and isinstance(sql, str)]

    def _columns(self, table: str) -> frozenset[str]:
        """Return the stored columns of a table; none if a column of it is computed or hidden."""
        query = "SELECT name, hidden FROM pragma_table_xinfo(?)"
        rows = self._connection.execute(query, (table,)).fetchall()
        if any(hidden for _, hidden in rows):
            return frozenset()
        return frozenset(name for name, _ in rows if isinstance(name, str))

    def _rows(
        self, table: str, columns: Sequence[str], known: frozenset[str], texts: Sequence[str] = ()
    ) -> Iterator[list[tuple[object, ...]]]:
        # Names are among those of the table, or constants of the caller.
        # Python converts blocks of numbers faster if NULL is one of them.
        numbers = [
            f"ifnull({_quoted(each)}, {MISSING})" if each in known else str(MISSING)
            for each in columns
        ]
        chosen = ", ".join([*numbers, *map(_quoted, texts)])
        cursor = self._connection.execute(f"SELECT {chosen} FROM main.{_quoted(table)} NOT INDEXED")  # noqa: S608
        number = 0
        while rows := cursor.fetchmany(_BLOCK):
            number += len(rows)
            if number > self._most_rows:
                raise MalformedError(f"table {table} has more rows than the file can hold")
            yield rows

    def _columns_of(self, values: Iterable[object], width: int, rows: int) -> list[Int64Array]:
        """Return the columns of a block of values, row by row."""
        values = list(values)
        try:
            flat = np.fromiter(values, np.int64, rows * width)
        except (TypeError, ValueError, OverflowError):
            flat = np.fromiter(map(self._number, values), np.int64, rows * width)
        found = flat.reshape(rows, width)
        return [np.ascontiguousarray(found[:, k]) for k in range(width)]

    def _number(self, value: object) -> int:
        if isinstance(value, int):
            return value
        if value is not None:
            self.wrong += 1
        return MISSING


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _shortened(value: object) -> object:
    return value[:_LONGEST_TEXT] if isinstance(value, str | bytes) else value


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    """Open a database for reading, without any effect on its folder.

    Raises
    ------
    MalformedError
        If the file is damaged, or no database, or takes too many steps.
    """
    # An immutable database needs no files for locks beside it.
    name = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    connection = None
    try:
        size = path.stat().st_size
        connection = sqlite3.connect(name, uri=True, isolation_level=None)
        connection.text_factory = _text
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "query_only = ON"):
            connection.execute(f"PRAGMA {pragma}")
        most = max(_FEWEST_STEPS, _STEPS * size) // _PER_REPORT
        steps = iter(range(most))
        connection.set_progress_handler(lambda: next(steps, None) is None, _PER_REPORT)
        yield Database(connection, size)
    except (sqlite3.Error, UnicodeError) as cause:
        what = "reading takes too many steps for its size" if "interrupted" in str(cause) else cause
        raise MalformedError(f"the database is damaged: {what}") from cause
    finally:
        if connection is not None:
            connection.close()


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
