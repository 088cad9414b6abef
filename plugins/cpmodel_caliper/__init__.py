"""Reader of Caliper profiles: `.cali`, and JSON of `cali-query` (json-split and records)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpmodel_caliper.reader import CaliperReader

__all__ = ["CaliperReader"]


def __getattr__(name: str) -> object:
    # The reader imports numpy, which is too slow for listing the plugins.
    if name == "CaliperReader":
        from cpmodel_caliper.reader import CaliperReader

        return CaliperReader
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
