"""Calls into the compiled library: numpy arrays in, numpy arrays out.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.

See docs/explanation/hypotheses.md.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from callpath_modeler.arrays import Float32Array, FloatArray, Int64Array, IntArray
from callpath_modeler.modeling.compiled.sources import libraries
from callpath_modeler.modeling.constants.bands import COLUMNS, CORRELATIONS, SCORES, STEPS
from callpath_modeler.modeling.constants.limits import ELEMENTS, NOTED, NUMBERS, TERMS, WHOLE
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses, HypothesisGroup
from callpath_modeler.modeling.mixture.residuals import ScreenedHypotheses, promise_of_pairs
from callpath_modeler.modeling.mixture.scaled_rows import (
    Deviations,
    Drift,
    ScaledRows,
    floor_of,
    variances,
)

_FINELY = STEPS * (SCORES - 1) + 1
_MODELS = f"""n, others, shapes, targets, i2 terms[n,{TERMS}], f8 numbers[n,{NUMBERS}],
    f8 weight[n], i2 other_terms[n,others,{TERMS}], f8 other_numbers[n,others,{NUMBERS}],
    f4 other_weight[n,others], f4 root[n,1+others,{ELEMENTS}], f8 unit[n], f8 spread[n],
    f8 drift[n], f8 peak[shapes], f8 least[shapes], f8 most[shapes], f8 at[targets,shapes],
    f8 beyond[targets]"""
"""Models, and their shapes at targets, as `c_kernels._columns` gives them."""
_TEXT = f"""
normal_shares: n, f8 z[n], f8 found[n]
log_normal_shares: n, f8 z[n], f8 found[n]
normal_quantiles: n, f8 probability[n], f8 found[n]
polygammas: n, f8 argument[n], f8 first[n], f8 second[n], f8 third[n]
student_shares: n, f8 dof[n], f8 t[n], f8 found[n]
student_quantiles: n, f8 dof[n], f8 probability[n], f8 found[n]
quantiles: rows, parts, columns, f8 centre[rows,parts,columns], f8 below[rows,parts,columns],
    f8 above[rows,parts,columns], f8 weight[rows,parts], probabilities,
    f8 probability[probabilities], f8 found[probabilities,rows,columns]
exceedances: rows, parts, columns, f8 centre[rows,parts,columns], f8 below[rows,parts,columns],
    f8 above[rows,parts,columns], f8 weight[rows,parts], f8 value[rows,columns],
    f8 found[rows,columns]
bands: {_MODELS}, double negligible, f8 ends[2], f8 low[n,targets], f8 high[n,targets]
mixtures: {_MODELS}, f8 centre[n,1+others,targets], f8 below[n,1+others,targets],
    f8 above[n,1+others,targets], f8 share[n,1+others]
quantiles_of_bands: {_MODELS}, f8 value[n,targets], f8 low[n,targets], f8 high[n,targets],
    f8 score[{SCORES}], f8 probability[{SCORES - 2}], f8 found[n,targets,{SCORES}]
addends: n, f8 quantiles[n,{SCORES}], double correlation,
    f8 weights[2,{CORRELATIONS},{_FINELY}], f8 found[n,{COLUMNS}]
sum_up: n, repetitions, how, f8 y[n,repetitions], f8 centre[n], f8 count[n], f8 squares[n]
state: n, points, repetitions, enough, f8 y[n,points,repetitions], f8 centre[n,points],
    f8 count[n,points], i1 codes[4], i1 status[n]
spread_of_rows: n, points, f8 centre[n,points], f8 count[n,points], f8 squares[n,points],
    f8 raw[n], f8 dof[n], f8 size[n]
noise_of_rows: n, points, f8 centre[n,points], f8 count[n,points], f8 squares[n,points],
    f8 raw[n], f8 dof[n], f8 size[n], f8 pool[6], f8 profile[points], double efficiency,
    f8 variance[n], f8 freedom[n], f8 spread[n], f8 weight[n,points]
