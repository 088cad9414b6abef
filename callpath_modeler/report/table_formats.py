"""Tables: columns declared once, and texts as CSV, TSV, JSON, JSON lines and Markdown."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import IntArray
from callpath_modeler.printable import csv_cells, json_text, markdown_text
from callpath_modeler.profile.omissions import omissions_json
from callpath_modeler.report.layout import TextColumn, TextStyle
from callpath_modeler.units import significant

if TYPE_CHECKING:
    import pandas as pd

    from callpath_modeler.arrays import BoolArray, FloatArray
    from callpath_modeler.diagnostics import Finding
    from callpath_modeler.profile.experiment import Experiment

    Values = FloatArray | IntArray | BoolArray | Sequence["Cell"]
    """The cells of all rows of a column."""


Cell = str | int | float | bool | None

BLOCK = 8192
"""Rows of a table that are made and written together; a table of 10^6 rows never is in memory."""


def blocks(size: int) -> Iterator[IntArray]:
    """Yield the numbers of `size` rows, `BLOCK` at a time."""
    for start in range(0, size, BLOCK):
        yield np.arange(start, min(start + BLOCK, size))


SCHEMA = 1
"""Version of the JSON layout; it rises when a field is removed or changes its meaning."""


class RowColumns(Mapping[str, Sequence[Cell]]):
    """Columns that are made for a block of rows when it is written.

    Parameters
    ----------
    rows : numbers of the rows
    cells : function that returns the columns of some of these rows, by name
    """

    def __init__(
        self, rows: IntArray, cells: Callable[[IntArray], Mapping[str, Sequence[Cell]]]
    ) -> None:
        self.rows = rows
        self.cells = cells
        self._whole: Mapping[str, Sequence[Cell]] | None = None
        self._names = tuple(cells(rows[:0]))

    def __getitem__(self, name: str) -> Sequence[Cell]:
        if self._whole is None:
            self._whole = self.cells(self.rows)
        return self._whole[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equal length with their units.

    Attributes
    ----------
    columns : values by name, in order; None = no value. `RowColumns` are made block by block
    units : unit by name of column, for columns with a unit
    header : further fields of the JSON object: findings, parameters, inputs, ...
    heads : of texts as a terminal shows them, the title of each column and whether it is aligned
        to the right; None = values with full precision
    """

    columns: Mapping[str, Sequence[Cell]]
    units: Mapping[str, str] = field(default_factory=dict)
    header: Mapping[str, object] = field(default_factory=dict)
    heads: Mapping[str, tuple[str, bool]] | None = None

    @classmethod
    def of_rows(
        cls,
        rows: Sequence[Mapping[str, Cell]],
        units: Mapping[str, str] | None = None,
        header: Mapping[str, object] | None = None,
    ) -> Table:
        """Return a table of rows with the same names; without a row, it has no column."""
        columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
        return cls(columns, units or {}, header or {})

    def __len__(self) -> int:
        if isinstance(self.columns, RowColumns):
            return len(self.columns.rows)
        return len(next(iter(self.columns.values()), ()))

    def pick(self, names: Sequence[str]) -> Table:
        """Return the table with the columns `names` only, in that order."""
        columns: Mapping[str, Sequence[Cell]]
        if isinstance(of := self.columns, RowColumns):

            def cells(rows: IntArray) -> Mapping[str, Sequence[Cell]]:
                made = of.cells(rows)
                return {name: made[name] for name in names}

            columns = RowColumns(of.rows, cells)
        else:
            columns = {name: of[name] for name in names}
        return replace(self, columns=columns)

    def blocks(self) -> Iterator[Mapping[str, Sequence[Cell]]]:
        """Yield the columns of `BLOCK` rows after the other; at least once."""
        for start in range(0, max(1, len(self)), BLOCK):
            part = slice(start, start + BLOCK)
            if isinstance(self.columns, RowColumns):
                yield self.columns.cells(self.columns.rows[part])
            else:
                yield {name: cells[part] for name, cells in self.columns.items()}

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame; titles contain units."""
        import pandas as pd

        return pd.DataFrame(dict(zip(self.titles(), self.columns.values(), strict=True)))

    def titles(self) -> list[str]:
        """Return the titles of a terminal, or else column names with units in brackets."""
        if self.heads is not None:
            return [title for title, _ in self.heads.values()]
        return [f"{n}[{self.units[n]}]" if n in self.units else n for n in self.columns]

    def rows(self) -> list[tuple[Cell, ...]]:
        """Return the rows."""
        return list(zip(*self.columns.values(), strict=True))


def to_csv(table: Table, *, delimiter: str = ",", header: bool = True) -> str:
    """Return delimited text; a missing value is an empty field, infinity is ``inf``.

    A text that a spreadsheet would read as a formula starts with an apostrophe.
    """
    return "".join(csv_pieces(table, delimiter=delimiter, header=header))


def csv_pieces(table: Table, *, delimiter: str = ",", header: bool = True) -> Iterator[str]:
    """Yield the text of a table block by block, as `to_csv` returns it."""
    if header:
        yield delimiter.join(_text_fields(table.titles(), delimiter)) + "\n"
    for columns in table.blocks():
        fields = [_fields(cells, delimiter) for cells in columns.values()]
        lines = map(delimiter.join, zip(*fields, strict=True))
        # A line without any character would be no row.
        written = lines if len(fields) > 1 else (line or '""' for line in lines)
        yield "".join(f"{line}\n" for line in written)


def to_json(table: Table) -> str:
    """Return one JSON object: ``schema``, the fields of the header, ``units`` and ``rows``."""
    return "".join(json_pieces(table))


def json_pieces(table: Table) -> Iterator[str]:
    """Yield the text of a table block by block, as `to_json` returns it."""
    header = _in_json(table.header)
    document = {"schema": SCHEMA, **header, "units": dict(table.units), "rows": []}
    text = json_text(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))
    if not len(table):
        yield f"{text}\n"
        return
    # The encoder is slow with indentation, and a record has no nested values to indent.
    encode = json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, separators=(",\n   ", ": ")
    ).encode
    before = f"{text[:-4]}[\n"
    for columns in table.blocks():
        records = (f"  {{\n   {encode(record)[1:-1]}\n  }}" for record in _records(columns))
        yield before + json_text(",\n".join(records))
        before = ",\n"
    yield "\n ]\n}\n"


def to_jsonl(table: Table) -> str:
    """Return one JSON object per row."""
    return "".join(jsonl_pieces(table))


def jsonl_pieces(table: Table) -> Iterator[str]:
    """Yield the text of a table block by block, as `to_jsonl` returns it."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    for columns in table.blocks():
        yield json_text("".join(f"{encode(record)}\n" for record in _records(columns)))


