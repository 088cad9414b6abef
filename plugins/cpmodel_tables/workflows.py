"""Reader of results of workflow tools: JUBE, ReFrame, Ramble, Benchpark, Thicket.

The tables of JUBE are read here, and the other results in a module for each tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import Match, RunSource
from callpath_modeler.readers.paths import is_measured
from cpmodel_tables import ramble, reframe, thicket
from cpmodel_tables.delimited import refuse_twice
from cpmodel_tables.dialects import is_rule
from cpmodel_tables.grid import Grid, as_numbers, refuse_many, without_rows
from cpmodel_tables.layout import TableLayout, is_table, layout_of
from cpmodel_tables.reader import JSON, PICKLE, YAML
from cpmodel_tables.tables import runs_of_grid
from cpmodel_tables.text import first_text, whole_text

_PRINTED = re.compile(r"\s*Callpath: [^\n]*\n\s*Metric: ")


class Results:
    """Reader of results of workflow tools: JUBE, ReFrame, Ramble, Benchpark, Thicket."""

    def match(self, path: Path) -> Match:
        """Return whether `path` contains results of a workflow tool, by its first block."""
        if path.name.lower().endswith((*PICKLE, *YAML)):
            return Match.NAME if path.stat().st_size else Match.NO
        text = first_text(path)
        if path.name.lower().endswith(JSON):
            is_ours = ramble.is_json(text) or reframe.is_report(text) or thicket.is_json(text)
            return Match.CONTENT if is_ours else Match.NO
        if ramble.is_text(text) or reframe.is_log(text) or _is_jube(text):
            return Match.CONTENT
        return Match.NAME if text.strip() else Match.NO

    def runs(self, path: Path) -> Sequence[RunSource]:
        """Return the runs in the results.

        Raises
        ------
        InputError
            If the file is damaged, or its variant is not supported.
        """
        if path.name.lower().endswith(PICKLE):
            raise InputError(
                f"{path}: pickles are not read, because they can execute any program",
                hint="write thicket.to_json(), or DataFrame.to_csv() or to_parquet(), instead",
            )
        text = first_text(path)
        if path.name.lower().endswith(YAML):
            hint = "write results.latest.json with: ramble workspace analyze --formats json"
            what = "Ramble's results in YAML are" if ramble.is_yaml(text) else "YAML is"
            raise InputError(f"{path}: {what} not read", hint=hint)
        if path.name.lower().endswith(JSON):
            return _runs_of_json(path, text)
        if ramble.is_text(text):
            return ramble.read_text(path)
        if reframe.is_log(text):
            return reframe.read_log(path)
        if reframe.is_old_log(text):
            raise InputError(
                f"{path}: this log of ReFrame has no header; only logs of version 4 and later do",
                hint="use the run report (run-report.json), or a log of version 4",
            )
        if _PRINTED.match(text):
            raise InputError(
                f"{path}: this printout of Extra-P has only three digits, and no parameter values",
                hint="save the measurements: extrap ... --save-experiment app.extra-p",
            )
        return runs_of_grid(*_read_jube(path))


def _runs_of_json(path: Path, text: str) -> list[RunSource]:
    if thicket.is_json(text):
        return runs_of_grid(*thicket.read(path))
    return reframe.read_report(path) if reframe.is_report(text) else ramble.read_json(path)


_NAME = re.compile(r"\s*(\S[^|]*):\s*")
_MOST_NAME = 200
_LEAST_ROWS = 2
_CREATOR = "JUBE"


@dataclass(slots=True)
class _Table:
    """One table of a file.

    Attributes
    ----------
    name : text above the table, or ""
    rows : cells; the first row is the header
    lines : line number of each row
    is_ruled : whether a rule follows the header
    """

    name: str
    rows: list[list[str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    is_ruled: bool = False


def _is_jube(text: str) -> bool:
    """Return whether a text contains a table with bars, by its first block."""
    return any(table.is_ruled or _is_transposed(table) for table in _tables(text.split("\n")))


def _read_jube(path: Path) -> tuple[Grid, TableLayout, list[Finding]]:
    """Return the joined tables of a file; several tables describe the same runs.

    Raises
    ------
    InputError
        If there is no table, a row is too short, or the tables do not fit together.
    """
    tables = list(_tables(whole_text(path).split("\n")))
    tables = [table for table in tables if table.is_ruled or _is_transposed(table)]
    if not tables:
        raise InputError(
            f"{path}: no table of results found",
            hint="supported: tables of JUBE, CSV, logs of ReFrame 4, results of Ramble",
        )
    grids = [(table, _grid(path, table)) for table in tables]
    usable = [(table, grid) for table, grid in grids if any(map(is_measured, grid.columns))]
    usable = usable or grids
    findings = []
    if len(usable) < len(grids):
        names = [table.name or f"line {table.lines[0]}" for table, grid in grids
                 if all(grid is not other for _, other in usable)]  # fmt: skip
        message = f"tables without measurements: {', '.join(names)}"
        findings.append(Finding("CPM125", str(path), message, len(names)))
    layouts = [layout_of(grid) for _, grid in usable]
    if len(usable) == 1:
        return usable[0][1], layouts[0], findings
    return *_joined(path, usable, layouts), findings


def _is_sideways(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the titles are in the first column, followed by one column per run."""
    titles = [row[0] for row in rows if row]
    if not is_table(titles):
        return False
    return all(
        len(row) > 1 and as_numbers(row[1:]) is not None for row in rows if is_measured(row[0])
    )


