"""Columns of tables, each declared once for people and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import IntArray
from callpath_modeler.report.layout import TextColumn, TextStyle
from callpath_modeler.report.table_formats import Cell, RowColumns, Table
from callpath_modeler.units import significant

if TYPE_CHECKING:
    from callpath_modeler.report.table_formats import Values

N_contra = TypeVar("N_contra", contravariant=True)


class Column(Struct, Generic[N_contra], frozen=True, kw_only=True):
    """A column of a table whose rows are of one type.

    Attributes
    ----------
    key : name in files; "" = only in text, because files have the numbers under other names
    help : meaning, for the page on output
    cells : function that returns the cells of rows in files
    unit : function that returns the unit of the column; None = it has none
    title : title in text, or a function that returns it; "" = only in files
    text : function that returns the cells of rows in text; None = the cells of files, formatted
    right : align to the right, as for numbers
    droppable : as for `TextColumn`
    styles : function that returns the rich style of each row; None = no style
    name : name of the column in text and pages, where it differs from `key`
    place : position in text, from the left
    applies : whether text has the column
    """

    key: str
    help: str
    cells: Callable[[N_contra], Values]
    unit: Callable[[N_contra], str] | None = None
    title: str | Callable[[N_contra], str] = ""
    text: Callable[[N_contra, TextStyle], list[str]] | None = None
    right: bool = True
    droppable: int | Callable[[N_contra], int] = 0
    styles: Callable[[N_contra], Sequence[str]] | None = None
    name: str = ""
    place: int = 99
    applies: Callable[[N_contra], bool] | None = None

    def texts(self, rows: N_contra, style: TextStyle) -> list[str]:
        """Return the cells of rows in text."""
        if self.text is not None:
            return self.text(rows, style)
        unit = None if self.unit is None else self.unit(rows)
        return [_text(cell, unit, style) for cell in _listed(self.cells(rows))]


def file_cells(columns: Iterable[Column[N_contra]], rows: N_contra) -> dict[str, list[Cell]]:
    """Return the cells of rows in files, by key."""
    return {key: _listed(values) for key, values in file_values(columns, rows).items()}


def file_values(columns: Iterable[Column[N_contra]], rows: N_contra) -> dict[str, Values]:
    """Return columns in files, by key; `cells_of` returns the cells of some of their rows."""
    return {each.key: each.cells(rows) for each in columns if each.key}


def file_units(columns: Iterable[Column[N_contra]], rows: N_contra) -> dict[str, str]:
    """Return the units of the columns in files that have one, by key."""
    return {each.key: each.unit(rows) for each in columns if each.key and each.unit is not None}


def applying(columns: Iterable[Column[N_contra]], rows: N_contra) -> list[Column[N_contra]]:
    """Return the columns of rows that text has, from left to right."""
    known = (each for each in columns if each.title)
    chosen = (each for each in known if each.applies is None or each.applies(rows))
    return sorted(chosen, key=lambda each: each.place)


def text_columns(
    columns: Iterable[Column[N_contra]], rows: N_contra, *, style: TextStyle
) -> dict[str, TextColumn]:
    """Return columns that apply as text, by name."""
    return {
        each.name or each.key: TextColumn(
            each.title if isinstance(each.title, str) else each.title(rows),
            each.texts(rows, style),
            right=each.right,
            droppable=each.droppable if isinstance(each.droppable, int) else each.droppable(rows),
            styles=() if each.styles is None else each.styles(rows),
        )
        for each in columns
    }


def text_table(
    lines: IntArray, title: str, made: Callable[[IntArray], tuple[Sequence[TextColumn], list[str]]]
) -> Table:
    """Return a table of texts as a terminal shows it, for Markdown and LaTeX.

    Parameters
    ----------
    lines : numbers of the lines
    title : title of the names of lines, which are the last column
    made : function that returns the columns and the names of some lines
    """

    def cells(block: IntArray) -> dict[str, Sequence[Cell]]:
        columns, names = made(block)
        # Titles need not differ, so the columns are numbered.
        return {**{str(k): each.cells for k, each in enumerate(columns)}, title: names}

    columns, _ = made(lines[:0])
    heads = {str(k): (each.header, each.right) for k, each in enumerate(columns)}
    return Table(RowColumns(lines, cells), heads={**heads, title: (title, False)})


def chosen_cells(columns: Iterable[TextColumn], lines: IntArray) -> list[TextColumn]:
    """Return the cells of some lines of columns."""
    return [replace(each, cells=[each.cells[k] for k in lines.tolist()]) for each in columns]


def _listed(cells: Values) -> list[Cell]:
    return cells.tolist() if isinstance(cells, np.ndarray) else [*cells]


def _text(cell: Cell, unit: str | None, style: TextStyle) -> str:
    """Return a cell as text: with a unit, an amount; without one, three digits."""
    if cell is None or cell != cell:  # noqa: PLR0124 - only NaN differs from itself
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return significant(cell) if unit is None else style.amount(cell, unit)
    return str(cell)
