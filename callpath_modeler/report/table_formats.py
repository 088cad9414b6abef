"""Tables as CSV, TSV, JSON, JSON lines and Markdown, with full precision and units."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import TYPE_CHECKING

from callpath_modeler.printable import csv_cells, json_text, markdown_text
from callpath_modeler.profile.omissions import omissions_json

if TYPE_CHECKING:
    import pandas as pd

    from callpath_modeler.diagnostics import Finding
    from callpath_modeler.profile.experiment import Experiment

Cell = str | int | float | bool | None

SCHEMA = 1
"""Version of the JSON layout; it rises when a field is removed or changes its meaning."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equal length with their units.

    Attributes
    ----------
    columns : values by name, in order; None = no value
    units : unit by name of column, for columns with a unit
    header : further fields of the JSON object: findings, parameters, inputs, ...
    """

    columns: Mapping[str, Sequence[Cell]]
    units: Mapping[str, str] = field(default_factory=dict)
    header: Mapping[str, object] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def pick(self, names: Sequence[str]) -> Table:
        """Return the table with the columns `names` only, in that order."""
        return Table({name: self.columns[name] for name in names}, self.units, self.header)

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame; titles contain units."""
        import pandas as pd

        return pd.DataFrame(dict(zip(self.titles(), self.columns.values(), strict=True)))

    def titles(self) -> list[str]:
        """Return column names with units in brackets."""
        return [f"{n}[{self.units[n]}]" if n in self.units else n for n in self.columns]

    def rows(self) -> list[tuple[Cell, ...]]:
        """Return the rows."""
        return list(zip(*self.columns.values(), strict=True))


def to_csv(table: Table, *, delimiter: str = ",", header: bool = True) -> str:
    """Return delimited text; a missing value is an empty field, infinity is ``inf``.

    A text that a spreadsheet would read as a formula starts with an apostrophe.
    """
    return "".join(csv_pieces([table], delimiter=delimiter, header=header))


def csv_pieces(
    tables: Iterable[Table], *, delimiter: str = ",", header: bool = True
) -> Iterator[str]:
    """Yield the text of tables with the same columns, one below the other, as `to_csv` does.

    Each table is one piece, so a generator of tables needs the memory of one.
    """
    for table in tables:
        columns = [_fields(cells, delimiter) for cells in table.columns.values()]
        lines = [delimiter.join(_text_fields(table.titles(), delimiter))] if header else []
        header = False
        rows = zip(*columns, strict=True)
        # A line without any character would be no row.
        written = map(delimiter.join, rows)
        lines += written if len(columns) > 1 else (line or '""' for line in written)
        yield "".join(f"{line}\n" for line in lines)


def to_json(table: Table) -> str:
    """Return one JSON object: ``schema``, the fields of the header, ``units`` and ``rows``."""
    document = {"schema": SCHEMA, **table.header, "units": dict(table.units), "rows": []}
    text = json_text(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))
    # The encoder is slow with indentation, and a record has no nested values to indent.
    encode = json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, separators=(",\n   ", ": ")
    ).encode
    records = json_text(
        ",\n".join(f"  {{\n   {encode(record)[1:-1]}\n  }}" for record in _records(table))
    )
    return f"{text[:-4]}[\n{records}\n ]\n}}\n" if records else f"{text}\n"


def to_jsonl(table: Table) -> str:
    """Return one JSON object per row."""
    records = (json.dumps(record, ensure_ascii=False) for record in _records(table))
    return json_text("".join(f"{record}\n" for record in records))


def to_markdown(table: Table) -> str:
    """Return a Markdown table."""
    lines = [list(map(markdown_text, table.titles())), ["---"] * len(table.columns)]
    lines += [[markdown_text(str(_plain(cell))) for cell in row] for row in table.rows()]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


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


def _records(table: Table) -> Iterator[dict[str, Cell]]:
    columns = (
        [json_number(cell) if isinstance(cell, float) else cell for cell in cells]
        for cells in table.columns.values()
    )
    for row in zip(*columns, strict=True):
        yield dict(zip(table.columns, row, strict=True))


def known_or_none(value: float) -> float | None:
    """Return a number as a cell; None = it is not known (NaN)."""
    return None if math.isnan(value) else value


def json_number(value: float) -> float | str | None:
    """Return a number that JSON can hold: NaN becomes null, infinity becomes the text ``inf``."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return None
    return "inf" if value > 0 else "-inf"


def definitions_json(experiment: Experiment) -> dict[str, object]:
    """Return the JSON field with the metrics that formulas define; empty if there are none."""
    defined = {each.name: each.formula for each in experiment.definitions}
    return {"definitions": defined} if defined else {}


def provenance(experiment: Experiment, findings: Sequence[Finding]) -> dict[str, object]:
    """Return the JSON fields that describe the origin of the numbers."""
    return {
        "experiment": experiment.name,
        "locations": str(experiment.reduction),
        "scaling": str(experiment.scaling),
        "parameters": [
            {"name": p.name, "values": list(p.values), "from": p.origin}
            for p in experiment.parameters
        ],
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
