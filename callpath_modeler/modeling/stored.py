"""Models taken apart for a store, and put together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.models import Models, column_names
from callpath_modeler.modeling.noise import CENTRES, Centre
from callpath_modeler.modeling.shapes import shapes_from_header, shapes_to_header
from callpath_modeler.modeling.terms import SearchSpace

_VERSION = 4


def to_arrays(models: Models) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Take models apart for a store.

    Returns
    -------
    arrays : dict of ndarray
        The columns, by name.
    header : dict
        Small, of texts and numbers that JSON can hold.
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


def from_arrays(arrays: Mapping[str, npt.NDArray[Any]], header: Mapping[str, Any]) -> Models:
    """Undo `to_arrays`; memory-mapped columns stay so.

    Raises
    ------
    ValueError
        If the header or a column is missing or of another version.
    """
    if header.get("version") != _VERSION:
        raise ValueError(f"models of version {header.get('version')} are not understood")
    missing = [name for name in column_names() if name not in arrays]
    if missing:
        raise ValueError(f"columns missing: {', '.join(missing)}")
    shapes = shapes_from_header(header["shapes"])
    for name in ("terms", "alternative_terms"):
        # They are looked up without further question.
        codes = arrays[name]
        if codes.size and not -1 <= codes.min() <= codes.max() < len(shapes):
            raise ValueError(f"{name} are of shapes that are not there")
    return Models(
        space=SearchSpace.from_header(header["space"]),
        shapes=shapes,
        method=str(header["method"]),
        aggregate=_centre(header["aggregate"]),
        points=np.array(header["points"], dtype=np.float64),
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
    # Stores of before hold the one value of the only parameter.
    each = where if isinstance(where, Sequence) else [where]
    return tuple(None if value is None else float(value) for value in each), float(factor)
