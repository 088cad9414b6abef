"""OTF2 traces, replayed into call-path profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpmodel_otf2.reader import TraceReader

__all__ = ["TraceReader"]


def __getattr__(name: str) -> object:
    # The reader stands on numpy; finding the plugin must not cost its import.
    if name == "TraceReader":
        from cpmodel_otf2.reader import TraceReader

        return TraceReader
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
