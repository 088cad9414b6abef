"""Conversion of models to arrays for a store, and back.

See docs/explanation/architecture.md, 'Types, in the order of the data flow'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.constants.limits import FEW_ROWS
from callpath_modeler.modeling.model_columns import METHODS, column_names
from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.noise import CENTRES, Centre
from callpath_modeler.modeling.products import Product
from callpath_modeler.modeling.shapes import shapes_from_header, shapes_to_header
from callpath_modeler.modeling.stored_schema import COLUMNS, ColumnChecks
from callpath_modeler.modeling.terms import SearchSpace

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
        "points": models.points.tolist(),
    }
    return {name: getattr(models, name) for name in column_names()}, header


class StoredModels(Models):
    """Models of a store, whose columns are checked before they are used.

    A column is checked as a whole when somebody asks for it. If few models are taken, only their
    rows are checked. Copies are plain `Models`, so they have all columns.
    """

    __slots__ = ("_checks", "_refused")

    _checks: ColumnChecks
    _refused: Callable[[str], Exception]

    def __new__(cls, **fields: Any) -> Models:  # type: ignore[misc]
        """Return plain models, because `replace` calls the class."""
        return Models(**fields)

    @classmethod
    def of(
        cls, fields: Mapping[str, Any], checks: ColumnChecks, refused: Callable[[str], Exception]
    ) -> StoredModels:
        """Return models with these fields, whose columns nobody has used yet."""
        made = object.__new__(cls)
        for name, value in {**fields, "_checks": checks, "_refused": refused}.items():
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
        its = self._checks.of_rows(rows)
        self._check(its, tuple(COLUMNS))
        columns: dict[str, Any] = {name: its.arrays[name] for name in COLUMNS}
        return replace(self, **columns)

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
    fields = {
        "space": SearchSpace.from_header(header["space"]),
        "shapes": shapes,
        "method": str(header["method"]),
        "aggregate": _centre(header["aggregate"]),
        "points": points,
        "confidence": float(header["confidence"]),
        "correlation": float(header["correlation"]),
        "odd_scale": _odd_scale(header.get("odd_scale")),
    }
    models = StoredModels.of(fields, checks, refused or ValueError)
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
