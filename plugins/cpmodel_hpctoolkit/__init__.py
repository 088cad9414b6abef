"""HPCToolkit databases: version 4 (`meta.db` and its siblings) and version 2 (`experiment.xml`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpmodel_hpctoolkit.reader import HpctoolkitLoopsReader, HpctoolkitReader

__all__ = ["HpctoolkitLoopsReader", "HpctoolkitReader"]


def __getattr__(name: str) -> object:
    # The readers stand on numpy; finding the plugin must not cost its import.
    if name in __all__:
        from cpmodel_hpctoolkit import reader

        return getattr(reader, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