facts_of_rows: n, points, f8 count[n,points], f8 p[points], i2 used[n], f8 low[n], f8 high[n]
own_units: n, points, f8 centre[n,points], f8 weight[n,points], f8 values[n,points], f8 unit[n]
screen: rows, points, shapes, there, pairs, drifts, f8 values[rows,points],
    f8 weight[rows,points], f8 variance[rows], f8 dof[rows], f8 floor[rows,1],
    f8 precision[drifts,points], f8 away[drifts,points], f8 table[there,points],
    f8 products[pairs,points], i4 first[all], i4 second[all], f4 falling[shapes],
    f4 prior[1+3*shapes+all], double promise, kept_shapes, kept_pairs, double nats, frugal,
    growing, axes, terms, opened, i8 ends[axes], i8 order[axes,points], i8 level[axes,points],
    f8 of_terms[points,terms], f4 likely[axes,shapes], most, most_pairs, i8 row[most],
    i8 shape[most], i8 families[most], i8 pair_row[most_pairs], i8 pair[most_pairs], i8 counts[3],
    f8 variances[rows], f8 fitted[rows,points]
candidates: count, points, drifts, shapes, deviations, size, frugal, f8 values[count,points],
    f8 weight[count,points], f8 variance[count], f8 dof[count], f8 floor[count,1],
    f8 typical[count], f8 fitted[count,points], f8 table[shapes+1,points], f8 least[shapes],
    f8 most[shapes], f8 falling[shapes], i8 first_of[all], i8 second_of[all],
    f8 precision[drifts,points], f8 away[drifts,points], f8 of_first[drifts],
    f8 square[deviations], i8 drift[deviations], i8 row_in[size], i8 chosen_in[size],
    i8 row[size], i8 chosen[size], f8 log_evidence[size,deviations],
    f8 coefficients[size,drifts,{NUMBERS}], f8 covariance[size,drifts,{ELEMENTS}]
posterior: rows, size, deviations, drifts, i8 start[rows+1], i8 chosen[size],
    f8 log_evidence[size,deviations], f8 coefficients[size,drifts,{NUMBERS}],
    f8 covariance[size,drifts,{ELEMENTS}], f8 variance[rows], f8 prior[all],
    f8 deviation_prior[deviations], f8 square[deviations], i8 begin[drifts+1], f8 growth[drifts],
    i8 row_out[size], i8 chosen_out[size], f8 weight_out[size],
    f8 coefficients_out[{NUMBERS},size], f8 covariance_out[{ELEMENTS},size],
    f8 variance_out[rows], f8 drift_out[rows], i8 count[1]
fitted_values: rows, size, points, i8 row[size], i8 first[size], i8 second[size], f8 weight[size],
    f8 coefficients[{NUMBERS},size], f8 table[all,points], f8 fitted[rows,points]
choose: n, count, shapes, places, others, i8 rows[n], i8 start[n+1], i8 chosen[count],
    f8 probability[count], f8 found_coefficients[{NUMBERS},count],
    f8 covariance[{ELEMENTS},count], i8 first[all], i8 second[all], f8 scale[shapes],
    f8 far[places,shapes+1], f8 unit[n], f8 least[n], i2 terms[column,{TERMS}],
    f8 coefficients[column,{NUMBERS}], f8 weight[column], i2 other_terms[column,others,{TERMS}],
    f8 other_coefficients[column,others,{NUMBERS}], f4 other_weight[column,others],
    f4 root[column,others+1,{ELEMENTS}], f8 scaled[n,{NUMBERS}]
measure_quality: n, points, i8 rows[n], f8 values[n,points], f8 weight[n,points], f8 floor[n,1],
    f8 table[all,points], f8 scaled[n,{NUMBERS}], i2 terms[column,{TERMS}], f8 rss[column],
    f8 cv_error[column], f8 r2[column], f8 adjusted_r2[column]
name_outcomes: n, points, i8 rows[n], f8 first[points], f8 values[n,points], f8 weight[n,points],
    f8 unit[n], f8 variance[n], f8 deviation[n], f8 broken[n], f8 exactly[n], double most,
    f8 noise[column], f8 rss[column], i2 terms[column,{TERMS}], i1 codes[4], i1 status[column]
