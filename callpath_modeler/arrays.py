"""Array types by element type, and the memory of arrays in mapped files."""

from __future__ import annotations

import mmap
from collections.abc import Iterable

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

_LARGE = 1 << 24
"""Size in bytes from which on the pages of an array are given back."""


def give_back_pages(arrays: Iterable[object]) -> None:
    """Give the memory of large arrays of mapped files back to the system after a pass over them.

    The pages of a store of 10^6 call paths take .6 GB. The system reads them again when they are
    needed, mostly from its cache. Arrays that are in no file keep their memory.
    """
    for array in arrays:
        base = array if isinstance(array, np.ndarray) and array.nbytes >= _LARGE else None
        while isinstance(base, np.ndarray):
            base = base.base
        # Pages of files that were opened for reading hold nothing that could be lost.
        if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)
