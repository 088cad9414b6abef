"""The schema of stored models: name, type, shape and range of every column.

A store may come from anybody. The C library looks shapes up by the codes of terms and reads weights
and errors by row, so a column of another shape would make it read memory that is not its own.
Every column is therefore checked, once, in time proportional to its size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.status import FitStatus

_MOST_TERMS = 16
_MOST_ALTERNATIVES = 256
_ROUNDING = 1e-6
_LARGEST = 1e300
"""Of finite numbers that are multiplied."""


@dataclass(frozen=True, slots=True)
class Column:
    """What a column of models has to be.

    Attributes
    ----------
    kind : kind and size of its type, e.g. ``"f8"``; ``"f"`` = single or double precision
    shape : dimensions: ``n`` rows, ``T`` terms, ``C`` coefficients, ``A`` alternatives,
        ``M`` models of a row, ``R`` numbers of an error; a number counts as it is
    low, high : bounds of finite values
    finite : whether NaN and infinity are refused
    empty_with : the method whose models leave the column empty, or ""
    """

    kind: str
    shape: str
    low: float = -np.inf
    high: float = np.inf
    finite: bool = False
    empty_with: str = ""


COLUMNS: Mapping[str, Column] = {
    "terms": Column("i2", "nT", low=-1),
    "coefficients": Column("f8", "nC"),
    "covariance": Column("f8", "nCC", empty_with="mixture"),
    "spread": Column("f8", "n", low=0, high=_LARGEST),
    "drift": Column("f8", "n", low=0, high=_LARGEST),
    "dof": Column("f8", "n", low=0, high=_LARGEST),
    "cv_error": Column("f8", "n", low=0),
    "r2": Column("f8", "n", high=1 + _ROUNDING),
    "adjusted_r2": Column("f8", "n", high=1 + _ROUNDING),
    "rss": Column("f8", "n", low=0),
    "noise": Column("f8", "n", low=0),
    "status": Column("i1", "n", low=min(FitStatus), high=max(FitStatus)),
    "used": Column("i2", "n", low=0),
    "since": Column("f8", "n", low=0),
    "before": Column("i2", "n", low=-1),
    "before_coefficients": Column("f8", "n2"),
    "low_p": Column("f8", "n", low=0),
    "high_p": Column("f8", "n", low=0),
    "weight": Column("f8", "n", low=0, high=1 + _ROUNDING),
    "alternative_terms": Column("i2", "nAT", low=-1),
    "alternative_coefficients": Column("f8", "nAC"),
    "alternative_weight": Column("f", "nA", low=0, high=1 + _ROUNDING, finite=True),
    "unit": Column("f8", "n", low=0, high=_LARGEST),
    "root": Column("f4", "nMR", empty_with="classic"),
}
"""Columns of `Models`. Codes of terms are checked against the number of shapes as well."""


def check_columns(
    arrays: Mapping[str, npt.NDArray[np.generic]], rows: int, shapes: int, method: str
) -> None:
    """Refuse columns that are not as `COLUMNS` says.

    Parameters
    ----------
    arrays : all columns, by name
    rows : number of models
    shapes : number of shapes that codes of terms refer to
    method : the method of modelling, which decides what may be empty

    Raises
    ------
    ValueError
        If a column has another type or shape, or holds a value out of its range. Says which.
    """
    sizes = _sizes(arrays, rows)
    for name, column in COLUMNS.items():
        array = arrays[name]
        if not array.dtype.str[1:].startswith(column.kind) or array.dtype.byteorder == ">":
            raise ValueError(f"{name} has the type {array.dtype.str}")
        expected = tuple(sizes[dimension] for dimension in column.shape)
        is_empty = column.empty_with == method and array.size == 0 and len(array) == rows
        if not is_empty and array.shape != expected:
            raise ValueError(f"{name} has the shape {array.shape}, expected {expected}")
        is_code = column.kind == "i2" and column.low == -1
        high = shapes - 1 if is_code else column.high
        _check_range(name, array, column, high)
    if (np.isnan(arrays["coefficients"][:, 0]) == _modelled(arrays["status"])).any():
        raise ValueError("coefficients and status disagree on which rows have a model")


def _modelled(status: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    return np.asarray(status < FitStatus.TOO_FEW_POINTS)


def _sizes(arrays: Mapping[str, npt.NDArray[np.generic]], rows: int) -> dict[str, int]:
    terms, alternatives = arrays["terms"], arrays["alternative_terms"]
    if terms.ndim != 2 or alternatives.ndim != 3:
        raise ValueError("terms or alternative_terms have another number of dimensions")
    of_terms, of_alternatives = terms.shape[1], alternatives.shape[1]
    if of_terms > _MOST_TERMS or of_alternatives > _MOST_ALTERNATIVES:
        raise ValueError(f"{of_terms} terms and {of_alternatives} alternatives are too many")
    return {
        "n": rows,
        "2": 2,
        "T": of_terms,
        "C": of_terms + 1,
        "A": of_alternatives,
        # Errors are triangular matrices of the coefficients, see module `roots`.
        "M": of_alternatives + 1,
        "R": (of_terms + 1) * (of_terms + 2) // 2,
    }


def _check_range(name: str, array: npt.NDArray[Any], column: Column, high: float) -> None:
    # A column without bounds is not read: it may be larger than the memory.
    if not array.size or (np.isinf(column.low) and np.isinf(high) and not column.finite):
        return
    least, most = array.min(), array.max()
    if column.finite and not (np.isfinite(least) and np.isfinite(most)):
        raise ValueError(f"{name} holds a value that is not finite")
    if np.isnan(least):
        least, most = np.fmin.reduce(array, axis=None), np.fmax.reduce(array, axis=None)
    if least < column.low or most > high:
        raise ValueError(f"{name} holds a value beyond {column.low:g} and {high:g}")
