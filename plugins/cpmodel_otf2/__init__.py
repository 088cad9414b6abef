"""Reader of OTF2 traces, which are replayed into call path profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpmodel_otf2.reader import TraceReader

__all__ = ["TraceReader"]


def __getattr__(name: str) -> object:
    # The reader imports numpy, which is too slow for listing the plugins.
    if name == "TraceReader":
        from cpmodel_otf2.reader import TraceReader

        return TraceReader
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