"""
"""Declarations of all functions."""

_TYPES: dict[str, np.dtype[Any]] = {
    "f8": np.dtype(np.float64),
    "f4": np.dtype(np.float32),
    "i8": np.dtype(np.int64),
    "i4": np.dtype(np.int32),
    "i2": np.dtype(np.int16),
    "i1": np.dtype(np.int8),
}

Size = tuple[tuple[int, str], ...]
"""A sum of multiples of sizes; the name "" stands for 1."""


class Argument(Struct, frozen=True):
    """An argument of a function: an array, or a number if it has no element type.

    Attributes
    ----------
    name : name of the argument in C
    number : type of a number
    element : element type of an array
    shape : sizes of an array
    """

    name: str
    number: type[ctypes.c_int64 | ctypes.c_double]
    element: np.dtype[Any] | None = None
    shape: tuple[Size, ...] = ()

    @property
    def ctype(self) -> type[ctypes.c_int64 | ctypes.c_double | ctypes.c_void_p]:
        """Type of the argument for ctypes."""
        return self.number if self.element is None else ctypes.c_void_p

    def check(self, array: npt.NDArray[Any], sizes: dict[str, int]) -> None:
        """Check an array against the declaration; `sizes` gets sizes that are named here first.

        Raises
        ------
        ValueError
            If the element type or the shape is wrong, or the array is not contiguous.
        """
        if array.dtype != self.element or not array.flags.c_contiguous:
            raise ValueError(f"{self.name} must be contiguous {self.element}, not {array.dtype}")
        if array.ndim != len(self.shape):
            raise ValueError(f"{self.name} must have {len(self.shape)} axes, not {array.ndim}")
        for size, there in zip(self.shape, array.shape, strict=True):
            if len(size) == 1 and size[0][1] not in sizes:
                sizes[size[0][1]] = there
            if sum(factor * sizes[name] for factor, name in size) != there:
                raise ValueError(f"{self.name} has the shape {array.shape}, with sizes {sizes}")


def _size(text: str) -> Size:
    """Return a size such as ``1+3*shapes``."""
    found = []
    for part in text.split("+"):
        factor, _, name = part.rpartition("*")
        number = part.isdigit()
        found.append((int(part), "") if number else (int(factor or 1), name))
    return tuple(found)


def _argument(text: str) -> Argument:
    """Return an argument such as ``f8 centre[n,points]``, ``double efficiency`` or ``n``."""
    kind, _, name = text.rpartition(" ")
    if kind not in _TYPES:
        return Argument(name, ctypes.c_double if kind else ctypes.c_int64)
    name, _, shape = name.rstrip("]").partition("[")
    sizes = tuple(_size(each) for each in shape.split(","))
    return Argument(name, ctypes.c_int64, _TYPES[kind], sizes)


def _prototypes() -> dict[str, tuple[Argument, ...]]:
    found = {}
    for line in re.sub(r"\n\s+", " ", _TEXT).strip().splitlines():
        name, _, arguments = line.partition(": ")
        found[name] = tuple(map(_argument, arguments.split(", ")))
    return found


PROTOTYPES = _prototypes()
"""Arguments of every function of the library that returns whether memory sufficed."""


def declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """Declare the types of arguments and results of all functions of a library; return it."""
    for name, arguments in PROTOTYPES.items():
        function = getattr(library, name)
        function.restype = ctypes.c_int64
        function.argtypes = [each.ctype for each in arguments]
    library.processor.restype = ctypes.c_int64
    library.processor.argtypes = []
    return library


def checked(name: str, arguments: Sequence[npt.NDArray[Any] | float]) -> list[Any]:
    """Return arguments as ctypes passes them.

    Raises
    ------
    ValueError
        If their number, an element type or a shape differs from the declaration.
    TypeError
        If a number stands for an array.
    """
    sizes = {"": 1}
    passed: list[Any] = []
    for declared, argument in zip(PROTOTYPES[name], arguments, strict=True):
        if declared.element is None:
            passed.append(argument)
            if isinstance(argument, int):
                sizes[declared.name] = argument
            continue
        if not isinstance(argument, np.ndarray):
            raise TypeError(f"{declared.name} must be an array")
        declared.check(argument, sizes)
        passed.append(_pointer(argument))
    return passed


def _pointer(array: npt.NDArray[Any]) -> Any:
    if array.flags.writeable and array.size:
        # This is several times as fast as the general way.
        return ctypes.byref(ctypes.c_char.from_buffer(array.data))
    return array.ctypes.data


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
    """Call a function of the library, as declared in `PROTOTYPES`.

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