def to_markdown(table: Table) -> str:
    """Return a Markdown table."""
    return "".join(markdown_pieces(table))


def markdown_pieces(table: Table) -> Iterator[str]:
    """Yield the text of a table block by block, as `to_markdown` returns it."""
    yield _markdown_line(map(markdown_text, table.titles()))
    sides = [False] * len(table.columns)
    if table.heads is not None:
        sides = [is_right for _, is_right in table.heads.values()]
    yield _markdown_line("---:" if is_right else "---" for is_right in sides)
    for columns in table.blocks():
        cells = [_markdown_cells(column) for column in columns.values()]
        yield "".join(map(_markdown_line, zip(*cells, strict=True)))


def _markdown_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _markdown_cells(cells: Sequence[Cell]) -> list[str]:
    """Return the cells of a column; only texts may contain characters of Markdown."""
    return [markdown_text(cell) if isinstance(cell, str) else str(_plain(cell)) for cell in cells]


def _fields(cells: Sequence[Cell], delimiter: str) -> Iterable[str]:
    """Return the fields of a column; a column of one type is written several times as fast."""
    kinds = {*map(type, cells)}
    if kinds == {int}:
        return map(str, cells)
    if kinds == {float}:
        # Numbers keep all their digits; only NaN differs from itself.
        return ["" if cell != cell else str(cell) for cell in cells]  # noqa: PLR0124
    if kinds == {NoneType}:
        return [""] * len(cells)
    if kinds <= {str, NoneType}:
        return _text_fields(["" if cell is None else str(cell) for cell in cells], delimiter)
    plain = [cell if isinstance(cell, str) else "" for cell in cells]
    texts = _text_fields(plain, delimiter)
    return [
        text if isinstance(cell, str) else str(_plain(cell))
        for text, cell in zip(texts, cells, strict=True)
    ]


