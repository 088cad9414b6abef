"""TAU profiles: files `profile.n.c.t`, directories `MULTI__*`, and ParaProf's packed form."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpmodel_tau.reader import TauReader

__all__ = ["TauReader"]


def __getattr__(name: str) -> object:
    # The reader imports numpy; listing the plugins must stay cheap.
    if name == "TauReader":
        from cpmodel_tau.reader import TauReader

        return TauReader
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
