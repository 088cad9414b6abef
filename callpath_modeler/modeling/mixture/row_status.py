"""Status of rows without a model, and the points at which they were measured.

See docs/explanation/noise-and-bands.md, 'Noise'.
"""

from __future__ import annotations

from callpath_modeler.arrays import FloatArray, Int8Array, Int16Array
from callpath_modeler.modeling.kernels import kernels
from callpath_modeler.modeling.mixture.outcome import Columns
from callpath_modeler.modeling.mixture.repetition_noise import RepetitionStats
from callpath_modeler.modeling.status import FitStatus


def row_status(y: FloatArray, reps: RepetitionStats) -> Int8Array:
    """Return the status of rows that cannot be modelled, [n]; all others are OK for now."""
    result: Int8Array = kernels().row_status(y, reps)
    return result


def fill_status(
    columns: Columns, points: FloatArray, reps: RepetitionStats, status: Int8Array
) -> None:
    """Write the columns that do not need a model."""
    columns["status"][:] = status
    first = points if points.ndim == 1 else points[:, 0]
    columns["used"][:], low, high = point_counts(reps.count, first)
    if points.ndim == 1:
        columns["low_p"][:], columns["high_p"][:] = low, high
    zero = status == FitStatus.ZERO
    columns["coefficients"][zero] = 0.0
    columns["weight"][zero] = 1.0
    for name, number in (("cv_error", 0.0), ("rss", 0.0), ("r2", 1.0), ("adjusted_r2", 1.0)):
        columns[name][zero] = number


def point_counts(
    count: FloatArray, points: FloatArray
) -> tuple[Int16Array, FloatArray, FloatArray]:
    """Return the number of points with a value, the smallest and the largest of them, each [n]."""
    result: tuple[Int16Array, FloatArray, FloatArray] = kernels().point_counts(count, points)
    return result
