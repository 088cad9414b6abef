"""Mixtures of the predictions of hypotheses: calls into ``bands.c`` and ``uncertainty.c``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.compiled.library import call, float64_arrays

if TYPE_CHECKING:
    from callpath_modeler.modeling.models import Models

Parts = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Centre, below and above [n, C, m], and weight [n, C], as in `Mixture`."""

_TERMS = 2
"""Terms of a model that the library reads."""


def quantiles(parts: Parts, probabilities: FloatArray) -> FloatArray:
    """Return the same as `Mixture.quantiles`."""
    rows, _, columns = parts[0].shape
    found = np.empty((len(probabilities), rows, columns))
    (asked,) = float64_arrays(probabilities)
    call("quantiles", *parts[0].shape, *float64_arrays(*parts), len(asked), asked, found)
    return found


def exceedance(parts: Parts, value: FloatArray) -> FloatArray:
    """Return the same as `Mixture.exceedance`."""
    rows, _, columns = parts[0].shape
    found = np.empty((rows, columns))
    columns = float64_arrays(*parts, np.broadcast_to(value, found.shape))
    call("exceedances", *parts[0].shape, *columns, found)
    return found


def bands(
    models: Models, p: FloatArray, tables: tuple[FloatArray, FloatArray, FloatArray], least: float
) -> tuple[FloatArray, FloatArray]:
    """Return the same as `prediction_interval`.

    Parameters
    ----------
    models, p : as for `prediction_interval`
    tables : peak, at and inside of its `_Shapes`
    least : total probability of the alternatives that are left out
    """
    tail = (1 - models.confidence) / 2
    low, high = np.empty((2, len(models), len(p)))
    ends = np.array([tail, 1 - tail])
    call("bands", *_columns(models, p, tables), float(least), ends, low, high)
    return low, high


def mixtures(
    models: Models, p: FloatArray, tables: tuple[FloatArray, FloatArray, FloatArray]
) -> Parts:
    """Return the same as `predictive_mixture`; arguments as for `bands`."""
    size = len(models), 1 + models.alternative_weight.shape[1], len(p)
    centre, below, above = np.empty((3, *size))
    weight = np.empty(size[:2])
    call("mixtures", *_columns(models, p, tables), centre, below, above, weight)
    return centre, below, above, weight


def _columns(
    models: Models, p: FloatArray, tables: tuple[FloatArray, FloatArray, FloatArray]
) -> list[npt.NDArray[Any] | int]:
    peak, at, inside = tables
    beyond = np.log2(np.maximum(p / models.points[-1], 1.0))
    others = models.alternative_weight.shape[1]
    return [
        *(len(models), others, len(peak), len(p)),
        _exactly(models.terms[:, :_TERMS], np.int16),
        *float64_arrays(models.coefficients[:, : 1 + _TERMS], models.weight),
        _exactly(models.alternative_terms, np.int16),
        *float64_arrays(models.alternative_coefficients),
        *(_exactly(column, np.float32) for column in (models.alternative_weight, models.root)),
        *float64_arrays(models.unit, models.spread, models.drift),
        *float64_arrays(peak, inside.min(axis=1), inside.max(axis=1), at.T, beyond),
    ]


def _exactly(column: npt.NDArray[Any], kind: type[np.generic]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(column, dtype=kind)
