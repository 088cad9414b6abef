"""Matrices as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from callpath_modeler.report.layout import TextColumn, TextStyle, shorten, table, wrap
from callpath_modeler.units import signed_percent
from cpmodel_guidelines.matrix import CellVerdict, Matrix, MatrixCell, MatrixRow, mark_of
from cpmodel_guidelines.matrix_output.content import (
    SIGNS,
    MatrixContent,
    interval_text,
    labels_of,
    probability_text,
    title_of,
)
from cpmodel_guidelines.matrix_output.grid import Grid, GridCell
from cpmodel_guidelines.text import say

_GREY = "dim"
_STYLES = {
    CellVerdict.VIOLATED: "bold red",
    CellVerdict.HOLDS: "green",
    CellVerdict.OPEN: "yellow",
    CellVerdict.NOT_SHOWN: _GREY,
}


def matrix_text(content: MatrixContent, style: TextStyle) -> list[Text]:
    """Return the counts, the table of all libraries, each matrix, and the legend."""
    lines = wrap(say(style, content.headline), style.width, "bold")
    for said in content.context:
        lines += wrap(say(style, said), style.width, _GREY)
    lines += [Text(""), *_counts(content, style)]
    if len(content.matrices) > 1:
        lines += [Text(""), *_overview(content.matrices, style)]
    for each in content.matrices:
        lines += [Text(""), *_matrix(each, style)]
    lines.append(Text(""))
    for note in content.notes:
        lines += wrap(say(style, note), style.width, _GREY, "  ")
    return lines


def _numbers(matrices: Sequence[Matrix]) -> list[str]:
    """Return the numbers by which tables name matrices."""
    return [str(k) for k in range(1, len(matrices) + 1)]


def _counts(content: MatrixContent, style: TextStyle) -> Iterator[Text]:
    """Yield the number of violated guidelines of each kind, one line per matrix."""
    kinds = dict.fromkeys(kind for count in content.counts for kind in count)
    columns = [TextColumn("", _numbers(content.matrices))] if len(content.matrices) > 1 else []
    columns += [
        TextColumn(str(kind), [str(count.get(kind, "")) for count in content.counts])
        for kind in kinds
    ]
    names = [[say(style, title_of(each))] for each in content.matrices]
    dots = say(style, "…")
    yield from table(columns, names, style.width, title="violated", ellipsis=dots)


def _overview(matrices: Sequence[Matrix], style: TextStyle) -> list[Text]:
    """Return the table of guidelines and matrices, with the most certain violation of each."""
    rows = [{row.guideline.short: row for row in each.rows} for each in matrices]
    names = [*dict.fromkeys(name for each in rows for name in each)]
    cells = [[_overview_cell(each.get(name), style) for each in rows] for name in names]
    shown = [say(style, name) for name in names]
    grid = Grid("guideline, at any size", shown, _numbers(matrices), cells)
    return grid.lines(style.width, say(style, "…"))


def _overview_cell(row: MatrixRow | None, style: TextStyle) -> GridCell:
    verdict = None if row is None else row.verdict
    if row is None or verdict is None:
        return GridCell()
    return GridCell(row.mark or say(style, SIGNS[verdict]), _STYLES[verdict])


def _matrix(matrix: Matrix, style: TextStyle) -> Iterator[Text]:
    axis = matrix.axis and f" · columns: {matrix.axis}"
    yield from wrap(say(style, f"{title_of(matrix)}{axis}"), style.width, "bold")
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
            line.append(GridCell(say(style, _worst(row))))
    names = [say(style, row.guideline.short) for row in matrix.rows]
    yield from Grid("guideline", names, heads, cells).lines(style.width, say(style, "…"))
    if matrix.is_predicted:
        yield from _bands(matrix, style)


def _cell(cell: MatrixCell | None, style: TextStyle) -> GridCell:
    if cell is None:
        return GridCell()
    sign = cell.mark or say(style, SIGNS[cell.verdict])
    if cell.probability is not None:
        sign = probability_text(cell).removesuffix(" %") or sign
    return GridCell(sign, _STYLES[cell.verdict])


def _worst(row: MatrixRow) -> str:
    """Return the largest slowdown among the violations of a row."""
    worst = None if row.worst is None else row.cells[row.worst]
    factor = worst.factor if worst else row.mean.factor if row.mean else None
    return "" if factor is None else signed_percent(factor - 1)


def _bands(matrix: Matrix, style: TextStyle) -> Iterator[Text]:
    """Yield the predicted slowdown with its band, at the size where it is largest."""
    labels, rows = labels_of(matrix), []
    for row in matrix.rows:
        worst = row.worst
        cell = None if worst is None else row.cells[worst]
        if worst is not None and cell is not None:
            at = f"{matrix.axis}={labels[worst]}" if matrix.axis else ""
            rows.append((signed_percent(cell.factor - 1), interval_text(cell), at, row))
    if not rows:
        return
    yield Text("")
    columns = [
        TextColumn("slower", [say(style, row[0]) for row in rows]),
        TextColumn("band", [say(style, row[1]) for row in rows]),
        TextColumn("at", [row[2] for row in rows], droppable=2),
    ]
    names = [[shorten([say(style, row[3].guideline.short)], None)] for row in rows]
    dots = say(style, "…")
    yield from table(columns, names, style.width, title="predicted violation", ellipsis=dots)
