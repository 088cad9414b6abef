"""Array types by element type."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]

IntArray = npt.NDArray[np.intp]
"""Rows, positions and counts."""

Int64Array = npt.NDArray[np.int64]
"""Numbers as files store them: identifiers, times in ticks, ranks."""

Int32Array = npt.NDArray[np.int32]

Int16Array = npt.NDArray[np.int16]
"""Codes of shapes; -1 = none."""

Int8Array = npt.NDArray[np.int8]
UInt64Array = npt.NDArray[np.uint64]
ByteArray = npt.NDArray[np.uint8]
BoolArray = npt.NDArray[np.bool_]

_LARGE = 2**23
"""Bytes from which it is worth a system call to forget a mapped array."""


def forget_mapped(array: npt.NDArray[Any]) -> None:
    """Take the pages of a memory-mapped array out of memory; the next access reads them again."""
    if array.nbytes < _LARGE or not hasattr(mmap, "MADV_DONTNEED"):
        return
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    # A private mapping that was changed would lose the changes, but stores are mapped to be read.
    if isinstance(base, mmap.mmap) and not array.flags.writeable:
        base.madvise(mmap.MADV_DONTNEED)
