"""Models as values of Cube's type SCALE_FUNC: sums of powers and logarithms of one parameter."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling import Models, Shape, Term, TermDifference

DTYPE = "SCALE_FUNC"
ROW_BYTES = 848
"""Bytes of a value, whatever the number of its terms."""

_TERM = np.dtype([("factor", "<f8"), ("power", "<i4"), ("root", "<u4"), ("log", "<i4")])
"""A term: factor x^(power/root) log2(x)^log."""
_MEASUREMENT = np.dtype([("p", "<i4"), ("mean", "<f8"), ("width", "<f8")])
_SLOTS = (ROW_BYTES - 8) // _TERM.itemsize
"""Terms and measurements have the same size, and share the rest of a value."""
_SLOT = np.dtype(f"V{_TERM.itemsize}")
_VALUE = np.dtype([("terms", "<u4"), ("measurements", "<u4"), ("slots", _SLOT, (_SLOTS,))])
_LARGEST = np.iinfo(np.int32).max
_BLOCK = 1024


def expressible(models: Models) -> IntArray:
    """Return the rows of models that Cube can store.

    Cube knows neither steps, ceilings and other breaks nor exponentials. Models that are zero
    everywhere have no row, because Cube reads a missing row as zero.
    """
    known = np.array([*(_terms(shape) is not None for shape in models.shapes), True])
    coefficients = models.coefficients
    used = (models.terms >= 0) & (coefficients[:, 1:] != 0)
    is_known = (known[models.terms] | ~used).all(axis=1)
    is_zero = (coefficients[:, 0] == 0) & ~used.any(axis=1)
    return np.flatnonzero(is_known & ~is_zero & ~np.isnan(coefficients[:, 0]))


def formula_blocks(
    models: Models, rows: IntArray, points: FloatArray, measured: FloatArray
) -> Iterator[bytes]:
    """Yield the values of some rows, `ROW_BYTES` each.

    A model beyond a change point is the law beyond it. If there is no room for all measurements,
    those at the smallest scales are missing.

    Parameters
    ----------
    models : models along one parameter
    rows : rows of `expressible`
    points : [K] measured values of the parameter; Cube only stores whole numbers
    measured : [all rows, K] centres of the repetitions; NaN = did not occur
    """
    table = _term_table(models)
    whole = np.flatnonzero((points == np.round(points)) & (points <= _LARGEST))
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        values = np.zeros(len(some), _VALUE)
        numbers, codes = models.coefficients[some].copy(), models.terms[some]
        numbers[:, 1:][codes < 0] = 0.0
        found = table[np.insert(codes, 0, -1, axis=1)]
        found["factor"] *= numbers[:, :, None]
        found = found.reshape(len(some), -1)
        there = found["factor"] != 0
        values["terms"] = there.sum(axis=1)
        _put(values, found, there, np.zeros(len(some), np.intp))
        pairs = np.zeros((len(some), len(whole)), _MEASUREMENT)
        pairs["p"], pairs["mean"] = points[whole], measured[some][:, whole]
        there = ~np.isnan(pairs["mean"])
        room = _SLOTS - values["terms"].astype(np.intp)
        there &= there[:, ::-1].cumsum(axis=1)[:, ::-1] <= room[:, None]
        values["measurements"] = there.sum(axis=1)
        _put(values, pairs, there, values["terms"].astype(np.intp))
        yield values.tobytes()


def _put(values: np.ndarray, entries: np.ndarray, there: BoolArray, first: IntArray) -> None:
    """Write the entries of each value that are `there` one after the other, from slot `first`."""
    slot = there.cumsum(axis=1) - 1 + first[:, None]
    row = np.nonzero(there)[0]
    values["slots"][row, slot[there]] = np.ascontiguousarray(entries).view(_SLOT)[there]


def _term_table(models: Models) -> np.ndarray:
    """Return the terms of each shape and of the constant, [shapes + 1, 2] of `_TERM`.

    Unused entries have the factor zero. The constant is last.
    """
    table = np.zeros((len(models.shapes) + 1, 2), _TERM)
    table["root"] = 1
    for number, shape in enumerate(models.shapes):
        for place, entry in enumerate(_terms(shape) or ()):
            table[number, place] = entry
    table[-1, 0]["factor"] = 1.0
    return table


def _terms(shape: Shape) -> list[tuple[float, int, int, int]] | None:
    """Return the terms of a shape; None = Cube cannot store it."""
    if isinstance(shape, TermDifference):
        parts = [(1.0, shape.larger), (-1.0, shape.smaller)]
    elif isinstance(shape, Term):
        parts = [(1.0, shape)]
    else:
        return None
    exponents = [term.exponent for _, term in parts]
    fits = all(max(abs(e.numerator), e.denominator) <= _LARGEST for e in exponents)
    if not fits or any(term.rate for _, term in parts):
        return None
    return [(s, t.exponent.numerator, t.exponent.denominator, t.log) for s, t in parts]
