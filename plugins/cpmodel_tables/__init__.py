"""Readers of tables, workflow tools' results, Extra-P files, folded stacks and Hatchet literals."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpmodel_tables.extrap import ExtrapReader
    from cpmodel_tables.profiles import FoldedReader, HatchetReader
    from cpmodel_tables.tables import TableReader
    from cpmodel_tables.workflows import WorkflowReader

_HOMES = {
    "ExtrapReader": "extrap",
    "FoldedReader": "profiles",
    "HatchetReader": "profiles",
    "TableReader": "tables",
    "WorkflowReader": "workflows",
}

__all__ = ["ExtrapReader", "FoldedReader", "HatchetReader", "TableReader", "WorkflowReader"]


def __getattr__(name: str) -> object:
    # The readers import numpy, which is too slow for listing the plugins.
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
