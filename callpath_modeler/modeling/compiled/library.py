"""Calls into the compiled library: numpy arrays in, numpy arrays out.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import Float32Array, FloatArray, Int64Array
from callpath_modeler.modeling.compiled.prototypes import checked, declare
from callpath_modeler.modeling.compiled.sources import libraries

FOLDER = Path(__file__).parent
"""Folder of sources and libraries."""
VARIABLE = "CPMODEL_COMPILED"
"""Environment variable; 0 = make models in numpy."""


def compiled() -> bool:
    """Return whether there is a library for this machine that was compiled from these sources."""
    return _library() is not None


def is_outdated(folder: Path = FOLDER) -> bool:
    """Return whether models lack a library only because it was compiled from other sources."""
    wanted = libraries(folder).values()
    there = {path for each in wanted for path in folder.glob(f"*{each.suffix}")}
    return os.environ.get(VARIABLE) != "0" and bool(there) and there.isdisjoint(wanted)


def description() -> str:
    """Return a sentence part on how models are made."""
    if os.environ.get(VARIABLE) == "0":
        return f"in numpy, because {VARIABLE} is 0"
    if compiled():
        return "by the compiled library"
    return "in numpy, 30 to 60 times as slow, because no library was compiled from these sources"


def reload() -> None:
    """Look for the library again at the next call, because `VARIABLE` has changed."""
    _library.cache_clear()


def call(name: str, *arguments: npt.NDArray[Any] | float) -> None:
    """Call a function of the library, as declared in `prototypes`.

    Parameters
    ----------
    name : str
        Name of the function, which returns int64: 0, or -1 if there is too little memory.
    *arguments : ndarray, int or float
        Numbers, and arrays as pointers.

    Raises
    ------
    ValueError
        If an array has another type or shape than the function expects.
    MemoryError
        If the function has too little memory.
    """
    library = _library()
    assert library is not None
    if getattr(library, name)(*checked(name, arguments)):
        raise MemoryError(name)


@cache
def _library() -> ctypes.CDLL | None:
    if os.environ.get(VARIABLE) == "0":
        return None
    try:
        anywhere, *others = libraries(FOLDER).values()
        general = ctypes.CDLL(str(anywhere))
    except OSError:
        # There is no library, or one for another kind of machine that shares the folder.
        return None
    best = int(general.processor())
    try:
        return declare(ctypes.CDLL(str(others[best - 1]))) if best else declare(general)
    except OSError:
        return declare(general)


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
