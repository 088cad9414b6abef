"""Reader of HPCToolkit databases: version 4 (`meta.db` etc.) and version 2 (`experiment.xml`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpmodel_hpctoolkit.reader import HpctoolkitLoopsReader, HpctoolkitReader

__all__ = ["HpctoolkitLoopsReader", "HpctoolkitReader"]


def __getattr__(name: str) -> object:
    # The readers import numpy, which is too slow for listing the plugins.
    if name in __all__:
        from cpmodel_hpctoolkit import reader

        return getattr(reader, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
