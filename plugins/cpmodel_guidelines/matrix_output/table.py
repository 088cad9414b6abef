"""Matrices as tables for programs: one row per guideline, one column per message size."""

from __future__ import annotations

from collections.abc import Mapping

from callpath_modeler.report.table_formats import Cell, Table
from callpath_modeler.units import as_option
from cpmodel_guidelines.matrix_content import (
    Matrix,
    MatrixCell,
    MatrixContent,
    MatrixRow,
    ViolatedShare,
    mark_of,
)
from cpmodel_guidelines.rules import GuidelineKind


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
                    _cell(size, cell)
                    for size, cell in zip(matrix.columns, row.cells, strict=True)
                    if cell is not None
                ],
            }
            for row in matrix.rows
        ],
    }  # fmt: skip


def _cell(size: float, cell: MatrixCell) -> dict[str, Cell]:
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
