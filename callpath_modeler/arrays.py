"""Array types by element type, and the memory of arrays in mapped files."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterable
from contextlib import suppress

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
"""Size in bytes from which on an array is worth giving memory back."""


def give_back_pages(arrays: Iterable[object]) -> None:
    """Give memory that nobody needs now back to the system, after a pass over arrays.

    These are the pages of large arrays of mapped files, which take .6 GB in a store of 10^6 call
    paths, and memory that was freed. The system reads pages again when they are needed, mostly from
    its cache. Arrays that are in no file keep their memory.
    """
    large = [each for each in arrays if isinstance(each, np.ndarray) and each.nbytes >= _LARGE]
    for array in large:
        base: object = array
        while isinstance(base, np.ndarray):
            base = base.base
        # Pages of files that were opened for reading hold nothing that could be lost.
        if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)
    if large:
        # The allocator of glibc keeps freed arrays of up to 32 MB; others have no such function.
        with suppress(AttributeError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)
