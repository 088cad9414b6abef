"""Tables of measurements: CSV, JSON Lines, Extra-P's formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpmodel_tables.extrap import ExtrapReader
    from cpmodel_tables.tables import TableReader

_HOMES = {"ExtrapReader": "extrap", "TableReader": "tables"}

__all__ = ["ExtrapReader", "TableReader"]


def __getattr__(name: str) -> object:
    # The readers stand on numpy; finding the plugin must not cost its import.
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
