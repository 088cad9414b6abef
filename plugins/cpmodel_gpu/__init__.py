"""Readers of profiles of GPU programs, with host calls and GPU activities on one call tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpmodel_gpu.reader import (
        ExtraProfReader,
        NsightReader,
        NsysStatsReader,
        RocpdReader,
        RocprofReader,
    )

__all__ = [
    "ExtraProfReader",
    "NsightReader",
    "NsysStatsReader",
    "RocpdReader",
    "RocprofReader",
]


def __getattr__(name: str) -> object:
    # Readers import numpy when they open a file, which is too slow for listing the plugins.
    if name in __all__:
        from cpmodel_gpu import reader

        return getattr(reader, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
