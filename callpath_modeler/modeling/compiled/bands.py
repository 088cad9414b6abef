"""Predictions of hypotheses and bands: calls into ``bands.c``, ``sums.c`` and ``uncertainty.c``.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.compiled.library import call, float64_arrays
from callpath_modeler.modeling.constants.layout import TERMS
from callpath_modeler.modeling.constants.sums import COLUMNS, ENDS
from callpath_modeler.modeling.distributions import normal_share
from callpath_modeler.modeling.model_columns import ModelColumns
from callpath_modeler.modeling.predictive import ShapeTables
from callpath_modeler.modeling.row_quantiles import scores
from callpath_modeler.modeling.uncertainty import Mixture, Prediction


def quantiles(mixture: Mixture, probabilities: FloatArray) -> FloatArray:
    """Return the same as `Mixture.quantiles`."""
    rows, _, columns = mixture.centre.shape
    found = np.empty((len(probabilities), rows, columns))
    (asked,) = float64_arrays(probabilities)
    call("quantiles", *mixture.centre.shape, *_parts(mixture), len(asked), asked, found)
    return found


def exceedance(mixture: Mixture, value: FloatArray) -> FloatArray:
    """Return the same as `Mixture.exceedance`."""
    rows, _, columns = mixture.centre.shape
    found = np.empty((rows, columns))
    of_value = float64_arrays(np.broadcast_to(value, found.shape))
    call("exceedances", *mixture.centre.shape, *_parts(mixture), *of_value, found)
    return found


def bands(
    models: ModelColumns, p: FloatArray, shapes: ShapeTables, least: float
) -> tuple[FloatArray, FloatArray]:
    """Return as `prediction_interval`; alternatives with a probability of `least` are left out."""
    tail = (1 - models.confidence) / 2
    low, high = np.empty((2, len(models), len(p)))
    ends = np.array([tail, 1 - tail])
    call("bands", *_columns(models, p, shapes), float(least), ends, low, high)
    return low, high


def mixtures(models: ModelColumns, p: FloatArray, shapes: ShapeTables) -> Mixture:
    """Return the same as `predictive_mixture`."""
    size = len(models), 1 + models.alternative_weight.shape[1], len(p)
    centre, below, above = np.empty((3, *size))
    weight = np.empty(size[:2])
    call("mixtures", *_columns(models, p, shapes), centre, below, above, weight)
    return Mixture(centre, below, above, weight)


def quantiles_of_bands(
    models: ModelColumns, p: FloatArray, shapes: ShapeTables, band: Prediction
) -> FloatArray:
    """Return as `reference.sums.quantiles_of_bands`."""
    score = scores(models.confidence)
    found = np.empty((*band.value.shape, len(score)))
    asked = normal_share(np.delete(score, ENDS))
    of_band = float64_arrays(band.value, band.low, band.high, score, asked)
    call("quantiles_of_bands", *_columns(models, p, shapes), *of_band, found)
    return found


def addends(quantiles: FloatArray, correlation: float, weights: FloatArray) -> FloatArray:
    """Return as `reference.sums.addends`."""
    found = np.empty((len(quantiles), COLUMNS))
    given = float64_arrays(quantiles), float64_arrays(weights)
    call("addends", len(quantiles), *given[0], float(correlation), *given[1], found)
    return found


def _parts(mixture: Mixture) -> list[FloatArray]:
    return float64_arrays(mixture.centre, mixture.below, mixture.above, mixture.weight)


def _columns(
    models: ModelColumns, p: FloatArray, shapes: ShapeTables
) -> list[npt.NDArray[Any] | int]:
    peak, at, inside = shapes.peak, shapes.at, shapes.inside
    beyond = np.log2(np.maximum(p / models.points[-1], 1.0))
    others = models.alternative_weight.shape[1]
    return [
        *(len(models), others, len(peak), len(p)),
        _exactly(models.terms[:, :TERMS], np.int16),
        *float64_arrays(models.coefficients[:, : 1 + TERMS], models.weight),
        _exactly(models.alternative_terms, np.int16),
        *float64_arrays(models.alternative_coefficients),
        *(_exactly(column, np.float32) for column in (models.alternative_weight, models.root)),
        *float64_arrays(models.unit, models.spread, models.drift),
        *float64_arrays(peak, inside.min(axis=1), inside.max(axis=1), at.T, beyond),
    ]


def _exactly(column: npt.NDArray[Any], kind: type[np.generic]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(column, dtype=kind)