def _is_transposed(table: _Table) -> bool:
    return not table.is_ruled and len(table.rows) >= _LEAST_ROWS and _is_sideways(table.rows)


def _tables(lines: Sequence[str]) -> Iterator[_Table]:
    """Yield each block of lines with bars, with the name above it."""
    table, above = _Table(""), ""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if "|" not in text and not (table.rows and is_rule(text)):
            if table.rows:
                yield table
            named = _NAME.fullmatch(line) if len(line) < _MOST_NAME else None
            above = named[1] if named else (above if not text else "")
            table = _Table(above)
        elif is_rule(text):
            # A second rule belongs to the frame of another kind of table.
            table.is_ruled = table.is_ruled or len(table.rows) == 1
        else:
            table.rows.append([cell.strip() for cell in _within_bars(text).split("|")])
            table.lines.append(number)
    if table.rows:
        yield table


def _within_bars(text: str) -> str:
    if text.startswith("|") and text.endswith("|") and len(text) > 1:
        return text[1:-1]
    return text


def _grid(path: Path, table: _Table) -> Grid:
    if not table.is_ruled:
        table = _turned(path, table)
    titles, *rows = table.rows
    if not rows:
        raise without_rows(path)
    refuse_many(path, len(titles))
    refuse_twice(path, titles)
    for row, line in zip(rows, table.lines[1:], strict=True):
        if len(row) != len(titles):
            raise InputError(
                f"{path}: line {line}: {len(row)} cells, but the header has {len(titles)}",
                hint="copy the file again, or write the table as CSV",
            )
    columns = {title: [row[k] for row in rows] for k, title in enumerate(titles)}
    lines = np.array(table.lines[1:], np.intp)
    return Grid(path, columns, lines, is_result=True, creator=_CREATOR)


def _turned(path: Path, table: _Table) -> _Table:
    """Return a table with its titles in the first row instead of the first column."""
    if len({*map(len, table.rows)}) > 1:
        raise InputError(f"{path}: the rows differ in length", hint="copy the file again")
    rows = [[*row] for row in zip(*table.rows, strict=True)]
    return _Table(table.name, rows, [table.lines[0]] * len(rows))


def _joined(
    path: Path, tables: Sequence[tuple[_Table, Grid]], layouts: Sequence[TableLayout]
) -> tuple[Grid, TableLayout]:
    """Join tables with different metrics of the same runs: one row per value."""
    first = layouts[0]
    shared = (*first.callpath, *first.parameters, *filter(None, [first.repetition]))
    rows: list[list[object]] = []
    lines: list[int] = []
    metrics: set[str] = set()
    for (table, grid), layout in zip(tables, layouts, strict=True):
        here = (*layout.callpath, *layout.parameters, *filter(None, [layout.repetition]))
        again = metrics & {*layout.values}
        if {*here} != {*shared} or again or layout.metric:
            what = f"both contain {min(again)}" if again else "their parameters differ"
            raise InputError(
                f"{path}: the tables {tables[0][0].name or 'of line 1'} and "
                f"{table.name or f'of line {table.lines[0]}'} do not belong together: {what}",
                hint="put each table into a separate file",
            )
        metrics |= {*layout.values}
        for k, line in enumerate(grid.lines.tolist()):
            for title in layout.values:
                told = [grid.columns[name][k] for name in shared]
                rows.append([*told, title, grid.columns[title][k]])
                lines.append(line)
    titles = [*shared, "metric", "value"]
    columns = {title: [row[k] for row in rows] for k, title in enumerate(titles)}
    grid = Grid(path, columns, np.array(lines, np.intp), is_result=True, creator=_CREATOR)
    roles = first.callpath, first.parameters, ("value",)
    return grid, TableLayout(*roles, first.repetition, "metric", None, None, ())
