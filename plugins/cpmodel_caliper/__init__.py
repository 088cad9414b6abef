"""Caliper profiles: `.cali`, and JSON as `cali-query` writes it (json-split and records)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpmodel_caliper.reader import CaliperReader

__all__ = ["CaliperReader"]


def __getattr__(name: str) -> object:
    # The reader stands on numpy; finding the plugin must not cost its import.
    if name == "CaliperReader":
        from cpmodel_caliper.reader import CaliperReader

        return CaliperReader
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
