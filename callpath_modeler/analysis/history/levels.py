"""Levels of call paths in a history, without the noise that all call paths of a run share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.common_noise import shared_deviations
from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import centre


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Logarithms of values, relative to the first record of each call path and scale.

    Attributes
    ----------
    own : [n, T, K] centre of the repetitions after the common deviation is taken out; NaN = missing
    error : [n, T, K] squared standard error of `own` by the scatter of the repetitions; 0 = there
        is one
    common : [T, K] centre of the deviations that all call paths share; NaN = scale not measured
    """

    own: FloatArray
    error: FloatArray
    common: FloatArray


def relative_levels(values: FloatArray) -> Levels:
    """Return the levels of a history. The levels of a record depend only on it and earlier ones.

    Parameters
    ----------
    values : [n, T, K, R] call paths, records, scales and repetitions; NaN or 0 = missing
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values > 0, np.log(values), np.nan)
    rows, records, scales, repetitions = logs.shape
    first = np.full((rows, scales), np.nan)
    own = np.full((rows, records, scales), np.nan)
    error = np.zeros((rows, records, scales))
    common = np.full((records, scales), np.nan)
    for record in range(records):
        deviation = logs[:, record] - first[:, :, None]
        shared = shared_deviations(deviation.reshape(rows, -1)).reshape(scales, repetitions)
        measured = ~np.isnan(logs[:, record]).all(axis=0)
        centred = centre(logs[:, record] - shared)
        error[:, record] = _squared_error(logs[:, record] - shared)
        new = np.isnan(first)
        first[new] = centred[new]
        own[:, record] = centred - first
        common[record] = centre(np.where(measured, shared, np.nan)[None])[0]
    return Levels(own, error, common)


def _squared_error(logs: FloatArray) -> FloatArray:
    """Return the squared standard error of the centre of repetitions [..., R]."""
    count = (~np.isnan(logs)).sum(axis=-1)
    mean = np.nansum(logs, axis=-1) / np.maximum(count, 1)
    squares = np.nansum((logs - mean[..., None]) ** 2, axis=-1)
    return np.where(count > 1, squares / np.maximum(count - 1, 1) / np.maximum(count, 1), 0.0)
