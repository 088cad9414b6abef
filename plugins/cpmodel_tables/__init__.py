"""Readers of tables, logs, results of workflow tools, Extra-P files, folded stacks and literals."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpmodel_tables.reader import (
        ExtrapReader,
        FoldedReader,
        HatchetReader,
        LogReader,
        ProfilerReader,
        TableReader,
        WorkflowReader,
    )

__all__ = [
    "ExtrapReader",
    "FoldedReader",
    "HatchetReader",
    "LogReader",
    "ProfilerReader",
    "TableReader",
    "WorkflowReader",
]


def __getattr__(name: str) -> object:
    # The contract of readers imports numpy, which is too slow for listing the plugins.
    if name in __all__:
        from cpmodel_tables import reader

        return getattr(reader, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
