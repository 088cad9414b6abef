"""What is known of rows without any model: which can be modelled, and where they were measured."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.compiled import repetitions
from callpath_modeler.modeling.compiled.library import compiled
from callpath_modeler.modeling.mixture.outcome import Columns
from callpath_modeler.modeling.mixture.repetition_noise import RepetitionStats
from callpath_modeler.modeling.models import MIN_POINTS
from callpath_modeler.modeling.status import FitStatus

FloatArray = npt.NDArray[np.float64]


def row_status(y: FloatArray, reps: RepetitionStats) -> npt.NDArray[np.int8]:
    """Name the rows that cannot be modelled; the others are OK for now."""
    if compiled():
        return repetitions.status_of(y, reps.columns, MIN_POINTS["mixture"])
    centre = np.where(reps.count > 0, reps.centre, 0.0)
    status = np.full(len(y), FitStatus.OK, dtype=np.int8)
    status[(centre == 0).all(axis=1)] = FitStatus.ZERO
    status[(centre < 0).any(axis=1)] = FitStatus.NEGATIVE
    status[(reps.count > 0).sum(axis=1) < MIN_POINTS["mixture"]] = FitStatus.TOO_FEW_POINTS
    # So are sums of values that are as large as numbers go.
    status[np.isinf(y).any(axis=(1, 2)) | np.isinf(centre).any(axis=1)] = FitStatus.NON_FINITE
    return status


def fill_status(
    columns: Columns, points: FloatArray, reps: RepetitionStats, status: npt.NDArray[np.int8]
) -> None:
    """Write what is known of rows without any model."""
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
) -> tuple[npt.NDArray[np.int16], FloatArray, FloatArray]:
    """Tell how many points have a value, and the least and the largest of these, each [n]."""
    if compiled():
        return repetitions.point_counts(count, points)
    present = count > 0
    low, high = np.where(present, points, np.inf), np.where(present, points, -np.inf)
    return present.sum(axis=1).astype(np.int16), low.min(axis=1), high.max(axis=1)
