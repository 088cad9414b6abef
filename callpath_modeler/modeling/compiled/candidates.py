"""Screening of hypotheses, and candidates: calls into ``screen.c`` and ``candidates.c``.

See docs/explanation/hypotheses.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.compiled.library import (
    call,
    float32_arrays,
    float64_arrays,
    int32_arrays,
)
from callpath_modeler.modeling.constants.limits import NOTED, WHOLE
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses, HypothesisGroup
from callpath_modeler.modeling.mixture.scaled_rows import (
    Deviations,
    Drift,
    ScaledRows,
    floor_of,
    variances,
)
from callpath_modeler.modeling.mixture.screening import ScreenedHypotheses, promise_of_pairs


def precisions(points: FloatArray, drifts: Sequence[Drift]) -> tuple[FloatArray, FloatArray]:
    """Return the input of `relative_weights` in ``rows.h`` for L drifts over `points`, each [L, K].

    Returns
    -------
    precision : ndarray
        Factor of the weights if every point has a value.
    away : ndarray
        Logarithm of the variance at each point, minus the mean over all points.
    """
    away = np.log(variances(drifts, points))
    away -= away.mean(axis=1, keepdims=True)
    precision = np.exp(-away)
    precision[:, 0] /= [drift.of_first for drift in drifts]
    return precision, away


class Screened(NamedTuple):
    """The columns of `ScreenedHypotheses` for n rows; `families` [U] has a bit for each family."""

    row: IntArray
    shape: IntArray
    families: IntArray
    pair_row: IntArray
    pair: IntArray
    variance: FloatArray
    fitted: FloatArray


def screened(
    data: ScaledRows, hypotheses: Hypotheses, log_prior: FloatArray, drifts: Sequence[Drift]
) -> Screened:
    """Return the hypotheses that may matter under any drift; arguments as for `screen`."""
    rows, points = data.values.shape
    shapes, pairs, kept = len(hypotheses.shapes), len(hypotheses.products), hypotheses.kept
    # Shapes fill whole vectors; the additional ones have no prior.
    wide = -(-shapes // WHOLE) * WHOLE
    before, of_shapes, of_pairs = np.split(log_prior, [1, 1 + 3 * shapes])
    prior = np.empty(1 + 3 * wide + len(of_pairs), dtype=np.float32)
    prior[0], prior[1 + 3 * wide :] = before[0], of_pairs
    prior[1 : 1 + 3 * wide] = _widened(of_shapes.reshape(3, shapes), wide, -np.inf).ravel()
    fixed: list[npt.NDArray[Any] | float] = [
        *float64_arrays(*precisions(data.points, drifts), hypotheses.table, hypotheses.products),
        *(hypotheses.first.astype(np.int32), hypotheses.second.astype(np.int32)),
        *float32_arrays(_widened(hypotheses.single_group == HypothesisGroup.FALLING, wide)),
        *(prior, promise_of_pairs(hypotheses, log_prior)),
        *(kept.shapes, kept.pairs * points, float(kept.nats), int(kept.frugal), hypotheses.growing),
        *_fans(hypotheses, of_pairs, wide),
    ]
    columns = float64_arrays(data.values, data.weight, data.variance, data.dof, floor_of(data))
    most, most_pairs = rows * NOTED + shapes, rows * NOTED + hypotheses.compared
    variance, fitted = np.empty(rows), np.empty((rows, points))
    done, parts = 0, list[tuple[IntArray, IntArray]]()
    while done < rows or not parts:
        alone = np.empty((3, most), dtype=np.int64)
        paired, counts = np.empty((2, most_pairs), dtype=np.int64), np.zeros(3, dtype=np.int64)
        call(
            "screen",
            *(rows - done, points, wide, shapes, pairs, len(drifts)),
            *(column[done:] for column in columns),
            *fixed,
            *(most, most_pairs, *alone, *paired, counts, variance[done:], fitted[done:]),
        )
        part = alone[:, : counts[0]], paired[:, : counts[1]]
        for each in part:
            each[0] += done
        parts.append(part)
        done += int(counts[2])
    (row, shape, families), (pair_row, pair) = (
        np.concatenate(each, axis=1) for each in zip(*parts, strict=True)
    )
    return Screened(row, shape, families, pair_row, pair, variance, fitted)


def _widened(column: npt.NDArray[Any], size: int, value: float | None = None) -> FloatArray:
    """Return a column with its last axis filled up to `size`, by default with the last number."""
    wide = np.empty((*column.shape[:-1], size))
    filled = column.shape[-1]
    wide[..., :filled] = column
    wide[..., filled:] = column[..., -1:] if value is None else value
    return wide


def _fans(hypotheses: Hypotheses, of_pairs: FloatArray, wide: int) -> list[npt.NDArray[Any] | int]:
    """Return the input of ``fans.h``."""
    fans, points = hypotheses.fans, hypotheses.table.shape[1]
    if fans is None:
        numbers, levels = np.empty(0, dtype=np.int64), np.empty((0, points), dtype=np.int64)
        nothing = np.empty((0, wide), dtype=np.float32)
        return [0, 0, 0, numbers, levels, levels, np.empty((points, 0)), nothing]
    order = np.argsort(fans.levels, axis=1, kind="stable")
    likely = fans.likely(of_pairs).reshape(-1, len(fans.ends))
    return [
        *(len(fans.ends), len(fans.terms), fans.opened),
        *int32_arrays(fans.ends, order, np.take_along_axis(fans.levels, order, axis=1)),
        *float64_arrays(hypotheses.table[fans.terms].T),
        *float32_arrays(_widened(likely.T, wide, -np.inf)),
    ]


def compiled_candidates(
    data: ScaledRows, chosen: ScreenedHypotheses, hypotheses: Hypotheses, deviations: Deviations
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """Return the columns of `Candidates`, ordered by row."""
    row_in, chosen_in = _listed(chosen, hypotheses)
    drifts, size = deviations.drifts, len(row_in)
    sizes = (
        *data.values.shape,
        len(drifts),
        len(hypotheses.shapes),
        len(deviations.deviation),
        size,
    )
    of_first = np.log([drift.of_first for drift in drifts]) / 2
    row, found = np.empty((2, size), dtype=np.int64)
    log_evidence = np.empty((size, len(deviations.deviation)))
    coefficients = np.empty((size, len(drifts), 3))
    covariance = np.empty((size, len(drifts), 6))
    call(
        "candidates",
        *(*sizes, int(hypotheses.kept.frugal)),
        *float64_arrays(data.values, data.weight, data.variance, data.dof, floor_of(data)),
        *float64_arrays(chosen.variance, chosen.fitted, hypotheses.table_and_none),
        *float64_arrays(hypotheses.table.min(axis=1), hypotheses.table.max(axis=1)),
        *float64_arrays(hypotheses.single_group == HypothesisGroup.FALLING),
        *int32_arrays(hypotheses.first, hypotheses.second),
        *float64_arrays(*precisions(data.points, drifts), of_first, deviations.deviation**2),
        *int32_arrays(deviations.drift_of, row_in, chosen_in),
        *(row, found, log_evidence, coefficients, covariance),
    )
    numbers, elements = (np.moveaxis(column, 0, 2) for column in (coefficients, covariance))
    return row, found, log_evidence.T, numbers, elements


def _listed(chosen: ScreenedHypotheses, hypotheses: Hypotheses) -> tuple[IntArray, IntArray]:
    """Return rows and hypotheses of all chosen candidates and of the constants."""
    rows, size = len(chosen.variance), len(hypotheses.shapes)
    families = enumerate(chosen.families)
    singles = [1 + family * size + chosen.shape[which] for family, which in families]
    every = [np.arange(rows), *(chosen.row[which] for which in chosen.families), chosen.pair_row]
    codes = [np.zeros(rows, dtype=np.intp), *singles, 1 + 3 * size + chosen.pair]
    return np.concatenate(every), np.concatenate(codes)