def precisions(points: FloatArray, drifts: Sequence[Drift]) -> tuple[FloatArray, FloatArray]:
    """Return the input of `relative_weights` in ``rows.h`` for L drifts over `points`, each [L, K].

    Returns
    -------
    precision : ndarray
        Factor of the weights if every point has a value.
    away : ndarray
        Logarithm of the variance at each point, minus the mean over all points.
    """
    away = np.log(variances(drifts, points))
    away -= away.mean(axis=1, keepdims=True)
    precision = np.exp(-away)
    precision[:, 0] /= [drift.of_first for drift in drifts]
    return precision, away


class Screened(NamedTuple):
    """The columns of `ScreenedHypotheses` for n rows; `families` [U] has a bit for each family."""

    row: IntArray
    shape: IntArray
    families: IntArray
    pair_row: IntArray
    pair: IntArray
    variance: FloatArray
    fitted: FloatArray


def screened(
    data: ScaledRows, hypotheses: Hypotheses, log_prior: FloatArray, drifts: Sequence[Drift]
) -> Screened:
    """Return the hypotheses that may matter under any drift; arguments as for `screen`."""
    rows, points = data.values.shape
    shapes, pairs, kept = len(hypotheses.shapes), len(hypotheses.products), hypotheses.kept
    # Shapes fill whole vectors; the additional ones have no prior.
    wide = -(-shapes // WHOLE) * WHOLE
    before, of_shapes, of_pairs = np.split(log_prior, [1, 1 + 3 * shapes])
    prior = np.empty(1 + 3 * wide + len(of_pairs), dtype=np.float32)
    prior[0], prior[1 + 3 * wide :] = before[0], of_pairs
    prior[1 : 1 + 3 * wide] = _widened(of_shapes.reshape(3, shapes), wide, -np.inf).ravel()
    fixed: list[npt.NDArray[Any] | float] = [
        *float64_arrays(*precisions(data.points, drifts), hypotheses.table, hypotheses.products),
        *(hypotheses.first.astype(np.int32), hypotheses.second.astype(np.int32)),
        *float32_arrays(_widened(hypotheses.single_group == HypothesisGroup.FALLING, wide)),
        *(prior, promise_of_pairs(hypotheses, log_prior)),
        *(kept.shapes, kept.pairs * points, float(kept.nats), int(kept.frugal), hypotheses.growing),
        *_fans(hypotheses, of_pairs, wide),
    ]
    columns = float64_arrays(data.values, data.weight, data.variance, data.dof, floor_of(data))
    most, most_pairs = rows * NOTED + shapes, rows * NOTED + hypotheses.compared
    variance, fitted = np.empty(rows), np.empty((rows, points))
    done, parts = 0, list[tuple[IntArray, IntArray]]()
    while done < rows or not parts:
        alone = np.empty((3, most), dtype=np.int64)
        paired, counts = np.empty((2, most_pairs), dtype=np.int64), np.zeros(3, dtype=np.int64)
        call(
            "screen",
            *(rows - done, points, wide, shapes, pairs, len(drifts)),
            *(column[done:] for column in columns),
            *fixed,
            *(most, most_pairs, *alone, *paired, counts, variance[done:], fitted[done:]),
        )
        part = alone[:, : counts[0]], paired[:, : counts[1]]
        for each in part:
            each[0] += done
        parts.append(part)
        done += int(counts[2])
    (row, shape, families), (pair_row, pair) = (
        np.concatenate(each, axis=1) for each in zip(*parts, strict=True)
    )
    return Screened(row, shape, families, pair_row, pair, variance, fitted)


def _widened(column: npt.NDArray[Any], size: int, value: float | None = None) -> FloatArray:
    """Return a column with its last axis filled up to `size`, by default with the last number."""
    wide = np.empty((*column.shape[:-1], size))
    filled = column.shape[-1]
    wide[..., :filled] = column
    wide[..., filled:] = column[..., -1:] if value is None else value
    return wide


def _fans(hypotheses: Hypotheses, of_pairs: FloatArray, wide: int) -> list[npt.NDArray[Any] | int]:
    """Return the input of ``fans.h``."""
    fans, points = hypotheses.fans, hypotheses.table.shape[1]
    if fans is None:
        numbers, levels = np.empty(0, dtype=np.int64), np.empty((0, points), dtype=np.int64)
        nothing = np.empty((0, wide), dtype=np.float32)
        return [0, 0, 0, numbers, levels, levels, np.empty((points, 0)), nothing]
    order = np.argsort(fans.levels, axis=1, kind="stable")
    likely = fans.likely(of_pairs).reshape(-1, len(fans.ends))
    return [
        *(len(fans.ends), len(fans.terms), fans.opened),
        *int32_arrays(fans.ends, order, np.take_along_axis(fans.levels, order, axis=1)),
        *float64_arrays(hypotheses.table[fans.terms].T),
        *float32_arrays(_widened(likely.T, wide, -np.inf)),
    ]


def compiled_candidates(
    data: ScaledRows, chosen: ScreenedHypotheses, hypotheses: Hypotheses, deviations: Deviations
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """Return the columns of `Candidates`, ordered by row."""
    row_in, chosen_in = _listed(chosen, hypotheses)
    drifts, size = deviations.drifts, len(row_in)
    sizes = (
        *data.values.shape,
        len(drifts),
        len(hypotheses.shapes),
        len(deviations.deviation),
        size,
    )
    of_first = np.log([drift.of_first for drift in drifts]) / 2
    row, found = np.empty((2, size), dtype=np.int64)
    log_evidence = np.empty((size, len(deviations.deviation)))
    coefficients = np.empty((size, len(drifts), 3))
    covariance = np.empty((size, len(drifts), 6))
    call(
        "candidates",
        *(*sizes, int(hypotheses.kept.frugal)),
        *float64_arrays(data.values, data.weight, data.variance, data.dof, floor_of(data)),
        *float64_arrays(chosen.variance, chosen.fitted, hypotheses.table_and_none),
        *float64_arrays(hypotheses.table.min(axis=1), hypotheses.table.max(axis=1)),
        *float64_arrays(hypotheses.single_group == HypothesisGroup.FALLING),
        *int32_arrays(hypotheses.first, hypotheses.second),
        *float64_arrays(*precisions(data.points, drifts), of_first, deviations.deviation**2),
        *int32_arrays(deviations.drift_of, row_in, chosen_in),
        *(row, found, log_evidence, coefficients, covariance),
    )
    numbers, elements = (np.moveaxis(column, 0, 2) for column in (coefficients, covariance))
    return row, found, log_evidence.T, numbers, elements


def _listed(chosen: ScreenedHypotheses, hypotheses: Hypotheses) -> tuple[IntArray, IntArray]:
    """Return rows and hypotheses of all chosen candidates and of the constants."""
    rows, size = len(chosen.variance), len(hypotheses.shapes)
    families = enumerate(chosen.families)
    singles = [1 + family * size + chosen.shape[which] for family, which in families]
    every = [np.arange(rows), *(chosen.row[which] for which in chosen.families), chosen.pair_row]
    codes = [np.zeros(rows, dtype=np.intp), *singles, 1 + 3 * size + chosen.pair]
    return np.concatenate(every), np.concatenate(codes)
