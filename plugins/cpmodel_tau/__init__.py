"""Reader of TAU profiles: `profile.n.c.t`, directories `MULTI__*`, and ParaProf's packed form."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpmodel_tau.reader import TauReader

__all__ = ["TauReader"]


def __getattr__(name: str) -> object:
    # The reader imports numpy, which is too slow for listing the plugins.
    if name == "TauReader":
        from cpmodel_tau.reader import TauReader

        return TauReader
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
