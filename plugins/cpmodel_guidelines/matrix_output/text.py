"""Matrices as lines for people, and as tables for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from callpath_modeler.report.layout import GAP, TextColumn, TextStyle, shorten, wrap
from callpath_modeler.report.table_formats import Cell, Table
from callpath_modeler.units import as_option
from cpmodel_guidelines.matrix_content import (
    SIGNS,
    CellVerdict,
    Matrix,
    MatrixCell,
    MatrixContent,
    MatrixRow,
    ViolatedShare,
    labels_of,
    mark_of,
    probability_text,
    title_of,
)
from cpmodel_guidelines.rules import GuidelineKind
from cpmodel_guidelines.verification_text import GuidelineStyle

_LEAST_COLUMNS = 6
"""Columns that must fit beside the names; otherwise names have lines of their own."""
_LEAST = 3
"""Least width of a cell: that of three stars."""
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class GridCell:
    """A short text with its style."""

    text: str = ""
    style: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows with names, and columns with titles.

    Attributes
    ----------
    title : title of the names
    names : name of each row
    heads : title of each column
    cells : cells of each row
    """

    title: str
    names: Sequence[str]
    heads: Sequence[str]
    cells: Sequence[Sequence[GridCell]]

    def lines(self, width: int | None, ellipsis: str = "…") -> list[Text]:
        """Return the lines: blocks of columns, with the names on the right of each block.

        On a narrow terminal, each name has its own line above its cells.

        Parameters
        ----------
        width : width of the terminal in cells; None = unlimited
        ellipsis : text in place of omitted characters
        """
        if not self.names:
            return []
        widths = [
            max(_LEAST, *(cell_len(text) for text in (head, *(row[k].text for row in self.cells))))
            for k, head in enumerate(self.heads)
        ]
        longest = max(map(cell_len, (self.title, *self.names)))
        beside = longest + GAP
        least = sum(each + 1 for each in widths[:_LEAST_COLUMNS]) + beside
        is_beside = width is None or least <= width
        room = None if width is None else width - (beside if is_beside else len(_INDENT))
        lines: list[Text] = []
        for block in _blocks(widths, room):
            lines += [Text("")] if lines else []
            lines += self._block(block, widths, width, ellipsis, is_beside=is_beside)
        return lines

    def _block(
        self,
        block: range,
        widths: Sequence[int],
        width: int | None,
        ellipsis: str,
        *,
        is_beside: bool,
    ) -> Iterator[Text]:
        heads = [GridCell(self.heads[k], "bold") for k in block]
        rows = [(heads, self.title), *zip(self.cells, self.names, strict=True)]
        for number, (cells, name) in enumerate(rows):
            style = "bold" if not number else ""
            chosen = cells if not number else [cells[k] for k in block]
            line = _line(chosen, [widths[k] for k in block])
            if is_beside:
                line.append(" " * GAP)
                line.append(name, style or None)
                yield line
                continue
            if number:
                room = None if width is None else max(width, 1)
                yield from _named(name, room, ellipsis)
            yield Text(_INDENT, no_wrap=True, overflow="ignore").append_text(line)


def _named(name: str, width: int | None, ellipsis: str) -> Iterator[Text]:
    """Yield the lines of a name; single words that are too long are cut."""
    for line in wrap(name, width, "", _INDENT):
        yield Text(shorten([line.plain], width, ellipsis))


def _blocks(widths: Sequence[int], room: int | None) -> Iterator[range]:
    """Yield ranges of columns that fit into `room`, at least one column each."""
    start = taken = 0
    for k, each in enumerate(widths):
        if room is not None and k > start and taken + each + 1 > room + 1:
            yield range(start, k)
            start, taken = k, 0
        taken += each + 1
    if widths:
        yield range(start, len(widths))


def _line(cells: Sequence[GridCell], widths: Sequence[int]) -> Text:
    line = Text(no_wrap=True, overflow="ignore")
    for k, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        line.append(" " * bool(k) + " " * (width - cell_len(cell.text)))
        line.append(cell.text, cell.style or None)
    return line


