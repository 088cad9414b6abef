"""Rows of many kinds for tests that compare two implementations of models."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses, hypotheses
from callpath_modeler.modeling.mixture.residuals import ScreenedHypotheses, screen
from callpath_modeler.modeling.mixture.scaled_rows import (
    Deviations,
    ScaledRows,
    data_of,
    deviations,
    noise_of,
    repetition_stats,
)
from callpath_modeler.modeling.terms import DEFAULT_SPACE


class Kind(NamedTuple):
    """A kind of rows: number of points and repetitions, and peculiarities."""

    points: int
    noise: float
    repetitions: int = 5
    missing: float = 0.0
    zeros: float = 0.0
    first: float = 8.0


KINDS = {
    "quiet": Kind(5, 0.005),
    "usual": Kind(8, 0.05),
    "noisy": Kind(8, 0.3),
    "wild": Kind(6, 0.8, 3),
    "run once": Kind(6, 0.02, 1),
    "with gaps": Kind(12, 0.02, 3, missing=0.1),
    "from one process": Kind(6, 0.1, first=1.0),
    "with zeros": Kind(7, 0.1, zeros=0.1),
    "exact": Kind(7, 0.0, 2),
    "of three points": Kind(3, 0.01),
}


def many_rows(kind: Kind, count: int, seed: int = 1) -> tuple[FloatArray, FloatArray]:
    """Draw constants, growth, decrease, U-shapes and steps; points [K] and values [n, K, R]."""
    rng = np.random.default_rng(seed)
    points = kind.first * 2.0 ** np.arange(kind.points)
    exponent = rng.choice([0, 1 / 3, 0.5, 1, 1.5, 2, -0.5, -1], count)[:, None]
    growth = points**exponent / (points**exponent).max(axis=1, keepdims=True)
    share = rng.uniform(0, 1, count)[:, None]
    values = share + (1 - share) * growth
    also = rng.uniform(0, 1, count)[:, None] * (rng.random(count) < 0.3)[:, None]
    values += also * points[0] / points
    values[rng.random(count) < 0.1, kind.points // 2 :] *= 3
    values *= 10.0 ** rng.uniform(-8, 8, count)[:, None]
    shape = count, kind.points, kind.repetitions
    y = values[..., None] * np.exp(kind.noise * rng.standard_normal(shape))
    y[rng.random(shape[:2]) < kind.missing] = np.nan
    y[rng.random(shape[:2]) < kind.zeros] = 0
    return points, y


def rows_to_fit(points: FloatArray, y: FloatArray) -> tuple[ScaledRows, Deviations]:
    """Return the rows with values at three points or more, and their noise."""
    reps = repetition_stats(np.sort(y, axis=2), "mean")
    usable = (reps.count > 0).sum(axis=1) >= 3
    usable &= np.nan_to_num(reps.centre).max(axis=1) > 0
    data, _ = data_of(points, noise_of(reps.take(np.flatnonzero(usable)), 1.0))
    return data, deviations(points, noise_known=y.shape[2] > 1)


def screened(
    points: FloatArray, y: FloatArray, known: Hypotheses | None = None
) -> tuple[ScaledRows, ScreenedHypotheses, Hypotheses, Deviations]:
    """Return the candidates of such rows before empirical Bayes."""
    known = known or hypotheses(DEFAULT_SPACE, points)
    data, ways = rows_to_fit(points, y)
    return data, screen(data, known, known.log_prior, ways.extremes), known, ways
