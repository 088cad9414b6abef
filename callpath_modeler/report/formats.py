"""Tables as CSV, TSV, JSON, JSON lines and Markdown: full precision, units named."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from callpath_modeler.diagnostics import Finding
    from callpath_modeler.profile.experiment import Experiment

Cell = str | int | float | bool | None

SCHEMA = 1
"""Number of the JSON layout; raised when a field changes its meaning or goes."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equal length with their units.

    Attributes
    ----------
    columns : values by name, in order; None = no value
    units : unit by column name, where there is one
    header : what JSON says beside the rows: findings, parameters, inputs, ...
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
        """Return the table for pandas; titles carry units."""
        import pandas as pd

        return pd.DataFrame(dict(zip(self.titles(), self.columns.values(), strict=True)))

    def titles(self) -> list[str]:
        """Return column names with units in brackets."""
        return [f"{n}[{self.units[n]}]" if n in self.units else n for n in self.columns]

    def rows(self) -> list[tuple[Cell, ...]]:
        """Return the rows."""
        return list(zip(*self.columns.values(), strict=True))


def to_csv(table: Table, *, delimiter: str = ",", header: bool = True) -> str:
    """Write delimited text; no value is an empty field, infinity is ``inf``."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    if header:
        writer.writerow(table.titles())
    writer.writerows([_plain(cell) for cell in row] for row in table.rows())
    return out.getvalue()


def to_json(table: Table) -> str:
    """Write one JSON object: ``schema``, what the header says, ``units`` and ``rows``."""
    document = {"schema": SCHEMA, **table.header, "units": dict(table.units)}
    document["rows"] = [_record(table, row) for row in table.rows()]
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def to_jsonl(table: Table) -> str:
    """Write one JSON object per row."""
    return "".join(
        json.dumps(_record(table, row), ensure_ascii=False) + "\n" for row in table.rows()
    )


def to_markdown(table: Table) -> str:
    """Write a Markdown table."""
    lines = [table.titles(), ["---"] * len(table.columns)]
    lines += [[_markdown(cell) for cell in row] for row in table.rows()]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _markdown(cell: Cell) -> str:
    return " ".join(str(_plain(cell)).splitlines()).replace("|", "\\|")


def _plain(cell: Cell) -> str | int:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return repr(cell) if isinstance(cell, float) else cell


def _record(table: Table, row: Sequence[Cell]) -> dict[str, Cell]:
    return {
        name: json_number(cell) if isinstance(cell, float) else cell
        for name, cell in zip(table.columns, row, strict=True)
    }


def json_number(value: float) -> float | str | None:
    """Return what JSON can hold: it has no NaN (null) and no infinity (the text ``inf``)."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return None
    return "inf" if value > 0 else "-inf"


def provenance(experiment: Experiment, findings: Sequence[Finding]) -> dict[str, object]:
    """Return what JSON says of where numbers come from."""
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
        "findings": [
            {"code": f.code, "subject": f.subject, "message": f.message, "count": f.count}
            for f in findings
        ],
    }