_GREY = "dim"
_STYLES = {
    CellVerdict.VIOLATED: "bold red",
    CellVerdict.HOLDS: "green",
    CellVerdict.OPEN: "yellow",
    CellVerdict.NOT_SHOWN: _GREY,
}


def matrix_text(content: MatrixContent, style: TextStyle) -> list[Text]:
    """Return the counts, the table of all libraries, each matrix, and the legend."""
    style = GuidelineStyle.of(style)
    lines = style.lines([content.headline], "bold") + style.lines(content.context, _GREY)
    lines += [Text(""), *_counts(content, style)]
    if len(content.matrices) > 1:
        lines += [Text(""), *_overview(content.matrices, style)]
    for each in content.matrices:
        lines += [Text(""), *_matrix(each, style)]
    return [*lines, Text(""), *style.lines(content.notes, _GREY, "  ")]


def _numbers(matrices: Sequence[Matrix]) -> list[str]:
    """Return the numbers by which tables name matrices."""
    return [str(k) for k in range(1, len(matrices) + 1)]


def _counts(content: MatrixContent, style: TextStyle) -> list[Text]:
    """Return the number of violated guidelines of each kind, one line per matrix."""
    kinds = dict.fromkeys(kind for count in content.counts for kind in count)
    columns = [TextColumn("", _numbers(content.matrices))] if len(content.matrices) > 1 else []
    columns += [
        TextColumn(str(kind), [str(count.get(kind, "")) for count in content.counts])
        for kind in kinds
    ]
    return style.table(columns, [[title_of(each)] for each in content.matrices], title="violated")


def _overview(matrices: Sequence[Matrix], style: TextStyle) -> list[Text]:
    """Return the table of guidelines and matrices, with the most certain violation of each."""
    rows = [{row.guideline.short: row for row in each.rows} for each in matrices]
    names = [*dict.fromkeys(name for each in rows for name in each)]
    cells = [[_overview_cell(each.get(name), style) for each in rows] for name in names]
    shown = [style.say(name) for name in names]
    grid = Grid("guideline, at any size", shown, _numbers(matrices), cells)
    return grid.lines(style.width, style.say("…"))


def _overview_cell(row: MatrixRow | None, style: TextStyle) -> GridCell:
    verdict = None if row is None else row.verdict
    if row is None or verdict is None:
        return GridCell()
    return GridCell(row.mark or style.say(SIGNS[verdict]), _STYLES[verdict])


def _matrix(matrix: Matrix, style: TextStyle) -> Iterator[Text]:
    axis = matrix.axis and f" · columns: {matrix.axis}"
    yield from style.lines([f"{title_of(matrix)}{axis}"], "bold")
    heads, cells = labels_of(matrix), [
        [_cell(each, style) for each in row.cells] for row in matrix.rows
    ]  # fmt: skip
    if any(row.mean for row in matrix.rows):
        heads.append("mean")
        for row, line in zip(matrix.rows, cells, strict=True):
            mark = "" if row.mean is None else mark_of(row.mean.rate)
            line.append(GridCell(mark, _STYLES[CellVerdict.VIOLATED]))
    if not matrix.is_predicted:
        heads.append("worst")
        for row, line in zip(matrix.rows, cells, strict=True):
            line.append(GridCell(style.say(_worst(row))))
    names = [style.say(row.guideline.short) for row in matrix.rows]
    yield from Grid("guideline", names, heads, cells).lines(style.width, style.say("…"))
    if matrix.is_predicted:
        yield from _bands(matrix, style)


def _cell(cell: MatrixCell | None, style: TextStyle) -> GridCell:
    if cell is None:
        return GridCell()
    sign = cell.mark or style.say(SIGNS[cell.verdict])
    if cell.probability is not None:
        sign = probability_text(cell).removesuffix(" %") or sign
    return GridCell(sign, _STYLES[cell.verdict])


