"""Reader of Score-P profiles: CUBE 4 (`.cubex`) and CUBE 3 (`.cube`, `.cube.gz`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpmodel_scorep.reader import CubexReader

__all__ = ["CubexReader"]


def __getattr__(name: str) -> object:
    # The reader imports numpy, which is too slow for listing the plugins.
    if name == "CubexReader":
        from cpmodel_scorep.reader import CubexReader

        return CubexReader
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
