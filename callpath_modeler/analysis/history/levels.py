"""Levels of call paths in a history, without the noise that all call paths of a run share.

A control is a set of call paths that did not change. With a control, the noise is what its call
paths share, and the cost of all others relative to it is that of the program.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.common_noise import shared_deviations
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.modeling import centre

LEAST_CONTROL = 3
"""Fewest call paths of a control: fewer do not tell how sure their factor is."""


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Logarithms of values, relative to the first record of each call path and scale.

    Attributes
    ----------
    own : [n, T, K] centre of the repetitions after the common deviation is taken out; NaN = missing
    error : [n, T, K] squared standard error of `own` by the scatter of the repetitions; 0 = there
        is one
    common : [T, K] centre of the deviations that all call paths share, or those of the control;
        NaN = scale not measured, or too few values of the control
    program : [T, K] centre of the cost of all call paths beside the control, relative to it; None =
        there is no control
    program_error : [T, K] squared standard error of `program` by the scatter of the repetitions
    """

    own: FloatArray
    error: FloatArray
    common: FloatArray
    program: FloatArray | None = None
    program_error: FloatArray | None = None


def relative_levels(values: FloatArray, control: BoolArray | None = None) -> Levels:
    """Return the levels of a history. The levels of a record depend only on it and earlier ones.

    Parameters
    ----------
    values : [n, T, K, R] call paths, records, scales and repetitions; NaN or 0 = missing
    control : [n] call paths that did not change; None = all are compared with each other
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values > 0, np.log(values), np.nan)
    rows, records, scales, repetitions = logs.shape
    first = np.full((rows, scales), np.nan)
    own = np.full((rows, records, scales), np.nan)
    error = np.zeros((rows, records, scales))
    common = np.full((records, scales), np.nan)
    program, program_error = np.full((2, records, scales), np.nan)
    first_cost = np.full(scales, np.nan)
    for record in range(records):
        deviation = logs[:, record] - first[:, :, None]
        if control is None:
            shared = shared_deviations(deviation.reshape(rows, -1)).reshape(scales, repetitions)
        else:
            shared = _of_control(logs[control, record], deviation[control])
        measured = ~np.isnan(logs[:, record]).all(axis=0)
        centred = centre(logs[:, record] - shared, "median")
        error[:, record] = _squared_error(logs[:, record] - shared)
        new = np.isnan(first)
        first[new] = centred[new]
        own[:, record] = centred - first
        common[record] = centre(np.where(measured, shared, np.nan)[None], "median")[0]
        if control is not None:
            # The sum sees changes of any number of call paths, and new call paths.
            cost = _log_sum(logs[~control, record] - shared)
            level, program_error[record] = centre(cost[None], "median")[0], _squared_error(cost)
            first_cost = np.where(np.isnan(first_cost), level, first_cost)
            program[record] = level - first_cost
    if control is None:
        return Levels(own, error, common)
    return Levels(own, error, common, program, program_error)


def _of_control(logs: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return the deviation that a control shares, [K, R]; NaN = too few of it have values.

    Parameters
    ----------
    logs : [n, K, R] logarithms of the values of the control
    deviation : [n, K, R] the same relative to the first records; NaN = there is no earlier record
    """
    has_begun = (~np.isnan(deviation)).any(axis=(0, 2), keepdims=True)
    known = np.where(has_begun, deviation, logs)
    shared = shared_deviations(deviation.reshape(len(deviation), -1), 1).reshape(logs.shape[1:])
    return np.where((~np.isnan(known)).sum(axis=0) >= LEAST_CONTROL, shared, np.nan)


def _log_sum(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the sum over call paths [n, K, R]; NaN = there is no value."""
    most = np.fmax.reduce(logs, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(np.nansum(np.exp(logs - most), axis=0)) + most)


def _squared_error(logs: FloatArray) -> FloatArray:
    """Return the squared standard error of the centre of repetitions [..., R]."""
    count = (~np.isnan(logs)).sum(axis=-1)
    mean = np.nansum(logs, axis=-1) / np.maximum(count, 1)
    squares = np.nansum((logs - mean[..., None]) ** 2, axis=-1)
    return np.where(count > 1, squares / np.maximum(count - 1, 1) / np.maximum(count, 1), 0.0)