def _worst(row: MatrixRow) -> str:
    """Return the largest slowdown among the violations of a row."""
    worst = None if row.worst is None else row.cells[row.worst]
    largest = worst or row.mean
    return largest.by if largest else ""


def _bands(matrix: Matrix, style: TextStyle) -> Iterator[Text]:
    """Yield the predicted slowdown with its band, at the size where it is largest."""
    labels, rows = labels_of(matrix), []
    for row in matrix.rows:
        worst = row.worst
        cell = None if worst is None else row.cells[worst]
        if worst is not None and cell is not None:
            at = f"{matrix.axis}={labels[worst]}" if matrix.axis else ""
            rows.append((cell.by, cell.interval, at, row))
    if not rows:
        return
    yield Text("")
    columns = [
        TextColumn("slower", [row[0] for row in rows]),
        TextColumn("band", [row[1] for row in rows]),
        TextColumn("at", [row[2] for row in rows], droppable=2),
    ]
    names = [[row[3].guideline.short] for row in rows]
    yield from style.table(columns, names, title="predicted violation")


def matrix_table(content: MatrixContent) -> Table:
    """Return the marks or verdicts of all matrices, and nested cells as a field of JSON."""
    sizes = sorted({(each.axis, size) for each in content.matrices for size in each.columns})
    rows: list[dict[str, Cell]] = []
    for matrix in content.matrices:
        at = {(matrix.axis, size): k for k, size in enumerate(matrix.columns)}
        for row in matrix.rows:
            signs = {_title(*size): _sign(row, at.get(size)) for size in sizes}
            rows.append({**_identity(matrix, row), **signs})
    nested = [
        _nested(matrix, count)
        for matrix, count in zip(content.matrices, content.counts, strict=True)
    ]
    return Table.of_rows(rows, header={**content.header, "matrices": nested})


def _title(axis: str, size: float) -> str:
    return as_option({axis: size}) if axis else "all"


def _identity(matrix: Matrix, row: MatrixRow) -> dict[str, Cell]:
    worst = None if row.worst is None else row.cells[row.worst]
    mean = row.mean
    return {
        "group": "/".join(matrix.group),
        "at": as_option(matrix.at),
        "predicted": matrix.is_predicted,
        "guideline": row.guideline.text,
        "kind": str(row.guideline.kind),
        "function": row.guideline.left.function,
        "verdict": None if row.verdict is None else str(row.verdict),
        "worst_factor": worst.factor if worst else None,
        "mean_factor": None if mean is None else mean.factor,
        "mean": None if mean is None else mark_of(mean.rate),
    }


def _sign(row: MatrixRow, column: int | None) -> str | None:
    """Return the mark of a violation, or the verdict; None = not measured."""
    cell = None if column is None else row.cells[column]
    return None if cell is None else cell.mark or str(cell.verdict)


def _nested(matrix: Matrix, count: Mapping[GuidelineKind, ViolatedShare]) -> dict[str, object]:
    return {
        "group": "/".join(matrix.group),
        "at": dict(matrix.at),
        "predicted": matrix.is_predicted,
        "columns": matrix.axis,
        "counts": {
            str(kind): {"violated": share.violated, "of": share.of}
            for kind, share in count.items()
        },
        "guidelines": [
            {
                **{key: value for key, value in _identity(matrix, row).items()
                   if key not in {"group", "at", "predicted"}},
                "cells": [
                    _cell_fields(size, cell)
                    for size, cell in zip(matrix.columns, row.cells, strict=True)
                    if cell is not None
                ],
            }
            for row in matrix.rows
        ],
    }  # fmt: skip


def _cell_fields(size: float, cell: MatrixCell) -> dict[str, Cell]:
    return {
        "value": size,
        "verdict": str(cell.verdict),
        "mark": cell.mark,
        "factor": cell.factor,
        "low": cell.low,
        "high": cell.high,
        "rate": cell.rate,
        "probability": cell.probability,
        "basis": cell.basis,
    }
