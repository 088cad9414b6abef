"""Calls into the compiled library: numpy arrays in, numpy arrays out.

See docs/explanation/architecture.md, 'The engine in C', and docs/explanation/hypotheses.md.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from callpath_modeler.arrays import FloatArray, Int64Array, IntArray
from callpath_modeler.errors import InstallationError
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
    f8 drift[n], f8 counting[n], f8 peak[shapes], f8 least[shapes], f8 most[shapes],
    f8 at[targets,shapes], f8 beyond[targets]"""
"""Models, and their shapes at targets, as `c_kernels._columns` gives them."""
_TEXT = f"""
normal_shares: n, f8 z[n], > f8 found[n]
log_normal_shares: n, f8 z[n], > f8 found[n]
normal_quantiles: n, f8 probability[n], > f8 found[n]
polygammas: n, f8 argument[n], > f8 first[n], > f8 second[n], > f8 third[n]
student_shares: n, f8 dof[n], f8 t[n], > f8 found[n]
student_quantiles: n, f8 dof[n], f8 probability[n], > f8 found[n]
quantiles: rows, parts, columns, f8 centre[rows,parts,columns], f8 below[rows,parts,columns],
    f8 above[rows,parts,columns], f8 weight[rows,parts], probabilities,
    f8 probability[probabilities], > f8 found[probabilities,rows,columns]
exceedances: rows, parts, columns, f8 centre[rows,parts,columns], f8 below[rows,parts,columns],
    f8 above[rows,parts,columns], f8 weight[rows,parts], f8 value[rows,columns],
    > f8 found[rows,columns]
bands: {_MODELS}, double negligible, f8 ends[2], > f8 low[n,targets], > f8 high[n,targets]
mixtures: {_MODELS}, > f8 centre[n,1+others,targets], > f8 below[n,1+others,targets],
    > f8 above[n,1+others,targets], > f8 share[n,1+others]
quantiles_of_bands: {_MODELS}, f8 value[n,targets], f8 low[n,targets], f8 high[n,targets],
    f8 score[{SCORES}], f8 probability[{SCORES - 2}], > f8 found[n,targets,{SCORES}]
addends: n, f8 quantiles[n,{SCORES}], double correlation,
    f8 weights[2,{CORRELATIONS},{_FINELY}], > f8 found[n,{COLUMNS}]
sum_up: n, repetitions, how, f8 y[n,repetitions], > f8 centre[n], > f8 count[n], > f8 squares[n]
state: n, points, repetitions, enough, f8 y[n,points,repetitions], f8 centre[n,points],
    f8 count[n,points], i1 codes[4], > i1 status[n]
spread_of_rows: n, points, f8 centre[n,points], f8 count[n,points], f8 squares[n,points],
    > f8 raw[n], > f8 dof[n], > f8 size[n]
noise_of_rows: n, points, f8 centre[n,points], f8 count[n,points], f8 squares[n,points],
    f8 raw[n], f8 dof[n], f8 size[n], f8 pool[6], f8 profile[points], double efficiency,
    > f8 variance[n], > f8 freedom[n], > f8 spread[n], > f8 weight[n,points]
facts_of_rows: n, points, f8 count[n,points], f8 p[points], > i2 used[n], > f8 low[n], > f8 high[n]
own_units: n, points, f8 centre[n,points], f8 weight[n,points], > f8 values[n,points], > f8 unit[n]
screen: rows, points, shapes, there, pairs, drifts, f8 values[rows,points],
    f8 weight[rows,points], f8 variance[rows], f8 dof[rows], f8 floor[rows,1],
    f8 precision[drifts,points], f8 away[drifts,points], f8 table[there,points],
    f8 products[pairs,points], i4 first[all], i4 second[all], f4 falling[shapes],
    f4 prior[1+3*shapes+all], double promise, kept_shapes, kept_pairs, double nats, frugal,
    growing, axes, terms, opened, i8 ends[axes], i8 order[axes,points], i8 level[axes,points],
    f8 of_terms[points,terms], f4 likely[axes,shapes], most, most_pairs, > i8 row[most],
    > i8 shape[most], > i8 families[most], > i8 pair_row[most_pairs], > i8 pair[most_pairs],
    = i8 counts[3], > f8 variances[rows], > f8 fitted[rows,points]
candidates: count, points, drifts, shapes, deviations, size, frugal, absolute,
    f8 values[count,points], f8 weight[count,points], f8 variance[count], f8 dof[count],
    f8 floor[count,1], f8 typical[count], f8 fitted[count,points], f8 table[shapes+1,points],
    f8 least[shapes], f8 most[shapes], f8 falling[shapes], i8 first_of[all], i8 second_of[all],
    f8 precision[drifts,points], f8 away[drifts,points], f8 of_first[drifts],
    f8 square[deviations], i8 drift[deviations], i8 row_in[size], i8 chosen_in[size],
    > i8 row[size], > i8 chosen[size], > f8 log_evidence[size,deviations],
    > f8 coefficients[size,drifts,{NUMBERS}], > f8 covariance[size,drifts,{ELEMENTS}]
posterior: rows, size, deviations, drifts, i8 start[rows+1], i8 chosen[size],
    f8 log_evidence[size,deviations], f8 coefficients[size,drifts,{NUMBERS}],
    f8 covariance[size,drifts,{ELEMENTS}], f8 variance[rows], f8 prior[all],
    f8 deviation_prior[deviations], f8 square[deviations], i8 begin[drifts+1], f8 growth[drifts],
    > i8 row_out[size], > i8 chosen_out[size], > f8 weight_out[size],
    > f8 coefficients_out[{NUMBERS},size], > f8 covariance_out[{ELEMENTS},size],
    > f8 variance_out[rows], > f8 drift_out[rows], = i8 count[1]
fitted_values: rows, size, points, i8 row[size], i8 first[size], i8 second[size], f8 weight[size],
    f8 coefficients[{NUMBERS},size], f8 table[all,points], > f8 fitted[rows,points]
choose: n, count, shapes, places, others, i8 rows[n], i8 start[n+1], i8 chosen[count],
    f8 probability[count], f8 found_coefficients[{NUMBERS},count],
    f8 covariance[{ELEMENTS},count], i8 first[all], i8 second[all], f8 scale[shapes],
    f8 far[places,shapes+1], f8 unit[n], f8 least[n], = i2 terms[column,{TERMS}],
    = f8 coefficients[column,{NUMBERS}], = f8 weight[column],
    = i2 other_terms[column,others,{TERMS}], = f8 other_coefficients[column,others,{NUMBERS}],
    = f4 other_weight[column,others], = f4 root[column,others+1,{ELEMENTS}],
    = f8 scaled[n,{NUMBERS}]
measure_quality: n, points, i8 rows[n], f8 values[n,points], f8 weight[n,points], f8 floor[n,1],
    f8 table[all,points], f8 scaled[n,{NUMBERS}], i2 terms[column,{TERMS}], = f8 rss[column],
    = f8 cv_error[column], = f8 r2[column], = f8 adjusted_r2[column]
name_outcomes: n, points, i8 rows[n], f8 first[points], f8 values[n,points], f8 weight[n,points],
    f8 unit[n], f8 variance[n], f8 deviation[n], f8 broken[n], f8 exactly[n], double most,
    f8 noise[column], f8 rss[column], i2 terms[column,{TERMS}], i1 codes[4], = i1 status[column]
"""
"""Declarations of all functions: names, and arguments in the order of C.

``f8 z[n]`` is an array that the function reads, ``> f8 found[n]`` one that it writes, and
``= f8 rss[column]`` one that it changes. ``double most`` and ``how`` are numbers. A number that is
also the size of an axis follows from the arrays.
"""

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
    way : ">" for an array that the function writes, "=" for one that it changes, else ""
    """

    name: str
    number: type[ctypes.c_int64 | ctypes.c_double]
    element: np.dtype[Any] | None = None
    shape: tuple[Size, ...] = ()
    way: str = ""

    @property
    def ctype(self) -> type[ctypes.c_int64 | ctypes.c_double | ctypes.c_void_p]:
        """Type of the argument for ctypes."""
        return self.number if self.element is None else ctypes.c_void_p

    def given(self, column: npt.ArrayLike, sizes: dict[str, float]) -> npt.NDArray[Any]:
        """Return an array as C reads it; `sizes` gets sizes that are named here first.

        Raises
        ------
        ValueError
            If the shape is wrong, or an array that changes would have to be copied.
        TypeError
            If numbers would lose more than digits.
        """
        array = np.asarray(column)
        if self.way and (array.dtype != self.element or not array.flags.c_contiguous):
            raise ValueError(f"{self.name} must be contiguous {self.element}, not {array.dtype}")
        array = array.astype(self.element, order="C", casting="same_kind", copy=False)
        if array.ndim != len(self.shape):
            raise ValueError(f"{self.name} must have {len(self.shape)} axes, not {array.ndim}")
        for size, there in zip(self.shape, array.shape, strict=True):
            if len(size) == 1 and size[0][1] not in sizes:
                sizes[size[0][1]] = there
            if _sum(size, sizes) != there:
                raise ValueError(f"{self.name} has the shape {array.shape}, with sizes {sizes}")
        return array

    def result(self, sizes: Mapping[str, float]) -> npt.NDArray[Any]:
        """Return an array for results, with any contents."""
        return np.empty([int(_sum(size, sizes)) for size in self.shape], dtype=self.element)


def _sum(size: Size, sizes: Mapping[str, float]) -> float:
    return sum(factor * sizes[name] for factor, name in size)


def _size(text: str) -> Size:
    """Return a size such as ``1+3*shapes``."""
    found = []
    for part in text.split("+"):
        factor, _, name = part.rpartition("*")
        number = part.isdigit()
        found.append((int(part), "") if number else (int(factor or 1), name))
    return tuple(found)


def _argument(text: str) -> Argument:
    """Return an argument such as ``> f8 centre[n,points]``, ``double efficiency`` or ``n``."""
    way = text[0] if text[0] in ">=" else ""
    kind, _, name = text.removeprefix(f"{way} ").rpartition(" ")
    if kind not in _TYPES:
        return Argument(name, ctypes.c_double if kind else ctypes.c_int64)
    name, _, shape = name.rstrip("]").partition("[")
    sizes = tuple(_size(each) for each in shape.split(","))
    return Argument(name, ctypes.c_int64, _TYPES[kind], sizes, way)


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


def _pointer(array: npt.NDArray[Any]) -> Any:
    if array.flags.writeable and array.size:
        # This is several times as fast as the general way.
        return ctypes.byref(ctypes.c_char.from_buffer(array.data))
    return array.ctypes.data


FOLDER = Path(__file__).parent
"""Folder of sources and libraries."""


def is_outdated(folder: Path) -> bool:
    """Return whether there are libraries, but only of other sources."""
    wanted = libraries(folder).values()
    there = {path for each in wanted for path in folder.glob(f"*{each.suffix}")}
    return bool(there) and there.isdisjoint(wanted)


def call(name: str, *columns: npt.ArrayLike, **numbers: float) -> list[npt.NDArray[Any]]:
    """Call a function of the library, as declared in `PROTOTYPES`, and return its results.

    Parameters
    ----------
    name : str
        Name of the function.
    *columns : array_like
        Arrays that the function reads or changes, in the order of the declaration. Those that it
        only reads are converted.
    **numbers : int or float
        Numbers that are no sizes of these arrays, by name.

    Raises
    ------
    ValueError
        If an array has another shape than the function expects.
    TypeError
        If an array has numbers of another kind.
    MemoryError
        If the function has too little memory.
    InstallationError
        If there is no library.
    """
    declared, sizes = PROTOTYPES[name], {"": 1, **numbers}
    given = [each for each in declared if each.element is not None and each.way != ">"]
    arrays = {
        each.name: each.given(column, sizes) for each, column in zip(given, columns, strict=True)
    }
    found = {each.name: each.result(sizes) for each in declared if each.way == ">"}
    pointers = {key: _pointer(array) for key, array in (*arrays.items(), *found.items())}
    passed = (pointers[each.name] if each.element else sizes[each.name] for each in declared)
    if getattr(engine(), name)(*passed):
        raise MemoryError(name)
    return list(found.values())


@cache
def engine() -> ctypes.CDLL:
    """Return the library that was compiled from these sources, for this kind of processor.

    Raises
    ------
    InstallationError
        If there is none, or one for another kind of machine that shares the folder.
    """
    anywhere, *others = libraries(FOLDER).values()
    try:
        general = ctypes.CDLL(str(anywhere))
    except OSError:
        raise _missing() from None
    # Compilers may not know the newest kind.
    for special in reversed(others[: int(general.processor())]):
        with suppress(OSError):
            return declare(ctypes.CDLL(str(special)))
    return declare(general)


def _missing() -> InstallationError:
    if is_outdated(FOLDER):
        return InstallationError(
            "the sources of the engine in C have changed since they were compiled",
            hint="`pip install -e .` compiles them again",
        )
    return InstallationError(
        "this installation of cpmodel has no compiled engine for this machine",
        hint="install from the sources with `pip install .`, which needs a C compiler or a network",
    )


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
    shapes, kept = len(hypotheses.shapes), hypotheses.kept
    # Shapes fill whole vectors; the additional ones have no prior.
    wide = -(-shapes // WHOLE) * WHOLE
    before, of_shapes, of_pairs = np.split(log_prior, [1, 1 + 3 * shapes])
    prior = np.empty(1 + 3 * wide + len(of_pairs), dtype=np.float32)
    prior[0], prior[1 + 3 * wide :] = before[0], of_pairs
    prior[1 : 1 + 3 * wide] = _widened(of_shapes.reshape(3, shapes), wide, -np.inf).ravel()
    falling = hypotheses.single_group == HypothesisGroup.FALLING
    fixed: list[npt.ArrayLike] = [
        *(*precisions(data.points, drifts), hypotheses.table, hypotheses.products),
        *(hypotheses.first, hypotheses.second, _widened(falling, wide), prior),
        *_fans(hypotheses, of_pairs, wide),
    ]
    numbers: dict[str, float] = {
        "promise": promise_of_pairs(hypotheses, log_prior),
        "kept_shapes": kept.shapes,
        "kept_pairs": kept.pairs * points,
        "nats": kept.nats,
        "frugal": kept.frugal,
        "growing": hypotheses.growing,
        "opened": 0 if hypotheses.fans is None else hypotheses.fans.opened,
        "most": rows * NOTED + shapes,
        "most_pairs": rows * NOTED + hypotheses.compared,
    }
    columns = data.values, data.weight, data.variance, data.dof, floor_of(data)
    variance, fitted = np.empty(rows), np.empty((rows, points))
    done, parts = 0, list[tuple[IntArray, IntArray]]()
    while done < rows or not parts:
        counts = np.zeros(3, dtype=np.int64)
        its = (column[done:] for column in columns)
        *found, variance[done:], fitted[done:] = call("screen", *its, *fixed, counts, **numbers)
        part = (
            np.array([column[: counts[0]] for column in found[:3]]),
            np.array([column[: counts[1]] for column in found[3:]]),
        )
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


def _fans(hypotheses: Hypotheses, of_pairs: FloatArray, wide: int) -> list[npt.NDArray[Any]]:
    """Return the input of ``fans.h``."""
    fans, points = hypotheses.fans, hypotheses.table.shape[1]
    if fans is None:
        nothing = np.empty((0, points), dtype=np.int64)
        return [nothing[:, 0], nothing, nothing, np.empty((points, 0)), np.empty((0, wide))]
    order = np.argsort(fans.levels, axis=1, kind="stable")
    level = np.take_along_axis(fans.levels, order, axis=1)
    likely = fans.likely(of_pairs).reshape(-1, len(fans.ends))
    terms = hypotheses.table[fans.terms].T
    return [fans.ends, order, level, terms, _widened(likely.T, wide, -np.inf)]


def compiled_candidates(
    data: ScaledRows,
    chosen: ScreenedHypotheses,
    hypotheses: Hypotheses,
    deviations: Deviations,
    *,
    absolute: bool,
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """Return the columns of `Candidates`, ordered by row."""
    drifts, table = deviations.drifts, hypotheses.table
    row, found, log_evidence, coefficients, covariance = call(
        "candidates",
        *(data.values, data.weight, data.variance, data.dof, floor_of(data)),
        *(chosen.variance, chosen.fitted, hypotheses.table_and_none),
        *(table.min(axis=1), table.max(axis=1)),
        hypotheses.single_group == HypothesisGroup.FALLING,
        *(hypotheses.first, hypotheses.second, *precisions(data.points, drifts)),
        *(np.log([drift.of_first for drift in drifts]) / 2, deviations.deviation**2),
        *(deviations.drift_of, *_listed(chosen, hypotheses)),
        shapes=len(table),
        frugal=hypotheses.kept.frugal,
        absolute=absolute,
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
