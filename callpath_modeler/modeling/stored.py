"""Stored models: conversion to arrays and back, with name, type, shape and range of every column.

A store may come from anybody. The C library looks shapes up by the codes of terms, and reads
weights and errors by row. A column of another shape would make it read memory beyond the column. So
the shapes of all columns are checked when a store is opened, and the values of a column before its
first use, once, in time proportional to its size.

See docs/explanation/architecture.md, 'Types, in the order of the data flow'.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import BoolArray, FloatArray, give_back_pages, rows_of
from callpath_modeler.modeling.constants.limits import (
    CACHED,
    FEW_ROWS,
    LARGEST_PART,
    LARGEST_STORED,
    MOST_ALTERNATIVES,
    MOST_TERMS,
    ROUNDING,
    ROUNDING_OF_SUMS,
    ROWS_TOGETHER,
    SMALLEST,
)
from callpath_modeler.modeling.model_columns import (
    METHODS,
    FitStatus,
    column_names,
    numbers_of_root,
)
from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.products import Product
from callpath_modeler.modeling.repetitions import CENTRES, Centre
from callpath_modeler.modeling.shapes import Shapes, peaks, shapes_from_header, shapes_to_header
from callpath_modeler.modeling.terms import SearchSpace


class MissingRule(Enum):
    """Rules for NaN in a column."""

    NOWHERE = 0
    WITHOUT_MODEL = 1
    ANYWHERE = 2


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """Requirements on a column of models.

    Attributes
    ----------
    kind : kind and size of its type, e.g. ``"f8"``; ``"f"`` = single or double precision
    shape : dimensions: ``n`` rows, ``T`` terms, ``C`` coefficients, ``A`` alternatives,
        ``t`` and ``c`` terms and coefficients of these, ``M`` models of a row, ``R`` numbers of an
        error; a digit stands for itself
    low, high : bounds of all values except NaN
    missing : where the column may hold NaN
    empty_with : method whose models leave the column empty, or ""
    none : dimensions of the empty column, after the rows
    """

    kind: str
    shape: str
    low: float = -LARGEST_STORED
    high: float = LARGEST_STORED
    missing: MissingRule = MissingRule.NOWHERE
    empty_with: str = ""
    none: tuple[int, ...] = ()


_WITHOUT, _ANYWHERE = MissingRule.WITHOUT_MODEL, MissingRule.ANYWHERE

COLUMNS: Mapping[str, StoredColumn] = {
    "terms": StoredColumn("i2", "nT", low=-1),
    "coefficients": StoredColumn("f8", "nC", missing=_WITHOUT),
    "covariance": StoredColumn("f8", "nCC", missing=_ANYWHERE, empty_with="mixture", none=(0, 0)),
    "spread": StoredColumn("f8", "n", low=0, missing=_WITHOUT),
    "drift": StoredColumn("f8", "n", low=0, missing=_WITHOUT),
    "dof": StoredColumn("f8", "n", low=0, missing=_WITHOUT),
    "cv_error": StoredColumn("f8", "n", low=0, missing=_ANYWHERE),
    "r2": StoredColumn("f8", "n", high=1 + ROUNDING, missing=_ANYWHERE),
    "adjusted_r2": StoredColumn("f8", "n", high=1 + ROUNDING, missing=_ANYWHERE),
    "rss": StoredColumn("f8", "n", low=0, missing=_ANYWHERE),
    "noise": StoredColumn("f8", "n", low=0, missing=_ANYWHERE),
    "status": StoredColumn("i1", "n", low=min(FitStatus), high=max(FitStatus)),
    "used": StoredColumn("i2", "n", low=0),
    "since": StoredColumn("f8", "n", low=0),
    "before": StoredColumn("i2", "n", low=-1),
    "before_coefficients": StoredColumn("f8", "n2"),
    # In a row without values, the smallest point is infinite and the largest one minus infinity.
    "low_p": StoredColumn("f8", "n", low=0, high=np.inf, missing=_ANYWHERE),
    "high_p": StoredColumn("f8", "n", low=-np.inf, missing=_ANYWHERE),
    "weight": StoredColumn("f8", "n", low=0, high=1 + ROUNDING, missing=_WITHOUT),
    "alternative_terms": StoredColumn("i2", "nAt", low=-1),
    "alternative_coefficients": StoredColumn("f8", "nAc"),
    "alternative_weight": StoredColumn("f", "nA", low=0, high=1 + ROUNDING),
    "unit": StoredColumn("f8", "n", low=SMALLEST, missing=_WITHOUT),
    "root": StoredColumn(
        *("f4", "nMR", -LARGEST_PART, LARGEST_PART),
        empty_with="classic",
        none=(0, numbers_of_root(2)),
    ),
}
"""Columns of `Models`. Codes of terms are also checked against the number of shapes."""


class ColumnChecks:
    """Checks of columns of models, each of which is made once, when somebody needs the column.

    A check reads whole columns. With 10^6 models, all of them take half a second, but most commands
    use few columns.

    Parameters
    ----------
    arrays : all columns, by name, and the measured values as ``"measured"``, if they are known
    shapes : shapes that the codes of terms stand for
    points : points of the experiment, [K] or [K, D]
    rows : number of models
    method : method of modelling, which determines the columns that may be empty

    Raises
    ------
    ValueError
        If a column has another type or shape, or holds a value out of its range, or disagrees with
        another one. The message names it.
    """

    def __init__(
        self,
        arrays: Mapping[str, npt.NDArray[Any]],
        shapes: Shapes,
        points: FloatArray,
        rows: int,
        method: str,
    ) -> None:
        self.arrays, self.shapes, self.points, self.method = arrays, shapes, points, method
        sizes = _sizes(arrays, rows, method)
        for name, column in COLUMNS.items():
            array = arrays[name]
            if not array.dtype.str[1:].startswith(column.kind) or array.dtype.byteorder == ">":
                raise ValueError(f"{name} has the type {array.dtype.str}")
            expected = tuple(sizes[dimension] for dimension in column.shape)
            if column.empty_with == method:
                expected = (rows, *column.none)
            if array.shape != expected:
                raise ValueError(f"{name} has the shape {array.shape}, expected {expected}")
        self._made: set[object] = set()

    def of_rows(self, rows: Any) -> ColumnChecks:
        """Return the checks of some rows, which are read column by column when they are needed.

        Parameters
        ----------
        rows : row numbers, a mask, or a slice
        """
        found = object.__new__(ColumnChecks)
        found.arrays, found.shapes = _RowsOf(self.arrays, rows), self.shapes
        found.points, found.method = self.points, self.method
        found._made = self._made.copy()  # what holds for all rows holds for some
        return found

    def require(self, names: Collection[str]) -> None:
        """Check the ranges of columns, and that they agree with the others.

        Raises
        ------
        ValueError
            As described for the class.
        """
        rules = [rule for rule in _RULES if not rule.columns.isdisjoint(names)]
        needed = {*names}.union(*(rule.columns | rule.others for rule in rules))
        for name in COLUMNS:
            if name in needed:
                self._once(name, partial(self._check_column, name))
        for rule in rules:
            self._once(rule, partial(self._check_rule, rule))

    def _once(self, what: object, check: Callable[[], None]) -> None:
        if what not in self._made:
            check()
            self._made.add(what)

    @cached_property
    def modelled(self) -> BoolArray:
        """Which rows have a model, by their status, [n]."""
        return np.asarray(self.arrays["status"] < np.int8(FitStatus.TOO_FEW_POINTS))

    @cached_property
    def peak(self) -> FloatArray:
        """The largest values of shapes at the points, see `shapes.peaks`."""
        return peaks(self.shapes.table(self.points))

    def _check_column(self, name: str) -> None:
        self._check_range(name)
        give_back_pages([self.arrays[name]])

    def _check_rule(self, rule: _Rule) -> None:
        rule.check(self)
        give_back_pages([self.arrays[name] for name in rule.columns | rule.others])

    def _check_range(self, name: str) -> None:
        array, column = self.arrays[name], COLUMNS[name]
        if not array.size:
            return
        is_code = column.kind == "i2" and column.low == -1
        high = len(self.shapes) - 1 if is_code else column.high
        ends = [(part.min(), part.max()) for part in _in_cache(array.reshape(-1))]
        least, most = float(np.min(ends)), float(np.max(ends))
        holds_nan = np.isnan(least)
        if holds_nan:
            least, most = (float(each.reduce(array, axis=None)) for each in (np.fmin, np.fmax))
        if least < column.low or most > high:
            raise ValueError(f"{name} holds a value beyond {column.low:g} and {high:g}")
        if not holds_nan or column.missing is MissingRule.ANYWHERE:
            return
        if column.missing is MissingRule.NOWHERE:
            raise ValueError(f"{name} holds a value that is NaN")
        # Columns with missing models have at most two dimensions, so this array is not larger.
        missing = np.isnan(array).reshape(len(array), -1).any(axis=1)
        if (missing & self.modelled).any():
            raise ValueError(f"{name} holds a value that is NaN in a row with a model")


class _RowsOf(Mapping[str, npt.NDArray[Any]]):
    """Some rows of columns, each of which is read when somebody asks for it."""

    def __init__(self, columns: Mapping[str, npt.NDArray[Any]], rows: Any) -> None:
        self._columns, self._rows = columns, rows
        self._read: dict[str, npt.NDArray[Any]] = {}

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self._read:
            self._read[name] = rows_of(self._columns[name], self._rows)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


@dataclass(frozen=True, slots=True)
class _Rule:
    """A check that relates columns to each other.

    Attributes
    ----------
    check : the check
    columns : the columns whose use needs it
    others : further columns that it reads
    """

    check: Callable[[ColumnChecks], None]
    columns: frozenset[str]
    others: frozenset[str] = frozenset()


def _in_cache(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield parts that stay in the processor's cache, so that several passes read them once."""
    rows = max(1, CACHED // max(1, array[:1].nbytes))
    for start in range(0, len(array), rows):
        yield array[start : start + rows]


def _check_status(its: ColumnChecks) -> None:
    if (np.isnan(its.arrays["coefficients"][:, 0]) == its.modelled).any():
        raise ValueError("coefficients and status disagree on which rows have a model")


def _check_weights(its: ColumnChecks) -> None:
    """Refuse probabilities of a model and its alternatives that do not add up to one."""
    others = its.arrays["alternative_weight"]
    axes = 1 if its.points.ndim == 1 else its.points.shape[1]
    if others.shape[1] % axes:
        raise ValueError(f"{others.shape[1]} alternatives are not of {axes} parameters")
    # Of several parameters, the alternatives along each stand for all.
    each = others.reshape(len(others), axes, -1).sum(axis=2, dtype=np.float64)
    total = np.where(its.modelled[:, None], its.arrays["weight"][:, None] + each, 1.0)
    if total.size and np.abs(total - 1).max() > ROUNDING_OF_SUMS:
        raise ValueError("weight and alternative_weight do not add up to one")


def _check_places(its: ColumnChecks) -> None:
    """Check that change points are among the points."""
    since = its.arrays["since"]
    if its.points.ndim > 1:
        if since.any():
            raise ValueError("since holds a point, but the models have several parameters")
    elif not np.isin(since, np.append(its.points, 0.0)).all():
        raise ValueError("since holds a value that is not one of the points")


def _check_ends(its: ColumnChecks) -> None:
    """Check that ends of the measurements are the points with the first and last value."""
    if its.points.ndim > 1:
        return
    for name, none in (("low_p", np.inf), ("high_p", -np.inf)):
        if not np.isin(its.arrays[name], np.append(its.points, none)).all():
            raise ValueError(f"{name} holds a value that is not one of the points")
    measured = its.arrays.get("measured")
    if measured is None:
        return
    low, high = np.full(len(measured), np.inf), np.full(len(measured), -np.inf)
    count = np.zeros(len(measured), np.intp)
    # One point after the other is several times as fast as along the last axis. Points ascend.
    for k, point in enumerate(its.points.tolist()):
        there = np.isfinite(measured[:, k])
        low[there & (count == 0)], high[there] = point, point
        count += there
    if (low != its.arrays["low_p"]).any() or (high != its.arrays["high_p"]).any():
        raise ValueError("low_p or high_p is not the first or last point with a value")
    if (its.arrays["used"] > count).any():
        raise ValueError("used is more points than have a value")


def _check_errors(its: ColumnChecks) -> None:
    """Check that roots of covariances have no negative number on their diagonals."""
    root = its.arrays["root"]
    steps = np.cumsum(range(1, MOST_TERMS + 2)) - 1
    places = steps[steps < root.shape[-1]].tolist()
    for part in _in_cache(root.reshape(-1, root.shape[-1])):
        if any(part[:, place].min() < 0 for place in places):
            raise ValueError("root holds a negative error")


def _check_model_parts(its: ColumnChecks) -> None:
    _check_parts(its, "terms", "coefficients")


def _check_alternative_parts(its: ColumnChecks) -> None:
    _check_parts(its, "alternative_terms", "alternative_coefficients")


def _check_parts(its: ColumnChecks, codes: str, numbers: str) -> None:
    """Check that coefficients have a plausible size for values in the unit of their row."""
    if its.method == "classic":
        return
    unit = its.arrays["unit"]
    for start in range(0, len(unit), ROWS_TOGETHER):
        some = slice(start, start + ROWS_TOGETHER)
        most, part = LARGEST_PART * unit[some], its.arrays[numbers][some]
        if not part.size:
            continue
        # The largest possible part of all rows is far below the limit, except in odd stores.
        largest = max(np.fmax.reduce(part, axis=None), -np.fmin.reduce(part, axis=None))
        if largest * max(1.0, its.peak.max()) <= np.fmin.reduce(most):
            continue
        part = np.abs(part)
        with np.errstate(over="ignore", invalid="ignore"):
            part[..., 1:] *= its.peak[its.arrays[codes][some]]
        if (part.reshape(len(part), -1).max(axis=1, initial=0.0) > most).any():
            raise ValueError(f"{numbers} and unit are of other magnitudes")


_RULES = (
    _Rule(_check_status, frozenset({"status", "coefficients"})),
    _Rule(_check_weights, frozenset({"weight", "alternative_weight"})),
    _Rule(_check_places, frozenset({"since"})),
    _Rule(_check_ends, frozenset({"low_p", "high_p", "used"})),
    _Rule(_check_errors, frozenset({"root"})),
    _Rule(_check_model_parts, frozenset({"terms", "coefficients"}), frozenset({"unit"})),
    _Rule(
        _check_alternative_parts,
        frozenset({"alternative_terms", "alternative_coefficients"}),
        frozenset({"unit"}),
    ),
)


def _sizes(arrays: Mapping[str, npt.NDArray[np.generic]], rows: int, method: str) -> dict[str, int]:
    terms, alternatives = arrays["terms"], arrays["alternative_terms"]
    if terms.ndim != 2 or alternatives.ndim != 3:
        raise ValueError("terms or alternative_terms have another number of dimensions")
    of_terms, of_alternatives = terms.shape[1], alternatives.shape[1]
    # The classic method adds terms to the model only; all hypotheses of a mixture have one size.
    of_others = alternatives.shape[2] if method == "classic" else of_terms
    if max(of_terms, of_others) > MOST_TERMS or of_alternatives > MOST_ALTERNATIVES:
        raise ValueError(f"{of_terms} terms and {of_alternatives} alternatives are too many")
    return {
        "n": rows,
        "2": 2,
        "T": of_terms,
        "C": of_terms + 1,
        "A": of_alternatives,
        "t": of_others,
        "c": of_others + 1,
        # Errors are triangular matrices of the coefficients, see `roots` in `model_columns`.
        "M": of_alternatives + 1,
        "R": numbers_of_root(of_terms),
    }


_VERSION = 5
"""Version of the format of stored models."""


def to_arrays(models: Models) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return models as arrays and a header, for a store.

    Returns
    -------
    arrays : dict of ndarray
        The columns, by name.
    header : dict
        A small header of texts and numbers for JSON.
    """
    header: dict[str, Any] = {
        "version": _VERSION,
        "space": models.space.to_header(),
        "shapes": shapes_to_header(models.shapes),
        "method": models.method,
        "aggregate": models.aggregate,
        "confidence": models.confidence,
        "correlation": models.correlation,
        "odd_scale": models.odd_scale,
        "grain": models.grain,
        "points": models.points.tolist(),
    }
    return {name: getattr(models, name) for name in column_names()}, header


class StoredModels(Models):
    """Models of a store, whose columns are checked before they are used.

    A column is checked as a whole when somebody asks for it. If few models are taken, only their
    rows are read and checked. Copies are plain `Models`, so they have all columns.
    """

    __slots__ = ("_checks", "_refused")

    _checks: ColumnChecks
    _refused: Callable[[str], Exception]

    def __new__(cls, **fields: Any) -> Models:  # type: ignore[misc]
        """Return plain models, because `replace` calls the class."""
        return Models(**fields)

    @classmethod
    def of(
        cls, common: Mapping[str, Any], checks: ColumnChecks, refused: Callable[[str], Exception]
    ) -> StoredModels:
        """Return models with the fields that are no columns; nobody has used a column yet."""
        made = object.__new__(cls)
        for name, value in {**common, "_checks": checks, "_refused": refused}.items():
            object.__setattr__(made, name, value)
        return made

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        # Python calls this for a field without a value.
        if name not in COLUMNS:
            raise AttributeError(name)
        self.require([name])
        return object.__getattribute__(self, name)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all columns."""
        return replace, (replace(self),)

    def require(self, names: Sequence[str] = tuple(COLUMNS)) -> None:
        """Check columns, and keep them.

        Raises
        ------
        Exception
            The error of the store, if a value violates the schema.
        """
        self._check(self._checks, names)
        for name in names:
            column = self._checks.arrays[name].view()
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    def take(self, rows: npt.ArrayLike | slice) -> Models:  # type: ignore[override]
        """Return the models of some rows, as `ModelColumns.take` does."""
        count = len(self._checks.arrays["status"])
        if isinstance(rows, slice):
            number = len(range(*rows.indices(count)))
        else:
            rows = np.asarray(rows)
            number = int(rows.sum()) if rows.dtype == bool else rows.size
        if number * FEW_ROWS > count or not number:
            return replace(self).take(rows)
        names = [field.name for field in fields(self) if field.name not in COLUMNS]
        common = {name: getattr(self, name) for name in names}
        return StoredModels.of(common, self._checks.of_rows(rows), self._refused)

    def give_back(self) -> None:
        """Give the memory of columns in mapped files back to the system, after a pass over them."""
        give_back_pages(self._checks.arrays.values())

    def _check(self, checks: ColumnChecks, names: Sequence[str]) -> None:
        try:
            checks.require(names)
        except ValueError as cause:
            raise self._refused(str(cause)) from cause


def from_arrays(
    arrays: Mapping[str, npt.NDArray[Any]],
    header: Mapping[str, Any],
    rows: int | None = None,
    refused: Callable[[str], Exception] | None = None,
) -> StoredModels:
    """Return the models of arrays and a header that `to_arrays` made.

    Memory-mapped columns stay memory-mapped.

    Parameters
    ----------
    arrays, header : as returned by `to_arrays`; an array ``"measured"`` is compared with them
    rows : required number of models; None = that of the statuses
    refused : error of a column that violates the schema, from a message: columns are checked before
        they are used; None = all columns are checked at once

    Raises
    ------
    ValueError
        If the header or a column is missing, of another version, or not as the schema requires.
    """
    if header.get("version") != _VERSION:
        raise ValueError(f"models of version {header.get('version')} are not understood")
    missing = [name for name in COLUMNS if name not in arrays]
    if missing:
        raise ValueError(f"columns missing: {', '.join(missing)}")
    shapes = shapes_from_header(header["shapes"])
    if header["method"] not in METHODS:
        raise ValueError(f"no method is called {header['method']!r}")
    rows = len(arrays["status"]) if rows is None else rows
    points = np.array(header["points"], dtype=np.float64)
    if points.ndim not in {1, 2} or not np.isfinite(points).all() or not (points > 0).all():
        raise ValueError("points are not positive numbers")
    points.flags.writeable = False
    axes = 1 if points.ndim == 1 else points.shape[1]
    if any(isinstance(shape, Product) and len(shape.factors) != axes for shape in shapes):
        raise ValueError("a shape is a product of more or fewer factors than there are parameters")
    checks = ColumnChecks(arrays, shapes, points, rows, header["method"])
    if not 0 < float(header["confidence"]) < 1 or not 0 <= float(header["correlation"]) <= 1:
        raise ValueError("confidence or correlation is not between 0 and 1")
    grain = float(header.get("grain", 0.0))
    if not 0 <= grain < np.inf:
        raise ValueError("grain is below zero or not finite")
    common = {
        "space": SearchSpace.from_header(header["space"]),
        "shapes": shapes,
        "method": str(header["method"]),
        "aggregate": _centre(header["aggregate"]),
        "points": points,
        "confidence": float(header["confidence"]),
        "correlation": float(header["correlation"]),
        "odd_scale": _odd_scale(header.get("odd_scale")),
        "grain": grain,
    }
    models = StoredModels.of(common, checks, refused or ValueError)
    if refused is None:
        models.require()
    return models


def _centre(text: str) -> Centre:
    for known in CENTRES:
        if known == text:
            return known
    raise ValueError(f"no centre of repetitions is called {text!r}")


def _odd_scale(told: Sequence[Any] | None) -> tuple[tuple[float | None, ...], float] | None:
    if told is None:
        return None
    where, factor = told
    # Older stores hold the value of the only parameter instead of a sequence.
    each = where if isinstance(where, Sequence) else [where]
    return tuple(None if value is None else float(value) for value in each), float(factor)
