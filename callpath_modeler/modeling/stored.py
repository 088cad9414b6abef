"""Conversion of models to arrays for a store, and back.

See docs/explanation/architecture.md, 'Types, in the order of the data flow'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.model_columns import METHODS, column_names
from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.noise import CENTRES, Centre
from callpath_modeler.modeling.products import Product
from callpath_modeler.modeling.shapes import shapes_from_header, shapes_to_header
from callpath_modeler.modeling.stored_schema import check_columns
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


def from_arrays(
    arrays: Mapping[str, npt.NDArray[Any]], header: Mapping[str, Any], rows: int | None = None
) -> Models:
    """Return the models of arrays and a header that `to_arrays` made.

    Memory-mapped columns stay memory-mapped.

    Parameters
    ----------
    arrays, header : as returned by `to_arrays`
    rows : required number of models; None = that of the statuses

    Raises
    ------
    ValueError
        If the header or a column is missing, of another version, or not as the schema requires.
    """
    if header.get("version") != _VERSION:
        raise ValueError(f"models of version {header.get('version')} are not understood")
    missing = [name for name in column_names() if name not in arrays]
    if missing:
        raise ValueError(f"columns missing: {', '.join(missing)}")
    shapes = shapes_from_header(header["shapes"])
    if header["method"] not in METHODS:
        raise ValueError(f"no method is called {header['method']!r}")
    rows = len(arrays["status"]) if rows is None else rows
    points = np.array(header["points"], dtype=np.float64)
    if points.ndim not in {1, 2} or not np.isfinite(points).all() or not (points > 0).all():
        raise ValueError("points are not positive numbers")
    axes = 1 if points.ndim == 1 else points.shape[1]
    if any(isinstance(shape, Product) and len(shape.factors) != axes for shape in shapes):
        raise ValueError("a shape is a product of more or fewer factors than there are parameters")
    check_columns(arrays, shapes, points, rows, header["method"])
    if not 0 < float(header["confidence"]) < 1 or not 0 <= float(header["correlation"]) <= 1:
        raise ValueError("confidence or correlation is not between 0 and 1")
    return Models(
        space=SearchSpace.from_header(header["space"]),
        shapes=shapes,
        method=str(header["method"]),
        aggregate=_centre(header["aggregate"]),
        points=points,
        confidence=float(header["confidence"]),
        correlation=float(header["correlation"]),
        odd_scale=_odd_scale(header.get("odd_scale")),
        **{name: arrays[name].view() for name in column_names()},
    )


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