def _text_fields(texts: Sequence[str], delimiter: str) -> Sequence[str]:
    """Return the fields of texts, which have quotes if they need them."""
    cells = csv_cells(texts)
    whole = "".join(cells)
    if not any(sign in whole for sign in (delimiter, '"', "\n")):
        return cells
    return [_quoted(cell, delimiter) for cell in cells]


def _quoted(cell: str, delimiter: str) -> str:
    if delimiter in cell or '"' in cell or "\n" in cell:
        quoted = cell.replace('"', '""')
        return f'"{quoted}"'
    return cell


def _plain(cell: Cell) -> str | float:
    # Only NaN differs from itself.
    if cell is None or cell != cell:  # noqa: PLR0124
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return cell


def _records(columns: Mapping[str, Sequence[Cell]]) -> Iterator[dict[str, Cell]]:
    plain = (
        [_in_json(cell) if isinstance(cell, float) else cell for cell in cells]
        for cells in columns.values()
    )
    for row in zip(*plain, strict=True):
        yield dict(zip(columns, row, strict=True))


def _in_json(value: Any) -> Any:
    """Return a value that JSON can hold: null in place of NaN, the text ``inf`` for infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {name: _in_json(each) for name, each in value.items()}
    return [*map(_in_json, value)] if isinstance(value, list | tuple) else value


def definitions_json(experiment: Experiment) -> dict[str, object]:
    """Return the JSON field with the metrics that formulas define; empty if there are none."""
    defined = {each.name: each.formula for each in experiment.definitions}
    return {"definitions": defined} if defined else {}


def parameters_json(experiment: Experiment) -> list[dict[str, object]]:
    """Return the JSON field of the varying parameters."""
    return [
        {"name": each.name, "values": list(each.values), "from": each.origin}
        for each in experiment.parameters
    ]


def provenance(experiment: Experiment, findings: Sequence[Finding]) -> dict[str, object]:
    """Return the JSON fields that describe the origin of the numbers."""
    return {
        "experiment": experiment.name,
        "locations": str(experiment.reduction),
        "scaling": str(experiment.scaling),
        "parameters": parameters_json(experiment),
        "inputs": [
            {"path": run.source, "parameters": dict(run.parameters), "repetition": run.repetition}
            for run in experiment.runs
        ],
        **definitions_json(experiment),
        "left_out": omissions_json(experiment.omissions),
        "findings": findings_json(findings),
    }


def findings_json(findings: Sequence[Finding]) -> list[dict[str, object]]:
    """Return findings as JSON."""
    return [
        {"code": f.code, "subject": f.subject, "message": f.message, "count": f.count}
        for f in findings
    ]


N_contra = TypeVar("N_contra", contravariant=True)


class Column(Struct, Generic[N_contra], frozen=True):
    """A column of a table, which files and text have.

    It is declared for all rows of one type, with functions of these rows. Or it is made for some
    rows, with their cells, and the type of rows is None.

    Attributes
    ----------
    key : name in files; "" = only in text, because files have the numbers under other names
    cells : cells of rows in files, or a function that returns them
    title : title in text, or a function that returns it, maybe as ""; "" = only in files
    form : function that formats a cell of files for text; None = by its type and unit
    unit : unit of the column, or a function that returns it; None = it has none
    text : cells of rows in text, or a function that returns them; None = those of files, formatted
    right : align to the right, as for numbers
    droppable : as for `TextColumn`
    styles : rich style of each row in text, or a function that returns them; () = no styles
    below : cells of the lines below those of rows in text, the last for the total; () = empty
    name : name of the column in text and pages, where it differs from `key`
    place : position in text, from the left
    applies : whether text has the column
    help : meaning, for the page on output
    """

    key: str
    cells: Values | Callable[[N_contra], Values]
    title: str | Callable[[N_contra], str] = ""
    form: Callable[[Any], str] | None = None
    unit: str | Callable[[N_contra], str] | None = None
    text: Sequence[str] | Callable[[N_contra, TextStyle], list[str]] | None = None
    right: bool = True
    droppable: int | Callable[[N_contra], int] = 0
    styles: Sequence[str] | Callable[[N_contra], Sequence[str]] = ()
    below: Sequence[str] = ()
    name: str = ""
    place: int = 99
    applies: Callable[[N_contra], bool] | None = None
    help: str = ""

    def values(self, rows: N_contra) -> Values:
        """Return the cells of rows in files."""
        return self.cells(rows) if callable(self.cells) else self.cells

    def shown(self, rows: N_contra, style: TextStyle, below: int = 0) -> TextColumn:
        """Return the column in text, with a number of lines below."""
        cells = self.texts(rows, style)
        if below:
            cells += [*[""] * below, *self.below][-below:]
        return TextColumn(
            self.title(rows) if callable(self.title) else self.title,
            cells,
            right=self.right,
            droppable=self.droppable(rows) if callable(self.droppable) else self.droppable,
            styles=self.styles(rows) if callable(self.styles) else self.styles,
        )

    def texts(self, rows: N_contra, style: TextStyle) -> list[str]:
        """Return the cells of rows in text."""
        if self.text is not None:
            return self.text(rows, style) if callable(self.text) else [*self.text]
        cells = _listed(self.values(rows))
        if self.form is not None:
            return [*map(self.form, cells)]
        unit = self.unit(rows) if callable(self.unit) else self.unit
        return [_text(cell, unit, style) for cell in cells]


def file_cells(columns: Iterable[Column[N_contra]], rows: N_contra) -> dict[str, list[Cell]]:
    """Return the cells of rows in files, by key."""
    return {each.key: _listed(each.values(rows)) for each in columns if each.key}


def file_units(columns: Iterable[Column[N_contra]], rows: N_contra) -> dict[str, str]:
    """Return the units of the columns in files that have one, by key."""
    return {
        each.key: each.unit(rows) if callable(each.unit) else each.unit
        for each in columns
        if each.key and each.unit is not None
    }


def applying(columns: Iterable[Column[N_contra]], rows: N_contra) -> list[Column[N_contra]]:
    """Return the columns of rows that text has, from left to right."""
    known = (each for each in columns if each.title)
    chosen = (each for each in known if each.applies is None or each.applies(rows))
    return sorted(chosen, key=lambda each: each.place)


def text_columns(
    columns: Iterable[Column[N_contra]], rows: N_contra, *, style: TextStyle, below: int = 0
) -> dict[str, TextColumn]:
    """Return columns that apply as text, by name, with a number of lines below."""
    return {each.name or each.key: each.shown(rows, style, below) for each in columns}


def shown_columns(
    columns: Iterable[Column[None]], style: TextStyle, below: int = 0
) -> list[TextColumn]:
    """Return columns that were made for their rows as text, with a number of lines below."""
    made = text_columns(applying(columns, None), None, style=style, below=below)
    return [*made.values()]


def table_of(columns: Sequence[Column[None]], header: Mapping[str, object]) -> Table:
    """Return columns that were made for their rows as a table, with fields of JSON."""
    return Table(file_cells(columns, None), file_units(columns, None), header)


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


def text_table_of(
    columns: Sequence[TextColumn], names: Sequence[str], title: str = "call path"
) -> Table:
    """Return columns as a terminal shows them, and the names of all lines, as a table of texts."""

    def made(block: IntArray) -> tuple[Sequence[TextColumn], list[str]]:
        return chosen_cells(columns, block), [names[k] for k in block.tolist()]

    return text_table(np.arange(len(names)), title, made)


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
