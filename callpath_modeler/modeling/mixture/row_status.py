"""Status of rows without a model, and the points at which they were measured."""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray, Int8Array, Int16Array
from callpath_modeler.modeling.compiled import repetitions
from callpath_modeler.modeling.compiled.library import compiled
from callpath_modeler.modeling.mixture.outcome import Columns
from callpath_modeler.modeling.mixture.repetition_noise import RepetitionStats
from callpath_modeler.modeling.models import MIN_POINTS
from callpath_modeler.modeling.status import FitStatus


def row_status(y: FloatArray, reps: RepetitionStats) -> Int8Array:
    """Return the status of rows that cannot be modelled, [n]; all others are OK for now."""
    if compiled():
        return repetitions.status_of(y, reps.columns, MIN_POINTS["mixture"])
    centre = np.where(reps.count > 0, reps.centre, 0.0)
    status = np.full(len(y), FitStatus.OK, dtype=np.int8)
    status[(centre == 0).all(axis=1)] = FitStatus.ZERO
    status[(centre < 0).any(axis=1)] = FitStatus.NEGATIVE
    status[(reps.count > 0).sum(axis=1) < MIN_POINTS["mixture"]] = FitStatus.TOO_FEW_POINTS
    # Sums of very large values may overflow as well.
    status[np.isinf(y).any(axis=(1, 2)) | np.isinf(centre).any(axis=1)] = FitStatus.NON_FINITE
    return status


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
    if compiled():
        return repetitions.point_counts(count, points)
    present = count > 0
    low, high = np.where(present, points, np.inf), np.where(present, points, -np.inf)
    return present.sum(axis=1).astype(np.int16), low.min(axis=1), high.max(axis=1)
