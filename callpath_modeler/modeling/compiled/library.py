"""Calls into the compiled library: numpy arrays in, numpy arrays out."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import Float32Array, FloatArray, Int64Array
from callpath_modeler.modeling.compiled.sources import libraries

VARIABLE = "CPMODEL_COMPILED"
"""Environment variable; 0 = make models in numpy."""


def compiled() -> bool:
    """Return whether there is a library for this machine that was compiled from these sources."""
    return _library() is not None


def description() -> str:
    """Return a sentence part on how models are made."""
    library = _library()
    if library is not None:
        return "by the compiled library"
    if os.environ.get(VARIABLE) == "0":
        return f"in numpy, because {VARIABLE} is 0"
    return "in numpy, several times as slow, because no library was compiled from these sources"


def reload() -> None:
    """Look for the library again at the next call, because `VARIABLE` has changed."""
    _library.cache_clear()


def call(name: str, *arguments: npt.NDArray[Any] | float) -> None:
    """Call a function of the library.

    Parameters
    ----------
    name : str
        Name of the function, which returns int64: 0, or -1 if there is too little memory.
    *arguments : ndarray, int or float
        Arrays are passed as pointers, int as int64, float as double. Input arrays must come from
        `float64_arrays` and `int32_arrays`, since C cannot check types.

    Raises
    ------
    ValueError
        If an array is not contiguous in the order of C.
    MemoryError
        If the function has too little memory.
    """
    library = _library()
    assert library is not None
    function = getattr(library, name)
    function.restype = ctypes.c_int64
    if function(*map(_passed, arguments)):
        raise MemoryError(name)


@cache
def _library() -> ctypes.CDLL | None:
    if os.environ.get(VARIABLE) == "0":
        return None
    try:
        anywhere, *others = libraries(Path(__file__).parent).values()
        general = ctypes.CDLL(str(anywhere))
    except OSError:
        # There is no library, or one for another kind of machine that shares the folder.
        return None
    best = int(general.processor())
    try:
        return ctypes.CDLL(str(others[best - 1])) if best else general
    except OSError:
        return general


def float64_arrays(*columns: npt.ArrayLike) -> list[FloatArray]:
    """Return columns as the library reads floating-point numbers."""
    return [np.ascontiguousarray(column, dtype=np.float64) for column in columns]


def float32_arrays(*columns: npt.ArrayLike) -> list[Float32Array]:
    """Return columns as the library reads numbers of single precision."""
    return [np.ascontiguousarray(column, dtype=np.float32) for column in columns]


def int32_arrays(*columns: npt.ArrayLike) -> list[Int64Array]:
    """Return columns as the library reads whole numbers, as int64."""
    return [np.ascontiguousarray(column, dtype=np.int64) for column in columns]


def starts(row: Int64Array, rows: int) -> Int64Array:
    """Return the start of each of `rows` in columns that are ordered by `row`, [rows + 1]."""
    found = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=rows), out=found[1:])
    return found


def _passed(argument: npt.NDArray[Any] | float) -> Any:
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        if not flags.c_contiguous:
            raise ValueError("arrays must be contiguous")
        if flags.writeable and argument.size:
            # This is several times as fast as the general way.
            return ctypes.byref(ctypes.c_char.from_buffer(argument.data))
        return ctypes.c_void_p(argument.ctypes.data)
    return ctypes.c_double(argument) if isinstance(argument, float) else ctypes.c_int64(argument)
