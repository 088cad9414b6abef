"""Array types by element type, and the memory of arrays in mapped files."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TypeVar

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

_Element = TypeVar("_Element", bound=np.generic)

_LARGE = 1 << 24
"""Size in bytes from which on an array leaves enough freed memory to give that back."""

_PART = 1 << 25
"""Size in bytes of the parts of a mapped array from which rows are read."""


def give_back_pages(arrays: Iterable[object]) -> None:
    """Give memory that nobody needs now back to the system, after a pass over arrays.

    These are the pages of arrays of mapped files, which take .6 GB in a store of 10^6 call
    paths, and memory that was freed. The system reads pages again when they are needed, mostly from
    its cache. Arrays that are in no file keep their memory.
    """
    known = [each for each in arrays if isinstance(each, np.ndarray)]
    for array in known:
        _give_back_file(_file_of(array))
    if any(array.nbytes >= _LARGE for array in known):
        # The allocator of glibc keeps freed arrays of up to 32 MB; others have no such function.
        with suppress(AttributeError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)


def rows_of(array: npt.NDArray[_Element], rows: Any) -> npt.NDArray[_Element]:
    """Return rows of an array; an array of a mapped file gives back the pages that it read.

    Rows in any order are on all pages of a column, and a store has many columns.

    Parameters
    ----------
    array : [n, ...]
    rows : row numbers, a mask, or a slice
    """
    file = _file_of(array)
    if file is None or isinstance(rows, slice) or np.ndim(rows) != 1:
        found: npt.NDArray[_Element] = array[rows]
        return found
    numbers = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
    found = np.empty((len(numbers), *array.shape[1:]), array.dtype)
    # One part of the file after the other is in memory.
    for part in np.array_split(np.argsort(numbers), 1 + array.nbytes // _PART):
        found[part] = array[numbers[part]]
        _give_back_file(file)
    return found


def _file_of(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """Return the mapped file that an array is in; None = it is in memory."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def _give_back_file(file: mmap.mmap | None) -> None:
    """Give the pages of a mapped file back to the system."""
    # Pages of files that were opened for reading hold nothing that could be lost.
    if file is not None and hasattr(mmap, "MADV_DONTNEED"):
        file.madvise(mmap.MADV_DONTNEED)
